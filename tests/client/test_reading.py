"""Answers read from JSON into tables (Metrics, Result shapes)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from gamelens.client.tables import answer_decoding, table_operations
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.client.tables.table_schema import TIMESTAMP_TYPE, schema
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries
from gamelens.wire.results import Rows, encode_answer

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
PAIR = ("platform", "country_code")
SERIES = MetricQuery(interval=WEEK, query=Timeseries())
GROUP = MetricQuery(interval=WEEK, query=Group("platform"))
SPLIT = MetricQuery(interval=WEEK, query=Split(PAIR))
BY_GAME = MetricQuery(interval=WEEK, split_by="platform")

ENDLESS = pytest.param(10**400, id="endless")

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


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1, 2**64, ENDLESS, 1.5, 1e300, "many", "7", [1], {}, True])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_count_that_is_none_is_a_service_error(count: Any, more: Row) -> None:
    with pytest.raises(ServiceError, match="event_count holds what is no count"):
        series({"event_count": count, **more})


@pytest.mark.parametrize("number", ["1.5", "", [1.0], {}, True, ENDLESS])
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
    assert table.schema.types == [TIMESTAMP_TYPE, pa.int64(), pa.float64()]


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
    {}, optional=dict.fromkeys(PAIR, texts) | {"event_count": counts} | dict.fromkeys(["mean", "sum"], numbers)
)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
buckets = st.lists(st.tuples(moments, st.lists(revenue, max_size=4)), max_size=4)


@given(buckets, st.sampled_from([SERIES, GROUP, SPLIT, BY_GAME]))
@settings(deadline=None)
def test_the_slower_way_says_the_same(given_: list[tuple[datetime, list[Row]]], query: MetricQuery) -> None:
    """The way for fields that nobody announced reads what was announced as the fast one does."""
    body = encode_answer(query, (Rows(stamp, given_rows) for stamp, given_rows in given_))
    known = schema("revenue", PAIR)
    assert read_answer("revenue", query, PAIR, body).equals(answer_decoding._decode_untyped(query, known, body))


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


PAID = {"platform": "iös", "country_code": None, "event_count": 3, "mean": 7 / 3, "sum": 7.0, "sum_cents": 700.0}
ANSWERS = {
    query: encode_answer(query, [Rows(DAY, [PAID] * 2), Rows(NEXT, [])]) for query in (SERIES, GROUP, SPLIT, BY_GAME)
}
changes = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.integers(0, 8), st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"-", b"9"])
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(list(ANSWERS)), changes)
@settings(max_examples=examples(500), deadline=None)
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
    assert len(table_operations.sort_by_time(table).to_pylist()) == len(table)  # every timestamp can be shown
