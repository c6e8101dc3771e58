"""Events, players, sessions and money in hours, days, weeks or months of any time zone: `count_events`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args
from zoneinfo import ZoneInfo

import msgspec
import pandas as pd

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames import with_receipt
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, midnight, names_of, scope_of
from gamelens.raw_events.event_source import EventSource
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

LocalBucket = Literal["hour", "day", "week", "month", "all"]
"""Buckets of local time."""

_EVERY: Final = get_args(LocalBucket)
_SECONDS: Final = {"hour": 3600, "day": 86_400, "week": 7 * 86_400}
_NEVER: Final = ("ts", "day", "user_id", "session_id", "event_uuid", "arrival", "usd", "length")


@requires()
@returns(
    named("timestamp", about="the start"),
    KEYS,
    "events players sessions",
    named("revenue", na="where events came as Event Data, without purchases; the receipt says so"),
    "ad_revenue",
    has_own_receipt=True,
)
def count_events(
    events: EventSource,
    over: TimeRange,
    *,
    every: LocalBucket = "hour",
    zone: str = "UTC",
    by: NameSequence = (),
    where: str | None = None,
    games: NameSequence | None = None,
) -> DataFrame:
    """Return events, players, sessions and money in buckets of local time.

        over, is_ad = "last 7 complete days", "category = 'ads'"
        raw_events.count_events(lake, over, zone="America/Sao_Paulo", by="device", where=is_ad)

    *over* has the midnights of *zone*. A bucket without events has no row. An hour that a clock shows twice is
    two.

    Args:
        events: a lake, or a table (`open_events`).
        over: a time range, as for `Client.query`.
        every: `hour`, `day`, `week` (from Monday), `month` or `all`.
        zone: an IANA time zone.
        by: columns of the view `events`, such as `event_id_01`, `custom_01` or `device`.
        where: a condition of SQL over the view `events`.
        games: ids of games; None is all of them.

    Claims: "events by hour" of hours, else "events".

    Raises:
        BadQuery: an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    columns = names_of(by)
    if every not in _EVERY:
        raise BadQuery("every", every, "is not a bucket", _EVERY)
    known = [name for name in events.event_columns() if name not in _NEVER]
    for name in columns:
        if name not in known:
            raise BadQuery("by", name, "is not a column to split by", known)
    if where is not None:
        events.check_condition(where)
    scope = scope_of(events, over, games=games, zone=zone, by=columns)
    buckets = _Buckets.of(every, ZoneInfo(zone), scope.interval)
    split, of_game = (
        "".join(f", {name}" for name in names) for names in (columns, {"game_id": 0, **dict.fromkeys(columns)})
    )
    statement = f"""
        WITH counted AS (
            SELECT {buckets.sql} AS bucket{of_game}, count(*) AS events, count(DISTINCT user_id) AS players,
                count(DISTINCT session_id) AS sessions, sum(usd) FILTER (WHERE category = 'business') AS revenue,
                sum(usd) FILTER (WHERE category = 'impression') AS ad_revenue
            FROM events WHERE ts >= $start AND ts < $end AND game_id IN ($games) AND ({where or "true"})
            GROUP BY bucket{of_game}
        )
        SELECT bucket{split}, CAST(sum(events) AS BIGINT) AS events, CAST(sum(players) AS BIGINT) AS players,
            CAST(sum(sessions) AS BIGINT) AS sessions, coalesce(sum(revenue), 0) AS revenue,
            coalesce(sum(ad_revenue), 0) AS ad_revenue
        FROM counted GROUP BY bucket{split} ORDER BY bucket{split}"""  # noqa: S608
    frame = answer(events, statement, scope, buckets.parameters, since=scope.interval.start)
    starts = {number: buckets.start_of(number) for number in frame["bucket"].unique()}
    frame.insert(0, "timestamp", frame.pop("bucket").map(starts).astype("datetime64[us, UTC]").dt.tz_convert(zone))
    warnings = []
    if "session_id" not in events.event_columns():
        warnings.append("sessions are not known: the table has no session_id")
        frame["sessions"] = pd.array([pd.NA] * len(frame), dtype="Int64")
    for category, column in (("business", "revenue"), ("impression", "ad_revenue")):
        if lacking := events.lacks(category, scope.interval, scope.games):
            warnings.append(lacking)
            frame[column] = float("nan")
    receipt = Receipt.of(frame.attrs)
    return with_receipt(frame, msgspec.structs.replace(receipt, warnings=(*receipt.warnings, *dict.fromkeys(warnings))))


