"""The players who reach each of several steps: `funnel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.leaders import largest_loss
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import between, named, returns
from gamelens.analysis.wilson_intervals import wilson
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, require_columns, scope_of
from gamelens.raw_events.event_source import EventSource

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_STEPS: Final = 50
_IS_STEP: Final = "(category = ${name} OR event_id = ${name} OR starts_with(event_id, ${name} || ':'))"


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
    events: EventSource,
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
        events: a lake, or a table (`open_events`).
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
    require_columns(events, "event_id")
    scope = scope_of(events, over, games=games)
    new = "JOIN players ON players.game_id = events.game_id AND players.user_id = events.user_id" if only_new else ""
    is_new = "AND installed_at >= $start AND installed_at < $end" if only_new else ""
    tables = [
        f"""events_in AS MATERIALIZED (
            SELECT events.game_id, events.user_id, ts, category, event_id FROM events {new}
            WHERE events.user_id IS NOT NULL AND ts >= $start AND ts < $end AND events.game_id IN ($games) {is_new}
        )""",  # noqa: S608
    ]
    for number in range(1, len(steps) + 1):  # the players of each step, with the time at which it was reached
        source, is_later = "events_in", ""
        if number > 1:
            earlier = f"step{number - 1}"
            is_same = f"{earlier}.game_id = events_in.game_id AND {earlier}.user_id = events_in.user_id"
            source, is_later = f"events_in JOIN {earlier} ON {is_same}", f"ts >= {earlier}.reached AND "
        tables.append(
            f"""step{number} AS (
            SELECT events_in.game_id, events_in.user_id, min(ts) AS reached FROM {source}
            WHERE {is_later}{_IS_STEP.format(name=f"s{number}")} GROUP BY events_in.game_id, events_in.user_id
        )"""  # noqa: S608
        )
    counts = " UNION ALL ".join(
        f"SELECT {number} AS step, $s{number} AS name, count(*) AS players FROM step{number}"  # noqa: S608
        for number in range(1, len(steps) + 1)
    )
    parameters = {f"s{number}": str(name) for number, name in enumerate(steps, 1)}
    frame = answer(
        events, f"WITH {', '.join(tables)} {counts} ORDER BY step", scope, parameters, since=scope.interval.start
    )
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
    yield largest_loss(steps)
