"""Dates in outside tables: a column is read as a whole, an ambiguous one is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.date_parsing import NotTimes, ParsedTimes, read_times
from gamelens.errors import BadQuery

DATES = st.dates(min_value=date(1900, 1, 2), max_value=date(2100, 12, 30))


LANGUAGES = (
    "en de fr es pt it nl sv da nb fi pl cs sk hu ro bg el tr ru uk ja zh ko vi id th ar he hi ms ca hr sr lt lv et sl"
)


def read(*texts: str, **told: Any) -> ParsedTimes:
    """Read the distinct *texts* of a column."""
    return read_times([*dict.fromkeys(texts)], field="day", **told)


def outcome(*texts: str) -> ParsedTimes | BadQuery:
    """Return what `read` returns, or the error it raises."""
    try:
        return read(*texts)
    except BadQuery as error:
        return error


def day(moment: np.datetime64) -> str:
    """Return *moment* as date and minute."""
    return f"{pd.Timestamp(moment):%Y-%m-%d %H:%M}"


def dates(times: ParsedTimes) -> list[str]:
    """Return the days of *times*."""
    return [str(moment)[:10] for moment in times.at]


@pytest.mark.parametrize(
    ("text", "moment", "precision"),
    [
        ("2026-11-01", "2026-11-01 00:00", "day"),
        ("2026/11/1", "2026-11-01 00:00", "day"),
        ("20261101", "2026-11-01 00:00", "day"),
        (" 2026-11-01 ", "2026-11-01 00:00", "day"),
        ("2026-W45", "2026-11-02 00:00", "week"),
        ("2026W45", "2026-11-02 00:00", "week"),
        ("2026-W53", "2026-12-28 00:00", "week"),
        ("2026-W45-3", "2026-11-04 00:00", "day"),
        ("2026-11", "2026-11-01 00:00", "month"),
        ("11/2026", "2026-11-01 00:00", "month"),
        ("Nov 2026", "2026-11-01 00:00", "month"),
        ("1 Nov 2026", "2026-11-01 00:00", "day"),
        ("01-Nov-2026", "2026-11-01 00:00", "day"),
        ("November 1, 2026", "2026-11-01 00:00", "day"),
        ("2026-11-01T13:05:00Z", "2026-11-01 13:05", "time"),
        ("2026-11-01 13:05", "2026-11-01 13:05", "time"),
        ("2026-11-01 13:05:00 UTC", "2026-11-01 13:05", "time"),
        ("2026-11-01T00:00:00+09:00", "2026-10-31 15:00", "time"),
        ("2026-11-01T00:00:00Z", "2026-11-01 00:00", "time"),
    ],
)
def test_a_text_is_the_start_of_its_unit_in_utc(text: str, moment: str, precision: str) -> None:
    """Each notation is read as the start of its day, week or month, or as a time, in UTC."""
    result = read(text)
    assert (day(result.at[0]), result.precision) == (moment, precision)


@pytest.mark.parametrize(
    ("text", "moment", "precision"),
    [
        *[
            (text, "2026-10-31 00:00", "day")
            for text in ("Sat, Oct 31, 2026", "Samstag, 31. Oktober 2026", "31-Oct-26")
        ],
        *[(text, "2026-10-31 00:00", "day") for text in ("31 de octubre de 2026", "31 oct. 2026", "31 окт. 2026 г.")],
        *[(text, "2026-10-31 00:00", "day") for text in ("2026年10月31日", "2026年10月31日(土)", "2026. 10. 31.")],
        *[(text, "2026-10-31 00:00", "day") for text in ("31 Ekim 2026", "31 października 2026", "ott 31, 2026")],
        *[("28 Sept 2026", "2026-09-28 00:00", "day"), ("1er novembre 2026", "2026-11-01 00:00", "day")],
        *[("2026年10月", "2026-10-01 00:00", "month"), ("KW 44/2026", "2026-10-26 00:00", "week")],
        *[
            ("Oct 31, 2026, 12:00:00 AM PDT", "2026-10-31 07:00", "time"),
            ("2026-10-31 1 PM", "2026-10-31 13:00", "time"),
        ],
        *[("2026-10-31 00:00:00 America/Los_Angeles", "2026-10-31 07:00", "time")],
        *[("2026-10-31T00:00-07:00[America/Los_Angeles]", "2026-10-31 07:00", "time")],
        *[("2026-10-31 02:00 GMT+2", "2026-10-31 00:00", "time"), ("2026-10-31 01:00 CET", "2026-10-31 00:00", "time")],
    ],
)
def test_words_and_zones_are_read_in_many_languages(text: str, moment: str, precision: str) -> None:
    """Names of months and weekdays, and zones by name, abbreviation or offset."""
    result = read(text)
    assert (day(result.at[0]), result.precision) == (moment, precision)


@pytest.mark.parametrize("language", LANGUAGES.split())
@pytest.mark.parametrize("form", ["medium", "long", "full"])
def test_days_are_read_as_programs_write_them(language: str, form: Any) -> None:
    """In every language: prefixes of Hebrew, months of Vietnamese with numbers, marks that no one sees of Arabic."""
    babel = pytest.importorskip("babel.dates")
    days = [date(2026, 10, 28) + timedelta(days=step) for step in range(8)]
    days += [date(2026, 1, 15) + timedelta(days=step * 25) for step in range(14)]
    times = read(*[babel.format_date(day, form, locale=language) for day in days])
    assert (dates(times), times.precision) == ([str(day) for day in dict.fromkeys(days)], "day")


@pytest.mark.parametrize(
    ("texts", "told", "month"),
    [
        (["1 lis 2026", "31 paź 2026"], {}, 11),
        (["1. lis 2026.", "1. stu 2026."], {}, 10),
        (["niedziela, 1 listopada 2026"], {}, 11),
        (["nedjelja, 1. listopada 2026."], {}, 10),
        (["1 listopada 2026"], {"beside": ["Dzień", "Koszt"]}, 11),
        (["1. lis 2026"], {"language": "hr"}, 10),
        (["1. srp 2026"], {"language": "cs"}, 8),
        (["1 lip 2026"], {"beside": ["Wyświetlenia"]}, 7),
    ],
)
def test_a_month_of_two_languages_is_that_of_the_words_beside_it(
    texts: list[str], told: dict[str, Any], month: int
) -> None:
    """Lis and listopad are November in Polish and October in Croatian."""
    assert read(*texts, **told).at[0] == np.datetime64(f"2026-{month:02}-01")


@pytest.mark.parametrize("beside", [[], ["Dan", "Trošak"]])
def test_a_month_of_two_languages_alone_is_refused_with_the_language_to_name(beside: list[str]) -> None:
    with pytest.raises(BadQuery, match=r'month 10 \(hr\), or month 11 \(pl\).*"language": "\.\.\."'):
        read("1 lis 2026", "2 lis 2026", beside=beside)


def test_a_weekday_that_is_called_like_a_month_is_none() -> None:
    """Mar. is Tuesday in Spanish, and March."""
    assert dates(read("mar, 3 nov 2026", "mié, 4 nov 2026", "mar, 3 mar 2026")) == [
        *("2026-11-03", "2026-11-04", "2026-03-03")
    ]


@pytest.mark.parametrize("texts", [("1793491200", "1793577601"), ("1793491200000", "1793577601500")])
def test_numbers_of_programs_are_times(texts: tuple[str, str]) -> None:
    """Seconds or milliseconds since 1970; what was assumed is said."""
    times = read(*texts)
    assert (dates(times), times.precision) == (["2026-11-01", "2026-11-02"], "time")
    assert times.note == f"day: {texts[0]} is read as 2026-11-01"


def test_times_of_another_zone_are_also_had_as_written() -> None:
    """So that days of an account are told from moments."""
    times = read("2026-10-24 00:00 Europe/Berlin", "2026-10-26 00:00 Europe/Berlin")
    assert times.written is not None
    assert [str(moment)[:16] for moment in times.written] == ["2026-10-24T00:00", "2026-10-26T00:00"]
    assert [str(moment)[:16] for moment in times.at] == ["2026-10-23T22:00", "2026-10-25T23:00"]


def test_many_times_are_read_at_once() -> None:
    """As ISO 8601 has them, with or without a zone."""
    times = read("2026-10-31 00:03:11", "2026-10-31T23:59:59.5Z", "2026-11-01 04:00 UTC", "2026-11-02")
    assert (times.precision, times.written) == ("time", None)
    assert [str(moment) for moment in times.at] == [
        *("2026-10-31T00:03:11.000000", "2026-10-31T23:59:59.500000"),
        *("2026-11-01T04:00:00.000000", "2026-11-02T00:00:00.000000"),
    ]


@pytest.mark.parametrize("text", ["2026-10-31 00:00 IST", "2026-10-31 00:00 CST", "2026-10-31 00:00 Mars/Phobos"])
def test_a_zone_that_means_several_or_none_is_refused(text: str) -> None:
    """IST is India's, Israel's and Ireland's."""
    with pytest.raises(BadQuery, match="write 2026-11-01"):
        read(text)


