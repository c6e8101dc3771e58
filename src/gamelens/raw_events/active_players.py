"""New, returning and resurrected players of each day: `active_players`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import returns
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, scope_of
from gamelens.raw_events.lake_client import LakeClient
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from pandas import DataFrame


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
