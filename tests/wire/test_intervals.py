"""Intervals and the buckets they are cut into (Wire 2.8, Intervals and buckets)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.wire.intervals import (
    GRANULARITIES,
    Granularity,
    Interval,
    MalformedInterval,
    bucket_start,
    start_and_duration,
    wire_timestamp,
)

MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC))
SHORT = st.timedeltas(timedelta(microseconds=1), timedelta(days=70))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Draw an interval of up to 70 days between 1970 and 2100."""
    start = draw(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
    return Interval(start, start + draw(SHORT))


def parsed(text: str) -> Interval | None:
    """Return the interval that *text* is, or None if it is malformed."""
    try:
        return Interval.parse(text)
    except MalformedInterval:
        return None


def starts(text: str, granularity: Granularity) -> list[str]:
    """Return month and day of the start of every bucket."""
    return [f"{bucket.start:%m-%d}" for bucket in Interval.parse(text).buckets(granularity)]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-01/P7D",
        "2026-11-01/P1W",
        "2026-11-01/2026-11-08",
        "P7D/2026-11-08",
        "2026-11-01T00:00:00.000/2026-11-08T00:00:00.000",
        "2026-11-01T02:00:00+02:00/2026-11-07T19:00:00-05:00",
        "20261101T000000Z/PT168H",
        " 2026-11-01/P7D ",
    ],
)
def test_a_week_may_be_written_in_three_ways(text: str) -> None:
    """An interval is start/duration, start/end or duration/end, with any offset.

    Wire 2.8, Intervals and buckets.
    """
    assert Interval.parse(text) == Interval(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2026-01-31/P1M", "2026-02-28"),
        ("2028-01-31/P1M", "2028-02-29"),
        ("2026-01-31/P2M", "2026-03-31"),
        ("2026-10-31/P1M", "2026-11-30"),
        ("2028-02-29/P1Y", "2029-02-28"),
        ("2026-01-31/P1M1D", "2026-03-01"),
    ],
)
def test_months_are_added_in_utc_and_end_where_the_month_ends(text: str, end: str) -> None:
    """A month after 31 January ends on the last day of February.

    Wire 2.8, Intervals and buckets.
    """
    assert Interval.parse(text).end == datetime.fromisoformat(end).replace(tzinfo=UTC)


def test_a_month_before_an_end_is_counted_backwards() -> None:
    """A month before 31 March starts on 28 February (Wire 2.8, Intervals and buckets)."""
    assert Interval.parse("P1M/2026-03-31").start == datetime(2026, 2, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "P1D", "2026-11-01", "2026-11-01/", "/P1D", "2026-11-01/P", "P1D/P1D"),
        *("2026-11-31/P1D", "yesterday/P1D", "2026-11-01/P-1D", "2026-11-01/-P1D", "2026-11-01/PT", "2026-11-01/1D"),
        *("2026-11-01/P1H", "2026-11-01/P99999999D", "2026-11-01/P9999Y", "P9999Y/2026-11-01", "2026-11-01/P0.5M"),
        *("2026-11-02/2026-11-01", "2026-11-01/P1D/P1D", "0001-01-01T00:00+01:00/P1D", "2026-11-01/P1D\0"),
        *("P1D/2026-11-02T00:00Z\0", "2026-11-01T00:00Z\0/P1D"),
        "2026-11-01/P" + "9" * 60 + "Y",
    ],
)
def test_other_texts_are_malformed(text: str) -> None:
    """A text in no form of an interval, or with end before start, is malformed.

    Wire 2.8, Intervals and buckets.
    """
    assert not parsed(text)  # an empty interval parses, and every query refuses it


@given(text=st.text(alphabet="0123456789-:/TPZWMDHYS.+ ", max_size=40) | st.text(max_size=20))
def test_any_text_is_parsed_or_malformed(text: str) -> None:
    """No text makes the parser raise anything but `MalformedInterval`.

    Wire 2.8, Intervals and buckets.
    """
    parsed(text)


@given(interval=intervals())
def test_an_interval_reads_back_as_it_is_written(interval: Interval) -> None:
    """The text of an interval parses to the same interval (Wire 2.8, Intervals and buckets)."""
    assert Interval.parse(str(interval)) == interval


@given(start=MOMENTS, hours=st.integers(-14, 14))
def test_intervals_of_equal_moments_in_any_zone_are_equal(start: datetime, hours: int) -> None:
    """Intervals of the same moments in different zones are equal.

    Wire 2.8, Intervals and buckets.
    """
    if datetime(2, 1, 1, tzinfo=UTC) < start < datetime(9998, 1, 1, tzinfo=UTC):
        local = start.astimezone(timezone(timedelta(hours=hours)))
        assert Interval(local, local + timedelta(hours=1)) == Interval(start, start + timedelta(hours=1))


