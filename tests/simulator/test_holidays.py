"""Public holidays of the simulated countries fall on the days of the calendar."""

from __future__ import annotations

from datetime import date

import pytest

from gamelens.simulator.output.external_files import easter, holidays


@pytest.mark.parametrize(
    ("year", "sunday"),
    [(2024, date(2024, 3, 31)), (2025, date(2025, 4, 20)), (2026, date(2026, 4, 5)), (2038, date(2038, 4, 25))],
)
def test_easter_is_where_the_almanac_has_it(year: int, sunday: date) -> None:
    """Easter falls on the Sunday of the almanac, the latest possible one of 2038 included."""
    assert easter(year) == sunday


@pytest.mark.parametrize(
    ("country", "day", "name"),
    [
        ("US", date(2026, 11, 26), "Thanksgiving"),
        ("US", date(2026, 5, 25), "Memorial Day"),
        ("US", date(2026, 10, 12), "Columbus Day"),
        ("GB", date(2026, 8, 31), "Summer Bank Holiday"),
        ("JP", date(2026, 9, 21), "Respect for the Aged Day"),
        ("DE", date(2026, 5, 25), "Whit Monday"),
        ("BR", date(2026, 2, 17), "Carnival"),
        ("IN", date(2026, 4, 3), "Good Friday"),
    ],
)
def test_holidays_fall_where_the_calendar_has_them(country: str, day: date, name: str) -> None:
    """Holidays that move (nth weekday, around Easter) fall on their published dates of 2026."""
    assert holidays(country, day, day) == [(day.isoformat(), country, name)]


def test_an_unknown_country_has_no_holidays() -> None:
    """A country without a table of holidays has an empty list, not an error."""
    assert holidays("NA", date(2026, 1, 1), date(2026, 12, 31)) == []


def test_holidays_run_over_the_end_of_a_year() -> None:
    """A range over New Year holds the holidays of both years, in order."""
    over_new_year = holidays("GB", date(2026, 12, 26), date(2027, 1, 1))
    assert [name for _, _, name in over_new_year] == ["Boxing Day", "New Year's Day"]
