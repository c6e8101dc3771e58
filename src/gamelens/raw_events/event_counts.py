"""Events, players, sessions and money in hours, days, weeks or months of any time zone: `count_events`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames import with_receipt
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import IN_SCOPE, NameSequence, answer, check_purchases, names_of, scope_of
from gamelens.raw_events.lake_client import LakeClient

if TYPE_CHECKING:
    from pandas import DataFrame

LocalBucket = Literal["hour", "day", "week", "month", "all"]
"""Buckets of local time."""

_LOCAL: Final = "(ts AT TIME ZONE 'UTC' AT TIME ZONE $zone)"
_STARTS: Final = {
    "hour": f"ts - ({_LOCAL} - date_trunc('hour', {_LOCAL}))",
    **{
        every: f"date_trunc('{every}', {_LOCAL}) AT TIME ZONE $zone AT TIME ZONE 'UTC'"
        for every in ("day", "week", "month")
    },
    "all": "$start::TIMESTAMP",
}
"""SQL of the start of the bucket of an event, UTC."""
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
    lake: LakeClient,
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
        lake: the lake.
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
    if every not in _STARTS:
        raise BadQuery("every", every, "is not a bucket", list(_STARTS))
    described = lake.views()
    of_events = described.loc[described["view"] == "events", "column"].astype("str").tolist()
    known = [name for name in of_events if name not in _NEVER]
    for name in columns:
        if name not in known:
            raise BadQuery("by", name, "is not a column to split by", known)
    scope = scope_of(lake, over, games=games, zone=zone, by=columns)
    split = "".join(f", {name}" for name in columns)
    statement = f"""
        SELECT {_STARTS[every]} AS timestamp{split}, count(*) AS events,
            count(DISTINCT (game_id, user_id)) FILTER (WHERE user_id IS NOT NULL) AS players,
            count(DISTINCT (game_id, session_id)) FILTER (WHERE session_id IS NOT NULL) AS sessions,
            coalesce(sum(usd) FILTER (WHERE category = 'business'), 0) AS revenue,
            coalesce(sum(usd) FILTER (WHERE category = 'impression'), 0) AS ad_revenue
        FROM events WHERE {IN_SCOPE} AND ({where or "true"})
        GROUP BY ALL ORDER BY timestamp{split}"""  # noqa: S608
    frame = answer(lake, statement, scope, {"zone": zone} if "$zone" in statement else {})
    frame["timestamp"] = frame["timestamp"].dt.tz_convert(zone)
    try:
        check_purchases(lake, scope.interval, scope.games)
    except BadQuery as error:
        receipt = msgspec.structs.replace(scope.receipt, warnings=(*scope.receipt.warnings, str(error)))
        return with_receipt(frame.assign(revenue=float("nan")), receipt)
    return frame


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