@given(a=intervals(), b=intervals())
def test_the_intersection_holds_what_both_hold(a: Interval, b: Interval) -> None:
    """The moments at the edges of either, and those between, are in it if they are in both."""
    edges = sorted([a.start, a.end, b.start, b.end])
    for moment in (*edges, *(first + (second - first) / 2 for first, second in pairwise(edges))):
        assert (moment in (a & b)) == (moment in a and moment in b)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("2026-11-01/2026-11-08", "2026-11-01/P7D"),
        ("2026-11-01T00:00Z/2026-12-01T00:00Z", "2026-11-01/P30D"),
        ("2026-11-19/2026-11-20T11:00Z", "2026-11-19T00:00:00Z/P1DT11H"),
        ("2026-11-20/PT9H", "2026-11-20T00:00:00Z/PT9H"),
        ("2026-11-19T06:30Z/2026-11-20T06:30Z", "2026-11-19T06:30:00Z/P1D"),
        ("2026-11-20T00:00+02:00/P1D", "2026-11-19T22:00:00Z/P1D"),
        ("2026-11-20T10:00:01Z/2026-11-20T11:30:30.5Z", "2026-11-20T10:00:01Z/PT1H30M29.5S"),
        ("2026-11-20/2026-11-20", "2026-11-20/P0D"),
    ],
)
def test_an_interval_is_sent_as_start_and_duration(text: str, sent: str) -> None:
    """The one form that the service documents."""
    assert start_and_duration(Interval.parse(text)) == sent


@given(intervals())
def test_what_is_sent_is_the_interval(interval: Interval) -> None:
    """To the microsecond."""
    assert Interval.parse(start_and_duration(interval)) == interval


def test_an_interval_is_half_open() -> None:
    """An interval contains its start and not its end (Wire 2.8, Intervals and buckets)."""
    day = Interval.parse("2026-11-01/P1D")
    assert day.start in day
    assert day.end not in day


@pytest.mark.parametrize(
    ("text", "granularity", "expected"),
    [
        ("2026-11-05T12:00/2026-11-07T00:00", "day", ["11-05", "11-06"]),
        ("2026-11-05T12:00/2026-11-07T00:01", "day", ["11-05", "11-06", "11-07"]),
        ("2026-11-05/2026-11-16", "week", ["11-02", "11-09"]),
        ("2026-11-08T23:59:59/PT2S", "week", ["11-02", "11-09"]),
        ("2026-12-31/2027-01-05", "week", ["12-28", "01-04"]),
        ("2026-11-15/2027-01-01", "month", ["11-01", "12-01"]),
        ("2026-11-15/2027-01-01T00:00:01", "month", ["11-01", "12-01", "01-01"]),
        ("2026-11-15/2027-01-03", "all", ["11-15"]),
    ],
)
def test_cut_buckets_keep_the_start_of_the_whole_one(text: str, granularity: Granularity, expected: list[str]) -> None:
    """A cut bucket has the start of the whole one, and weeks start on Monday.

    Wire 2.8, Intervals and buckets.
    """
    assert starts(text, granularity) == expected


@given(interval=intervals(), granularity=st.sampled_from(("day", "week", "month")))
def test_buckets_touch_and_cover_the_interval(interval: Interval, granularity: Granularity) -> None:
    """Buckets are adjacent, and the first and last one contain the ends.

    Wire 2.8, Intervals and buckets.
    """
    buckets = list(interval.buckets(granularity))
    assert buckets[0].start <= interval.start < buckets[0].end
    assert buckets[-1].start < interval.end <= buckets[-1].end
    assert all(one.end == other.start for one, other in pairwise(buckets))


@given(moment=MOMENTS)
def test_weeks_are_those_of_iso_8601(moment: datetime) -> None:
    """The bucket of a week is the ISO 8601 week of the moment.

    Wire 2.8, Intervals and buckets.
    """
    start = bucket_start(moment, "week")
    assert start.isoweekday() == 1
    assert start.isocalendar()[:2] == moment.isocalendar()[:2]


@given(moment=MOMENTS)
def test_all_is_one_bucket_with_the_interval_s_own_start(moment: datetime) -> None:
    """Granularity "all" is one bucket, which is the interval itself.

    Wire 2.8, Intervals and buckets.
    """
    interval = Interval(moment, moment + timedelta(hours=1))
    assert list(interval.buckets("all")) == [interval]


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_the_last_day_of_the_calendar_is_in_a_bucket(granularity: Granularity) -> None:
    """The last day that a datetime can represent has a bucket of every granularity."""
    interval = Interval.parse("9999-12-31/9999-12-31T12:00")
    assert len(list(interval.buckets(granularity))) == 1


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2026, 11, 20, tzinfo=UTC), "2026-11-20T00:00:00.000Z"),
        (datetime(2026, 11, 20, 1, 2, 3, 4999, tzinfo=UTC), "2026-11-20T01:02:03.004Z"),
        (datetime(26, 1, 2, tzinfo=UTC), "0026-01-02T00:00:00.000Z"),
        (datetime(2026, 11, 20, tzinfo=timezone(timedelta(hours=1))), "2026-11-19T23:00:00.000Z"),
    ],
)
def test_timestamps_travel_with_milliseconds_and_z(moment: datetime, written: str) -> None:
    """A timestamp is written in UTC, with three digits of milliseconds and Z.

    Wire 2.9, Answer shapes.
    """
    assert wire_timestamp(moment) == written


def test_iterating_an_interval_gives_its_days() -> None:
    """Iterating over an interval gives every UTC day it touches."""
    assert [str(day) for day in Interval.parse("2026-11-01T12:00Z/2026-11-03")] == [
        "2026-11-01T00:00Z/2026-11-02T00:00Z",
        "2026-11-02T00:00Z/2026-11-03T00:00Z",
    ]


def test_the_constructor_refuses_texts() -> None:
    """`Interval` refuses strings, and the error names `Interval.parse`."""
    with pytest.raises(BadQuery, match="parse"):
        Interval("2026-11-01", "2026-11-08")  # type: ignore[arg-type]
