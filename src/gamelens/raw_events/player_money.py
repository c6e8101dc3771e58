"""The money of each player in the first days: `player_money`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import named, returns
from gamelens.client.tables.time_ranges import TimeRange, clip_to_available
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, in_order, midnight, scope_of
from gamelens.raw_events.event_source import EventSource
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

_TENTHS: Final = 10  # of the players; there must be as many players


@requires()
@returns(
    named("timestamp", about="the install day"),
    "game_id user_id country_code platform first_build install_publisher ab_id ab_variant_id",
    Column("days_played", "count"),
    "revenue ad_revenue",
    has_own_receipt=True,
)
def player_money(
    events: EventSource,
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
        events: a lake, or a table (`open_events`).
        over: install days, as a time range for `Client.query`.
        days: UTC days of each player. All of them must have passed.
        games: ids of games; None is all of them.
        when_unavailable: whether to raise if days of some players are still to come, or to leave these players out;
            None is as the lake or table was opened.

    Claims: "money of players".

    Raises:
        BadQuery: an argument is not as described, or events of these days came as Event Data, without purchases.
        NotYetAvailable: a part of these days is not in the lake.
    """
    if days < 1:
        raise BadQuery("days", days, "must be at least 1")
    scope, available = scope_of(events, over, games=games), events.available()
    rest = timedelta(days=days - 1)
    whole = Interval(scope.interval.start, scope.interval.end + rest)
    when = when_unavailable or events.when_unavailable
    if clip_to_available(whole, available, when) != whole:  # only players who have had all days, if any
        part = Interval(scope.interval.start, max(scope.interval.start, midnight(available.end) - rest))
        receipt = msgspec.structs.replace(scope.receipt, clipped=str(part))
        scope = msgspec.structs.replace(scope, interval=part, receipt=receipt)
    if lacking := events.lacks("business", Interval(scope.interval.start, scope.interval.end + rest), scope.games):
        raise BadQuery("over", str(over), lacking)
    in_order(events)  # a player has the country of the first event
    statement = """
        WITH installed AS (
            SELECT game_id, user_id, country_code, platform, first_build, install_publisher, ab_id, ab_variant_id,
                CAST(installed_at AS DATE) AS since
            FROM players WHERE installed_at >= $start AND installed_at < $end AND game_id IN ($games)
        ), earned AS (
            SELECT installed.game_id, installed.user_id, count(DISTINCT day) AS days_played,
                sum(usd) FILTER (WHERE category = 'business') AS revenue,
                sum(usd) FILTER (WHERE category = 'impression') AS ad_revenue
            FROM installed JOIN events ON events.game_id = installed.game_id AND events.user_id = installed.user_id
                AND day >= since AND date_diff('day', since, day) < $days
            WHERE ts >= $first_day AND ts < $last_day
            GROUP BY installed.game_id, installed.user_id
        )
        SELECT CAST(since AS TIMESTAMP) AS timestamp, installed.game_id, installed.user_id, country_code, platform,
            first_build, install_publisher, ab_id, ab_variant_id, coalesce(days_played, 0) AS days_played,
            coalesce(revenue, 0) AS revenue, coalesce(ad_revenue, 0) AS ad_revenue
        FROM installed LEFT JOIN earned ON earned.game_id = installed.game_id AND earned.user_id = installed.user_id
        ORDER BY timestamp, installed.game_id, installed.user_id"""
    first_day = midnight(scope.interval.start)
    reads = {"first_day": first_day, "last_day": scope.interval.end + timedelta(days=days)}
    return answer(events, statement, scope, {"days": days, **reads}, since=first_day, until=reads["last_day"])


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
