"""Arrow tables concatenated, added up, joined, cut to the largest, and ordered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.catalog import METRICS
from gamelens.client.tables import table_operations
from gamelens.client.tables.table_operations import (
    TIMESTAMP_TYPE,
    other_rows,
    schema,
    sort_as_service,
    sort_by_time,
    sort_largest_first,
    sum_split_buckets,
)

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
PAIR = ("platform", "country_code")

Row = dict[str, Any]


def shown(table: pa.Table) -> list[Row]:
    """Return the rows of *table*."""
    return table.to_pylist()  # type: ignore[no-any-return]


def rows(metric: str, dimensions: Sequence[str], *given: Row) -> pa.Table:
    """Return a table of *given* rows with the schema of *metric*."""
    return table_operations.from_rows(({"timestamp": DAY} | row for row in given), schema(metric, dimensions))


def with_field(name: str, *values: object) -> pa.Table:
    """Return rows of event_count with a field the catalog does not know."""
    table = rows("event_count", (), *({"event_count": 1} for _ in values))
    return table.append_column(name, pa.array(values))


def money(count: int, cents: int, **more: Any) -> Row:
    """Return the fields of a revenue row, with the mean that follows from them."""
    mean = cents / 100 / count if count else None
    return {**more, "event_count": count, "mean": mean, "sum": cents / 100, "sum_cents": float(cents)}


# Concatenation


def test_pieces_follow_each_other_with_all_their_columns() -> None:
    """Concatenated tables have the columns of all, null in rows that lack them."""
    pieces = [rows("event_count", (), {"event_count": 3}), with_field("x", 7)]
    table = table_operations.concatenate(pieces, schema("event_count", ()))
    assert (table["event_count"].to_pylist(), table["x"].to_pylist()) == ([3, 1], [None, 7])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 2.5, [1.0, 2.5]),
        (None, "a", [None, "a"]),
        (1, "a", ["1", "a"]),
        (True, 7, ["true", "7"]),
    ],
)
def test_an_unknown_field_of_two_types_is_concatenated(first: object, second: object, expected: list[object]) -> None:
    """Columns of different types are widened, or become text."""
    pieces = [with_field("x", value) for value in (first, second)]
    assert table_operations.concatenate(pieces, schema("event_count", ()))["x"].to_pylist() == expected


def test_no_tables_concatenated_have_the_known_columns() -> None:
    """Without tables the result is empty and has the metric's schema."""
    assert table_operations.concatenate([], schema("revenue", PAIR)).schema == schema("revenue", PAIR)


def test_rows_of_a_bucket_keep_their_order_in_time() -> None:
    """Sorting by timestamp is stable."""
    pieces = [
        rows("event_count", (), {"event_count": n, "timestamp": stamp}) for n, stamp in enumerate([NEXT, DAY, NEXT])
    ]
    table = table_operations.sort_by_time(table_operations.concatenate(pieces, schema("event_count", ())))
    assert table["event_count"].to_pylist() == [1, 0, 2]


def test_dropping_buckets_leaves_the_others() -> None:
    """Dropping one bucket leaves the rows of all others."""
    table = rows("event_count", (), {"event_count": 1}, {"event_count": 2, "timestamp": NEXT})
    left = table_operations.drop_buckets(table, {DAY})
    assert (table_operations.bucket_starts(left), table_operations.drop_buckets(table, set()).equals(table)) == (
        {NEXT},
        True,
    )


@given(st.lists(st.integers(0, 3), max_size=12).map(sorted), st.integers(1, 4))
@settings(deadline=None)
def test_the_first_rows_of_each_bucket_are_kept(days: list[int], top: int) -> None:
    """`top` keeps the first rows of each bucket, however many buckets there are."""
    given_rows = [{"timestamp": DAY + timedelta(days=day), "event_count": n} for n, day in enumerate(days)]
    table = rows("event_count", (), *given_rows)
    of_day = [list(members) for _, members in groupby(given_rows, key=lambda row: row["timestamp"])]
    assert shown(table_operations.top_per_bucket(table, top)) == [row for members in of_day for row in members[:top]]
    assert table_operations.largest_bucket_size(table) == max(map(len, of_day), default=0)


