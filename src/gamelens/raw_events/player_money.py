"""Money of each player in the first days after its install."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gamelens.client.tables.time_ranges import TimeRange, clip_to_available
from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.raw_events.event_scope import EventScope, Names, answer, check_purchases, scope_of
from gamelens.raw_events.lake_client import LakeClient
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

_DAY: Final = timedelta(days=1)


def player_money(
    lake: LakeClient,
    over: TimeRange,
    *,
    days: int = 7,
    games: Names | None = None,
    when_unavailable: Literal["raise", "clip"] = "raise",
) -> DataFrame:
    """Return what each player brought in the first *days* days.

    The day of the install is the first of them. There is a row for each player, also those who brought nothing: the
    variance of money is between players, and `analysis.experiments.compare_players` reads it.

    Args:
        lake: the lake.
        over: install days, as a time range for `Client.query`.
        days: UTC days of each player, all of which must have passed.
        games: ids of games; None is all of them.
        when_unavailable: whether to raise if days of some players are still to come, or to leave these players out.

    Columns: timestamp (datetime64[us, UTC], the install day), game_id, user_id, country_code, platform, first_build,
    install_publisher, ab_id, ab_variant_id (category), days_played (Int64), revenue, ad_revenue (float64, USD).

    Raises:
        BadQuery: an argument is not as described, or events of these days came as Event Data, without purchases.
        NotYetAvailable: a part of these days is not in the lake.
    """
    if days < 1:
        raise BadQuery("days", days, "must be at least 1")
    scope = _with_whole_days(scope_of(lake, over, games=games), lake.available(), days, when_unavailable)
    until = scope.interval.end + (days - 1) * _DAY
    check_purchases(lake, Interval(scope.interval.start, until), scope.games)
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


def _with_whole_days(scope: EventScope, available: Interval, days: int, when: Literal["raise", "clip"]) -> EventScope:
    """Return the part of *scope* whose players have had all their days.

    Raises:
        NotYetAvailable: that is not all, and *when* is "raise", or it is nothing.
    """
    whole = Interval(scope.interval.start, scope.interval.end + (days - 1) * _DAY)
    if clip_to_available(whole, available, when) == whole:
        return scope
    midnight = available.end.replace(hour=0, minute=0, second=0, microsecond=0)
    part = Interval(scope.interval.start, max(scope.interval.start, midnight - (days - 1) * _DAY))
    if not part:
        raise NotYetAvailable(whole, available, tried=when)
    return msgspec.structs.replace(
        scope, interval=part, receipt=msgspec.structs.replace(scope.receipt, clipped=str(part))
    )
