"""A client for the configured service, or for a sandbox of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from gamelens.local.population_record import today
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_population import ensure_populated, read_population_record
from gamelens.local.sandbox_process import find_or_stop_sandbox, start_detached

if TYPE_CHECKING:
    from gamelens.client.sync_client import Client

DEMO_SCENARIO = "demo"


def connect(**settings: Any) -> Client:
    """Return a client of the real service if a key is set, else of a sandbox with demo data.

    The sandbox starts when it is needed, in a process of its own. It is populated once a day with the scenario `demo`,
    which takes about half a minute, and stops after four hours without a request.

    Args:
        settings: arguments of `Client`. The environment variable GAMELENS_REPLAY names a folder of recorded answers
            that replaces both services, GAMELENS_RECORD a folder to write answers to.
    """
    from gamelens.client.connection.settings import Settings, config_file
    from gamelens.client.sync_client import Client

    if not settings.keys() & {"record", "replay"}:
        folders = {name: os.environ.get(f"GAMELENS_{name.upper()}") for name in ("record", "replay")}
        settings |= {name: folder for name, folder in folders.items() if folder}
    if settings.get("replay"):
        return Client(**settings)
    settings_given = {name: settings.get(name) for name in ("api_key", "metrics_url")}
    configured = Settings(settings_given, os.environ, config_file())
    if configured.find("api_key"):
        # passed on, because a keyring may prompt at each lookup
        return Client(**{**settings, "api_key": configured.secret("api_key")})
    ready = demo_sandbox(say=print_status)
    return Client(**{**settings, "api_key": ready.organisations[0].api_key, "metrics_url": ready.metrics_url})


def ensure_service(*, say: Callable[[str], object] = lambda _: None) -> None:
    """Start the demo sandbox unless a key or a replay folder is configured.

    A notebook's `connect` then finds it at once, and its progress goes to *say* instead of the notebook.
    """
    from gamelens.client.connection.settings import Settings

    if not os.environ.get("GAMELENS_REPLAY") and not Settings.from_environment().find("api_key"):
        demo_sandbox(say=say)


def demo_sandbox(*, say: Callable[[str], object]) -> SandboxInfo:
    """Return the sandbox of this machine, populated with the demo's players up to today."""
    state = demo_state()
    record = read_population_record(state)
    scenario = None if record and record.ends_on == today() else DEMO_SCENARIO
    ready = find_or_stop_sandbox(state, scenario) or start_detached(state, scenario=scenario)
    if scenario:
        ensure_populated(ready, state, scenario, say=say)
    return ready


def demo_state() -> Path:
    """Return the state directory of the sandbox behind `connect` and `demo`.

    GAMELENS_STATE_DIR names another.
    """
    return Path(os.environ.get("GAMELENS_STATE_DIR") or platformdirs.user_state_path("gamelens") / "demo")


def print_status(line: str) -> None:
    """Print a line of progress on standard error."""
    print(f"gamelens: {line}", file=sys.stderr, flush=True)
