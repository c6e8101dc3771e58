"""Rows of an outside table that add up others, and would count everything twice.

A total word alone, or followed by a colon, "of" or a number, is enough in a column of keys or days. A word at one end
of a name, a word for the whole, or an empty key counts only if a number of the row is the sum of the rows that agree in
all other keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas import Series

from gamelens.analysis.files.date_parsing import ParsedTimes
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import (
    KEYS,
    MEASURES,
    SUMMANDS,
    TIMES,
    ColumnCells,
    Meaning,
    groups_of,
    summands_of,
)
from gamelens.analysis.outside_data.rows.doubtful_totals import rows_by_word
from gamelens.analysis.outside_data.rows.outline_rows import outline_totals
from gamelens.analysis.outside_data.rows.row_kinds import COUNTED_TWICE, is_level, kinds_of_rows
from gamelens.analysis.outside_data.words.total_words import (
    AT_ONE_END,
    TOTAL_AT_ONE_END,
    WHOLE,
    WHOLE_OF_NAMES,
    WORD_AT_ONE_END,
)
from gamelens.errors import BadQuery

_NO_VALUE: Final = re.compile(r"\W*")
_NAMED_BY_ALL: Final = frozenset({"country", "network", "platform", "format"})  # campaigns are called Todos los Santos
_MARKS: Final = " :–—-()[]\"'"
_ROUNDING: Final = 0.005  # of a sum of rounded rows
_COARSE: Final = 0.05  # of a sum of numbers such as 1.2M
_FEWEST: Final = 2  # rows that a sum adds up
_MOST_BLOCKS: Final = 1_000
_MOST_NAMES: Final = 1_000  # of a column; a total may have one of them
_FEWEST_PAIRS: Final = 3  # values that are each in a row of the whole and in one of a part


Summands = Mapping[str, tuple[NDArray[np.float64], float]]
"""The numbers of columns that can be added up, and how far a sum of them may be off, as a share."""


class TotalRows(NamedTuple):
    """The rows that add up others, what is said of them, and what must be asked.

    *larger* has the columns whose whole is larger than its parts, with its name.
    """

    mask: NDArray[np.bool_]
    larger: Mapping[str, str]
    notes: tuple[str, ...] = ()
    rule: str | None = None


def find_totals(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    named: Sequence[str] = (),
    answered: Mapping[str, Any] = MappingProxyType({}),
    sums: NDArray[np.bool_] | None = None,
) -> TotalRows:
    """Return the rows of *grid* that add up others, and those with a cell of the texts *named*.

    *answered* are the columns that tell kinds of rows about which the reader has decided, and *sums* the rows that are
    known to add up others, also some that are left out by now.

    Raises:
        BadQuery: no cell has one of them.
    """
    sums = np.zeros(len(grid.rows), dtype=bool) if sums is None else sums
    found = _by_words(grid, meanings, cells, named, answered, sums)
    if found.rule is not None and found.rule.startswith(COUNTED_TWICE):  # as the rows of WW that are left out by now
        again = _by_words(grid, meanings, cells, named, answered, found.mask)
        found = again._replace(larger={**found.larger, **again.larger})
    for end in (-1, 0):
        found = found._replace(mask=found.mask | _nameless_row(grid, meanings, cells, found.mask, end))
    found = _with_block_totals(grid, meanings, cells, found, sums, is_decided=bool(named))
    outline = outline_totals(grid, meanings, cells, found.mask)
    if not outline.any():
        return found
    if found.rule is not None:  # which may be about rows that are left out by now
        found = _by_words(grid, meanings, cells, named, answered, found.mask | outline)
    are = "is the sum of rows beside it" if outline.sum() == 1 else "are the sums of the rows below or above them"
    note = f"{grid.rows_text(outline)} {are}, as in a pivot table"
    return found._replace(mask=found.mask | outline, notes=(*found.notes, note))


def _with_block_totals(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    found: TotalRows,
    sums: NDArray[np.bool_],
    *,
    is_decided: bool,
) -> TotalRows:
    """Return *found* with the rows that have a word of totals and are the sums of the rows as far as the next such row.

    P09 total stands below the weeks of P09, in none of whose names it is. A row that is called like several others that
    are sums, as the ones found before, and is none, is asked about.
    """
    names = [name for name in _naming_columns(grid, meanings, cells) if not cells[name].is_typed]
    wholes = [_matches(cells[name], WHOLE_OF_NAMES) for name in names if meanings[name].role in _NAMED_BY_ALL]
    is_whole = np.logical_or.reduce([*wholes, np.zeros(len(found.mask), dtype=bool)])
    by_column = {name: _matches(cells[name], TOTAL_AT_ONE_END) for name in names}
    has_word = np.logical_or.reduce([*by_column.values(), np.zeros(len(found.mask), dtype=bool)])
    rows = np.flatnonzero(has_word & ~found.mask)
    summands = summands_of(meanings, cells)
    if (is_whole & ~found.mask).any():  # all countries of all days
        found = found._replace(mask=found.mask | _sum_of_all_days(is_whole, found.mask, summands))
    if not len(rows) or len(rows) > _MOST_BLOCKS or not summands:
        return found
    ends = np.flatnonzero(has_word | found.mask | np.append(True, np.diff(grid.rows) <= 0))
    mask = found.mask.copy()
    for row in rows.tolist():
        above, below = ends[ends < row], ends[ends > row]
        first = int(above[-1]) + (1 if len(above) and (has_word | found.mask)[above[-1]] else 0) if len(above) else 0
        last = int(below[0]) if len(below) else len(mask)
        blocks = [np.arange(first, row), np.arange(row + 1, last)]
        mask[row] = any(_is_sum_of_all(row, block, summands) for block in blocks)
    rule = found.rule
    for rows_of_word in by_column.values() if rule is None and not is_decided else ():
        proven, others = rows_of_word & (sums | (mask & ~found.mask)), rows_of_word & ~mask
        if others.any() and proven.sum() >= max(_FEWEST, others.sum()):
            name = next(name for name, rows in by_column.items() if rows is rows_of_word)
            texts = [cells[name].texts[int(code)] for code in np.unique(cells[name].codes[others])]
            rule = f"may count twice: {grid.rows_text(others)} with {', '.join(map(repr, texts))} in {name} "
            rule += f"{'is' if others.sum() == 1 else 'are'} called like sums of other rows: "
            rule += f'totals={texts!r} leaves this out, totals="keep" counts all'
    return found._replace(mask=mask, rule=rule)


def _sum_of_all_days(
    is_whole: NDArray[np.bool_], mask: NDArray[np.bool_], summands: Mapping[str, NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Return the row called by a word for the whole that is the sum of all other rows, whatever day it has."""
    found = np.zeros_like(mask)
    sums = {name: np.nansum(values[~mask]) for name, values in summands.items()}
    is_double = [np.abs(2 * values - sums[name]) <= _ROUNDING * np.abs(values) for name, values in summands.items()]
    rows = np.flatnonzero(is_whole & ~mask & np.logical_and.reduce([*is_double, ~mask]))
    if len(rows) == 1 and any(values[rows[0]] for values in summands.values()) and (~mask).sum() > _FEWEST:
        found[rows] = True
    return found


