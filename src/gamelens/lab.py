"""Introduces the rooms to each other: start a sandbox, play a scenario into it, hand over a client.

`connect` is what a notebook calls; `sandbox_at`, `play_into` and `process_at` are its parts; `demo` is everything, end
to end. A sandbox always runs in a process of its own, so that nobody's kernel pays for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import platformdirs

from gamelens.errors import Refused, Unreachable

if TYPE_CHECKING:
    from gamelens.client.collector import CollectorClient, Rejected
    from gamelens.client.metrics import Client
    from gamelens.playing import Mode
    from gamelens.simulator import Ledger, LiveEvent, Scenario

DEMO_SCENARIO = "demo"
IDLE_S = 4 * 3600.0
_START_S = 30.0
_OUTLIVING: Final[list[subprocess.Popen[bytes]]] = []  # kept, because a process that is let go of is warned about


class ReadyGame(msgspec.Struct, frozen=True):
    """A game of a running sandbox and its keys."""

    id: str
    title: str
    game_key: str
    secret_key: str

    def __repr__(self) -> str:
        return f"ReadyGame({self.id!r}, {self.title!r})"


class ReadyStudio(msgspec.Struct, frozen=True):
    """A studio of a running sandbox."""

    id: str
    name: str
    games: list[ReadyGame]


class ReadyOrganisation(msgspec.Struct, frozen=True):
    """An organisation of a running sandbox and its API key; None where only its owner still has it."""

    name: str
    api_key: str | None
    studios: list[ReadyStudio]

    def __repr__(self) -> str:
        return f"ReadyOrganisation({self.name!r})"

    @property
    def games(self) -> list[ReadyGame]:
        """All games, studio by studio."""
        return [game for studio in self.studios for game in studio.games]


class Ready(msgspec.Struct, frozen=True):
    """Where a running sandbox listens, and every key: the ready file."""

    collector_url: str
    metrics_url: str
    console_url: str
    organisations: list[ReadyOrganisation]
    pid: int | None = None
    ca_file: str | None = None

    def __repr__(self) -> str:
        return f"Ready({self.collector_url!r}, {self.metrics_url!r})"


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What was played into a sandbox: enough to know whether the same is asked for again."""

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


def connect(**settings: Any) -> Client:
    """A client of the real service where a key is set, else of a sandbox on this machine with demo data.

    *settings* are those of `Client`. The sandbox starts when it is needed, in a process of its own, is filled once a
    day with the `demo` scenario (about half a minute), and stops by itself when nobody has asked it for four hours.
    GAMELENS_REPLAY names a folder of recorded answers that is asked instead of either, GAMELENS_RECORD one to write.
    """
    from gamelens.client.metrics import Client
    from gamelens.client.settings import Settings, config_file

    if not settings.keys() & {"record", "replay"}:
        folders = {name: os.environ.get(f"GAMELENS_{name.upper()}") for name in ("record", "replay")}
        settings |= {name: folder for name, folder in folders.items() if folder}
    if settings.get("replay"):
        return Client(**settings)
    given = {name: settings.get(name) for name in ("api_key", "metrics_url")}
    if key := Settings(given, os.environ, config_file()).find("api_key"):
        return Client(**{**settings, "api_key": key})  # handed on: a keyring may ask its owner each time
    ready = running_at(demo_state()) or _leave_running(demo_state())
    if (already := _played(demo_state())) is None or already.ends_on != _today():
        ensure_played(ready, demo_state(), DEMO_SCENARIO, say=_say)
    return Client(**{**settings, "api_key": ready.organisations[0].api_key, "metrics_url": ready.metrics_url})


def demo_state() -> Path:
    """The state directory of the sandbox behind `connect` and `demo`; GAMELENS_STATE_DIR names another."""
    return Path(os.environ.get("GAMELENS_STATE_DIR") or platformdirs.user_state_path("gamelens") / "demo")


