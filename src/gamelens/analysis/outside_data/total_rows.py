"""Rows of an outside table that add up others, and would count everything twice.

A total word alone, or followed by a colon, "of" or a number, is enough. A word at one end of a name, a word for the
whole, or an empty key counts only if a number of the row is the sum of the rows that agree in all other keys. A name
beside a total word is a total of the rows of this name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.files.date_parsing import ParsedTimes
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
_WORDS_OF_ONE: Final = (
    r"(?:grand|sub)?[ -]?totals?|totale|totaal|subtotaal|totalt|sub-?totale|sum|summe|gesamt(?:summe|ergebnis)?"
    r"|ergebnis|zwischensumme|suma|somme|sous-total|soma|somma|summa|toplam|toplamı|ara toplam|razem|celkem|součet"
    r"|összesen|összeg|ukupno|yhteensä|i alt|итого|итог|всего|сумма"
    r"|合計|小計|総計|集計|总计|合计|汇总|小计|總計|합계|총계|소계|요약"
)
_PREPOSITION: Final = r"(?:\s+(?:of|for|von|für|de|du|des|pour|para|di|z|dla|za|по))?"
_OF_ONE: Final = re.compile(  # a total word at one end of a name, and the name
    rf"(?i)\W*(?:{_WORDS_OF_ONE})(?!\w){_PREPOSITION}\W+(?P<after>.+)|(?P<before>.+?)(?:\W+|(?<=\W))(?:{_WORDS_OF_ONE})\W*"
)
_MARKS: Final = " :–—-()[]\"'"
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
        return TotalRows(mask | _totals_of_one(names, meanings, cells, mask), larger)
    summands = {name: _numbers(cells[name]) for name, meaning in meanings.items() if meaning.role in SUMMANDS}
    table = DataFrame({name: cells[name].codes for name in keys}, index=range(len(mask)))
    ranges = _ranges(names, meanings, cells)
    bits = np.zeros(len(mask), dtype="int64")
    for place, rows in enumerate(suspects.values()):
        bits |= rows.astype("int64") << min(place, 62)
    patterns = np.unique(bits)
    for pattern in sorted(patterns[patterns > 0].tolist(), key=int.bit_count):
        said = [name for place, name in enumerate(suspects) if pattern >> place & 1]
        rows = (bits == pattern) & ~mask
        parts = (bits & ~pattern == 0) & (bits != pattern) & ~mask
        by = [name for name in keys if name not in said]
        group = _groups(table, by)
        confirmed, is_larger, is_comparable = _compare(group, rows, parts, summands)
        confirmed |= _sums_of_range(rows, parts, [name for name in by if name not in ranges], table, ranges, summands)
        if (is_comparable & ~confirmed & ~has_word).any():  # some rows without a name are no sum: so are the others
            confirmed &= has_word
        mask |= confirmed
        for name in said:
            whole = rows & ~confirmed & _matches(cells[name], _WHOLE) & is_larger
            if whole.any():
                larger[name] = cells[name].distinct[int(cells[name].codes[whole.argmax()])].as_py()
                mask |= whole
    return TotalRows(mask | _totals_of_one(names, meanings, cells, mask), larger)


def _groups(table: DataFrame, by: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of the group of each row, the same for rows that agree in *by*."""
    if not by:
        return np.zeros(len(table), dtype="int64")
    groups: NDArray[np.int64] = np.asarray(table.groupby(list(by), sort=False).ngroup(), dtype="int64")
    return groups


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
    table: DataFrame,
    ranges: Mapping[str, NDArray[np.datetime64]],
    summands: Mapping[str, NDArray[np.float64]],
) -> NDArray[np.bool_]:
    """Return which of *rows* are the sum of *parts* that all lie in their range of days, which is longer."""
    found = np.zeros(len(rows), dtype=bool)
    if not ranges or not rows.any():
        return found
    starts, ends = (pd.Series(at) for at in ranges.values())
    group = _groups(table, by)
    first, last = (at.where(parts).groupby(group) for at in (starts, ends))
    is_around = (starts <= first.transform("min")) & (ends >= last.transform("max"))
    is_longer = (ends - starts) > (ends - starts).where(parts).groupby(group).transform("max")
    rows = rows & (is_around & is_longer).to_numpy(dtype=bool)
    return _compare(group, rows, parts, summands)[0]


def _totals_of_one(
    names: Sequence[str], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], mask: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the rows that are totals of the rows of one name: "Moloco total", or any other words beside the name.

    Without a day among rows that have one, a total word is enough; otherwise a number must be the sum of these rows.
    """
    found = np.zeros(len(mask), dtype=bool)
    summands = {name: _numbers(cells[name]) for name, meaning in meanings.items() if meaning.role in SUMMANDS}
    texts = [name for name in names if not cells[name].is_typed]
    times = [cells[name].codes >= 0 for name in texts if meanings[name].role in TIMES]
    has_day = np.logical_or.reduce(times) if times else np.ones(len(mask), dtype=bool)
    filled_in = {name: cells[name].codes >= 0 for name in texts}
    for name in texts:
        if meanings[name].role in TIMES:
            continue
        own = cells[name]
        without_day = {*own.codes[~has_day & filled_in[name] & ~mask].tolist()} if has_day.any() else set()
        with_word = {*np.flatnonzero(pc.match_substring_regex(own.distinct, f"(?i){_WORDS_OF_ONE}")).tolist()}
        if not without_day | with_word:
            continue
        places = {folded: place for place, text in enumerate(own.texts) if (folded := _folded(text))}
        filled = filled_down(own.codes) if are_merged(own.codes) else None
        codes = own.codes if filled is None else filled
        for place in sorted(without_day | with_word):
            base, has_word = _name_beside(own.texts[place], places)
            if base is None or not (has_word or place in without_day):
                continue
            rows = (own.codes == place) & ~mask
            if has_word and has_day.any():
                found |= rows & ~has_day
            by = [other for other in texts if other != name and filled_in[other][rows].all()] if rows.any() else []
            table = DataFrame({other: cells[other].codes for other in by}, index=range(len(mask)))
            found |= _compare(_groups(table, by), rows, (codes == base) & ~mask & ~rows, summands)[0]
    return found


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)


def _name_beside(text: str, places: Mapping[str, int]) -> tuple[int | None, bool]:
    """Return the place of the name that stands beside other words in *text*, and whether these are of a total."""
    if (match := _OF_ONE.fullmatch(text)) and (name := _folded(match["after"] or match["before"])) in places:
        return places[name], True
    folded = _folded(text)
    ends = [place.start() for place in re.finditer(r"[^\w]+", folded)]
    for part in (*(folded[:end] for end in reversed(ends)), *(folded[end:] for end in ends)):
        if (name := _folded(part)) in places and len(name) > 1:
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