def _is_sum_of_all(row: int, parts: NDArray[np.int64], summands: Mapping[str, NDArray[np.float64]]) -> bool:
    """Return whether each number of a row is the sum of the numbers of several *parts*."""
    sums = [(values[row], np.nansum(values[parts])) for values in summands.values() if not np.isnan(values[row])]
    if len(parts) < _FEWEST or not any(stated for stated, _ in sums):
        return False
    return all(abs(stated - added) <= _ROUNDING * abs(stated) for stated, added in sums)


def _nameless_row(
    grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], mask: NDArray[np.bool_], end: int
) -> NDArray[np.bool_]:
    """Return the row at an *end* of a file if it lacks a name that others have and its numbers are the sums of theirs.

    Whatever it is called: Net change. Two numbers must be such sums, of the rows of its day or of all rows; the others
    of all rows may be averages.
    """
    none = np.zeros(len(mask), dtype=bool)
    if not len(mask) or mask[end]:
        return none
    names = [name for name in _naming_columns(grid, meanings, cells) if not cells[name].is_typed]
    if not any(cells[name].codes[end] < 0 for name in names):
        return none
    rows: NDArray[np.bool_] = (grid.rows == grid.rows[end]) & ~mask
    parts = ~rows & ~mask
    lacks = [name for name in names if (cells[name].codes[rows] < 0).all() and (cells[name].codes[parts] >= 0).all()]
    if not lacks or not parts.any():
        return none
    times = [name for name in names if meanings[name].role in TIMES and name not in lacks]
    summands = _with_rounding(meanings, cells)
    group = groups_of({name: cells[name].codes for name in times}, times, len(mask))
    if _are_sums(group, rows, parts, summands.values()):
        return rows
    others = {name: values for name, values in summands_of(meanings, cells, MEASURES).items() if name not in summands}
    found = _are_sums(np.zeros_like(group), rows, parts, summands.values(), others.values())
    return rows if found else none


