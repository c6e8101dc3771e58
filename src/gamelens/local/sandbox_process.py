"""Sandboxes in processes of their own: starting and finding them, and calls to them.

A sandbox in the caller's process would compete with it for the interpreter. `running_sandbox` runs one over a state
directory; `call_control_api` calls its control API.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from gamelens.errors import Refused, Unreachable
from gamelens.local.running_sandboxes import IDLE_OPTION, WITH_LAST_USER, stop_sandbox
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info
from gamelens.sandbox.state.state_directory import SandboxUsers

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ControlApi, ProcessingProgress
    from gamelens.sandbox.processing.pipeline import RunProgress

T = TypeVar("T")
IDLE_S: Final = 4 * 3600.0
_START_S: Final = 60.0
_REPORT_EVERY_S: Final = 0.5
INSTALL: Final = "pip install 'gamelens[lab,sandbox]'"
_OF_EXTRA: Final = re.compile(r"""; *extra == ["']sandbox["']$""")  # without the ones for some platforms
_NAME: Final = re.compile(r"[\w.-]+")


@contextlib.contextmanager
def running_sandbox(
    state: Path,
    *,
    config: Path | None = None,
    scenario: str | None = None,
    tls: bool = False,
    tls_names: Sequence[str] = (),
) -> Iterator[SandboxInfo]:
    """Yield a sandbox over *state*: the running one, or a new one that stops when its last user has left.

    Each such block is a user, in whatever process. Its end waits for the new sandbox's if no other user is left.
    With *scenario* it has the games of that scenario: a running sandbox with other games is stopped first. A new one
    gets the keys of *config* and, with *tls*, speaks HTTPS with its `ca_file` to trust, for *tls_names* too.

    Raises:
        Refused: it does not start.
    """
    options = {IDLE_OPTION: WITH_LAST_USER, "--config": config, "--scenario": scenario}
    arguments = [str(word) for option in options.items() if option[1] for word in option]
    arguments += ["--tls"] if tls else []
    arguments += [word for name in tls_names for word in ("--tls-name", name)]
    users = SandboxUsers(state)
    with contextlib.ExitStack() as at_the_end:
        with users.lock:
            own_file = at_the_end.enter_context(users.join())
            ready, started = find_or_stop_sandbox(state, scenario), None
            if ready is None:
                ready, started = _start(state, *arguments)
        try:
            yield ready
        finally:
            with users.lock:
                own_file.close()
                if started and users.have_left():
                    started.terminate()
                    started.wait()
                elif started:
                    _leave_running(started)


def find_sandbox(state: Path, *, within_s: float = 60.0) -> SandboxInfo | None:
    """Return the sandbox over *state*, or None if none answers *within_s*."""
    try:
        ready = read_sandbox_info(state / "ready.json")
        call_control_api(ready, lambda api: api.health(), within_s=within_s)
    except (Refused, Unreachable):
        return None
    return ready


def find_or_stop_sandbox(state: Path, scenario: str | None) -> SandboxInfo | None:
    """Return the sandbox over *state* if it has the games of *scenario*, else stop it.

    Returns None if none runs any more. Without *scenario* any sandbox will do.
    """
    ready = find_sandbox(state)
    if ready and scenario and ready.organisations[0].titles != scenario_titles(scenario):
        stop_sandbox(state)
        return None
    return ready


def find_or_start_detached(state: Path, scenario: str) -> SandboxInfo:
    """Return the sandbox over *state* with the games of *scenario*, started as `start_detached` does if none runs."""
    with SandboxUsers(state).lock:
        return find_or_stop_sandbox(state, scenario) or start_detached(state, scenario=scenario)


def start_detached(state: Path, *, scenario: str | None = None, idle_s: float = IDLE_S) -> SandboxInfo:
    """Start a sandbox that outlives this process and stops after *idle_s* without a request.

    With *scenario* it has the games of that scenario, else those it had.
    """
    options = ["--scenario", scenario] if scenario else []
    ready, process = _start(state, IDLE_OPTION, str(idle_s), *options)
    _leave_running(process)
    return ready


def process_at(state: Path, *, report: Callable[[ProcessingProgress], None] | None = None) -> dict[str, str]:
    """Process everything received so far by the sandbox over *state*, whether it runs or not.

    *report* is told the progress, some times a second. Returns the available interval of each organisation, by name.
    """
    ready = find_sandbox(state)
    if ready is None:
        from gamelens.client.connection.control_api import ProcessingProgress
        from gamelens.sandbox.server import process_stopped

        def pass_on(progress: RunProgress) -> None:
            if report is not None:
                report(msgspec.convert(progress.to_json(), ProcessingProgress))

        return process_stopped(state, report=pass_on)
    with ThreadPoolExecutor(1) as pool:
        run: Future[dict[str, str]] = pool.submit(call_control_api, ready, lambda api: api.process())
        while report is not None and not wait([run], timeout=_REPORT_EVERY_S).done:
            if progress := call_control_api(ready, lambda api: api.summary()).processing:
                report(progress)
        return run.result()


def control_api_of(ready: SandboxInfo, *, within_s: float = 600.0) -> ControlApi:
    """Return a client of the sandbox's control API, whose calls may take *within_s* each."""
    from gamelens.client.connection.control_api import ControlApi
    from gamelens.client.connection.transport import ATTEMPTS

    return ControlApi(ready.console_url, within_s=within_s, attempts=ATTEMPTS)


def call_control_api(
    ready: SandboxInfo, call: Callable[[ControlApi], Coroutine[Any, Any, T]], *, within_s: float = 600.0
) -> T:
    """Return the result of one call, as in `call_control_api(ready, ControlApi.process)`.

    Raises:
        Unreachable: there is no answer *within_s*.
    """
    from gamelens.client.connection.event_loop import shared_loop

    async def run() -> T:
        async with control_api_of(ready, within_s=within_s) as api:
            return await call(api)

    return shared_loop().run(run())


def missing_packages() -> list[str]:
    """Return the packages that a sandbox needs, by the extra of that name, and that are not installed."""
    with contextlib.suppress(PackageNotFoundError):  # gamelens itself, as a folder on the path
        needed = [line for line in requires("gamelens") or [] if _OF_EXTRA.search(line)]
        return [name[0] for line in needed if (name := _NAME.match(line)) and not _is_installed(name[0])]
    return []


def needs_text(missing: Sequence[str]) -> str:
    """Return the packages as text for a person: two by name, the others counted."""
    names, more = ", ".join(missing[:2]), len(missing) - 2
    return f"{names} and {more} more" if more > 0 else names


def _is_installed(name: str) -> bool:
    return any(True for _ in distributions(name=name))


def _start(state: Path, *options: str) -> tuple[SandboxInfo, subprocess.Popen[bytes]]:
    """Start a sandbox process over *state* and return when it is ready.

    Raises:
        Refused: it does not start, or packages that it needs are not installed.
    """
    if missing := missing_packages():
        raise Refused(f"a sandbox needs {needs_text(missing)}, not installed here: {INSTALL}")
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
            process.wait()
            printed = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = printed[-1] if printed else "it printed nothing"
            raise Refused(f"the sandbox did not start: {last}. Its full output is in {log}")
        return read_sandbox_info(ready), process


def _leave_running(process: subprocess.Popen[bytes]) -> None:
    """Let a sandbox go on without this process: a Popen that is collected without a return code warns."""
    process.returncode = 0


def scenario_titles(scenario: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of the studios of *scenario*, each with the titles of its games."""
    from gamelens.simulator import load_scenario

    return load_scenario(scenario).titles
