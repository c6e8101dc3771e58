"""The year, or the month, of days without one, where a line beside the table or a row above them states it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gamelens.analysis.files.date_parsing import YEARS, date_words, folded_word, read_times
from gamelens.analysis.files.days_without_year import FirstAndLastDay, dates_of
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.files.number_parsing import written_numbers
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.words.total_words import AVERAGE_AT_ONE_END, TOTAL_AT_ONE_END
from gamelens.errors import BadQuery

_YEAR: Final = re.compile(r"(?<![\d.,/_-])20\d\d(?![\d_]|[-/.,]\d)")
_OTHER: Final = re.compile(  # a financial year, a copyright, the number of an account
    r"(?i)\bFY|fiscal|年度|회계연도|gesch[aä]ftsjahr|wirtschaftsjahr|ejercicio|exercice|copyright|©|\(c\)"
    r"|\b(?:account|konto|cuenta|compte|customer|client|kund\w*|id|nr|no|invoice|rechnung)\b\.?\W*\w*\W*\d"
)
_ROUNDING: Final = 0.005
_FEWEST_OF_RANGE: Final = 2  # months, which say the years of a financial year
_HALF_YEAR: Final = 183
_DAY_NUMBER: Final = r"^\d{1,2}(?:\.| ?[日일])?$"
_LONGEST_MONTH: Final = 24  # letters of a month and its year
_MONTH_AND_YEAR: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-01(?:[T ]00:00(?::00)?)?"  # a cell of a spreadsheet that shows Oct 26
    r"|(?P<short>\d\d) ?[年년] ?(?P<east>\d{1,2}) ?[月월]|(?P<first>\d{1,2})[-/.](?P<last>\d\d)",
    re.ASCII,
)
_BUDDHIST: Final = 2500 - 543  # the year 0 of two digits of Thai years
_MONTH_ALONE: Final = re.compile(r"\d{1,2} ?[月월]", re.ASCII)
_YEAR_BEHIND: Final = re.compile(r"(?P<name>\D*[^\W\d])[\s.,'’/-]*(?P<year>[0-9]{2})?")
_WORD: Final = r"[^\W\d_]+\.?"
_MONTH: Final = re.compile(rf"({_WORD}(?: de| of)?[ /-]20\d\d)")
_EASTERN_MONTH: Final = re.compile(r"(20\d\d) ?[年년] ?(\d{1,2}) ?[月월](?! ?\d)")
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
    if _FULL_DATE.search(text):
        return None
    months = [date(int(year), int(month), 1) for year, month in _EASTERN_MONTH.findall(text) if 0 < int(month) <= 12]
    for match in _MONTH.finditer(text):
        try:
            read = read_times([re.sub("[/-]", " ", match[1])], field="")
        except BadQuery:
            continue
        months.append(read.at[0].astype("datetime64[D]").item())
    if len({*months}) < _FEWEST_OF_RANGE and _OTHER.search(text):
        return None
    if months:
        return min(months), (max(months) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    years = [int(year) for year in _YEAR.findall(text) if int(year) in YEARS]
    return (date(min(years), 1, 1), date(max(years), 12, 31)) if years else None


def with_days_below_headings(grid: Grid) -> Grid:
    """Return *grid* with the months and years of days that stand below a month or a day that has them.

    Such as Sep 26, 2026 above 27, or Sep 26 above the numbers of its days. The months stand in one of the first two
    columns. Rows that have nothing but the month are left out, and so are those that have the sums of its days. A row
    without a day that has these sums is called a total.
    """
    for name in grid.columns[:2]:
        if grid.is_text(name) and len(grid.rows) and (found := _below(grid, name)) is not None:
            return found
    return grid


def _below(grid: Grid, name: str) -> Grid | None:
    """Return *grid* with the years of a column, None if nothing above says them."""
    distinct, codes = grid.texts(name)
    if not len(distinct) or codes[0] < 0:
        return None
    headings = _months_above_numbers(distinct)
    has_years = pc.match_substring_regex(distinct, r"\d{4}")
    is_dated = has_years[0].as_py() and not pc.all(has_years).as_py() and _dated(distinct[0].as_py()) is not None
    if not headings and not is_dated:
        return None
    texts = distinct.to_pylist()
    above: _Above = _Above(None, is_month=False)
    of_row: list[str | None] = []
    is_heading, is_total, is_unread = (np.zeros(len(codes), dtype=bool) for _ in range(3))
    known: dict[tuple[str, _Above], str | None] = {}
    for row, code in enumerate(codes.tolist()):
        text = texts[code] if code >= 0 else None
        dated = headings.get(text or "")
        if dated is None and text is not None and has_years[code].as_py():
            dated = _dated(text)
        if dated is not None:
            above, is_heading[row] = dated, dated.is_month
            text = text if dated.is_month else f"{dated.first}"
        elif text is None:
            is_unread[row] = True
        elif TOTAL_AT_ONE_END.fullmatch(text) or AVERAGE_AT_ONE_END.fullmatch(text):
            is_total[row] = True
        else:
            if (text, above) not in known:
                known[text, above] = _day_of(text, above)
            is_unread[row] = known[text, above] is None
            text = known[text, above]
        of_row.append(text)
    others = [other for other in grid.columns if other != name]
    is_sum = is_unread & is_heading.any() & _are_sums_above(grid, others, is_heading, is_total | is_unread)
    if (is_unread & (codes >= 0) & ~is_sum).any():
        return None
    is_total |= is_sum
    read = {key: day for key, day in known.items() if day is not None}
    if not read or not all(_is_sum_below(grid, other, is_heading, is_total) for other in others):
        return None
    of_row = ["total" if is_sum[row] else text for row, text in enumerate(of_row)]
    column = pa.array(of_row, pa.string()).dictionary_encode()
    (example, _), first = next(iter(read.items()))
    notes = [f"{name}: {example} is read as {first}, by the month or day above it"]
    if is_heading.any():
        have = "has only a month" if is_heading.sum() == 1 else "have only a month"
        notes.append(f"{grid.rows_text(is_heading)} {have} or the sums of its days, left out")
    dated_grid = replace(grid, cells=grid.cells.set_column(grid.columns.index(name), name, column))
    return dated_grid.filtered(~is_heading, *notes)


def _values(grid: Grid, name: str) -> NDArray[np.float64]:
    """Return the number of each row of a column, 0 for none."""
    if not grid.is_text(name):
        typed: NDArray[np.float64] = grid.numbers(name).to_numpy(dtype="float64", na_value=0.0)
        return typed
    distinct, codes = grid.texts(name)
    written = written_numbers(distinct)
    values: NDArray[np.float64] = np.append(written.values((written.fitting or (".",))[0]), 0.0)[codes]
    return np.nan_to_num(values)


def _are_sums_above(
    grid: Grid, names: Sequence[str], is_heading: NDArray[np.bool_], is_left_out: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which rows have nothing but the sums of all days below the heading above them, or below another such row.

    Sums of one day count only beside one of several.
    """
    found = _are_sums_below(grid, names, is_heading, is_heading, is_left_out)
    return found | _are_sums_below(grid, names, is_heading, is_heading | found, is_left_out) if found.any() else found


