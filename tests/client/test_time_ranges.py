"""Time ranges: the meaning of `over`, clipping, and cutting into requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.tables.time_ranges import (
    TIME_WORDS,
    BucketSlice,
    ResolvedRange,
    bucket_slices,
    clip_to_available,
    enclosing_interval,
    grouped_slices,
    has_split_buckets,
    resolve_range,
)
from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.wire.intervals import Granularity, Interval, bucket_start

DAY = timedelta(days=1)
AVAILABLE = Interval.parse("2026-08-22T00:00Z/2026-11-20T11:00Z")  # ends on a Friday


def resolved(value: Any) -> str:
    """Return the interval that *value* means."""
    return str(resolve_range(value, AVAILABLE))


@pytest.mark.parametrize(
    ("value", "interval"),
    [
        ("last 7 complete days", "2026-11-13T00:00Z/2026-11-20T00:00Z"),
        ("last complete day", "2026-11-19T00:00Z/2026-11-20T00:00Z"),
        ("Last 2 complete weeks", "2026-11-02T00:00Z/2026-11-16T00:00Z"),
        ("last 2 complete months", "2026-09-01T00:00Z/2026-11-01T00:00Z"),
        ("last 11 complete months", "2025-12-01T00:00Z/2026-11-01T00:00Z"),
        ("last 1 complete month", "2026-10-01T00:00Z/2026-11-01T00:00Z"),
        ("yesterday", "2026-11-19T00:00Z/2026-11-20T00:00Z"),
        ("last week", "2026-11-09T00:00Z/2026-11-16T00:00Z"),
        ("Last  Month", "2026-10-01T00:00Z/2026-11-01T00:00Z"),
        ("last 7 days", "2026-11-14T00:00Z/2026-11-20T11:00Z"),
        ("last 1 day", "2026-11-20T00:00Z/2026-11-20T11:00Z"),
        ("last 2 weeks", "2026-11-09T00:00Z/2026-11-20T11:00Z"),
        ("last 3 months", "2026-09-01T00:00Z/2026-11-20T11:00Z"),
        ("today", "2026-11-20T00:00Z/2026-11-20T11:00Z"),
        ("this week", "2026-11-16T00:00Z/2026-11-20T11:00Z"),
        ("week to date", "2026-11-16T00:00Z/2026-11-20T11:00Z"),
        ("this month", "2026-11-01T00:00Z/2026-11-20T11:00Z"),
        ("Month to date", "2026-11-01T00:00Z/2026-11-20T11:00Z"),
        ("November 2026", "2026-11-01T00:00Z/2026-12-01T00:00Z"),
        ("sept 2026", "2026-09-01T00:00Z/2026-10-01T00:00Z"),
        ("2026-10", "2026-10-01T00:00Z/2026-11-01T00:00Z"),
        ("2026-11-01", "2026-11-01T00:00Z/2026-11-02T00:00Z"),
        (date(2026, 11, 1), "2026-11-01T00:00Z/2026-11-02T00:00Z"),
        ((date(2026, 11, 1), date(2026, 11, 3)), "2026-11-01T00:00Z/2026-11-04T00:00Z"),
        (("2026-11-01", "2026-11-03"), "2026-11-01T00:00Z/2026-11-04T00:00Z"),
        ("2026-11-01/2026-11-03", "2026-11-01T00:00Z/2026-11-03T00:00Z"),
        ("2026-11-01/P1W", "2026-11-01T00:00Z/2026-11-08T00:00Z"),
        (Interval.parse("2026-11-01T06:00Z/PT1H"), "2026-11-01T06:00Z/2026-11-01T07:00Z"),
    ],
)
def test_a_time_range_is_resolved(value: Any, interval: str) -> None:
    """ "last N complete", a day, two days, ISO 8601 and intervals are all accepted."""
    assert resolved(value) == interval


@pytest.mark.parametrize("backwards", [("2026-11-03", "2026-11-01"), "2026-11-03/2026-11-01", "2026-11-03/2026-11-03"])
def test_a_range_that_ends_before_it_starts_is_quoted(backwards: Any) -> None:
    """A range that ends before it starts is a `BadQuery` with the value as given."""
    with pytest.raises(BadQuery, match="end after it starts") as refused:
        resolved(backwards)
    assert (refused.value.field, refused.value.value) == ("over", backwards)


@pytest.mark.parametrize("words", TIME_WORDS)
def test_the_words_that_are_offered_are_understood(words: str) -> None:
    """Pickers and shells offer only words that end with the available interval."""
    assert resolve_range(words, AVAILABLE).end <= AVAILABLE.end


@pytest.mark.parametrize(
    ("words", "interval"),
    [
        ("yesterday", "2026-11-30T00:00Z/2026-12-01T00:00Z"),
        ("last 7 days", "2026-11-24T00:00Z/2026-12-01T00:00Z"),
        ("last 1 month", "2026-11-01T00:00Z/2026-12-01T00:00Z"),
        ("today", "2026-12-01T00:00Z/2026-12-02T00:00Z"),
        ("month to date", "2026-12-01T00:00Z/2027-01-01T00:00Z"),
    ],
)
def test_a_bucket_without_data_yet_is_not_available(words: str, interval: str) -> None:
    """At the very start of a day or month its words name it as a whole, and other words end before it."""
    available = Interval.parse("2026-08-22T00:00Z/2026-12-01T00:00Z")
    assert str(resolve_range(words, available)) == interval
    if "to date" in words or words == "today":
        with pytest.raises(NotYetAvailable):
            clip_to_available(resolve_range(words, available), available, "raise")


def test_a_misspelt_word_is_suggested() -> None:
    """The error has the nearest words, beside the rule."""
    with pytest.raises(BadQuery, match="last N complete days") as refused:
        resolved("yesteday")
    assert refused.value.did_you_mean == "yesterday"


def test_the_value_of_a_refusal_is_as_it_was_typed() -> None:
    """With its blanks and its case, which reading ignores."""
    with pytest.raises(BadQuery) as refused:
        resolve_range("  Last Fortnight ", AVAILABLE)
    assert refused.value.value == "  Last Fortnight "


def test_an_available_range_is_not_changed() -> None:
    """A range that is fully available is not clipped."""
    requested = Interval.parse("2026-11-01/2026-11-03")
    assert clip_to_available(requested, AVAILABLE, "raise") == requested


def test_clip_keeps_the_unfinished_bucket() -> None:
    """With "clip" the range ends where the data ends, in the middle of a bucket."""
    clipped = clip_to_available(Interval.parse("2026-11-19/2026-11-25"), AVAILABLE, "clip")
    assert str(clipped) == "2026-11-19T00:00Z/2026-11-20T11:00Z"


def test_clip_refuses_a_range_without_data() -> None:
    """With "clip" a range without data is refused, without the advice to clip."""
    with pytest.raises(NotYetAvailable) as refused:
        clip_to_available(Interval.parse("2026-12-01/2026-12-02"), AVAILABLE, "clip")
    assert "not available at all" in str(refused.value)
    assert 'when_unavailable="clip"' not in str(refused.value)


def runs_of(resolved: str, granularity: Granularity, max_days: int | None = None) -> list[tuple[BucketSlice, ...]]:
    """Return the requests that a range is cut into."""
    return grouped_slices(bucket_slices(Interval.parse(resolved), granularity, max_days), granularity, max_days)


def days_of(run: Sequence[BucketSlice]) -> float:
    """Return the length of *run* in days."""
    return enclosing_interval(run).length / DAY


def test_slices_of_days_are_days() -> None:
    """A range of three days has three bucket slices."""
    slices = bucket_slices(Interval.parse("2026-11-01/P3D"), "day", None)
    assert [str(slice_.bucket_start.date()) for slice_ in slices] == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_a_bucket_cut_by_the_range_keeps_its_start() -> None:
    """A cut bucket has the start of the full one (Wire 2.8, Intervals and buckets)."""
    (unit,) = bucket_slices(Interval.parse("2026-11-04T06:00Z/2026-11-06"), "week", None)
    assert (str(unit.interval), str(unit.bucket_start.date())) == ("2026-11-04T06:00Z/2026-11-06T00:00Z", "2026-11-02")


def test_the_slice_of_all_starts_with_the_range() -> None:
    """The bucket of "all" starts where the range does."""
    (unit,) = bucket_slices(Interval.parse("2026-11-04T06:00Z/2026-12-06"), "all", None)
    assert unit.bucket_start == datetime(2026, 11, 4, 6, tzinfo=UTC)


def test_days_are_cut_at_thirty_one() -> None:
    """A request has at most 31 days (Wire 2.8, Intervals and buckets)."""
    assert list(map(days_of, runs_of("2026-08-22/P90D", "day"))) == [31, 31, 28]


@pytest.mark.parametrize("granularity", ["week", "month", "all"])
def test_other_buckets_are_not_cut(granularity: Granularity) -> None:
    """Weeks, months and "all" have no limit (Wire 2.8, Intervals and buckets)."""
    assert len(runs_of("2020-01-01/2026-01-01", granularity)) == 1


def test_max_days_caps_days_below_thirty_one() -> None:
    """`max_days` may lower the limit of 31 days."""
    assert len(runs_of("2026-11-01/P10D", "day", 3)) == 4


def test_max_days_does_not_raise_the_limit_of_the_service() -> None:
    """`max_days` above 31 leaves days at 31."""
    assert len(runs_of("2026-01-01/P62D", "day", 365)) == 2


def test_weeks_are_cut_on_mondays() -> None:
    """A range of weeks is cut at the starts of ISO weeks."""
    assert [str(run[0].interval.start.date()) for run in runs_of("2026-10-28/2026-11-25", "week", 10)] == [
        "2026-10-28",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    ]


def test_a_range_that_starts_at_noon_is_cut_at_midnight() -> None:
    """Requests end at midnight, so that no day is shared by two of them."""
    first = runs_of("2026-01-01T12:00Z/P40D", "day")[0]
    assert enclosing_interval(first).end == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_bucket_longer_than_max_days_is_split() -> None:
    """A bucket longer than `max_days` is requested in pieces."""
    assert list(map(days_of, runs_of("2026-11-01/P10D", "all", 4))) == [4, 4, 2]
    assert has_split_buckets(bucket_slices(Interval.parse("2026-11-01/P10D"), "all", 4), "all")


@pytest.mark.parametrize(
    ("granularity", "max_days", "shared"),
    [
        ("all", None, False),
        ("all", 10, False),
        ("all", 9, True),
        ("week", 7, False),
        ("week", 6, True),
        ("day", 1, False),
    ],
)
def test_buckets_are_split_only_if_longer_than_max_days(
    granularity: Granularity, max_days: int | None, shared: bool
) -> None:
    """A bucket counts as split only if it is longer than `max_days`."""
    slices = bucket_slices(Interval.parse("2026-11-02/P10D"), granularity, max_days)
    assert has_split_buckets(slices, granularity) is shared


def test_no_slices_have_no_split_buckets() -> None:
    """Without slices there are no split buckets and no requests."""
    assert not has_split_buckets([], "all")
    assert grouped_slices([], "day", None) == []


def test_known_slices_between_are_not_requested() -> None:
    """A known slice between missing ones separates two requests."""
    slices = bucket_slices(Interval.parse("2026-11-01/P5D"), "day", None)
    assert [days_of(run) for run in grouped_slices([slices[0], slices[1], slices[4]], "day", None)] == [2, 1]


@pytest.mark.parametrize("granularity", ["week", "all"])
def test_two_slices_of_one_bucket_are_never_one_request(granularity: Granularity) -> None:
    """A bucket cached in two parts is requested in two parts."""
    stamp = datetime(2026, 11, 2, tzinfo=UTC)
    first, second = Interval.parse("2026-11-02/P3D"), Interval.parse("2026-11-05/P4D")
    later = second.start if granularity == "all" else stamp
    assert len(grouped_slices([BucketSlice(first, stamp), BucketSlice(second, later)], granularity, None)) == 2


moments = st.datetimes(datetime(2025, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))
granularities = st.sampled_from(["day", "week", "month", "all"])
caps = st.none() | st.integers(1, 40)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Draw an interval of one hour to 400 days."""
    start = draw(moments)
    return Interval(start, start + timedelta(hours=draw(st.integers(1, 400 * 24))))


