"""Events, players and money in hours or days of any time zone, by any column of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gamelens.analysis.tidy_frames import with_receipt
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import IN_SCOPE, Names, answer, check_purchases, names_of, scope_of
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


def count_events(
    lake: LakeClient,
    over: TimeRange,
    *,
    every: LocalBucket = "hour",
    zone: str = "UTC",
    by: Names = (),
    where: str | None = None,
    games: Names | None = None,
) -> DataFrame:
    """Return events, players, sessions and money in buckets of local time.

        count_events(lake, "last 7 complete days", zone="America/Sao_Paulo", by="device", where="category = 'ads'")

    Midnights of *over* are those of *zone*. A bucket without events has no row. An hour that a clock shows twice is
    two.

    Args:
        lake: the lake.
        over: a time range, as for `Client.query`.
        every: `hour`, `day`, `week` (from Monday), `month` or `all`.
        zone: an IANA time zone.
        by: columns of the view `events`, such as `event_id_01`, `custom_01` or `device`.
        where: a condition of SQL over the view `events`.
        games: ids of games; None is all of them.

    Columns: timestamp (datetime64[us, *zone*], the start), *by* (category), events, players, sessions (Int64), revenue,
    ad_revenue (float64, USD). revenue is NA where events came as Event Data, without purchases; the receipt says so.

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