def test_rows_whose_counts_are_all_zero_are_dropped() -> None:
    """A row exists if one of its counts is not 0 (Wire 2.10, Row order)."""
    given_rows = [
        {"arpu": None, "user_unique": users, "total_revenue": cents} for users, cents in [(0, 0), (1, 0), (None, 5)]
    ]
    left = table_operations.drop_zero_rows(rows("arpu", (), *given_rows), "arpu")
    assert left["total_revenue"].to_pylist() == [0, 5]


@pytest.mark.parametrize("metric", ["retention_retro", "brand_new"])
def test_rows_without_counts_are_all_kept(metric: str) -> None:
    """Rows of metrics without integer fields are never dropped."""
    assert len(table_operations.drop_zero_rows(rows(metric, (), {}, {}), metric)) == 2


def test_constant_and_looked_up_columns_are_added() -> None:
    """Fixed values fill a column, looked-up values are null for unknown keys."""
    table = rows("event_count", ("game_id",), *({"game_id": game} for game in ("1", "2", None, "3")))
    table = table_operations.add_constant_columns(table, [("platform", "ios"), ("build", None)])
    table = table_operations.add_lookup_column(table, "studio_id", "game_id", {"1": "s1", "2": None}, 1)
    assert table.column_names == ["timestamp", "studio_id", "game_id", "event_count", "platform", "build"]
    assert table["studio_id"].to_pylist() == ["s1", None, None, None]
    assert set(table["platform"].to_pylist() + table["build"].to_pylist()) == {"ios", None}


# The service's order


def expected_order(rows_: list[Row], main: str, dimensions: Sequence[str]) -> list[Row]:
    """Sort rows as the service does: largest first, nulls last (Wire 2.10, Row order)."""

    def key(row: Row) -> Any:
        number = row[main]
        values = [(row[name] is None, list(map(ord, row[name] or ""))) for name in dimensions]
        return row["timestamp"], number is None, -(number or 0), values

    return sorted(rows_, key=key)


ranked = st.fixed_dictionaries(
    {
        "timestamp": st.sampled_from([DAY, NEXT]),
        "platform": st.none() | st.text(max_size=2) | st.sampled_from(["a", "Z", "é", "\uffff", "\U0001f600"]),
        "country_code": st.sampled_from(["DE", "de", None, ""]),
        "arpu": st.none() | st.sampled_from([0.0, -1.0, 2.5]) | st.floats(-10, 10),
    }
)


@given(st.lists(ranked, unique_by=lambda row: (row["timestamp"], row["platform"], row["country_code"])))
@settings(deadline=None)
def test_rows_are_ordered_as_the_service_orders_them(given_rows: list[Row]) -> None:
    """Rows are sorted by bucket, main field and values (Wire 2.10, Row order)."""
    table = sort_as_service(rows("arpu", PAIR, *given_rows), "arpu", PAIR)
    names = ["timestamp", *PAIR, "arpu"]
    assert shown(table.select(names)) == expected_order(given_rows, "arpu", PAIR)


@given(st.lists(ranked, unique_by=lambda row: (row["timestamp"], row["platform"], row["country_code"])))
@settings(deadline=None)
def test_rows_in_another_order_are_sorted(given_rows: list[Row]) -> None:
    """Rows that are largest first are left as they are, any others are ordered as the service orders them."""
    table = sort_by_time(rows("arpu", PAIR, *given_rows))
    names = ["timestamp", *PAIR, "arpu"]
    keys = [(row["timestamp"], row["arpu"] is None, -(row["arpu"] or 0)) for row in shown(table)]
    expected = shown(table.select(names)) if keys == sorted(keys) else expected_order(given_rows, "arpu", PAIR)
    assert shown(sort_largest_first(table, "arpu", PAIR).select(names)) == expected


