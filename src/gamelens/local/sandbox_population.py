"""Players for a sandbox: their events sent, recorded by real clients, played live, or written straight to its lake.

`populate` is the way every event goes; `PopulationRecord` says what was played.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gamelens._files import replace_file
from gamelens._text import one_line, printable
from gamelens.errors import Refused
from gamelens.local.population_record import PopulationRecord, population_id, today
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import call_console, console_of

if TYPE_CHECKING:
    from gamelens.client.events.collector_client import CollectorClient
    from gamelens.local.event_sender import Mode
    from gamelens.simulator import Ledger, LiveEvent, Scenario
    from gamelens.wire.event_validator import RejectedEvent

_NAME_LETTERS: Final = 200


def populate(
    ready: SandboxInfo,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_batch: Callable[[int], object] = lambda _: None,
    on_rejected: Callable[[str, RejectedEvent], object] = lambda *_: None,
    find: Callable[[], SandboxInfo] | None = None,
    mode: Mode = "batches",
) -> PopulationRecord:
    """Play *scenario* through signed, gzipped requests into the first organisation; tells *on_batch* the events sent.

    Where the scenario has delivery or dirt, requests go one after the other, *on_rejected* is told the game id and each
    event that the collector rejects, and the *ledger* has arrive now what has no time of its own. *find* says where the
    sandbox is should it be started again meanwhile: its collector must come back where it was.

    With *mode* "clients" every session is recorded by a client of its own, with "server" by a server that submits with
    the player's address: much slower, and meanwhile the sandbox's clock stands where the session is.

    Raises:
        Refused: the sandbox has too few games, or the collector did not take an event as it was sent, or took one that
            it must reject.
    """
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import EventSender
    from gamelens.simulator import play

    ends_on = ends_on or today()
    if mode != "batches":
        return _record_into(ready, scenario, ends_on=ends_on, ledger=ledger, on_batch=on_batch, mode=mode)
    batches = play(scenario, ends_on=ends_on, game_ids=_game_ids(ready, scenario), ledger=ledger, workers=workers)
    _name_scenario(ready, scenario)
    began = time.monotonic()

    async def received() -> int:
        return await _received(await asyncio.to_thread(find) if find else ready)

    sender = EventSender(_clients(ready), received, on_batch=on_batch, on_rejected=on_rejected)
    shared_loop().run(sender.submit_all(batches, in_order=not scenario.is_clean))
    if ledger is not None and not scenario.is_clean:
        ledger.date_arrivals(datetime.now(UTC))
    return msgspec.structs.replace(
        population_id(scenario, ends_on),
        events=sender.events,
        requests=sender.requests,
        sent_bytes=sender.sent_bytes,
        seconds=time.monotonic() - began,
    )


def populate_lake(
    state: Path,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Write what `populate` would send straight to the lake of the sandbox over *state*, which must not run.

    Nothing is sent, so nothing is judged, kept as it came or can be verified later; a hundred million events take
    minutes instead of an hour. Tells *on_events* how many more there are.

    Raises:
        Refused: the sandbox runs, has events already, or too few games. A new one has those of the scenario.
    """
    from gamelens.sandbox.bulk_load import open_bulk_load
    from gamelens.simulator import play_columns

    ends_on, began, events = ends_on or today(), time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal events
        events += more
        on_events(more)

    with open_bulk_load(state, titles=scenario.titles) as lake:
        lake.take(
            play_columns(
                scenario,
                lake.folder,
                ends_on=ends_on,
                game_ids=_enough(lake.game_ids, scenario),
                ledger=ledger,
                workers=workers,
                on_events=count,
            )
        )
        lake.set_scenario(_scenario_name(scenario))
    return msgspec.structs.replace(population_id(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def play_live(
    ready: SandboxInfo,
    scenario: Scenario,
    *,
    speed: float = 1.0,
    on_batch: Callable[[int], object] = lambda _: None,
    days: int | None = None,
) -> int:
    """Keep *scenario* going in the sandbox, from now on and *speed* times as fast; answers the events sent.

    It is half over when it begins, and starts again with the next seed when it ends. Ends after so many *days* of it,
    by default with a KeyboardInterrupt.

    Raises:
        Refused: the collector did not take an event.
    """
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import EventSender, send_live

    async def received() -> int:
        return await _received(ready)

    now_s, game_ids = int(time.time()), _game_ids(ready, scenario)
    _name_scenario(ready, scenario)
    sender = EventSender(_clients(ready), received, on_batch=on_batch)
    coming = islice(_live_days(scenario, today()), days)

    async def play() -> int:
        async with sender:
            await send_live(coming, sender, game_ids, begins_s=now_s, speed=speed)
        return sender.events

    return shared_loop().run(play())


def _live_days(scenario: Scenario, today: date) -> Iterator[list[LiveEvent]]:
    """What happens on each day from *today* on, without an end."""
    from gamelens.simulator import live_start, play_day

    begins = live_start(scenario, today)
    for ahead in count():
        day = today + timedelta(days=ahead)
        if day >= begins + timedelta(days=scenario.days):
            scenario = msgspec.structs.replace(scenario, seed=(scenario.seed + 1) % 2**63)
            begins = live_start(scenario, day)
        yield play_day(scenario, day, begins=begins)


def _record_into(
    ready: SandboxInfo,
    scenario: Scenario,
    *,
    ends_on: date,
    ledger: Ledger | None,
    on_batch: Callable[[int], object],
    mode: Mode,
) -> PopulationRecord:
    """As `populate`, through real clients."""
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import record_sessions
    from gamelens.simulator import play_sessions

    async def set_time(at_s: int) -> None:
        await console.set_clock(freeze=datetime.fromtimestamp(at_s, UTC))

    async def release() -> None:
        async with console:
            await console.set_clock(resume=True)

    console = console_of(ready)
    game_ids = _game_ids(ready, scenario)
    _name_scenario(ready, scenario)
    sessions = play_sessions(scenario, ends_on=ends_on, game_ids=game_ids, ledger=ledger)
    began = time.monotonic()
    try:
        recording = record_sessions(sessions, _clients(ready), mode=mode, set_time=set_time, on_batch=on_batch)
        events = shared_loop().run(recording)
    finally:
        shared_loop().run(release())
    return msgspec.structs.replace(population_id(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def _name_scenario(ready: SandboxInfo, scenario: Scenario) -> None:
    """Let the sandbox say of which scenario its events are."""
    call_console(ready, lambda console: console.set_scenario(_scenario_name(scenario)))


def _scenario_name(scenario: Scenario) -> str | None:
    """Return the name as the control API takes it, because a scenario file may hold any text."""
    return printable(one_line(scenario.name))[:_NAME_LETTERS].strip() or None


def _clients(ready: SandboxInfo) -> dict[str, CollectorClient]:
    """A client of the collector for each game of the first organisation."""
    from gamelens.client.events.collector_client import CollectorClient

    return {
        game.id: CollectorClient(
            collector_url=ready.collector_url,
            game_key=game.game_key,
            secret_key=game.secret_key,
            ca_file=ready.ca_file,
        )
        for game in ready.organisations[0].games
    }


def _game_ids(ready: SandboxInfo, scenario: Scenario) -> list[str]:
    """The games of the first organisation, if they are enough."""
    return _enough([game.id for game in ready.organisations[0].games], scenario)


def _enough(game_ids: list[str], scenario: Scenario) -> list[str]:
    if len(game_ids) < len(scenario.games):
        raise Refused(
            f"the sandbox has {len(game_ids)} games, {scenario.name} needs {len(scenario.games)}: "
            "`gamelens sandbox up --scenario …` starts one with the games of a scenario"
        )
    return game_ids


async def _received(ready: SandboxInfo) -> int:
    """Return how many events the sandbox has received, good and bad."""
    async with console_of(ready, within_s=30) as console:
        summary = await console.summary()
    return summary.accepted + summary.rejected


def read_population_record(state: Path) -> PopulationRecord | None:
    """What was played into the sandbox over *state*, as far as is written there."""
    try:
        return msgspec.json.decode(_played_file(state).read_bytes(), type=PopulationRecord)
    except (OSError, msgspec.DecodeError):
        return None


def ensure_populated(
    ready: SandboxInfo, state: Path, scenario: str, *, say: Callable[[str], object] = lambda _: None
) -> tuple[PopulationRecord, bool]:
    """Have *scenario*, ended today, in the sandbox over *state*; true when it was already there."""
    from gamelens.simulator import load_scenario

    wanted = load_scenario(scenario)
    already = read_population_record(state)
    if already is not None and _identity_of(already) == population_id(wanted, today()):
        return already, True
    say(f"playing the scenario {scenario}")
    call_console(ready, lambda console: console.reset())
    _played_file(state).unlink(missing_ok=True)
    played = populate(ready, wanted)
    say("processing")
    call_console(ready, lambda console: console.process())
    with replace_file(_played_file(state)) as draft:
        draft.write_bytes(msgspec.json.encode(played))
    return played, False


def _identity_of(played: PopulationRecord) -> PopulationRecord:
    return msgspec.structs.replace(played, events=0, requests=0, sent_bytes=0, seconds=0.0)


def _played_file(state: Path) -> Path:
    return state / "played.json"
