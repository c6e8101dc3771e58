"""What the metrics service answers, as frozen values (Metrics, Result shapes).

Four shapes: group, split, timeseries, and by game, which looks like a timeseries whose rows carry dimensions.
`decode_answer` turns each of them into the same flat rows, `encode_answer` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from gamelens.errors import ServiceError
from gamelens.wire.intervals import wire_timestamp
from gamelens.wire.queries import Group, MetricQuery, Split

Row = dict[str, Any]


class Rows(msgspec.Struct, frozen=True):
    """One bucket of an answer: its timestamp and its rows, in the service's order."""

    timestamp: datetime
    rows: list[Row]


class _GroupBucket(msgspec.Struct, frozen=True):
    timestamp: datetime
    result: list[Row]


class _SplitRow(msgspec.Struct, frozen=True):
    timestamp: datetime
    event: Row
    version: str = "v1"


class _SeriesRow(msgspec.Struct, frozen=True):
    timestamp: datetime
    result: Row


class _GroupAnswer(msgspec.Struct, frozen=True):
    result: list[_GroupBucket]


class _SplitAnswer(msgspec.Struct, frozen=True):
    result: list[_SplitRow]


class _SeriesAnswer(msgspec.Struct, frozen=True):
    result: list[_SeriesRow]


_GROUP = msgspec.json.Decoder(_GroupAnswer)
_SPLIT = msgspec.json.Decoder(_SplitAnswer)
_SERIES = msgspec.json.Decoder(_SeriesAnswer)


class Studio(msgspec.Struct, frozen=True):
    """A studio of the caller's organisation (Metrics, Studio)."""

    id: str
    name: str


class Game(msgspec.Struct, frozen=True):
    """A game of the caller's organisation (Metrics, Game)."""

    id: str
    title: str


class Values(msgspec.Struct, frozen=True):
    """What one dimension held in an interval (Metrics, Endpoints)."""

    dimension: str
    values: list[str]


def decode_answer(query: MetricQuery, body: bytes) -> list[Rows]:
    """Buckets of an answer to *query*, ascending, empty ones left in.

    Raises:
        ServiceError: the body is not the promised JSON.
    """
    try:
        match query.query:
            case Group():
                return [Rows(bucket.timestamp, bucket.result) for bucket in _GROUP.decode(body).result]
            case Split():
                return list(_gather((row.timestamp, row.event) for row in _SPLIT.decode(body).result))
        return list(_gather((row.timestamp, row.result) for row in _SERIES.decode(body).result))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(200, f"not the promised JSON: {error}") from None


def encode_answer(query: MetricQuery, buckets: Iterable[Rows]) -> bytes:
    """The answer to *query* in the shape its kind has."""
    stamped = ((wire_timestamp(bucket.timestamp), bucket.rows) for bucket in buckets)
    match query.query:
        case Group():
            result: list[Any] = [{"result": rows, "timestamp": stamp} for stamp, rows in stamped]
        case Split():
            result = [{"event": row, "timestamp": stamp, "version": "v1"} for stamp, rows in stamped for row in rows]
        case _:
            result = [{"result": row, "timestamp": stamp} for stamp, rows in stamped for row in rows]
    return msgspec.json.encode({"result": result})


def _gather(rows: Iterable[tuple[datetime, Row]]) -> Iterator[Rows]:
    for timestamp, members in groupby(rows, key=lambda row: row[0]):
        yield Rows(timestamp, [row for _, row in members])
