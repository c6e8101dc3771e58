"""Texts that name days where other texts stand too: headers, and rows that add up those below them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from gamelens.analysis.files.date_parsing import NotTimes, read_times
from gamelens.analysis.files.day_ranges import ranges_of
from gamelens.analysis.files.days_without_year import dates_of
from gamelens.errors import BadQuery

_NO_DAY: Final = re.compile(r"\D*|\d{1,7}|\d{9,}")


def is_day(header: str) -> bool:
    """Return whether a text is a day or month with its year."""
    try:
        return _NO_DAY.fullmatch(header.strip()) is None and read_times([header], field=header) is not None
    except NotTimes:
        return False
    except BadQuery:  # one that can be read in two ways
        return True


def is_day_without_year(header: str) -> bool:
    """Return whether a text is a day or month that names no year, such as Oct or Oct 5-11."""
    if any(map(is_day, (f"{header} 2026", f"{header}/2026"))):
        return True
    return is_range(header)


def is_range(header: str) -> bool:
    """Return whether a header is a range of days without a year, such as Oct 5-11."""
    with suppress(BadQuery):
        return ranges_of([header.strip()]) is not None and dates_of([header], field=header, year=2026) is not None
    return False