def _are_sums(
    group: NDArray[np.int64],
    rows: NDArray[np.bool_],
    parts: NDArray[np.bool_],
    summands: Iterable[tuple[NDArray[np.float64], float]],
    others: Iterable[NDArray[np.float64]] = (),
) -> bool:
    """Return whether all *summands* of *rows*, two numbers or more, are the sums of the *parts* of their group.

    The *others* may be sums too, averages, or people, of whom there are fewer than in all parts together.
    """

    def sums_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        of_group = np.bincount(group, np.where(parts, np.nan_to_num(values), 0.0), minlength=group.max() + 1)
        return np.asarray(of_group[group], dtype="float64")

    sums = 0
    for values, rounding in summands:
        told = rows & (np.nan_to_num(values) != 0)
        is_sum = np.abs(values - sums_of(values))[told] <= rounding * np.abs(values[told])
        if not is_sum.all():
            return False
        sums += int(is_sum.sum())
    for values in others:
        told, known = rows & (np.nan_to_num(values) != 0), values[parts & ~np.isnan(values)]
        of_parts = sums_of(values)[told]
        if len(known) and ((values[told] < known.min()) | (values[told] > of_parts * (1 + _ROUNDING))).any():
            return False
        sums += int((np.abs(values[told] - of_parts) <= _ROUNDING * np.abs(values[told])).sum())
    return sums >= _FEWEST


def _by_words(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    named: Sequence[str],
    answered: Mapping[str, Any],
    left_out: NDArray[np.bool_] | None = None,
) -> TotalRows:
    """Return the rows whose names say that they may add up others, with those *left_out* before."""
    names = _naming_columns(grid, meanings, cells)
    keys = [name for name in names if meanings[name].role in KEYS | TIMES or name == grid.columns[0] or is_level(name)]
    mask = _with_texts(named, cells, grid)
    mask |= False if left_out is None else left_out
    said_by_word = rows_by_word(grid, names, meanings, cells, mask, is_decided=bool(named))
    mask |= said_by_word.mask
    kinds = kinds_of_rows(meanings, cells, mask, answered)
    mask |= kinds.mask
    notes = (*said_by_word.notes, *([kinds.note] if kinds.note else []))
    rule = kinds.rule or said_by_word.rule
    has_word = mask.copy()
    wholes: dict[str, NDArray[np.bool_]] = {}
    suspects: dict[str, NDArray[np.bool_]] = {}  # rows that may add up others, by the column that says so
    of_names: dict[str, NDArray[np.bool_]] = {}  # the same, where Meta Total adds up the rows of Meta
    codes: dict[str, NDArray[np.int32]] = {}
    of_name = np.zeros(len(grid.rows), dtype=bool)
    for name in names:
        wholes[name] = _matches(cells[name], WHOLE_OF_NAMES if meanings[name].role in _NAMED_BY_ALL else WHOLE)
        words = _matches(cells[name], AT_ONE_END) | wholes[name]
        has_word |= words
        suspects[name] = words | (cells[name].codes < 0) | _matches(cells[name], _NO_VALUE)
        codes[name], is_of_name = _whose_totals(cells[name])
        of_names[name] = suspects[name] & ~is_of_name
        of_name |= is_of_name
    larger: dict[str, str] = {}
    if len(grid.rows) <= _FEWEST or not any(rows.any() for rows in suspects.values()):
        return TotalRows(mask | _totals_of_one(names, meanings, cells, mask), larger, notes, rule)
    summands = _with_rounding(meanings, cells)
    running = {name for name in summands if meanings[name].role == "cumulative"}
    ranges = _ranges(names, meanings, cells)
    if of_name.any():
        for _, _, confirmed, _, _ in _sums(
            of_names | {"": of_name}, codes, keys, summands, has_word, mask, ranges, running
        ):
            mask |= confirmed & of_name
    codes = {name: cells[name].codes for name in names}
    for said, rows, confirmed, is_larger, unsure in _sums(
        suspects, codes, keys, summands, has_word, mask, ranges, running
    ):
        mask |= confirmed
        if unsure.any() and rule is None:
            are = "is the sum of those" if unsure.sum() == 1 else "are the sums of those"
            rule = f"may count twice: {grid.rows_text(unsure)} without {' and '.join(said)} {are} with one, or more: "
            rule += 'pass the table without rows of one of the two kinds, or totals="keep", which counts both'
        for name in said:
            whole = rows & ~confirmed & wholes[name] & is_larger
            if whole.any():
                larger[name] = cells[name].distinct[int(cells[name].codes[whole.argmax()])].as_py()
                mask |= whole
    return TotalRows(mask | _totals_of_one(names, meanings, cells, mask), larger, notes, rule)


