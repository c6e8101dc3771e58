"""Funnels over levels, screens or anything else that events name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gamelens.analysis.retention.retention_rates import wilson
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import IN_SCOPE, Names, answer, scope_of
from gamelens.raw_events.lake_client import LakeClient

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_STEPS: Final = 50
_IS_STEP: Final = "(category = ${name} OR event_id = ${name} OR starts_with(event_id, ${name} || ':'))"


def funnel(
    lake: LakeClient, steps: Sequence[str], over: TimeRange, *, games: Names | None = None, confidence: float = 0.95
) -> DataFrame:
    """Return the players who reach each of *steps*, one after the other.

        funnel(lake, ["tutorial:step_1", "Complete:world01:level001", "Complete:world01:level002"], "last 7 days")

    A player is in a step from the first of its events that is not before the step before. Events of later days than
    *over* do not count, so players who begin late in it have had less time.

    Args:
        lake: the lake.
        steps: each an `event_id`, its first parts, or a category.
        over: a time range, as for `Client.query`.
        games: ids of games; None is all of them.
        confidence: level of the intervals.

    Columns: step (Int64, from 1), name (category), players (Int64), share (float64, of the players of the first step),
    low, high (float64, its Wilson interval), of_previous (float64, of the players of the step before).

    Raises:
        BadQuery: there are no steps or too many; an argument is not as described.
        NotYetAvailable: a part of *over* is not in the lake.
    """
    if isinstance(steps, str) or not 1 <= len(steps) <= _MOST_STEPS:
        raise BadQuery("steps", steps, f"must be a list of 1 to {_MOST_STEPS} steps")
    scope = scope_of(lake, over, games=games)
    tables = [
        f"""events_in AS MATERIALIZED (
            SELECT game_id, user_id, ts, category, event_id FROM events WHERE user_id IS NOT NULL AND {IN_SCOPE})""",  # noqa: S608
        *(_step_sql(number) for number in range(1, len(steps) + 1)),
    ]
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


def _step_sql(number: int) -> str:
    """Return the SQL of the players of a step, each with the time it was reached."""
    matches = _IS_STEP.format(name=f"s{number}")
    if number == 1:
        return f"step1 AS (SELECT game_id, user_id, min(ts) AS reached FROM events_in WHERE {matches} GROUP BY ALL)"  # noqa: S608
    return f"""step{number} AS (
        SELECT game_id, user_id, min(ts) AS reached FROM events_in JOIN step{number - 1} USING (game_id, user_id)
        WHERE ts >= step{number - 1}.reached AND {matches} GROUP BY game_id, user_id)"""  # noqa: S608
