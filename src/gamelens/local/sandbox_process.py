"""A sandbox in a process of its own, so that nobody's kernel pays for it: how it starts, where it listens.

`running_sandbox` is one over a state directory; `SandboxInfo` is what it says of itself, `call_console` uses its control API.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gamelens.errors import Refused, Unreachable
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ControlApi

T = TypeVar("T")
IDLE_S: Final = 4 * 3600.0
_START_S: Final = 30.0
_STOP_S: Final = 15.0
_OUTLIVING: Final[list[subprocess.Popen[bytes]]] = []  # kept, because a process that is let go of is warned about


@contextlib.contextmanager
def running_sandbox(
    state: Path, *, config: Path | None = None, scenario: str | None = None, tls: bool = False
) -> Iterator[SandboxInfo]:
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


def running_at(state: Path, *, within_s: float = 60.0) -> SandboxInfo | None:
    """The sandbox over *state*, if one answers *within_s*."""
    try:
        ready = read_sandbox_info(state / "ready.json")
        call_console(ready, lambda console: console.health(), within_s=within_s)
    except (Refused, Unreachable):
        return None
    return ready


def running_with(state: Path, scenario: str | None) -> SandboxInfo | None:
    """The sandbox over *state*, if one runs; one that does not have the games of *scenario* is stopped."""
    ready = running_at(state)
    if ready and scenario and ready.organisations[0].titles != titles_of(scenario):
        stop_sandbox(state)
        return None
    return ready


def start_detached(state: Path, *, scenario: str | None = None, idle_s: float = IDLE_S) -> SandboxInfo:
    """A new sandbox process over *state* that outlives us and stops by itself when nobody asks for *idle_s*.

    With *scenario* it has the games of that one, else those it had.
    """
    options = ["--scenario", scenario] if scenario else []
    ready, process = _start(state, "--stop-after-idle", str(idle_s), *options)
    _OUTLIVING.append(process)
    return ready


def stop_sandbox(state: Path) -> None:
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


def process_at(state: Path) -> dict[str, str]:
    """Process everything received so far, in the sandbox that runs over *state* or, when none does, right here.

    Answers the available interval of each organisation, by name.
    """
    if ready := running_at(state):
        return call_console(ready, lambda console: console.process())
    from gamelens.sandbox.server import process_stopped

    return process_stopped(state)


def console_of(ready: SandboxInfo, *, within_s: float = 600.0) -> ControlApi:
    """Return a client of the control API of the sandbox *ready*, whose calls may take *within_s* each."""
    from gamelens.client.connection.control_api import ControlApi
    from gamelens.client.connection.transport import ATTEMPTS

    return ControlApi(ready.console_url, within_s=within_s, attempts=ATTEMPTS)


def call_console(
    ready: SandboxInfo, call: Callable[[ControlApi], Coroutine[Any, Any, T]], *, within_s: float = 600.0
) -> T:
    """Return the result of one call of the control API: `call_console(ready, Console.process)`.

    Raises:
        Unreachable: there is no answer *within_s*.
    """
    from gamelens.client.connection.event_loop import shared_loop

    async def run() -> T:
        async with console_of(ready, within_s=within_s) as console:
            return await call(console)

    return shared_loop().run(run())


def _start(state: Path, *options: str) -> tuple[SandboxInfo, subprocess.Popen[bytes]]:
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
        return read_sandbox_info(ready), process


def titles_of(scenario: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names of the studios of *scenario*, each with the titles of its games; see `load_scenario`."""
    from gamelens.simulator import load_scenario

    return load_scenario(scenario).titles


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
