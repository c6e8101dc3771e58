"""Answers decoded from JSON into Arrow tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.tables import table_operations
from gamelens.client.tables.answer_reading import id_text, read_answer
from gamelens.client.tables.table_operations import TIMESTAMP_TYPE, schema
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries
from gamelens.wire.results import Rows, encode_answer
from support.hypothesis_profiles import examples

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
PAIR = ("platform", "country_code")
SERIES = MetricQuery(interval=WEEK, query=Timeseries())
GROUP = MetricQuery(interval=WEEK, query=Group("platform"))
SPLIT = MetricQuery(interval=WEEK, query=Split(PAIR))
BY_GAME = MetricQuery(interval=WEEK, split_by="platform")

NOTHING_SOLD = {"event_count": 0, "mean": None, "sum": 0.0, "sum_cents": 0.0}
ENDLESS = pytest.param(10**400, id="endless")

Row = dict[str, Any]


def shown(table: pa.Table) -> list[Row]:
    """Return the rows of *table*."""
    return table.to_pylist()  # type: ignore[no-any-return]


def series(*rows: Row, metric: str = "revenue") -> pa.Table:
    """Return *rows* decoded as the answer to a timeseries from the first of November on.

    Rows of revenue have all of its fields.
    """
    whole = NOTHING_SOLD if metric == "revenue" else {}
    entries = [{"result": whole | row, "timestamp": f"2026-11-{day:02}T00:00:00Z"} for day, row in enumerate(rows, 1)]
    return read_answer(metric, SERIES, (), json.dumps({"result": entries}).encode())


def stamped(stamp: str, start: datetime = DAY, **more: Any) -> pa.Table:
    """Return an answer decoded whose one bucket has the timestamp *stamp*, and begins at *start* as queried."""
    body = {"result": [{"result": {"event_count": 1, **more}, "timestamp": stamp}]}
    query = MetricQuery(interval=Interval(start, start + timedelta(hours=1)), granularity="all", query=Timeseries())
    return read_answer("event_count", query, (), json.dumps(body).encode())


def group(*rows: Row, metric: str = "event_count", by: str = "platform") -> pa.Table:
    """Return *rows* decoded as the answer to a group query of one bucket."""
    body = {"result": [{"result": rows, "timestamp": "2026-11-01T00:00:00.000Z"}]}
    query = MetricQuery(interval=WEEK, query=Group(by))
    return read_answer(metric, query, (by,), json.dumps(body).encode())


# Answer shapes


def test_a_group_is_a_row_for_each_value_and_bucket() -> None:
    """A group has a list of rows per bucket, which may be empty (Wire 2.9, Answer shapes)."""
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
    """A split has one object per row with its timestamp (Wire 2.9, Answer shapes)."""
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
    """A timeseries has one object of fields per bucket (Wire 2.9, Answer shapes)."""
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
    """A by-game row has the split value and game_id (Wire 2.9, Answer shapes)."""
    body = b"""{"result": [{"result": {"platform": "ios", "game_id": "1001", "retention": 0.25},
        "timestamp": "2026-11-01T00:00:00Z"}]}"""
    assert shown(read_answer("retention_retro", BY_GAME, ("platform", "game_id"), body)) == [
        {"timestamp": DAY, "platform": "ios", "game_id": "1001", "retention": 0.25}
    ]


def test_an_empty_answer_has_all_its_columns() -> None:
    """An empty result is a table without rows and with the metric's schema."""
    table = read_answer("revenue", SPLIT, PAIR, b'{"result": []}')
    assert table.schema == schema("revenue", PAIR)


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        ("2026-11-01T00:00:00.000Z", DAY),
        ("2026-11-01T00:00:00Z", DAY),
        ("2026-11-01T00:00:00", DAY),
        ("2026-11-01T02:00:00+02:00", DAY),
        ("2026-11-01T00:00Z", DAY),
        ("2026-11-01 00:00:00+0000", DAY),
        ("2026-11-01T00:00:00,000z", DAY),
        ("20261101T000000Z", DAY),
        ("2026-11-01T00:00:00.123Z", DAY + timedelta(milliseconds=123)),
        ("2026-11-01T00:00:00.123456", DAY + timedelta(microseconds=123_456)),
        ("2400-01-01T00:00:00.000001Z", datetime(2400, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_timestamps_are_utc_to_the_microsecond(stamp: str, moment: datetime, more: Row) -> None:
    """Timestamps have any form of ISO 8601, and are in UTC if they name no zone (Wire 2.9, Answer shapes)."""
    assert stamped(stamp, moment, **more)["timestamp"].to_pylist() == [moment]


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-11-01", "2026-13-01T00:00:00Z", "2026-11-01T00:00:00Z\x00"])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_an_invalid_timestamp_is_a_service_error(stamp: str, more: Row) -> None:
    """A timestamp that is not a date and time is a `ServiceError`."""
    with pytest.raises(ServiceError, match="not the expected JSON"):
        stamped(stamp, **more)


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_timestamp_beyond_the_calendar_is_a_service_error(stamp: str) -> None:
    """A timestamp outside the years 1 to 9999 in UTC is a `ServiceError`."""
    with pytest.raises(ServiceError, match="is not a timestamp"):
        stamped(stamp)


@pytest.mark.parametrize("count", [0, 2**53 + 1, 2**63 - 1])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_counts_keep_every_digit(count: int, more: Row) -> None:
    """Counts are 64-bit integers and keep every digit."""
    assert series({"event_count": count, **more})["event_count"].to_pylist() == [count]


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1, 2**64, ENDLESS, 1.5, 1e300, "many", "7", [1], {}, True])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_an_invalid_count_is_a_service_error(count: object, more: Row) -> None:
    """A count that is no 64-bit integer is a `ServiceError` that names the field."""
    with pytest.raises(ServiceError, match="a value of the field event_count is not a count"):
        series({"event_count": count, **more})


