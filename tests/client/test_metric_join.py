"""The rows of several metrics side by side, and the counts and money that are 0 where the service has no row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from gamelens.client.query import build as metric_join
from gamelens.client.query.build import MetricRows, join_metrics
from gamelens.client.tables.table_operations import from_rows, schema
from gamelens.errors import ServiceError
from gamelens.notebook import accessor as accessor  # df.lens
from support.watched_service import World, quick

DAY, NEXT = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)
USERS: list[dict[str, Any]] = [{"platform": "ios", "user_unique": 7}]

Row = dict[str, Any]


def shown(table: pa.Table) -> list[Row]:
    """Return the rows of *table*."""
    return table.to_pylist()  # type: ignore[no-any-return]


def rows(metric: str, dimensions: Sequence[str], *given: Row, unknown: Collection[datetime] = ()) -> MetricRows:
    """Return *given* rows of *metric*, by default of `DAY`."""
    table = from_rows(({"timestamp": DAY} | row for row in given), schema(metric, dimensions))
    return MetricRows(metric=metric, table=table, unknown=unknown)


def joined(dimensions: Sequence[str], *metrics: MetricRows, buckets: Sequence[datetime] = ()) -> pa.Table:
    """Return the joined rows."""
    return join_metrics(dimensions, metrics, buckets, all_fields=True)[0]


def test_joined_rows_keep_the_order_of_the_first_metric() -> None:
    """Joined rows are in time, within a bucket in order of first appearance."""
    by = ("platform",)
    left = rows("user_unique", by, {"timestamp": NEXT, "platform": "a"}, {"platform": "b"}, {"platform": "a"})
    right = rows("new_users", by, {"platform": "c"}, {"platform": "a"}, {"timestamp": NEXT, "platform": "b"})
    keys = [(row["timestamp"], row["platform"]) for row in shown(joined(by, left, right))]
    assert keys == [(DAY, "b"), (DAY, "a"), (DAY, "c"), (NEXT, "a"), (NEXT, "b")]


@pytest.mark.parametrize("name", ["ios", None])
def test_two_rows_of_the_same_bucket_and_values_are_refused(name: str | None) -> None:
    """Two rows of one metric with the same bucket and values are a `ServiceError`."""
    twice = rows("user_unique", ("platform",), {"platform": name}, {"platform": name})
    with pytest.raises(ServiceError, match="two rows of the same bucket and values"):
        joined(("platform",), rows("new_users", ("platform",), *USERS), twice)


def test_very_many_rows_are_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond `MOST_ROWS` only the rows that a metric has are filled, so that a frame does not explode."""
    monkeypatch.setattr(metric_join, "MOST_ROWS", 1)
    table, filled = join_metrics(
        ("platform",), [rows("user_unique", ("platform",), *USERS), rows("new_users", ("platform",))], [DAY, NEXT]
    )
    assert (len(table), filled) == (1, {"new_users": 1})


def test_a_metric_that_only_the_service_knows_is_not_filled() -> None:
    """Whether 0 means nothing happened is unknown for it."""
    new = MetricRows(metric="brand_new", table=pa.table({"timestamp": [], "platform": [], "brand_new": []}))
    typed = new.table.cast(pa.schema([*schema("event_count", ("platform",)).remove(2), ("brand_new", pa.int64())]))
    new = MetricRows(metric="brand_new", table=typed)
    (row,) = shown(joined(("platform",), rows("user_unique", ("platform",), *USERS), new))
    assert row["brand_new"] is None


def test_the_receipt_says_where_rows_were_filled(world: World) -> None:
    """In words, with the number of rows of each metric."""
    frame = quick(world.watch()).query(["revenue", "new_users"], by="platform", over="2026-10-20/2026-11-20")
    filled = frame.attrs["gamelens"]["filled"]["revenue"]
    assert f"where the service had no row: revenue in {filled:,} rows" in frame.lens.explain()
