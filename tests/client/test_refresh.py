"""The parts of an earlier frame: its query, the rows of each metric, what was restated."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from gamelens.catalog import find_metric
from gamelens.client.query.arguments import STUDIO_ID, QuerySpec, query_record
from gamelens.client.query.data_frames import to_frame
from gamelens.client.query.planner import plan_requests
from gamelens.client.query.refresh import (
    find_restatements,
    previous_result,
    restatement_records,
    rows_of_metric,
)
from gamelens.client.tables.table_differences import FieldChange, Restatement
from gamelens.client.tables.table_operations import TIMESTAMP_TYPE, schema
from gamelens.receipts import Gap, Receipt
from gamelens.wire.filters import dim
from gamelens.wire.intervals import Interval

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)


def receipt(question: QuerySpec, *gaps: Gap) -> Receipt:
    """Return the receipt of a query with *gaps*."""
    return Receipt(
        asked=query_record(question, "last complete week", interval=str(WEEK)),
        gaps=gaps,
        as_of="2026-11-20T10:00:00+00:00",
    )


def columns(*names: str, **values: Any) -> pa.Table:
    """Return a table of one bucket whose columns *names* are text."""
    texts = {name: pa.array(values[name], pa.string()) for name in names}
    return pa.table({"timestamp": pa.array([DAY] * len(next(iter(values.values()))), TIMESTAMP_TYPE)} | values | texts)


# The query


@pytest.mark.parametrize(
    "question",
    [
        QuerySpec(metrics=("revenue",)),
        QuerySpec(metrics=("revenue",), by=("studio", "game", "platform"), every="week", games=("1",), studios=()),
        QuerySpec(metrics=("user_unique", "revenue"), where=~(dim.platform == "ios") & dim.build.isin(["1", "2"])),
        QuerySpec(metrics=("revenue",), by=("platform",), top=3, other=True),
        QuerySpec(metrics=("revenue",), by=("platform", "build"), check=True, fields="all"),
        QuerySpec(metrics=("returning_users",), by=("platform",), since_days_ago=7),
        QuerySpec(metrics=("brand_new",), by=("brand_new_dimension",)),
    ],
)
def test_the_receipt_holds_the_whole_query(question: QuerySpec) -> None:
    """The query is read back from the receipt without loss."""
    parts = plan_requests(question, WEEK, max_days=None, unknown=question.dimensions, values={STUDIO_ID: ("s1",)})
    names = {name for part in parts for name in schema(part.metric, part.dimensions).names}
    names |= {column for metric in map(find_metric, question.metrics) if metric for column in metric.columns.values()}
    frame = to_frame(pa.table({name: pa.array([], pa.int64()) for name in names}), (), receipt(question))
    assert previous_result(frame).spec == question


def test_retention_is_recognised_by_its_days() -> None:
    """A receipt with days is one of retention, with these ages."""
    names = ["timestamp", "age", "platform", "retention", "installs", "returned"]
    question = QuerySpec(metrics=("retention",), by=("platform",), ages=(1, 7))
    frame = to_frame(pa.table({name: pa.array([], pa.int64()) for name in names}), (), receipt(question))
    before = previous_result(frame)
    assert (before.spec.ages, before.interval) == ((1, 7), WEEK)


# The rows of each metric


def test_a_frame_of_one_metric_is_its_rows_without_titles() -> None:
    """The rows of a single metric are all but the title columns."""
    table = columns("game_id", "game", game_id=["1", None], game=["Saga", None], event_count=[1, None], surprise=[2, 3])
    rows = rows_of_metric(table, "event_count", ("game_id",), ("event_count",))
    assert rows.column_names == ["timestamp", "game_id", "event_count", "surprise"]
    assert len(rows) == 2


def test_a_field_that_was_named_after_its_metric_gets_its_name_back() -> None:
    """The columns of one of several metrics are renamed to the service's fields."""
    table = columns(revenue=[1.0], ilrd_revenue=[2.0], revenue_event_count=[3], ilrd_revenue_event_count=[4])
    both = ("revenue", "ilrd_revenue")
    assert rows_of_metric(table, "revenue", (), both).drop_columns("timestamp").to_pylist() == [
        {"event_count": 3, "sum": 1.0}
    ]
    assert rows_of_metric(table, "ilrd_revenue", (), both).drop_columns("timestamp").to_pylist() == [
        {"event_count": 4, "sum": 2.0}
    ]


def test_a_row_of_the_other_metric_only_is_left_out() -> None:
    """A row whose fields of a metric are all null is not a row of that metric."""
    table = columns("platform", platform=["a", "b", None], event_count=[1, None, 4], user_unique=[None, 2, 3])
    both = ("event_count", "user_unique")
    assert rows_of_metric(table, "event_count", ("platform",), both)["platform"].to_pylist() == ["a", None]
    assert rows_of_metric(table, "user_unique", ("platform",), both)["platform"].to_pylist() == ["b", None]


def test_a_row_whose_ratio_is_null_is_still_a_row() -> None:
    """A row with a null ratio and counts of 0 is kept."""
    table = columns(arpu=[None], total_revenue_cents=[0], user_unique=[0], event_count=[1])
    assert len(rows_of_metric(table, "arpu", (), ("arpu", "event_count"))) == 1


# Restatements


def test_a_restatement_becomes_one_record_per_field() -> None:
    """A restatement becomes a record for each changed field."""
    it = Restatement(
        metric="revenue",
        dimensions=("platform",),
        text="{}",
        interval=WEEK,
        bucket_start=DAY,
        before_as_of=NEXT,
        as_of=NEXT,
        rows_changed=2,
        fields=(FieldChange("event_count", 1.0, 2.0), FieldChange("mean", None, None)),
        noticed_at=NEXT,
    )
    entries = restatement_records([it, it])
    assert [(entry.field, entry.before, entry.after, entry.rows) for entry in entries] == [
        ("revenue_event_count", 1.0, 2.0, 2),
        ("revenue_mean", None, None, 2),
    ] * 2
    assert (entries[0].timestamp, entries[0].by) == ("2026-11-01T00:00:00+00:00", ("platform",))


def test_retention_whose_day_has_come_is_not_restated() -> None:
    """Retention that was NA and is now known is not a restatement, a changed share is."""
    question = QuerySpec(metrics=("retention",), by=("platform",), ages=(1, 7))
    old_receipt = receipt(question)
    rows: dict[str, Any] = {"platform": ["ios", "ios"], "age": [1, 7], "retention": [0.5, None], "installs": [10, 10]}
    old = columns("platform", **rows, returned=pa.array([5, None], pa.int64()))
    rows["retention"] = [0.5, 0.2]
    complete = columns("platform", **rows, returned=[5, 2])
    frame = to_frame(old, ("platform",), old_receipt)
    assert find_restatements(frame, complete, previous_result(frame), "later") == []

    rows["retention"] = [0.6, 0.2]
    (one, other) = find_restatements(
        frame, columns("platform", **rows, returned=[6, 2]), previous_result(frame), "later"
    )
    assert (one.field, other.field, one.rows) == ("retention", "returned", 1)
