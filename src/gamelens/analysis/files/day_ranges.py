"""Ranges of days as people write them: Oct 5–11, 2026; 5.-11.10.2026; 10月5日～11日; Week of Oct 5.

What both ends have in common stands once. Each end is returned as a text of its own, which `date_parsing` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from typing import Final, NamedTuple

from gamelens.errors import BadQuery

_TO: Final = (
    r"\s*(?:[-–—~～〜‐−→]|->|\.\.+|(?<=\s):(?=\s)"
    r"|\b(?:to|through|thru|bis|au|hasta|al|a|até|ate|do|tot|till?|по|до)\b)\s*"
)
_YEAR: Final = r"20\d\d"
_EAST_ASIAN: Final = r"\d\d? ?[月월] ?\d\d? ?[日일]"
_WORD: Final = r"[^\W\d_]+\.?"
_NAMED: Final = rf"{_WORD} \d\d?|\d\d?\.? {_WORD}"
_LABEL: Final = re.compile(  # KW 45 (02.11.-08.11.), W45: Nov 2 - Nov 8
    r"(?i)(?:kw|cw|wk?|week|woche|semaine|semana|settimana|sem\.?|неделя|第)\s*\d{1,2}\s*(?:周|週)?\s*[:(（,–-]\s*"
    r"(?P<range>.*?\d.*?)[)）]?"
)
_WEEK_OF: Final = re.compile(
    r"(?i)(?:week (?:of|from|starting|commencing|beginning)|w[/ ]?[cb]|wc|woche (?:vom|ab)|semana del?|semaine du"
    r"|settimana (?:del|dal)|week van|неделя с|tydzień od)[\s:.]+(?P<day>.*\d.*)"
)
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        # Oct 5-11, 2026
        rf"(?P<before>{_WORD} )(?P<first>\d\d?){_TO}(?P<last>\d\d?)(?P<after>,? {_YEAR})?",
        # 5-11 Oct 2026, 5.-11. Oktober 2026
        rf"(?P<first>\d\d?\.?){_TO}(?P<last>\d\d?\.?)(?P<after> (?:de )?{_WORD}(?:,? (?:de )?{_YEAR})?)",
        # 5.-11.10.2026, 05.-11.10.
        rf"(?P<first>\d\d?)\.?{_TO}(?P<last>\d\d?)(?P<after>\.\d\d?\.(?:{_YEAR})?)",
        # 2026年10月5日-11日
        rf"(?P<before>(?:{_YEAR} ?[年년] ?)?\d\d? ?[月월] ?)(?P<first>\d\d? ?[日일]?){_TO}(?P<last>\d\d? ?[日일])",
        # 2026年10月5日-10月11日
        rf"(?P<before>(?:{_YEAR} ?[年년] ?)?)(?P<first>{_EAST_ASIAN}){_TO}(?P<last>{_EAST_ASIAN})",
        # 2026-10-05 - 10-11, 2026/10/05~10/11
        rf"(?P<before>{_YEAR}[-/.] ?)(?P<first>\d\d?([-/.] ?)\d\d?){_TO}(?P<last>\d\d?[-/.] ?\d\d?)\.?",
        # 05.10.-11.10.2026, 10/5-10/11/2026, 10/5-10/11
        rf"(?P<first>\d\d?([-/.])\d\d?)\.?{_TO}(?P<last>\d\d?\2\d\d?)(?P<after>[-/.]?(?:(?<=[-/.]){_YEAR})?)",
        # Oct 26-Nov 1, 2026, 26 Oct-1 Nov 2026
        rf"(?P<first>{_NAMED}){_TO}(?P<last>{_NAMED})(?P<after>,? {_YEAR})?",
    )
)
_WHOLE: Final = re.compile(
    r"(?P<first>.*?\S) ?(?: - | : |->|\.\.+|[–—~～〜→]| to | through | thru | bis | au | hasta | al | até "
    r"|[/:](?=\d{4}-))"
    r" ?(?P<last>\S.*)"
)
_LONGEST: Final = 31  # days
_HAS_YEAR: Final = re.compile(rf"(?<!\d){_YEAR}(?!\d)")


class DayRange(NamedTuple):
    """The first and the last day of a range as texts; None as *last* for the week that begins with *first*."""

    first: str
    last: str | None


def in_order(read: Callable[[bool | None], list[tuple[date, date]]], day_first: bool | None) -> list[tuple[date, date]]:
    """Return what *read* returns for the order of day and month in which ranges are of days, and not of months.

    In the other order 5.10. - 11.10. is half a year.

    Raises:
        BadQuery: both orders may be meant.
    """
    try:
        return read(day_first)
    except BadQuery:
        if day_first is not None:
            raise
        found = []
        for order in (True, False):
            with suppress(BadQuery):
                found.append(read(order))
        short = [days for days in found if all((last - first).days <= _LONGEST for first, last in days)]
        if len(short) != 1:
            raise
        return short[0]


def ranges_of(texts: Sequence[str]) -> list[DayRange] | None:
    """Return the ranges of days that *texts* name, None if one of them is something else."""
    found = []
    for text in texts:
        label = _LABEL.fullmatch(text)
        if (span := _range(label["range"] if label else text)) is None:
            return None
        found.append(span)
    return found or None


def is_range(text: str) -> bool:
    """Return whether a text has a form of ranges of days whose ends share a month or a year."""
    return any(form.fullmatch(text) for form in _FORMS)


def _range(text: str) -> DayRange | None:
    if week := _WEEK_OF.fullmatch(text):
        return DayRange(week["day"], None)
    for form in _FORMS:
        if match := form.fullmatch(text):
            parts = {"before": "", "after": "", **{name: part or "" for name, part in match.groupdict().items()}}
            return DayRange(*(f"{parts['before']}{parts[end]}{parts['after']}" for end in ("first", "last")))
    if (whole := _WHOLE.fullmatch(text)) is None:
        return None
    first, last = whole["first"], whole["last"]
    year = _HAS_YEAR.search(last)
    return DayRange(first if not year or _HAS_YEAR.search(first) else f"{first} {year[0]}", last)