def _are_sums_below(
    grid: Grid,
    names: Sequence[str],
    is_heading: NDArray[np.bool_],
    is_start: NDArray[np.bool_],
    is_left_out: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which rows have the sums of the days since the last row of *is_start* above them."""
    block, is_day = is_start.cumsum() - (is_start & ~is_heading), ~(is_heading | is_left_out)
    days = pd.Series(is_day).groupby(block).cumsum().to_numpy()
    are_sums, has_number = days > 0, np.zeros(len(days), dtype=bool)
    for name in names:
        values = _values(grid, name)
        sums = pd.Series(np.where(is_day, values, 0.0)).groupby(block).cumsum().to_numpy()
        are_sums &= np.abs(values - sums) <= _ROUNDING * np.abs(sums)
        are_sums &= (values != 0) | ~grid.cells.column(name).is_valid().to_numpy()  # no name, either
        has_number |= values != 0
    found = are_sums & has_number & ~is_heading
    return found if (found & is_left_out & (days > 1)).any() else np.zeros_like(found)


def _is_sum_below(grid: Grid, name: str, is_heading: NDArray[np.bool_], is_total: NDArray[np.bool_]) -> bool:
    """Return whether a column has nothing in rows of months, or the sums of the rows below them."""
    is_there = grid.cells.column(name).is_valid().to_numpy() & is_heading
    if not is_there.any():
        return True
    values = _values(grid, name)
    of_days = np.where(is_heading | is_total, 0.0, values)
    sums = np.bincount(is_heading.cumsum(), of_days)[1:]
    return bool((np.abs(values[is_heading] - sums) <= _ROUNDING * np.abs(sums))[is_there[is_heading]].all())


class _Above(NamedTuple):
    """A month or a day, with its year if that is named, else the text of the month."""

    first: date | None
    is_month: bool
    text: str = ""


def _months_above_numbers(distinct: Any) -> dict[str, _Above]:
    """Return the texts that name a month, by text, if the first is one and others are plain numbers of days.

    Beside these, Sep 26 is September 2026 and not its day 26.
    """
    first = distinct[0].as_py()
    if _month_in(first) is None or not pc.any(pc.match_substring_regex(distinct, _DAY_NUMBER)).as_py():
        return {}
    return {text: month for text in distinct.to_pylist() if (month := _month_in(text)) is not None}


def _month_in(text: str) -> _Above | None:
    """Return the month that a text is, such as Sep 26, Okt. '26, 10/26 or October; None for any other text."""
    text = " ".join(text.split())
    if len(text) > _LONGEST_MONTH:
        return None
    if match := _MONTH_AND_YEAR.fullmatch(text):
        year = int(match["year"] or f"20{match['short'] or match['last']}")
        month = int(match["month"] or match["east"] or match["first"])
        return _Above(date(year, month, 1), is_month=True) if year in YEARS and 1 <= month <= 12 else None
    if _MONTH_ALONE.fullmatch(text):
        return _Above(None, is_month=True, text=text)
    if (dated := _dated(text)) is not None:
        return dated if dated.is_month else None
    match = _YEAR_BEHIND.fullmatch(text)
    words, folded = date_words(), folded_word(match["name"]) if match else ""
    rest = re.findall(r"[^\W\d_]+", words.month.sub(" ", folded))
    if not match or len(words.month.findall(folded)) != 1 or {*rest} - words.between:
        return None
    if match["year"] is None:
        return _Above(None, is_month=True, text=match["name"])
    is_thai = any("\u0e00" <= letter <= "\u0e7f" for letter in match["name"])
    year = int(match["year"]) + (_BUDDHIST if is_thai else 2000)
    if year not in YEARS:
        return None
    text = f"{match['name']} {year}"
    return _dated(text) or _Above(None, is_month=True, text=text)  # a month by its language, which all texts tell


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
    if first is None:
        number = text.strip(" .日일") if re.fullmatch(_DAY_NUMBER, text.strip()) else ""
        east = f"{above.text}{number}日" if above.text[-1:] in ("月", "월") else f"{number} {above.text}"
        return east if number and above.text else None
    if above.is_month and re.fullmatch(_DAY_NUMBER, text.strip()):
        text = f"{text.strip(' .日일')}.{first.month}."
    try:
        (day,) = dates_of([text], field="", year=first.year) or [""]
        is_near = above.is_month or abs((date.fromisoformat(day) - first).days) < _HALF_YEAR
    except (BadQuery, ValueError):
        return None
    is_day = len(day) == len("2026-11-01") and is_near
    return day if is_day and (not above.is_month or day.startswith(f"{first:%Y-%m}")) else None