def test_rows_of_an_unknown_metric_are_ordered_by_their_values() -> None:
    """Rows of a metric the catalog does not know are sorted by their values."""
    table = table_operations.add_constant_columns(rows("brand_new", (), {}, {}), [])
    table = table.append_column("platform", pa.array(["ios", "android"]))
    assert sort_as_service(table, "brand_new", ("platform",))["platform"].to_pylist() == ["android", "ios"]


# Sums


def added(*given_rows: Row, metric: str = "revenue", by: Sequence[str] = (), stamp: datetime | None = DAY) -> list[Row]:
    """Return *given_* rows added up by the dimensions *by*."""
    return shown(sum_split_buckets(METRICS[metric], by, rows(metric, by, *given_rows), stamp))


def test_counts_and_money_are_summed_and_the_mean_computed_again() -> None:
    """Sums add up, and the mean follows from them (Wire 4.14, Adding up)."""
    assert added(money(1, 100), money(3, 700, timestamp=NEXT)) == [{"timestamp": DAY, **money(4, 800)}]


def test_the_mean_of_no_events_is_null() -> None:
    """The mean of 0 events is null (Wire 4.13, Numbers)."""
    assert added(money(0, 0))[0]["mean"] is None


def test_money_is_summed_without_losing_digits() -> None:
    """Ten times 0.10 is exactly 1.0."""
    assert added(*(money(1, 10) for _ in range(10)))[0]["sum"] == 1.0


def test_counts_are_summed_beyond_what_a_float_holds() -> None:
    """Counts are summed as integers beyond 2^53."""
    assert added(money(2**53, 1), money(1, 1))[0]["event_count"] == 2**53 + 1


def test_values_are_added_up_separately() -> None:
    """Each value has its own sum, the largest first (Wire 2.10, Row order)."""
    given_rows = [money(1, 300, platform="ios"), money(1, 100, platform="android"), money(1, 900, platform="android")]
    assert [(row["platform"], row["sum_cents"]) for row in added(*given_rows, by=("platform",))] == [
        ("android", 1000.0),
        ("ios", 300.0),
    ]


def test_null_is_a_value_of_its_own_and_comes_last_among_equals() -> None:
    """Rows with a null value are summed together, and come last among equal sums."""
    given_rows = [money(1, 5, platform=None), money(1, 2, platform="a"), money(1, 3, platform="a")]
    assert [row["platform"] for row in added(*given_rows, by=("platform",))] == ["a", None]


def test_the_word_null_and_the_empty_text_are_not_the_null_value() -> None:
    """Null, "null", "None" and the empty text are four groups."""
    given_rows = [money(1, 1, platform=name) for name in (None, "null", "", "None")]
    assert len(added(*given_rows, by=("platform",))) == 4


def test_buckets_are_added_up_separately() -> None:
    """Without a common timestamp each bucket has its own sum."""
    given_rows = [money(1, 100, timestamp=NEXT), money(1, 200), money(2, 300)]
    assert [(row["timestamp"], row["event_count"]) for row in added(*given_rows, stamp=None)] == [(DAY, 3), (NEXT, 1)]


@pytest.mark.parametrize(
    ("metric", "first", "second", "expected"),
    [
        (
            "arppu",
            {"arppu": 5.0, "paying_users": 2, "total_revenue": 1000},
            {"arppu": 1.0, "paying_users": 6, "total_revenue": 600},
            {"arppu": 2.0, "paying_users": 8, "total_revenue": 1600},
        ),
        (
            "arpu",
            {"arpu": None, "user_unique": 0, "total_revenue": 0},
            {"arpu": 0.25, "user_unique": 4, "total_revenue": 100},
            {"arpu": 0.25, "user_unique": 4, "total_revenue": 100},
        ),
        (
            "conversion",
            {"conversion": 0.5, "paying_users": 1, "user_unique": 2},
            {"conversion": 0.0, "paying_users": 0, "user_unique": 6},
            {"conversion": 0.125, "paying_users": 1, "user_unique": 8},
        ),
        (
            "ad_impressions_per_session",
            {"ad_impressions_count": 3, "ad_impressions_per_session": 3.0, "session_unique": 1},
            {"ad_impressions_count": 1, "ad_impressions_per_session": 0.5, "session_unique": 3},
            {"ad_impressions_count": 4, "ad_impressions_per_session": 1.0, "session_unique": 4},
        ),
    ],
)
def test_a_ratio_is_computed_again_from_its_parts(metric: str, first: Row, second: Row, expected: Row) -> None:
    """A ratio of sums, never a mean of ratios (Wire 4.14, Adding up)."""
    assert added(first, second, metric=metric) == [{"timestamp": DAY, **expected}]


