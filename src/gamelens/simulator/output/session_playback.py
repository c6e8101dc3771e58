"""The actions of players as a client records them: by session, or live by event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from gamelens.errors import BadQuery, suggests_names
from gamelens.simulator.events.defects import time_fragment
from gamelens.simulator.events.event_columns import SCHEMA, ledger_rows_of
from gamelens.simulator.events.event_json import Event, encode_events, join_events
from gamelens.simulator.output.play import block_tasks, checked_ids, first_day, play_task
from gamelens.simulator.population.behaviour import EventSlot
from gamelens.simulator.population.session_times import DAY_S, EPOCH

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

_VARIANT_FIELDS: Final = ("ab_id", "ab_variant_id")
_ADVICE: Final = "send ready-made bodies (--mode batches), or remove its tables [delivery] and [dirt]"
_IDENTITY_FIELDS: Final = ("user_id", "platform", "os_version", "device", "manufacturer", "build")
_OWN_FIELDS: Final = {
    *("category", "v", "sdk_version", "session_id", "session_num", "client_ts", "event_uuid"),
    *_IDENTITY_FIELDS,
    *_VARIANT_FIELDS,
}
"""Fields that a client gives an event itself, or that have a place of their own."""


@suggests_names
class SessionEvent(msgspec.Struct, frozen=True):
    """One event of a session, recorded at *ts_s* (epoch seconds), with the fields of its category."""

    ts_s: int
    category: str
    fields: dict[str, Any]
    event_uuid: str


@suggests_names
class PlayedSession(msgspec.Struct, frozen=True):
    """One session of one player, with the ids a client makes.

    *identity* is player and device, *also* has further fields that every event of the session carries, and *events* run
    from `user` to `session_end`.
    """

    game_id: str
    session_id: str
    identity: dict[str, str]
    also: dict[str, Any]
    events: list[SessionEvent]


@suggests_names
class LiveEvent(NamedTuple):
    """One event to be sent at *ts_s*, for the game at position *game* of the scenario."""

    ts_s: int
    game: int
    event: Event
    event_uuid: bytes

    def at(self, now_s: int) -> Event:
        """Return the event with the time *now_s*."""
        return self.event[0], self.event[1], time_fragment(now_s, self.event_uuid)


def play_sessions(
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    game_ids: Sequence[str] | None = None,
    ledger: Ledger | None = None,
) -> Iterator[PlayedSession]:
    """Yield the sessions whose events `play` sends, player by player.

    It takes the arguments of `play`. Sessions that the end of the scenario cuts off are left out, here and in the
    *ledger*, and so are variants of the scenario's experiments, because the service assigns clients to variants.

    Raises:
        BadQuery: as `play` does, or the scenario has delivery or dirt: a client has its own delivery, no dirt.
    """
    if not scenario.is_clean:
        raise BadQuery("scenario", scenario.name, f"has delivery or dirt, which a client cannot play: {_ADVICE}")
    begins, ids_of_games = first_day(scenario, ends_on), checked_ids(scenario, game_ids)
    for task in block_tasks(scenario):
        game, game_id = scenario.games[task.game], ids_of_games[task.game]
        block, ids = play_task(scenario, begins, task)
        is_whole = np.isin(block.events.session, block.events.session[block.events.slot == EventSlot.SESSION_END])
        if ledger is not None:
            ledger_rows = ledger_rows_of(block, ids, game=game, game_id=game_id, scenario=scenario)
            for name in _VARIANT_FIELDS:
                field = SCHEMA.field(name)
                nothing = pa.nulls(len(ledger_rows), field.type)
                ledger_rows = ledger_rows.set_column(SCHEMA.get_field_index(name), field, nothing)
            ledger.record(ledger_rows.filter(pa.array(is_whole)))
        events = encode_events(block, ids, game=game, scenario=scenario)
        starts = np.flatnonzero(np.diff(block.events.session, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(events)], strict=True):
            if is_whole[start]:
                yield _session(game_id, msgspec.json.decode(join_events(events[start:end])))


def play_day(scenario: Scenario, day: date, *, begins: date) -> list[LiveEvent]:
    """Return the events of one *day* of *scenario*, which starts on *begins*, by time."""
    first_s = (day - EPOCH).days * DAY_S
    live_events: list[LiveEvent] = []
    for task in block_tasks(scenario):
        block, ids = play_task(scenario, begins, task)
        today = np.flatnonzero((block.events.ts_s >= first_s) & (block.events.ts_s < first_s + DAY_S)).tolist()
        if today:
            events = encode_events(block, ids, game=scenario.games[task.game], scenario=scenario)
            times, names = block.events.ts_s.tolist(), ids.event.tolist()
            live_events += [LiveEvent(times[place], task.game, events[place], names[place]) for place in today]
    return sorted(live_events, key=lambda event: event.ts_s)


def live_start(scenario: Scenario, today: date) -> date:
    """Return the first day that puts *today* in the middle of *scenario*.

    Half of its days have then brought it players.
    """
    return today - timedelta(days=scenario.days // 2)


def _session(game_id: str, events: list[dict[str, Any]]) -> PlayedSession:
    """Return the session of these decoded events."""
    first = events[0]
    also = {name: value for name, value in first.items() if name not in _OWN_FIELDS}
    return PlayedSession(
        game_id=game_id,
        session_id=first["session_id"],
        identity={name: first[name] for name in _IDENTITY_FIELDS},
        also=also,
        events=[
            SessionEvent(
                ts_s=event["client_ts"],
                category=event["category"],
                fields={name: value for name, value in event.items() if name not in _OWN_FIELDS and name not in also},
                event_uuid=event["event_uuid"],
            )
            for event in events
        ],
    )
