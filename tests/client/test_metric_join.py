"""The rows of several metrics side by side, and the counts and money that are 0 where the service has no row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelens.client.query import build as metric_join
from gamelens.client.query.build import MetricRows, join_metrics
from gamelens.client.sync_client import Client
from gamelens.client.tables.table_operations import from_rows, schema
from gamelens.errors import ServiceError
from gamelens.notebook import accessor as accessor  # df.lens
from gamelens.receipts import Receipt
from support.scripted_service import Script
from support.watched_service import Sent, World, assert_equal, quick, rows_of

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
PAIR = ("platform", "country_code")
USERS: list[dict[str, Any]] = [{"platform": "ios", "user_unique": 7}]
OVER = "2026-10-08/2026-11-20"
MONEY_AND_PLAYERS = ["revenue", "new_users", "arpu"]

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


def test_metrics_are_joined_on_timestamp_and_dimensions() -> None:
    """Rows of two metrics with the same bucket and values become one row."""
    result = joined(
        ("platform",),
        rows("user_unique", ("platform",), *USERS),
        rows("new_users", ("platform",), {"platform": "ios", "new_users": 2}),
    )
    assert shown(result) == [{"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": 2}]


def test_a_row_only_one_metric_has_is_kept() -> None:
    """A row that one metric lacks has 0 in its counts, since the service leaves out rows without events."""
    installs = {"timestamp": NEXT, "platform": None, "new_users": 2}
    result = joined(
        ("platform",), rows("user_unique", ("platform",), *USERS), rows("new_users", ("platform",), installs)
    )
    assert shown(result) == [
        {"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": 0},
        {"timestamp": NEXT, "platform": None, "user_unique": 0, "new_users": 2},
    ]


def test_null_joins_null() -> None:
    """Rows with a null value in the same dimension are joined."""
    left = rows("user_unique", PAIR, {"platform": None, "country_code": "DE", "user_unique": 7})
    right = rows("new_users", PAIR, {"platform": None, "country_code": "DE", "new_users": 2})
    assert len(joined(PAIR, left, right)) == 1


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


def test_three_metrics_stand_side_by_side() -> None:
    """Three metrics without dimensions become one row."""
    names = ("user_unique", "new_users", "event_count")
    result = joined((), *(rows(name, (), {name: place}) for place, name in enumerate(names)))
    assert shown(result) == [{"timestamp": DAY, "user_unique": 0, "new_users": 1, "event_count": 2}]


def test_ratios_and_means_are_never_filled() -> None:
    """Of a row that the service does not have, sums are 0; a mean or a ratio of nothing is null."""
    by = ("platform",)
    result = joined(by, rows("user_unique", by, *USERS), rows("revenue", by), rows("arpu", by))
    assert shown(result) == [
        {"timestamp": DAY, "platform": "ios", "user_unique": 7}
        | {"revenue": 0.0, "revenue_event_count": 0, "revenue_mean": None, "revenue_sum_cents": 0.0}
        | {"arpu": None, "total_revenue_cents": 0}
    ]


def test_rows_of_an_unknown_bucket_are_not_filled() -> None:
    """Where a request failed, or `top` cut the rows, a missing row is not known to be 0."""
    by, installs = ("platform",), {"timestamp": NEXT, "platform": "ios", "new_users": 2}
    table, filled = join_metrics(by, [rows("user_unique", by, *USERS, unknown=[NEXT]), rows("new_users", by, installs)])
    assert [(row["user_unique"], row["new_users"]) for row in shown(table)] == [(7, 0), (None, 2)]
    assert filled == {"new_users": 1}


def test_every_value_gets_every_bucket() -> None:
    """A value that is seen in one bucket has a row in all, except where no metric is known."""
    by, days = ("platform",), [DAY, NEXT, NEXT + timedelta(days=1)]
    users = rows("user_unique", by, *USERS, unknown=days[2:])
    table, filled = join_metrics(by, [users, rows("new_users", by, unknown=days[2:])], days)
    assert [tuple(row.values()) for row in shown(table)] == [(DAY, "ios", 7, 0), (NEXT, "ios", 0, 0)]
    assert filled == {"user_unique": 1, "new_users": 2}


def test_without_dimensions_every_bucket_gets_its_row() -> None:
    """A service that leaves out days without events is as good as one that does not."""
    users = rows("user_unique", (), {"user_unique": 7})
    table, filled = join_metrics((), [users, rows("new_users", (), {"new_users": 1})], [DAY, NEXT])
    assert [tuple(row.values()) for row in shown(table)] == [(DAY, 7, 1), (NEXT, 0, 0)]
    assert filled == {"user_unique": 1, "new_users": 1}


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


@pytest.mark.slow
def test_the_numbers_of_a_frame_are_those_of_each_metric_or_0(world: World) -> None:
    """Each cell is the answer of its metric alone, and 0 or null where that has no row."""
    lens = quick(world.watch())
    both = lens.query(MONEY_AND_PLAYERS, by="country_code", over=OVER, fields="all")
    alone = {
        name: {_key(row): row for row in rows_of(lens.query(name, by="country_code", over=OVER, fields="all"))}
        for name in MONEY_AND_PLAYERS
    }
    countries = {key[1] for table in alone.values() for key in table}
    assert len(both) == len(countries) * 43
    for row in rows_of(both):
        money, players = alone["revenue"].get(_key(row)), alone["new_users"].get(_key(row))
        assert (row["revenue"], row["revenue_mean"]) == ((money["sum"], money["mean"]) if money else (0, None))
        assert row["new_users"] == (players["new_users"] if players else 0)
        assert row["arpu"] == alone["arpu"].get(_key(row), {}).get("arpu")
    missing = {name: len(both) - len(table) for name, table in alone.items()}
    assert Receipt.of(both.attrs).filled == missing
    assert f"where the service had no row: revenue in {missing['revenue']:,} rows" in both.lens.explain()


def _key(row: Row) -> tuple[Any, Any]:
    return row["timestamp"], row["country_code"]


@pytest.mark.slow
def test_a_metric_alone_is_not_filled(world: World) -> None:
    """A frame of one metric has the rows of the service, and its receipt no count."""
    frame = quick(world.watch()).query("revenue", by="country_code", over=OVER)
    assert "filled" not in frame.attrs["gamelens"]
    assert len(frame) < 43 * frame["country_code"].nunique(dropna=False)


@pytest.mark.slow
def test_a_gap_is_not_filled(world: World, tmp_path: Path) -> None:
    """Days whose request failed stay NA, and the same query fills them with what the service has."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path)

    def fails(sent: Sent) -> bool:
        return sent.name == "revenue" and (sent.body or {})["interval"].startswith("2026-10-08")

    watch.fails = fails
    frame = lens.query(["revenue", "new_users"], by="platform", over=OVER, on_error="gaps")
    (gap,) = Receipt.of(frame.attrs).gaps
    is_cut = frame["timestamp"].map(lambda moment: gap.times is not None and moment.to_pydatetime() in gap.times)
    assert frame.loc[is_cut, "revenue"].isna().all()
    assert frame.loc[~is_cut, "revenue"].notna().all()
    watch.fails = lambda sent: False
    watch.clear()
    whole = lens.query(["revenue", "new_users"], by="platform", over=OVER)
    assert [request.name for request in watch.queries] == ["revenue"]
    again = quick(watch).query(["revenue", "new_users"], by="platform", over=OVER)
    assert_equal(whole, again)
    assert Receipt.of(whole.attrs).filled == Receipt.of(again.attrs).filled


