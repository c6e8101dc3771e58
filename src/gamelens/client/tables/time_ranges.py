"""Time ranges as an analyst writes them, resolved to intervals and cut into slices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Final, Literal, cast, get_args

import msgspec

from gamelens.errors import BadQuery, NotYetAvailable, suggests_names
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval, bucket_start, interval_of_days
from gamelens.wire.limits import MAX_DAYS

TimeRange = str | date | tuple[date | str, date | str] | list[date | str] | Interval
WhenUnavailable = Literal["raise", "clip", "wait"]
WHEN_UNAVAILABLE: Final[tuple[WhenUnavailable, ...]] = get_args(WhenUnavailable)

_LAST: Final = re.compile(r"last (?:(\d{1,5}) )?(complete )?(day|week|month)s?")
_SHORT: Final = re.compile(r"(?:last )?([1-9]\d{0,4}) ?(?:(d)(?:ays?)?|(w)(?:eeks?)?|(m)(?:onths?)?)")
_UNITS: Final = {"d": "day", "w": "week", "m": "month"}
_TO_DATE: Final = re.compile(r"(?:this (day|week|month)|(day|week|month) to date)")
_MONTH: Final = re.compile(r"([a-z]{3,9}) (\d{4})|(\d{4})-(\d{2})")
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SAME_AS: Final = {"today": "this day", "yesterday": "last complete day"}
_DAY: Final = timedelta(days=1)
_RULE: Final = (
    'must be "last N complete days" or "last N days" (or weeks, months), "yesterday", "last week", "month to date", '
    '"November 2026", a date, a pair of dates (both included), '
    "or an ISO 8601 interval such as 2026-11-01/2026-11-08 (end excluded), and end after it starts"
)
TIME_WORDS: Final = (
    "today",
    "yesterday",
    "last 7 days",
    "last 7 complete days",
    "last 28 complete days",
    "last 90 complete days",
    "last week",
    "last month",
    "last 12 complete weeks",
    "last 6 complete months",
    "this week",
    "this month",
    "week to date",
    "month to date",
)
"""Time ranges in words that a picker or a shell can offer."""
USUAL_RANGE: Final = "last 28 complete days"
"""The time range of lists that are asked for without one, as far as it is available."""


class ResolvedRange(msgspec.Struct, frozen=True):
    """The intervals of a query: *requested*, *available* and *covered*.

    *covered* equals *requested* unless it was clipped to what is available.
    """

    requested: Interval
    available: Interval
    covered: Interval

    def whole(self, granularity: Granularity | None) -> ResolvedRange:
        """Return the same range without the buckets that lie in it only in part. None keeps them.

        Raises:
            BadQuery: there is none in what was requested.
            NotYetAvailable: there is none in what is available.
        """
        if granularity is None:
            return self
        requested, covered = _whole(self.requested, granularity), _whole(self.covered, granularity)
        if requested is None:
            rule = f"leaves nothing: no whole {granularity} lies in {self.requested}, so ask for a longer time range"
            raise BadQuery("whole_buckets", True, rule)
        if covered is None:
            raise NotYetAvailable(self.requested, self.available, tried="clip", whole=granularity)
        return ResolvedRange(requested, self.available, covered)


@suggests_names
class BucketSlice(msgspec.Struct, frozen=True):
    """The smallest interval to request and cache: one bucket, or the requested part of it.

    *interval* is the requested part, *bucket_start* the timestamp of its rows.
    """

    interval: Interval
    bucket_start: datetime


def resolve_range(over: TimeRange, available: Interval) -> Interval:
    """Return the half-open UTC interval of *over*.

    Words are relative to the end of *available*, never to a clock: today is the UTC day that it lies in. "complete"
    ends with the last bucket that is over, "last 7 days" with the day under way. A bucket under way ends where
    *available* does; one that has no data yet is the whole bucket, and so not available.

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


def _whole(interval: Interval, granularity: Granularity) -> Interval | None:
    """Return the whole buckets of *interval*, None if there are none."""
    whole = [bucket for bucket in interval.buckets(granularity) if bucket in interval]
    return Interval(whole[0].start, whole[-1].end) if whole else None


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