def test_a_field_that_does_not_add_up_is_null() -> None:
    """A field that neither adds up nor follows from sums is null."""
    row = {"session_length": 10.0, "session_unique": 2, "total_session_length": 20}
    assert added(row, row, metric="session_length") == [
        {"timestamp": DAY, "session_length": None, "session_unique": 4, "total_session_length": 40}
    ]


def test_an_unknown_field_is_left_out_of_a_sum() -> None:
    """A field the catalog does not know is dropped when rows are added up."""
    table = with_field("surprise", 3, 4)
    assert shown(sum_split_buckets(METRICS["event_count"], (), table, DAY)) == [{"timestamp": DAY, "event_count": 2}]


def test_many_values_of_many_dimensions_are_told_apart() -> None:
    """2^16 values of four dimensions are 2^64 groups, more than one integer can number."""
    by = ("build", "first_build", "country_code", "installed_on")
    names = pa.array([str(number) for number in range(2**16)])
    table = pa.table({"timestamp": pa.array([DAY] * len(names), TIMESTAMP_TYPE), **dict.fromkeys(by, names)})
    table = table.append_column("event_count", pa.array([1] * len(names)))
    later = table.slice(0, 1).set_column(0, "timestamp", pa.array([NEXT], TIMESTAMP_TYPE))
    assert len(sum_split_buckets(METRICS["event_count"], by, pa.concat_tables([table, later]), None)) == 2**16 + 1


def test_no_rows_add_up_to_no_rows() -> None:
    """Adding up a table without rows gives no rows."""
    assert added(by=PAIR) == []


amounts = st.tuples(
    st.sampled_from([DAY, NEXT]),
    st.sampled_from(["ios", None, ""]),
    st.sampled_from(["DE", None]),
    st.integers(0, 2**40),
    st.floats(-1e15, 1e15),
)


