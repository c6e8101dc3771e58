"""Tables put together, added up, joined, cut to the largest, in the service's order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.catalog import METRICS
from gamelens.client.tables import table_operations
from gamelens.client.tables.table_operations import join_metrics, other_rows, sort_as_service, sum_split_buckets
from gamelens.client.tables.table_schema import TIMESTAMP_TYPE, schema
from gamelens.errors import ServiceError

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
PAIR = ("platform", "country_code")

Row = dict[str, Any]


def shown(table: pa.Table) -> list[Row]:
    return table.to_pylist()  # type: ignore[no-any-return]


def rows(metric: str, dimensions: Sequence[str], *given: Row) -> pa.Table:
    """A table of rows that are known."""
    return table_operations.from_rows(({"timestamp": DAY} | row for row in given), schema(metric, dimensions))


def with_field(name: str, *values: Any) -> pa.Table:
    """Rows of event_count that came with a field nobody knows."""
    table = rows("event_count", (), *({"event_count": 1} for _ in values))
    return table.append_column(name, pa.array(values))


def money(count: int, cents: int, **more: Any) -> Row:
    """A row as the service makes it."""
    mean = cents / 100 / count if count else None
    return {**more, "event_count": count, "mean": mean, "sum": cents / 100, "sum_cents": float(cents)}


# Put together


def test_pieces_follow_each_other_with_all_their_columns() -> None:
    pieces = [rows("event_count", (), {"event_count": 3}), with_field("x", 7)]
    table = table_operations.concatenate(pieces, schema("event_count", ()))
    assert (table["event_count"].to_pylist(), table["x"].to_pylist()) == ([3, 1], [None, 7])


@pytest.mark.parametrize(
    ("first", "second", "whole_"),
    [
        (1, 2.5, [1.0, 2.5]),
        (None, "a", [None, "a"]),
        (1, "a", ["1", "a"]),
        (True, 7, ["true", "7"]),
    ],
)
def test_a_field_of_another_kind_in_the_next_piece_is_put_together(first: Any, second: Any, whole_: list[Any]) -> None:
    pieces = [with_field("x", value) for value in (first, second)]
    assert table_operations.concatenate(pieces, schema("event_count", ()))["x"].to_pylist() == whole_


def test_nothing_put_together_has_the_known_columns() -> None:
    assert table_operations.concatenate([], schema("revenue", PAIR)).schema == schema("revenue", PAIR)


def test_rows_of_a_bucket_keep_their_order_in_time() -> None:
    pieces = [
        rows("event_count", (), {"event_count": n, "timestamp": stamp}) for n, stamp in enumerate([NEXT, DAY, NEXT])
    ]
    table = table_operations.sort_by_time(table_operations.concatenate(pieces, schema("event_count", ())))
    assert table["event_count"].to_pylist() == [1, 0, 2]


def test_without_some_buckets_the_others_are_left() -> None:
    table = rows("event_count", (), {"event_count": 1}, {"event_count": 2, "timestamp": NEXT})
    left = table_operations.drop_buckets(table, {DAY})
    assert (table_operations.bucket_starts(left), table_operations.drop_buckets(table, set()).equals(table)) == (
        {NEXT},
        True,
    )


@given(st.lists(st.integers(0, 3), max_size=12).map(sorted), st.integers(1, 4))
@settings(deadline=None)
def test_the_first_rows_of_each_bucket_are_kept(days: list[int], top: int) -> None:
    given_ = [{"timestamp": DAY + timedelta(days=day), "event_count": n} for n, day in enumerate(days)]
    table = rows("event_count", (), *given_)
    of_day = [list(members) for _, members in groupby(given_, key=lambda row: row["timestamp"])]
    assert shown(table_operations.top_per_bucket(table, top)) == [row for members in of_day for row in members[:top]]
    assert table_operations.largest_bucket_size(table) == max(map(len, of_day), default=0)


def test_rows_of_which_no_count_is_anything_are_left_out() -> None:
    """design/metrics, Metrics: a row exists when at least one of its integer fields is not 0."""
    given_ = [
        {"arpu": None, "user_unique": users, "total_revenue": cents} for users, cents in [(0, 0), (1, 0), (None, 5)]
    ]
    left = table_operations.drop_zero_rows(rows("arpu", (), *given_), "arpu")
    assert left["total_revenue"].to_pylist() == [0, 5]


@pytest.mark.parametrize("metric", ["retention_retro", "brand_new"])
def test_rows_without_counts_are_all_kept(metric: str) -> None:
    assert len(table_operations.drop_zero_rows(rows(metric, (), {}, {}), metric)) == 2


def test_constants_and_what_is_looked_up_stand_beside_the_rows() -> None:
    table = rows("event_count", ("game_id",), *({"game_id": game} for game in ("1", "2", None, "3")))
    table = table_operations.add_constant_columns(table, [("platform", "ios"), ("build", None)])
    table = table_operations.add_lookup_column(table, "studio_id", "game_id", {"1": "s1", "2": None}, 1)
    assert table.column_names == ["timestamp", "studio_id", "game_id", "event_count", "platform", "build"]
    assert table["studio_id"].to_pylist() == ["s1", None, None, None]
    assert set(table["platform"].to_pylist() + table["build"].to_pylist()) == {"ios", None}


# The service's order


def in_order(rows_: list[Row], main: str, dimensions: Sequence[str]) -> list[Row]:
    """design/metrics: the metric's own field, highest first, nulls last; ties by value in code points, null last."""

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
def test_rows_are_ordered_as_the_service_orders_them(given_: list[Row]) -> None:
    """Metrics, Result shapes 1."""
    table = sort_as_service(rows("arpu", PAIR, *given_), "arpu", PAIR)
    names = ["timestamp", *PAIR, "arpu"]
    assert shown(table.select(names)) == in_order(given_, "arpu", PAIR)


