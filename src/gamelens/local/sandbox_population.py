"""Players for a sandbox: submitted, recorded by real clients, live, or put into its lake.

`populate` is the usual way. `PopulationRecord` says what was played.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from filelock import FileLock

from gamelens._files import named_errors, replace_file
from gamelens._text import one_line, printable
from gamelens.errors import Refused, ServiceError, suggests_names
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import call_control_api, control_api_of

if TYPE_CHECKING:
    from gamelens.client.events.collector_client import CollectorClient
    from gamelens.local.event_sender import Mode
    from gamelens.simulator import ExportFormat, Ledger, LiveEvent, Scenario
    from gamelens.wire.event_validator import RejectedEvent

_NAME_LETTERS: Final = 200
_LOADED_PLAYERS: Final = 5_000
"""From so many players on a population is loaded, but for its last day. Fewer are sent in seconds, with raw events."""


@suggests_names
class PopulationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of what was played into a sandbox, to recognise the same population.

    Scenario, version of the simulator, seed, players, days and last day identify it. Inits of real clients are among
    the requests. A population that was written and not sent has none, and one that was only played has no bytes sent.
    *loaded* counts events that were put into the lake as columns; *events* does not.
    """

    scenario: str
    version: int
    seed: int
    players: int
    days: int
    ends_on: date
    events: int = 0
    requests: int = 0
    sent_bytes: int = 0
    seconds: float = 0.0
    loaded: int = 0


def population_id(scenario: Scenario, ends_on: date) -> PopulationRecord:
    """Return the record of *scenario* without counts, which identifies its population."""
    from gamelens.simulator import VERSION

    return PopulationRecord(
        scenario=scenario.name,
        version=VERSION,
        seed=scenario.seed,
        players=scenario.players,
        days=scenario.days,
        ends_on=ends_on,
    )


def today() -> date:
    """Return the current day in UTC."""
    return datetime.now(UTC).date()


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
    from_day: int = 0,
) -> PopulationRecord:
    """Play *scenario* into the first organisation of a sandbox, in signed requests.

    A scenario with delivery or dirt sends each device's requests in order, and events without a time of their own are
    entered in the *ledger* as arriving now.

    Args:
        ready: the sandbox.
        scenario: what to play.
        ends_on: the last day, today by default.
        ledger: receives every event, as ground truth.
        workers: processes that make the events.
        on_batch: called with the number of events of each batch.
        on_rejected: called with the game id and the event for each event that the collector rejects.
        find: returns the sandbox if it may be restarted meanwhile; the address of its collector must stay the same.
        from_day: leaves out the events of earlier days, counted from the first.

    Raises:
        Refused: the sandbox has too few games or would not use times as old as the first, or the collector rejected a
            valid event or accepted one that it must reject.
    """
    from gamelens.client.connection.control_api import ControlApi
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import EventSender
    from gamelens.simulator import play

    ends_on = ends_on or today()
    needed = (today() - ends_on).days + scenario.days - from_day + 2  # with a day for the zones of clocks, and today
    if needed > (oldest := call_control_api(ready, ControlApi.summary).oldest_days):
        raise Refused(
            f"the scenario begins {needed - 2} days ago, and the sandbox dates events more than {oldest} days old by "
            f"their arrival: start it with `oldest_days = {needed}` under [collector] in its --config, or play fewer "
            "days"
        )
    batches = play(
        scenario,
        ends_on=ends_on,
        game_ids=_game_ids(ready, scenario),
        ledger=ledger,
        workers=workers,
        from_day=from_day,
    )
    _name_scenario(ready, scenario)
    began = time.monotonic()

    async def received() -> int:
        return await _received_events(await asyncio.to_thread(find) if find else ready)

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


