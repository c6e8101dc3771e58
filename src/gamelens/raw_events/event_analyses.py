"""Analyses of a lake's events: each is a time range, one statement over the views, and a frame with its receipt.

Buckets of any time zone by any column, active players, funnels, paths of sessions, and the money of each player. Below
each analysis is the reader of its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal
from zoneinfo import ZoneInfo, available_timezones

import msgspec
import pandas as pd

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.leaders import leader
from gamelens.analysis.retention.retention_rates import wilson
from gamelens.analysis.tidy_frames import with_receipt
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.client.tables.time_ranges import TimeRange, clip_to_available, resolve_range
from gamelens.errors import BadQuery
from gamelens.raw_events.lake_client import QUERY_S, LakeClient
from gamelens.receipts import QueryRecord, Receipt, package_version
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

NameSequence = str | Sequence[str]
LocalBucket = Literal["hour", "day", "week", "month", "all"]
"""Buckets of local time."""

IN_SCOPE: Final = "ts >= $start AND ts < $end AND list_contains($games, game_id)"
"""SQL condition of the events of a scope, with its parameters."""
_MOST_ROWS: Final = 5_000_000

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

_MOST_STEPS: Final = 50
_TENTHS: Final = 10  # of the players, of whom there must be as many
_IS_STEP: Final = "(category = ${name} OR event_id = ${name} OR starts_with(event_id, ${name} || ':'))"


class EventScope(msgspec.Struct, frozen=True, kw_only=True):
    """The events of *games* in *interval*, and the receipt of what is answered from them."""

    interval: Interval
    games: tuple[str, ...]
    receipt: Receipt


def scope_of(
    lake: LakeClient, over: TimeRange, *, games: NameSequence | None = None, zone: str = "UTC", by: Sequence[str] = ()
) -> EventScope:
    """Return the events of *over*, whose midnights are those of *zone*.

    Raises:
        BadQuery: *over* is not a time range; a game or the zone is unknown.
        NotYetAvailable: a part of it is not in the lake, unless the lake was opened with when_unavailable="clip".
    """
    if zone not in available_timezones():
        raise BadQuery("zone", zone, "is not a time zone, such as America/Sao_Paulo", sorted(available_timezones()))
    available = lake.available()
    asked = resolve_in_zone(over, available, ZoneInfo(zone))
    interval = clip_to_available(asked, available, lake.when_unavailable)
    known = lake.sql("SELECT game_id FROM games ORDER BY game_id")["game_id"].tolist()
    chosen = known if games is None else names_of(games)
    for game in chosen:
        if game not in known:
            raise BadQuery("games", game, "is not a game of the organisation", known)
    record = QueryRecord(
        by=tuple(by), over=str(over), interval=str(asked), games=None if games is None else tuple(chosen)
    )
    receipt = Receipt(
        asked=record,
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        as_of=available.end.isoformat(),
        available=str(available),
        clipped=None if interval == asked else str(interval),
        provenance=lake.provenance,
        dated_by_arrival=lake.dated_by_arrival,
        version=package_version(),
    )
    return EventScope(interval=interval, games=tuple(chosen), receipt=receipt)


def check_purchases(lake: LakeClient, interval: Interval, games: Sequence[str]) -> None:
    """Check that purchases of *games* in *interval* are known.

    Raises:
        BadQuery: events of these days came as Event Data, which has none.
    """
    lake.query("revenue", over=interval, every="all", games=list(games), when_unavailable="clip")


def names_of(names: NameSequence) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else [str(name) for name in names]


def answer(
    lake: LakeClient, statement: str, scope: EventScope, parameters: Mapping[str, Any] | None = None
) -> DataFrame:
    """Return the rows of *statement*, which reads the events of *scope*, with its receipt.

    Texts are categories, whole numbers Int64, and times UTC.
    """
    start, end = (moment.astimezone(UTC).replace(tzinfo=None) for moment in (scope.interval.start, scope.interval.end))
    given = {"start": start, "end": end, "games": list(scope.games), **(parameters or {})}
    frame = lake.sql(statement, given, seconds=QUERY_S, rows=_MOST_ROWS)
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            frame[name] = column.astype("datetime64[us]").dt.tz_localize("UTC")
        elif pd.api.types.is_integer_dtype(column):
            frame[name] = column.astype("Int64")
        elif pd.api.types.is_float_dtype(column):
            frame[name] = column.astype("float64")
        else:
            frame[name] = column.astype("category")
    return with_receipt(frame, scope.receipt)


def resolve_in_zone(over: TimeRange, available: Interval, zone: ZoneInfo) -> Interval:
    """Return the interval of *over*, read by the clock of *zone*: a complete day has ended there."""
    start, end = (moment.astimezone(zone).replace(tzinfo=UTC) for moment in (available.start, available.end))
    there = resolve_range(over, Interval(start, end))
    start, end = (moment.astimezone(UTC).replace(tzinfo=zone) for moment in (there.start, there.end))
    return Interval(start.astimezone(UTC), end.astimezone(UTC))


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


@requires()
@returns(
    "timestamp game_id",
    *(Column(name, "count", unit="players") for name in ("active", "new", "returning", "resurrected")),
    has_own_receipt=True,
)
def active_players(lake: LakeClient, over: TimeRange, *, away: int = 7, games: NameSequence | None = None) -> DataFrame:
    """Return the new, returning and resurrected players of each day and game.

        raw_events.active_players(lake, "last 14 complete days", away=3)

    They add up to the active players. A resurrected player comes back after more than *away* days without an event, a
    returning one sooner. New are those whose install is that day, or later as an export states it. Days are UTC days;
    the first one counts as a whole.

    Args:
        lake: the lake. Its first *away* days cannot tell who was away before them.
        over: a time range, as for `Client.query`.
        away: days without an event.
        games: ids of games; None is all of them.

    Claims: "active players".

    Raises:
        BadQuery: an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    if away < 1:
        raise BadQuery("away", away, "must be at least 1 day")
    statement = """
        WITH days AS (
            SELECT DISTINCT game_id, user_id, day FROM events
            WHERE user_id IS NOT NULL AND ts < $end AND list_contains($games, game_id)
        ), played AS (
            SELECT days.*, CAST(installed_at AS DATE) AS installed,
                coalesce(lag(day) OVER (PARTITION BY game_id, user_id ORDER BY day), installed) AS before
            FROM days JOIN players USING (game_id, user_id)
        )
        SELECT CAST(day AS TIMESTAMP) AS timestamp, game_id, count(*) AS active,
            count(*) FILTER (WHERE day <= installed) AS new,
            count(*) FILTER (WHERE day > installed AND day - before <= $away) AS returning,
            count(*) FILTER (WHERE day > installed AND day - before > $away) AS resurrected
        FROM played WHERE day >= CAST($start AS DATE) GROUP BY ALL ORDER BY timestamp, game_id"""
    return answer(lake, statement, scope_of(lake, over, games=games, by=("game_id",)), {"away": away})


