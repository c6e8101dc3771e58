"""Rows that a table holds twice, as an export that was pasted below itself does: what they add up would count twice.

A report has one row for each combination of names and days, so two that are alike in every cell are one row twice. In
a list of events, where this is usual, only a long block of rows that repeats another one is suspected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray

from gamelens.analysis.files.date_parsing import ParsedTimes
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, SUMMANDS, TIMES, ColumnCells, Meaning
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

_EXPORTED = re.compile(
    r"(?<!\w)(?:export|extract|load|sync|ingest|insert|fetch|pull|download|snapshot|scrap|captur|retriev|generat|crawl)\w*"
    r"(?: (?:at|on|date|time|day|ts|timestamp|am|le|el|il))?(?!\w)|(?<!\w)(?:report|run) (?:date|run|time)(?!\w)"
    r"|abruf|exportiert|abgerufen|exporte|extrait|exportado|extraido|estratto|pobrano|выгру|экспорт|снимок"
    r"|导出|抓取|采集|取得日時|出力日|エクスポート|추출|수집|내보낸"
)
_UPDATED = re.compile(
    r"(?<!\w)(?:posted|updat|modifi|refresh|restat|revis|correct|finali[sz])\w*"
    r"(?: (?:at|on|date|time|day|ts|timestamp))?(?!\w)"
    r"|(?<!\w)(?:vintage|as of|asof)(?!\w)|aktualisiert|actualizad|actualis|atualizad|aggiornat|zaktualizowan|обновлен"
    r"|修订|修訂|更新|改訂|갱신"
)
_VERSION = re.compile(
    r"(?<!\w)(?:revision|version|rev|restatement|iteration)(?: (?:no|number|nr|id))?(?!\w)"
    r"|(?<!\w)(?:version|révision|revisión|revisão|revisione|wersja|korrektur|fassung)(?!\w)|версия|ревизия|版本|バージョン|버전"
)
_OF_A_PROGRAM = re.compile(
    r"(?<!\w)(?:apps?|os|sdk|build|game|client|creative|android|ios|store|api|code|name)(?!\w)|приложени|应用|アプリ|앱"
)
_MIXED = np.uint64(0x9E3779B97F4A7C15)
_FEWEST_NUMBERED = 5  # rows with numbers that are all different
_FIRST = 100  # cells of a column that all have digits
_FEWEST = 2  # rows that are no chance, if they are so large a share of all, or stand in a row
_SHARE = 0.05
_LONG = 10  # rows of a block in a list of events
_DIFFERENT = 5  # of these
_MOST_EXPORTS = 3  # that hold the same day
_SHARE_OF_DAYS = 0.8  # of the rows of days that are there again, or of the rows that repeat others
_SHARE_OF_BLOCK = 0.4
_MOST_VERSIONS = 50  # of one row
_MOSTLY = 0.5  # of the cells of a column of comments, which is empty


class RowHashes(NamedTuple):
    """What tells the rows of a table apart.

    Attributes:
        names: a number for each row, the same where names and days are.
        whole: the same, where all cells are.
        is_spent: which rows have a number that adds up and is not 0.
    """

    names: NDArray[np.uint64]
    whole: NDArray[np.uint64]
    is_spent: NDArray[np.bool_]


def row_hashes(
    grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], without: Collection[str] = ()
) -> RowHashes | None:
    """Return what tells the rows of *grid* apart, None if it has no numbers that add up, or nothing else.

    Columns *without* which they are told apart count as numbers do.
    """
    is_spent = np.zeros(len(grid.rows), dtype=bool)
    for name in (summands := [name for name, meaning in meanings.items() if meaning.role in SUMMANDS]):
        is_spent |= np.nan_to_num(cells[name].likely_numbers) != 0
        cells[name].release_numbers()  # eight bytes a row, for each column
    numbered = _running_number(grid, meanings, cells)
    names = [
        name for name, meaning in meanings.items() if meaning.role not in MEASURES and name not in {*without, numbered}
    ]
    if not summands or not names:
        return None
    of_names = _hashes([cells[name] for name in names], np.zeros(len(grid.rows), dtype="uint64"))
    whole = _hashes([cells[name] for name in meanings if name not in {*names, numbered}], of_names)
    return RowHashes(of_names, whole, is_spent)


def _running_number(grid: Grid, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> str | None:
    """Return the column that numbers the rows from top to bottom, which says nothing of them.

    Rows that were left out have a number too, so it grows as the numbers of the rows of the file do.
    """
    for name, meaning in meanings.items():
        if meaning.role in ("rank", "number", "count", "identifier") and _grows_by_row(_first(cells[name]), grid.rows):
            values = cells[name].likely_numbers
            if (~np.isnan(values)).sum() >= _FEWEST_NUMBERED and _grows_by_row(values, grid.rows):
                return name
    return None


def _grows_by_row(values: NDArray[np.float64], rows: NDArray[np.int64]) -> bool:
    """Return whether *values* are the numbers of the first *rows* less a constant, or 1, 2, 3; NaN is no value."""
    known = np.flatnonzero(~np.isnan(values))
    steps = np.diff(values[known])
    return len(known) > 1 and bool((steps == 1).all() or (steps == np.diff(rows[known])).all())


def _first(column: ColumnCells) -> NDArray[np.float64]:
    """Return the numbers of the first rows, NaN for other texts."""
    if column.is_typed:
        values: NDArray[np.float64] = column.values.iloc[:_FEWEST_NUMBERED].to_numpy(dtype="float64", na_value=np.nan)
        return values
    codes = column.codes[:_FEWEST_NUMBERED]
    texts = [column.distinct[int(code)].as_py().strip().rstrip(".") if code >= 0 else "" for code in codes]
    return np.array([float(text) if text.isdecimal() else np.nan for text in texts])


def of_one_document(
    repeated: NDArray[np.bool_], meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> str | None:
    """Return the column whose cells are all different but in *repeated* rows, such as the numbers of invoices."""
    for name, meaning in meanings.items():
        if meaning.role in ("identifier", "text") and not cells[name].is_typed:
            codes = cells[name].codes[~repeated & (cells[name].codes >= 0)]
            have_digits = (
                any(letter.isdigit() for letter in text) for text in cells[name].distinct[:_FIRST].to_pylist()
            )
            are_numbered = len(codes) >= _FEWEST_NUMBERED and bool((cells[name].codes[repeated] >= 0).all())
            if are_numbered and len(np.unique(codes)) == len(codes) and all(have_digits):
                return name
    return None


def repeated_rows(
    hashes: RowHashes, tables: NDArray[np.int64], *, is_list: bool, last: bool = False
) -> NDArray[np.bool_]:
    """Return which rows repeat an earlier one, or a later one if the *last* stays.

    Args:
        hashes: of the rows.
        tables: the number of the table that each row is of, where headers are repeated.
        is_list: whether each row is an event.
        last: whether the last of several rows stays, not the first.
    """
    none = np.zeros(len(tables), dtype=bool)
    is_copy = alike_rows(hashes, last=last)
    if tables.max(initial=0) > 0:  # the same days and names in two of them, restated or not
        stays = pd.Series(tables).groupby(hashes.names).transform("max" if last else "min").to_numpy()
        is_copy |= (tables != stays) & _duplicated(hashes.names, last=last) & hashes.is_spent
    if not is_copy.any():
        return none
    if not is_list and not _duplicated(hashes.names[~is_copy]).any():
        return is_copy
    length, end = _longest_block(hashes.whole)
    different = len(np.unique(hashes.whole[end - length : end]))
    if (length >= _LONG and different >= _DIFFERENT) or (2 * length >= len(none) and different > _FEWEST):
        none[end - length : end] = True
    return none


def alike_rows(hashes: RowHashes, *, last: bool = False) -> NDArray[np.bool_]:
    """Return which rows are alike in every cell to an earlier one, or to a later one if the *last* stays.

    Where other rows have the same names with other numbers, as without the column that tells them apart, this may be
    chance.
    """
    return _duplicated(hashes.whole, last=last) & hashes.is_spent


def restated_rows(
    hashes: RowHashes, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], *, is_list: bool, last: bool
) -> NDArray[np.bool_]:
    """Return which rows have the names and days of another row, with other numbers, as exports that overlap do.

    All rows of some days are there again, and no row of other days is; or a block of rows goes through days again.
    In a list of events, or where a name stands often on each day, it is usual.

    Args:
        hashes: of the rows.
        meanings: what the columns are.
        cells: their cells.
        is_list: whether each row is an event.
        last: whether the last row stays, not the first.
    """
    none = np.zeros(len(hashes.names), dtype=bool)
    times = [name for name, meaning in meanings.items() if meaning.role in TIMES]
    keys = [name for name, meaning in meanings.items() if meaning.role in KEYS]
    if is_list or not times or not keys:
        return none
    again = _duplicated(hashes.names)
    is_there_twice = np.array(pd.Series(hashes.names).duplicated(keep=False), dtype=bool)
    named = [name for name in (*keys, *times) if not cells[name].is_typed]
    if any((cells[name].codes < 0)[is_there_twice].any() for name in named):  # such as merged cells
        return none
    if (again & ~_duplicated(hashes.whole) & hashes.is_spent).sum() < _FEWEST:
        return none
    if pd.Series(hashes.names[is_there_twice]).value_counts().max() > _MOST_EXPORTS:
        return none
    day = pd.factorize(_hashes([cells[name] for name in times], np.zeros_like(hashes.names)))[0]
    share = pd.Series(is_there_twice).groupby(day).mean()
    are_days = share[share > 0].min() >= _SHARE_OF_DAYS and share.min() == 0
    length, end = _longest_block(hashes.names)
    goes_back = length >= _FEWEST and length >= _SHARE_OF_BLOCK * again.sum()
    goes_back &= len(np.unique(day[end - length : end])) > 1
    if not are_days and not goes_back:
        return none
    return _duplicated(hashes.names, last=last)


def export_times(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells], day: str | None) -> list[str]:
    """Return the columns that say of which export or version a row is, beside its *day*, numbers of versions first.

    A report date is the day of its rows where no other column is.
    """
    days = [name for name, meaning in meanings.items() if meaning.role in TIMES]
    numbered, timed = [], []
    for name in cells:
        header, role = folded_header(name), meanings[name].role
        if (
            _VERSION.search(header)
            and not _OF_A_PROGRAM.search(header)
            and role not in (*KEYS, *TIMES, "amount", "rate")
        ):
            values = cells[name].likely_numbers
            if ((values >= 0) & (values <= _MOST_VERSIONS) & (values % 1 == 0)).all():
                numbered.append(name)
        is_called = _UPDATED.search(header) or _EXPORTED.search(header)
        if is_called and name != day and role not in MEASURES and {*days} - {name} and cells[name].are_times:
            timed.append(name)
    return [name for name in (*numbered, *timed) if len(np.unique(cells[name].numbers_of_values)) > 1]


def superseded_rows(
    grid: Grid,
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    exported: Sequence[str],
    *,
    last: bool,
) -> NDArray[np.bool_]:
    """Return which rows a row of a later export has the names and days of, or of an earlier one unless the *last* stay.

    Args:
        grid: the table.
        meanings: what its columns are.
        cells: their cells.
        exported: columns of the times or numbers of the exports; the first orders them.
        last: whether the last export stays, not the first.
    """
    none = np.zeros(len(grid.rows), dtype=bool)
    is_numbered = meanings[exported[0]].role not in TIMES
    comments = []  # they tell no rows apart, nor does the number of a record where versions have numbers of their own
    for name in [name for name, meaning in meanings.items() if meaning.role in ("text", "identifier")]:
        codes = cells[name].codes
        is_of_record = is_numbered and len(np.unique(codes)) == len(codes)
        comments += [name] if is_of_record or (codes < 0).mean() > _MOSTLY else []
    hashes = row_hashes(grid, meanings, cells, [*exported, *comments])
    if hashes is None:
        return none
    if is_numbered and not np.isnan(cells[exported[0]].likely_numbers).all():
        at = pd.Series(cells[exported[0]].likely_numbers).rank(method="dense").fillna(0).to_numpy()
    elif cells[exported[0]].is_typed:
        at = pd.Series(cells[exported[0]].values).rank(method="dense").fillna(0).to_numpy()
    else:
        times = cells[exported[0]].times
        texts = pd.Series(times.at if isinstance(times, ParsedTimes) else np.array([*cells[exported[0]].texts, ""]))
        at = texts.rank(method="dense").fillna(0).to_numpy()[cells[exported[0]].codes]
    of_names = pd.DataFrame({"names": hashes.names, "at": at})
    if of_names.duplicated().mean() > _SHARE:  # a list of events
        return none
    if is_numbered and of_names["names"].value_counts().max() > _MOST_EXPORTS:
        return none
    order = np.argsort(at, kind="stable")
    again = none.copy()
    again[order] = _duplicated(hashes.names[order], last=last)
    several = pd.Series(at).groupby(hashes.names).transform("nunique").to_numpy() > 1
    found = again & several & hashes.is_spent
    return found if found.sum() >= _FEWEST else none


def superseded_problem(name: str, superseded: NDArray[np.bool_], grid: Grid, exported: str) -> BadQuery:
    """Return the question about a summand of a table of several exports of the same days."""
    have = "has" if superseded.sum() == 1 else "have"
    rule = f"would count twice: {grid.rows_text(superseded)} {have} the names and days of rows of another {exported}: "
    rule += f'repeats="last" takes the row of the latest {exported} of each, repeats="skip" of the first, '
    return BadQuery(name, UNSET, rule + 'repeats="keep" counts all')


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


def repeated_problem(name: str, repeated: NDArray[np.bool_], grid: Grid, document: str | None = None) -> BadQuery:
    """Return the question about a summand of a table with repeated rows, which the column *document* may number."""
    is_one = repeated.sum() == 1
    are = "repeats an earlier row" if is_one else "repeat earlier rows"
    why = f"with its {document}" if document else "as a table that was pasted twice does"
    rule = f"would count twice: {grid.rows_text(repeated)} {are}, {why}: "
    them = "it" if is_one else "them"
    return BadQuery(name, UNSET, f'{rule}repeats="skip" leaves {them} out, repeats="keep" counts {them}')


def _hashes(columns: Iterable[ColumnCells], begin: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a number for each row that rows with the same cells, and the same number in *begin*, share."""
    mixed = begin.copy()
    for column in columns:
        mixed ^= column.numbers_of_values.astype("int64").view("uint64") + np.uint64(2)
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