@contextlib.contextmanager
def sandbox_at(state: Path, *, config: Path | None = None, tls: bool = False) -> Iterator[Ready]:
    """A sandbox over *state*: the one that runs, or a new one with the keys of *config* that stops at the end.

    With *tls* a new one speaks HTTPS; its `ca_file` is whom to trust.

    Raises:
        Refused: it does not start.
    """
    if ready := running_at(state):
        yield ready
        return
    ready, process = _start(state, *(["--config", str(config)] if config else []), *(["--tls"] if tls else []))
    try:
        yield ready
    finally:
        process.terminate()
        process.wait()


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """What a demo did: what was played, what the sandbox counted, which reports were written."""

    played: Played
    was_there: bool
    summary: dict[str, Any]
    reports: list[Path]


def demo(out: Path, *, scenario: str = DEMO_SCENARIO, say: Callable[[str], object] = lambda _: None) -> Demo:
    """The main job, end to end: a sandbox, a scenario, processing, every notebook, a report of each in *out*.

    What was already played today is not played again.
    """
    from gamelens.notebook.reports import write_report

    say("starting the sandbox")
    with sandbox_at(demo_state()) as ready:
        played, was_there = ensure_played(ready, demo_state(), scenario, say=say)
        reports = []
        for notebook in sorted(notebooks_folder().glob("*.ipynb")):
            say(f"running {notebook.name}")
            reports.append(write_report(notebook, out, environment=environment_of(ready)))
        return Demo(played=played, was_there=was_there, summary=ask_console(ready, "GET", "/summary"), reports=reports)


def open_lab(*arguments: str) -> int:
    """JupyterLab on the notebooks, with the demo's sandbox behind them and *arguments* of its own; its exit code."""
    with sandbox_at(demo_state()) as ready:
        ensure_played(ready, demo_state(), DEMO_SCENARIO, say=_say)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container, where Jupyter would refuse
        command = [sys.executable, "-m", "jupyterlab", str(notebooks_folder()), *arguments]
        command += ["--allow-root"] if is_root else []
        return subprocess.run(command, env=os.environ | environment_of(ready), check=False).returncode  # noqa: S603


def notebooks_folder() -> Path:
    """The notebooks: those of this checkout, or those that came with the wheel."""
    beside = Path(__file__).parents[2] / "notebooks"
    return beside if beside.is_dir() else Path(__file__).parent / "notebook" / "shipped"


def ensure_played(
    ready: Ready, state: Path, scenario: str, *, say: Callable[[str], object] = lambda _: None
) -> tuple[Played, bool]:
    """Have *scenario*, ended today, in the sandbox over *state*; true when it was already there."""
    wanted = _load(scenario)
    already = _played(state)
    if already is not None and _identity_of(already) == _identity(wanted, _today()):
        return already, True
    say(f"playing the scenario {scenario}")
    ask_console(ready, "POST", "/reset")
    _played_file(state).unlink(missing_ok=True)
    played = play_into(ready, wanted)
    say("processing")
    ask_console(ready, "POST", "/process")
    _played_file(state).write_bytes(msgspec.json.encode(played))
    return played, False


def environment_of(ready: Ready) -> dict[str, str]:
    """What a process must find in its environment to connect to this sandbox as to the real service."""
    trusted = {"SSL_CERT_FILE": ready.ca_file} if ready.ca_file else {}
    api_key = ready.organisations[0].api_key or ""
    addresses = {"GAMELENS_METRICS_URL": ready.metrics_url, "GAMELENS_CONSOLE_URL": ready.console_url}
    return {"GAMELENS_API_KEY": api_key, **addresses, **trusted}


