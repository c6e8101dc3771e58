"""What `over` means and how an interval is cut (public-facts 3.3; Metrics, Query request body)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.client.spans import cut, fit, resolve
from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.wire.intervals import Granularity, Interval, bucket_start

AVAILABLE = Interval.parse("2026-08-22T00:00Z/2026-11-20T11:00Z")  # ends on a Friday


def over(value: Any) -> str:
    return str(resolve(value, AVAILABLE))


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


def test_what_is_available_is_asked_for_as_it_is() -> None:
    asked = Interval.parse("2026-11-01/2026-11-03")
    assert fit(asked, AVAILABLE, "raise") == asked


def test_part_of_it_missing_raises_and_names_what_is_there() -> None:
    """Metrics, Endpoints: outside the interval the client waits."""
    with pytest.raises(NotYetAvailable, match=r"the service has 2026-08-22T00:00Z/2026-11-20T11:00Z"):
        fit(Interval.parse("2026-11-20/2026-11-21"), AVAILABLE, "raise")


def test_clip_keeps_the_unfinished_bucket() -> None:
    kept = fit(Interval.parse("2026-11-19/2026-11-25"), AVAILABLE, "clip")
    assert str(kept) == "2026-11-19T00:00Z/2026-11-20T11:00Z"


def test_clip_raises_where_nothing_is_left() -> None:
    with pytest.raises(NotYetAvailable):
        fit(Interval.parse("2026-12-01/2026-12-02"), AVAILABLE, "clip")


def test_days_are_cut_at_thirty_one() -> None:
    """public-facts 3.3."""
    pieces = cut(Interval.parse("2026-08-22/P90D"), "day", None)
    assert [piece.interval.length.days for piece in pieces] == [31, 31, 28]


@pytest.mark.parametrize("granularity", ["week", "month", "all"])
def test_other_buckets_are_not_cut(granularity: Granularity) -> None:
    assert len(cut(Interval.parse("2020-01-01/2026-01-01"), granularity, None)) == 1


def test_max_days_caps_days_below_thirty_one() -> None:
    assert len(cut(Interval.parse("2026-11-01/P10D"), "day", 3)) == 4


def test_max_days_does_not_raise_the_limit_of_the_service() -> None:
    assert len(cut(Interval.parse("2026-01-01/P62D"), "day", 365)) == 2


def test_weeks_are_cut_on_mondays() -> None:
    pieces = cut(Interval.parse("2026-10-28/2026-11-25"), "week", 10)
    assert [str(piece.interval.start.date()) for piece in pieces] == [
        "2026-10-28",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    ]


def test_a_day_that_starts_at_noon_is_cut_at_midnight() -> None:
    pieces = cut(Interval.parse("2026-01-01T12:00Z/P40D"), "day", None)
    assert pieces[0].interval.end == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_bucket_longer_than_the_cap_is_shared_by_its_pieces() -> None:
    pieces = cut(Interval.parse("2026-11-01/P10D"), "all", 4)
    assert [(piece.interval.length.days, piece.shares_bucket) for piece in pieces] == [(4, True), (4, True), (2, True)]


moments = st.datetimes(datetime(2025, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))


@given(moments, st.integers(1, 400 * 24), st.sampled_from(["day", "week", "month", "all"]), st.integers(1, 40))
def test_pieces_cover_the_interval_once_and_keep_the_cap(
    start: datetime, hours: int, granularity: Granularity, max_days: int
) -> None:
    interval = Interval(start, start + timedelta(hours=hours))
    pieces = [piece.interval for piece in cut(interval, granularity, max_days)]
    assert (pieces[0].start, pieces[-1].end) == (interval.start, interval.end)
    assert all(earlier.end == later.start for earlier, later in pairwise(pieces))
    assert all(timedelta(0) < piece.length <= timedelta(days=max_days) for piece in pieces)


@given(moments, st.integers(1, 400), st.sampled_from(["day", "week", "month"]), st.integers(31, 60))
def test_a_bucket_that_fits_lies_in_one_piece(
    start: datetime, days: int, granularity: Granularity, max_days: int
) -> None:
    pieces = cut(Interval(start, start + timedelta(days=days)), granularity, max_days)
    assert all(
        piece.interval.start == bucket_start(piece.interval.start, granularity) and not piece.shares_bucket
        for piece in pieces[1:]
    )
