"""The public holidays of the shipped scenarios' countries whose date follows from a rule.

Left out are days that a moon, an equinox or a government sets anew each year (Diwali, Eid, the Japanese equinoxes,
substitute days), and those of only a part of a country.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

import msgspec


class Holiday(msgspec.Struct, frozen=True):
    """One holiday of one *country*."""

    day: date
    country: str
    name: str


_FIXED: Final[dict[str, tuple[tuple[int, int, str], ...]]] = {
    "US": (
        (1, 1, "New Year's Day"),
        (6, 19, "Juneteenth"),
        (7, 4, "Independence Day"),
        (11, 11, "Veterans Day"),
        (12, 25, "Christmas Day"),
    ),
    "GB": ((1, 1, "New Year's Day"), (12, 25, "Christmas Day"), (12, 26, "Boxing Day")),
    "JP": (
        (1, 1, "New Year's Day"),
        (2, 11, "National Foundation Day"),
        (2, 23, "Emperor's Birthday"),
        (4, 29, "Showa Day"),
        (5, 3, "Constitution Day"),
        (5, 4, "Greenery Day"),
        (5, 5, "Children's Day"),
        (8, 11, "Mountain Day"),
        (11, 3, "Culture Day"),
        (11, 23, "Labour Thanksgiving Day"),
    ),
    "DE": (
        (1, 1, "New Year's Day"),
        (5, 1, "Labour Day"),
        (10, 3, "German Unity Day"),
        (12, 25, "Christmas Day"),
        (12, 26, "Second Day of Christmas"),
    ),
    "FR": (
        (1, 1, "New Year's Day"),
        (5, 1, "Labour Day"),
        (5, 8, "Victory Day"),
        (7, 14, "Bastille Day"),
        (8, 15, "Assumption"),
        (11, 1, "All Saints' Day"),
        (11, 11, "Armistice Day"),
        (12, 25, "Christmas Day"),
    ),
    "BR": (
        (1, 1, "New Year's Day"),
        (4, 21, "Tiradentes Day"),
        (5, 1, "Labour Day"),
        (9, 7, "Independence Day"),
        (10, 12, "Our Lady of Aparecida"),
        (11, 2, "All Souls' Day"),
        (11, 15, "Republic Day"),
        (11, 20, "Black Consciousness Day"),
        (12, 25, "Christmas Day"),
    ),
    "IN": ((1, 26, "Republic Day"), (8, 15, "Independence Day"), (10, 2, "Gandhi Jayanti"), (12, 25, "Christmas Day")),
}
"""Holidays on a fixed date: month and day."""
_MONDAYS: Final[dict[str, tuple[tuple[int, int, str], ...]]] = {
    "US": (
        (1, 3, "Martin Luther King Day"),
        (2, 3, "Presidents' Day"),
        (5, -1, "Memorial Day"),
        (9, 1, "Labor Day"),
        (10, 2, "Columbus Day"),
    ),
    "GB": ((5, 1, "Early May Bank Holiday"), (5, -1, "Spring Bank Holiday"), (8, -1, "Summer Bank Holiday")),
    "JP": (
        (1, 2, "Coming of Age Day"),
        (7, 3, "Marine Day"),
        (9, 3, "Respect for the Aged Day"),
        (10, 2, "Sports Day"),
    ),
}
"""Holidays on a Monday: month and number of the Monday in it, -1 for the last."""
_EASTER: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "GB": ((-2, "Good Friday"), (1, "Easter Monday")),
    "DE": ((-2, "Good Friday"), (1, "Easter Monday"), (39, "Ascension Day"), (50, "Whit Monday")),
    "FR": ((1, "Easter Monday"), (39, "Ascension Day"), (50, "Whit Monday")),
    "BR": ((-47, "Carnival"), (-2, "Good Friday")),
    "IN": ((-2, "Good Friday"),),
}
"""Holidays relative to Easter: days after Easter Sunday."""
_MONDAY: Final = 0
_THURSDAY: Final = 3


def holidays(country: str, first: date, last: date) -> list[Holiday]:
    """Return the holidays of *country* from *first* to *last*, both included.

    A country without rules here has none.
    """
    all_holidays = [holiday for year in range(first.year, last.year + 1) for holiday in _in_year(country, year)]
    return sorted((each for each in all_holidays if first <= each.day <= last), key=lambda each: each.day)


def easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar (Meeus, Jones and Butcher)."""
    century, of_century = divmod(year, 100)
    golden = year % 19
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - epact - of_century % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _in_year(country: str, year: int) -> Iterator[Holiday]:
    for month, day, name in _FIXED.get(country, ()):
        yield Holiday(date(year, month, day), country, name)
    for month, nth, name in _MONDAYS.get(country, ()):
        yield Holiday(_weekday_of(year, month, _MONDAY, nth), country, name)
    for after, name in _EASTER.get(country, ()):
        yield Holiday(easter(year) + timedelta(days=after), country, name)
    if country == "US":
        yield Holiday(_weekday_of(year, 11, _THURSDAY, 4), country, "Thanksgiving")


def _weekday_of(year: int, month: int, weekday: int, nth: int) -> date:
    """Return the *nth* *weekday* of the month, from 1, or the last for -1."""
    if nth < 0:
        end = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        return end - timedelta(days=(end.weekday() - weekday) % 7)
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
