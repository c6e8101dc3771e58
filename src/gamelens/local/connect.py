"""A client for the configured service, or for a sandbox of this machine."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import platformdirs

from gamelens._text import terminal_line
from gamelens.errors import AuthError, BadQuery
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import (
    INSTALL,
    find_or_start_detached,
    find_sandbox,
    missing_packages,
    needs_text,
    scenario_titles,
)

if TYPE_CHECKING:
    from gamelens.client.base_client import Folder, OwnMetrics
    from gamelens.client.connection.transport import HttpBackend
    from gamelens.client.limits.rate_limit import Pace
    from gamelens.client.sync_client import Client
    from gamelens.client.tables.time_ranges import WhenUnavailable

DEMO_SCENARIO: Final = "demo"
STATE_DIR: Final = "GAMELENS_STATE_DIR"
_NO_KEY: Final = (
    "no API key is set, so a sandbox with invented players answers. "
    "To query your own games, set GAMELENS_API_KEY or pass api_key="
)


class DemoSettings(TypedDict, total=False):
    """The settings of `demo`: all settings of `Client` that do not say which service answers."""

    cache: bool | Folder
    pace: Pace
    max_days: int | None
    max_wait_s: float
    refresh_s: float
    max_answer_bytes: int
    when_unavailable: WhenUnavailable
    metrics: OwnMetrics | None
    progress: bool | None
    record: Folder | None


class ConnectSettings(DemoSettings, total=False):
    """The settings of `connect`: all settings of `Client`."""

    api_key: str | None
    metrics_url: str | None
    allow_http: bool
    replay: Folder | None
    transport: HttpBackend | None


def connect(**settings: Unpack[ConnectSettings]) -> Client:
    """Return a client of the real service if a key is set, else of the sandbox of `demo`.

    Without a key it says on standard error, in one line, that the players are invented; `demo` asks for them.

    Args:
        settings: arguments of `Client`. The environment variable GAMELENS_REPLAY names a folder of recorded answers
            that replaces both services, GAMELENS_RECORD a folder to write answers to.

    Raises:
        BadQuery: there is no such setting, or its value is not allowed.
        AuthError: an address without a key, or neither a key nor the packages of the sandbox.
        Refused: no key, and the state directory of the sandbox cannot be written to.
    """
    from gamelens.client.connection.settings import Settings, check_writable, config_file
    from gamelens.client.sync_client import Client

    _check_names(settings, ConnectSettings.__annotations__)
    if not settings.keys() & {"record", "replay"}:
        if folder := os.environ.get("GAMELENS_RECORD"):
            settings["record"] = folder
        if folder := os.environ.get("GAMELENS_REPLAY"):
            settings["replay"] = folder
    if settings.get("replay"):
        return Client(**settings)
    configured = Settings({"api_key": settings.get("api_key")}, os.environ, config_file())
    if configured.find("api_key") is not None:
        # Passed on with its source, because a keyring may prompt at each lookup.
        passed_on: dict[str, Any] = {**settings, "api_key": configured.secret("api_key")}
        return Client(**passed_on)
    if settings.get("metrics_url"):
        return Client(**settings)
    if (missing := missing_packages()) and find_sandbox(demo_state()) is None:
        instead = f"and the sandbox that answers without one needs {needs_text(missing)}, not installed here"
        raise AuthError(f"no API key is set, {instead}: set GAMELENS_API_KEY to query your own games, or run {INSTALL}")
    check_writable(demo_state(), STATE_DIR)  # before a sandbox is promised
    print_status(_NO_KEY)
    settings.pop("api_key", None)
    settings.pop("metrics_url", None)
    return _sandbox_client(DEMO_SCENARIO, settings)


def demo(scenario: str = DEMO_SCENARIO, **settings: Unpack[DemoSettings]) -> Client:
    """Return a client of a sandbox on this machine, with the invented players of *scenario*.

    The sandbox starts when it is needed, in a process of its own. It is populated once a day, which takes about half a
    minute for `demo`, and stops after four hours without a request. Each scenario has a sandbox of its own.

    Args:
        scenario: name of a shipped scenario, or a TOML file.
        settings: arguments of `Client`, but for those that say which service answers.

    Raises:
        BadQuery: there is no such scenario or setting, or a value is not allowed.
    """
    _check_names(settings, DemoSettings.__annotations__)
    return _sandbox_client(scenario, settings)


def ensure_service(*, say: Callable[[str], object] = lambda _: None) -> None:
    """Start the demo sandbox unless a key or a replay folder is configured.

    A notebook's `connect` then finds it at once, and its progress goes to *say* instead of the notebook.
    """
    from gamelens.client.connection.settings import Settings

    if not os.environ.get("GAMELENS_REPLAY") and not Settings.from_environment().find("api_key"):
        demo_sandbox(say=say)


def demo_sandbox(scenario: str = DEMO_SCENARIO, *, say: Callable[[str], object]) -> SandboxInfo:
    """Return the sandbox of *scenario* on this machine, with its players up to today.

    Raises:
        BadQuery: there is no such scenario.
        Refused: the state directory cannot be written to, or the sandbox does not start.
    """
    from gamelens.client.connection.settings import writable_folder

    scenario_titles(scenario)  # a name that does not exist is refused before a sandbox is started for it
    state = writable_folder(demo_state(scenario), STATE_DIR)
    ready = find_or_start_detached(state, scenario)
    ensure_populated(ready, state, scenario, say=say)
    return ready


def demo_state(scenario: str = DEMO_SCENARIO) -> Path:
    """Return the state directory of the sandbox with *scenario*, `demo` for `connect`.

    GAMELENS_STATE_DIR names another for `demo`, in which the directories of other scenarios are.
    """
    state = Path(os.environ.get(STATE_DIR) or platformdirs.user_state_path("gamelens") / "demo")
    if scenario == DEMO_SCENARIO:
        return state
    name = re.sub(r"[^\w-]+", "-", Path(scenario).stem)
    if Path(scenario).suffix:  # a file, whose folder is unique to its path
        name += f"-{hashlib.sha256(os.fsencode(Path(scenario).resolve())).hexdigest()[:8]}"
    return state / "scenarios" / name


def demo_states() -> Iterator[Path]:
    """Yield the state directories that there are, first the directory of `demo`."""
    yield demo_state()
    yield from sorted((demo_state() / "scenarios").glob("*/"))


def print_status(line: str) -> None:
    """Print a line on standard error."""
    if sys.stderr is not None:  # print() would write to standard output in its place
        print(f"gamelens: {terminal_line(line)}", file=sys.stderr, flush=True)


def _sandbox_client(scenario: str, settings: DemoSettings) -> Client:
    """Return a client of the sandbox of *scenario*.

    Raises:
        BadQuery: a setting has a value that is not allowed, which is found before a sandbox is populated.
    """
    from gamelens.client.base_client import check_settings
    from gamelens.client.query.progress import is_progress_shown
    from gamelens.client.sync_client import Client

    check_settings(**settings)
    is_shown = is_progress_shown(settings.get("progress"))
    ready = demo_sandbox(scenario, say=print_status if is_shown else lambda _: None)
    return Client(api_key=ready.organisations[0].api_key, metrics_url=ready.metrics_url, **settings)


def _check_names(settings: Iterable[str], allowed: Collection[str]) -> None:
    """Refuse a name that is not a setting. Its value is not quoted: it may be a key.

    Raises:
        BadQuery: such a name, with the nearest setting.
    """
    for name in settings:
        if name not in allowed:
            raise BadQuery("setting", name, "does not exist", sorted(allowed))
