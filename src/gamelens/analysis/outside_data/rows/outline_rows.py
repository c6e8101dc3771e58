"""Rows of an outline that add up the rows below them, as a compact pivot table has networks above their countries.

Names of both stand in one column, so that only the numbers tell them apart: the whole table falls into rows, each
followed by the rows that it is the sum of. With several numbers in a row, all of them must be sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import SUMMANDS, ColumnCells, Meaning

_MOST_ROWS: Final = 5_000
_LONGEST: Final = 400  # rows below one
_FEWEST: Final = 2  # rows that add up at least two others
_FEWEST_BELOW: Final = 2
_SHARE_OF_USUAL: Final = 0.01  # of the usual number, at most this is rounding
_ROUNDING: Final = 0.006  # of each row that is added up
_MOST_LEVELS: Final = 4
_OF_PLANS: Final = frozenset({"budget", "planned"})
"""Concepts of money that is not spent, whose tables have the same subtotals."""

Floats = NDArray[np.float64]


def outline_totals(
    grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], left_out: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the rows that add up the rows below them, or above them, as far as the next such row.

    Rows *left_out* and rows without a number, such as headings, are neither. A row of a spreadsheet whose days were
    columns is one row here.
    """
    found = np.zeros(len(left_out), dtype=bool)
    by_role = {
        name: meaning.role
        for name, meaning in meanings.items()
        if meaning.role in SUMMANDS or meaning.role == "number" or meaning.concept in _OF_PLANS
    }
    are_known = any(role in SUMMANDS for role in by_role.values())
    summands = [cells[name].likely_numbers for name, role in by_role.items() if role in SUMMANDS or not are_known]
    is_empty = np.logical_and.reduce([np.isnan(values) for values in summands]) if summands else left_out
    rows = np.flatnonzero(~left_out & ~is_empty)
    if not summands or len(rows) <= _FEWEST * _FEWEST_BELOW:
        return found
    blocks = 1 + int((np.diff(grid.rows[rows]) <= 0).sum())  # each day of a spreadsheet has its rows again
    if len(rows) > blocks * _MOST_ROWS:
        return found
    line, distinct = pd.factorize(grid.rows[rows])
    if len(distinct) > _MOST_ROWS or len(rows) % len(distinct):
        return found
    of_line = pd.Series(line).groupby(line).cumcount().to_numpy()
    numbers = np.zeros((len(distinct), int(of_line.max()) + 1, len(summands)))
    for place, values in enumerate(summands):
        numbers[line, of_line, place] = np.nan_to_num(values[rows])
    flat = numbers.reshape(len(distinct), -1)
    rounding = _rounding(flat)
    for way in (slice(None), slice(None, None, -1)):
        levels = _levels(flat[way], rounding)
        if levels is not None:
            found[rows] = (levels[way] > 0)[line]
            return found
    return found


def outline_levels(numbers: Floats) -> NDArray[np.int64] | None:
    """Return the level of each row: 0 adds up none, 1 the rows of 0 below it, and so on.

    None if the rows are no outline.
    """
    if not _FEWEST_BELOW < len(numbers) <= _MOST_ROWS or not numbers.shape[1]:
        return None
    return _levels(numbers, _rounding(numbers), fewest=1)


def _rounding(numbers: Floats) -> Floats:
    usual = np.array([np.median(np.abs(column[column != 0])) if column.any() else 0.0 for column in numbers.T])
    return np.minimum(_ROUNDING, _SHARE_OF_USUAL * usual)  # a millionth is not nothing beside others


def _levels(numbers: Floats, rounding: Floats, *, fewest: int = _FEWEST) -> NDArray[np.int64] | None:
    """Return the level of each row, None if they do not divide all rows; *fewest* of them add up several."""
    levels = np.zeros(len(numbers), dtype="int64")
    left, several = np.arange(len(numbers)), 0
    for level in range(1, _MOST_LEVELS + 1):
        tops, below, has_several = _level(numbers[left], rounding)
        if not len(tops):
            break
        several += has_several
        levels[left[tops]] = level
        left = np.delete(left, below)
        if len(tops) == len(left):
            return levels if several >= fewest else None
    return None


def _level(numbers: Floats, rounding: Floats) -> tuple[list[int], list[int], int]:
    """Return the rows that add up the rows below them, these rows, and how many add up several."""
    tops: list[int] = []
    below: list[int] = []
    several = place = 0
    while place < len(numbers) - 1:
        length = _run(numbers, place, rounding)
        if length == 1 and _run(numbers, place + 1, rounding) >= _FEWEST_BELOW:
            length = 0  # a year of one month, which adds up networks: the month first
        if length:
            tops.append(place)
            below += range(place + 1, place + 1 + length)
            several += length >= _FEWEST_BELOW and bool(numbers[place].any())
        place += length + 1
    return tops, below, several


def _run(numbers: Floats, place: int, rounding: Floats) -> int:
    """Return how many rows below one add up to it, 0 for none."""
    rest = numbers[place].copy()
    for length, row in enumerate(numbers[place + 1 : place + 1 + _LONGEST], start=1):
        rest -= row
        if (np.abs(rest) <= rounding * (length + 1)).all():
            return length if numbers[place].any() else 0
        if (numbers[place] >= 0).all() and (rest < -rounding * (length + 1)).any() and (row >= 0).all():
            return 0
    return 0
