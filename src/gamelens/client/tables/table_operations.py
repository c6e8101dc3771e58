"""Answers as Arrow tables: read from JSON, put together, added up, joined, cut to the largest.

A table has `timestamp` (timestamp[us, UTC], start of the bucket), the dimensions as text with null kept, counts as
int64 and numbers as float64; fields that the catalog does not know as they come, lists and objects as JSON. Its row
order is the answer's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import METRICS, Metric, Quotient
from gamelens.client.tables.answer_decoding import with_text_columns
from gamelens.client.tables.table_schema import ARROW_TYPES, OTHER, TIMESTAMP, TIMESTAMP_TYPE
from gamelens.errors import ServiceError

_TOLERANCE: Final = 1e-9  # relative: a sum made in another order differs in its last digits


def from_rows(rows: Iterable[Mapping[str, Any]], known: pa.Schema) -> pa.Table:
    """The table of *rows*, whose columns are *known*."""
    rows = list(rows)
    return pa.table({name: pa.array([row.get(name) for row in rows], known.field(name).type) for name in known.names})


def concatenate(tables: Sequence[pa.Table], known: pa.Schema) -> pa.Table:
    """Rows of all *tables*, one after the other; the columns of *known* first, what else there is behind them."""
    tables = [known.empty_table(), *tables]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:  # a field nobody knows was of one kind in one answer and of another in the next
        table = pa.concat_tables([with_text_columns(table, known) for table in tables], promote_options="permissive")
    return table.select([*known.names, *(name for name in table.column_names if name not in known.names)])


def sort_by_time(table: pa.Table) -> pa.Table:
    """*table* by ascending timestamp; rows of one bucket keep their order."""
    moments = _moments(table)
    return table if np.all(moments[1:] >= moments[:-1]) else table.take(np.argsort(moments, kind="stable"))


def sort_as_service(table: pa.Table, metric: str, dimensions: Sequence[str]) -> pa.Table:
    """*table* as the service orders rows: in each bucket by the metric's own field, then the values, null last."""
    main = METRICS[metric].sorts_by if metric in METRICS else None
    keys = [(TIMESTAMP, "ascending"), *([(main, "descending")] if main else [])]
    keys += [(name, "ascending") for name in dimensions]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def bucket_starts(table: pa.Table) -> set[datetime]:
    """The buckets that *table* has rows of."""
    return set(pc.unique(table[TIMESTAMP]).to_pylist())


def drop_buckets(table: pa.Table, stamps: Iterable[datetime]) -> pa.Table:
    """*table* without the rows of these buckets."""
    return table.filter(pc.invert(pc.is_in(table[TIMESTAMP], value_set=pa.array(list(stamps), TIMESTAMP_TYPE))))


def largest_bucket_size(table: pa.Table) -> int:
    """How many rows the largest bucket of *table* has; *table* must be in time."""
    return int(_places(_moments(table)).max()) + 1 if len(table) else 0


def top_per_bucket(table: pa.Table, top: int) -> pa.Table:
    """The first *top* rows of each bucket; *table* must be in time."""
    return table.filter(pa.array(_places(_moments(table)) < top))


def drop_zero_rows(table: pa.Table, metric: str) -> pa.Table:
    """*table* without the rows all of whose counts are 0, which a grouped answer does not have."""
    counts = [field.name for field in METRICS[metric].fields if field.kind == "count"] if metric in METRICS else []
    if not counts or not len(table):
        return table
    return table.filter(pa.array(np.any([_zeroed(table[name]) != 0 for name in counts], axis=0)))


def add_constant_columns(table: pa.Table, constants: Iterable[tuple[str, str | None]]) -> pa.Table:
    """*table* with a column of one and the same value for each of *constants*."""
    for name, value in constants:
        table = table.append_column(pa.field(name, pa.string()), pa.repeat(pa.scalar(value, pa.string()), len(table)))
    return table


def add_lookup_column(table: pa.Table, name: str, by: str, known: Mapping[str, str | None], place: int) -> pa.Table:
    """*table* with a column *name* at *place*: what *known* says of each value of the column *by*."""
    values = pc.unique(table[by])
    texts = pa.array([known.get(value or "") for value in values.to_pylist()], pa.string())
    return table.add_column(place, name, texts.take(pc.index_in(table[by], value_set=values)))


def order_columns(table: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """*table* with its columns in the order of a frame: timestamp, *dimensions*, fields."""
    fields = [name for name in table.column_names if name != TIMESTAMP and name not in dimensions]
    return table.select([TIMESTAMP, *dimensions, *fields])


def summable_fields(metric: Metric) -> list[str]:
    """Fields of *metric* that are summed over rows."""
    return [field.name for field in metric.fields if field.combines == "sum"]


def sum_split_buckets(metric: Metric, dimensions: Sequence[str], table: pa.Table, stamp: datetime | None) -> pa.Table:
    """Rows of *table* that lie in the same bucket and have the same values added, largest first.

    *stamp* replaces the timestamps where the bucket is the whole interval. A field that the catalog does not know
    cannot be added and is left out.
    """
    if stamp is not None:
        table = table.set_column(0, TIMESTAMP, pa.repeat(pa.scalar(stamp, TIMESTAMP_TYPE), len(table)))
    keys, (places,) = _groups([table], [TIMESTAMP, *dimensions])
    sums = {name: _sum(_zeroed(table[name]), places, len(keys)) for name in summable_fields(metric)}
    return sort_as_service(_recombined(metric, keys, sums), metric.name, dimensions)


def other_rows(metric: Metric, dimensions: Sequence[str], total: pa.Table, shown: pa.Table) -> pa.Table:
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
    made = _recombined(metric, add_constant_columns(keys, [(name, OTHER) for name in dimensions]), sums)
    return made.filter(pa.array(is_any))


def join_metrics(dimensions: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
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
    return sort_by_time(keys)


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
        table = table.append_column(field.name, pa.array(values, ARROW_TYPES[field.kind], mask=mask))
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