@pytest.mark.parametrize(
    "text", ["2026-10-26 - 2026-11-01", "Oct 26 – Nov 1, 2026", "26.10.2026–01.11.2026", "2026-10-26/2026-11-01"]
)
def test_a_period_has_its_first_and_its_last_day(text: str) -> None:
    """Written with a dash, a slash or a word; the year may stand at the end alone."""
    result = read(text)
    assert result.until is not None
    assert (day(result.at[0]), day(result.until[0]), result.precision) == (
        *("2026-10-26 00:00", "2026-11-02 00:00"),
        "period",
    )


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(BadQuery, match="ends before it begins"):
        read("2026-11-02 - 2026-11-01")


def test_day_and_month_that_may_be_swapped_are_refused() -> None:
    """Dates that can be read in both orders are refused, and the message names both."""
    with pytest.raises(BadQuery, match=r"day 1 of month 11, or day 11 of month 1.*day_first="):
        read("01.11.2026", "02.11.2026")


@pytest.mark.parametrize(("is_first", "moment"), [(True, "2026-11-01 00:00"), (False, "2026-01-11 00:00")])
def test_day_first_settles_the_order(is_first: bool, moment: str) -> None:
    """`day_first` decides the order of day and month."""
    assert day(read("01/11/2026", day_first=is_first).at[0]) == moment


