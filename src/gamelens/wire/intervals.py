"""ISO 8601 intervals and their UTC buckets (Wire 2.8, Intervals and buckets).

isodate reads durations and the standard library reads moments; this module adds the three forms of an interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal, get_args

import isodate
import msgspec

from gamelens.errors import BadQuery, suggests_names

Granularity = Literal["day", "week", "month", "all"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
SETTLE_DAYS: Final = 2
"""Days after its end until a bucket is settled: late events seldom change it afterwards."""
WireInterval = Annotated[
    str,
    msgspec.Meta(
        description="ISO 8601: start/duration, start/end or duration/end; UTC where no zone is given; half-open",
        examples=["2026-11-01/P7D", "2026-11-01T00:00:00Z/2026-11-08T00:00:00Z"],
        extra_json_schema={"format": "interval"},
    ),
]


class MalformedInterval(BadQuery):
    """A value that is not an interval at all, as opposed to one that a query may not use."""

    def __init__(self, value: object) -> None:
        super().__init__(
            "interval",
            value,
            "must be an ISO 8601 interval that ends after it starts, such as 2026-11-01/P7D "
            "or 2026-11-01T00:00:00Z/2026-11-08T00:00:00Z",
        )


@suggests_names
class Interval(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A half-open interval in UTC: *start* is included, *end* is not.

    It is empty if both are equal.

    Raises:
        BadQuery: start or end is not a datetime.
        MalformedInterval: end lies before start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name, moment in (("start", self.start), ("end", self.end)):
            if not isinstance(moment, datetime):
                raise BadQuery(name, moment, "must be a datetime; Interval.parse() reads 2026-11-01/2026-11-08")
        msgspec.structs.force_setattr(self, "start", _utc(self.start))
        msgspec.structs.force_setattr(self, "end", _utc(self.end))
        if self.end < self.start:
            raise MalformedInterval(str(self))

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Read start/duration, start/end or duration/end. A time without a zone is UTC.

        Raises:
            MalformedInterval: *text* has none of the three forms.
        """
        left, slash, right = text.strip().partition("/")
        try:
            if not slash or not left or not right:
                raise MalformedInterval(text)
            if left.startswith("P"):
                end = read_moment(right)
                return cls(end - isodate.parse_duration(left), end)
            start = read_moment(left)
            return cls(start, start + isodate.parse_duration(right) if right.startswith("P") else read_moment(right))
        except (ValueError, OverflowError, MalformedInterval, isodate.ISO8601Error):
            raise MalformedInterval(text) from None

    def __str__(self) -> str:
        return f"{_iso(self.start)}/{_iso(self.end)}"

    def __repr__(self) -> str:
        return f"Interval({self})"

    def __bool__(self) -> bool:
        return self.start < self.end

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Interval):
            return self.start <= item.start and item.end <= self.end
        return isinstance(item, datetime) and self.start <= _utc(item) < self.end

    def __iter__(self) -> Iterator[Interval]:
        """Iterate over the UTC days that the interval touches. See `buckets` for weeks and months."""
        return self.buckets("day")

    def __and__(self, other: Interval) -> Interval:
        start = max(self.start, other.start)
        return Interval(start, max(start, min(self.end, other.end)))

    @property
    def length(self) -> timedelta:
        """End minus start."""
        return self.end - self.start

    def buckets(self, granularity: Granularity) -> Iterator[Interval]:
        """Yield the whole buckets that the interval touches, in order.

        For `all`, that is the interval itself.
        """
        if granularity == "all":
            yield self
            return
        start = bucket_start(self.start, granularity)
        while start < self.end:
            end = _next_bucket(start, granularity)
            yield Interval(start, end)
            start = end


def whole_months(interval: Interval) -> int:
    """Return how many calendar months (UTC) *interval* consists of, 0 if it begins or ends within one."""
    months = [*interval.buckets("month")]
    is_whole = bool(months) and Interval(months[0].start, months[-1].end) == interval
    return len(months) if is_whole else 0


def start_and_duration(interval: Interval) -> str:
    """Return *interval* as it is sent, in the form that the service documents (Wire 2.8, Intervals and buckets).

    Whole days are a date and days, `2026-11-01/P7D`; others have times, `2026-11-20T00:00:00Z/PT11H`.
    """
    is_whole = interval.start == start_of_day(interval.start.date()) and not interval.length % timedelta(days=1)
    start = interval.start.date().isoformat() if is_whole else _iso(interval.start, "seconds")
    return f"{start}/{_duration(interval.length)}"


def start_of_day(day: date) -> datetime:
    """Return the midnight with which *day* begins in UTC."""
    return datetime.combine(day, time(), tzinfo=UTC)


def interval_of_days(first: date, last: date) -> Interval:
    """Return the interval of the UTC days from *first* to *last*, both included."""
    return Interval(start_of_day(first), start_of_day(last) + timedelta(days=1))


def bucket_start(moment: datetime, granularity: Granularity) -> datetime:
    """Return the start of the UTC day, ISO week or month that holds *moment*.

    Weeks start on Monday (Wire 2.8, Intervals and buckets).
    """
    midnight = start_of_day(_utc(moment).date())
    if granularity == "week":
        return midnight - timedelta(days=midnight.weekday())
    return midnight.replace(day=1) if granularity == "month" else midnight


def wire_timestamp(moment: datetime) -> str:
    """Return *moment* as in answers: `2026-11-20T00:00:00.000Z` (Wire 2.9, Answer shapes)."""
    return _utc(moment).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_moment(text: str) -> datetime:
    """Return the moment that *text* spells in any form of ISO 8601, in UTC without a zone.

    Raises:
        ValueError: it is not a moment.
    """
    if not text.isprintable():  # fromisoformat takes a NUL after the zone
        raise ValueError(f"{text!r} is not a time")
    return _utc(datetime.fromisoformat(text.upper()))


def _next_bucket(start: datetime, granularity: Granularity) -> datetime:
    try:
        if granularity == "month":
            return bucket_start(start + timedelta(days=32), "month")
        return start + timedelta(days=7 if granularity == "week" else 1)
    except OverflowError:  # the calendar ends within this bucket
        return datetime.max.replace(tzinfo=UTC)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _iso(moment: datetime, least: Literal["minutes", "seconds"] = "minutes") -> str:
    return moment.isoformat(timespec="auto" if moment.microsecond or moment.second else least).replace("+00:00", "Z")


def _duration(length: timedelta) -> str:
    """Return *length* in days, hours, minutes and seconds: `P1DT11H`."""
    minutes, seconds = divmod(length - timedelta(days=length.days), timedelta(minutes=1))
    parts = {
        "H": minutes // 60,
        "M": minutes % 60,
        "S": f"{seconds / timedelta(seconds=1):.6f}".rstrip("0").rstrip("."),
    }
    days = f"{length.days}D" if length.days else ""
    time = "".join(f"{number}{unit}" for unit, number in parts.items() if number not in (0, "0"))
    return f"P{days}T{time}" if time else f"P{days or '0D'}"
