"""Outlines, such as compact pivot tables: the name of a row that adds up those below it is a key of these.

Months above networks above countries stand in one column. Each level becomes a column, and its sums are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gamelens.analysis.ads.canonical_names import NameKind, canonical_name
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import (
    MEASURES,
    SUMMANDS,
    ColumnCells,
    Evidence,
    Meaning,
    Role,
    header_meanings,
)
from gamelens.analysis.outside_data.rows.outline_rows import outline_levels
from gamelens.analysis.outside_data.shape.named_days import is_day, is_day_without_year
from gamelens.analysis.outside_data.words.total_words import PART, TOTAL, TOTAL_AT_ONE_END

_YEAR: Final = re.compile(r"20\d\d")
_FEWEST_GROUPS: Final = 2  # that tell nothing but by their sums
_MOST_SHOWN: Final = 5
_KINDS: Final[dict[Role, tuple[NameKind, ...]]] = {
    "platform": ("platform",),
    "country": ("country",),
    "network": ("publisher", "network"),
}


def with_keys_of_outline(grid: Grid) -> tuple[Grid, dict[str, Meaning]]:
    """Return *grid* without rows that add up those below them, whose names are columns, and what these mean."""
    label, *others = grid.columns or [""]
    if not others or not grid.is_text(label):
        return grid, {}
    cells = {name: ColumnCells(grid, name) for name in others}
    filled = [name for name in others if cells[name].is_typed or len(cells[name].distinct)]
    if not filled or not all(cells[name].may_be_number for name in filled):
        return grid, {}
    distinct, codes = grid.texts(label)
    texts = [*map(str.strip, distinct.to_pylist()), ""]
    added = [name for name in filled if _role_of_header(name) not in MEASURES - SUMMANDS]
    if not added:
        return grid, {}
    values = np.column_stack([cells[name].likely_numbers for name in added])
    is_row = (codes >= 0) & ~np.isnan(values).all(axis=1)
    is_row &= ~np.array([TOTAL.fullmatch(text) is not None for text in texts])[codes]
    found = next(((way, levels) for way in (1, -1) if (levels := _levels(values[is_row], way)) is not None), None)
    if found is None:
        return grid, {}
    way, levels = found
    names = np.array(texts, dtype=object)[codes[is_row]]
    names = _with_years(names, levels, way)
    kinds = [_kind(names[levels == level]) for level in range(levels.max() + 1)]
    is_told = all(kinds[1:]) and len({*kinds}) == len(kinds)
    if _are_measures_or_parts(names, levels) or not (is_told or (levels == 1).sum() >= _FEWEST_GROUPS):
        return grid, {}
    made, notes = dict[str, Meaning](), list[str]()
    for level in range(int(levels.max()), 0, -1):
        role = kinds[level] or "text"
        called = [kinds[level] or "group", f"{kinds[level] or 'group'} of {label}", f"\0{level}"]
        name = next(name for name in called if name not in grid.columns)
        key = np.full(len(codes), None, dtype=object)
        key[is_row] = _above(names[::way], levels[::way], level)[::way]
        grid = replace(grid, cells=grid.cells.append_column(name, pa.array(key, pa.string()).dictionary_encode()))
        mask = np.zeros(len(codes), dtype=bool)
        mask[is_row] = levels == level
        tops = [*dict.fromkeys(names[levels == level])]
        shown = ", ".join(tops[:_MOST_SHOWN]) + (", ..." if len(tops) > _MOST_SHOWN else "")
        if kinds[level]:
            made[name] = Meaning(role, Evidence(role, "rows that add up those below", tops[0]))
        notes.append(
            f"{grid.rows_text(mask)} ({shown}) are the sums of the rows {'below' if way == 1 else 'above'} them, "
            f"as in a pivot table, and are left out: their names are the column {name} of these"
        )
    labels = np.array([*texts[:-1], None], dtype=object)[codes]  # the last for none
    labels[is_row] = names
    plain = pa.array(labels, pa.string()).dictionary_encode()
    grid = replace(grid, cells=grid.cells.set_column(0, label, plain))
    is_sum = np.zeros(len(codes), dtype=bool)
    is_sum[is_row] = levels > 0
    return grid.filtered(~is_sum, *notes), made


def _with_years(names: NDArray[np.object_], levels: NDArray[np.int64], way: int) -> NDArray[np.object_]:
    """Return *names* with the year of the row that they are below, where these are months or days without one."""
    found = names.copy()
    for level in range(1, int(levels.max()) + 1):
        if not all(map(_YEAR.fullmatch, names[levels == level])):
            continue
        years = _above(names[::way], levels[::way], level)[::way]
        for at in np.flatnonzero(levels < level):
            if years[at] and not is_day(names[at]) and is_day(f"{names[at]} {years[at]}"):
                found[at] = f"{names[at]} {years[at]}"
    return found


def _levels(values: NDArray[np.float64], way: int) -> NDArray[np.int64] | None:
    """Return the levels of rows with their sums above them, for a *way* of -1 below them."""
    levels = outline_levels(np.nan_to_num(values)[::way])
    return None if levels is None else levels[::way]


def _role_of_header(text: str) -> str:
    return next((meaning.role for meaning in header_meanings(text)), "")


def _above(names: NDArray[np.object_], levels: NDArray[np.int64], level: int) -> list[str | None]:
    """Return, for each row, the name of the nearest row of *level* above it."""
    found, last = list[str | None](), None
    for name, of_row in zip(names, levels, strict=True):
        last = name if of_row == level else None if of_row > level else last
        found.append(last)
    return found


def _kind(names: Sequence[str]) -> Role | None:
    """Return what all *names* are of, None if they are of several kinds or of none that is known."""
    distinct = {*names}
    if all(is_day(name) or is_day_without_year(name) for name in distinct):
        return "day"
    for role, kinds in _KINDS.items():
        if all(any(canonical_name(name, kind) for kind in kinds) for name in distinct):
            return role
    return None


def _are_measures_or_parts(names: NDArray[np.object_], levels: NDArray[np.int64]) -> bool:
    """Return whether rows are measures with their parts, or have words for a sum or a part, and so no names."""
    tops, below = {*names[levels > 0]}, {*names[levels == 0]}
    of_measures = any(_role_of_header(name) in MEASURES for name in tops)
    return of_measures or any(map(PART.match, below)) or any(map(TOTAL_AT_ONE_END.fullmatch, tops | below))
