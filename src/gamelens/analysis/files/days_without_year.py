"""Days and months that are written without their year: 01.11., 10/31, Sep 26, 11月1日, October.

Each takes the year that an argument or a range of days says. Sep 26 is also how a spreadsheet shows September 2026;
where nothing tells, the analyst is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from gamelens.analysis.files.date_parsing import (
    YEARS,
    NotTimes,
    date_words,
    folded_word,
    is_order_day_first,
    months_of,
    without_remarks,
)
from gamelens.analysis.files.day_ranges import DayRange, in_order, ranges_of
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.files.month_parts import MonthPart, month_parts
from gamelens.errors import BadQuery

_NUMBERS: Final = re.compile(r"(\d\d?)(?P<mark>[-/.]) ?(\d\d?)(?P<dot>\.)?", re.ASCII)
_EAST_ASIAN: Final = re.compile(r"(\d\d?) ?[月월](?: ?(\d\d?) ?[日일])?")
_WEEK: Final = re.compile(
    r"(?:kw|cw|wk?|week|woche|semaine|semana|settimana|sem\.?|s|uke|uge|vecka|v|viikko|vko|tydzien|tyden|tyzden|het|hafta"
    r"|неделя|нед|тиждень|tuan|minggu|weeknummer|saptamana) ?\.? ?(\d\d?)",
    re.ASCII,
)
_LAST_WEEK: Final = 53
_UNSEEN: Final = re.compile("[\u200e\u200f]")
_SHORT_YEAR: Final = re.compile(r"['’](\d\d)$", re.ASCII)
_ORDINAL: Final = re.compile(r"\d(?:st|nd|rd|th|\.|er|º)(?!\w)")
_SIX_DAYS: Final = timedelta(days=6)
_FEWEST_STEPS: Final = 2  # from a month to the next
_FEWEST_MONTHS: Final = 2  # with the same number behind them, which is a year

FirstAndLastDay = tuple[date, date]
"""The first and the last day of a range."""


class NoYear(NotTimes):
    """Texts that are days or months, and name no year."""


class _Written(NamedTuple):
    """A month and a number beside it, which is a day or the last digits of a year; 0 for none."""

    month: int
    number: int
    is_day: bool = False
    is_year: bool = False


def dates_of(
    texts: Sequence[str],
    *,
    field: str,
    year: int | None = None,
    within: FirstAndLastDay | None = None,
    are_months: bool = False,
    day_first: bool | None = None,
    language: str | None = None,
    beside: Sequence[str] = (),
) -> list[str] | None:
    """Return the days (2026-11-01) or months (2026-11) of *texts* without a year, None if they are something else.

    Args:
        texts: distinct texts, in the order of the rows.
        field: the column.
        year: the year of all of them.
        within: a range that holds all of them.
        are_months: whether Sep 26 is a month.
        day_first: as in `read_times`.
        language: as in `read_times`.
        beside: as in `read_times`.

    Raises:
        NoYear: nothing says the year, or whether a number is one; or day and month may be swapped.
        BadQuery: a name is of two months.
    """
    texts = ascii_digits(texts)
    plain = [" ".join(_UNSEEN.sub(" ", text).split()).strip(" ,") for text in without_remarks(texts, field)]
    if (parts := month_parts(plain)) is not None:
        return _of_month_parts(texts, parts, field, year, within, {"language": language, "beside": beside})
    if (ranges := ranges_of(plain)) is not None:
        hints: dict[str, Any] = {"language": language, "beside": beside}
        return _of_ranges(texts, ranges, field, year, within, day_first, hints)
    if all(weeks := [_WEEK.fullmatch(folded_word(text)) for text in plain]):
        return _weeks(texts, [int(match[1]) for match in weeks if match], field, year, within)
    written = _numbers(plain, field, day_first, within) or _names(plain, field, language, beside)
    if not written:
        return None
    numbers = {part.number for part in written}
    can_be_years = numbers <= {number - 2000 for number in YEARS}
    if numbers == {0}:
        return _with_years(texts, written, field, year, within)
    if can_be_years and (are_months or any(part.is_year for part in written) or max(numbers) > 31):
        return [f"{2000 + part.number}-{part.month:02}" for part in written]
    if 0 in numbers or max(numbers) > 31:
        return None
    is_same = len(numbers) == 1 and len({part.month for part in written}) >= _FEWEST_MONTHS
    are_days = not can_be_years or any(part.is_day for part in written) or not (is_same or _is_behind(plain))
    if not are_days and year is None and is_same and _are_consecutive([part.month for part in written]):
        return [f"{2000 + part.number}-{part.month:02}" for part in written]
    if not are_days and year is None:
        months = [f"{2000 + part.number}-{part.month:02}" for part in written]
        days = _found(written, within)
        if days is None or all(_is_within(month, within) for month in months):
            part = written[0]
            rule = f"may be day {part.number} of month {part.month}, or month {part.month} of {2000 + part.number}, "
            rule += f"and nothing tells which: year={2000 + part.number} reads days of that year, "
            raise NoYear(field, texts[0], f'{rule}roles={{"{field}": "month"}} reads months')
    return _with_years(texts, written, field, year, within)


def _are_consecutive(months: Sequence[int]) -> bool:
    """Return whether at least three months follow each other, as the months of a plan do."""
    steps = [(after - before) % 12 for before, after in pairwise(dict.fromkeys(months))]
    return len(steps) >= _FEWEST_STEPS and set(steps) == {1}


def _of_ranges(
    texts: Sequence[str],
    ranges: Sequence[DayRange],
    field: str,
    year: int | None,
    within: FirstAndLastDay | None,
    day_first: bool | None,
    hints: dict[str, Any],
) -> list[str] | None:
    """Return ranges of days with their years (2026-10-05 - 2026-10-11), None if their ends are something else."""
    days = [day for span in ranges for day in span if day is not None]
    if all(dates_of(days, field=field, year=2000, day_first=order, **hints) is None for order in (True, False)):
        return None

    def read(is_day_first: bool | None) -> list[tuple[date, date]]:
        dated = dates_of(days, field=field, year=year, within=within, day_first=is_day_first, **hints)
        if dated is None:
            raise NotTimes(field, texts[0], "is not a range of days")
        of_day = dict(zip(days, map(date.fromisoformat, dated), strict=True))
        return [(of_day[first], of_day[last] if last else of_day[first] + _SIX_DAYS) for first, last in ranges]

    return [f"{first} - {last}" for first, last in in_order(read, day_first)]


def _of_month_parts(
    texts: Sequence[str],
    parts: Sequence[MonthPart],
    field: str,
    year: int | None,
    within: FirstAndLastDay | None,
    hints: dict[str, Any],
) -> list[str] | None:
    """Return parts of months with their years, as ranges of days; None if they are something else."""
    months = [*dict.fromkeys(part.month for part in parts)]
    dated = dates_of(months, field=field, year=year, within=within, are_months=True, **hints)
    if dated is None or not all(len(month) == len("2026-11") for month in dated):
        return None
    of_month = {name: date.fromisoformat(f"{month}-01") for name, month in zip(months, dated, strict=True)}
    try:
        found = [part.days_of(of_month[part.month]) for part in parts]
    except ValueError:
        raise NotTimes(field, texts[0], "is not a part of a month: it has no such day") from None
    return [f"{first} - {last}" for first, last in found]


def _with_years(
    texts: Sequence[str], written: Sequence[_Written], field: str, year: int | None, within: FirstAndLastDay | None
) -> list[str]:
    """Return the days of one year, or of a range that holds each of them in one year only.

    Raises:
        NoYear: there is none.
    """
    pairs = enumerate(pairwise(written), start=1)
    changes = next((place for place, (before, part) in pairs if {before.month, part.month} == {1, 12}), None)
    if year is None and within is None:
        rule = "names no year, and no line beside the table does: "
        step = "year=2026 reads it as of 2026"
        if changes is not None:  # which one year does not read
            step = f"write the years, 2026-11, as they change between {texts[changes - 1]} and {texts[changes]}"
        raise NoYear(field, texts[0], rule + step)
    found = _found(written, (date(year, 1, 1), date(year, 12, 31)) if year is not None else within)
    if found is None:
        first, last = within or (None, None)
        rule = f"is no day of {year}" if year is not None else f"is not of one year between {first} and {last}"
        raise NoYear(field, texts[0], f"{rule}, as a line beside the table says: pass year=2026" if within else rule)
    is_one_year = year is not None or (within is not None and within[0].year == within[1].year)
    if is_one_year and changes is not None:
        rule = f"is beside {texts[changes - 1]}, as if the year changed between them: write the years, 2026-12-31"
        raise NoYear(field, texts[changes], rule)
    return found


def _weeks(
    texts: Sequence[str], weeks: Sequence[int], field: str, year: int | None, within: FirstAndLastDay | None
) -> list[str]:
    """Return the weeks (2026-W44) of one year.

    Raises:
        NoYear: there is none, or the weeks go beyond its end.
    """
    if year is None and within is not None and within[0].year == within[1].year:
        year = within[0].year
    if year is None:
        raise NoYear(field, texts[0], "names no year, and no line beside the table does: year=2026 reads it as of 2026")
    if max(weeks) > _LAST_WEEK or any({*pair} & {1} and max(pair) >= _LAST_WEEK - 1 for pair in pairwise(weeks)):
        raise NoYear(field, texts[-1], "is of another year than the others: write the years, 2026-W53")
    return [f"{year}-W{week:02}" for week in weeks]


def _found(written: Iterable[_Written], within: FirstAndLastDay | None) -> list[str] | None:
    """Return the days or months that lie in a range, None unless each does so in one year."""
    if within is None:
        return None
    found = []
    for part in written:
        of_years = [
            f"{year}-{part.month:02}-{part.number:02}" if part.number else f"{year}-{part.month:02}"
            for year in range(within[0].year, within[1].year + 1)
        ]
        possible = [text for text in of_years if _is_within(text, within)]
        if len(possible) != 1:
            return None
        found += possible
    return found


def _is_within(text: str, within: FirstAndLastDay | None) -> bool:
    """Return whether a day lies in a range, or a month has days in it."""
    if within is None:
        return True
    if len(text) == len("2026-11"):
        return f"{within[0]:%Y-%m}" <= text <= f"{within[1]:%Y-%m}"
    try:
        return within[0] <= date.fromisoformat(text) <= within[1]
    except ValueError:  # such as a day 29 of February
        return False


def _numbers(
    plain: Sequence[str], field: str, day_first: bool | None, within: FirstAndLastDay | None
) -> list[_Written]:
    """Return the days and months of texts of numbers, such as 01.11. or 10/31; none if one is something else."""
    weekday = date_words().weekday
    bare = [weekday.sub(" ", folded_word(text)).strip(" ,.") + "." * text.endswith(".") for text in plain]
    matches = [_NUMBERS.fullmatch(text) for text in bare]
    if not plain or not all(matches) or len({match["mark"] for match in matches if match}) > 1:
        return []
    pairs = [(int(match[1]), int(match[3])) for match in matches if match]
    if any(max(pair) > 31 or min(pair) > 12 or 0 in pair for pair in pairs):
        return []
    is_dotted = all(match["dot"] for match in matches if match)
    dated = [f"{first}/{second}/2000" for first, second in dict.fromkeys(pairs)]
    orders = {order: _in_order(pairs, is_day_first=order) for order in (True, False)}
    fitting = [order for order, written in orders.items() if within is not None and _found(written, within) is not None]
    if day_first is None and len(fitting) == 1:  # in the other order they are of other days than the table
        day_first = fitting[0]
    try:
        is_day_first = is_order_day_first(dated, field, True if is_dotted else day_first)
    except BadQuery as error:
        raise NoYear(field, plain[0], error.rule) from None
    if any((second if is_day_first else first) > 12 for first, second in pairs):
        return []
    return orders[is_day_first]


def _in_order(pairs: Sequence[tuple[int, int]], *, is_day_first: bool) -> list[_Written]:
    ordered = pairs if is_day_first else [pair[::-1] for pair in pairs]
    return [_Written(month, day, is_day=True) for day, month in ordered]


def _names(plain: Sequence[str], field: str, language: str | None, beside: Sequence[str]) -> list[_Written]:
    """Return the months of texts that name one, with the number beside it; none if one is something else."""
    if plain and all(matches := [_EAST_ASIAN.fullmatch(text) for text in plain]):
        parts = [(int(match[1]), int(match[2] or 0)) for match in matches if match]
        return [_Written(month, number, is_day=True) for month, number in parts if 1 <= month <= 12]
    words, found = date_words(), list[tuple[str, str]]()
    for text in plain:
        folded = folded_word(text)
        names = words.month.findall(folded)
        if len(names) > 1:
            names = [name for name in names if name not in words.weekdays] or names[:1]
        if len(names) != 1:
            return []
        found.append((folded, names[0]))
    written = []
    months = months_of(plain, field, language, beside)
    for text, (folded, name) in zip(plain, found, strict=True):
        rest = words.weekday.sub(" ", words.month.sub(" ", folded))
        digits = re.findall(r"\d+", rest)
        if (
            {*re.findall(r"[^\W\d_]+", rest)} - words.between
            or len(digits) > 1
            or any(len(part) > 2 for part in digits)
        ):
            return []
        is_year = bool(_SHORT_YEAR.search(text))
        is_day = bool(_ORDINAL.search(text)) and not is_year
        written.append(_Written(months[name], int(digits[0]) if digits else 0, is_day, is_year))
    return written


def _is_behind(plain: Sequence[str]) -> bool:
    """Return whether numbers stand behind the names of months, as years do."""
    return not any(text[0].isdigit() for text in plain)