def test_rows_of_an_unknown_metric_are_ordered_by_their_values() -> None:
    table = table_operations.add_constant_columns(rows("brand_new", (), {}, {}), [])
    table = table.append_column("platform", pa.array(["ios", "android"]))
    assert sort_as_service(table, "brand_new", ("platform",))["platform"].to_pylist() == ["android", "ios"]


# Added up


def added(*given_: Row, metric: str = "revenue", by: Sequence[str] = (), stamp: datetime | None = DAY) -> list[Row]:
    return shown(sum_split_buckets(METRICS[metric], by, rows(metric, by, *given_), stamp))


def test_counts_and_money_are_summed_and_the_mean_is_made_again() -> None:
    assert added(money(1, 100), money(3, 700, timestamp=NEXT)) == [{"timestamp": DAY, **money(4, 800)}]


def test_the_mean_of_nothing_is_null() -> None:
    assert added(money(0, 0))[0]["mean"] is None


def test_money_is_summed_without_losing_digits() -> None:
    assert added(*(money(1, 10) for _ in range(10)))[0]["sum"] == 1.0


def test_counts_are_summed_beyond_what_a_float_holds() -> None:
    assert added(money(2**53, 1), money(1, 1))[0]["event_count"] == 2**53 + 1


def test_values_are_added_apart_and_the_largest_come_first() -> None:
    """Metrics, Result shapes 1."""
    given_ = [money(1, 300, platform="ios"), money(1, 100, platform="android"), money(1, 900, platform="android")]
    assert [(row["platform"], row["sum_cents"]) for row in added(*given_, by=("platform",))] == [
        ("android", 1000.0),
        ("ios", 300.0),
    ]


def test_null_is_a_value_of_its_own_and_comes_last_among_equals() -> None:
    given_ = [money(1, 5, platform=None), money(1, 2, platform="a"), money(1, 3, platform="a")]
    assert [row["platform"] for row in added(*given_, by=("platform",))] == ["a", None]


def test_the_word_null_and_the_empty_text_are_not_the_null_value() -> None:
    given_ = [money(1, 1, platform=name) for name in (None, "null", "", "None")]
    assert len(added(*given_, by=("platform",))) == 4


def test_buckets_are_added_apart_where_none_is_the_whole() -> None:
    given_ = [money(1, 100, timestamp=NEXT), money(1, 200), money(2, 300)]
    assert [(row["timestamp"], row["event_count"]) for row in added(*given_, stamp=None)] == [(DAY, 3), (NEXT, 1)]


