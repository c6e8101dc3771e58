"""Tables that stand one below the other: the headers of the second are among the rows of the first.

Their numbers are of other things, so a table with such a row is refused. `header_row=` says which of them is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, TIMES, header_meanings
from gamelens.errors import BadQuery

_FEWEST: Final = 2  # headers of a table, and rows above the header that are one
_MOST: Final = 200  # rows without a digit that are looked at
_SHARE: Final = 0.5  # of rows with digits in a column of numbers
_FILES: Final = (".csv", ".tsv", ".txt", ".gz", ".zip", ".xlsx", ".xlsm")


def of_one_table(grid: Grid, header_row: int | None) -> Grid:
    """Return one table of *grid*, which may have another below it: *header_row* says which of the two is read.

    Raises:
        BadQuery: there is another header, and nothing says which table is meant.
    """
    if header_row is None and (first := _table_above(grid)) is not None:
        raise _several(grid, first, grid.header_row)
    place = _header_among(grid)
    if place is None:
        return grid
    return before_header(grid, place, header_row)


def before_header(grid: Grid, place: int, header_row: int | None) -> Grid:
    """Return the rows of *grid* above another header at *place* and its title, where *header_row* says so.

    Raises:
        BadQuery: it does not.
    """
    if header_row is None:
        raise _several(grid, grid.header_row, int(grid.rows[place]))
    begins = place
    while begins > 0 and _filled(grid, begins - 1) < _FEWEST:  # its title
        begins -= 1
    mask = np.arange(len(grid.rows)) < begins
    note = f"row {grid.rows[begins]} of {grid.source} and all below belong to another table and are left out"
    left = grid.filtered(mask, note)
    return replace(left, cells=pa.table({name: _typed(left, name) for name in left.columns}))


def _several(grid: Grid, first: int, second: int) -> BadQuery:
    rule = f"holds two tables, one below the other, with headers in rows {first} and {second}: "
    if grid.source.lower().endswith(_FILES):
        rule += f"header_row={first} reads the first, header_row={second} the second"
    else:
        rule += f"pass frame.iloc[:{second}] or the rows behind it with their headers as names"
    return BadQuery("other", grid.source, rule)


def _header_among(grid: Grid) -> int | None:
    """Return the place of the first row that is a header of other columns."""
    texts = {name: grid.texts(name) for name in grid.columns if grid.is_text(name)}
    if len(texts) < _FEWEST:
        return None
    has_digit = {
        name: np.append(np.asarray(pc.match_substring_regex(distinct, r"\d"), dtype=bool), False)
        for name, (distinct, _) in texts.items()
    }
    if not any(digits[:-1].any() and not digits[:-1].all() for digits in has_digit.values()):
        return None  # no column of numbers has a word
    is_words = np.ones(len(grid.rows), dtype=bool)
    in_numbers = np.zeros(len(grid.rows), dtype=bool)
    for name in grid.columns:
        if name not in texts:
            is_words &= ~grid.cells.column(name).is_valid().to_numpy()
            continue
        codes = texts[name][1]
        are_digits, is_there = has_digit[name][codes], codes >= 0
        is_words &= ~are_digits
        if are_digits.sum() >= _SHARE * is_there.sum():
            in_numbers |= is_there & ~are_digits
    for place in np.flatnonzero(is_words & in_numbers)[:_MOST].tolist():
        cells = {
            name: distinct[int(codes[place])].as_py() for name, (distinct, codes) in texts.items() if codes[place] >= 0
        }
        is_other = any(text != name for name, text in cells.items())  # not the same headers again
        if is_other and _are_headers([*cells.values()]) and place + 1 < len(grid.rows):
            below = [codes[place + 1] for _, codes in texts.values()]
            if any(has_digit[name][code] for name, code in zip(texts, below, strict=True)):
                return int(place)
    return None


def _are_headers(cells: Sequence[str]) -> bool:
    """Return whether texts are different names of columns, at least one of a measure and one of names or days."""
    if len(cells) < _FEWEST or len({*cells}) < len(cells):
        return False
    roles = [next((known.role for known in header_meanings(text)), None) for text in cells]
    has_measure = any(role in MEASURES for role in roles)
    return has_measure and any(role in KEYS | TIMES or role == "text" for role in roles)


def _table_above(grid: Grid) -> int | None:
    """Return the row of a header above the header that was found, with rows of numbers below it."""
    rows = grid.cells_above
    for place, row in enumerate(rows[: -_FEWEST or None]):
        cells = [(at, str(cell)) for at, cell in enumerate(row) if cell not in (None, "")]
        below = rows[place + 1 : place + 1 + _FEWEST]
        if not _are_headers([text for _, text in cells]) or any(_has_digit(text) for _, text in cells):
            continue
        measures = [at for at, text in cells if any(known.role in MEASURES for known in header_meanings(text))]
        if all(any(at < len(other) and _has_digit(str(other[at])) for at in measures) for other in below):
            return place + 1
    return None


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _filled(grid: Grid, place: int) -> int:
    return sum(grid.cells.column(name)[place].is_valid for name in grid.columns)


def _typed(grid: Grid, name: str) -> pa.ChunkedArray | pa.Array:
    """Return a column of an Excel file as numbers if all that is left are numbers."""
    column = grid.cells.column(name)
    if grid.separator is not None or not grid.is_text(name):
        return column
    try:
        return column.cast(pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return column
