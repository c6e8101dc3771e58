"""Days as people write them: a column is read as a whole, and what it leaves open is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.date_parsing import read_moments
from gamelens.errors import BadQuery

DATES = st.dates(min_value=date(1, 1, 2), max_value=date(9999, 12, 30))


def read(*texts: str | None, day_first: bool | None = None):
    return read_moments(pd.Series(list(texts), dtype="str"), field="day", day_first=day_first)


def outcome(*texts: str):
    """What is read, or the refusal."""
    try:
        return read(*texts)
    except BadQuery as refusal:
        return refusal


def day(moment) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


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
def test_a_text_is_where_its_unit_starts_in_utc(text: str, moment: str, precision: str) -> None:
    found = read(text)
    assert (day(found.at[0]), found.precision) == (moment, precision)


def test_the_dtype_is_that_of_a_frame() -> None:
    assert read("2026-11-01", None).at.dtype == "datetime64[us, UTC]"


def test_a_null_stays_one() -> None:
    assert read("2026-11-01", None).at.isna().tolist() == [False, True]


def test_day_and_month_that_may_be_swapped_are_refused() -> None:
    with pytest.raises(BadQuery, match=r"day 1 of month 11, or day 11 of month 1.*day_first="):
        read("01.11.2026", "02.11.2026")


@pytest.mark.parametrize(("is_first", "moment"), [(True, "2026-11-01 00:00"), (False, "2026-01-11 00:00")])
def test_day_first_settles_the_order(is_first: bool, moment: str) -> None:
    assert day(read("01/11/2026", day_first=is_first).at[0]) == moment


def test_one_value_that_fits_one_order_decides_for_all() -> None:
    assert [day(moment) for moment in read("01/11/2026", "13/11/2026").at] == ["2026-11-01 00:00", "2026-11-13 00:00"]
    assert [day(moment) for moment in read("11/01/2026", "11/13/2026").at] == ["2026-11-01 00:00", "2026-11-13 00:00"]


def test_values_in_two_orders_are_refused() -> None:
    with pytest.raises(BadQuery, match="not days in one order"):
        read("13/11/2026", "11/13/2026")


def test_equal_day_and_month_leave_nothing_open() -> None:
    assert day(read("11.11.2026").at[0]) == "2026-11-11 00:00"


def test_what_day_first_cannot_be_is_refused() -> None:
    with pytest.raises(BadQuery, match="is no day"):
        read("11/13/2026", day_first=True)


@pytest.mark.parametrize("texts", [("2026-11-01", "01.11.2026"), ("01.11.2026", "02/11/2026")])
def test_two_ways_to_write_a_day_are_refused(texts: tuple[str, str]) -> None:
    with pytest.raises(BadQuery, match="written in two ways"):
        read(*texts)


def test_units_do_not_mix() -> None:
    with pytest.raises(BadQuery, match=r"2026-11-01 \(a day\) and 2026-11 \(a month\)"):
        read("2026-11-01", "2026-11")


@pytest.mark.parametrize(
    "text", ["46327", "01.11.26", "31.02.2026", "2026-13-01", "2026-W54", "Total", "", "2026-11-01 25:00"]
)
def test_what_is_no_day_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(BadQuery, match="write 2026-11-01"):
        read(text)


def test_datetimes_pass() -> None:
    found = read_moments(pd.Series(pd.to_datetime(["2026-11-01 05:00"], utc=True)), field="day")
    assert (day(found.at[0]), found.precision) == ("2026-11-01 05:00", "time")


@settings(deadline=None)
@given(st.lists(DATES, min_size=1, max_size=20), st.booleans())
def test_iso_days_survive(days: list[date], is_compact: bool) -> None:
    texts = [d.isoformat().replace("-", "" if is_compact else "-") for d in days]
    assert [moment.date() for moment in read(*texts).at] == days


@settings(deadline=None)
@given(st.lists(DATES, min_size=1, max_size=20), st.booleans(), st.sampled_from("./-"))
def test_an_order_is_either_right_or_refused(days: list[date], is_day_first: bool, mark: str) -> None:
    """Whatever the column holds, it is never read in the other order in silence."""
    parts = [(f"{d.day:02}", f"{d.month:02}", f"{d.year:04}") for d in days]
    texts = [mark.join((a, b, year) if is_day_first else (b, a, year)) for a, b, year in parts]
    found = outcome(*texts)
    if isinstance(found, BadQuery):
        assert ("day_first" in str(found), all(d.day <= 12 for d in days)) == (True, True)
    else:
        assert [moment.date() for moment in found.at] == days
    assert [moment.date() for moment in read(*texts, day_first=is_day_first).at] == days


@settings(deadline=None)
@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), st.integers(-720, 720))
def test_a_zone_is_converted(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert read(aware.isoformat()).at[0] == pd.Timestamp(aware.astimezone(UTC))


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    found = outcome(text)
    assert found.field == "day" if isinstance(found, BadQuery) else len(found.at) == 1
