"""A sandbox in a process of its own, so that nobody's kernel pays for it: how it starts, where it listens.

`sandbox_at` is one over a state directory; `Ready` is what it says of itself, `ask_console` asks it for more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from gamelens.errors import Refused, Unreachable

IDLE_S: Final = 4 * 3600.0
_START_S: Final = 30.0
_STOP_S: Final = 15.0
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
    def titles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of studios, each with the titles of its games."""
        return tuple((studio.name, tuple(game.title for game in studio.games)) for studio in self.studios)

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


@contextlib.contextmanager
def sandbox_at(
    state: Path, *, config: Path | None = None, scenario: str | None = None, tls: bool = False
) -> Iterator[Ready]:
    """A sandbox over *state*: the one that runs, or a new one with the keys of *config* that stops at the end.

    With *scenario* it has the games of that one: one that runs and has others is stopped first. With *tls* a new one
    speaks HTTPS; its `ca_file` is whom to trust.

    Raises:
        Refused: it does not start.
    """
    if ready := running_with(state, scenario):
        yield ready
        return
    options = {"--config": config, "--scenario": scenario}
    given = [str(word) for option in options.items() if option[1] for word in option]
    ready, process = _start(state, *given, *(["--tls"] if tls else []))
    try:
        yield ready
    finally:
        process.terminate()
        process.wait()


def running_at(state: Path, *, within_s: float = 60.0) -> Ready | None:
    """The sandbox over *state*, if one answers *within_s*."""
    try:
        ready = read_ready(state / "ready.json")
        ask_console(ready, "GET", "/health", within_s=within_s)
    except (Refused, Unreachable):
        return None
    return ready


def running_with(state: Path, scenario: str | None) -> Ready | None:
    """The sandbox over *state*, if one runs; one that does not have the games of *scenario* is stopped."""
    ready = running_at(state)
    if ready and scenario and ready.organisations[0].titles != titles_of(scenario):
        stop(state)
        return None
    return ready


def leave_running(state: Path, *, scenario: str | None = None, idle_s: float = IDLE_S) -> Ready:
    """A new sandbox process over *state* that outlives us and stops by itself when nobody asks for *idle_s*.

    With *scenario* it has the games of that one, else those it had.
    """
    options = ["--scenario", scenario] if scenario else []
    ready, process = _start(state, "--stop-after-idle", str(idle_s), *options)
    _OUTLIVING.append(process)
    return ready


def stop(state: Path) -> None:
    """Stop the sandbox over *state*, whoever started it, and wait until it has gone.

    Raises:
        Refused: it does not stop.
    """
    ready = running_at(state, within_s=_STOP_S)
    if ready is None or ready.pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(ready.pid, signal.SIGTERM)
    ends_at = time.monotonic() + _STOP_S
    while (state / "ready.json").exists():
        if time.monotonic() > ends_at:
            raise Refused(f"the sandbox over {state} does not stop: end process {ready.pid}, or name another state")
        time.sleep(0.02)


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


def environment_of(ready: Ready) -> dict[str, str]:
    """What a process must find in its environment to connect to this sandbox as to the real service."""
    trusted = {"SSL_CERT_FILE": ready.ca_file} if ready.ca_file else {}
    api_key = ready.organisations[0].api_key or ""
    addresses = {"GAMELENS_METRICS_URL": ready.metrics_url, "GAMELENS_CONSOLE_URL": ready.console_url}
    return {"GAMELENS_API_KEY": api_key, **addresses, **trusted}


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


def titles_of(scenario: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names of the studios of *scenario*, each with the titles of its games; see `load_scenario`."""
    from gamelens.simulator import load_scenario

    return load_scenario(scenario).titles


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
