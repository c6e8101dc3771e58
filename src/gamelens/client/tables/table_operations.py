"""Answers as Arrow tables: their columns, and how they are concatenated, sorted, grouped, summed and cut.

A table has `timestamp` (timestamp[us, UTC], the start of the bucket), each dimension as a string column that keeps
null, counts as int64 and numbers as float64.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import CATALOG, MONEY_DIGITS, Catalog, Metric, Quotient
from gamelens.errors import ServiceError
from gamelens.formulas import Formula

TIMESTAMP: Final = "timestamp"
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
OTHER: Final = "(other)"
ARROW_TYPES: Final = {"count": pa.int64(), "number": pa.float64()}
_MOST_CODES: Final = 2**62
_MOST_COUNT: Final = 2**63 - 1
_TOLERANCE: Final = 1e-9  # relative: a sum made in another order differs in its last digits


def schema(metric: str, dimensions: Sequence[str], catalog: Catalog = CATALOG) -> pa.Schema:
    """Return the columns of *metric* by *dimensions*, as far as *catalog* knows its fields.

    A row has one value per name: a field with the name of a requested dimension is left out.
    """
    known = catalog.find(metric)
    fields = [field for field in known.fields if field.name not in dimensions] if known is not None else []
    return pa.schema(
        [
            (TIMESTAMP, TIMESTAMP_TYPE),
            *((name, pa.string()) for name in dimensions),
            *((field.name, ARROW_TYPES[field.kind]) for field in fields),
        ]
    )


def from_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Build a table of *rows* with the columns of *schema*."""
    try:
        return pa.Table.from_pylist([dict(row) for row in rows], schema)
    except OverflowError:
        raise too_large_error() from None