@pytest.mark.parametrize("number", ["1.5", "", [1.0], {}, True, ENDLESS])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_an_invalid_number_is_a_service_error(number: object, more: Row) -> None:
    """A number that is text, a list, an object, a boolean or endless is a `ServiceError`."""
    with pytest.raises(ServiceError, match="a value of the field sum is not a number"):
        series({"sum": number, **more})


@pytest.mark.parametrize("value", [1, 1.5, False, ["ios"], {"name": "ios"}])
@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_a_dimension_that_is_no_text_is_a_service_error(value: object, more: Row) -> None:
    """A dimension value is text or null (Wire 4.10, Dimensions)."""
    with pytest.raises(ServiceError, match="a value of the field platform is not a dimension"):
        group({"platform": value, "event_count": 1, **more})


@pytest.mark.parametrize("value", [1.5, 2.0**60])
def test_an_id_that_is_no_whole_number_is_a_service_error(value: float) -> None:
    """Its text would be another one than that of the service."""
    with pytest.raises(ServiceError, match="nor a whole number that JSON keeps"):
        id_text(value)


@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_integers_may_be_written_with_or_without_a_point(more: Row) -> None:
    """3 and 3.0 are the same count and the same number."""
    (row,) = shown(series({"event_count": 3.0, "mean": 1, "sum": 3, "sum_cents": 300, **more}))
    kinds = {name: type(value) for name, value in row.items() if name in schema("revenue", ()).names[1:]}
    assert kinds == {"event_count": int, "mean": float, "sum": float, "sum_cents": float}


@pytest.mark.parametrize("more", [{}, {"surprise": 1}])
def test_an_absent_field_is_null(more: Row) -> None:
    """A dimension that a row lacks is null, and a field, unless it is the metric's own."""
    (row,) = shown(group({"sum": 1.0, **more}, metric="revenue"))
    assert (row["platform"], row["mean"], row["sum"]) == (None, None, 1.0)


# Unknown fields and names


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
def test_an_unknown_field_is_typed_by_its_values(values: list[object], type_: pa.DataType) -> None:
    """A field the catalog does not know has the type of its values."""
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
def test_values_without_a_common_type_become_json_text(values: list[object], texts: list[str | None]) -> None:
    """Mixed types, objects, lists and huge integers become a column of JSON text."""
    assert series(*({"surprise": value} for value in values))["surprise"].to_pylist() == texts


def test_unknown_fields_come_after_known_ones() -> None:
    """Unknown fields are the last columns, null in rows that lack them."""
    table = series({"zest": 1, "event_count": 1}, {"event_count": 2, "alpha": "a"}, metric="event_count")
    assert table.column_names == ["timestamp", "event_count", "zest", "alpha"]
    assert table["alpha"].to_pylist() == [None, "a"]


def test_fields_of_an_unknown_metric_are_typed_by_their_values() -> None:
    """All fields of a metric the catalog does not know are typed by their values."""
    table = series({"brand_new": 7, "share": 0.5}, metric="brand_new")
    assert table.schema.types == [TIMESTAMP_TYPE, pa.int64(), pa.float64()]


