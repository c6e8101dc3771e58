"""Answers as tables: read from JSON, put together, added up, joined, cut to the largest (Metrics, Result shapes)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.catalog import METRICS
from gamelens.client import tables
from gamelens.client.tables import STAMP, add_up, join, largest_first, read_answer, remainder, schema
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries
from gamelens.wire.results import Rows, encode_answer

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
SERIES = MetricQuery(interval=WEEK, query=Timeseries())
GROUP = MetricQuery(interval=WEEK, query=Group("platform"))
SPLIT = MetricQuery(interval=WEEK, query=Split(("platform", "country_code")))
BY_GAME = MetricQuery(interval=WEEK, split_by="platform")
PAIR = ("platform", "country_code")

Row = dict[str, Any]


def shown(table: pa.Table) -> list[Row]:
    return table.to_pylist()  # type: ignore[no-any-return]


def series(*rows: Row, metric: str = "revenue", stamp: str = "2026-11-01T00:00:00.000Z") -> pa.Table:
    """Read as the answer to a timeseries."""
    body = {"result": [{"result": row, "timestamp": stamp} for row in rows]}
    return read_answer(metric, SERIES, (), json.dumps(body).encode())


def group(*rows: Row, metric: str = "event_count", by: str = "platform") -> pa.Table:
    """Read as the answer to a group query of one bucket."""
    body = {"result": [{"result": rows, "timestamp": "2026-11-01T00:00:00.000Z"}]}
    query = MetricQuery(interval=WEEK, query=Group(by))
    return read_answer(metric, query, (by,), json.dumps(body).encode())


def rows(metric: str, dimensions: Sequence[str], *given: Row) -> pa.Table:
    """A table of rows that are known."""
    return tables.from_rows(({"timestamp": DAY} | row for row in given), schema(metric, dimensions))


def money(count: int, cents: int, **more: Any) -> Row:
    """A row as the service makes it."""
    mean = cents / 100 / count if count else None
    return {**more, "event_count": count, "mean": mean, "sum": cents / 100, "sum_cents": float(cents)}


# The four shapes


def test_a_group_is_a_row_for_each_value_and_bucket() -> None:
    """Metrics, Result shapes 1."""
    body = b"""{"result": [
        {"result": [{"platform": "ios", "event_count": 7}, {"platform": null, "event_count": 2}],
         "timestamp": "2026-11-01T00:00:00.000Z"},
        {"result": [], "timestamp": "2026-11-02T00:00:00.000Z"},
        {"result": [{"event_count": 1, "platform": "NA"}], "timestamp": "2026-11-03T00:00:00.000Z"}]}"""
    assert shown(read_answer("event_count", GROUP, ("platform",), body)) == [
        {"timestamp": DAY, "platform": "ios", "event_count": 7},
        {"timestamp": DAY, "platform": None, "event_count": 2},
        {"timestamp": DAY + timedelta(days=2), "platform": "NA", "event_count": 1},
    ]


def test_a_split_is_a_row_for_each_pair() -> None:
    """Metrics, Result shapes 2."""
    body = b"""{"result": [
        {"event": {"platform": "ios", "country_code": "DE", "event_count": 7},
         "timestamp": "2026-11-01T00:00:00.000Z", "version": "v1"},
        {"event": {"country_code": null, "platform": "ios", "event_count": 2},
         "timestamp": "2026-11-02T00:00:00.000Z", "version": "v1"}]}"""
    assert shown(read_answer("event_count", SPLIT, PAIR, body)) == [
        {"timestamp": DAY, "platform": "ios", "country_code": "DE", "event_count": 7},
        {"timestamp": NEXT, "platform": "ios", "country_code": None, "event_count": 2},
    ]


def test_a_timeseries_is_a_row_for_each_bucket() -> None:
    """Metrics, Result shapes 3."""
    body = b"""{"result": [
        {"result": {"event_count": 3, "mean": 0.5, "sum": 1.5, "sum_cents": 150.0},
         "timestamp": "2026-11-01T00:00:00.000Z"},
        {"result": {"event_count": 0, "mean": null, "sum": 0.0, "sum_cents": 0.0},
         "timestamp": "2026-11-02T00:00:00.000Z"}]}"""
    assert shown(read_answer("revenue", SERIES, (), body)) == [
        {"timestamp": DAY, "event_count": 3, "mean": 0.5, "sum": 1.5, "sum_cents": 150.0},
        {"timestamp": NEXT, "event_count": 0, "mean": None, "sum": 0.0, "sum_cents": 0.0},
    ]


def test_a_by_game_answer_carries_the_game_beside_the_split() -> None:
    """Metrics, Result shapes 5."""
    body = b"""{"result": [{"result": {"platform": "ios", "game_id": "1001", "retention": 0.25},
        "timestamp": "2026-11-01T00:00:00Z"}]}"""
    assert shown(read_answer("retention_retro", BY_GAME, ("platform", "game_id"), body)) == [
        {"timestamp": DAY, "platform": "ios", "game_id": "1001", "retention": 0.25}
    ]


def test_an_answer_of_nothing_has_all_its_columns() -> None:
    table = read_answer("revenue", SPLIT, PAIR, b'{"result": []}')
    assert table.schema == schema("revenue", PAIR)


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        ("2026-11-01T00:00:00.000Z", DAY),
        ("2026-11-01T00:00:00Z", DAY),
        ("2026-11-01T00:00:00", DAY),
        ("2026-11-01T02:00:00+02:00", DAY),
        ("2026-11-01T00:00:00.123Z", DAY + timedelta(milliseconds=123)),
        ("2026-11-01T00:00:00.123456", DAY + timedelta(microseconds=123_456)),
        ("2400-01-01T00:00:00.000001Z", datetime(2400, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_timestamps_are_utc_to_the_microsecond(stamp: str, moment: datetime, more: Row) -> None:
    """Metrics, Result shapes 4; public-facts 3.7: with milliseconds or without."""
    assert series({"event_count": 1, **more}, stamp=stamp)["timestamp"].to_pylist() == [moment]


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-11-01", "2026-13-01T00:00:00Z", "2026-11-01T00:00:00Z\x00"])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_what_is_no_timestamp_is_a_service_error(stamp: str, more: Row) -> None:
    with pytest.raises(ServiceError, match="not the promised JSON"):
        series({"event_count": 1, **more}, stamp=stamp)


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_timestamp_beyond_the_calendar_is_a_service_error(stamp: str) -> None:
    with pytest.raises(ServiceError, match="is no timestamp"):
        series({"event_count": 1}, stamp=stamp)


@pytest.mark.parametrize("count", [0, 2**53 + 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_counts_keep_every_digit(count: int, more: Row) -> None:
    assert series({"event_count": count, **more})["event_count"].to_pylist() == [count]


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1, 2**64, 10**400, 1.5, 1e300, "many", "7", [1], {}, True])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_count_that_is_none_is_a_service_error(count: Any, more: Row) -> None:
    with pytest.raises(ServiceError, match="event_count holds what is no count"):
        series({"event_count": count, **more})


@pytest.mark.parametrize("number", ["1.5", "", [1.0], {}, True, 10**400])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_number_that_is_none_is_a_service_error(number: Any, more: Row) -> None:
    with pytest.raises(ServiceError, match="sum holds what is no number"):
        series({"sum": number, **more})


@pytest.mark.parametrize("value", [1, 1.5, False, ["ios"], {"name": "ios"}])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_dimension_that_is_no_text_is_a_service_error(value: Any, more: Row) -> None:
    with pytest.raises(ServiceError, match="platform holds what is no dimension"):
        group({"platform": value, "event_count": 1, **more})


@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_whole_numbers_may_come_with_or_without_a_point(more: Row) -> None:
    (row,) = shown(series({"event_count": 3.0, "mean": 1, "sum": 3, "sum_cents": 300, **more}))
    kinds = {name: type(value) for name, value in row.items() if name in schema("revenue", ()).names[1:]}
    assert kinds == {"event_count": int, "mean": float, "sum": float, "sum_cents": float}


@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_field_that_is_not_there_is_null(more: Row) -> None:
    (row,) = shown(group({"event_count": 1, **more}, metric="revenue"))
    assert (row["platform"], row["mean"], row["event_count"]) == (None, None, 1)


# What nobody announced


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, None], pa.int64()),
        ([1, 2.5], pa.float64()),
        (["NA", None], pa.string()),
        ([True, None], pa.bool_()),
        ([None, None], pa.null()),
    ],
)
def test_an_unknown_field_is_typed_as_it_comes(values: list[Any], type_: pa.DataType) -> None:
    column = series(*({"event_count": 1, "surprise": value} for value in values))["surprise"]
    assert (column.type, column.to_pylist()) == (type_, values)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, "a"], ["1", "a"]),
        ([{"a": 1}, {"b": [2]}, None], ['{"a":1}', '{"b":[2]}', None]),
        ([[1], []], ["[1]", "[]"]),
        ([2**63, 1], ["9223372036854775808", "1"]),
    ],
)
def test_what_fits_no_column_is_text(values: list[Any], texts: list[Any]) -> None:
    assert series(*({"surprise": value} for value in values))["surprise"].to_pylist() == texts


def test_unknown_fields_come_after_the_known_ones_and_null_where_they_are_not() -> None:
    table = series({"zest": 1, "event_count": 1}, {"event_count": 2, "alpha": "a"}, metric="event_count")
    assert table.column_names == ["timestamp", "event_count", "zest", "alpha"]
    assert table["alpha"].to_pylist() == [None, "a"]


def test_fields_of_an_unknown_metric_are_typed_as_they_come() -> None:
    table = series({"brand_new": 7, "share": 0.5}, metric="brand_new")
    assert table.schema.types == [STAMP, pa.int64(), pa.float64()]


def test_a_row_cannot_move_its_bucket() -> None:
    (row,) = shown(series({"event_count": 1, "timestamp": "1999-01-01T00:00:00Z"}, metric="event_count"))
    assert row == {"timestamp": DAY, "event_count": 1}


@pytest.mark.parametrize("name", ["f0", "class", "result", "event", "", 'say "ios"', "zwei\nZeilen", "länder", "a\\b"])
def test_a_dimension_may_be_called_anything(name: str) -> None:
    assert shown(group({name: "x", "event_count": 1}, by=name)) == [{"timestamp": DAY, name: "x", "event_count": 1}]


def test_a_dimension_called_like_a_field_has_its_place() -> None:
    """A JSON object has one place for each name."""
    (row,) = shown(group({"sum": "x", "event_count": 1}, metric="revenue", by="sum"))
    assert (row["sum"], row["event_count"]) == ("x", 1)


texts = st.none() | st.text(max_size=4) | st.sampled_from(["NA", "null", "ios"])
whole = st.integers(-(2**63), 2**63 - 1)
numbers = st.none() | whole | st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | whole | st.integers(-(2**53), 2**53).map(float)
revenue = st.fixed_dictionaries(
    {}, optional={name: texts for name in PAIR} | {"event_count": counts} | dict.fromkeys(["mean", "sum"], numbers)
)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
buckets = st.lists(st.tuples(moments, st.lists(revenue, max_size=4)), max_size=4)


@given(buckets, st.sampled_from([SERIES, GROUP, SPLIT, BY_GAME]))
def test_the_slower_way_says_the_same(given_: list[tuple[datetime, list[Row]]], query: MetricQuery) -> None:
    """The way for fields that nobody announced reads what was announced as the fast one does."""
    body = encode_answer(query, (Rows(stamp, given_rows) for stamp, given_rows in given_))
    known = schema("revenue", PAIR)
    assert read_answer("revenue", query, PAIR, body).equals(tables._as_it_comes(query, known, body))


# What is no answer


DEEP = b"[" * 100_000
STARTS = b'{"result":[{"timestamp":"2026-11-01T00:00:00Z","result":'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b"<html>busy</html>",
        b'{"result": 7}',
        b'{"result": null}',
        b'{"result": [null]}',
        b'{"result": [{}]}',
        b'{"results": []}',
        b'{"result": []',
        b'{"result": []} ,',
        b'{"result": []}{"result": []}',
        b'\xff\xfe{"result": []}',
        STARTS + b"null}]}",
        STARTS + b"[[]]}]}",
        STARTS + b'{"event_count":NaN}}]}',
        STARTS + b'{"event_count":1e999}}]}',
        STARTS + b'{"event_count":' + b"9" * 5000 + b"}}]}",
        STARTS + b'{"event_count":1,"surprise":"\\ud800"}}]}',
        STARTS + b'{"event_count":1,"surprise":"\xed\xa0\x80"}}]}',
        STARTS + b'{"event_count":1,"surprise":' + DEEP,
        b'{"surprise":' + DEEP,
        b'{"result":' + DEEP,
        DEEP,
    ],
    ids=lambda body: body[-30:].decode(errors="replace"),
)
def test_what_is_not_the_promised_json_is_a_service_error(body: bytes) -> None:
    with pytest.raises(ServiceError, match="not the promised JSON"):
        read_answer("event_count", SERIES, (), body)


@pytest.mark.parametrize(("query", "other"), [(GROUP, SPLIT), (GROUP, SERIES), (SPLIT, GROUP), (SERIES, SPLIT)])
def test_another_shape_than_was_asked_for_is_a_service_error(query: MetricQuery, other: MetricQuery) -> None:
    body = encode_answer(other, [Rows(DAY, [{"platform": "ios", "country_code": "DE", "event_count": 1}])])
    with pytest.raises(ServiceError):
        read_answer("event_count", query, PAIR, body)


ANSWERS = {
    query: encode_answer(query, [Rows(DAY, [money(3, 700, platform="iös", country_code=None)] * 2), Rows(NEXT, [])])
    for query in (SERIES, GROUP, SPLIT, BY_GAME)
}
changes = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.integers(0, 8), st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"-", b"9"])
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(list(ANSWERS)), changes)
@settings(max_examples=500)
def test_a_damaged_answer_is_a_service_error_or_an_answer(query: MetricQuery, damage: list[Any]) -> None:
    body = ANSWERS[query]
    for place, length, put in damage:
        place %= len(body) + 1
        body = body[:place] + put + body[place + length :]
    try:
        table = read_answer("revenue", query, PAIR, body)
    except ServiceError:
        return
    assert table.schema.names[:3] == ["timestamp", *PAIR]
    assert len(tables.in_time(table).to_pylist()) == len(table)  # every timestamp can be shown


# Put together


def test_pieces_follow_each_other_with_all_their_columns() -> None:
    first, second = series({"event_count": 1}, metric="event_count"), series({"event_count": 2, "x": 1})
    table = tables.together([first, second.select(["timestamp", "event_count", "x"])], schema("event_count", ()))
    assert (table["event_count"].to_pylist(), table["x"].to_pylist()) == ([1, 2], [None, 1])


@pytest.mark.parametrize(
    ("first", "second", "whole_"),
    [
        (1, 2.5, [1.0, 2.5]),
        (None, "a", [None, "a"]),
        (1, "a", ["1", "a"]),
        (True, 7, ["true", "7"]),
        ([1], 7, ["[1]", "7"]),
    ],
)
def test_a_field_of_another_kind_in_the_next_piece_is_put_together(first: Any, second: Any, whole_: list[Any]) -> None:
    pieces = [series({"event_count": 1, "x": value}, metric="event_count") for value in (first, second)]
    assert tables.together(pieces, schema("event_count", ()))["x"].to_pylist() == whole_


def test_nothing_put_together_has_the_known_columns() -> None:
    assert tables.together([], schema("revenue", PAIR)).schema == schema("revenue", PAIR)


def test_rows_of_a_bucket_keep_their_order_in_time() -> None:
    pieces = [
        rows("event_count", (), {"event_count": n, "timestamp": stamp}) for n, stamp in enumerate([NEXT, DAY, NEXT])
    ]
    table = tables.in_time(tables.together(pieces, schema("event_count", ())))
    assert table["event_count"].to_pylist() == [1, 0, 2]


def test_without_some_buckets_the_others_are_left() -> None:
    table = rows("event_count", (), {"event_count": 1}, {"event_count": 2, "timestamp": NEXT})
    left = tables.without(table, {DAY})
    assert (tables.stamps_of(left), tables.without(table, set()).equals(table)) == ({NEXT}, True)


@given(st.lists(st.integers(0, 3), max_size=12).map(sorted), st.integers(1, 4))
def test_the_first_rows_of_each_bucket_are_kept(days: list[int], top: int) -> None:
    given_ = [{"timestamp": DAY + timedelta(days=day), "event_count": n} for n, day in enumerate(days)]
    table = rows("event_count", (), *given_)
    of_day = [list(members) for _, members in groupby(given_, key=lambda row: row["timestamp"])]
    assert shown(tables.first_of_each(table, top)) == [row for members in of_day for row in members[:top]]
    assert tables.longest_bucket(table) == max(map(len, of_day), default=0)


def test_constants_and_what_is_looked_up_stand_beside_the_rows() -> None:
    table = rows("event_count", ("game_id",), *({"game_id": game} for game in ("1", "2", None, "3")))
    table = tables.with_constants(table, [("platform", "ios"), ("build", None)])
    table = tables.with_looked_up(table, "studio_id", "game_id", {"1": "s1", "2": None}, 1)
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
def test_rows_are_ordered_as_the_service_orders_them(given_: list[Row]) -> None:
    """Metrics, Result shapes 1."""
    table = largest_first(rows("arpu", PAIR, *given_), "arpu", PAIR)
    names = ["timestamp", *PAIR, "arpu"]
    assert shown(table.select(names)) == in_order(given_, "arpu", PAIR)


def test_rows_of_an_unknown_metric_are_ordered_by_their_values() -> None:
    table = tables.with_constants(rows("brand_new", (), {}, {}), [])
    table = table.append_column("platform", pa.array(["ios", "android"]))
    assert largest_first(table, "brand_new", ("platform",))["platform"].to_pylist() == ["android", "ios"]


# Added up


def added(*given_: Row, metric: str = "revenue", by: Sequence[str] = (), stamp: datetime | None = DAY) -> list[Row]:
    return shown(add_up(METRICS[metric], by, rows(metric, by, *given_), stamp))


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
    table = series({"event_count": 1, "surprise": 3}, {"event_count": 1, "surprise": 4}, metric="event_count")
    assert shown(add_up(METRICS["event_count"], (), table, DAY)) == [{"timestamp": DAY, "event_count": 2}]


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
def test_the_order_of_the_pieces_does_not_matter(given_: list[tuple[Any, ...]], chance: Any) -> None:
    shuffled = chance.sample(given_, len(given_))
    assert added(*paid(given_), by=PAIR, stamp=None) == added(*paid(shuffled), by=PAIR, stamp=None)


@given(st.lists(amounts, max_size=20))
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
    return shown(remainder(METRICS[metric], ("platform",), *tables_))


def test_what_is_not_shown_is_called_other() -> None:
    (row,) = rest([money(5, 1000)], [money(2, 600, platform="ios")])
    assert row == {"timestamp": DAY, **money(3, 400, platform="(other)")}


def test_where_nothing_is_left_there_is_no_row() -> None:
    assert rest([money(5, 1000)], [money(2, 600, platform="ios"), money(3, 400, platform=None)]) == []


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
def test_a_total_is_what_is_shown_and_the_other(given_: list[Any], top: int) -> None:
    made = [money(count, cents, timestamp=stamp, platform=platform) for stamp, platform, count, cents in given_]
    every = rows("revenue", ("platform",), *made)
    total = add_up(METRICS["revenue"], (), every, None)
    some = every.slice(0, top)
    left = remainder(METRICS["revenue"], ("platform",), total, some)
    again = add_up(METRICS["revenue"], (), tables.together([some, left], every.schema), None)
    for name in ("timestamp", "event_count", "sum_cents"):
        assert again[name].to_pylist() == total[name].to_pylist()
    for name in ("sum", "mean"):
        assert again[name].to_pylist() == pytest.approx(total[name].to_pylist())
    assert tables.stamps_of(left) == {stamp for stamp, *_ in given_[top:]}


# Side by side


USERS = [{"platform": "ios", "user_unique": 7}]


def test_metrics_meet_on_timestamp_and_dimensions() -> None:
    made = join(
        ("platform",),
        [
            rows("user_unique", ("platform",), *USERS),
            rows("new_users", ("platform",), {"platform": "ios", "new_users": 2}),
        ],
    )
    assert shown(made) == [{"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": 2}]


def test_a_row_only_one_metric_has_is_kept() -> None:
    installs = {"timestamp": NEXT, "platform": None, "new_users": 2}
    made = join(("platform",), [rows("user_unique", ("platform",), *USERS), rows("new_users", ("platform",), installs)])
    assert shown(made) == [
        {"timestamp": DAY, "platform": "ios", "user_unique": 7, "new_users": None},
        {"timestamp": NEXT, "platform": None, "user_unique": None, "new_users": 2},
    ]


def test_null_meets_null() -> None:
    left = rows("user_unique", PAIR, {"platform": None, "country_code": "DE", "user_unique": 7})
    right = rows("new_users", PAIR, {"platform": None, "country_code": "DE", "new_users": 2})
    assert len(join(PAIR, [left, right])) == 1


def test_rows_come_in_time_and_in_a_bucket_as_they_first_came() -> None:
    left = rows(
        "user_unique", ("platform",), {"timestamp": NEXT, "platform": "z"}, {"platform": "b"}, {"platform": "a"}
    )
    right = rows("new_users", ("platform",), {"platform": "c"}, {"platform": "a"}, {"timestamp": NEXT, "platform": "a"})
    keys = [(row["timestamp"], row["platform"]) for row in shown(join(("platform",), [left, right]))]
    assert keys == [(DAY, "b"), (DAY, "a"), (DAY, "c"), (NEXT, "z"), (NEXT, "a")]


@pytest.mark.parametrize("name", ["ios", None])
def test_two_rows_of_the_same_bucket_and_values_are_refused(name: str | None) -> None:
    twice = rows("user_unique", ("platform",), {"platform": name}, {"platform": name})
    with pytest.raises(ServiceError, match="two rows of the same bucket and values"):
        join(("platform",), [rows("new_users", ("platform",), *USERS), twice])


def test_three_metrics_stand_side_by_side() -> None:
    names = ("user_unique", "new_users", "event_count")
    made = join((), [rows(name, (), {name: place}) for place, name in enumerate(names)])
    assert shown(made) == [{"timestamp": DAY, "user_unique": 0, "new_users": 1, "event_count": 2}]
