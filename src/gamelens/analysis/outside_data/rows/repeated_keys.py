"""Keys that are blank below their first row, as pivot tables and lists for people have them.

A blank key is also one that nobody knows, so it is filled from above only where the table proves it: a subtotal adds up
the rows of the name above, or the column of names before it is filled the same way. Where only the layout speaks for
it, the key is asked about when it is used, and `roles={"Country": {"role": "country", "filled_down": True}}` fills it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.files.number_parsing import written_numbers
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, TIMES, ColumnCells, header_meanings
from gamelens.analysis.outside_data.rows.total_rows import are_merged, filled_down, folded_name
from gamelens.analysis.outside_data.words.total_words import TOTAL_AT_ONE_END, WORD_AT_ONE_END
from gamelens.errors import BadQuery

FILLED_DOWN: Final = "filled_down"
"""What `roles=` says of a column whose blank cells have the value above them."""
_FIRST: Final = 500  # rows that tell most columns that are not blank below their names
_MOST_ROWS: Final = 20_000  # of a table for people
_MOST_NAMES: Final = 2_000
_SAMPLE: Final = 20  # texts that tell names from numbers
_FEWEST: Final = 2  # rows that a subtotal adds up
_ROUNDING: Final = 0.005

Codes = NDArray[np.int32]
RowMask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Names:
    """A column of names: its texts, the place of each row's text (-1 for none), and its place in the table."""

    name: str
    place: int
    distinct: Any
    codes: Codes

    @property
    def role(self) -> str:
        """What its header says that it is."""
        return next((meaning.role for meaning in header_meanings(self.name)), "text")


def with_repeated_keys(grid: Grid, stated: Mapping[str, Any]) -> tuple[Grid, dict[str, BadQuery]]:
    """Return *grid* with its blank keys filled from above where that is certain, and the questions about the others.

    *stated* is the argument `roles=`, which may decide it.
    """
    decided = {
        name: said[FILLED_DOWN] for name, said in stated.items() if isinstance(said, Mapping) and FILLED_DOWN in said
    }
    columns = _naming_columns(grid)
    blank = [column for column in columns if column.name in decided or _may_be_blank(column.codes)]
    if not blank or (len(grid.rows) > _MOST_ROWS and not any(decided.values())):
        return grid, {}
    has_total = _rows_with_totals(columns)
    every = np.logical_or.reduce([*has_total.values()])
    is_possible = _have_unlike_names(columns, blank, every)
    filled_codes: dict[str, Codes] = {}
    problems: dict[str, BadQuery] = {}
    before: list[Codes] = []
    is_laid_out = False  # a column of names before this one is filled
    for column in columns:
        codes = column.codes
        if column in blank and decided.get(column.name) is not False:
            filled = _filled(column, before, every)
            is_layout = is_possible and filled is not None and _is_layout(codes, before, every)
            is_certain = decided.get(column.name, False)
            if is_layout and not is_certain:
                is_certain = is_laid_out or _is_usual(column, every)
                is_certain = is_certain or _are_proven(column, filled, has_total, every, grid, columns)
            if is_certain and filled is not None and (codes != filled).any():
                is_laid_out = True
                codes = filled
                if column.role not in TIMES:  # days are filled once they are read
                    filled_codes[column.name] = filled
            elif is_layout and filled is not None and (codes[~every] < 0).sum() >= (codes[~every] >= 0).sum():
                problems[column.name] = _blank_key_problem(column, grid, every)
                codes = filled
        before.append(codes)
    cells, notes = grid.cells, []
    for column in columns:
        if (found := filled_codes.get(column.name)) is not None:
            values = pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), column.distinct)
            cells = cells.set_column(column.place, column.name, values)
            notes.append(f"empty cells of {column.name} have the value above them")
    return replace(grid, cells=cells, notes=(*grid.notes, *notes)), problems


def _naming_columns(grid: Grid) -> list[_Names]:
    """Return the columns of texts before the first numbers."""
    found: list[_Names] = []
    for place, name in enumerate(grid.columns):
        is_measure = next((meaning.role in MEASURES for meaning in header_meanings(name)), False)
        if not grid.is_text(name):
            if pa.types.is_timestamp(grid.cells.column(name).type):
                continue
            break
        distinct, codes = grid.texts(name)
        sample = distinct.slice(0, _SAMPLE).to_pylist()
        if len(sample) and 2 * written_numbers(pa.array(sample, pa.string())).is_number.sum() > len(sample):
            break
        if is_measure and not len(sample):
            break
        found.append(_Names(name, place, distinct, codes))
    return found


def _may_be_blank(codes: Codes) -> bool:
    """Return whether a column may have its names in the first of several rows alone: none stands below itself."""
    for part in (codes[:_FIRST], codes):
        if not len(part) or part[0] < 0 or ((part[1:] >= 0) & (part[1:] == part[:-1])).any():
            return False
    return bool((codes < 0).any())


