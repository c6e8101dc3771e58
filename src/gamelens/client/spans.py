"""When: from what an analyst writes to intervals, and from an interval to pieces the service accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, cast

import msgspec

from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval, bucket_start
from gamelens.wire.limits import MAX_DAYS

Over = str | date | tuple[date | str, date | str] | list[date | str] | Interval
WhenUnavailable = Literal["raise", "clip", "wait"]
WHEN_UNAVAILABLE: Final = ("raise", "clip", "wait")

_LAST = re.compile(r"last\s+(?:(\d{1,5})\s+)?complete\s+(day|week|month)s?", re.IGNORECASE)
_DAY: Final = timedelta(days=1)
_RULE: Final = (
    'must be "last N complete days" (or weeks, months), a date, a pair of dates (both days in), '
    "or an ISO 8601 interval such as 2026-11-01/2026-11-08 (its end is not in)"
)


class Span(msgspec.Struct, frozen=True):
    """What was *asked* for, what is *available*, and what of it is *kept*: the same as asked unless clipped."""

    asked: Interval
    available: Interval
    kept: Interval


class Piece(msgspec.Struct, frozen=True):
    """One interval to ask for; *shares_bucket* when another piece lies in the same bucket."""

    interval: Interval
    shares_bucket: bool


def resolve(over: Over, available: Interval) -> Interval:
    """The interval *over* means, half-open, in UTC; "complete" ends where *available* ends.

    Raises:
        BadQuery: *over* is nothing of the kind, or nothing at all.
    """
    interval = _read(over, available)
    if not interval:
        raise MalformedInterval(str(interval))
    return interval


def fit(asked: Interval, available: Interval, when: WhenUnavailable) -> Interval:
    """What of *asked* may be asked for: all of it, or with "clip" the part that is *available*.

    Raises:
        NotYetAvailable: part of *asked* is not available and *when* does not clip, or nothing of it is.
    """
    if asked in available:
        return asked
    kept = asked & available
    if when != "clip" or not kept:
        raise NotYetAvailable(asked, available)
    return kept


def check_when(when: str) -> WhenUnavailable:
    """*when* if it is one of the three words.

    Raises:
        BadQuery: it is not.
    """
    if when not in WHEN_UNAVAILABLE:
        raise BadQuery("when_unavailable", when, "is not allowed", WHEN_UNAVAILABLE)
    return cast("WhenUnavailable", when)


def cut(interval: Interval, granularity: Granularity, max_days: int | None) -> list[Piece]:
    """Pieces of *interval*, ascending, cut on bucket edges wherever a bucket fits into a piece.

    Days go at most 31 to a piece (public-facts 3.3), other buckets uncut; *max_days* caps them all.
    """
    cap = max_days if granularity != "day" else min(max_days or MAX_DAYS, MAX_DAYS)
    if cap is None:
        return [Piece(interval, shares_bucket=False)]
    return list(_pieces(interval, granularity, timedelta(days=cap)))


def _pieces(interval: Interval, granularity: Granularity, cap: timedelta) -> Iterator[Piece]:
    grown: Interval | None = None
    for bucket in interval.buckets(granularity):
        part = bucket & interval
        if grown is not None and part.end - grown.start <= cap:
            grown = Interval(grown.start, part.end)
            continue
        if grown is not None:
            yield Piece(grown, shares_bucket=False)
        grown = part if part.length <= cap else None
        if grown is None:
            yield from (Piece(piece, shares_bucket=True) for piece in _slices(part, cap))
    if grown is not None:
        yield Piece(grown, shares_bucket=False)


def _slices(interval: Interval, cap: timedelta) -> Iterator[Interval]:
    """A bucket too long for one piece, cut at midnights."""
    start = interval.start
    while start < interval.end:
        end = min(bucket_start(start + cap, "day"), interval.end)
        yield Interval(start, end)
        start = end


def _read(over: Over, available: Interval) -> Interval:
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
    if not isinstance(day, date) or isinstance(day, datetime):
        raise BadQuery("over", day, _RULE)
    return datetime.combine(day, time(), tzinfo=UTC)