def populate_at_once(
    ready: SandboxInfo,
    state: Path,
    scenario: Scenario,
    *,
    workers: int = 1,
    say: Callable[[str], object] = lambda _: None,
    on_batch: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Play *scenario*, ending today, into a sandbox without events: the last day is sent, the days before are loaded.

    Columns are loaded in a tenth of the time that requests take, and what arrives now still goes the whole way: signed,
    checked, stored and processed. The lake has no raw events of the days that were loaded.

    Raises:
        Refused: as `populate`, there are events, or an earlier gamelens runs the sandbox.
    """
    from gamelens.sandbox.processing.compaction import SETTLED_EVENTS
    from gamelens.sandbox.processing.pipeline import LOADED
    from gamelens.simulator import play_columns
    from gamelens.simulator.output.play import estimated_events

    began, loaded, last = time.monotonic(), 0, scenario.days - 1

    def count(events: int) -> None:
        nonlocal loaded
        loaded += events
        on_batch(events)

    folder = state / LOADED
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    play_columns(
        scenario,
        folder,
        game_ids=_game_ids(ready, scenario),
        workers=workers,
        before_day=last,
        days_a_file=1 + SETTLED_EVENTS * scenario.days // (estimated_events(scenario) + 1),  # none is compacted
        on_events=count,
    )
    say("loading")
    try:
        call_control_api(ready, lambda api: api.load())
    except ServiceError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        stop = f"gamelens sandbox stop --state {shlex.quote(str(state))}"
        raise Refused(f"the sandbox runs an earlier gamelens, which loads no players: `{stop}`, then again") from None
    say("sending the last day")
    sent = populate(ready, scenario, from_day=last, on_batch=on_batch)
    return msgspec.structs.replace(sent, loaded=loaded, seconds=time.monotonic() - began)


def populate_lake(
    state: Path,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Write the events of *scenario* straight to the lake of a sandbox that does not run.

    A hundred million events take minutes instead of an hour. They are not sent: none is checked by the collector, and
    there are no raw events to verify the lake with. *on_events* is called with the number of each part.

    Raises:
        Refused: the sandbox over *state* runs, has events already, or has too few games. A new one has the
            games of the scenario.
    """
    from gamelens.sandbox.server import open_bulk_load
    from gamelens.simulator import play_columns

    ends_on, began, events = ends_on or today(), time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal events
        events += more
        on_events(more)

    with named_errors(state), open_bulk_load(state, titles=scenario.titles) as lake:
        lake.take(
            play_columns(
                scenario,
                lake.folder,
                ends_on=ends_on,
                game_ids=_check_games(lake.game_ids, scenario),
                ledger=ledger,
                workers=workers,
                on_events=count,
            )
        )
        lake.set_scenario(_scenario_name(scenario))
    return msgspec.structs.replace(population_id(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def write_raw_export(
    folder: Path,
    kind: ExportFormat,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Write the events of *scenario* as the service exports raw events.

    The files are of *kind* and lie below *folder*. The games have the ids of a new sandbox for the scenario.
    *on_events* is called with the number of each part.

    Raises:
        Refused: *folder* is not empty.
    """
    from gamelens.simulator import export_raw

    ends_on, began = ends_on or today(), time.monotonic()
    events = export_raw(scenario, folder, kind, ends_on=ends_on, ledger=ledger, workers=workers, on_events=on_events)
    return msgspec.structs.replace(population_id(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def play_unsent(
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Play *scenario* and send nothing, to count the events and requests that it has, and to fill the *ledger*.

    Events without a time of their own are entered in it as arriving now. *on_events* is called with the number of
    each part.
    """
    from gamelens.simulator import play

    ends_on, began, events, requests = ends_on or today(), time.monotonic(), 0, 0
    for batch in play(scenario, ends_on=ends_on, ledger=ledger, workers=workers):
        events, requests = events + batch.events, requests + 1
        on_events(batch.events)
    if ledger is not None and not scenario.is_clean:
        ledger.date_arrivals(datetime.now(UTC))
    seconds = time.monotonic() - began
    return msgspec.structs.replace(population_id(scenario, ends_on), events=events, requests=requests, seconds=seconds)


def play_live(
    ready: SandboxInfo,
    scenario: Scenario,
    *,
    speed: float = 1.0,
    on_batch: Callable[[int], object] = lambda _: None,
    days: int | None = None,
) -> int:
    """Play *scenario* from now on, *speed* times as fast, and return the events sent.

    The scenario is at its middle when it begins, and starts again with the next seed when it ends. Play ends after
    *days* days of it or, by default, with a KeyboardInterrupt.

    Raises:
        Refused: the collector did not accept an event.
    """
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import EventSender, send_live

    async def received() -> int:
        return await _received_events(ready)

    now_s, game_ids = int(time.time()), _game_ids(ready, scenario)
    _name_scenario(ready, scenario)
    sender = EventSender(_clients(ready), received, on_batch=on_batch)
    days_to_play = islice(_live_days(scenario, today()), days)

    async def play() -> int:
        async with sender:
            await send_live(days_to_play, sender, game_ids, begins_s=now_s, speed=speed)
        return sender.events

    return shared_loop().run(play())


def _live_days(scenario: Scenario, today: date) -> Iterator[list[LiveEvent]]:
    """Yield the events of each day from *today* on, without an end."""
    from gamelens.simulator import live_start, play_day

    begins = live_start(scenario, today)
    for ahead in count():
        day = today + timedelta(days=ahead)
        if day >= begins + timedelta(days=scenario.days):
            scenario = msgspec.structs.replace(scenario, seed=(scenario.seed + 1) % 2**63)
            begins = live_start(scenario, day)
        yield play_day(scenario, day, begins=begins)


def populate_with_clients(
    ready: SandboxInfo,
    scenario: Scenario,
    *,
    mode: Mode,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    on_batch: Callable[[int], object] = lambda _: None,
) -> PopulationRecord:
    """Play *scenario* into a sandbox through real clients, one for each session.

    With *mode* "clients" each session is recorded by a `PlayerSession`, with "server" by a `GameServer` that submits
    with the player's address. This is much slower than `populate`, and the sandbox's clock is set to the time of each
    session.

    Raises:
        Refused: the sandbox has too few games, or an event was not delivered.
    """
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.local.event_sender import record_sessions
    from gamelens.simulator import play_sessions

    async def set_time(at_s: int) -> None:
        await api.set_clock(freeze=datetime.fromtimestamp(at_s, UTC))

    async def release() -> None:
        async with api:
            await api.set_clock(resume=True)

    ends_on, api, clients = ends_on or today(), control_api_of(ready), _clients(ready)
    game_ids = _game_ids(ready, scenario)
    _name_scenario(ready, scenario)
    sessions = play_sessions(scenario, ends_on=ends_on, game_ids=game_ids, ledger=ledger)
    began = time.monotonic()
    try:
        recording = record_sessions(sessions, clients, mode=mode, set_time=set_time, on_batch=on_batch)
        events = shared_loop().run(recording)
    finally:
        shared_loop().run(release())
    return msgspec.structs.replace(
        population_id(scenario, ends_on),
        events=events,
        requests=sum(client.requests for client in clients.values()),
        sent_bytes=sum(client.sent_bytes for client in clients.values()),
        seconds=time.monotonic() - began,
    )


def _name_scenario(ready: SandboxInfo, scenario: Scenario) -> None:
    """Tell the sandbox which scenario its events come from."""
    call_control_api(ready, lambda api: api.set_scenario(_scenario_name(scenario)))


def _scenario_name(scenario: Scenario) -> str | None:
    """Return the scenario's name as the control API accepts it: one printable line."""
    return printable(one_line(scenario.name))[:_NAME_LETTERS].strip() or None


def _clients(ready: SandboxInfo) -> dict[str, CollectorClient]:
    """Return a collector client for each game of the first organisation, by game id."""
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
    """Return the game ids of the first organisation.

    Raises:
        Refused: it has too few games for *scenario*.
    """
    return _check_games([game.id for game in ready.organisations[0].games], scenario)


def _check_games(game_ids: list[str], scenario: Scenario) -> list[str]:
    if len(game_ids) < len(scenario.games):
        raise Refused(
            f"the sandbox has {len(game_ids)} games, {scenario.name} needs {len(scenario.games)}: "
            "`gamelens sandbox up --scenario …` starts one with the games of a scenario"
        )
    return game_ids


async def _received_events(ready: SandboxInfo) -> int:
    """Return how many events the sandbox has received, accepted and rejected."""
    async with control_api_of(ready, within_s=30) as api:
        summary = await api.summary()
    return summary.accepted + summary.rejected


def read_population_record(state: Path) -> PopulationRecord | None:
    """Return the record of what was played into the sandbox over *state*, or None."""
    try:
        return msgspec.json.decode(_record_file(state).read_bytes(), type=PopulationRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def ensure_populated(
    ready: SandboxInfo,
    state: Path,
    scenario: str,
    *,
    workers: int = 1,
    say: Callable[[str], object] = lambda _: None,
    on_batch: Callable[[int], object] = lambda _: None,
) -> tuple[PopulationRecord, bool]:
    """Play *scenario*, ending today, into a sandbox unless it holds that already.

    Many players are played as `populate_at_once` does, by *workers* processes. *say* is called with each step in
    words, *on_batch* with the number of events of each batch.

    Returns:
        The record of the population, and whether the sandbox over *state* already held it.
    """
    from gamelens.simulator import load_scenario

    wanted = load_scenario(scenario)
    with FileLock(state / "played.lock", mode=0o600):  # who comes second finds what the first has played
        return _ensure_populated(ready, state, wanted, scenario, workers=workers, say=say, on_batch=on_batch)


def _ensure_populated(
    ready: SandboxInfo,
    state: Path,
    wanted: Scenario,
    scenario: str,
    *,
    workers: int,
    say: Callable[[str], object],
    on_batch: Callable[[int], object],
) -> tuple[PopulationRecord, bool]:
    previous = read_population_record(state)
    identity = population_id(wanted, today())
    no_counts = {name: getattr(identity, name) for name in ("events", "requests", "sent_bytes", "seconds", "loaded")}
    if previous is not None and msgspec.structs.replace(previous, **no_counts) == identity:
        summary = call_control_api(ready, lambda api: api.summary())
        if not (previous.loaded and summary.damaged.lake):  # what was loaded cannot be made again, but played again
            if summary.pending or summary.damaged.lake:  # as after an upgrade, which rebuilds the lake
                say("processing")
                call_control_api(ready, lambda api: api.process())
            return previous, True
    say(f"playing the scenario {scenario}")
    call_control_api(ready, lambda api: api.reset())
    _record_file(state).unlink(missing_ok=True)
    if wanted.players >= _LOADED_PLAYERS and wanted.is_clean:
        record = populate_at_once(ready, state, wanted, workers=workers, say=say, on_batch=on_batch)
    else:
        record = populate(ready, wanted, on_batch=on_batch)
    say("processing")
    call_control_api(ready, lambda api: api.process())
    with replace_file(_record_file(state)) as draft:
        draft.write_bytes(msgspec.json.encode(record))
    return record, False


def _record_file(state: Path) -> Path:
    return state / "played.json"
