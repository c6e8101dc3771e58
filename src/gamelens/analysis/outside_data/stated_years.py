"""The year of days without one, where a line beside the table or a row above them states it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.analysis.files.date_parsing import YEARS, read_times
from gamelens.analysis.files.days_without_year import FirstAndLastDay, dates_of
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.files.number_parsing import written_numbers
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.total_words import AVERAGE, TOTAL
from gamelens.errors import BadQuery

_YEAR: Final = re.compile(r"(?<![\d.,/_-])20\d\d(?![\d_]|[-/.,]\d)")
_OTHER: Final = re.compile(  # a financial year, a copyright, the number of an account
    r"(?i)\bFY|fiscal|gesch[aä]ftsjahr|wirtschaftsjahr|ejercicio|exercice|copyright|©|\(c\)"
    r"|\b(?:account|konto|cuenta|compte|customer|client|kund\w*|id|nr|no|invoice|rechnung)\b\.?\W*\w*\W*\d"
)
_ROUNDING: Final = 0.005
_HALF_YEAR: Final = 183
_WORD: Final = r"[^\W\d_]+\.?"
_MONTH: Final = re.compile(rf"({_WORD}(?: de| of)? 20\d\d)")
_FULL_DATE: Final = re.compile(
    rf"\d{{1,2}}(?:st|nd|rd|th|\.)?(?: de| of)? {_WORD}(?: de| of)? 20\d\d|{_WORD} \d{{1,2}}(?:st|nd|rd|th)?,? 20\d\d"
)


class StatedDays(NamedTuple):
    """A range of days that a line states."""

    days: FirstAndLastDay
    line: str


def days_beside(lines: Sequence[str]) -> StatedDays | None:
    """Return the days of a table by the lines beside it: a range, a month, a year. None if they do not agree.

    A single day is when a file was written, and says nothing.
    """
    found: list[StatedDays] = []
    for line in lines:
        if days := _days_of(line):
            found.append(StatedDays(days, line.strip()))
    if not found:
        return None
    first, last = max(stated.days[0] for stated in found), min(stated.days[1] for stated in found)
    shortest = min(found, key=lambda stated: stated.days[1] - stated.days[0])
    return StatedDays((first, last), shortest.line) if first <= last else None


def _days_of(line: str) -> FirstAndLastDay | None:
    (text,) = ascii_digits([line.strip(" \"'")])
    for part in dict.fromkeys((text, text.partition(":")[2].strip(), text.partition(" ")[2], text.rpartition("  ")[2])):
        try:
            read = read_times([part], field="")
        except (BadQuery, ValueError):
            continue
        if read.until is not None:
            return read.at[0].astype("datetime64[D]").item(), (
                read.until[0].astype("datetime64[D]").item() - timedelta(days=1)
            )
    if _OTHER.search(text) or _FULL_DATE.search(text):
        return None
    for match in _MONTH.finditer(text):
        try:
            read = read_times([match[1]], field="")
        except BadQuery:
            continue
        first: date = read.at[0].astype("datetime64[D]").item()
        return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    years = [int(year) for year in _YEAR.findall(text) if int(year) in YEARS]
    return (date(min(years), 1, 1), date(max(years), 12, 31)) if years else None


def with_days_below_headings(grid: Grid) -> Grid:
    """Return *grid* with the years of days that stand below a month or a day that has one, such as Sep 26, 2026.

    The months stand in one of the first two columns. Rows that have nothing but the month are left out, and so are
    those that have the sums of its days.
    """
    for name in grid.columns[:2]:
        if grid.is_text(name) and len(grid.rows) and (found := _below(grid, name)) is not None:
            return found
    return grid


def _below(grid: Grid, name: str) -> Grid | None:
    """Return *grid* with the years of a column, None if nothing above says them."""
    distinct, codes = grid.texts(name)
    has_years = pc.match_substring_regex(distinct, r"\d{4}")
    if not len(distinct) or codes[0] < 0 or pc.all(has_years).as_py() or not has_years[0].as_py():
        return None
    if (above := _dated(distinct[0].as_py())) is None:
        return None
    texts = distinct.to_pylist()
    of_row: list[str | None] = []
    is_heading, is_total = (np.zeros(len(codes), dtype=bool) for _ in range(2))
    known: dict[tuple[str, _Above], str | None] = {}
    for row, code in enumerate(codes.tolist()):
        text = texts[code] if code >= 0 else None
        if text is not None and (dated := _dated(text) if has_years[code].as_py() else None) is not None:
            above, is_heading[row] = dated, dated.is_month
            text = text if dated.is_month else f"{dated.first}"
        elif text is not None and (TOTAL.fullmatch(text) or AVERAGE.fullmatch(text)):
            is_total[row] = True
        elif text is not None:
            if (text, above) not in known:
                known[text, above] = _day_of(text, above)
            if (text := known[text, above]) is None:
                return None
        of_row.append(text)
    others = [other for other in grid.columns if other != name]
    if not known or not all(_is_sum_below(grid, other, is_heading, is_total) for other in others):
        return None
    column = pa.array(of_row, pa.string()).dictionary_encode()
    (example, _), first = next(iter(known.items()))
    notes = [f"{name}: {example} is read as {first}, by the month or day above it"]
    if is_heading.any():
        have = "has only a month" if is_heading.sum() == 1 else "have only a month"
        notes.append(f"{grid.rows_text(is_heading)} {have} or the sums of its days, left out")
    dated_grid = replace(grid, cells=grid.cells.set_column(grid.columns.index(name), name, column))
    return dated_grid.filtered(~is_heading, *notes)


def _is_sum_below(grid: Grid, name: str, is_heading: NDArray[np.bool_], is_total: NDArray[np.bool_]) -> bool:
    """Return whether a column has nothing in rows of months, or the sums of the rows below them."""
    is_there = grid.cells.column(name).is_valid().to_numpy() & is_heading
    if not is_there.any():
        return True
    distinct, codes = grid.texts(name)
    written = written_numbers(distinct)
    values = np.append(written.values((written.fitting or (".",))[0]), 0.0)[codes]
    of_days = np.where(is_heading | is_total, 0.0, values)
    sums = np.bincount(is_heading.cumsum(), of_days)[1:]
    return bool((np.abs(values[is_heading] - sums) <= _ROUNDING * np.abs(sums))[is_there[is_heading]].all())


class _Above(NamedTuple):
    """A month or a day that is named with its year."""

    first: date
    is_month: bool


def _dated(text: str) -> _Above | None:
    """Return the month or the day of a text with a year, None for any other text."""
    try:
        read = read_times([text], field="")
    except BadQuery:
        return None
    first: date = read.at[0].astype("datetime64[D]").item()
    return _Above(first, read.precision == "month") if read.precision in ("month", "day") else None


def _day_of(text: str, above: _Above) -> str | None:
    """Return the day of a month, or near a day, that a text without a year names; None if it names none."""
    first = above.first
    if above.is_month and re.fullmatch(r"\d{1,2}\.?", text.strip()):
        text = f"{text.strip(' .')}.{first.month}."
    try:
        (day,) = dates_of([text], field="", year=first.year) or [""]
        is_near = above.is_month or abs((date.fromisoformat(day) - first).days) < _HALF_YEAR
    except (BadQuery, ValueError):
        return None
    is_day = len(day) == len("2026-11-01") and is_near
    return day if is_day and (not above.is_month or day.startswith(f"{first:%Y-%m}")) else None
