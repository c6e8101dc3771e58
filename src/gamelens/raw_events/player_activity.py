"""Active players by where they come from, and what they do in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamelens.analysis.retention.retention_rates import wilson
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import IN_SCOPE, Names, answer, scope_of
from gamelens.raw_events.lake_client import LakeClient

if TYPE_CHECKING:
    from pandas import DataFrame


def active_players(lake: LakeClient, over: TimeRange, *, away: int = 7, games: Names | None = None) -> DataFrame:
    """Return the new, returning and resurrected players of each day and game.

    They add up to the active players. A resurrected player comes back after more than *away* days without an event, a
    returning one sooner. New are those whose install is that day. Days are UTC days; the first one counts as a whole.

    Args:
        lake: the lake. Its first *away* days cannot tell who was away before them.
        over: a time range, as for `Client.query`.
        away: days without an event.
        games: ids of games; None is all of them.

    Columns: timestamp (datetime64[us, UTC]), game_id (category), active, new, returning, resurrected (Int64).

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
            count(*) FILTER (WHERE day = installed) AS new,
            count(*) FILTER (WHERE day <> installed AND day - before <= $away) AS returning,
            count(*) FILTER (WHERE day <> installed AND day - before > $away) AS resurrected
        FROM played WHERE day >= CAST($start AS DATE) GROUP BY ALL ORDER BY timestamp, game_id"""
    return answer(lake, statement, scope_of(lake, over, games=games, by=("game_id",)), {"away": away})


def session_paths(
    lake: LakeClient,
    over: TimeRange,
    *,
    of: str = "category",
    steps: int = 5,
    top: int = 10,
    games: Names | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the most frequent sequences with which sessions begin.

        session_paths(lake, "last 7 complete days", of="event_id_01")

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

    Columns: path (category, steps separated by " > "), sessions (Int64), share (float64, of all sessions with a step),
    low, high (float64, its Wilson interval).

    Raises:
        BadQuery: an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    described = lake.views()
    texts = described.loc[(described["view"] == "events") & (described["type"] == "VARCHAR"), "column"].tolist()
    if of not in texts:
        raise BadQuery("of", of, "is not a column of text of the events", texts)
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