@pytest.mark.slow
def test_rows_beyond_top_are_not_filled(world: World) -> None:
    """A country that is not among the largest of one metric has NA there, unless all countries are shown."""
    lens = quick(world.watch())
    top = lens.query(["event_count", "revenue"], by="country_code", over=OVER, top=1)
    everything = {_key(row): row for row in rows_of(lens.query("event_count", by="country_code", over=OVER))}
    unknown = [row for row in rows_of(top) if row["event_count"] is None]
    assert unknown
    assert all(everything[_key(row)]["event_count"] for row in unknown)


@pytest.mark.slow
def test_refresh_does_not_restate_what_was_filled(world: World) -> None:
    """Rows of 0 that the service does not have are not differences."""
    lens = quick(world.watch())
    frame = lens.query(["revenue", "new_users"], by="country_code", over=OVER)
    assert lens.refresh(frame).attrs["gamelens"]["restated"] == []


def test_nothing_outside_the_available_interval_is_filled(script: Script, lens: Client) -> None:
    """Of a clipped query only the available days have rows."""
    answer = [{"timestamp": "2026-11-19T00:00:00.000Z", "result": [{"platform": "ios", "event_count": 1}]}]
    script.answers["event_count"] = lambda body: answer
    script.answers["new_users"] = lambda body: []
    frame = lens.query(
        ["event_count", "new_users"], by="platform", over="2026-11-18/2026-11-30", when_unavailable="clip"
    )
    assert [str(moment)[:10] for moment in frame["timestamp"]] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert frame["new_users"].tolist() == [0, 0, 0]
