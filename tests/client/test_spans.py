"""What `over` means and how an interval is cut (public-facts 3.3; Metrics, Query request body)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.tables.time_ranges import (
    BucketSlice,
    bucket_slices,
    clip_to_available,
    enclosing_interval,
    has_split_buckets,
    request_runs,
    resolve_range,
)
from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.wire.intervals import Granularity, Interval, bucket_start

DAY = timedelta(days=1)
AVAILABLE = Interval.parse("2026-08-22T00:00Z/2026-11-20T11:00Z")  # ends on a Friday


def over(value: Any) -> str:
    return str(resolve_range(value, AVAILABLE))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("last 7 complete days", "2026-11-13T00:00Z/2026-11-20T00:00Z"),
        ("last complete day", "2026-11-19T00:00Z/2026-11-20T00:00Z"),
        ("Last 2 complete weeks", "2026-11-02T00:00Z/2026-11-16T00:00Z"),
        ("last 2 complete months", "2026-09-01T00:00Z/2026-11-01T00:00Z"),
        ("last 11 complete months", "2025-12-01T00:00Z/2026-11-01T00:00Z"),
        ("2026-11-01", "2026-11-01T00:00Z/2026-11-02T00:00Z"),
        (date(2026, 11, 1), "2026-11-01T00:00Z/2026-11-02T00:00Z"),
        ((date(2026, 11, 1), date(2026, 11, 3)), "2026-11-01T00:00Z/2026-11-04T00:00Z"),
        (("2026-11-01", "2026-11-03"), "2026-11-01T00:00Z/2026-11-04T00:00Z"),
        ("2026-11-01/2026-11-03", "2026-11-01T00:00Z/2026-11-03T00:00Z"),
        ("2026-11-01/P1W", "2026-11-01T00:00Z/2026-11-08T00:00Z"),
        (Interval.parse("2026-11-01T06:00Z/PT1H"), "2026-11-01T06:00Z/2026-11-01T07:00Z"),
    ],
)
def test_over_means(said: Any, meant: str) -> None:
    assert over(said) == meant


@pytest.mark.parametrize(
    "nonsense",
    [
        "last week",
        "last 0 complete days",
        "last 99999 complete months",
        "2026-13-01",
        "2026-11-03/2026-11-03",
        ("2026-11-03", "2026-11-01"),
        ("2026-11-03",),
        datetime(2026, 11, 1, tzinfo=UTC),
        7,
        None,
    ],
)
def test_over_that_means_nothing_is_refused(nonsense: Any) -> None:
    with pytest.raises(BadQuery):
        over(nonsense)


@pytest.mark.parametrize("backwards", [("2026-11-03", "2026-11-01"), "2026-11-03/2026-11-01", "2026-11-03/2026-11-03"])
def test_what_ends_before_it_starts_is_named_as_it_was_typed(backwards: Any) -> None:
    with pytest.raises(BadQuery, match="end after it starts") as refused:
        over(backwards)
    assert (refused.value.field, refused.value.value) == ("over", backwards)


def test_a_moment_is_no_day() -> None:
    with pytest.raises(BadQuery, match=r"pass its \.date\(\)"):
        over(datetime(2026, 11, 1, 15))


def test_what_is_available_is_asked_for_as_it_is() -> None:
    asked = Interval.parse("2026-11-01/2026-11-03")
    assert clip_to_available(asked, AVAILABLE, "raise") == asked


def test_part_of_it_missing_raises_and_names_what_is_there() -> None:
    """Metrics, Endpoints: outside the interval the client waits."""
    with pytest.raises(NotYetAvailable, match=r"the service has 2026-08-22T00:00Z/2026-11-20T11:00Z"):
        clip_to_available(Interval.parse("2026-11-20/2026-11-21"), AVAILABLE, "raise")


def test_clip_keeps_the_unfinished_bucket() -> None:
    kept = clip_to_available(Interval.parse("2026-11-19/2026-11-25"), AVAILABLE, "clip")
    assert str(kept) == "2026-11-19T00:00Z/2026-11-20T11:00Z"


def test_clip_raises_where_nothing_is_left() -> None:
    with pytest.raises(NotYetAvailable) as refused:
        clip_to_available(Interval.parse("2026-12-01/2026-12-02"), AVAILABLE, "clip")
    assert "not available at all" in str(refused.value)
    assert 'when_unavailable="clip"' not in str(refused.value)


def cut(over: str, granularity: Granularity, max_days: int | None = None) -> list[tuple[BucketSlice, ...]]:
    return request_runs(bucket_slices(Interval.parse(over), granularity, max_days), granularity, max_days)


def days_of(run: Sequence[BucketSlice]) -> float:
    return enclosing_interval(run).length / DAY


def test_the_units_of_days_are_days() -> None:
    made = bucket_slices(Interval.parse("2026-11-01/P3D"), "day", None)
    assert [str(it.bucket_start.date()) for it in made] == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_a_bucket_cut_by_the_interval_keeps_its_stamp() -> None:
    """design/metrics, Words: the timestamp of the full bucket, and only what lies inside the interval."""
    (unit,) = bucket_slices(Interval.parse("2026-11-04T06:00Z/2026-11-06"), "week", None)
    assert (str(unit.interval), str(unit.bucket_start.date())) == ("2026-11-04T06:00Z/2026-11-06T00:00Z", "2026-11-02")


def test_the_unit_of_all_is_stamped_with_its_start() -> None:
    (unit,) = bucket_slices(Interval.parse("2026-11-04T06:00Z/2026-12-06"), "all", None)
    assert unit.bucket_start == datetime(2026, 11, 4, 6, tzinfo=UTC)


def test_days_are_cut_at_thirty_one() -> None:
    """public-facts 3.3."""
    assert list(map(days_of, cut("2026-08-22/P90D", "day"))) == [31, 31, 28]


@pytest.mark.parametrize("granularity", ["week", "month", "all"])
def test_other_buckets_are_not_cut(granularity: Granularity) -> None:
    assert len(cut("2020-01-01/2026-01-01", granularity)) == 1


def test_max_days_caps_days_below_thirty_one() -> None:
    assert len(cut("2026-11-01/P10D", "day", 3)) == 4


def test_max_days_does_not_raise_the_limit_of_the_service() -> None:
    assert len(cut("2026-01-01/P62D", "day", 365)) == 2


def test_weeks_are_cut_on_mondays() -> None:
    assert [str(run[0].interval.start.date()) for run in cut("2026-10-28/2026-11-25", "week", 10)] == [
        "2026-10-28",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    ]


def test_a_day_that_starts_at_noon_is_cut_at_midnight() -> None:
    first = cut("2026-01-01T12:00Z/P40D", "day")[0]
    assert enclosing_interval(first).end == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_bucket_longer_than_the_cap_is_shared_by_its_pieces() -> None:
    assert list(map(days_of, cut("2026-11-01/P10D", "all", 4))) == [4, 4, 2]
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
def test_buckets_are_shared_only_where_one_is_cut(granularity: Granularity, max_days: int | None, shared: bool) -> None:
    made = bucket_slices(Interval.parse("2026-11-02/P10D"), granularity, max_days)
    assert has_split_buckets(made, granularity) is shared


def test_nothing_shares_nothing() -> None:
    assert not has_split_buckets([], "all")
    assert request_runs([], "day", None) == []


def test_what_is_known_between_is_not_asked_again() -> None:
    made = bucket_slices(Interval.parse("2026-11-01/P5D"), "day", None)
    assert [days_of(run) for run in request_runs([made[0], made[1], made[4]], "day", None)] == [2, 1]


@pytest.mark.parametrize("granularity", ["week", "all"])
def test_two_units_of_one_bucket_are_never_one_request(granularity: Granularity) -> None:
    """What was asked in two parts once is in the cache in two parts."""
    stamp = datetime(2026, 11, 2, tzinfo=UTC)
    first, second = Interval.parse("2026-11-02/P3D"), Interval.parse("2026-11-05/P4D")
    later = second.start if granularity == "all" else stamp
    assert len(request_runs([BucketSlice(first, stamp), BucketSlice(second, later)], granularity, None)) == 2


moments = st.datetimes(datetime(2025, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))
granularities = st.sampled_from(["day", "week", "month", "all"])
caps = st.none() | st.integers(1, 40)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start = draw(moments)
    return Interval(start, start + timedelta(hours=draw(st.integers(1, 400 * 24))))


def longest(granularity: Granularity, max_days: int | None) -> timedelta:
    """How long a piece may be (public-facts 3.3)."""
    given_ = max_days if max_days is not None else 10_000
    return DAY * (min(given_, 31) if granularity == "day" else given_)


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_units_cover_the_interval_once_each_in_its_bucket(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    made = bucket_slices(interval, granularity, max_days)
    assert (made[0].interval.start, made[-1].interval.end) == (interval.start, interval.end)
    assert all(earlier.interval.end == later.interval.start for earlier, later in pairwise(made))
    for unit in made:
        assert timedelta(0) < unit.interval.length <= longest(granularity, max_days)
        assert unit.bucket_start == (
            unit.interval.start if granularity == "all" else bucket_start(unit.interval.start, granularity)
        )
        last = unit.interval.end - timedelta.resolution
        assert granularity == "all" or bucket_start(last, granularity) == unit.bucket_start


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_a_bucket_is_cut_only_where_it_is_too_long(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    made = bucket_slices(interval, granularity, max_days)
    for bucket in interval.buckets(granularity):
        inside = [unit for unit in made if unit.interval in bucket]
        assert len(inside) == 1 or (bucket & interval).length > longest(granularity, max_days)


@given(intervals(), granularities, caps, st.data())
@settings(deadline=None)
def test_pieces_are_the_missing_units_in_runs_of_neighbours(
    interval: Interval, granularity: Granularity, max_days: int | None, data: st.DataObject
) -> None:
    made = bucket_slices(interval, granularity, max_days)
    known = data.draw(st.sets(st.sampled_from(made)))
    missing = [unit for unit in made if unit not in known]
    runs = request_runs(missing, granularity, max_days)
    assert [unit for run in runs for unit in run] == missing
    for run in runs:
        assert all(earlier.interval.end == later.interval.start for earlier, later in pairwise(run))
        assert enclosing_interval(run).length <= longest(granularity, max_days)
        assert len({unit.bucket_start for unit in run}) == len(run)
        assert granularity != "all" or len(run) == 1
        assert enclosing_interval(run).length == sum((unit.interval.length for unit in run), timedelta(0))


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_pieces_of_a_contiguous_run_are_as_few_as_possible(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    made = bucket_slices(interval, granularity, max_days)
    fewest = [0, *([len(made)] * len(made))]  # to ask for the first so many units
    for end in range(1, len(made) + 1):
        for start in range(end):
            run = made[start:end]
            is_one = enclosing_interval(run).length <= longest(granularity, max_days) and granularity != "all"
            if len(run) == 1 or (is_one and len({unit.bucket_start for unit in run}) == len(run)):
                fewest[end] = min(fewest[end], fewest[start] + 1)
    assert len(request_runs(made, granularity, max_days)) == fewest[-1]


@given(intervals(), granularities, caps)
@settings(deadline=None)
def test_buckets_are_shared_when_one_bucket_has_several_units(
    interval: Interval, granularity: Granularity, max_days: int | None
) -> None:
    made = bucket_slices(interval, granularity, max_days)
    assert has_split_buckets(made, granularity) == (len(made) > len(list(interval.buckets(granularity))))
