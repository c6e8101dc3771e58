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
from gamelens.local.sandbox_process import running_with, start_detached

if TYPE_CHECKING:
    from gamelens.client.sync_client import Client

DEMO_SCENARIO = "demo"


def connect(**settings: Any) -> Client:
    """A client of the real service where a key is set, else of a sandbox on this machine with demo data.

    *settings* are those of `Client`. The sandbox starts when it is needed, in a process of its own, is filled once a
    day with the `demo` scenario (about half a minute), and stops by itself when nobody has asked it for four hours.
    GAMELENS_REPLAY names a folder of recorded answers that is asked instead of either, GAMELENS_RECORD one to write.
    """
    from gamelens.client.connection.settings import Settings, config_file
    from gamelens.client.sync_client import Client

    if not settings.keys() & {"record", "replay"}:
        folders = {name: os.environ.get(f"GAMELENS_{name.upper()}") for name in ("record", "replay")}
        settings |= {name: folder for name, folder in folders.items() if folder}
    if settings.get("replay"):
        return Client(**settings)
    given = {name: settings.get(name) for name in ("api_key", "metrics_url")}
    if key := Settings(given, os.environ, config_file()).find("api_key"):
        return Client(**{**settings, "api_key": key})  # handed on: a keyring may ask its owner each time
    ready = demo_sandbox(say=print_status)
    return Client(**{**settings, "api_key": ready.organisations[0].api_key, "metrics_url": ready.metrics_url})


def ensure_service(*, say: Callable[[str], object] = lambda _: None) -> None:
    """Have something there that a notebook's `connect` will find: the sandbox, where nothing else is configured.

    What is said while it fills is said here then, and not in the notebook.
    """
    from gamelens.client.connection.settings import Settings

    if not os.environ.get("GAMELENS_REPLAY") and not Settings.from_environment().find("api_key"):
        demo_sandbox(say=say)


def demo_sandbox(*, say: Callable[[str], object]) -> SandboxInfo:
    """The sandbox of this machine, with the demo's players up to today."""
    state, already = demo_state(), read_population_record(demo_state())
    scenario = None if already and already.ends_on == today() else DEMO_SCENARIO
    ready = running_with(state, scenario) or start_detached(state, scenario=scenario)
    if scenario:
        ensure_populated(ready, state, scenario, say=say)
    return ready


def demo_state() -> Path:
    """The state directory of the sandbox behind `connect` and `demo`; GAMELENS_STATE_DIR names another."""
    return Path(os.environ.get("GAMELENS_STATE_DIR") or platformdirs.user_state_path("gamelens") / "demo")


def print_status(line: str) -> None:
    """Print a line of progress on standard error."""
    print(f"gamelens: {line}", file=sys.stderr, flush=True)