def paid(given_rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Return rows of revenue by country and platform."""
    names = ("timestamp", *PAIR, "event_count", "sum")
    return [dict(zip(names, row, strict=True)) | {"sum_cents": row[-1] * 100} for row in given_rows]


@given(st.lists(amounts, max_size=20), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_rows_does_not_matter(given_rows: list[tuple[Any, ...]], chance: Random) -> None:
    """Sums are exactly equal, whatever the order of the rows."""
    shuffled = chance.sample(given_rows, len(given_rows))
    assert added(*paid(given_rows), by=PAIR, stamp=None) == added(*paid(shuffled), by=PAIR, stamp=None)


@given(st.lists(amounts, max_size=20))
@settings(deadline=None)
def test_every_group_has_the_exact_sum_of_its_rows(given_rows: list[tuple[Any, ...]]) -> None:
    """The count of each group is the sum of its rows."""
    expected: dict[tuple[Any, ...], int] = {}
    for *key, count, _ in given_rows:
        expected[tuple(key)] = expected.get(tuple(key), 0) + count
    result = added(*paid(given_rows), by=PAIR, stamp=None)
    assert {(row["timestamp"], row["platform"], row["country_code"]): row["event_count"] for row in result} == expected
    assert len(result) == len(expected)


# Remainders


def other_of(total: Sequence[Row], shown_: Sequence[Row], metric: str = "revenue") -> list[Row]:
    """Return the `(other)` rows of a total and the rows shown."""
    tables_ = rows(metric, (), *total), rows(metric, ("platform",), *shown_)
    return shown(other_rows(METRICS[metric], ("platform",), *tables_))


def test_the_remainder_is_called_other() -> None:
    """The total less the rows shown is a row with "(other)" in the dimension."""
    (row,) = other_of([money(5, 1000)], [money(2, 600, platform="ios")])
    assert row == {"timestamp": DAY, **money(3, 400, platform="(other)")}


def test_no_remainder_is_no_row() -> None:
    """If the rows shown make up the total, there is no `(other)` row."""
    assert other_of([money(5, 1000)], [money(2, 600, platform="ios"), money(3, 400, platform=None)]) == []


def test_a_remainder_of_money_alone_is_a_row() -> None:
    """Money that remains without events is an `(other)` row with count 0."""
    (row,) = other_of([money(5, 1000)], [money(5, 600, platform="ios")])
    assert (row["event_count"], row["sum_cents"], row["mean"]) == (0, 400.0, None)


def test_a_remainder_of_float_noise_is_no_row() -> None:
    """A difference in the last digits of a sum is no `(other)` row."""
    shown_ = [{"platform": name, "event_count": 1, "sum": 0.1, "sum_cents": 10.0} for name in ("a", "b", "c")]
    assert other_of([{"event_count": 3, "sum": 0.30000000000000004, "sum_cents": 30.000000000000004}], shown_) == []


@pytest.mark.parametrize(("cents", "rows_"), [(1000, 0), (1001, 0), (1002, 1)])
def test_a_remainder_of_rounded_cents_is_no_row(cents: int, rows_: int) -> None:
    """total_revenue is rounded once per row, here in three (Wire 4.13, Numbers)."""
    shown_ = [{"platform": name, "user_unique": 2, "total_revenue": 500} for name in ("a", "b")]
    assert len(other_of([{"user_unique": 4, "total_revenue": cents}], shown_, "arpu")) == rows_


def test_a_bucket_without_shown_rows_is_all_other() -> None:
    """A bucket without shown rows is one `(other)` row with its total."""
    left = other_of([money(5, 1000), money(1, 100, timestamp=NEXT)], [money(5, 1000, platform="ios")])
    assert left == [{"timestamp": NEXT, **money(1, 100, platform="(other)")}]


def test_rows_beyond_the_total_are_a_negative_remainder() -> None:
    """Rows that the total does not contain give a negative `(other)`."""
    assert other_of([], [{"platform": "ios", "event_count": 2}], "event_count")[0]["event_count"] == -2


pieces_of_money = st.lists(
    st.tuples(
        st.sampled_from([DAY, NEXT]),
        st.sampled_from(["ios", "android", None]),
        st.integers(1, 50),
        st.integers(0, 10**9),
    ),
    unique_by=lambda row: row[:2],
)


@given(pieces_of_money, st.integers(0, 6))
@settings(deadline=None)
def test_the_total_is_the_sum_of_shown_rows_and_other(
    given_rows: list[tuple[datetime, str | None, int, int]], top: int
) -> None:
    """Shown rows and `(other)` add up to the total in every bucket."""
    result = [money(count, cents, timestamp=stamp, platform=platform) for stamp, platform, count, cents in given_rows]
    all_rows = rows("revenue", ("platform",), *result)
    total = sum_split_buckets(METRICS["revenue"], (), all_rows, None)
    shown_rows = all_rows.slice(0, top)
    left = other_rows(METRICS["revenue"], ("platform",), total, shown_rows)
    again = sum_split_buckets(
        METRICS["revenue"], (), table_operations.concatenate([shown_rows, left], all_rows.schema), None
    )
    for name in ("timestamp", "event_count", "sum_cents"):
        assert again[name].to_pylist() == total[name].to_pylist()
    for name in ("sum", "mean"):
        assert again[name].to_pylist() == pytest.approx(total[name].to_pylist())
    assert table_operations.bucket_starts(left) == {stamp for stamp, *_ in given_rows[top:]}


# Joins


USERS = [{"platform": "ios", "user_unique": 7}]
