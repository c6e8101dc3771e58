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
    says_total = {name: _matches(cells.column(name), _TOTAL) for name in cells.column_names}
    of_keys = {name: cells.column(name) for name in keys}
    is_empty = {name: column.is_null().to_numpy() | _matches(column, _NO_VALUE) for name, column in of_keys.items()}
    mask: NDArray[np.bool_] = np.any([*says_total.values()], axis=0)
    mask &= np.any([says_total[name] | is_empty[name] for name in keys], axis=0)
    if cells.num_rows > 2 and not mask.any() and all(is_empty[name][-1] for name in keys):
        mask[-1] = any(map(_ends_with_sum, cells.columns))
    return mask


def _matches(column: Any, pattern: str) -> NDArray[np.bool_]:
    """Return a mask of the texts that *pattern* matches, of which a column of another type has none."""
    if not pa.types.is_string(column.type):
        return np.zeros(len(column), dtype=bool)
    found: NDArray[np.bool_] = pc.fill_null(pc.match_substring_regex(column, pattern), False).to_numpy()
    return found


def _ends_with_sum(column: Any) -> bool:
    """Return whether the last cell of a column of numbers, or of texts that hold one each, adds up those above it.

    A column that is 0 above it is not evidence.
    """
    if pa.types.is_string(column.type):
        bare = pc.replace_substring_regex(column, pattern=r"[^\d.\-]", replacement="")
        column = pc.if_else(pc.equal(bare, ""), None, bare)
        if not pc.all(pc.match_substring_regex(column, r"^-?\d*\.?\d+$")).as_py():
            return False
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return False
    numbers = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    above, last = numbers[:-1], numbers[-1]
    return bool(np.any(above) and abs(np.nansum(above) - last) <= _ROUNDING * abs(last))
