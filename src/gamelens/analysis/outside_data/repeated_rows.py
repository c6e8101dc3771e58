"""Rows that a table holds twice, as an export that was pasted below itself does: what they add up would count twice.

A report has one row for each combination of names and days, so two that are alike in every cell are one row twice. In
a list of events, where this is usual, only a long block of rows that repeats another one is suspected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, SUMMANDS, TIMES, ColumnCells, Meaning
from gamelens.errors import BadQuery

_MIXED = np.uint64(0x9E3779B97F4A7C15)
_FEWEST = 2  # rows that are no chance, if they are so large a share of all, or stand in a row
_SHARE = 0.05
_LONG = 10  # rows of a block in a list of events
_DIFFERENT = 5  # of these
_MOST_EXPORTS = 3  # that hold the same day
_SHARE_OF_DAYS = 0.8  # of the rows of days that are there again, or of the rows that repeat others
_SHARE_OF_BLOCK = 0.4


def repeated_rows(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    tables: NDArray[np.int64],
    *,
    is_list: bool,
    last: bool = False,
) -> NDArray[np.bool_]:
    """Return which rows repeat an earlier one, or a later one if the *last* stays.

    Args:
        grid: the table.
        meanings: what its columns are.
        cells: their cells.
        tables: the number of the table that each row is of, where headers are repeated.
        is_list: whether each row is an event.
        last: whether the last of several rows stays, not the first.
    """
    none = np.zeros(len(grid.rows), dtype=bool)
    summands = [name for name, meaning in meanings.items() if meaning.role in SUMMANDS]
    names = [name for name, meaning in meanings.items() if meaning.role not in MEASURES]
    if not summands or not names:
        return none
    of_names = _hashes([cells[name] for name in names], len(grid.rows))
    whole = _hashes([cells[name] for name in meanings if name not in names], len(grid.rows), of_names)
    is_copy = _duplicated(whole, last=last)
    if tables.max(initial=0) > 0:  # the same days and names in two of them, restated or not
        stays = pd.Series(tables).groupby(of_names).transform("max" if last else "min").to_numpy()
        is_copy |= (tables != stays) & _duplicated(of_names, last=last)
    is_copy &= np.any([np.nan_to_num(cells[name].likely_numbers) != 0 for name in summands], axis=0)
    if not is_copy.any():
        return none
    if not is_list and not _duplicated(of_names[~is_copy]).any():
        return is_copy
    length, end = _longest_block(whole)
    different = len(np.unique(whole[end - length : end]))
    if (length >= _LONG and different >= _DIFFERENT) or (2 * length >= len(whole) and different > _FEWEST):
        none[end - length : end] = True
    return none


def restated_rows(
    grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], *, is_list: bool, last: bool
) -> NDArray[np.bool_]:
    """Return which rows have the names and days of another row, with other numbers, as exports that overlap do.

    All rows of some days are there again, and those of other days are not; or a block of rows goes through days again.
    In a list of events, or where a name stands often on each day, it is usual.

    Args:
        grid: the table.
        meanings: what its columns are.
        cells: their cells.
        is_list: whether each row is an event.
        last: whether the last row stays, not the first.
    """
    none = np.zeros(len(grid.rows), dtype=bool)
    summands = [name for name, meaning in meanings.items() if meaning.role in SUMMANDS]
    names = [name for name, meaning in meanings.items() if meaning.role not in MEASURES]
    times = [name for name in names if meanings[name].role in TIMES]
    if is_list or not summands or not times or not any(meanings[name].role in KEYS for name in names):
        return none
    of_names = _hashes([cells[name] for name in names], len(grid.rows))
    is_spent = np.any([np.nan_to_num(cells[name].likely_numbers) != 0 for name in summands], axis=0)
    again = _duplicated(of_names)
    is_there_twice = np.array(pd.Series(of_names).duplicated(keep=False), dtype=bool)
    keys = [name for name in names if meanings[name].role in KEYS | TIMES and not cells[name].is_typed]
    if any((cells[name].codes < 0)[is_there_twice].any() for name in keys):  # such as merged cells
        return none
    whole = _hashes([cells[name] for name in meanings if name not in names], len(grid.rows), of_names)
    if (again & ~_duplicated(whole) & is_spent).sum() < _FEWEST:
        return none
    if pd.Series(of_names[is_there_twice]).value_counts().max() > _MOST_EXPORTS:
        return none
    day = pd.factorize(_hashes([cells[name] for name in times], len(grid.rows)))[0]
    share = pd.Series(is_there_twice).groupby(day).mean()
    are_days = share[share > 0].min() >= _SHARE_OF_DAYS and share.min() == 0
    length, end = _longest_block(of_names)
    goes_back = length >= _FEWEST and length >= _SHARE_OF_BLOCK * again.sum()
    goes_back &= len(np.unique(day[end - length : end])) > 1
    if not are_days and not goes_back:
        return none
    return _duplicated(of_names, last=last)


def restated_problem(name: str, repeated: NDArray[np.bool_], grid: Grid) -> BadQuery:
    """Return the question about a summand of a table that has the same days twice with other numbers."""
    have = "has" if repeated.sum() == 1 else "have"
    rule = f"would count twice: {grid.rows_text(repeated)} {have} the names and days of earlier rows with other numbers"
    rule += ', as exports that overlap do: repeats="last" takes the later ones, repeats="skip" the earlier ones, '
    return BadQuery(name, UNSET, rule + 'repeats="keep" counts both')


def are_many(repeated: NDArray[np.bool_], tables: NDArray[np.int64]) -> bool:
    """Return whether rows are repeated so often that it is no chance."""
    is_block = bool((repeated[1:] & repeated[:-1]).any()) or repeated.sum() >= _SHARE * len(repeated)
    return bool(tables.max(initial=0) > 0) or (repeated.sum() >= _FEWEST and is_block)


def repeated_problem(name: str, repeated: NDArray[np.bool_], grid: Grid) -> BadQuery:
    """Return the question about a summand of a table with repeated rows."""
    are = "repeats an earlier row" if repeated.sum() == 1 else "repeat earlier rows"
    rule = f"would count twice: {grid.rows_text(repeated)} {are}, as a table that was pasted twice does: "
    return BadQuery(name, UNSET, rule + 'repeats="skip" leaves them out, repeats="keep" counts them')


def _hashes(columns: Sequence[ColumnCells], count: int, begin: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Return a number for each row that rows with the same cells share."""
    mixed = np.zeros(count, dtype="uint64") if begin is None else begin.copy()
    for own in columns:
        codes = pd.factorize(own.values)[0] if own.is_typed else own.codes
        mixed ^= codes.astype("int64").view("uint64") + np.uint64(2)
        mixed *= _MIXED
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _duplicated(hashes: NDArray[np.uint64], *, last: bool = False) -> NDArray[np.bool_]:
    return np.array(pd.Series(hashes).duplicated(keep="last" if last else "first"), dtype=bool)


def _longest_block(hashes: NDArray[np.uint64]) -> tuple[int, int]:
    """Return the length and the end of the longest block of rows that repeats another one."""
    numbers = pd.factorize(hashes)[0]
    firsts = np.flatnonzero(~_duplicated(hashes))[numbers]
    distances = Counter((np.arange(len(numbers)) - firsts)[_duplicated(hashes)].tolist())
    best = (0, 0)
    for shift, _ in distances.most_common(3):
        alike = np.append(numbers[shift:] == numbers[:-shift], False)
        ends = np.flatnonzero(~alike)
        lengths = np.diff(ends, prepend=-1) - 1
        longest = int(lengths.argmax())
        best = max(best, (int(lengths[longest]), int(ends[longest]) + shift))
    return best