def read_ready(path: Path) -> Ready:
    """The ready file at *path*.

    Raises:
        Refused: there is none, or it is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ready)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. `gamelens sandbox up --ready {path}` writes it") from None
    except msgspec.DecodeError as error:
        raise Refused(f"{path} is no ready file: {error}") from None


def play_into(
    ready: Ready,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_batch: Callable[[int], object] = lambda _: None,
    on_rejected: Callable[[str, Rejected], object] = lambda *_: None,
    find: Callable[[], Ready] | None = None,
    mode: Mode = "batches",
) -> Played:
    """Play *scenario* through signed, gzipped requests into the first organisation; tells *on_batch* the events sent.

    Where the scenario has delivery or dirt, requests go one after the other, *on_rejected* is told the game id and each
    event that the collector rejects, and the *ledger* has arrive now what has no time of its own. *find* says where the
    sandbox is should it be started again meanwhile: its collector must come back where it was.

    With *mode* "clients" every session is recorded by a client of its own, with "server" by a server that submits with
    the player's address: much slower, and meanwhile the sandbox's clock stands where the session is.

    Raises:
        Refused: the collector did not take an event as it was sent, or took one that it must reject.
    """
    from gamelens.client.loop import shared_loop
    from gamelens.playing import Sender
    from gamelens.simulator import play

    ends_on = ends_on or _today()
    if mode != "batches":
        return _record_into(ready, scenario, ends_on=ends_on, ledger=ledger, on_batch=on_batch, mode=mode)
    games = ready.organisations[0].games
    batches = play(scenario, ends_on=ends_on, game_ids=[game.id for game in games], ledger=ledger, workers=workers)
    began = time.monotonic()

    async def received() -> int:
        return await asyncio.to_thread(lambda: _received(find() if find else ready))

    sender = Sender(_clients(ready), received, on_batch=on_batch, on_rejected=on_rejected)
    shared_loop().wait(sender.submit_all(batches, in_order=not scenario.is_clean))
    if ledger is not None and not scenario.is_clean:
        ledger.date_arrivals(datetime.now(UTC))
    return msgspec.structs.replace(
        _identity(scenario, ends_on),
        events=sender.events,
        requests=sender.requests,
        sent_bytes=sender.sent_bytes,
        seconds=time.monotonic() - began,
    )


def write_into(
    state: Path,
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> Played:
    """Write what `play_into` would send straight to the lake of the sandbox over *state*, which must not run.

    Nothing is sent, so nothing is judged, kept as it came or can be verified later; a hundred million events take
    minutes instead of an hour. Tells *on_events* how many more there are.

    Raises:
        Refused: the sandbox runs, or has events already.
    """
    from gamelens.sandbox.filling import filling
    from gamelens.simulator import play_columns

    ends_on, began, events = ends_on or _today(), time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal events
        events += more
        on_events(more)

    with filling(state) as lake:
        lake.take(
            play_columns(
                scenario,
                lake.folder,
                ends_on=ends_on,
                game_ids=lake.game_ids,
                ledger=ledger,
                workers=workers,
                on_events=count,
            )
        )
    return msgspec.structs.replace(_identity(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def process_at(state: Path) -> dict[str, str]:
    """Process everything received so far, in the sandbox that runs over *state* or, when none does, right here.

    Answers the available interval of each organisation, by name.
    """
    if ready := running_at(state):
        return ask_console(ready, "POST", "/process")
    from gamelens.sandbox.serving import process_stopped

    return process_stopped(state)


def ask_console(ready: Ready, method: str, path: str, said: Any = None, *, within_s: float = 600.0) -> dict[str, Any]:
    """The answer of the sandbox's control surface to what is *said*, decoded.

    Raises:
        Unreachable: there is none *within_s*.
    """
    from gamelens.client.loop import shared_loop
    from gamelens.client.transport import Outgoing, Transport

    async def ask() -> bytes:
        transport = Transport(ready.console_url, timeout_s=within_s)
        try:
            async with asyncio.timeout(within_s):
                body = None if said is None else msgspec.json.encode(said)
                return (await transport.send(Outgoing(method=method, path=path, body=body))).body
        except TimeoutError:
            raise Unreachable(f"the sandbox did not answer within {within_s:g} s") from None
        finally:
            await transport.aclose()

    return msgspec.json.decode(shared_loop().wait(ask()), type=dict[str, Any])


def live_into(
    ready: Ready,
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
    from gamelens.client.loop import shared_loop
    from gamelens.playing import Sender, keep_playing

    async def received() -> int:
        return await asyncio.to_thread(_received, ready)

    now_s, game_ids = int(time.time()), [game.id for game in ready.organisations[0].games]
    sender = Sender(_clients(ready), received, on_batch=on_batch)
    coming = islice(_live_days(scenario, _today()), days)

    async def play() -> int:
        async with sender:
            await keep_playing(coming, sender, game_ids, begins_s=now_s, speed=speed)
        return sender.events

    return shared_loop().wait(play())


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
    ready: Ready,
    scenario: Scenario,
    *,
    ends_on: date,
    ledger: Ledger | None,
    on_batch: Callable[[int], object],
    mode: Mode,
) -> Played:
    """As `play_into`, through real clients."""
    from gamelens.client.loop import shared_loop
    from gamelens.playing import record_all
    from gamelens.simulator import play_sessions

    async def set_time(at_s: int) -> None:
        at = datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
        await asyncio.to_thread(ask_console, ready, "POST", "/clock", {"freeze": at})

    game_ids = [game.id for game in ready.organisations[0].games]
    sessions = play_sessions(scenario, ends_on=ends_on, game_ids=game_ids, ledger=ledger)
    began = time.monotonic()
    try:
        recording = record_all(sessions, _clients(ready), mode=mode, set_time=set_time, on_batch=on_batch)
        events = shared_loop().wait(recording)
    finally:
        ask_console(ready, "POST", "/clock", {"resume": True})
    return msgspec.structs.replace(_identity(scenario, ends_on), events=events, seconds=time.monotonic() - began)


def _clients(ready: Ready) -> dict[str, CollectorClient]:
    """A client of the collector for each game of the first organisation."""
    from gamelens.client.collector import CollectorClient

    return {
        game.id: CollectorClient(
            collector_url=ready.collector_url,
            game_key=game.game_key,
            secret_key=game.secret_key,
            ca_file=ready.ca_file,
        )
        for game in ready.organisations[0].games
    }


def _received(ready: Ready) -> int:
    """How many events the sandbox has received, good and bad."""
    summary = ask_console(ready, "GET", "/summary", within_s=30)
    return int(summary["accepted"]) + int(summary["rejected"])


def _load(name: str) -> Scenario:
    from gamelens.simulator import load_scenario

    return load_scenario(name)


def _identity(scenario: Scenario, ends_on: date) -> Played:
    from gamelens.simulator import VERSION

    return Played(
        scenario=scenario.name,
        version=VERSION,
        seed=scenario.seed,
        players=scenario.players,
        days=scenario.days,
        ends_on=ends_on,
    )


def _identity_of(played: Played) -> Played:
    return msgspec.structs.replace(played, events=0, requests=0, sent_bytes=0, seconds=0.0)


def _played_file(state: Path) -> Path:
    return state / "played.json"


def _played(state: Path) -> Played | None:
    try:
        return msgspec.json.decode(_played_file(state).read_bytes(), type=Played)
    except (OSError, msgspec.DecodeError):
        return None


def running_at(state: Path, *, within_s: float = 60.0) -> Ready | None:
    """The sandbox over *state*, if one answers *within_s*."""
    try:
        ready = read_ready(state / "ready.json")
        ask_console(ready, "GET", "/health", within_s=within_s)
    except (Refused, Unreachable):
        return None
    return ready


def _leave_running(state: Path) -> Ready:
    """A new sandbox process over *state* that outlives us and stops by itself when nobody asks."""
    ready, process = _start(state, "--stop-after-idle", str(IDLE_S))
    _OUTLIVING.append(process)
    return ready


def _start(state: Path, *options: str) -> tuple[Ready, subprocess.Popen[bytes]]:
    """A new sandbox process over *state*, once it is ready."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = state / "log.txt"
    with tempfile.TemporaryDirectory() as folder, log.open("ab") as errors:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "gamelens", "sandbox", "up", "--state", str(state), "--ready", str(ready)]
        process = subprocess.Popen(  # noqa: S603
            [*command, *options], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
        )
        ends_at = time.monotonic() + _START_S
        while not ready.exists() and process.poll() is None and time.monotonic() < ends_at:
            time.sleep(0.02)
        if not ready.exists():
            process.kill()
            raise Refused(f"the sandbox did not start: {_last_line(log)}. All it said is in {log}")
        return read_ready(ready), process


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _today() -> date:
    return datetime.now(UTC).date()


def _say(line: str) -> None:
    print(f"gamelens: {line}", file=sys.stderr, flush=True)