def concatenate(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate *tables*.

    The columns of *schema* come first, additional ones after them.
    """
    tables = [schema.empty_table(), *tables]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:  # an unknown field has one type in one answer and another in the next
        table = pa.concat_tables([with_text_columns(table, schema) for table in tables], promote_options="permissive")
    return table.select([*schema.names, *(name for name in table.column_names if name not in schema.names)])


def with_text_columns(table: pa.Table, expected: pa.Schema) -> pa.Table:
    """Return *table* with every column that is not in *expected* as text."""
    for position, name in enumerate(table.column_names):
        if name not in expected.names:
            table = table.set_column(position, name, text_column(table[name].to_pylist()))
    return table


def text_column(values: Iterable[Any]) -> pa.Array:
    """Return strings as they are and other values as JSON."""
    texts = (
        value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
    )
    return pa.array(list(texts), pa.string())


def sort_by_time(table: pa.Table) -> pa.Table:
    """Sort *table* by timestamp.

    Rows of one bucket keep their order.
    """
    moments = _micros(table)
    return table if np.all(moments[1:] >= moments[:-1]) else table.take(np.argsort(moments, kind="stable"))


def sort_as_service(table: pa.Table, metric: str, dimensions: Sequence[str], catalog: Catalog = CATALOG) -> pa.Table:
    """Sort *table* as the service does.

    By bucket, then the metric's own field descending, then dimensions, nulls last. Wire 2.10, Row order.
    """
    known = catalog.find(metric)
    main = known.sorts_by if known is not None else None
    keys = [(TIMESTAMP, "ascending"), *([(main, "descending")] if main else [])]
    keys += [(name, "ascending") for name in dimensions]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def sort_largest_first(table: pa.Table, metric: str, dimensions: Sequence[str]) -> pa.Table:
    """Sort *table* as the service does, unless each bucket has its largest rows first.

    *table* must be sorted by time. A service may order the rows of a bucket as it likes.
    """
    known = CATALOG.find(metric)
    main = known.sorts_by if known is not None else None
    if main is None or not len(table):
        return table
    is_count = pa.types.is_integer(table[main].type)  # a float would not have all digits of a count
    values = np.asarray(pc.fill_null(table[main], -_MOST_COUNT if is_count else -math.inf))
    moments = _micros(table)
    is_larger = (moments[1:] == moments[:-1]) & (values[1:] > values[:-1])
    return sort_as_service(table, metric, dimensions) if np.any(is_larger) else table


def sort_into_buckets(table: pa.Table, starts: Sequence[int]) -> tuple[pa.Table, list[tuple[int, int]]]:
    """Sort *table* by timestamp (stable) and return each bucket's first row and row count.

    *starts* are the bucket starts in microseconds since 1970.

    Raises:
        ValueError: two are equal, or a row has a timestamp that is not among them.
    """
    moments: Any = table[TIMESTAMP].cast(TIMESTAMP_TYPE).cast(pa.int64())
    if moments.null_count or len(set(starts)) < len(starts):
        raise ValueError("a row has no timestamp, or two bucket slices have the same")
    moments = np.asarray(moments)
    if np.any(moments[1:] < moments[:-1]):
        order = np.argsort(moments, kind="stable")
        table, moments = table.take(order), moments[order]
    columns = [column.tolist() for column in np.unique(moments, return_index=True, return_counts=True)]
    ranges = {bucket_start: (first, rows) for bucket_start, first, rows in zip(*columns, strict=True)}
    if unknown := ranges.keys() - set(starts):
        raise ValueError(f"{len(unknown)} timestamps of rows belong to no bucket slice")
    return table, [ranges.get(bucket_start, (0, 0)) for bucket_start in starts]


def bucket_starts(table: pa.Table) -> set[datetime]:
    """Return the bucket starts that have rows in *table*."""
    return set(pc.unique(table[TIMESTAMP]).to_pylist())


def drop_buckets(table: pa.Table, starts: Iterable[datetime]) -> pa.Table:
    """Drop the rows of the buckets that begin at *starts*."""
    return table.filter(pc.invert(pc.is_in(table[TIMESTAMP], value_set=pa.array(list(starts), TIMESTAMP_TYPE))))


def largest_bucket_size(table: pa.Table) -> int:
    """Return the row count of the largest bucket. *table* must be sorted by time."""
    return int(_ranks_in_bucket(_micros(table)).max()) + 1 if len(table) else 0


def full_buckets(table: pa.Table, top: int, within: Sequence[str] = ()) -> set[datetime]:
    """Return the starts of the buckets with at least *top* rows of one value of *within*.

    They may have had more.
    """
    counts = table.group_by([TIMESTAMP, *within]).aggregate([([], "count_all")])
    return bucket_starts(counts.filter(pc.greater_equal(counts["count_all"], top)))


def top_per_bucket(table: pa.Table, top: int, within: Sequence[str] = ()) -> pa.Table:
    """Return the first *top* rows of each bucket, and of each value of *within* in it.

    *table* must be sorted by time.
    """
    if not within:
        return table.filter(pa.array(_ranks_in_bucket(_micros(table)) < top))
    places = row_codes(table, [TIMESTAMP, *within])
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(table), dtype="int64")
    ranks[order] = _ranks_in_bucket(places[order])
    return table.filter(pa.array(ranks < top))


def drop_zero_rows(table: pa.Table, metric: str, catalog: Catalog = CATALOG) -> pa.Table:
    """Drop rows whose counts are all 0, as the service does in grouped answers.

    Of a table without counts they are the rows without money.
    """
    known = catalog.find(metric)
    fields = [field for field in known.fields if field.name in table.column_names] if known is not None else []
    zeros = [field.name for field in fields if field.kind == "count"]
    zeros = zeros or [field.name for field in fields if field.combines == "sum"]
    if not zeros or not len(table):
        return table
    return table.filter(pa.array(np.any([null_as_zero(table[name]) != 0 for name in zeros], axis=0)))


def add_constant_columns(table: pa.Table, constants: Iterable[tuple[str, str | None]]) -> pa.Table:
    """Append a column of one value for each name and value in *constants*."""
    for name, value in constants:
        table = table.append_column(pa.field(name, pa.string()), pa.repeat(pa.scalar(value, pa.string()), len(table)))
    return table


def add_lookup_column(table: pa.Table, name: str, by: str, lookup: Mapping[str, str | None], position: int) -> pa.Table:
    """Insert a column *name* that maps each value of the column *by* with *lookup*."""
    values = pc.unique(table[by])
    texts = pa.array([lookup.get(value or "") for value in values.to_pylist()], pa.string())
    return table.add_column(position, name, texts.take(pc.index_in(table[by], value_set=values)))


def order_columns(table: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """Order the columns as in a frame: timestamp, *dimensions*, fields."""
    fields = [name for name in table.column_names if name != TIMESTAMP and name not in dimensions]
    return table.select([TIMESTAMP, *dimensions, *fields])


def summable_fields(metric: Metric) -> list[str]:
    """Return the fields of *metric* that can be summed over rows."""
    return [field.name for field in metric.fields if field.combines == "sum"]


def sum_split_buckets(
    metric: Metric, dimensions: Sequence[str], table: pa.Table, bucket_start: datetime | None
) -> pa.Table:
    """Sum rows of the same bucket and dimension values, largest first.

    *bucket_start* replaces the timestamps if one bucket is the whole interval. A field that the catalog does not know
    cannot be summed and is dropped.
    """
    if bucket_start is not None:
        table = table.set_column(0, TIMESTAMP, pa.repeat(pa.scalar(bucket_start, TIMESTAMP_TYPE), len(table)))
    keys, (places,) = group_rows([table], [TIMESTAMP, *dimensions])
    sums = {name: sum_groups(values, places, len(keys)) for name, values in _summable_values(metric, table).items()}
    return sort_as_service(add_metric_fields(metric, keys, sums), metric.name, dimensions)


def other_rows(
    metric: Metric, dimensions: Sequence[str], total: pa.Table, shown: pa.Table, within: Sequence[str] = ()
) -> pa.Table:
    """Return a row `(other)` per bucket and *within*: *total* less the rows *shown*.

    *total* has the dimensions *within*. There is no row if the difference is within rounding: half a cent for each row,
    as the service rounds cents, and the last digits of a number.
    """
    keys, places = group_rows([total, shown], [TIMESTAMP, *within])
    everywhere, is_any = np.concatenate(places), np.zeros(len(keys), dtype="bool")
    sums = {}
    cents = [ratio.part for _, ratio in metric.rounded_money]
    shown_values = _summable_values(metric, shown)
    for name, totals in _summable_values(metric, total).items():
        rest = sum_groups(np.append(totals, -shown_values[name]), everywhere, len(keys))
        if rest.dtype != np.int64:
            rest[np.abs(rest) <= _TOLERANCE * sum_groups(np.abs(totals), places[0], len(keys))] = 0
        rounded = 0.5 if name in cents else 0.0
        is_any |= np.abs(rest) > rounded * np.bincount(everywhere, minlength=len(keys))
        sums[name] = rest
    ranked = [(name, OTHER) for name in dimensions if name not in within]
    means = [name for name in sums if pa.types.is_floating(total[name].type)]
    rows = add_metric_fields(metric, add_constant_columns(keys, ranked), sums, means=means)
    return order_columns(rows.filter(pa.array(is_any)), dimensions)


def group_rows(tables: Sequence[pa.Table], keys: Sequence[str]) -> tuple[pa.Table, list[NDArray[Any]]]:
    """Return the distinct rows of *keys* in all tables, and the group of each table's rows.

    Groups are in order of appearance.
    """
    stacked = pa.concat_tables([table.select(keys) for table in tables])
    codes = row_codes(stacked, keys)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype="int64")
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in tables])
    return stacked.take(pa.array(first[order])), np.split(rank[inverse], ends[:-1])


def row_codes(table: pa.Table, names: Collection[str]) -> NDArray[np.int64]:
    """Return an integer for each row, the same for rows with the same values of *names*."""
    codes, most = np.zeros(len(table), dtype="int64"), 1
    for name in names:
        encoded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        size = max(1, len(encoded.dictionary))
        if most * size > _MOST_CODES:
            codes, most = np.unique(codes, return_inverse=True)[1], max(1, len(codes))
        codes, most = codes * size + np.asarray(encoded.indices), most * size
    return codes


def sum_groups(values: NDArray[Any], places: NDArray[Any], size: int) -> NDArray[Any]:
    """Sum *values* for each of *size* groups: counts exactly, numbers rounded once.

    Raises:
        ServiceError: counts add up to more than a column holds.
    """
    if values.dtype == np.int64:
        total = np.zeros(size, dtype="int64")
        np.add.at(total, places, values)
        if np.abs(values.astype("float64")).sum() > _MOST_COUNT // 2:  # it may have wrapped around
            exact = [0] * size
            for place, value in zip(places.tolist(), values.tolist(), strict=True):
                exact[place] += value
            if exact != total.tolist():
                raise too_large_error()
        return total
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=size))
    parts = np.split(values[order], ends[:-1]) if size else []
    return np.array([math.fsum(part) for part in parts], dtype="float64")


def _summable_values(metric: Metric, table: pa.Table) -> dict[str, NDArray[Any]]:
    """Return the values of the fields of *metric* that can be summed, 0 for null, and money before it was rounded."""
    values = {name: null_as_zero(table[name]) for name in summable_fields(metric)}
    for name, ratio in metric.rounded_money:
        columns = (values[ratio.part].tolist(), null_as_zero(table[name]).tolist(), values[ratio.whole].tolist())
        rows = zip(*columns, strict=True)
        values[ratio.part] = np.array([ratio.unrounded(*row) for row in rows], dtype="float64")
    return values


def add_metric_fields(
    metric: Metric,
    table: pa.Table,
    sums: Mapping[str, NDArray[Any]],
    unknown: Mapping[str, NDArray[Any]] | None = None,
    means: Collection[str] = (),
) -> pa.Table:
    """Append the fields of *metric*: sums, and quotients and formulas of sums, null where anything is divided by 0.

    *unknown* has a mask for each sum that is not known in all rows: the sum and its quotients are null there. The
    *means* among the sums are floats, whatever they count.
    """
    unknown = unknown or {}
    for field in metric.fields:
        values, mask = sums.get(field.name), unknown.get(field.name)
        if isinstance(made := field.combines, Quotient | Formula):
            with np.errstate(all="ignore"):
                values = made.value({name: sums[name].astype("float64") for name in made.names}, divide)
            mask = np.any([~np.isfinite(values), *(unknown[name] for name in made.names if name in unknown)], axis=0)
        elif field.kind == "count" and values is not None and values.dtype != np.int64 and field.name not in means:
            values = np.rint(np.round(values, MONEY_DIGITS))
            if np.any(np.abs(values) > _MOST_COUNT):
                raise too_large_error()
            values = values.astype("int64")
        if values is None:
            values, mask = np.full(len(table), math.nan), np.full(len(table), True)
        kind = "number" if field.name in means else field.kind
        table = table.append_column(field.name, pa.array(values, ARROW_TYPES[kind], mask=mask))
    return table


def divide(above: Any, below: Any) -> Any:
    """Return *above* / *below*, numbers or arrays, NaN where *below* is 0."""
    is_zero = np.equal(below, 0)
    return np.where(is_zero, math.nan, above / np.where(is_zero, 1, below))


def too_large_error() -> ServiceError:
    """Return the error for counts whose sum no column can hold."""
    rule = f"counts that add up to more than {_MOST_COUNT:,}, the largest that there can be"
    return ServiceError(200, f"{rule}: check the service, or query smaller buckets")


def null_as_zero(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the values of *column* with 0 for null."""
    return np.asarray(pc.fill_null(column, 0))


def _micros(table: pa.Table) -> NDArray[Any]:
    return np.asarray(table[TIMESTAMP].cast(pa.int64()))


def _ranks_in_bucket(moments: NDArray[Any]) -> NDArray[Any]:
    """Return the position of each row in its bucket. Rows of one bucket must be adjacent."""
    starts = (
        np.flatnonzero(np.concatenate([[True], moments[1:] != moments[:-1]])) if len(moments) else np.array([], int)
    )
    lengths = np.diff(np.append(starts, len(moments)))
    return np.arange(len(moments)) - np.repeat(starts, lengths)
