"""Rows of an outside table that add up others, and would count everything twice.

A total word alone, or followed by a colon, "of" or a number, is enough. A word at one end of a name, a word for the
whole, or an empty key counts only if a number of the row is the sum of the rows that agree in all other keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, SUMMANDS, TIMES, TOTAL, ColumnCells, Meaning

_NO_VALUE: Final = re.compile(r"\W*")
_AT_ONE_END: Final = re.compile(
    r"(?i)(?:sub)?totals?\b.*|.*\b(?:sub)?totals?\W*|.*\b(?:sum|summe|gesamt|totale|合計|итого)\W*|(?:summe|gesamt|total)\b.*"
)
_WHOLE: Final = re.compile(
    r"(?i)\W*(?:all|overall|any|everything|worldwide|world|global|rest of world and all|weltweit|monde|mundo|mundial"
    r"|all (?:countries|regions|territories|campaigns|networks|sources|apps|channels|platforms|formats).*"
    r"|alle.*|tous.*|toutes.*|todos.*|todas.*|tutti.*|全部|全体|すべて|全世界|전체|все|весь мир)\W*"
)
_ROUNDING: Final = 0.005  # of a sum of rounded rows
_FEWEST: Final = 2  # rows that a sum adds up


class TotalRows(NamedTuple):
    """The rows that add up others, and the columns whose whole is larger than its parts, with its name."""

    mask: NDArray[np.bool_]
    larger: Mapping[str, str]


def find_totals(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> TotalRows:
    """Return the rows of *grid* that add up others."""
    names = _naming_columns(grid, meanings, cells)
    keys = [name for name in names if meanings[name].role in KEYS | TIMES or name == grid.columns[0]]
    mask = np.zeros(len(grid.rows), dtype=bool)
    for name in names:
        mask |= _matches(cells[name], TOTAL)
    larger: dict[str, str] = {}
    has_word = mask.copy()
    suspects: dict[str, NDArray[np.bool_]] = {}  # rows that may add up others, by the column that says so
    for name in names:
        words = _matches(cells[name], _AT_ONE_END) | _matches(cells[name], _WHOLE)
        has_word |= words
        suspects[name] = words | (cells[name].codes < 0) | _matches(cells[name], _NO_VALUE)
    suspects = {name: rows for name, rows in suspects.items() if rows.any()}
    if len(grid.rows) <= _FEWEST or not suspects:
        return TotalRows(mask, larger)
    summands = {name: _numbers(cells[name]) for name, meaning in meanings.items() if meaning.role in SUMMANDS}
    table = DataFrame({name: cells[name].codes for name in keys}, index=range(len(mask)))
    bits = np.zeros(len(mask), dtype="int64")
    for place, rows in enumerate(suspects.values()):
        bits |= rows.astype("int64") << min(place, 62)
    patterns = np.unique(bits)
    for pattern in sorted(patterns[patterns > 0].tolist(), key=int.bit_count):
        said = [name for place, name in enumerate(suspects) if pattern >> place & 1]
        rows = (bits == pattern) & ~mask
        parts = (bits & ~pattern == 0) & (bits != pattern) & ~mask
        by = [name for name in keys if name not in said]
        group = np.zeros(len(mask), dtype="int64")
        if by:
            group = table.groupby(by, sort=False).ngroup().to_numpy(dtype="int64")
        confirmed, is_larger, is_comparable = _compare(group, rows, parts, summands)
        if (is_comparable & ~confirmed & ~has_word).any():  # some rows without a name are no sum: so are the others
            confirmed &= has_word
        mask |= confirmed
        for name in said:
            whole = rows & ~confirmed & _matches(cells[name], _WHOLE) & is_larger
            if whole.any():
                larger[name] = cells[name].distinct[int(cells[name].codes[whole.argmax()])].as_py()
                mask |= whole
    return TotalRows(mask, larger)


def _naming_columns(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> list[str]:
    """Return the columns of names and days: keys, and the others before the first measure."""
    measures = [place for place, name in enumerate(grid.columns) if meanings[name].role in MEASURES]
    first = min(measures, default=len(grid.columns))
    return [
        name
        for place, name in enumerate(grid.columns)
        if not cells[name].is_typed or meanings[name].role in TIMES
        if meanings[name].role in KEYS | TIMES or (place < first and meanings[name].role in ("text", "identifier"))
    ]


def _compare(
    group: NDArray[np.int64],
    rows: NDArray[np.bool_],
    parts: NDArray[np.bool_],
    summands: Mapping[str, NDArray[np.float64]],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of *rows* are the sum of the *parts* of their group, which are larger, and which have several parts.

    A row that sums up a single other one counts if a row that sums up several does.
    """
    confirmed, larger, several, comparable = (np.zeros(len(rows), dtype=bool) for _ in range(4))
    for values in summands.values():
        known = parts & ~np.isnan(values)
        sums = np.bincount(group[known], values[known], minlength=group.max() + 1)[group]
        counts = np.bincount(group[known], minlength=group.max() + 1)[group]
        is_known = rows & ~np.isnan(values) & (values != 0) & (counts > 0)
        is_sum = is_known & (np.abs(values - sums) <= _ROUNDING * np.abs(values))
        confirmed |= is_sum
        several |= is_sum & (counts >= _FEWEST)
        comparable |= is_known & (counts >= _FEWEST)
        larger |= is_known & (values > sums) & (counts >= _FEWEST)
    return (confirmed if several.any() else several), larger, comparable


def _matches(own: ColumnCells, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    found = np.zeros(len(own.distinct) + 1, dtype=bool)  # the last for none
    found[[place for place, text in own.unlike_names.items() if pattern.fullmatch(text)]] = True
    return found[own.codes]


def _numbers(own: ColumnCells) -> NDArray[np.float64]:
    """Return the numbers of a column before the decimal mark is known for sure."""
    if own.is_typed:
        values: NDArray[np.float64] = own.values.to_numpy(dtype="float64", na_value=np.nan)
        return values
    fitting = own.numbers.fitting or (".",)
    values = own.numbers.values(fitting[0])
    return np.where(own.codes >= 0, values[own.codes], np.nan) if len(values) else np.full(len(own.codes), np.nan)


def note_of(totals: NDArray[np.bool_], grid: Grid) -> str:
    """Return the sentence about the rows left out."""
    rows = ", ".join(map(str, grid.rows[totals][:5])) + (", ..." if totals.sum() > 5 else "")
    words, verb = ("row", "adds up others and is") if totals.sum() == 1 else ("rows", "add up others and are")
    return f'{words} {rows} of {grid.source} {verb} left out; totals="keep" keeps them'


def filled_down(codes: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Return the places of texts with each empty cell filled from above, as a merged cell is exported.

    None where cells are not merged: none is empty, the first is, or fewer are empty than filled although one repeats.
    """
    empty = codes < 0
    if not empty.any() or len(codes) == 0 or empty[0]:
        return None
    return Series(np.where(empty, np.nan, codes)).ffill().to_numpy().astype("int32")


def are_merged(codes: NDArray[np.int32]) -> bool:
    """Return whether a column of names looks like merged cells: each name once, and as many empty cells as names."""
    empty = codes < 0
    names = codes[~empty]
    return (
        bool(len(codes))
        and not empty[0]
        and len(pd.unique(names)) == len(names) > 1
        and bool(empty.sum() >= len(names))
    )
