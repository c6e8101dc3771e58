"""The JSON of metric answers, for each kind of query (Wire 2.9, Answer shapes)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries
from gamelens.wire.results import Rows, decode_answer, encode_answer

WEEK = Interval.parse("2026-11-01/P1W")
DAY = datetime(2026, 11, 1, tzinfo=UTC)
GROUP = MetricQuery(interval=WEEK, query=Group("platform"))
SPLIT = MetricQuery(interval=WEEK, query=Split(("platform", "build")))
SERIES = MetricQuery(interval=WEEK, query=Timeseries())
BY_GAME = MetricQuery(interval=WEEK, split_by="platform")


@pytest.mark.parametrize(
    ("query", "row", "body"),
    [
        (GROUP, {"platform": None, "n": 1}, b'{"result":[{"platform":null,"n":1}],"timestamp":"%s"}'),
        (SPLIT, {"platform": "ios", "n": 1}, b'{"event":{"platform":"ios","n":1},"timestamp":"%s","version":"v1"}'),
        (SERIES, {"n": 0.5}, b'{"result":{"n":0.5},"timestamp":"%s"}'),
        (BY_GAME, {"game_id": "7"}, b'{"result":{"game_id":"7"},"timestamp":"%s"}'),
    ],
)
def test_each_kind_has_its_shape(query: MetricQuery, row: dict[str, Any], body: bytes) -> None:
    """Group, split, timeseries and by-game answers each have their own JSON.

    Wire 2.9, Answer shapes.
    """
    line = body.replace(b"%s", b"2026-11-01T00:00:00.000Z")
    assert encode_answer(query, [Rows(DAY, [row])]) == b'{"result":[' + line + b"]}"


@pytest.mark.parametrize("query", [GROUP, SPLIT, SERIES, BY_GAME])
def test_no_buckets_are_an_empty_list(query: MetricQuery) -> None:
    """An answer without buckets has an empty `result` and decodes to no rows.

    Wire 2.9, Answer shapes.
    """
    assert decode_answer(query, encode_answer(query, [])) == []


def test_a_timestamp_may_come_without_milliseconds() -> None:
    """A timestamp without milliseconds is read, as retention answers have it.

    Wire 2.9, Answer shapes.
    """
    body = b'{"result":[{"result":{"retention":0.5},"timestamp":"2026-11-01T00:00:00Z"}]}'
    assert decode_answer(BY_GAME, body)[0].timestamp == DAY


def test_integers_of_any_size_travel() -> None:
    """An integer beyond 64 bits, as a total revenue may be, is read exactly.

    Wire 4.13, Numbers.
    """
    rows = [Rows(DAY, [{"total_revenue": 10**25}])]
    assert decode_answer(SERIES, encode_answer(SERIES, rows)) == rows


@pytest.mark.parametrize("body", [b"", b"[]", b'{"result":{}}', b'{"result":[{"timestamp":"x"}]}', b"<html>", b"\xff"])
@pytest.mark.parametrize("query", [GROUP, SPLIT, SERIES, BY_GAME])
def test_any_other_body_is_a_service_error(query: MetricQuery, body: bytes) -> None:
    """A body that is not an answer of the query's kind raises `ServiceError`.

    Wire 2.9, Answer shapes.
    """
    with pytest.raises(ServiceError):
        decode_answer(query, body)