def _rows_with_totals(columns: Sequence[_Names]) -> dict[str, RowMask]:
    """Return the rows of each column whose text has a word of totals at one of its ends."""
    found = {}
    for column in columns:
        texts = column.distinct.to_pylist() if len(column.distinct) <= _MOST_NAMES else []
        is_total = np.zeros(len(column.distinct) + 1, dtype=bool)
        is_total[[place for place, text in enumerate(texts) if TOTAL_AT_ONE_END.fullmatch(text)]] = True
        found[column.name] = is_total[column.codes]
    return found


def _have_unlike_names(columns: Sequence[_Names], blank: Sequence[_Names], totals: RowMask) -> bool:
    """Return whether the names of all ordinary rows differ once the blank ones are filled."""
    names = {}
    for column in columns:
        codes = column.codes
        if column in blank:
            codes = np.asarray(Series(np.where(codes < 0, np.nan, codes)).ffill().fillna(-1), dtype="int32")
        names[column.name] = codes[~totals]
    return not DataFrame(names).duplicated().any()


def _filled(column: _Names, before: Sequence[Codes], totals: RowMask) -> Codes | None:
    """Return the names of a column, filled from above as far as a name before them stays the same."""
    filled = filled_down(column.codes, before)
    if filled is None:
        return None
    last = totals.copy()
    last[:-1] = False  # the total of all rows has no name
    return np.where(last & (column.codes < 0), np.int32(-1), filled)


def _blocks(before: Sequence[Codes], rows: RowMask) -> NDArray[np.int64]:
    """Return the number of the block of each of *rows*, in which the names before a column stay the same."""
    changes = np.zeros(int(rows.sum()), dtype=bool)
    for codes in before:
        of_rows = codes[rows]
        changes[1:] |= of_rows[1:] != of_rows[:-1]
    return changes.cumsum()


def _is_layout(codes: Codes, before: Sequence[Codes], totals: RowMask) -> bool:
    """Return whether each block of ordinary rows begins with a name, and has each name once."""
    of_rows, block = codes[~totals], _blocks(before, ~totals)
    if not len(of_rows) or not (of_rows < 0).any():
        return False
    begins = np.append(True, block[1:] != block[:-1])
    named = DataFrame({"block": block, "code": of_rows})[of_rows >= 0]
    return bool((of_rows[begins] >= 0).all()) and not named.duplicated().any() and named["code"].nunique() > 1


def _is_usual(column: _Names, totals: RowMask) -> bool:
    """Return whether the first column has keys or days, each once, and as many blank cells as these."""
    return column.place == 0 and column.role in KEYS | TIMES and are_merged(column.codes[~totals])


def _are_proven(
    column: _Names,
    filled: Codes | None,
    has_total: Mapping[str, RowMask],
    every: RowMask,
    grid: Grid,
    columns: Sequence[_Names],
) -> bool:
    """Return whether subtotals are the sums of the rows of the name above them, all rows or all that are not hidden."""
    rows = np.flatnonzero(every)
    if filled is None or not len(rows):
        return False
    names = [other.name for other in columns]
    numbers = [ColumnCells(grid, name) for name in grid.columns if name not in names]
    values = [found.likely_numbers for found in numbers if found.may_be_number]
    is_hidden = np.isin(grid.rows, [*grid.hidden])
    folded = {folded_name(text): place for place, text in enumerate(column.distinct.to_pylist())}
    for ordinary in (~every, ~every & ~is_hidden):
        confirmed = contradicted = 0
        for row in rows.tolist():
            base = _name_of_total(row, column, columns, has_total, folded, filled, ~every)
            parts = ordinary & (filled == base)
            if base is None or parts.sum() < _FEWEST or not (column.codes[parts] < 0).any():
                continue
            sums = [
                (float(known[row]), float(np.nansum(known[parts])))
                for known in values
                if known[row] > 0 or known[row] < 0
            ]
            is_sum = any(abs(total - added) <= _ROUNDING * abs(total) for total, added in sums)
            confirmed += is_sum
            contradicted += not is_sum and row != len(filled) - 1
        if confirmed and not contradicted:
            return True
    return False


def _name_of_total(
    row: int,
    column: _Names,
    columns: Sequence[_Names],
    has_total: Mapping[str, RowMask],
    folded: Mapping[str, int],
    filled: Codes,
    ordinary: RowMask,
) -> int | None:
    """Return the place of the name that a total adds up: the name beside its word, or the name of the row above it."""
    said = next(other for other in columns if has_total[other.name][row])
    if said.place < column.place:
        return None
    text = said.distinct[int(said.codes[row])].as_py()
    name = folded_name(WORD_AT_ONE_END.sub("", text))
    if name and name != folded_name(text):
        return folded.get(name) if said is column else None
    above = np.flatnonzero(ordinary[:row])
    return int(filled[above[-1]]) if len(above) else None


def _blank_key_problem(column: _Names, grid: Grid, totals: RowMask) -> BadQuery:
    role = column.role if column.role in KEYS else "text"
    said = [{column.name: {"role": role, FILLED_DOWN: is_filled}} for is_filled in (True, False)]
    rows = grid.rows_text((column.codes < 0) & ~totals)
    rule = f"is empty in {rows} below a name, as in a list that writes each once: roles={said[0]!r} gives these rows "
    rule += f"the name above them, roles={said[1]!r} leaves them without one"
    return BadQuery(column.name, UNSET, rule)