def _with_rounding(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> Summands:
    """Return the numbers that rows of one day add up, with how far their sum may be off: balances are among them.

    Without any, they are those that nothing says more of.
    """
    summands = summands_of(meanings, cells, SUMMANDS | {"stock", "cumulative"}) or summands_of(
        meanings, cells, {"number"}
    )
    is_rounded = {name: not cells[name].is_typed and cells[name].numbers.rounded is not None for name in summands}
    return {name: (values, _COARSE if is_rounded[name] else _ROUNDING) for name, values in summands.items()}


def _with_texts(named: Sequence[str], cells: Mapping[str, ColumnCells], grid: Grid) -> NDArray[np.bool_]:
    """Return the rows that have a cell of one of the texts *named*.

    Raises:
        BadQuery: none has one of them.
    """
    mask = np.zeros(len(grid.rows), dtype=bool)
    for text in named:
        found = [
            column_cells.rows_of(text)
            for column_cells in cells.values()
            if (not column_cells.is_typed or pa.types.is_boolean(column_cells.type)) and text in column_cells.texts
        ]
        if not found:
            raise BadQuery("totals", text, f"is in no cell of {grid.source}")
        mask |= np.any(found, axis=0)
    return mask


def _sums(
    suspects: Mapping[str, NDArray[np.bool_]],
    codes: Mapping[str, NDArray[np.int32]],
    keys: Sequence[str],
    summands: Summands,
    has_word: NDArray[np.bool_],
    mask: NDArray[np.bool_],
    ranges: Mapping[str, NDArray[np.datetime64]],
    running: Collection[str],
) -> Iterator[tuple[list[str], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield the rows that the same columns suspect: these columns, the rows, which are sums, are larger, are unsure.

    They are compared with the rows that fewer of them suspect, and that agree in the other *keys*; with none of *mask*,
    which the caller extends.
    """
    suspects = {name: rows for name, rows in suspects.items() if rows.any()}
    bits = np.zeros(len(mask), dtype="int64")
    for place, rows in enumerate(suspects.values()):
        bits |= rows.astype("int64") << min(place, 62)
    for pattern in sorted(np.unique(bits[bits > 0]).tolist(), key=int.bit_count):
        said = [name for place, name in enumerate(suspects) if pattern >> place & 1]
        rows = (bits == pattern) & ~mask
        parts = (bits & ~pattern == 0) & (bits != pattern) & ~mask
        by = [name for name in keys if name not in said]
        group = groups_of(codes, by, len(mask))
        confirmed, is_larger, is_comparable = _compare(group, rows, parts, summands, running)
        confirmed |= _sums_of_range(rows, parts, [name for name in by if name not in ranges], codes, ranges, summands)
        nameless = is_comparable & ~has_word
        unsure = np.zeros(len(mask), dtype=bool)
        if (nameless & ~confirmed).any():  # some rows without a name are no sum: so are the others, or all are more
            if (nameless & confirmed).any() and not (nameless & ~confirmed & ~is_larger).any():
                unsure = nameless
            confirmed &= has_word
        yield said, rows, confirmed, is_larger, unsure


def _ranges(
    names: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> dict[str, NDArray[np.datetime64]]:
    """Return the times of the columns that say where the days of a row start and end, if there are both."""
    found = {}
    for role in ("start", "end"):
        for name in [name for name in names if meanings[name].role == role and not cells[name].is_typed][:1]:
            times = cells[name].times_with(meanings[name].details)
            if isinstance(times, ParsedTimes):
                found[name] = times.at[cells[name].codes]
    return found if len(found) > 1 else {}


def _sums_of_range(
    rows: NDArray[np.bool_],
    parts: NDArray[np.bool_],
    by: Sequence[str],
    codes: Mapping[str, NDArray[np.int32]],
    ranges: Mapping[str, NDArray[np.datetime64]],
    summands: Summands,
) -> NDArray[np.bool_]:
    """Return which of *rows* are the sum of *parts* that all lie in their range of days, which is longer."""
    found = np.zeros(len(rows), dtype=bool)
    if not ranges or not rows.any():
        return found
    starts, ends = (pd.Series(at) for at in ranges.values())
    group = groups_of(codes, by, len(rows))
    first, last = (at.where(parts).groupby(group) for at in (starts, ends))
    is_around = (starts <= first.transform("min")) & (ends >= last.transform("max"))
    is_longer = (ends - starts) > (ends - starts).where(parts).groupby(group).transform("max")
    rows = rows & (is_around & is_longer).to_numpy(dtype=bool)
    return _compare(group, rows, parts, summands)[0]


def _totals_of_one(
    names: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], mask: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the rows that are totals of the rows of one name: "Moloco total", or any other words beside the name.

    A number must be the sum of these rows. Other words count only in a row without a day among rows that have one.
    """
    found = np.zeros(len(mask), dtype=bool)
    summands = _with_rounding(meanings, cells)
    texts = [name for name in names if not cells[name].is_typed]
    times = [cells[name].codes >= 0 for name in texts if meanings[name].role in TIMES]
    has_day = np.logical_or.reduce(times) if times else np.ones(len(mask), dtype=bool)
    filled_in = {name: cells[name].codes >= 0 for name in texts}
    for name in texts:
        if meanings[name].role in TIMES:
            continue
        column = cells[name]
        without_day = {*column.codes[~has_day & filled_in[name] & ~mask].tolist()} if has_day.any() else set()
        with_word = {*column.unlike_names}
        if not without_day | with_word:
            continue
        places = {folded: place for place, text in enumerate(column.texts) if (folded := folded_name(text))}
        filled = filled_down(column.codes) if are_merged(column.codes) else None
        codes = column.codes if filled is None else filled
        for place in sorted(without_day | with_word):
            rows = (column.codes == place) & ~mask
            base, has_word = _name_beside(column.texts[place], places)
            parts = codes == base if base is not None else None
            if base is None and place in with_word:
                parts, has_word = _rows_of_name(column.texts[place], [other for other in texts if other != name], cells)
            if parts is None or not (has_word or place in without_day) or not rows.any():
                continue
            of_rows = [other for other in texts if other != name and filled_in[other][rows].all()]
            group = groups_of({other: cells[other].codes for other in of_rows}, of_rows, len(mask))
            found |= _compare(group, rows, parts & ~mask & ~rows, summands)[0]
    return found


def _rows_of_name(
    text: str, others: Sequence[str], cells: Mapping[str, ColumnCells]
) -> tuple[NDArray[np.bool_] | None, bool]:
    """Return the rows whose name in another column stands in *text* beside a word of totals: Total Meta, in a week."""
    name = folded_name(WORD_AT_ONE_END.sub("", text))
    if name and name != folded_name(text):
        for other in others:
            for place, known in enumerate(cells[other].texts if len(cells[other].distinct) <= _MOST_NAMES else ()):
                if folded_name(known) == name:
                    return cells[other].codes == place, True
    return None, False


def folded_name(text: str) -> str:
    """Return a name in small letters without marks around it."""
    return " ".join(text.casefold().split()).strip(_MARKS)


def _name_beside(text: str, places: Mapping[str, int]) -> tuple[int | None, bool]:
    """Return the place of the name that stands beside other words in *text*, and whether these are of a total."""
    name = folded_name(WORD_AT_ONE_END.sub("", text))
    if name in places and name != folded_name(text):
        return places[name], True
    folded = folded_name(text)
    ends = [place.start() for place in re.finditer(r"[^\w]+", folded)]
    for part in (*(folded[:end] for end in reversed(ends)), *(folded[end:] for end in ends)):
        if (name := folded_name(part)) in places and len(name) > 1:
            return places[name], False
    return None, False


def _naming_columns(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> list[str]:
    """Return the columns of names and days: keys, and the others before the first measure."""
    measures = [place for place, name in enumerate(grid.columns) if meanings[name].role in MEASURES]
    first = min(measures, default=len(grid.columns))
    return [
        name
        for place, name in enumerate(grid.columns)
        if not cells[name].is_typed or meanings[name].role in TIMES
        if meanings[name].role in KEYS | TIMES
        or (meanings[name].role in ("text", "identifier") and (place < first or is_level(name)))
    ]


def _whose_totals(column_cells: ColumnCells) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each row's text, of a total the name that it adds up, and which rows are such totals."""
    place_of = np.arange(len(column_cells.distinct) + 1, dtype="int32")
    place_of[-1] = -1
    bare = {place: WORD_AT_ONE_END.sub("", text).strip() for place, text in column_cells.unlike_names.items()}
    shorter = {place: text for place, text in bare.items() if text and text != column_cells.unlike_names[place]}
    if shorter:
        places = {text: place for place, text in enumerate(column_cells.texts)}
        for place, text in shorter.items():
            place_of[place] = places.get(text, place)
    return place_of[column_cells.codes], (place_of != np.append(np.arange(len(column_cells.distinct)), -1))[
        column_cells.codes
    ]


def _compare(
    group: NDArray[np.int64],
    rows: NDArray[np.bool_],
    parts: NDArray[np.bool_],
    summands: Summands,
    running: Collection[str] = (),
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of *rows* are the sum of the *parts* of their group, which are larger, and which have several parts.

    A row is larger if no number of it is less than the sum. A *running* total adds up other days as well, and is
    larger for that reason.
    A row that sums up a single other one counts if a row that sums up several does, or if all do, of different values.
    """
    confirmed, larger, smaller, several, comparable = (np.zeros(len(rows), dtype=bool) for _ in range(5))
    is_pair = False
    for name, (values, rounding) in summands.items():
        known = parts & ~np.isnan(values)
        sums = np.bincount(group[known], values[known], minlength=group.max() + 1)[group]
        counts = np.bincount(group[known], minlength=group.max() + 1)[group]
        is_known = rows & ~np.isnan(values) & (values != 0) & (counts > 0)
        is_sum = is_known & (np.abs(values - sums) <= rounding * np.abs(values))
        confirmed |= is_sum
        several |= is_sum & (counts >= _FEWEST)
        comparable |= is_known & (counts >= _FEWEST)
        if name not in running:
            larger |= is_known & (values > sums) & (counts >= _FEWEST)
            smaller |= is_known & ~is_sum & (values < sums) & (values > 0)
        is_pair |= bool(is_sum[is_known].all()) and len(np.unique(values[is_sum])) >= _FEWEST_PAIRS
    return (confirmed if several.any() or is_pair else several), larger & ~smaller, comparable


def _matches(column_cells: ColumnCells, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    found = np.zeros(len(column_cells.distinct) + 1, dtype=bool)  # the last for none
    found[[place for place, text in column_cells.unlike_names.items() if pattern.fullmatch(text)]] = True
    return found[column_cells.codes]


def note_of(totals: NDArray[np.bool_], grid: Grid) -> str:
    """Return the sentence about the rows left out."""
    verb = "adds up others and is" if len(np.unique(grid.rows[totals])) == 1 else "add up others and are"
    return f'{grid.rows_text(totals)} {verb} left out; totals="keep" keeps them'


def filled_down(codes: NDArray[np.int32], before: Sequence[NDArray[np.int32]] = ()) -> NDArray[np.int32] | None:
    """Return the places of texts with each empty cell filled from above, as a merged cell is exported.

    A merged cell ends where one of the names *before* it changes. None where cells are not merged: none is empty, the
    first is, or a filled one repeats the one above it.
    """
    empty = codes < 0
    if not empty.any() or len(codes) == 0 or empty[0] or (~empty[1:] & (codes[1:] == codes[:-1])).any():
        return None
    changes = np.zeros(len(codes), dtype="int64")
    for names in before:
        changes[1:] |= (names[1:] >= 0) & (names[1:] != names[:-1])
    found = Series(np.where(empty, np.nan, codes)).groupby(changes.cumsum()).ffill().fillna(-1).to_numpy()
    return None if (found < 0).sum() == empty.sum() else found.astype("int32")


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
