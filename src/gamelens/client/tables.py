"""Answers as Arrow tables: read from JSON, put together, added up, joined, cut to the largest.

A table has `timestamp` (timestamp[us, UTC], start of the bucket), the dimensions as text with null kept, counts as
int64 and numbers as float64; fields that the catalog does not know as they come, lists and objects as JSON. Its row
order is the answer's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import DIMENSIONS, METRICS, Metric, Quotient
from gamelens.errors import ServiceError
from gamelens.wire.queries import Group, MetricQuery, Split
from gamelens.wire.results import decode_answer

TIMESTAMP: Final = "timestamp"
STAMP: Final = pa.timestamp("us", tz="UTC")
OTHER: Final = "(other)"
_TOLERANCE: Final = 1e-9  # relative: a sum made in another order differs in its last digits

_Row = TypeVar("_Row")
_TYPES: Final = {"count": pa.int64(), "number": pa.float64()}
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


def schema(metric: str, dimensions: Sequence[str]) -> pa.Schema:
    """Columns of a table of *metric* by *dimensions*, as far as the catalog knows its fields.

    A row has one place for each name: a field that is called like a dimension is not among them.
    """
    fields = [field for field in METRICS[metric].fields if field.name not in dimensions] if metric in METRICS else []
    return pa.schema(
        [
            (TIMESTAMP, STAMP),
            *((name, pa.string()) for name in dimensions),
            *((field.name, _TYPES[field.kind]) for field in fields),
        ]
    )


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


def from_rows(rows: Iterable[Mapping[str, Any]], known: pa.Schema) -> pa.Table:
    """The table of *rows*, whose columns are *known*."""
    rows = list(rows)
    return pa.table({name: pa.array([row.get(name) for row in rows], known.field(name).type) for name in known.names})


def together(tables: Sequence[pa.Table], known: pa.Schema) -> pa.Table:
    """Rows of all *tables*, one after the other; the columns of *known* first, what else there is behind them."""
    tables = [known.empty_table(), *tables]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:  # a field nobody knows was of one kind in one answer and of another in the next
        table = pa.concat_tables([_texts(table, known) for table in tables], promote_options="permissive")
    return table.select([*known.names, *(name for name in table.column_names if name not in known.names)])


def in_time(table: pa.Table) -> pa.Table:
    """*table* by ascending timestamp; rows of one bucket keep their order."""
    moments = _moments(table)
    return table if np.all(moments[1:] >= moments[:-1]) else table.take(np.argsort(moments, kind="stable"))


def largest_first(table: pa.Table, metric: str, dimensions: Sequence[str]) -> pa.Table:
    """*table* as the service orders rows: in each bucket by the metric's own field, then the values, null last."""
    main = METRICS[metric].sorts_by if metric in METRICS else None
    keys = [(TIMESTAMP, "ascending"), *([(main, "descending")] if main else [])]
    keys += [(name, "ascending") for name in dimensions]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def stamps_of(table: pa.Table) -> set[datetime]:
    """The buckets that *table* has rows of."""
    return set(pc.unique(table[TIMESTAMP]).to_pylist())


def without(table: pa.Table, stamps: Iterable[datetime]) -> pa.Table:
    """*table* without the rows of these buckets."""
    return table.filter(pc.invert(pc.is_in(table[TIMESTAMP], value_set=pa.array(list(stamps), STAMP))))


def longest_bucket(table: pa.Table) -> int:
    """How many rows the largest bucket of *table* has; *table* must be in time."""
    return int(_places(_moments(table)).max()) + 1 if len(table) else 0


def first_of_each(table: pa.Table, top: int) -> pa.Table:
    """The first *top* rows of each bucket; *table* must be in time."""
    return table.filter(pa.array(_places(_moments(table)) < top))


def without_nothing(table: pa.Table, metric: str) -> pa.Table:
    """*table* without the rows all of whose counts are 0, which a grouped answer does not have."""
    counts = [field.name for field in METRICS[metric].fields if field.kind == "count"] if metric in METRICS else []
    if not counts or not len(table):
        return table
    return table.filter(pa.array(np.any([_zeroed(table[name]) != 0 for name in counts], axis=0)))


def with_constants(table: pa.Table, constants: Iterable[tuple[str, str | None]]) -> pa.Table:
    """*table* with a column of one and the same value for each of *constants*."""
    for name, value in constants:
        table = table.append_column(pa.field(name, pa.string()), pa.repeat(pa.scalar(value, pa.string()), len(table)))
    return table


def with_looked_up(table: pa.Table, name: str, by: str, known: Mapping[str, str | None], place: int) -> pa.Table:
    """*table* with a column *name* at *place*: what *known* says of each value of the column *by*."""
    values = pc.unique(table[by])
    texts = pa.array([known.get(value or "") for value in values.to_pylist()], pa.string())
    return table.add_column(place, name, texts.take(pc.index_in(table[by], value_set=values)))


