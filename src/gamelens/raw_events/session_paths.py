"""The sequences with which sessions begin most often: `session_paths`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import between, named, returns
from gamelens.analysis.wilson_intervals import wilson
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.event_scope import NameSequence, answer, in_order, require_columns, scope_of
from gamelens.raw_events.event_source import EventSource

if TYPE_CHECKING:
    from pandas import DataFrame


@requires()
@returns(
    Column("path", "category", about='steps separated by " > "'),
    "sessions",
    between(named("share", about="of all sessions with a step"), "its Wilson interval", low="low", high="high"),
    has_own_receipt=True,
)
def session_paths(
    events: EventSource,
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
        events: a lake, or a table (`open_events`).
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
    texts = [name for name, kind in events.event_columns().items() if kind == "VARCHAR"]
    if of not in texts:
        raise BadQuery("of", of, "is not a text column of the events", texts)
    for field, value in (("steps", steps), ("top", top)):
        if value < 1:
            raise BadQuery(field, value, "must be at least 1")
    require_columns(events, "session_id")
    order = in_order(events)
    of_path = [f"max(CASE WHEN number = {number} THEN step END)" for number in range(1, steps + 1)]
    path = of_path[0] + "".join(f" || coalesce(' > ' || {step}, '')" for step in of_path[1:])
    statement = f"""
        WITH begun AS (
            SELECT game_id, session_id FROM (
                SELECT game_id, session_id, min(ts) AS ts FROM events
                WHERE session_id IS NOT NULL AND ts < $end AND game_id IN ($games) GROUP BY game_id, session_id
            ) AS first_events WHERE ts >= $start
        ), valued AS (
            SELECT game_id, session_id, {order}, {of} AS step, lag({of}) OVER (
                PARTITION BY game_id, session_id ORDER BY {order}) AS step_before
            FROM events SEMI JOIN begun ON begun.game_id = events.game_id AND begun.session_id = events.session_id
            WHERE {of} IS NOT NULL
        ), numbered AS (
            SELECT game_id, session_id, step,
                row_number() OVER (PARTITION BY game_id, session_id ORDER BY {order}) AS number
            FROM valued WHERE step_before IS NULL OR step <> step_before
        ), paths AS (
            SELECT {path} AS path FROM numbered WHERE number <= {steps} GROUP BY game_id, session_id
        ), counted AS (
            SELECT path, count(*) AS sessions FROM paths GROUP BY path
        )
        SELECT path, sessions, CAST(sum(sessions) OVER () AS BIGINT) AS whole
        FROM counted ORDER BY sessions DESC, path LIMIT {top}"""  # noqa: S608
    frame = answer(events, statement, scope_of(events, over, games=games, by=(of,)))
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
