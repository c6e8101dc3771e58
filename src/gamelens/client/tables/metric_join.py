"""The rows of several metrics side by side, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import ALIASES, find_metric
from gamelens.client.tables.table_operations import group_rows, sort_by_time, summable_fields
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE
from gamelens.errors import ServiceError

MOST_ROWS: Final = 1_000_000
"""Rows up to which buckets without any row are filled."""


class MetricRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one metric of a query.

    Attributes:
        metric: its name.
        table: its rows.
        unknown: starts of the buckets in which a row that is not there may have a value all the same: a request failed,
            or `top` left it out.
    """

    metric: str
    table: pa.Table
    unknown: Collection[datetime] = ()


def join_metrics(
    dimensions: Sequence[str], metrics: Sequence[MetricRows], buckets: Sequence[datetime] = ()
) -> tuple[pa.Table, dict[str, int]]:
    """Return the rows of all *metrics* joined on timestamp and *dimensions*.

    The second value is the number of rows of each metric that were filled: the service leaves out rows without events,
    of which counts and money are 0, means and ratios null. A field that two metrics have is prefixed with its metric,
    unless both are aliases, whose fields mean the same.

    Args:
        dimensions: the dimensions of the rows.
        metrics: the rows of each metric.
        buckets: starts of the buckets in which every value of the dimensions gets a row, up to `MOST_ROWS` in all.

    Raises:
        ServiceError: a metric has two rows of the same bucket and dimension values.
    """
    keys, places = group_rows([rows.table for rows in metrics], [TIMESTAMP, *dimensions])
    keys = _with_all_buckets(keys, dimensions, buckets)
    joined, filled, is_known = keys, dict[str, int](), np.zeros(len(keys), dtype="bool")
    for rows, names, place in zip(metrics, _column_names(dimensions, metrics), places, strict=True):
        row_of_key = np.full(len(keys), -1, dtype="int64")
        row_of_key[place] = np.arange(len(place))
        is_present = row_of_key >= 0
        if np.count_nonzero(is_present) != len(place):
            raise ServiceError(200, "two rows of the same bucket and values")
        taken = rows.table.take(pa.array(row_of_key, mask=~is_present))
        known = find_metric(rows.metric)
        zeros = summable_fields(known) if known is not None else []
        is_zero = ~is_present & ~_in_buckets(keys, rows.unknown) & bool(zeros)
        for name, column in names.items():
            values = taken[name]
            if name in zeros:
                values = pc.if_else(pa.array(is_zero), pa.scalar(0, values.type), values)
            joined = _with_column(joined, column, values)
        is_known |= is_present | is_zero
        if is_zero.any():
            filled[rows.metric] = int(np.count_nonzero(is_zero))
    return sort_by_time(joined.filter(pa.array(is_known))), filled


def _column_names(dimensions: Sequence[str], metrics: Sequence[MetricRows]) -> list[dict[str, str]]:
    """Return the column of each field, for each of *metrics*."""
    keys = {TIMESTAMP, *dimensions}
    fields = [[name for name in rows.table.column_names if name not in keys] for rows in metrics]
    counts = Counter(name for own_fields in fields for name in own_fields)
    return [
        {name: f"{rows.metric}_{name}" if counts[name] > 1 and rows.metric not in ALIASES else name for name in own}
        for rows, own in zip(metrics, fields, strict=True)
    ]


def _with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    """Return *table* with the column *name*.

    Nulls are replaced where another alias has brought the column already.
    """
    if name not in table.column_names:
        return table.append_column(name, values)
    position = table.column_names.index(name)
    return table.set_column(position, name, pc.coalesce(table[name], values))


def _with_all_buckets(keys: pa.Table, dimensions: Sequence[str], buckets: Sequence[datetime]) -> pa.Table:
    """Return *keys* with a row for each of its values in each of *buckets*, the new rows last."""
    if not buckets:
        return keys
    starts = np.array([start.replace(tzinfo=None) for start in sorted(buckets)], dtype="datetime64[us]").view("int64")
    groups, codes = keys.select(dimensions), np.zeros(len(keys), dtype="int64")
    if dimensions:
        groups, (codes,) = group_rows([groups], dimensions)
    number = len(groups) if dimensions else 1
    if number * len(starts) > MOST_ROWS:
        return keys
    moments = np.asarray(keys[TIMESTAMP].cast(pa.int64()))
    is_inside = np.isin(moments, starts)
    taken = codes[is_inside] * len(starts) + np.searchsorted(starts, moments[is_inside])
    group, bucket = np.divmod(np.setdiff1d(np.arange(number * len(starts)), taken), len(starts))
    new = pa.table({TIMESTAMP: pa.array(starts[bucket]).cast(TIMESTAMP_TYPE)})
    for name in dimensions:
        new = new.append_column(name, groups[name].take(pa.array(group)))
    return pa.concat_tables([keys, new])


def _in_buckets(keys: pa.Table, starts: Collection[datetime]) -> NDArray[Any]:
    return np.asarray(pc.is_in(keys[TIMESTAMP], value_set=pa.array(list(starts), TIMESTAMP_TYPE)))
