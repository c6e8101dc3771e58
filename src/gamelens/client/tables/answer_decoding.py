"""Answers of the metrics service, decoded from JSON into Arrow tables.

A table has `timestamp` (timestamp[us, UTC], the start of the bucket), each dimension as a string column that keeps
null, counts as int64 and numbers as float64. A field that the catalog does not know has the type of its values; lists,
objects and mixed types become JSON text. Rows keep the order of the answer.
"""

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
from gamelens.wire.results import decode_answer, read_timestamp

_Row = TypeVar("_Row")
_PYTHON_TYPES: Final[dict[pa.DataType, type[Any]]] = {pa.string(): str, pa.int64(): int, pa.float64(): float}
_TYPE_LABELS: Final = {pa.string(): "dimension", pa.int64(): "count", pa.float64(): "number"}
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
    """Return the rows of *body*, the answer to *query* for *metric*, as a table.

    Wire 2.9, Answer shapes.

    Args:
        metric: the name of the metric.
        query: the query that was sent.
        dimensions: the dimensions of each row.
        body: the response body.

    Raises:
        ServiceError: the body is not the documented JSON, or a value has the wrong type.
    """
    expected = schema(metric, dimensions)
    if metric not in METRICS or not set(dimensions) <= set(DIMENSIONS):
        return _decode_untyped(query, expected, body)
    try:
        timestamps, rows = _decode_typed(query, expected, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_untyped(query, expected, body)
    columns = [list(map(attrgetter(f"f{position}"), rows)) for position in range(len(expected) - 1)]
    return _table(timestamps, dict(zip(expected.names[1:], columns, strict=True)), expected)


def _decode_typed(query: MetricQuery, expected: pa.Schema, body: bytes) -> tuple[list[str], list[Any]]:
    """Decode *body* into exactly the columns of *expected* and return timestamps and rows.

    An additional field is an error.
    """
    kind = "group" if isinstance(query.query, Group) else "split" if isinstance(query.query, Split) else "series"
    decoder = _decoder(kind, tuple(expected.names[1:]), tuple(map(str, expected.types[1:])))
    result = decoder.decode(body).result
    if kind == "group":
        timestamps = [bucket.timestamp for bucket in result for _ in bucket.result]
        return timestamps, list(chain.from_iterable(bucket.result for bucket in result))
    name = "event" if kind == "split" else "result"
    return [row.timestamp for row in result], list(map(attrgetter(name), result))


@lru_cache(maxsize=256)
def _decoder(kind: str, names: tuple[str, ...], types: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    """Return the decoder of one answer shape with these columns."""
    python = {"string": str | None, "int64": int | None, "double": float | None}
    row = msgspec.defstruct(
        "Row",
        [(f"f{position}", python[type_], None) for position, type_ in enumerate(types)],
        rename={f"f{position}": name for position, name in enumerate(names)},
        forbid_unknown_fields=True,
        gc=False,
    )
    shape: Any = {"group": _Bucket, "split": _Event, "series": _Series}[kind]
    return msgspec.json.Decoder(_Answer[shape[row]])


def _decode_untyped(query: MetricQuery, expected: pa.Schema, body: bytes) -> pa.Table:
    """Decode an answer with fields the catalog does not know.

    Slower than the typed decoder.
    """
    buckets = decode_answer(query, body)
    rows = [row for bucket in buckets for row in bucket.rows]
    timestamps = [bucket.timestamp for bucket in buckets for _ in bucket.rows]
    names = dict.fromkeys([*expected.names[1:], *chain.from_iterable(rows)])
    names.pop(TIMESTAMP, None)  # the timestamp of the bucket applies
    columns = {name: [row.get(name) for row in rows] for name in names}
    converted = {name: _converted_values(name, columns[name], expected.field(name).type) for name in expected.names[1:]}
    return _table(timestamps, columns | converted, expected)


def _table(timestamps: Sequence[str | datetime], columns: Mapping[str, list[Any]], expected: pa.Schema) -> pa.Table:
    """Build the table.

    Columns that are not in *expected* get the type of their values.
    """
    arrays: dict[str, Any] = {TIMESTAMP: _timestamps(timestamps)}
    for name, values in columns.items():
        arrays[name] = (
            _column(name, values, expected.field(name).type) if name in expected.names else _inferred_column(values)
        )
    return pa.table(arrays)


def _timestamps(timestamps: Sequence[str | datetime]) -> pa.Array:
    parsed = {timestamp: _micros_since_epoch(timestamp) for timestamp in set(timestamps)}
    return pa.array([parsed[timestamp] for timestamp in timestamps], TIMESTAMP_TYPE)


def _micros_since_epoch(timestamp: str | datetime) -> int:
    moment = read_timestamp(timestamp) if isinstance(timestamp, str) else timestamp
    return (moment - _EPOCH) // _MICROSECOND


def _column(name: str, values: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (OverflowError, pa.ArrowInvalid):
        raise _wrong_type_error(name, type_) from None


def _converted_values(name: str, values: list[Any], type_: pa.DataType) -> list[Any]:
    """Return *values* converted to the Python type of *type_*.

    A count may be `1.0` and a number `1`; any other type is an error.
    """
    python_type = _PYTHON_TYPES[type_]
    if set(map(type, values)) <= {python_type, NoneType}:
        return values
    try:
        return [value if value is None else _converted_value(value, python_type) for value in values]
    except (TypeError, ValueError, OverflowError):
        raise _wrong_type_error(name, type_) from None


def _converted_value(value: Any, python_type: type[Any]) -> Any:
    """Return *value* as *python_type*, if no digit is lost."""
    if type(value) is python_type:
        return value
    if type(value) not in (int, float):
        raise TypeError
    converted = python_type(value)
    if python_type is not float and converted != value:
        raise ValueError
    return converted


def _wrong_type_error(name: str, type_: pa.DataType) -> ServiceError:
    return ServiceError(200, f"the field {name} holds what is no {_TYPE_LABELS[type_]}")


def _inferred_column(values: Sequence[Any]) -> pa.Array:
    """Return the column of an unknown field: text if its values are of mixed types or nested."""
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, RecursionError):
        return _text_column(values)
    return _text_column(values) if pa.types.is_nested(array.type) else array


def _text_column(values: Iterable[Any]) -> pa.Array:
    """Return strings as they are and other values as JSON."""
    texts = (
        value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
    )
    return pa.array(list(texts), pa.string())


def with_text_columns(table: pa.Table, expected: pa.Schema) -> pa.Table:
    """Return *table* with every column that is not in *expected* as text."""
    for position, name in enumerate(table.column_names):
        if name not in expected.names:
            table = table.set_column(position, name, _text_column(table[name].to_pylist()))
    return table
