"""What the service said otherwise the second time: old and new rows of one bucket compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import METRICS
from gamelens.client.tables.table_schema import TIMESTAMP
from gamelens.wire.intervals import Interval

_TOLERANCE: Final = 1e-9  # relative: a sum made in another order differs in its last digits and says nothing new


class FieldChange(msgspec.Struct, frozen=True):
    """One numeric field, summed over all rows before and after; None where its values cannot be added."""

    field: str
    before: int | float | None
    after: int | float | None


class Restatement(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket whose rows changed between two answers.

    *before_as_of* and *as_of* are the ends of what was available when the old and the new rows were asked for;
    *rows_changed* counts rows that came, went or have another value.
    """

    metric: str
    dimensions: tuple[str, ...]
    text: str
    interval: Interval
    stamp: datetime
    before_as_of: datetime
    as_of: datetime
    rows_changed: int
    fields: tuple[FieldChange, ...]
    noticed_at: datetime


def rows_changed(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> int:
    """How many rows differ, told apart by *dimensions*, in whatever order they come.

    Only fields that both tables have are looked at: one that a newer service sends besides restates nothing.
    """
    fields = _fields(old, new, dimensions)
    columns = [name for name in (*dimensions, *fields) if name in old.column_names and name in new.column_names]
    if old.select(columns).equals(new.select(columns)):
        return 0
    before, after = _by_key(old, dimensions, fields), _by_key(new, dimensions, fields)
    pairs = ((before.get(key, []), after.get(key, [])) for key in before.keys() | after.keys())
    return sum(not _is_same(*rows) for pair in pairs for rows in zip_longest(*pair))


def field_changes(
    metric: str, old: pa.Table, new: pa.Table, dimensions: Sequence[str], *, adds_up: bool
) -> tuple[FieldChange, ...]:
    """Totals before and after of each numeric field.

    A field is totalled where rows add up, but for what the catalog knows to be a mean or a ratio; without dimensions
    there is nothing to add, and every field is.
    """
    found = []
    for name in _fields(old, new, dimensions):
        types = [table.schema.field(name).type for table in (old, new) if name in table.column_names]
        if all(pa.types.is_integer(it) or pa.types.is_floating(it) or pa.types.is_null(it) for it in types):
            has_total = not dimensions or (adds_up and _is_summed(metric, name))
            least = 0 if adds_up and _is_summed(metric, name) else 1
            before, after = (_total(table, name, least) if has_total else None for table in (old, new))
            found.append(FieldChange(name, before, after))
    return tuple(found)


def _fields(old: pa.Table, new: pa.Table, dimensions: Sequence[str]) -> list[str]:
    """Fields of both; a table without rows says nothing about its fields, and so those of the other."""
    shown = [table.column_names for table in (new, old) if len(table)] or [new.column_names]
    return [
        name for name in shown[0] if name != TIMESTAMP and name not in dimensions and all(name in it for it in shown)
    ]


def _by_key(
    table: pa.Table, dimensions: Sequence[str], fields: Sequence[str]
) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    rows: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, row in zip(_tuples(table, dimensions), _tuples(table, fields), strict=True):
        rows.setdefault(key, []).append(row)
    return rows


def _tuples(table: pa.Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """The rows of the columns *names*; one that is missing holds nothing."""
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


def _is_summed(metric: str, field: str) -> bool:
    known = {it.name: it.combines for it in METRICS[metric].fields} if metric in METRICS else {}
    return known.get(field, "sum") == "sum"


def _total(table: pa.Table, name: str, least: int) -> int | float | None:
    if name not in table.column_names:
        return 0 if not least else None
    total: int | float | None = pc.sum(table[name], min_count=least).as_py()
    return total