def grouped_slices(
    requested: Sequence[BucketSlice], granularity: Granularity, max_days: int | None
) -> list[tuple[BucketSlice, ...]]:
    """Return adjacent bucket slices in the fewest groups that fit one request each.

    A group has at most one slice of each bucket. Requests by day cover at most 31 days, others any length; *max_days*
    limits both. Wire 2.8, Intervals and buckets.
    """
    cap = _cap(granularity, max_days)
    groups: list[list[BucketSlice]] = []
    for bucket_slice in requested:
        group = groups[-1] if groups else []
        joins = bool(group) and granularity != "all" and group[-1].interval.end == bucket_slice.interval.start
        joins = (
            joins
            and group[-1].bucket_start != bucket_slice.bucket_start
            and bucket_slice.interval.end - group[0].interval.start <= cap
        )
        if joins:
            group.append(bucket_slice)
        else:
            groups.append([bucket_slice])
    return [tuple(group) for group in groups]


def enclosing_interval(slices: Sequence[BucketSlice]) -> Interval:
    """Return the interval that adjacent *slices* cover."""
    return Interval(slices[0].interval.start, slices[-1].interval.end)


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
        case str() if (interval := _in_words(" ".join(over.lower().split()), over, available)) is not None:
            return interval
        case str() if "/" in over:
            return Interval.parse(over)
        case str() if short := _SHORT.fullmatch(" ".join(over.lower().split())):
            number, unit = filter(None, short.groups())
            meant = f"last {number} {_UNITS[unit]}{'' if number == '1' else 's'}"
            raise BadQuery("over", over, _RULE, meant=meant)
        case str() | date():
            day = _day(over)
            return interval_of_days(day, day)
        case (first, last_day):
            return interval_of_days(_day(first), _day(last_day))
    raise BadQuery("over", over, _RULE)


def _in_words(words: str, over: str, available: Interval) -> Interval | None:
    """Return the interval of a time range in words, or None if it is in none.

    *words* is *over* in lower case, with single spaces.
    """
    words = _SAME_AS.get(words, words)
    if last := _LAST.fullmatch(words):
        number, complete, name = last.groups()
        granularity = cast("Granularity", name)
        return _last(int(number or 1), granularity, available.end, over, with_open_bucket=bool(number and not complete))
    if to_date := _TO_DATE.fullmatch(words):
        return _bucket(available.end, cast("Granularity", to_date[1] or to_date[2]), until=available.end)
    if (month := _MONTH.fullmatch(words)) and (number := _month_number(month[1], month[4])):
        return _bucket(datetime(max(1, int(month[2] or month[3])), number, 1, tzinfo=UTC), "month")
    return None


def _last(number: int, granularity: Granularity, end: datetime, over: str, *, with_open_bucket: bool) -> Interval:
    """Return the interval of the last *number* buckets, with or without the one under way."""
    if number < 1:
        raise BadQuery("over", over, "must ask for at least 1")
    last_end = bucket_start(end, granularity)
    if not with_open_bucket or last_end == end:
        return Interval(_before(last_end, number, granularity, over), last_end)
    return Interval(_before(last_end, number - 1, granularity, over), end)


def _before(start: datetime, number: int, granularity: Granularity, over: str) -> datetime:
    """Return the start of the bucket *number* before the one that begins at *start*."""
    try:
        if granularity != "month":
            return start - number * (7 if granularity == "week" else 1) * _DAY
        for _ in range(number):
            start = bucket_start(start - _DAY, "month")
        return start
    except OverflowError:
        raise BadQuery("over", over, "reaches back before the year 1") from None


def _bucket(moment: datetime, granularity: Granularity, *, until: datetime | None = None) -> Interval:
    """Return the bucket that holds *moment*, cut at *until* unless nothing is left then."""
    bucket = next(Interval(moment, moment + timedelta(microseconds=1)).buckets(granularity))
    return Interval(bucket.start, until) if until is not None and until > bucket.start else bucket


def _month_number(name: str | None, digits: str | None) -> int | None:
    """Return the number of a month from its English name, its first letters or its digits."""
    if name is None:
        number = int(digits or 0)
        return number if 1 <= number <= 12 else None
    return next((place for place, month in enumerate(_MONTHS, 1) if month.startswith(name)), None)


def _day(day: object) -> date:
    """Return *day*, a date or its ISO 8601 text, as a date.

    Raises:
        BadQuery: it is a moment, or neither of them.
    """
    if isinstance(day, str):
        text = day.strip()
        try:
            day = date.fromisoformat(text)
        except ValueError:
            near = get_close_matches(text.lower(), TIME_WORDS, n=1)
            raise BadQuery("over", day, _RULE, near) from None
    if isinstance(day, datetime):
        raise BadQuery("over", day, "is a moment, not a day: pass its .date(), or an Interval")
    if not isinstance(day, date):
        raise BadQuery("over", day, _RULE)
    return day
