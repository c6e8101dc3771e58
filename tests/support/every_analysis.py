"""Every analysis of raw events, asked of any source of events, for comparisons between engines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import pandas as pd
import pyarrow as pa
from pandas import DataFrame
from pandas.testing import assert_frame_equal

from gamelens import raw_events
from gamelens.errors import Refused
from gamelens.raw_events.event_source import EventSource
from support.random_worlds import USERS, play
from support.sandbox_stage import Stage

OVER: Final = "2026-10-25/2026-11-19"
"""Clocks of New York go back on the first of November."""
INSTALLED: Final = "2026-09-29/2026-11-15"
_MANY: Final = {
    "users": (*USERS, *(f"u{number}" for number in range(30))),
    "sessions": tuple(f"s{number} > ${{x}}" for number in range(90)),
}
"""Players and sessions of a random world, so many that some begin in `OVER`."""
STEPS: Final = ("user", "pack:gold", "it's \\ {here} ${spark.app.name}", "ads", "impression")

ANALYSES: Final[dict[str, Callable[[EventSource], DataFrame]]] = {
    "active_players": lambda events: raw_events.active_players(events, OVER, away=3),
    "active_players, one game": lambda events: raw_events.active_players(events, OVER, away=1, games=["1002"]),
    "count_events by hour": lambda events: raw_events.count_events(
        events, OVER, zone="Asia/Kathmandu", by=["country_code", "game_id"]
    ),
    "count_events by day": lambda events: raw_events.count_events(
        events,
        OVER,
        every="day",
        zone="America/New_York",
        by="event_id_02",
        where="category IN ('user', 'business', 'impression') AND NOT (build = '1.0' OR event_id = 'x')",
    ),
    "count_events by week": lambda events: raw_events.count_events(events, OVER, every="week", zone="America/New_York"),
    "count_events by month": lambda events: raw_events.count_events(events, OVER, every="month", zone="Pacific/Apia"),
    "count_events in all": lambda events: raw_events.count_events(events, OVER, every="all", by="platform"),
    "funnel": lambda events: raw_events.funnel(events, STEPS, OVER),
    "funnel of new players": lambda events: raw_events.funnel(events, STEPS[-2:], INSTALLED, only_new=True),
    "player_money": lambda events: raw_events.player_money(events, INSTALLED, days=5),
    "session_paths": lambda events: raw_events.session_paths(events, OVER, steps=4, top=30),
    "session_paths of parts": lambda events: raw_events.session_paths(events, OVER, of="event_id_01", steps=2),
}
"""Every analysis of the room, in ways that have statements of their own."""


def assert_equal(found: DataFrame, expected: DataFrame) -> None:
    """Compare two frames: every value, dtype and row, and sums of floats to the last digits."""
    assert_frame_equal(found, expected, rtol=1e-12, check_categorical=False)


def played_world(state: Path, seed: int, *, batches: int) -> Path:
    """Make *state* a sandbox, now stopped, with the events of a random world of many players, and return it."""
    stage = Stage(state)
    play(stage, Random(seed), batches=batches, **_MANY)
    stage.sandbox.close()
    return state


def compare_all(
    engine: str, found: EventSource, expected: EventSource, *, names: Iterable[str] = ANALYSES, may_refuse: bool = False
) -> dict[str, str]:
    """Compare analyses of two sources, and return what became of each: equal, or refused by both.

    Where ENGINES names a file, the outcome is written there for the table of the documentation (`make engines`).
    """
    outcomes = {}
    for name in names:
        try:
            answer = _answer(name, expected)  # type: ignore[arg-type]  # any object but that of a protocol is hashable
        except Refused:
            assert may_refuse, name
            try:
                ANALYSES[name](found)
            except Refused:
                outcomes[name] = "refused"
                continue
            raise AssertionError(f"{name} is refused by one alone") from None
        assert len(answer), name
        assert_equal(ANALYSES[name](found), answer)
        outcomes[name] = "equal"
    if path := os.environ.get("ENGINES"):
        written = json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {}
        text = json.dumps(written | {engine: outcomes}, indent=1, sort_keys=True)
        Path(path).write_text(f"{text}\n", encoding="utf-8")
    return outcomes


@cache
def _answer(name: str, source: EventSource) -> DataFrame:
    """Return the answer of an analysis, which several sources are compared with."""
    return ANALYSES[name](source)


def with_repeats(events: pa.Table) -> pa.Table:
    """Return events with copies of some, of another time, that arrived later."""
    frame = events.to_pandas()
    copies = frame[frame["event_uuid"].notna()].iloc[::3].copy()
    copies["arrival"] += frame["arrival"].max() + 1
    copies["ts"] += pd.Timedelta(hours=1)
    return pa.concat_tables([pa.Table.from_pandas(copies, schema=events.schema, preserve_index=False), events])


def with_zone(events: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return events with the time as an instant, shown in Sao Paulo, ids of games as numbers, and other names."""
    place = events.column_names.index("ts")
    instants = events["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "America/Sao_Paulo"))
    events = events.set_column(place, "ts", instants)
    events = events.set_column(events.column_names.index("game_id"), "game_id", events["game_id"].cast("int64"))
    return events.rename_columns([columns.get(name, name) for name in events.column_names])