@pytest.mark.parametrize(
    ("metric", "first", "second", "whole_"),
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
def test_a_quotient_is_made_again_from_its_parts(metric: str, first: Row, second: Row, whole_: Row) -> None:
    assert added(first, second, metric=metric) == [{"timestamp": DAY, **whole_}]


def test_what_cannot_be_added_is_null() -> None:
    row = {"session_length": 10.0, "session_unique": 2, "total_session_length": 20}
    assert added(row, row, metric="session_length") == [
        {"timestamp": DAY, "session_length": None, "session_unique": 4, "total_session_length": 40}
    ]


def test_a_field_nobody_knows_is_left_out_of_a_sum() -> None:
    table = with_field("surprise", 3, 4)
    assert shown(sum_split_buckets(METRICS["event_count"], (), table, DAY)) == [{"timestamp": DAY, "event_count": 2}]


def test_many_values_of_many_dimensions_are_told_apart() -> None:
    """2^16 values of four dimensions are 2^64 groups, more than one number can count."""
    by = ("build", "first_build", "country_code", "installed_on")
    names = pa.array([str(number) for number in range(2**16)])
    table = pa.table({"timestamp": pa.array([DAY] * len(names), TIMESTAMP_TYPE), **dict.fromkeys(by, names)})
    table = table.append_column("event_count", pa.array([1] * len(names)))
    later = table.slice(0, 1).set_column(0, "timestamp", pa.array([NEXT], TIMESTAMP_TYPE))
    assert len(sum_split_buckets(METRICS["event_count"], by, pa.concat_tables([table, later]), None)) == 2**16 + 1


def test_nothing_adds_up_to_nothing() -> None:
    assert added(by=PAIR) == []


amounts = st.tuples(
    st.sampled_from([DAY, NEXT]),
    st.sampled_from(["ios", None, ""]),
    st.sampled_from(["DE", None]),
    st.integers(0, 2**40),
    st.floats(-1e15, 1e15),
)


def paid(given_: Sequence[tuple[Any, ...]]) -> list[Row]:
    names = ("timestamp", *PAIR, "event_count", "sum")
    return [dict(zip(names, row, strict=True)) | {"sum_cents": row[-1] * 100} for row in given_]


@given(st.lists(amounts, max_size=20), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_pieces_does_not_matter(given_: list[tuple[Any, ...]], chance: Any) -> None:
    shuffled = chance.sample(given_, len(given_))
    assert added(*paid(given_), by=PAIR, stamp=None) == added(*paid(shuffled), by=PAIR, stamp=None)


@given(st.lists(amounts, max_size=20))
@settings(deadline=None)
def test_every_group_has_the_exact_sum_of_its_rows(given_: list[tuple[Any, ...]]) -> None:
    expected: dict[tuple[Any, ...], int] = {}
    for *key, count, _ in given_:
        expected[tuple(key)] = expected.get(tuple(key), 0) + count
    made = added(*paid(given_), by=PAIR, stamp=None)
    assert {(row["timestamp"], row["platform"], row["country_code"]): row["event_count"] for row in made} == expected
    assert len(made) == len(expected)


# What is left


def rest(total: Sequence[Row], shown_: Sequence[Row], metric: str = "revenue") -> list[Row]:
    tables_ = rows(metric, (), *total), rows(metric, ("platform",), *shown_)
    return shown(other_rows(METRICS[metric], ("platform",), *tables_))


def test_what_is_not_shown_is_called_other() -> None:
    (row,) = rest([money(5, 1000)], [money(2, 600, platform="ios")])
    assert row == {"timestamp": DAY, **money(3, 400, platform="(other)")}


def test_where_nothing_is_left_there_is_no_row() -> None:
    assert rest([money(5, 1000)], [money(2, 600, platform="ios"), money(3, 400, platform=None)]) == []


def test_money_that_is_left_without_a_count_is_a_row() -> None:
    (row,) = rest([money(5, 1000)], [money(5, 600, platform="ios")])
    assert (row["event_count"], row["sum_cents"], row["mean"]) == (0, 400.0, None)


def test_the_last_digits_of_a_sum_are_nothing() -> None:
    shown_ = [{"platform": name, "event_count": 1, "sum": 0.1, "sum_cents": 10.0} for name in ("a", "b", "c")]
    assert rest([{"event_count": 3, "sum": 0.30000000000000004, "sum_cents": 30.000000000000004}], shown_) == []


@pytest.mark.parametrize(("cents", "rows_"), [(1000, 0), (1001, 0), (1002, 1)])
def test_cents_that_are_rounded_in_each_row_are_nothing(cents: int, rows_: int) -> None:
    """design/metrics, Metrics: total_revenue is rounded once, after summing; here in three rows."""
    shown_ = [{"platform": name, "user_unique": 2, "total_revenue": 500} for name in ("a", "b")]
    assert len(rest([{"user_unique": 4, "total_revenue": cents}], shown_, "arpu")) == rows_


def test_a_bucket_of_which_nothing_is_shown_is_all_other() -> None:
    left = rest([money(5, 1000), money(1, 100, timestamp=NEXT)], [money(5, 1000, platform="ios")])
    assert left == [{"timestamp": NEXT, **money(1, 100, platform="(other)")}]


def test_what_is_shown_and_not_in_the_total_is_told_as_too_much() -> None:
    assert rest([], [{"platform": "ios", "event_count": 2}], "event_count")[0]["event_count"] == -2


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
def test_a_total_is_what_is_shown_and_the_other(given_: list[Any], top: int) -> None:
    made = [money(count, cents, timestamp=stamp, platform=platform) for stamp, platform, count, cents in given_]
    every = rows("revenue", ("platform",), *made)
    total = sum_split_buckets(METRICS["revenue"], (), every, None)
    some = every.slice(0, top)
    left = other_rows(METRICS["revenue"], ("platform",), total, some)
    again = sum_split_buckets(METRICS["revenue"], (), table_operations.concatenate([some, left], every.schema), None)
    for name in ("timestamp", "event_count", "sum_cents"):
        assert again[name].to_pylist() == total[name].to_pylist()
    for name in ("sum", "mean"):
        assert again[name].to_pylist() == pytest.approx(total[name].to_pylist())
    assert table_operations.bucket_starts(left) == {stamp for stamp, *_ in given_[top:]}


# Side by side


USERS = [{"platform": "ios", "user_unique": 7}]


def test_metrics_meet_on_timestamp_and_dimensions() -> None:
    made = join_metrics(
        ("platform",),
        [
            rows("user_unique", ("platform",), *USERS),
            rows("new_users", ("platform",), {"platform": "ios", "new_users": 2}),
        ],
    )
    assert shown(made) == [{"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": 2}]


def test_a_row_only_one_metric_has_is_kept() -> None:
    installs = {"timestamp": NEXT, "platform": None, "new_users": 2}
    made = join_metrics(
        ("platform",), [rows("user_unique", ("platform",), *USERS), rows("new_users", ("platform",), installs)]
    )
    assert shown(made) == [
        {"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": None},
        {"timestamp": NEXT, "platform": None, "user_unique": None, "new_users": 2},
    ]


def test_null_meets_null() -> None:
    left = rows("user_unique", PAIR, {"platform": None, "country_code": "DE", "user_unique": 7})
    right = rows("new_users", PAIR, {"platform": None, "country_code": "DE", "new_users": 2})
    assert len(join_metrics(PAIR, [left, right])) == 1


def test_rows_come_in_time_and_in_a_bucket_as_they_first_came() -> None:
    by = ("platform",)
    left = rows("user_unique", by, {"timestamp": NEXT, "platform": "a"}, {"platform": "b"}, {"platform": "a"})
    right = rows("new_users", by, {"platform": "c"}, {"platform": "a"}, {"timestamp": NEXT, "platform": "b"})
    keys = [(row["timestamp"], row["platform"]) for row in shown(join_metrics(by, [left, right]))]
    assert keys == [(DAY, "b"), (DAY, "a"), (DAY, "c"), (NEXT, "a"), (NEXT, "b")]


@pytest.mark.parametrize("name", ["ios", None])
def test_two_rows_of_the_same_bucket_and_values_are_refused(name: str | None) -> None:
    twice = rows("user_unique", ("platform",), {"platform": name}, {"platform": name})
    with pytest.raises(ServiceError, match="two rows of the same bucket and values"):
        join_metrics(("platform",), [rows("new_users", ("platform",), *USERS), twice])


def test_three_metrics_stand_side_by_side() -> None:
    names = ("user_unique", "new_users", "event_count")
    made = join_metrics((), [rows(name, (), {name: place}) for place, name in enumerate(names)])
    assert shown(made) == [{"timestamp": DAY, "user_unique": 0, "new_users": 1, "event_count": 2}]
