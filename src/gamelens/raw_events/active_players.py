"""New, returning and resurrected players of each day: `active_players`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import returns
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, midnight, scope_of
from gamelens.raw_events.event_source import EventSource
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from pandas import DataFrame


@requires()
@returns(
    "timestamp game_id",
    *(Column(name, "count", unit="players") for name in ("active", "new", "returning", "resurrected")),
    has_own_receipt=True,
)
def active_players(
    events: EventSource, over: TimeRange, *, away: int = 7, games: NameSequence | None = None
) -> DataFrame:
    """Return the new, returning and resurrected players of each day and game.

        raw_events.active_players(lake, "last 14 complete days", away=3)

    They add up to the active players. A resurrected player comes back after more than *away* days without an event, a
    returning one sooner; the install counts as an event. New are those whose install is that day, or later as an export
    states it. Days are UTC days; the first one counts as a whole.

    Args:
        events: a lake, or a table (`open_events`). Its first *away* days cannot tell who was away before them.
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
            WHERE user_id IS NOT NULL AND ts >= $seen_from AND ts < $end AND game_id IN ($games)
        ), played AS (
            SELECT days.game_id, day, CAST(installed_at AS DATE) AS installed,
                lag(day) OVER (PARTITION BY days.game_id, days.user_id ORDER BY day) AS day_before
            FROM days JOIN players ON players.game_id = days.game_id AND players.user_id = days.user_id
        ), dated AS (
            SELECT game_id, day, installed,
                date_diff('day', CASE WHEN day_before > installed THEN day_before ELSE installed END, day) AS since
            FROM played WHERE day >= CAST($start AS DATE)
        )
        SELECT CAST(day AS TIMESTAMP) AS timestamp, game_id, count(*) AS active,
            count(*) FILTER (WHERE day <= installed) AS new,
            count(*) FILTER (WHERE day > installed AND since <= $away) AS returning,
            count(*) FILTER (WHERE day > installed AND since > $away) AS resurrected
        FROM dated GROUP BY day, game_id ORDER BY timestamp, game_id"""
    scope = scope_of(events, over, games=games, by=("game_id",))
    seen_from = midnight(scope.interval.start) - timedelta(days=away)  # whoever was not seen since then was away
    return answer(events, statement, scope, {"away": away, "seen_from": seen_from}, since=seen_from)


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
