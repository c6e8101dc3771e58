"""Layout of an exported table: lines above its header, and rows of totals among its rows.

Ad platforms write a title, an account or a date range above the header, and totals below the rows. Read as data, a
total would count everything twice, so both are recognised, left out and reported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SEARCHED_ROWS: Final = 50
"""Rows at the top of a table among which the header is searched."""

_TWO_COLUMNS: Final = 2
_TOTAL: Final = (
    r"(?i)^\W*(?:(?:grand|sub|sub-|overall|report|campaign|account|all)?\s*totals?(?:\s*[:(–-].*)?"
    r"|sum|summe|gesamt(?:summe|ergebnis)?|insgesamt|total (?:g[ée]n[ée]ral|geral)|итого|всего|合計|总计|總計|합계)\W*$"
)
_NO_VALUE: Final = r"^\s*[-–—]*\s*$"
_ROUNDING: Final = 0.005  # of a total that no word names; the rows it adds up are rounded


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Return the place of the header among *rows*, 0 if nothing is above it.

    A line above a header has at most one filled cell, or fewer than half as many as the widest row. In a table of two
    columns it must also be shorter, because a header may leave a name out.
    """
    top = rows[:SEARCHED_ROWS]
    filled = [sum(cell not in (None, "") for cell in row) for row in top]
    widest, longest = max(filled, default=0), max(map(len, top), default=0)
    for place, cells in enumerate(filled):
        is_short = len(top[place]) < longest or widest > _TWO_COLUMNS
        if widest < _TWO_COLUMNS or not is_short or (cells > 1 and 2 * cells >= widest):
            return place
    return 0


def total_rows(cells: pa.Table, keys: Collection[str]) -> NDArray[np.bool_]:
    """Return a mask of the rows that add up others.

    A text of such a row says so, and a key says so or is empty. The last row is also one if all its keys are empty and
    one of its numbers is the sum of those above it.
    """
    texts = {name: cells.column(name) for name in cells.column_names if pa.types.is_string(cells.column(name).type)}
    says_total = {name: _matches(column, _TOTAL) for name, column in texts.items()}
    mask = np.zeros(cells.num_rows, dtype=bool)
    for says in says_total.values():
        mask |= says
    if mask.any():
        at_keys = np.zeros(cells.num_rows, dtype=bool)
        for name in keys:
            at_keys |= says_total.get(name, False) | _is_empty(cells.column(name))
        mask &= at_keys
    if cells.num_rows > 2 and not mask.any() and all(_is_empty(cells.column(name))[-1] for name in keys):
        mask[-1] = _adds_up(cells)
    return mask


def _adds_up(cells: pa.Table) -> bool:
    """Return whether a number of the last row is the sum of those above it.

    Columns that are 0 above it are not evidence.
    """
    numbers = [column for column in map(_numbers, cells.columns) if column is not None and np.any(column[:-1])]
    return any(abs(np.nansum(column[:-1]) - column[-1]) <= _ROUNDING * abs(column[-1]) for column in numbers)


def _numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column as numbers, NaN for empty cells, or None if it has any other text."""
    if pa.types.is_string(column.type):
        bare = pc.replace_substring_regex(column, pattern=r"[^\d.\-]", replacement="")
        column = pc.if_else(pc.equal(bare, ""), None, bare)
        if not pc.all(pc.match_substring_regex(column, r"^-?\d*\.?\d+$")).as_py():
            return None
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    numbers: NDArray[np.float64] = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    return numbers


def _is_empty(column: Any) -> NDArray[np.bool_]:
    """Return a mask of cells that are null, blank or dashes."""
    is_null: NDArray[np.bool_] = column.is_null().to_numpy()
    return is_null | _matches(column, _NO_VALUE) if pa.types.is_string(column.type) else is_null


def _matches(column: Any, pattern: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.fill_null(pc.match_substring_regex(column, pattern), False).to_numpy()
    return found