def test_a_field_named_timestamp_does_not_change_the_bucket() -> None:
    """A row field called timestamp does not replace the bucket's timestamp."""
    (row,) = shown(series({"event_count": 1, "timestamp": "1999-01-01T00:00:00Z"}, metric="event_count"))
    assert row == {"timestamp": DAY, "event_count": 1}


@pytest.mark.parametrize("name", ["f0", "class", "result", "event", "", 'say "ios"', "zwei\nZeilen", "länder", "a\\b"])
def test_a_dimension_may_be_called_anything(name: str) -> None:
    """A dimension name may be a keyword, empty, or hold quotes and line breaks."""
    assert shown(group({name: "x", "event_count": 1}, by=name)) == [{"timestamp": DAY, name: "x", "event_count": 1}]


def test_a_dimension_named_like_a_field_keeps_its_value() -> None:
    """A JSON object has one value for each name, read here as the dimension."""
    (row,) = shown(group({"sum": "x", "event_count": 1}, metric="revenue", by="sum"))
    assert (row["sum"], row["event_count"]) == ("x", 1)


texts = st.none() | st.text(max_size=4) | st.sampled_from(["NA", "null", "ios", '":"'])
whole = st.integers(0, 2**63 - 1)
numbers = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | whole | st.integers(0, 2**53).map(float)
fields = {"platform": texts, "country_code": texts, "event_count": counts, "mean": numbers, "sum_cents": numbers}
revenue = st.fixed_dictionaries(fields | {"sum": numbers}) | st.fixed_dictionaries({"sum": numbers}, optional=fields)
days = st.integers(0, 6).map(lambda day: DAY + timedelta(days=day))
rows_of_a_day = st.lists(revenue, max_size=4, unique_by=lambda row: (row.get("platform"), row.get("country_code")))
buckets = st.lists(st.tuples(days, rows_of_a_day), max_size=4, unique_by=lambda bucket: bucket[0])


@given(buckets, st.sampled_from([SERIES, GROUP, SPLIT, BY_GAME]))
@settings(deadline=None)
def test_the_slow_decoder_agrees_with_the_fast_one(
    given_: list[tuple[datetime, list[Row]]], query: MetricQuery
) -> None:
    """The decoder for unknown keys, one of them beside the rows, gives the same table as the typed one."""
    body = encode_answer(query, (Rows(stamp, given_rows) for stamp, given_rows in given_))
    more = b'{"more":[{}],' + body[1:]
    assert read_answer("revenue", query, PAIR, body).equals(read_answer("revenue", query, PAIR, more))


# Invalid answers


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
def test_a_body_of_another_shape_is_a_service_error(body: bytes) -> None:
    """A body that is not the documented JSON is a `ServiceError`, however deep or long."""
    with pytest.raises(ServiceError, match="not the expected JSON"):
        read_answer("event_count", SERIES, (), body)


@pytest.mark.parametrize(("query", "other"), [(GROUP, SPLIT), (GROUP, SERIES), (SPLIT, GROUP), (SERIES, SPLIT)])
def test_the_shape_of_another_query_kind_is_a_service_error(query: MetricQuery, other: MetricQuery) -> None:
    """The answer to a group in the shape of a split, and the like, is a `ServiceError`."""
    body = encode_answer(other, [Rows(DAY, [{"platform": "ios", "country_code": "DE", "event_count": 1}])])
    with pytest.raises(ServiceError):
        read_answer("event_count", query, PAIR, body)


PAID = {"platform": "iös", "country_code": None, "event_count": 3, "mean": 7 / 3, "sum": 7.0, "sum_cents": 700.0}
ANSWERS = {
    query: encode_answer(query, [Rows(DAY, [PAID, PAID | {"country_code": "DE"}]), Rows(NEXT, [])])
    for query in (SERIES, GROUP, SPLIT, BY_GAME)
}
Change = tuple[int, int, bytes]
"""Where bytes are replaced, how many, and by which."""

changes = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.integers(0, 8), st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"-", b"9"])
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(list(ANSWERS)), changes)
@settings(max_examples=examples(500), deadline=None)
def test_a_damaged_answer_is_a_service_error_or_an_answer(query: MetricQuery, damage: list[Change]) -> None:
    """Any damage to an answer gives a `ServiceError` or a table of the right columns."""
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
