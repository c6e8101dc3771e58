"""Answers of the metrics service decoded from JSON into Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, Final, Generic, TypeVar

import msgspec
import pyarrow as pa

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE, schema
from gamelens.errors import ServiceError
from gamelens.wire.queries import Group, MetricQuery, Split
from gamelens.wire.results import decode_answer

_Row = TypeVar("_Row")
_HELD: Final[dict[pa.DataType, type[Any]]] = {pa.string(): str, pa.int64(): int, pa.float64(): float}
_CALLED: Final = {pa.string(): "dimension", pa.int64(): "count", pa.float64(): "number"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class _Bucket(msgspec.Struct, Generic[_Row], gc=False):
    timestamp: str
    result: list[_Row]


class _Event(msgspec.Struct, Generic[_Row], gc=False):
    timestamp: str
    event: _Row


class _Series(msgspec.Struct, Generic[_Row], gc=False):
    timestamp: str
    result: _Row


class _Answer(msgspec.Struct, Generic[_Row], gc=False):
    result: list[_Row]


def read_answer(metric: str, query: MetricQuery, dimensions: Sequence[str], body: bytes) -> pa.Table:
    """The table in *body*, the answer to *query* of *metric*, whose rows carry *dimensions* (Metrics, Result shapes).

    Raises:
        ServiceError: the body is not the promised JSON, or a field holds what it cannot.
    """
    known = schema(metric, dimensions)
    if metric not in METRICS or not set(dimensions) <= set(DIMENSIONS):
        return _as_it_comes(query, known, body)
    try:
        stamps, rows = _typed(query, known, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _as_it_comes(query, known, body)
    columns = [list(map(attrgetter(f"f{place}"), rows)) for place in range(len(known) - 1)]
    return _table(stamps, dict(zip(known.names[1:], columns, strict=True)), known)


def _typed(query: MetricQuery, known: pa.Schema, body: bytes) -> tuple[list[str], list[Any]]:
    """Timestamps and rows of *body*, decoded into exactly the columns *known*; a field beyond them is an error."""
    kind = "group" if isinstance(query.query, Group) else "split" if isinstance(query.query, Split) else "series"
    decoder = _decoder(kind, tuple(known.names[1:]), tuple(map(str, known.types[1:])))
    result = decoder.decode(body).result
    if kind == "group":
        stamps = [bucket.timestamp for bucket in result for _ in bucket.result]
        return stamps, list(chain.from_iterable(bucket.result for bucket in result))
    name = "event" if kind == "split" else "result"
    return [row.timestamp for row in result], list(map(attrgetter(name), result))


@lru_cache(maxsize=256)
def _decoder(kind: str, names: tuple[str, ...], types: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    python = {"string": str | None, "int64": int | None, "double": float | None}
    row = msgspec.defstruct(
        "Row",
        [(f"f{place}", python[type_], None) for place, type_ in enumerate(types)],
        rename={f"f{place}": name for place, name in enumerate(names)},
        forbid_unknown_fields=True,
        gc=False,
    )
    shape: Any = {"group": _Bucket, "split": _Event, "series": _Series}[kind]
    return msgspec.json.Decoder(_Answer[shape[row]])


def _as_it_comes(query: MetricQuery, known: pa.Schema, body: bytes) -> pa.Table:
    """The slower way: rows with fields or values that nobody announced."""
    buckets = decode_answer(query, body)
    rows = [row for bucket in buckets for row in bucket.rows]
    stamps = [bucket.timestamp for bucket in buckets for _ in bucket.rows]
    names = dict.fromkeys([*known.names[1:], *chain.from_iterable(rows)])
    names.pop(TIMESTAMP, None)  # the bucket's is the one that counts
    columns = {name: [row.get(name) for row in rows] for name in names}
    held = {name: _held(name, columns[name], known.field(name).type) for name in known.names[1:]}
    return _table(stamps, columns | held, known)


def _table(stamps: Sequence[str | datetime], columns: Mapping[str, list[Any]], known: pa.Schema) -> pa.Table:
    made: dict[str, Any] = {TIMESTAMP: _timestamps(stamps)}
    for name, values in columns.items():
        made[name] = _column(name, values, known.field(name).type) if name in known.names else _guessed(values)
    return pa.table(made)


def _timestamps(stamps: Sequence[str | datetime]) -> pa.Array:
    parsed = {stamp: _moment(stamp) for stamp in set(stamps)}
    return pa.array([parsed[stamp] for stamp in stamps], TIMESTAMP_TYPE)


def _moment(stamp: str | datetime) -> int:
    """Microseconds since 1970; what carries no zone is UTC."""
    try:
        moment = msgspec.convert(stamp, datetime)
        moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (msgspec.ValidationError, OverflowError):
        raise ServiceError(200, f"not the promised JSON: {stamp!r} is no timestamp") from None
    return (moment - _EPOCH) // _MICROSECOND


def _column(name: str, values: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (OverflowError, pa.ArrowInvalid):
        raise _not_held(name, type_) from None


def _held(name: str, values: list[Any], type_: pa.DataType) -> list[Any]:
    """*values* as a column of *type_* holds them: a count may come as `1.0`, a number as `1`, and nothing else may."""
    held = _HELD[type_]
    if set(map(type, values)) <= {held, NoneType}:
        return values
    try:
        return [value if value is None else _converted(value, held) for value in values]
    except (TypeError, ValueError, OverflowError):
        raise _not_held(name, type_) from None


def _converted(value: Any, held: type[Any]) -> Any:
    if type(value) is held:
        return value
    if type(value) not in (int, float):
        raise TypeError
    made = held(value)
    if held is not float and made != value:
        raise ValueError
    return made


def _not_held(name: str, type_: pa.DataType) -> ServiceError:
    return ServiceError(200, f"the field {name} holds what is no {_CALLED[type_]}")


def _guessed(values: Sequence[Any]) -> pa.Array:
    """A field nobody knows: as its values are, as text where they are of different kinds, lists or objects."""
    try:
        made = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, RecursionError):
        return _text(values)
    return _text(values) if pa.types.is_nested(made.type) else made


def _text(values: Iterable[Any]) -> pa.Array:
    """Text as it is and all else as JSON."""
    texts = (it if it is None or isinstance(it, str) else msgspec.json.encode(it).decode() for it in values)
    return pa.array(list(texts), pa.string())


def with_text_columns(table: pa.Table, known: pa.Schema) -> pa.Table:
    """*table* with all columns beyond *known* as text."""
    for place, name in enumerate(table.column_names):
        if name not in known.names:
            table = table.set_column(place, name, _text(table[name].to_pylist()))
    return table
