"""Months by their number in a fiscal year: FY26-P06 is September where the file says that P01 is April 2026.

The file, or `roles=`, says in which month such a year begins; a calendar year is never assumed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Final, NamedTuple

import numpy as np

from gamelens.analysis.files.date_parsing import ParsedTimes, date_words, folded_word, read_times
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

_MARK: Final = r"(?:FY|GJ|WJ|FJ|EF|EJ)"
_SHORT_YEAR: Final = r"['’]?(?P<year>20\d\d|\d\d)(?:\s?[/–-]\s?(?:20)?\d\d(?!\d))?"
_YEAR: Final = rf"(?:(?P<mark>{_MARK})\s?)?{_SHORT_YEAR}(?P<east>\s?年度)?"
_PERIOD: Final = (
    r"(?:(?P<kind>FP|AP|PERIODE?|PER|P|MONAT|MONTH|M|第)\.?\s?0{0,2}(?P<number>1[0-3]|[1-9])(?:\s?(?:期|ヶ月目|か月目))?"
    r"|第?(?:Q|(?=\d\s?四半期))(?P<quarter>[1-4])(?:\s?四半期)?|H(?P<half>[12]))"
)
_BETWEEN: Final = r"[\s_./:-]*"
_CODES: Final = tuple(
    re.compile(f"(?i){pattern}") for pattern in (_YEAR + _BETWEEN + _PERIOD, _PERIOD + _BETWEEN + _YEAR, _PERIOD)
)
_CALLED: Final = re.compile(
    r"(?<!\w)(?:period|periode|periodo|fiscal|financial year|accounting|geschaftsjahr|wirtschaftsjahr|abrechnungsmonat"
    r"|exercice|ejercicio|esercizio)(?!\w)|会計|年度|期間|期间|기간|회계"
)
"""Folded words of headers of such periods."""
_YEAR_IS: Final = re.compile(
    rf"(?i)(?<![^\W_])(?:{_MARK}\s?{_SHORT_YEAR}|(?P<whole>20\d\d)\s?年度)\s?[=:：]\s?(?P<rest>.+)"
)
_PERIOD_IS: Final = re.compile(
    rf"(?i)(?<![^\W_])(?:{_MARK}?\s?(?P<year>20\d\d|\d\d)[\s_./-]*)?(?:FP|AP|PERIODE?|P|M)\.?\s?0?(?P<number>1[0-2]|[1-9])"
    r"\s?(?:=|:|：|is|ist)\s?(?P<rest>.+)"
)
_BEGINS: Final = re.compile(
    rf"(?i)(?:{_MARK}(?:\s?\d+)?|(?:fiscal|financial)(?: year| calendar)?|(?:gesch[aä]fts|wirtschafts)jahr"
    r"|ejercicio(?: fiscal)?"
    r"|exercice(?: fiscal)?|esercizio|boekjaar|rok obrotowy|会計年度|事業年度|年度|회계연도)[\s:：は의은]*"
    r"(?:starts?|begins?|commences?|startet|beginnt|ab(?= )|d[ée]bute|commence|empieza|comienza|inizia|begint|zaczyna"
    r"|\d*月?開始|\d+월 시작)"
)
_CUT: Final = re.compile(r"[;,；、()（）\[\]～~–—→]|\s-\s|\s(?:to|until|through|bis|au|al|a|do|t/m)\s|から|まで")
_EASTERN: Final = re.compile(r"(?<!\d)(1[0-2]|[1-9])\s?[月월]")
_MOST_WORDS: Final = 4
_PERIODS: Final = 12
_OF_CALENDAR: Final = ("", "M", "MONTH", "MONAT")
"""Kinds of a period that is one of a calendar year unless it is marked: 2026M06 is June, Q3 a quarter."""


class FiscalPeriod(NamedTuple):
    """Months of a fiscal year: the first one, counted from 1, and how many."""

    year: int | None
    first: int
    months: int


class FiscalYear(NamedTuple):
    """The first month of a fiscal year, None for the year that has no number, and the line that says it."""

    year: int | None
    first: date
    line: str


def is_definition(line: str) -> bool:
    """Return whether a line says what a fiscal year or a period is, and no days of its table: P01 = April 2026."""
    is_said = "=" in line and bool(_YEAR_IS.search(line) or _PERIOD_IS.search(line))
    return is_said or _BEGINS.search(line) is not None


def fiscal_periods(texts: Sequence[str], header: str) -> list[FiscalPeriod] | None:
    """Return the fiscal periods that *texts* are, None if one is none, or nothing says that they are fiscal.

    A text or the header says it: P06 is a period below Fiscal period, and may be anything below Code.
    """
    found, is_marked = [], False
    for text in ascii_digits(texts):
        match = next((match for code in _CODES if (match := code.fullmatch(text.strip()))), None)
        if match is None:
            return None
        said = match.groupdict()
        is_fiscal = bool(said.get("mark") or said.get("east"))
        if not is_fiscal and (said["kind"] or "").upper() in _OF_CALENDAR:
            return None
        is_marked |= is_fiscal
        year = int(said["year"]) % 2000 + 2000 if said.get("year") else None
        for name, months in (("number", 1), ("quarter", 3), ("half", 6)):
            if said[name]:
                found.append(FiscalPeriod(year, (int(said[name]) - 1) * months + 1, months))
    is_one_kind = len({period.year is None for period in found}) == 1
    return found if is_one_kind and (is_marked or _CALLED.search(folded_header(header))) else None


def fiscal_times(
    texts: Sequence[str], *, field: str, lines: Sequence[str], first: str | None = None
) -> ParsedTimes | None:
    """Return the months of fiscal periods, None for other texts.

    *lines* stand beside the table. *first* is the first month of the earliest fiscal year, 2026-04, by an argument.

    Raises:
        BadQuery: nothing says in which month the year begins, or it has other periods than months.
    """
    periods = fiscal_periods(texts, field) if texts else None
    if periods is None:
        return None
    if max(period.first for period in periods) > _PERIODS:
        rule = "is the thirteenth period of a fiscal year, so these are no months: write the days of each, "
        place = max(range(len(periods)), key=lambda place: periods[place].first)
        raise BadQuery(field, texts[place], f"{rule}2026-10-01 to 2026-10-28")
    years = sorted({period.year for period in periods if period.year is not None})
    begins, where = _stated_first(field, first), "roles="
    if begins is None:
        known = [defined for line in lines for defined in _definitions(line)]
        said = {(_for_year(defined, years), defined.line) for defined in known}
        months = {month for month, _ in said if month is not None}
        if len(months) != 1:
            raise _unknown_year(field, texts[0], years, lines)
        begins = min(months)
        where = repr(next(line.strip() for month, line in said if month == begins))
    starts = [_month(begins, period.first - 1 + 12 * ((period.year or 0) - (years or [0])[0])) for period in periods]
    at = np.array(starts, dtype="datetime64[M]")
    note = f"{field}: {texts[0]} is read as {starts[0]:%Y-%m}, by {where}"
    moments = at.astype("datetime64[us]")
    if all(period.months == 1 for period in periods):
        return ParsedTimes(moments, "month", note=note)
    until = at + np.array([period.months for period in periods]).astype("timedelta64[M]")
    return ParsedTimes(moments, "period", until=until.astype("datetime64[us]"), note=note)


def _unknown_year(field: str, example: str, years: Sequence[int], lines: Sequence[str]) -> BadQuery:
    """Return the question in which month the earliest fiscal year begins."""
    begins = next((month for line in lines if (month := _month_without_year(line)) is not None), 1)
    year = years[0] if years else None
    named = f"FY{year}" if year else "its fiscal year"
    rule = f"is a period of a fiscal year, and nothing says in which month {named} begins: "
    first = date(year or 2026, begins, 1)
    likely = [first, date(first.year - 1, begins, 1)] if begins > 1 else [first]
    steps = [
        f'roles={{"{field}": {{"role": "month", "first": "{month:%Y-%m}"}}}} if it begins in {month:%B %Y}'
        for month in likely
    ]
    other = "" if begins > 1 else ", or the month that it begins in"
    none = f', roles={{"{field}": "text"}} if it is something else'
    return BadQuery(field, example, rule + ", ".join(steps) + other + none)


def _stated_first(field: str, first: str | None) -> date | None:
    if first is None:
        return None
    begins = _month_in(str(first))
    if begins is None:
        raise BadQuery("roles", first, f'is no month in which a year of {field} begins: write "2026-04"')
    return begins


def _definitions(line: str) -> list[FiscalYear]:
    """Return what a line says of the first months of fiscal years."""
    found = []
    for match in _YEAR_IS.finditer(line):
        if (month := _month_in(match["rest"])) is not None:
            found.append(FiscalYear(int(match["year"] or match["whole"]) % 2000 + 2000, month, line))
    if (begins := _BEGINS.search(line)) is not None:
        behind = re.sub(r"^\W*(?:on|in|am|im|le|el|il)\b", "", line[begins.end() :])
        found += [] if (month := _month_in(behind)) is None else [FiscalYear(None, month, line)]
    for part in re.split(r"[;；,()（）]", line):
        said = _PERIOD_IS.search(part)
        if said is not None and (month := _month_in(said["rest"])) is not None:
            year = int(said["year"]) % 2000 + 2000 if said["year"] else None
            found.append(FiscalYear(year, _month(month, 1 - int(said["number"])), line))
    return found


def _for_year(defined: FiscalYear, years: Sequence[int]) -> date | None:
    """Return the first month of the earliest of *years*; a period without a year is one of the only one."""
    if defined.year is None:
        return defined.first if len(years) < 2 else None
    return _month(defined.first, 12 * (years[0] - defined.year)) if years else defined.first


def _month(first: date, months: int) -> date:
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    return date(year, month + 1, 1)


def _month_in(text: str) -> date | None:
    """Return the month that a text begins with, by its name or its first day: April 2026, 2026年4月1日."""
    words = _CUT.split(text.strip())[0].split()
    for count in range(min(len(words), _MOST_WORDS), 0, -1):
        for day_first in (None, True, False):
            with suppress(BadQuery, ValueError):
                read = read_times([" ".join(words[:count])], field="", day_first=day_first)
                day: date = read.at[0].astype("datetime64[D]").item()
                if read.precision in ("day", "month") and read.until is None and day.day == 1:
                    return day
    return None


def _month_without_year(line: str) -> int | None:
    """Return the month in which a line says that fiscal years begin, whatever the year."""
    if (match := _BEGINS.search(line)) is None:
        return None
    behind = line[match.start() :]
    if eastern := _EASTERN.search(behind):
        return int(eastern[1])
    words = date_words()
    found = words.month.search(folded_word(behind))
    return words.months.get(found[0]) if found else None
