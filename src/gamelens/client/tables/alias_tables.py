"""Rows of an alias, computed from the rows of the metrics it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.catalog import Alias
from gamelens.client.tables.table_operations import (
    add_metric_fields,
    group_rows,
    null_as_zero,
    sort_as_service,
    sum_groups,
)
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE


class SourceRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one of the metrics that an alias is made of.

    Attributes:
        table: the rows, with the timestamps of their own buckets.
        buckets: the bucket of the alias that each of those buckets lies in, by its start.
        missing: starts of the buckets that a request failed for.
    """

    table: pa.Table
    buckets: Mapping[datetime, datetime]
    missing: Collection[datetime]

    @property
    def in_buckets(self) -> pa.Table:
        """The rows with the timestamps of the alias."""
        encoded = self.table[TIMESTAMP].combine_chunks().dictionary_encode()
        starts = [self.buckets.get(start, start) for start in encoded.dictionary.to_pylist()]
        return self.table.set_column(0, TIMESTAMP, pa.array(starts, TIMESTAMP_TYPE).take(encoded.indices))

    @property
    def incomplete(self) -> set[datetime]:
        """The buckets of the alias that hold a missing one."""
        return {self.buckets.get(start, start) for start in self.missing}

    @property
    def is_finer(self) -> bool:
        """Whether several of its buckets lie in one of the alias."""
        return len(set(self.buckets.values())) < len(self.buckets)


def alias_table(alias: Alias, dimensions: Sequence[str], sources: Sequence[SourceRows]) -> pa.Table:
    """Return the rows of *alias* by *dimensions*, in the order of the service.

    A row that a source does not have counts as 0 in it, since the service leaves out rows without events. Where a
    request of the source failed the row is null in its fields, and in the quotients of them.

    Args:
        alias: the alias.
        dimensions: the dimensions of the rows.
        sources: the rows of each of its `sources`.
    """
    keys, places = group_rows([source.in_buckets for source in sources], [TIMESTAMP, *dimensions])
    sums: dict[str, NDArray[Any]] = {}
    unknown: dict[str, NDArray[Any]] = {}
    for name, part in alias.parts.items():
        position = alias.sources.index((part.metric, part.every))
        source, place = sources[position], places[position]
        sums[name] = sum_groups(null_as_zero(source.table[part.field]), place, len(keys))
        if part.is_mean:
            lengths = Counter(source.buckets.values())
            sums[name] = sums[name] / np.array([max(1, lengths[start]) for start in keys[TIMESTAMP].to_pylist()] or [1])
        is_cut = np.asarray(pc.is_in(keys[TIMESTAMP], value_set=pa.array(source.incomplete, TIMESTAMP_TYPE)))
        is_absent = np.bincount(place, minlength=len(keys)) == 0
        unknown[name] = is_cut & (is_absent | source.is_finer)
    table = sort_as_service(add_metric_fields(alias, keys, sums, unknown), alias.name, dimensions)
    return table.filter(pc.invert(_all_null(table, list(alias.parts))))


def _all_null(table: pa.Table, names: Sequence[str]) -> Any:
    """Return a mask of the rows without any value in the columns *names*."""
    is_null = pc.is_null(table[names[0]])
    for name in names[1:]:
        is_null = pc.and_(is_null, pc.is_null(table[name]))
    return is_null