def longest(granularity: Granularity, max_days: int | None) -> timedelta:
    """Return the longest allowed request (Wire 2.8, Intervals and buckets)."""
    limit = max_days if max_days is not None else 10_000
    return DAY * (min(limit, 31) if granularity == "day" else limit)


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_slices_cover_the_range_once(interval: Interval, granularity: Granularity, max_days: int | None) -> None:
    """Slices cover the range without overlap, each within one bucket."""
    slices = bucket_slices(interval, granularity, max_days)
    assert (slices[0].interval.start, slices[-1].interval.end) == (interval.start, interval.end)
    assert all(earlier.interval.end == later.interval.start for earlier, later in pairwise(slices))
    for unit in slices:
        assert timedelta(0) < unit.interval.length <= longest(granularity, max_days)
        assert unit.bucket_start == (
            unit.interval.start if granularity == "all" else bucket_start(unit.interval.start, granularity)
        )
        last = unit.interval.end - timedelta.resolution
        assert granularity == "all" or bucket_start(last, granularity) == unit.bucket_start


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_a_bucket_is_split_only_if_it_is_too_long(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    """A bucket has several slices only if it is longer than a request may be."""
    slices = bucket_slices(interval, granularity, max_days)
    for bucket in interval.buckets(granularity):
        inside = [unit for unit in slices if unit.interval in bucket]
        assert len(inside) == 1 or (bucket & interval).length > longest(granularity, max_days)


@given(intervals(), granularities, caps, st.data())
@settings(deadline=None)
def test_requests_are_runs_of_adjacent_missing_slices(
    interval: Interval, granularity: Granularity, max_days: int | None, data: st.DataObject
) -> None:
    """Each missing slice is in one request of adjacent slices that is not too long."""
    slices = bucket_slices(interval, granularity, max_days)
    known_slices = data.draw(st.sets(st.sampled_from(slices)))
    missing = [unit for unit in slices if unit not in known_slices]
    runs = grouped_slices(missing, granularity, max_days)
    assert [unit for run in runs for unit in run] == missing
    for run in runs:
        assert all(earlier.interval.end == later.interval.start for earlier, later in pairwise(run))
        assert enclosing_interval(run).length <= longest(granularity, max_days)
        assert len({unit.bucket_start for unit in run}) == len(run)
        assert granularity != "all" or len(run) == 1
        assert enclosing_interval(run).length == sum((unit.interval.length for unit in run), timedelta(0))


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_a_contiguous_range_takes_as_few_requests_as_possible(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    """No allowed grouping of adjacent slices has fewer requests."""
    slices = bucket_slices(interval, granularity, max_days)
    fewest = [0, *([len(slices)] * len(slices))]  # requests for the first so many slices
    for end in range(1, len(slices) + 1):
        for start in range(end):
            run = slices[start:end]
            is_one = enclosing_interval(run).length <= longest(granularity, max_days) and granularity != "all"
            if len(run) == 1 or (is_one and len({unit.bucket_start for unit in run}) == len(run)):
                fewest[end] = min(fewest[end], fewest[start] + 1)
    assert len(grouped_slices(slices, granularity, max_days)) == fewest[-1]


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_buckets_are_split_if_one_has_several_slices(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    """Buckets count as split exactly if there are more slices than buckets."""
    slices = bucket_slices(interval, granularity, max_days)
    assert has_split_buckets(slices, granularity) == (len(slices) > len(list(interval.buckets(granularity))))


@pytest.mark.parametrize(
    ("granularity", "covered"),
    [
        (None, "2026-11-03T00:00Z/2026-11-20T11:00Z"),
        ("all", "2026-11-03T00:00Z/2026-11-20T11:00Z"),
        ("day", "2026-11-03T00:00Z/2026-11-20T00:00Z"),
        ("week", "2026-11-09T00:00Z/2026-11-16T00:00Z"),
    ],
)
def test_whole_buckets_leave_out_both_cut_ends(granularity: Granularity | None, covered: str) -> None:
    """A first and a last bucket of which only a part is covered are not asked for."""
    asked = Interval.parse("2026-11-03T00:00Z/2026-11-20T11:00Z")
    assert str(ResolvedRange(asked, AVAILABLE, asked).whole(granularity).covered) == covered


def test_a_range_without_a_whole_bucket_is_refused() -> None:
    """Nothing would be left of it."""
    asked = Interval.parse("2026-11-03/2026-11-08")
    with pytest.raises(BadQuery, match="no whole week"):
        ResolvedRange(asked, AVAILABLE, asked).whole("week")


def test_a_range_of_which_no_whole_bucket_is_available_yet_is_refused() -> None:
    """The range has whole weeks, but the service is younger than one: the data are missing, not the question wrong."""
    asked, young = Interval.parse("2026-11-02/2026-11-16"), Interval.parse("2026-11-12T00:00Z/2026-11-20T11:00Z")
    with pytest.raises(NotYetAvailable, match=r"no whole week of .* is available: the service has 2026-11-12"):
        ResolvedRange(asked, young, asked & young).whole("week")


@pytest.mark.parametrize(
    ("short", "meant"),
    [
        *(("7d", "last 7 days"), ("1 d", "last 1 day"), ("30 days", "last 30 days")),
        *(("4 weeks", "last 4 weeks"), ("6M", "last 6 months"), ("last 7d", "last 7 days")),
    ],
)
def test_a_short_range_has_its_correction(short: str, meant: str) -> None:
    """The error has the range that is meant, and the call that works."""
    with pytest.raises(BadQuery) as refused:
        resolve_range(short, AVAILABLE)
    assert refused.value.did_you_mean == meant
    assert refused.value.amended(f"query('dau', over={short!r})") == f"query('dau', over={meant!r})"
    assert resolve_range(meant, AVAILABLE)


@pytest.mark.parametrize("over", ["0d", "7deeks", "7 minutes", ("7d", "2026-11-02")])
def test_what_is_not_a_short_range_has_no_correction(over: Any) -> None:
    """Nothing is guessed, nor in a pair of dates."""
    with pytest.raises(BadQuery) as refused:
        resolve_range(over, AVAILABLE)
    assert refused.value.did_you_mean is None