def test_one_value_that_fits_one_order_decides_for_all() -> None:
    """A value above 12 decides the order for the whole column."""
    assert [day(moment) for moment in read("01/11/2026", "13/11/2026").at] == ["2026-11-01 00:00", "2026-11-13 00:00"]
    assert [day(moment) for moment in read("11/01/2026", "11/13/2026").at] == ["2026-11-01 00:00", "2026-11-13 00:00"]


def test_values_in_two_orders_are_refused() -> None:
    """Values that fit no common order are refused."""
    with pytest.raises(BadQuery, match="not days in one order"):
        read("13/11/2026", "11/13/2026")


def test_equal_day_and_month_leave_nothing_open() -> None:
    """A date with equal day and month reads the same in both orders and is accepted."""
    assert day(read("11.11.2026").at[0]) == "2026-11-11 00:00"


def test_a_value_that_contradicts_day_first_is_refused() -> None:
    """A value that is not a date in the order that `day_first` states is refused."""
    with pytest.raises(BadQuery, match="is not a day"):
        read("11/13/2026", day_first=True)


@pytest.mark.parametrize("texts", [("2026-11-01", "01.11.2026"), ("01.11.2026", "02/11/2026")])
def test_two_ways_to_write_a_day_are_refused(texts: tuple[str, str]) -> None:
    """A column with two notations is refused."""
    with pytest.raises(BadQuery, match="written in two ways"):
        read(*texts)


def test_units_do_not_mix() -> None:
    """A column of days and months is refused, and the message shows one of each."""
    with pytest.raises(BadQuery, match=r"2026-11-01 \(a day\) and 2026-11 \(a month\)"):
        read("2026-11-01", "2026-11")


@pytest.mark.parametrize(
    "text", ["12345", "99999", "31.02.2026", "2026-13-01", "2026-W54", "Total", "", "2026-11-01 25:00"]
)
def test_a_text_that_is_no_day_is_refused_with_the_next_step(text: str) -> None:
    """Numbers far from any serial number and impossible dates are refused with a format to use."""
    with pytest.raises(BadQuery, match="write 2026-11-01"):
        read(text)


@settings(deadline=None)
@given(st.lists(DATES, min_size=1, max_size=20, unique=True), st.booleans())
def test_iso_days_survive(days: list[date], is_compact: bool) -> None:
    """Any day from year 1 to 9999 reads back, with or without hyphens."""
    texts = [d.isoformat().replace("-", "" if is_compact else "-") for d in days]
    assert [moment.astype("datetime64[D]").item() for moment in read(*texts).at] == days