@reads("raw_events.active_players")
def _read_active(active: DataFrame, away: int) -> Iterator[Finding]:
    """Say which shares of the daily active players are new, returning and resurrected."""
    sums = active[["active", "new", "returning", "resurrected"]].sum().astype("float64")
    if not sums["active"]:
        yield Finding(kind="active players", case="nobody", unit="share")
        return
    shares = sums / sums["active"]
    interval = Receipt.of(active.attrs).interval
    days = sum(1 for _ in interval.buckets("day")) if interval else active["timestamp"].nunique()
    numbers = {"days": days, "mean": sums["active"] / days, "away": away}
    yield Finding(
        kind="active players",
        case="origin",
        size=shares["resurrected"],
        unit="share",
        judged="counted",
        numbers={**numbers, "new": shares["new"], "returning": shares["returning"]},
    )


@requires()
@returns(
    Column("path", "category", about='steps separated by " > "'),
    "sessions",
    between(named("share", about="of all sessions with a step"), "its Wilson interval", low="low", high="high"),
    has_own_receipt=True,
)
def session_paths(
    lake: LakeClient,
    over: TimeRange,
    *,
    of: str = "category",
    steps: int = 5,
    top: int = 10,
    games: NameSequence | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the most frequent sequences with which sessions begin.

        raw_events.session_paths(lake, "last 7 complete days", of="event_id_01", steps=3)

    A sequence has the first *steps* different values of *of* in the order of the session's events: the same value again
    is not a step, and an event without one is left out. Sessions are those whose first event lies in *over*.

    Args:
        lake: the lake.
        over: a time range, as for `Client.query`.
        of: a column of text of the view `events`, such as `category`, `event_id` or, for screens, one of its parts.
        steps: length of the sequences; shorter sessions have shorter ones.
        top: number of sequences.
        games: ids of games; None is all of them.
        confidence: level of the intervals.

    Claims: "session paths".

    Raises:
        BadQuery: an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    described = lake.views()
    texts = described.loc[(described["view"] == "events") & (described["type"] == "VARCHAR"), "column"].tolist()
    if of not in texts:
        raise BadQuery("of", of, "is not a text column of the events", texts)
    for field, value in (("steps", steps), ("top", top)):
        if value < 1:
            raise BadQuery(field, value, "must be at least 1")
    statement = f"""
        WITH begun AS (
            SELECT game_id, session_id FROM (
                SELECT game_id, session_id, min(ts) AS ts FROM events WHERE session_id IS NOT NULL GROUP BY ALL
            ) WHERE {IN_SCOPE}
        ), valued AS (
            SELECT game_id, session_id, ts, arrival, {of} AS step, lag({of}) OVER (
                PARTITION BY game_id, session_id ORDER BY ts, arrival) AS step_before
            FROM events SEMI JOIN begun USING (game_id, session_id) WHERE {of} IS NOT NULL
        ), paths AS (
            SELECT array_to_string(list(step ORDER BY ts, arrival)[1:$steps], ' > ') AS path
            FROM valued WHERE step IS DISTINCT FROM step_before GROUP BY game_id, session_id
        )
        SELECT path, count(*) AS sessions, sum(count(*)) OVER () AS whole
        FROM paths GROUP BY path ORDER BY sessions DESC, path LIMIT $top"""  # noqa: S608
    frame = answer(lake, statement, scope_of(lake, over, games=games, by=(of,)), {"steps": steps, "top": top})
    whole = frame.pop("whole").astype("float64")
    frame["share"] = frame["sessions"].astype("float64") / whole
    frame["low"], frame["high"] = wilson(frame["sessions"].astype("float64"), whole, confidence=confidence)
    return frame


@reads("raw_events.session_paths")
def _read_paths(paths: DataFrame) -> Iterator[Finding]:
    """Say how sessions begin most often, and how many of them the frequent beginnings cover."""
    if not len(paths):
        yield Finding(kind="session paths", case="nothing", unit="share")
        return
    first = paths.iloc[0]
    yield Finding(
        kind="session paths",
        case="most" if len(paths) > 1 else "alone",
        size=float(first["share"]),
        unit="share",
        judged="counted",
        numbers={"name": str(first["path"]), "paths": len(paths), "covered": float(paths["share"].sum())},
    )


@requires()
@returns(
    Column("step", "count", about="from 1"),
    Column("name", "category"),
    "players",
    between(named("share", about="of the players of the first step"), "its Wilson interval", low="low", high="high"),
    named("of_previous", about="of the players of the step before", na="of the first step"),
    has_own_receipt=True,
)
def funnel(
    lake: LakeClient,
    steps: Sequence[str],
    over: TimeRange,
    *,
    games: NameSequence | None = None,
    only_new: bool = False,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the players who reach each of *steps*, one after the other.

        steps = ["user", "Complete:world01:level001", "Complete:world01:level002"]
        raw_events.funnel(lake, steps, "last 7 complete days", only_new=True)

    A player is in a step from the first of its events that is not before the step before. Only events in *over* count:
    players who begin late in it have had less time, and old players may have done a step before it.

    Args:
        lake: the lake.
        steps: each an `event_id`, its first parts, or a category.
        over: a time range, as for `Client.query`.
        games: ids of games; None is all of them.
        only_new: True follows only the players who installed in *over*.
        confidence: level of the intervals.

    Claims: "funnel" and "players lost".

    Raises:
        BadQuery: there are no steps or too many; an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    if isinstance(steps, str) or not 1 <= len(steps) <= _MOST_STEPS:
        raise BadQuery("steps", steps, f"must be a list of 1 to {_MOST_STEPS} steps")
    scope = scope_of(lake, over, games=games)
    new = "JOIN players USING (game_id, user_id)" if only_new else ""
    is_new = "AND installed_at >= $start AND installed_at < $end" if only_new else ""
    tables = [
        f"""events_in AS MATERIALIZED (
            SELECT game_id, user_id, ts, category, event_id FROM events {new}
            WHERE user_id IS NOT NULL AND {IN_SCOPE} {is_new})""",  # noqa: S608
    ]
    for number in range(1, len(steps) + 1):  # the players of each step, with the time at which it was reached
        source, is_later = "events_in", ""
        if number > 1:
            source = f"events_in JOIN step{number - 1} USING (game_id, user_id)"
            is_later = f"ts >= step{number - 1}.reached AND "
        tables.append(
            f"""step{number} AS (
            SELECT game_id, user_id, min(ts) AS reached FROM {source}
            WHERE {is_later}{_IS_STEP.format(name=f"s{number}")} GROUP BY game_id, user_id)"""  # noqa: S608
        )
    counts = " UNION ALL ".join(
        f"SELECT {number} AS step, $s{number} AS name, count(*) AS players FROM step{number}"  # noqa: S608
        for number in range(1, len(steps) + 1)
    )
    parameters = {f"s{number}": str(name) for number, name in enumerate(steps, 1)}
    frame = answer(lake, f"WITH {', '.join(tables)} {counts} ORDER BY step", scope, parameters)
    players = frame["players"].astype("float64")
    first = players.where(players > 0).iloc[0]
    frame["share"] = players / first
    frame["low"], frame["high"] = wilson(players, players.iloc[0], confidence=confidence)
    before = players.shift()
    frame["of_previous"] = players / before.where(before > 0)
    return frame


@reads("raw_events.funnel")
def _read_funnel(steps: DataFrame) -> Iterator[Finding]:
    """Say how many players reach the last step, and before which step the largest share of them stops."""
    first, last = steps.iloc[0], steps.iloc[-1]
    numbers = {"players": int(first["players"]), "first": str(first["name"]), "last": str(last["name"])}
    if not first["players"] or len(steps) == 1:
        case = "alone" if first["players"] else "nobody"
        yield Finding(kind="funnel", case=case, unit="share", judged="counted", numbers=numbers)
        return
    yield Finding(
        kind="funnel",
        case="reach",
        size=float(last["share"]),
        low=float(last["low"]),
        high=float(last["high"]),
        unit="share",
        judged="players",
        numbers=numbers,
    )
    players = steps["players"].astype("float64")
    lost = steps.assign(before=players.shift(), lost=players.shift() - players)
    lost = lost[lost["before"] > 0]
    lost["low"], lost["high"] = wilson(lost["lost"], lost["before"])
    lost["share"] = lost["lost"] / lost["before"]
    yield leader(lost, "name", "share", kind="players lost", unit="share", numbers={}, judged="players")


@requires()
@returns(
    named("timestamp", about="the install day"),
    "game_id user_id country_code platform first_build install_publisher ab_id ab_variant_id",
    Column("days_played", "count"),
    "revenue ad_revenue",
    has_own_receipt=True,
)
def player_money(
    lake: LakeClient,
    over: TimeRange,
    *,
    days: int = 7,
    games: NameSequence | None = None,
    when_unavailable: Literal["raise", "clip"] | None = None,
) -> DataFrame:
    """Return the revenue of each player in the first *days* days.

        raw_events.player_money(lake, "last 28 complete days", days=7, when_unavailable="clip")

    The day of the install is the first of them. There is a row for each player, also those who brought nothing: the
    variance of money is between players, and `analysis.experiments.compare_players` reads it.

    Args:
        lake: the lake.
        over: install days, as a time range for `Client.query`.
        days: UTC days of each player, all of which must have passed.
        games: ids of games; None is all of them.
        when_unavailable: whether to raise if days of some players are still to come, or to leave these players out;
            None is as the lake was opened.

    Claims: "money of players".

    Raises:
        BadQuery: an argument is not as described, or events of these days came as Event Data, without purchases.
        NotYetAvailable: a part of these days is not in the lake.
    """
    if days < 1:
        raise BadQuery("days", days, "must be at least 1")
    scope, available = scope_of(lake, over, games=games), lake.available()
    rest = timedelta(days=days - 1)
    whole = Interval(scope.interval.start, scope.interval.end + rest)
    when = when_unavailable or lake.when_unavailable
    if clip_to_available(whole, available, when) != whole:  # only players who have had all days, if any
        midnight = available.end.replace(hour=0, minute=0, second=0, microsecond=0)
        part = Interval(scope.interval.start, max(scope.interval.start, midnight - rest))
        receipt = msgspec.structs.replace(scope.receipt, clipped=str(part))
        scope = msgspec.structs.replace(scope, interval=part, receipt=receipt)
    check_purchases(lake, Interval(scope.interval.start, scope.interval.end + rest), scope.games)
    statement = """
        WITH installed AS (
            SELECT *, CAST(installed_at AS DATE) AS since FROM players
            WHERE installed_at >= $start AND installed_at < $end AND list_contains($games, game_id)
        )
        SELECT CAST(since AS TIMESTAMP) AS timestamp, installed.game_id, installed.user_id, installed.country_code,
            installed.platform, first_build, installed.install_publisher, installed.ab_id, installed.ab_variant_id,
            count(DISTINCT day) AS days_played,
            coalesce(sum(usd) FILTER (WHERE category = 'business'), 0) AS revenue,
            coalesce(sum(usd) FILTER (WHERE category = 'impression'), 0) AS ad_revenue
        FROM installed LEFT JOIN events ON events.game_id = installed.game_id AND events.user_id = installed.user_id
            AND day >= since AND day < since + CAST($days AS INTEGER)
        GROUP BY ALL ORDER BY timestamp, installed.game_id, installed.user_id"""
    return answer(lake, statement, scope, {"days": days})


@reads("raw_events.player_money")
def _read_money(money: DataFrame, days: int) -> Iterator[Finding]:
    """Say how much of the money the tenth of the players with most of it brought."""
    brought = (money["revenue"] + money["ad_revenue"]).sort_values(ascending=False)
    total, numbers = float(brought.sum()), dict[str, Any](players=len(money), days=days)
    if not total:
        yield Finding(
            kind="money of players", case="nothing" if len(money) else "nobody", unit="share", numbers=numbers
        )
        return
    none = float((brought == 0).mean())
    if len(brought) < _TENTHS:
        numbers |= {"money": total, "none": none or None}
        yield Finding(kind="money of players", case="few", size=total, unit="USD", judged="counted", numbers=numbers)
        return
    yield Finding(
        kind="money of players",
        case="tenth",
        size=float(brought.head(-(-len(brought) // _TENTHS)).sum()) / total,
        unit="share",
        judged="counted",
        numbers={**numbers, "money": total, "none": none},
    )
