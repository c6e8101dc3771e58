"""Rows whose word may mean a total or an average, or be an ordinary name: "media", or "Sum" as a kind of cost.

Their numbers decide: they are left out where these are the sums or the means of other rows, and count with a note where
many are neither; otherwise the reader is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pandas import Series

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, TIMES, ColumnCells, Meaning, groups_of, summands_of
from gamelens.analysis.outside_data.words.total_words import AVERAGE, AVERAGE_AT_ONE_END, TOTAL, TOTAL_AT_ONE_END

_ROUNDING: Final = 0.005
_FEWEST_PARTS: Final = 2
_FEWEST_UNLIKE: Final = 3  # rows that are no sum and no mean, of an ordinary name
_MOST_ALIKE: Final = 0.8  # of the rows of one word, if they add up others

Floats = NDArray[np.float64]
RowMask = NDArray[np.bool_]


class RowsByWord(NamedTuple):
    """The rows that add up others by their word and their numbers, what is said, and what must be asked."""

    mask: RowMask
    notes: tuple[str, ...] = ()
    rule: str | None = None


def rows_by_word(
    grid: Grid,
    names: Sequence[str],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    left_out: RowMask,
    *,
    is_decided: bool,
) -> RowsByWord:
    """Return the rows with a word of totals or averages in one of *names*.

    A word of totals in a column of keys, such a word or one of averages among days or numbers, and a row without any
    other name need no proof. *is_decided*: the reader has named the rows to leave out, and is not asked.
    """
    mask, notes, rules = left_out.copy(), [], []
    has_text = {name: cells[name].codes >= 0 for name in names}
    summands = [*summands_of(meanings, cells).values()]
    doubted = _words_in_names(grid, names, meanings, cells, summands, mask)
    every = np.logical_or.reduce([np.zeros_like(mask), *(cells[name].codes == place for name, place in doubted)])
    ordinary = ~every & ~mask
    filled = [name for name in names if has_text[name][ordinary].any()]
    for name, place in doubted:
        rows = (cells[name].codes == place) & ~mask
        if not rows.any():
            continue
        by = [other for other in names if other != name and has_text[other][rows].all()]
        group = _with_currencies(by, rows, meanings, cells)
        counts, alike = _proven(group, rows, ordinary, summands)
        text = cells[name].texts[place]
        if counts and alike >= _MOST_ALIKE * counts:
            mask |= rows
        elif is_decided or (_different(rows, summands) >= _FEWEST_UNLIKE and {*by} >= {*filled} - {name}):
            are = "counts, as no sum or mean of others" if rows.sum() == 1 else "count, as no sums or means of others"
            notes.append(f"{grid.rows_text(rows)} with {text!r} in {name} {are}; totals=[{text!r}] leaves them out")
        else:
            rule = f"may count twice: {grid.rows_text(rows)} with {text!r} in {name} may add up others: "
            rules.append(f'{rule}totals=[{text!r}] leaves this out, totals="keep" counts it')
    return RowsByWord(mask, tuple(notes), rules[0] if rules else None)


def _words_in_names(
    grid: Grid,
    names: Sequence[str],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    summands: Sequence[Floats],
    mask: RowMask,
) -> list[tuple[str, int]]:
    """Add to *mask* the rows of words that need no proof, and return each other word: its column and its place."""
    has_text = {name: cells[name].codes >= 0 for name in names}
    doubted: list[tuple[str, int]] = []
    measures = [name for name, column in cells.items() if meanings[name].role in MEASURES and not column.is_typed]
    for name in (*measures, *(name for name in names if meanings[name].role in TIMES)):
        for place, text in cells[name].unlike_names.items():  # a text that is no day and no number
            if TOTAL_AT_ONE_END.fullmatch(text) or AVERAGE_AT_ONE_END.fullmatch(text):
                mask |= cells[name].codes == place
    for name in [name for name in names if meanings[name].role not in TIMES]:
        role, column = meanings[name].role, cells[name]
        others = [rows for other, rows in has_text.items() if other != name]
        has_others = np.logical_or.reduce(others) if others else np.ones(len(mask), dtype=bool)
        for place, text in column.unlike_names.items():
            is_total, is_average = TOTAL.fullmatch(text), AVERAGE.fullmatch(text)
            if not (is_total or is_average):
                continue
            rows = column.codes == place
            if is_total and (role in KEYS or name == grid.columns[0]):
                if has_others[rows].all() and _is_no_sum(name, rows, names, meanings, cells, summands, mask):
                    doubted.append((name, place))
                else:
                    mask |= rows
            else:
                mask |= rows & ~has_others
                doubted.append((name, place))
    return doubted


def _is_no_sum(
    name: str,
    rows: RowMask,
    names: Sequence[str],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    summands: Sequence[Floats],
    left_out: RowMask,
) -> bool:
    """Return whether several rows that are called totals in a column of keys add up no other rows.

    They are compared with the rows that agree in all other names, and with the rows that agree in one of them.
    """
    if rows.sum() < _FEWEST_UNLIKE or _different(rows, summands) < _FEWEST_UNLIKE:
        return False
    others = [other for other in names if other != name and (cells[other].codes >= 0).any()]
    for by in (others, *([other] for other in others)):
        group = _with_currencies(by, rows, meanings, cells)
        if _proven(group, rows, ~rows & ~left_out, summands)[1]:
            return False
    return True


def _with_currencies(
    by: Sequence[str], rows: RowMask, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> NDArray[np.int64]:
    """Return the groups of the columns *by* and of the currencies that all *rows* name: sums are of one currency."""
    codes = {
        name: cells[name].numbers_of_values
        for name, meaning in meanings.items()
        if name in by or (meaning.role == "currency" and (cells[name].numbers_of_values[rows] >= 0).all())
    }
    return groups_of(codes, [*codes], len(rows))


def _different(rows: RowMask, summands: Sequence[Floats]) -> int:
    """Return how many different numbers *rows* have."""
    return max((len(np.unique(values[rows & ~np.isnan(values)])) for values in summands), default=0)


def _proven(group: NDArray[np.int64], rows: RowMask, parts: RowMask, summands: Sequence[Floats]) -> tuple[int, int]:
    """Return how many of *rows* have several *parts* in their group, and how many are their sum, mean or median."""
    is_comparable, is_alike = np.zeros_like(rows), np.zeros_like(rows)
    for values in summands:
        of_parts = Series(np.where(parts, values, np.nan)).groupby(group)
        is_known = rows & (of_parts.transform("count").to_numpy() >= _FEWEST_PARTS) & ~np.isnan(values) & (values != 0)
        is_comparable |= is_known
        for how in ("sum", "mean", "median"):
            expected = of_parts.transform(how).to_numpy(dtype="float64")
            is_alike |= is_known & (np.abs(values - expected) <= _ROUNDING * np.abs(values))
    return int(is_comparable.sum()), int(is_alike.sum())