@settings(deadline=None)
@given(st.lists(DATES, min_size=1, max_size=20, unique=True), st.booleans(), st.sampled_from("./-"))
def test_an_order_is_either_right_or_refused(days: list[date], is_day_first: bool, mark: str) -> None:
    """A column is never read silently in the wrong order of day and month."""
    parts = [(f"{d.day:02}", f"{d.month:02}", f"{d.year:04}") for d in days]
    texts = [mark.join((a, b, year) if is_day_first else (b, a, year)) for a, b, year in parts]
    result = outcome(*texts)
    if isinstance(result, BadQuery):
        assert ("day_first" in str(result), all(d.day <= 12 for d in days)) == (True, True)
    else:
        assert [moment.astype("datetime64[D]").item() for moment in result.at] == days
    assert [moment.astype("datetime64[D]").item() for moment in read(*texts, day_first=is_day_first).at] == days


@settings(deadline=None)
@given(st.datetimes(min_value=datetime(1901, 1, 1), max_value=datetime(2100, 1, 1)), st.integers(-720, 720))
def test_a_zone_is_converted(moment: datetime, minutes: int) -> None:
    """A time with an offset is converted to UTC."""
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert pd.Timestamp(read(aware.isoformat()).at[0], tz="UTC") == pd.Timestamp(aware.astimezone(UTC))


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    """Any text is read or raises `BadQuery` for its column, and never fails otherwise."""
    result = outcome(text)
    assert result.field == "day" if isinstance(result, BadQuery) else len(result.at) == 1


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["01.11.26", "25.11.26"], ["2026-11-01", "2026-11-25"]),
        (["11/1/26", "11/25/26"], ["2026-11-01", "2026-11-25"]),
        (["26/11/01", "26/11/02"], ["2026-11-01", "2026-11-02"]),
        (["26-11-01 13:00"], ["2026-11-01"]),
    ],
)
def test_years_of_two_digits_are_recognised_and_said(texts: list[str], days: list[str]) -> None:
    """The year comes where it is from 2015 to 2040; behind points it is the last part."""
    times = read(*texts)
    assert dates(times) == days
    assert times.note == f"day: {texts[0]} is read as {days[0]}"


def test_a_year_that_may_be_first_or_last_is_refused_and_settled() -> None:
    """25/11/26 is the 25th of November 2026 or the 26th of November 2025."""
    with pytest.raises(BadQuery, match="two-digit year, first or last"):
        read("25/11/26")
    assert dates(read("25/11/26", day_first=True)) == ["2026-11-25"]


def test_a_year_far_from_any_data_is_refused() -> None:
    """Neither part is a year from 2015 to 2040."""
    with pytest.raises(BadQuery, match="no year from 2015 to 2040"):
        read("1/2/99")


def test_serial_numbers_of_a_spreadsheet_are_days() -> None:
    """46327 is 2026-11-01; half a day is noon."""
    times = read("46327", "46328")
    assert dates(times) == ["2026-11-01", "2026-11-02"]
    assert (times.precision, times.note) == ("day", "day: 46327 is read as 2026-11-01")
    noon = read("46327.5")
    assert (day(noon.at[0]), noon.precision) == ("2026-11-01 12:00", "time")


def test_numbers_of_a_spreadsheet_among_days_are_days_of_the_same_months() -> None:
    """Cells that lost their format; whatever the days beside them look like."""
    for others in (
        ["2026-10-02T00:00:00", "2026-10-03T00:00:00"],
        ["02/10/2026", "13/10/2026"],
        ["Oct 2, 2026", "Oct 3, 2026"],
    ):
        read = read_times(["46296", *others], field="d")
        assert [str(at)[:10] for at in read.at[:2]] == ["2026-10-01", "2026-10-02"]
        assert "46296 is read as 2026-10-01" in str(read.note)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["46296", "2026-11-02", "2026-11-03"], "none of them in 2026-10"),
        (["46296", "46297", "2026-10-03"], "others are days such as 2026-10-03"),
    ],
)
def test_numbers_of_a_spreadsheet_that_do_not_fit_the_days_are_asked_about(texts: list[str], words: str) -> None:
    """They may be of a calendar from 1904, or no days."""
    with pytest.raises(BadQuery, match=words) as refused:
        read_times(texts, field="d")
    assert "write 2026-10-01 if it is that day, or missing=['46296'] reads it as empty" in str(refused.value)
    with pytest.raises(NotTimes):
        read_times(["46296", "2026-10", "2026-11"], field="d")
