"""Columns of months: what stands below `Cost Oct 2026` is of that month, whatever days the rows have."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Final
from unicodedata import normalize

from msgspec import UNSET

from gamelens.analysis.files.date_parsing import date_words, folded_word, months_of
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import SUMMANDS
from gamelens.analysis.outside_data.row_periods import Periods
from gamelens.analysis.outside_data.stated_years import days_beside
from gamelens.analysis.outside_data.words.total_words import TOTAL_AT_ONE_END
from gamelens.analysis.tidy_frames.query_text import interval_text
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval, interval_of_days

_YEAR: Final = re.compile(r"(?:[\s./'’_-]{0,2}(?:(?:de|of) )?(20[1-4]\d)|\.?[/'’-]([2-4]\d))(?!\d)")
_NUMBERS: Final = re.compile(
    r"(?<![\d./-])(?:(?P<year>20[1-4]\d)\s?[./_-]\s?(?P<month>0[1-9]|1[0-2])|(?P<month2>0[1-9]|1[0-2])[./](?P<year2>20[1-4]\d))"
    r"(?![\d./-])|(?<!\d)(?P<year3>20[1-4]\d)\s?年\s?(?P<month3>1[0-2]|0?[1-9])\s?月(?!\s?\d)"
    r"|(?<!\d)(?P<year4>20[1-4]\d)\s?년\s?(?P<month4>1[0-2]|0?[1-9])\s?월(?!\s?\d)"
)
_MOST_SHOWN: Final = 3  # columns besides the first
_PARTS: Final = ("year", "month")
_OTHER_WORDS: Final = frozenset(
    {"may", "set", "out", "mar", "march", "mai", "ago", "mei", "maj", "mars", "ay", "tam", "aug"}
)
"""Months in one language, and other words in another: alone they name no month."""


def month_of_header(header: str) -> tuple[Interval, str] | None:
    """Return the only month with a year that a header names, and the rest of it; None without one.

    A day with its month is none.
    """
    folded = normalize("NFC", folded_word(header))
    found = []
    for match in _NUMBERS.finditer(folded):
        parts = match.groupdict()
        year, month = (next(parts[name] for name in parts if name.startswith(key) and parts[name]) for key in _PARTS)
        found.append((int(year), int(month), match.start(), match.end()))
    for match in date_words().month.finditer(folded):
        behind = _YEAR.match(folded, match.end())
        if behind is None or re.search(r"\d[\s./-]*$", folded[: match.start()]):
            continue
        try:
            number = months_of([match[0]], header, None, [])[match[0]]
        except (BadQuery, KeyError):
            return None
        found.append((int(behind[1] or behind[2]) % 100 + 2000, number, match.start(), behind.end()))
    if len(found) != 1:
        return None
    year, number, start, end = found[0]
    first = date(year, number, 1)
    span = interval_of_days(first, first.replace(day=monthrange(year, number)[1]))
    return span, _rest(f"{folded[:start]} {folded[end:]}")


def _months_without_years(names: Sequence[str], grid: Grid) -> dict[str, tuple[Interval, str]]:
    """Return the month of each header that names one without a year, where the title has the year."""
    stated = days_beside([*grid.above, re.sub(r"[_-]", " ", grid.source.rpartition(".")[0])])
    if stated is None:
        return {}
    found: dict[str, tuple[Interval, str]] = {}
    is_sure = False
    for name in names:
        folded = normalize("NFC", folded_word(name))
        matches = [*date_words().month.finditer(folded)]
        if len(matches) != 1 or re.search(r"\d", folded.replace(matches[0][0], "")):
            continue
        try:
            number = months_of([matches[0][0]], name, None, [])[matches[0][0]]
        except (BadQuery, KeyError):
            continue
        first, last = stated.days
        starts = [date(year, number, 1) for year in range(first.year, last.year + 1)]
        within = [start for start in starts if first.replace(day=1) <= start <= last]
        if len(within) == 1:
            end = within[0].replace(day=monthrange(within[0].year, number)[1])
            is_sure |= matches[0][0] not in _OTHER_WORDS
            rest = f"{folded[: matches[0].start()]} {folded[matches[0].end() :]}"
            found[name] = interval_of_days(within[0], end), _rest(rest)
    return found if is_sure else {}


def _rest(text: str) -> str:
    return " ".join(re.sub(r"[^\w%]", " ", text).split())


def months_of_columns(names: Sequence[str], grid: Grid | None = None) -> dict[str, Interval]:
    """Return the days of columns whose headers name their month, and of a total beside several of them.

    A title of *grid* may have the year.
    """
    months = {name: found for name in names if (found := month_of_header(name)) is not None}
    if grid is not None:
        months |= _months_without_years([name for name in names if name not in months], grid)
    spans = {name: span for name, (span, _) in months.items()}
    for name in names:
        if name in months or not TOTAL_AT_ONE_END.fullmatch(name):
            continue
        rests = [rest for _, rest in months.values()]
        alike = [span for span, rest in months.values() if rest and _rest(folded_word(name)).endswith(rest)]
        alike = alike or [span for span, rest in months.values() if not rest and not any(rests)]
        if len(alike) > 1:
            spans[name] = Interval(min(span.start for span in alike), max(span.end for span in alike))
    return spans


def with_month_problems(columns: Sequence[OutsideColumn], periods: Periods, grid: Grid) -> list[OutsideColumn]:
    """Return *columns*, with a problem where a header names another month than all rows are said to be of."""
    if periods.interval is None or periods.column:
        return [*columns]
    result = []
    spans = months_of_columns([column.name for column in columns if column.role in SUMMANDS], grid)
    for column in columns:
        span = spans.get(column.name)
        if span is not None and column.problem is None and periods.interval & span != span:
            rule = f"is of {_shown(span)} by its header, and the rows are of {_shown(periods.interval)}: "
            rule += f'days="{_shown(span)}" takes it, and no other month'
            column = replace(column, problem=BadQuery(column.name, UNSET, rule))
        result.append(column)
    return result


def months_of_table(table: OutsideTable) -> dict[str, Interval]:
    """Return the days of the amounts and counts of *table* whose headers name their month."""
    return months_of_columns([column.name for column in table.columns if column.role in SUMMANDS], table.grid)


def months_in_words(table: OutsideTable) -> str:
    """Return which amounts are of which months by their headers, and the step that takes one month; "" for none."""
    spans = months_of_table(table) if not table.periods.column else {}
    if not spans:
        return ""
    first, *others = [(name, _shown(span)) for name, span in spans.items()]
    said = " and ".join(
        [f"{first[0]} is of {first[1]}", *(f"{name} of {month}" for name, month in others[:_MOST_SHOWN])]
    )
    more = ", ..." if len(others) > _MOST_SHOWN else ""
    return f'{said}{more} by {"their headers" if others else "its header"}: days="{first[1]}" takes {first[0]}'


def check_month(table: OutsideTable, column: OutsideColumn, days: Interval | None) -> None:
    """Raise `BadQuery` if the header of *column* names its month, and all rows or *days* are of another."""
    if table.periods.column:
        return
    span = months_of_table(table).get(column.name)
    if span is None or span in (table.interval, days):
        return
    rule = f'is of {_shown(span)} by its header: pass days="{_shown(span)}", and query new_users '
    raise BadQuery(column.name, UNSET, f'{rule}over="{interval_text(span)}", every="all"')


def _shown(span: Interval) -> str:
    """Return a month, or the first and the last day of several, as `days=` takes it."""
    last = span.end.date() - timedelta(days=1)
    if (span.start.year, span.start.month) == (last.year, last.month):
        return f"{last:%Y-%m}"
    return f"{span.start:%Y-%m-%d}/{last:%Y-%m-%d}"