def ordered(table: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """*table* with its columns in the order of a frame: timestamp, *dimensions*, fields."""
    fields = [name for name in table.column_names if name != TIMESTAMP and name not in dimensions]
    return table.select([TIMESTAMP, *dimensions, *fields])


def summed(metric: Metric) -> list[str]:
    """Fields of *metric* that are summed over rows."""
    return [field.name for field in metric.fields if field.combines == "sum"]


def add_up(metric: Metric, dimensions: Sequence[str], table: pa.Table, stamp: datetime | None) -> pa.Table:
    """Rows of *table* that lie in the same bucket and have the same values added, largest first.

    *stamp* replaces the timestamps where the bucket is the whole interval. A field that the catalog does not know
    cannot be added and is left out.
    """
    if stamp is not None:
        table = table.set_column(0, TIMESTAMP, pa.repeat(pa.scalar(stamp, STAMP), len(table)))
    keys, (places,) = _groups([table], [TIMESTAMP, *dimensions])
    sums = {name: _sum(_zeroed(table[name]), places, len(keys)) for name in summed(metric)}
    return largest_first(_recombined(metric, keys, sums), metric.name, dimensions)


def remainder(metric: Metric, dimensions: Sequence[str], total: pa.Table, shown: pa.Table) -> pa.Table:
    """What *total*, without dimensions, has beyond the rows *shown*: a row `(other)` for each bucket where that is any.

    Cents that the service rounds for each row, and the last digits of a number, are nothing.
    """
    keys, places = _groups([total, shown], [TIMESTAMP])
    everywhere, is_any = np.concatenate(places), np.zeros(len(keys), dtype="bool")
    sums = {}
    for field in metric.fields:
        if field.combines != "sum":
            continue
        own, others = _zeroed(total[field.name]), _zeroed(shown[field.name])
        rest = _sum(np.append(own, -others), everywhere, len(keys))
        if field.kind == "number":
            rest[np.abs(rest) <= _TOLERANCE * _sum(np.abs(own), places[0], len(keys))] = 0
        rounded = 0.5 if field.unit == "US cents" and field.kind == "count" else 0.0
        is_any |= np.abs(rest) > rounded * np.bincount(everywhere, minlength=len(keys))
        sums[field.name] = rest
    made = _recombined(metric, with_constants(keys, [(name, OTHER) for name in dimensions]), sums)
    return made.filter(pa.array(is_any))


def join(dimensions: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
    """Rows of *tables* side by side where timestamp and *dimensions* are the same; what one does not have is null.

    Raises:
        ServiceError: a table has two rows of the same bucket and values.
    """
    keys, places = _groups(tables, [TIMESTAMP, *dimensions])
    for table, place in zip(tables, places, strict=True):
        found = np.full(len(keys), -1, dtype="int64")
        found[place] = np.arange(len(place))
        if np.count_nonzero(found >= 0) != len(place):
            raise ServiceError(200, "two rows of the same bucket and values")
        taken = table.take(pa.array(found, mask=found < 0))
        for name in table.column_names:
            if name not in keys.column_names:
                keys = keys.append_column(name, taken[name])
    return in_time(keys)


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
    return pa.array([parsed[stamp] for stamp in stamps], STAMP)


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


def _texts(table: pa.Table, known: pa.Schema) -> pa.Table:
    """*table* with all columns beyond *known* as text."""
    for place, name in enumerate(table.column_names):
        if name not in known.names:
            table = table.set_column(place, name, _text(table[name].to_pylist()))
    return table


def _groups(tables: Sequence[pa.Table], keys: Sequence[str]) -> tuple[pa.Table, list[NDArray[Any]]]:
    """The different rows of *keys* in all *tables*, as they first come, and which of them each table's rows are."""
    stacked = pa.concat_tables([table.select(keys) for table in tables]).combine_chunks()
    codes = np.zeros(len(stacked), dtype="int64")
    for name in keys:
        encoded = stacked[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * max(1, len(encoded.dictionary)) + np.asarray(encoded.indices)
        codes = np.unique(codes, return_inverse=True)[1]
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype="int64")
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in tables])
    return stacked.take(pa.array(first[order])), np.split(rank[inverse], ends[:-1])


def _sum(values: NDArray[Any], places: NDArray[Any], size: int) -> NDArray[Any]:
    """Sums of the *values* at each of *size* places: counts exactly, numbers rounded once."""
    if values.dtype == np.int64:
        total = np.zeros(size, dtype="int64")
        np.add.at(total, places, values)
        return total
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=size))
    parts = np.split(values[order], ends[:-1]) if size else []
    return np.array([math.fsum(part) for part in parts], dtype="float64")


def _recombined(metric: Metric, table: pa.Table, sums: Mapping[str, NDArray[Any]]) -> pa.Table:
    """*table* with the fields of *metric*: what is summed, and quotients of that; null where nothing is divided."""
    for field in metric.fields:
        values, mask = sums.get(field.name), None
        if isinstance(field.combines, Quotient):
            whole = sums[field.combines.whole]
            mask = whole == 0
            values = field.combines.worth * sums[field.combines.part] / np.where(mask, 1, whole)
        if values is None:
            values, mask = np.full(len(table), math.nan), np.full(len(table), True)
        table = table.append_column(field.name, pa.array(values, _TYPES[field.kind], mask=mask))
    return table


def _zeroed(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(pc.fill_null(column, 0))


def _moments(table: pa.Table) -> NDArray[Any]:
    return np.asarray(table[TIMESTAMP].cast(pa.int64()))


def _places(moments: NDArray[Any]) -> NDArray[Any]:
    """How many rows of the same bucket come before each row; buckets must lie together."""
    starts = (
        np.flatnonzero(np.concatenate([[True], moments[1:] != moments[:-1]])) if len(moments) else np.array([], int)
    )
    lengths = np.diff(np.append(starts, len(moments)))
    return np.arange(len(moments)) - np.repeat(starts, lengths)
