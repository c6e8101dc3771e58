"""Differences between the old and the new rows of one bucket."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import CATALOG, Catalog
from gamelens.client.tables.table_operations import TIMESTAMP
from gamelens.errors import suggests_names
from gamelens.wire.intervals import Interval

_TOLERANCE: Final = 1e-9  # relative: a sum in another order differs in its last digits only


@suggests_names
class FieldChange(msgspec.Struct, frozen=True):
    """The total of one numeric field before and after.

    None if its values cannot be added.
    """

    field: str
    before: int | float | None
    after: int | float | None


@suggests_names
class Restatement(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket whose rows changed between two answers.

    Attributes:
        metric, dimensions, text: the query, as in `CacheKey`.
        interval: the bucket, or the requested part of it.
        bucket_start: the start of the bucket.
        before_as_of, as_of: ends of the available interval when the old and the new rows were requested.
        rows_changed: rows that were added, removed or have another value.
        fields: totals before and after of each numeric field.
        noticed_at: the time of the comparison.
    """

    metric: str
    dimensions: tuple[str, ...]
    text: str
    interval: Interval
    bucket_start: datetime = msgspec.field(name="stamp")  # the stored name
    before_as_of: datetime
    as_of: datetime
    rows_changed: int
    fields: tuple[FieldChange, ...]
    noticed_at: datetime


def rows_changed(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> int:
    """Return the number of rows that differ, matched by *dimensions*, in any order.

    Only fields of both tables are compared: a field that a newer service adds restates nothing.
    """
    fields = _fields(old, new, dimensions)
    columns = [name for name in (*dimensions, *fields) if name in old.column_names and name in new.column_names]
    if old.select(columns).equals(new.select(columns)):
        return 0
    before, after = _by_key(old, dimensions, fields), _by_key(new, dimensions, fields)
    pairs = ((before.get(key, []), after.get(key, [])) for key in before.keys() | after.keys())
    return sum(not _is_same(*rows) for pair in pairs for rows in zip_longest(*pair))


def field_changes(
    metric: str,
    old: pa.Table,
    new: pa.Table,
    dimensions: Sequence[str],
    *,
    adds_up: bool,
    catalog: Catalog = CATALOG,
) -> tuple[FieldChange, ...]:
    """Return the totals before and after of each numeric field.

    A field has totals if rows add up and the catalog does not list it as a mean or a ratio. Without dimensions there is
    one row per bucket, and every field has them.
    """
    changes = []
    for name in _fields(old, new, dimensions):
        types = [table.schema.field(name).type for table in (old, new) if name in table.column_names]
        if all(pa.types.is_integer(item) or pa.types.is_floating(item) or pa.types.is_null(item) for item in types):
            is_summed = adds_up and _is_summed(metric, name, catalog)
            has_total = not dimensions or is_summed
            min_count = 0 if is_summed else 1
            before, after = (_total(table, name, min_count) if has_total else None for table in (old, new))
            changes.append(FieldChange(name, before, after))
    return tuple(changes)


def _fields(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> list[str]:
    """Return the fields of both tables.

    A table without rows has any field.
    """
    tables_with_rows = [table.column_names for table in (new, old) if len(table)] or [new.column_names]
    return [
        name
        for name in tables_with_rows[0]
        if name != TIMESTAMP and name not in dimensions and all(name in item for item in tables_with_rows)
    ]


def _by_key(
    table: pa.Table, dimensions: Sequence[str], fields: Sequence[str]
) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Return the rows of *table*, restricted to *fields*, by their dimension values."""
    rows: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, row in zip(_tuples(table, dimensions), _tuples(table, fields), strict=True):
        rows.setdefault(key, []).append(row)
    return rows


def _tuples(table: pa.Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return the rows of the columns *names*.

    A missing column holds None.
    """
    columns = [table[name].to_pylist() if name in table.column_names else [None] * len(table) for name in names]
    return zip(*columns, strict=True) if columns else [()] * len(table)


def _is_same(old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> bool:
    if old is None or new is None:
        return False
    return old == new or all(_is_close(*values) for values in zip(old, new, strict=True))


def _is_close(old: Any, new: Any) -> bool:
    numbers = isinstance(old, float | int) and isinstance(new, float | int)
    if numbers and (isinstance(old, float) or isinstance(new, float)):
        return math.isclose(old, new, rel_tol=_TOLERANCE) or (math.isnan(old) and math.isnan(new))
    return bool(old == new)


def _is_summed(metric: str, field: str, catalog: Catalog) -> bool:
    known = catalog.find(metric)
    combines = {item.name: item.combines for item in known.fields} if known is not None else {}
    return combines.get(field, "sum") == "sum"


def _total(table: pa.Table, name: str, min_count: int) -> int | float | None:
    if name not in table.column_names:
        return 0 if not min_count else None
    if pa.types.is_integer(table[name].type):  # Arrow's own sum of counts may wrap around
        counts = [value for value in table[name].to_pylist() if value is not None]
        return sum(counts) if len(counts) >= min_count else None
    total: float | None = pc.sum(table[name], min_count=min_count).as_py()
    return total
