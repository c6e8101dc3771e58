"""Answers of the metrics service as frozen values, and the body of an error.

There are four shapes: group, split, timeseries, and by game, which is a timeseries whose rows have dimensions.
`decode_answer` reads each of them into the same flat rows, `encode_answer` writes them. Wire 2.9, Answer shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from gamelens.errors import ServiceError
from gamelens.wire.intervals import read_moment, wire_timestamp
from gamelens.wire.queries import Group, MetricQuery, Split

Row = dict[str, Any]
_Row = TypeVar("_Row")
_Stamp = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]

ErrorName = Literal[
    "bad_request",
    "unauthorised",
    "not_found",
    "method_not_allowed",
    "too_slow",
    "too_large",
    "unprocessable",
    "too_many_requests",
    "failed",
    "unavailable",
    "refused",
]


class Rows(msgspec.Struct, frozen=True):
    """One bucket of an answer: its timestamp and its rows in the service's order."""

    timestamp: datetime
    rows: list[Row]


class GroupBucket(msgspec.Struct, Generic[_Row], frozen=True):
    """One bucket of a group query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    result: list[_Row]


class SplitRow(msgspec.Struct, Generic[_Row], frozen=True):
    """One row of a split query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    event: _Row
    version: str = "v1"


class SeriesRow(msgspec.Struct, Generic[_Row], frozen=True):
    """One row of a timeseries or a by-game query (Wire 2.9, Answer shapes)."""

    timestamp: _Stamp
    result: _Row


class GroupAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a group query."""

    result: list[GroupBucket[_Row]]


class SplitAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a split query."""

    result: list[SplitRow[_Row]]


class SeriesAnswer(msgspec.Struct, Generic[_Row], frozen=True):
    """The answer to a timeseries or a by-game query."""

    result: list[SeriesRow[_Row]]


_GROUP = msgspec.json.Decoder(GroupAnswer[Row])
_SPLIT = msgspec.json.Decoder(SplitAnswer[Row])
_SERIES = msgspec.json.Decoder(SeriesAnswer[Row])


class Studio(msgspec.Struct, frozen=True):
    """A studio of the caller's organisation (Wire 2.11, Lists)."""

    id: str
    name: str


class Game(msgspec.Struct, frozen=True):
    """A game of the caller's organisation (Wire 2.11, Lists)."""

    id: str
    title: str


class Values(msgspec.Struct, frozen=True):
    """The values of one dimension in an interval (Wire 2.11, Lists)."""

    dimension: str
    values: list[str]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error: *error* is for programs, *message* for people.

    If one part of the request is to blame, *field* names it as the request does, *value* is what it held, *allowed*
    lists what it may hold where that can be listed, and *did_you_mean* is the nearest of these (Wire 2.12, Refusals).
    """

    error: ErrorName
    message: str
    field: str | msgspec.UnsetType = msgspec.UNSET
    value: Any = msgspec.UNSET
    allowed: list[str] | msgspec.UnsetType = msgspec.UNSET
    did_you_mean: str | msgspec.UnsetType | None = msgspec.UNSET


def decode_answer(query: MetricQuery, body: bytes) -> list[Rows]:
    """Decode the answer to *query* into its buckets, ascending, with empty ones.

    Raises:
        ServiceError: the body is not the promised JSON.
    """
    try:
        match query.query:
            case Group():
                return [Rows(read_timestamp(bucket.timestamp), bucket.result) for bucket in _GROUP.decode(body).result]
            case Split():
                return list(_group_rows((row.timestamp, row.event) for row in _SPLIT.decode(body).result))
        return list(_group_rows((row.timestamp, row.result) for row in _SERIES.decode(body).result))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceError(200, f"not the promised JSON: {error}") from None


def read_timestamp(text: str) -> datetime:
    """Return the timestamp of a bucket, in whichever form of ISO 8601 it is given (Wire 2.9, Answer shapes).

    Raises:
        ServiceError: *text* is no timestamp.
    """
    with suppress(ValueError, OverflowError):
        if len(text) > len("2026-11-20") and text.isprintable():  # a date alone is no moment
            return read_moment(text)
    raise ServiceError(200, f"not the promised JSON: {text!r} is no timestamp")


def encode_answer(query: MetricQuery, buckets: Iterable[Rows]) -> bytes:
    """Encode the answer to *query* in the shape of its kind (Wire 2.9, Answer shapes)."""
    # Encoded entry by entry, because an answer may have a bucket for every week of history.
    return b'{"result":[' + b",".join(map(msgspec.json.encode, _entries(query, buckets))) + b"]}"


def _entries(query: MetricQuery, buckets: Iterable[Rows]) -> Iterator[dict[str, Any]]:
    for bucket in buckets:
        timestamp = wire_timestamp(bucket.timestamp)
        match query.query:
            case Group():
                yield {"result": bucket.rows, "timestamp": timestamp}
            case Split():
                yield from ({"event": row, "timestamp": timestamp, "version": "v1"} for row in bucket.rows)
            case _:
                yield from ({"result": row, "timestamp": timestamp} for row in bucket.rows)


def _group_rows(rows: Iterable[tuple[str, Row]]) -> Iterator[Rows]:
    for timestamp, members in groupby(rows, key=lambda row: row[0]):
        yield Rows(read_timestamp(timestamp), [row for _, row in members])
