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
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import SUMMANDS
from gamelens.analysis.outside_data.row_periods import Periods
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
_PARTS: Final = ("year", "month")


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


def _rest(text: str) -> str:
    return " ".join(re.sub(r"[^\w%]", " ", text).split())


def months_of_columns(names: Sequence[str]) -> dict[str, Interval]:
    """Return the days of columns whose headers name their month, and of a total beside several of them."""
    months = {name: found for name in names if (found := month_of_header(name)) is not None}
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


def with_month_problems(columns: Sequence[OutsideColumn], periods: Periods) -> list[OutsideColumn]:
    """Return *columns*, with a problem where a header names another month than all rows are said to be of."""
    if periods.interval is None or periods.column:
        return [*columns]
    result = []
    spans = months_of_columns([column.name for column in columns if column.role in SUMMANDS])
    for column in columns:
        span = spans.get(column.name)
        if span is not None and column.problem is None and periods.interval & span != span:
            rule = f"is of {_shown(span)} by its header, and the rows are of {_shown(periods.interval)}: "
            rule += f'days="{_shown(span)}" takes it, and no other month'
            column = replace(column, problem=BadQuery(column.name, UNSET, rule))
        result.append(column)
    return result


def check_month(table: OutsideTable, column: OutsideColumn, days: Interval | None) -> None:
    """Raise `BadQuery` if the header of *column* names its month, and all rows or *days* are of another."""
    if table.periods.column:
        return
    span = months_of_columns([other.name for other in table.columns if other.role in SUMMANDS]).get(column.name)
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
