"""When: from what an analyst writes to intervals, and from an interval to pieces the service accepts."""

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
    """What was *asked* for, what is *available*, and what of it is *kept*: the same as asked unless clipped."""

    asked: Interval
    available: Interval
    kept: Interval


class BucketSlice(msgspec.Struct, frozen=True):
    """The least that is asked for and kept: *interval*, a bucket or what of it is asked, and the bucket's *stamp*."""

    interval: Interval
    stamp: datetime


def resolve_range(over: TimeRange, available: Interval) -> Interval:
    """The interval *over* means, half-open, in UTC; "complete" ends where *available* ends.

    Raises:
        BadQuery: *over* is nothing of the kind, or nothing at all.
    """
    try:
        interval = _read(over, available)
    except MalformedInterval:
        raise BadQuery("over", over, _RULE) from None
    if not interval:
        raise BadQuery("over", over, _RULE)
    return interval


def clip_to_available(asked: Interval, available: Interval, when: WhenUnavailable) -> Interval:
    """What of *asked* may be asked for: all of it, or with "clip" the part that is *available*.

    Raises:
        NotYetAvailable: part of *asked* is not available and *when* does not clip, or nothing of it is.
    """
    if asked in available:
        return asked
    kept = asked & available
    if when != "clip" or not kept:
        raise NotYetAvailable(asked, available, tried=when)
    return kept


def bucket_slices(interval: Interval, granularity: Granularity, max_days: int | None) -> list[BucketSlice]:
    """Units of *interval*, ascending: its buckets, and what is longer than a piece may be cut at midnights."""
    cap = _cap(granularity, max_days)
    made = []
    for bucket in interval.buckets(granularity):
        part = bucket & interval
        for piece in _slices(part, cap):
            made.append(BucketSlice(piece, piece.start if granularity == "all" else bucket.start))
    return made


def request_runs(
    asked: Sequence[BucketSlice], granularity: Granularity, max_days: int | None
) -> list[tuple[BucketSlice, ...]]:
    """*asked* in as few runs as may each be one request: neighbours, within a piece's length, each of another bucket.

    Days go at most 31 to a piece (public-facts 3.3), other buckets uncut; *max_days* caps them all.
    """
    cap = _cap(granularity, max_days)
    runs: list[list[BucketSlice]] = []
    for unit in asked:
        run = runs[-1] if runs else []
        joins = bool(run) and granularity != "all" and run[-1].interval.end == unit.interval.start
        joins = joins and run[-1].stamp != unit.stamp and unit.interval.end - run[0].interval.start <= cap
        if joins:
            run.append(unit)
        else:
            runs.append([unit])
    return [tuple(run) for run in runs]


def enclosing_interval(run: Sequence[BucketSlice]) -> Interval:
    """The interval of neighbours."""
    return Interval(run[0].interval.start, run[-1].interval.end)


def has_split_buckets(asked: Sequence[BucketSlice], granularity: Granularity) -> bool:
    """True when two of *asked* lie in the same bucket, so that their answers must be added."""
    stamps = {unit.stamp for unit in asked}
    return len(asked) > (min(1, len(stamps)) if granularity == "all" else len(stamps))


def _cap(granularity: Granularity, max_days: int | None) -> timedelta:
    if granularity == "day":
        max_days = min(max_days or MAX_DAYS, MAX_DAYS)
    return timedelta(days=max_days) if max_days is not None else timedelta.max


def _slices(interval: Interval, cap: timedelta) -> Iterator[Interval]:
    """*interval* itself, or cut at midnights where it is longer than *cap*."""
    start = interval.start
    while start < interval.end:
        end = interval.end if interval.end - start <= cap else bucket_start(start + cap, "day")
        yield Interval(start, end)
        start = end


def _read(over: TimeRange, available: Interval) -> Interval:
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


def _last(number: int, unit: Granularity, available: Interval, over: str) -> Interval:
    if number < 1:
        raise BadQuery("over", over, "must ask for at least 1")
    end = start = bucket_start(available.end, unit)
    try:
        if unit == "month":
            for _ in range(number):
                start = bucket_start(start - _DAY, "month")
        else:
            start = end - number * (7 if unit == "week" else 1) * _DAY
    except OverflowError:
        raise BadQuery("over", over, "reaches back before the first year there is") from None
    return Interval(start, end)


def _midnight(day: object) -> datetime:
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