@dataclass(frozen=True, slots=True)
class _Buckets:
    """The buckets of an interval by the clock of a zone, as whole numbers that every engine counts alike.

    Engines have different zones and truncate times differently. So the changes of the clock are listed here, and SQL
    counts seconds from *origin*, a Monday before the interval.

    Attributes:
        sql: the number of the bucket of an event.
        parameters: values of the SQL.
        start_of: the start of the bucket of a number, UTC.
    """

    sql: str
    parameters: dict[str, datetime]
    start_of: Callable[[int], datetime]

    @classmethod
    def of(cls, every: LocalBucket, zone: ZoneInfo, interval: Interval) -> _Buckets:
        """Return the buckets of *interval* in *zone*."""
        if every == "all":
            return cls("0", {}, lambda _: interval.start)
        if every == "month":
            starts = _month_starts(zone, interval)
            cases = [(start, number) for number, start in enumerate(starts)]
            return cls(_cases_sql(cases, "month"), _named(cases, "month"), starts.__getitem__)
        origin = midnight(interval.start) - timedelta(days=interval.start.weekday() + 14)
        clock = _offsets(zone, interval)
        seconds, local = "date_diff('second', $origin, ts)", f"({_cases_sql(clock, 'clock')})"
        length = _SECONDS[every]
        parameters = {"origin": origin, **_named(clock, "clock")}
        if every == "hour":  # an hour that a clock shows twice is two
            rest = f"(date_diff('second', $origin, ts) + {local}) % {length}"
            return cls(f"{seconds} - {rest}", parameters, lambda number: origin + timedelta(seconds=int(number)))
        shown = f"({seconds} + {local})"

        def start_of(number: int) -> datetime:
            at = (origin + timedelta(seconds=int(number))).replace(tzinfo=zone)  # what the clock shows
            return at.astimezone(UTC)

        return cls(f"{shown} - {shown} % {length}", parameters, start_of)


def _offsets(zone: ZoneInfo, interval: Interval) -> list[tuple[datetime, int]]:
    """Return the seconds that the clock of *zone* is ahead of UTC, each with the time from which it is."""

    def ahead(moment: datetime) -> int:
        return int((moment.astimezone(zone).utcoffset() or timedelta()).total_seconds())

    at = interval.start
    changes = [(at, ahead(at))]
    while at < interval.end:
        later = min(at + timedelta(days=1), interval.end)
        if ahead(later) != ahead(at):
            low, high = at, later
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if ahead(middle) == ahead(at) else (low, middle)
            changes.append((high, ahead(high)))
        at = later
    return changes


def _month_starts(zone: ZoneInfo, interval: Interval) -> list[datetime]:
    """Return the starts of the months that *interval* touches by the clock of *zone*, UTC."""
    first = interval.start.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
    starts = []
    while (start := first.astimezone(UTC)) < interval.end:
        starts.append(start)
        first = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return starts or [interval.start]


def _cases_sql(cases: Sequence[tuple[datetime, int]], name: str) -> str:
    """Return the number of the last of *cases* that begins by the time of an event, as SQL."""
    begun = "".join(f" WHEN ts < ${name}{place} THEN {cases[place - 1][1]}" for place in range(1, len(cases)))
    return f"CASE{begun} ELSE {cases[-1][1]} END" if begun else str(cases[-1][1])


def _named(cases: Sequence[tuple[datetime, int]], name: str) -> dict[str, datetime]:
    return {f"{name}{place}": start for place, (start, _) in enumerate(cases) if place}


@reads("raw_events.count_events")
def _read_counts(counted: DataFrame, every: str, zone: str) -> Iterator[Finding]:
    """Say how many events there were, and in which hour of the day, or in which bucket, most of them."""
    kind = "events by hour" if every == "hour" else "events"
    if not len(counted):
        yield Finding(kind=kind, case="nothing", unit="events")
        return
    events = int(counted["events"].sum())
    if every != "hour":
        buckets = counted.groupby("timestamp")["events"].sum()
        yield Finding(
            kind=kind,
            case="total" if len(buckets) == 1 else "most",
            size=float(buckets.max()),
            unit="events",
            judged="counted",
            numbers={"events": events, "every": every, "buckets": len(buckets), "when": buckets.idxmax()},
        )
        return
    shares = counted.groupby(counted["timestamp"].dt.hour)["events"].sum().reindex(range(24), fill_value=0) / events
    busiest, quietest = int(shares.to_numpy().argmax()), int(shares.to_numpy().argmin())
    numbers = {"events": events, "zone": zone, "least": float(shares.min())}
    clock = {"start": busiest, "end": busiest + 1, "least_start": quietest, "least_end": quietest + 1}
    yield Finding(
        kind=kind,
        case="busiest",
        size=float(shares.max()),
        unit="share",
        judged="counted",
        numbers={**numbers, **{name: f"{hour % 24:02d}:00" for name, hour in clock.items()}},
    )
