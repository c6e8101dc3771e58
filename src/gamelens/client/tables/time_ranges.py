"""Time ranges as an analyst writes them, resolved to intervals and cut into slices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, cast, get_args

import msgspec

from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval, bucket_start
from gamelens.wire.limits import MAX_DAYS

TimeRange = str | date | tuple[date | str, date | str] | list[date | str] | Interval
WhenUnavailable = Literal["raise", "clip", "wait"]
WHEN_UNAVAILABLE: Final[tuple[WhenUnavailable, ...]] = get_args(WhenUnavailable)

_LAST = re.compile(r"last\s+(?:(\d{1,5})\s+)?complete\s+(day|week|month)s?", re.IGNORECASE)
_DAY: Final = timedelta(days=1)
_RULE: Final = (
    'must be "last N complete days" (or weeks, months), a date, a pair of dates (both days in), '
    "or an ISO 8601 interval such as 2026-11-01/2026-11-08 (its end is not in); and end after it starts"
)


class ResolvedRange(msgspec.Struct, frozen=True):
    """The intervals of a query: *requested*, *available* and *covered*.

    *covered* equals *requested* unless it was clipped to what is available.
    """

    requested: Interval
    available: Interval
    covered: Interval


class BucketSlice(msgspec.Struct, frozen=True):
    """The smallest interval to request and cache: one bucket, or the requested part of it.

    *interval* is the requested part, *bucket_start* the timestamp of its rows.
    """

    interval: Interval
    bucket_start: datetime


def resolve_range(over: TimeRange, available: Interval) -> Interval:
    """Return the half-open UTC interval of *over*.

    "complete" ends at the end of *available*.

    Raises:
        BadQuery: *over* is not a time range, or is empty.
    """
    try:
        interval = _read(over, available)
    except MalformedInterval:
        raise BadQuery("over", over, _RULE) from None
    if not interval:
        raise BadQuery("over", over, _RULE)
    return interval


def clip_to_available(requested: Interval, available: Interval, when: WhenUnavailable) -> Interval:
    """Return *requested*, or with "clip" its available part.

    Raises:
        NotYetAvailable: part of *requested* is not available and *when* is not "clip", or no part of it is.
    """
    if requested in available:
        return requested
    covered = requested & available
    if when != "clip" or not covered:
        raise NotYetAvailable(requested, available, tried=when)
    return covered


def bucket_slices(interval: Interval, granularity: Granularity, max_days: int | None) -> list[BucketSlice]:
    """Cut *interval* into its buckets, ascending.

    A bucket that is longer than one request may be is cut at midnights.
    """
    cap = _cap(granularity, max_days)
    slices = []
    for bucket in interval.buckets(granularity):
        for part in _cut_at_midnights(bucket & interval, cap):
            slices.append(BucketSlice(part, part.start if granularity == "all" else bucket.start))
    return slices


def request_runs(
    requested: Sequence[BucketSlice], granularity: Granularity, max_days: int | None
) -> list[tuple[BucketSlice, ...]]:
    """Group adjacent bucket slices into the fewest runs that fit one request each.

    A run has at most one slice of each bucket. Requests by day cover at most 31 days, others any length; *max_days*
    limits both. Wire 2.8, Intervals and buckets.
    """
    cap = _cap(granularity, max_days)
    runs: list[list[BucketSlice]] = []
    for bucket_slice in requested:
        run = runs[-1] if runs else []
        joins = bool(run) and granularity != "all" and run[-1].interval.end == bucket_slice.interval.start
        joins = (
            joins
            and run[-1].bucket_start != bucket_slice.bucket_start
            and bucket_slice.interval.end - run[0].interval.start <= cap
        )
        if joins:
            run.append(bucket_slice)
        else:
            runs.append([bucket_slice])
    return [tuple(run) for run in runs]


def enclosing_interval(run: Sequence[BucketSlice]) -> Interval:
    """Return the interval that the adjacent slices of *run* cover."""
    return Interval(run[0].interval.start, run[-1].interval.end)


def has_split_buckets(requested: Sequence[BucketSlice], granularity: Granularity) -> bool:
    """Return whether two slices share a bucket, so that their answers must be summed."""
    starts = {bucket_slice.bucket_start for bucket_slice in requested}
    return len(requested) > (min(1, len(starts)) if granularity == "all" else len(starts))


def _cap(granularity: Granularity, max_days: int | None) -> timedelta:
    if granularity == "day":
        max_days = min(max_days or MAX_DAYS, MAX_DAYS)
    return timedelta(days=max_days) if max_days is not None else timedelta.max


def _cut_at_midnights(interval: Interval, cap: timedelta) -> Iterator[Interval]:
    """Yield *interval*, cut at midnights into parts of at most *cap*."""
    start = interval.start
    while start < interval.end:
        end = interval.end if interval.end - start <= cap else bucket_start(start + cap, "day")
        yield Interval(start, end)
        start = end


def _read(over: TimeRange, available: Interval) -> Interval:
    """Return the interval of *over*, which may be empty."""
    match over:
        case Interval():
            return over
        case str() if last := _LAST.fullmatch(over.strip()):
            return _last(int(last[1] or 1), cast("Granularity", last[2].lower()), available, over)
        case str() if "/" in over:
            return Interval.parse(over)
        case str() | date():
            return Interval(_midnight(over), _midnight(over) + _DAY)
        case (first, last_day):
            return Interval(_midnight(first), _midnight(last_day) + _DAY)
    raise BadQuery("over", over, _RULE)


def _last(number: int, granularity: Granularity, available: Interval, over: str) -> Interval:
    """Return the interval of the last *number* complete buckets."""
    if number < 1:
        raise BadQuery("over", over, "must ask for at least 1")
    end = start = bucket_start(available.end, granularity)
    try:
        if granularity == "month":
            for _ in range(number):
                start = bucket_start(start - _DAY, "month")
        else:
            start = end - number * (7 if granularity == "week" else 1) * _DAY
    except OverflowError:
        raise BadQuery("over", over, "reaches back before the first year there is") from None
    return Interval(start, end)


def _midnight(day: object) -> datetime:
    """Return the start of a day in UTC."""
    if isinstance(day, str):
        try:
            day = date.fromisoformat(day.strip())
        except ValueError:
            raise BadQuery("over", day, _RULE) from None
    if isinstance(day, datetime):
        raise BadQuery("over", day, "is a moment, not a day: pass its .date(), or an Interval")
    if not isinstance(day, date):
        raise BadQuery("over", day, _RULE)
    return datetime.combine(day, time(), tzinfo=UTC)
