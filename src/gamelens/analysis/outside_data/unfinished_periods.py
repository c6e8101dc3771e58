"""The day up to which the last month of a table is known, as a line beside it says: actual through 22 November."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import Final

import pandas as pd

from gamelens.analysis.files.date_parsing import read_times
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.outside_table import KNOWN_UNTIL, MODIFIERS, OutsideColumn
from gamelens.analysis.outside_data.roles import SUMMANDS
from gamelens.analysis.outside_data.row_periods import OF_BILLS, Periods
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

_ONE_DAY: Final = pd.Timedelta(days=1)
_LIMIT: Final = re.compile(
    r"(?i)(?<!\w)(?:t/m|tot en met|through|thru|until|till?|up to|as of|as at|to date|mtd|last updated?|updated|status"
    r"|bis|stand|per|jusqu['’]?(?:au|à)|au|à ce jour|hasta(?: el)?|al|até|ate|fino al?|aggiornat\w+ al|do"
    r"|stan na(?: dzień)?|по|на|до|t\.?o\.?m\.?|till och med|til og med|exported|export(?:é|ado|ato)?|exportiert"
    r"|generated|created|erstellt|data until|stav k"
    r")(?!\w)|截至|截止|まで|時点|现在|現在|기준|까지"
)
_DAY: Final = re.compile(
    r"(?P<full>(?<!\d)(?:\d{1,2}[./-]\d{1,2}[./-]20\d\d|20\d\d[./-]\d{1,2}[./-]\d{1,2})(?!\d))"
    r"|(?<!\d)(?P<day>\d{1,2})(?:\.|st|nd|rd|th|er)?\s?(?:de |of )?(?P<month>[^\W\d_]{3,})\.?"
    r"(?:,?\s?(?:de )?(?P<year>20\d\d))?"
    r"|(?<![^\W\d_])(?P<word>[^\W\d_]{3,})\.? (?P<number>\d{1,2})(?:st|nd|rd|th)?(?!\d|[./-]\d)"
    r"(?:,?\s?(?P<of_year>20\d\d))?"
    r"|(?<!\d)(?P<first>\d{1,2})[./](?P<second>\d{1,2})(?![\d%]|[./-]\d)"
)
_NEAR: Final = 24  # letters between the word and its day
_AFTER: Final = 3
_LENGTHS: Final = ("week", "month", "period")


def unfinished_period(periods: Periods, grid: Grid, columns: Sequence[OutsideColumn]) -> str | None:
    """Return the note on the last period with numbers where a line names a day within it up to which it is known."""
    unit = (periods.length or "").partition(" ")[0]
    if unit not in _LENGTHS or not periods.column:
        return None
    measured = [
        column
        for column in columns
        if column.role in SUMMANDS and column.concept not in MODIFIERS and column.values.dtype.kind in "iuf"
    ]
    has_number = pd.Series(False, index=periods.starts.index)
    for column in measured:
        has_number |= column.values.notna() & (column.values != 0)
    starts = periods.starts[has_number & periods.starts.notna()]
    if starts.empty:
        return None
    start, end = starts.max(), periods.ends[starts.index].max()
    found = [
        (day, line)
        for line in grid.above
        for day in _days_of_limits(line, [*range(start.year, end.year + 1)])
        if start < pd.Timestamp(day, tz="UTC") + _ONE_DAY < end
    ]
    if not found:
        return None
    day, line = min(found)
    days = f"{start:%Y-%m-%d} to {end - _ONE_DAY:%Y-%m-%d}"
    step = f'query over="{periods.starts.min():%Y-%m-%d}/{pd.Timestamp(day) + _ONE_DAY:%Y-%m-%d}" counts the same days'
    return f"the last {unit}, {days}, {KNOWN_UNTIL} {day}, as the line {line.strip()!r} says: {step}"


def _days_of_limits(line: str, years: Sequence[int]) -> Iterator[date]:
    """Yield the days that a line names behind a word such as until or as of, or before an eastern one."""
    if OF_BILLS.search(folded_header(line)):
        return
    limits = [*_LIMIT.finditer(line)]
    for match in filter(None, (_DAY.match(line, begin) for begin in range(len(line)))):  # through 22 November
        is_near = any(
            0 <= match.start() - limit.end() <= _NEAR or 0 <= limit.start() - match.end() <= _AFTER for limit in limits
        )
        for text in _texts_of(match, years) if is_near else ():
            days = set()
            for day_first in (False, True):
                with suppress(BadQuery, ValueError):
                    read = read_times([text], field="line", day_first=day_first)
                    if read.precision == "day" and read.until is None:
                        days.add(read.at[0].astype("datetime64[D]").item())
            yield from sorted(days)


def _texts_of(match: re.Match[str], years: Sequence[int]) -> list[str]:
    """Return a day in full, in each of *years* where its text has none."""
    if match["full"]:
        return [match["full"]]
    if match["first"]:
        return [f"{match['first']}.{match['second']}.{year}" for year in years]
    day, month = match["day"] or match["number"], match["month"] or match["word"]
    stated = match["year"] or match["of_year"]
    return [f"{day} {month} {year}" for year in ([stated] if stated else years)]
