"""Introduces the rooms to each other: start a sandbox, play a scenario into it, hand over a client.

`connect` is what a notebook calls, `demo` is everything, end to end. Their parts are re-exported: `sandbox_at` and what
else has to do with the process of a sandbox from `sandboxes`, `play_into` and its like from `populating`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import platformdirs

from gamelens._files import replace_file
from gamelens.errors import BadQuery
from gamelens.populating import Played, identity, live_into, play_into, today, write_into
from gamelens.sandboxes import (
    Ready,
    ReadyGame,
    ReadyOrganisation,
    ReadyStudio,
    ask_console,
    environment_of,
    leave_running,
    process_at,
    read_ready,
    running_at,
    running_with,
    sandbox_at,
    stop,
)

if TYPE_CHECKING:
    from gamelens.client.metrics import Client

__all__ = [
    "Demo",
    "Played",
    "Ready",
    "ReadyGame",
    "ReadyOrganisation",
    "ReadyStudio",
    "ask_console",
    "connect",
    "demo",
    "demo_state",
    "ensure_played",
    "ensure_service",
    "environment_of",
    "find_notebook",
    "leave_running",
    "live_into",
    "notebooks_folder",
    "open_lab",
    "play_into",
    "played_at",
    "process_at",
    "read_ready",
    "running_at",
    "sandbox_at",
    "stop",
    "write_into",
]

DEMO_SCENARIO = "demo"


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
    ready = _stand_in(say=_say)
    return Client(**{**settings, "api_key": ready.organisations[0].api_key, "metrics_url": ready.metrics_url})


def ensure_service(*, say: Callable[[str], object] = lambda _: None) -> None:
    """Have something there that a notebook's `connect` will find: the sandbox, where nothing else is configured.

    What is said while it fills is said here then, and not in the notebook.
    """
    from gamelens.client.settings import Settings

    if not os.environ.get("GAMELENS_REPLAY") and not Settings.from_environment().find("api_key"):
        _stand_in(say=say)


def _stand_in(*, say: Callable[[str], object]) -> Ready:
    """The sandbox of this machine, with the demo's players up to today."""
    state, already = demo_state(), played_at(demo_state())
    scenario = None if already and already.ends_on == today() else DEMO_SCENARIO
    ready = running_with(state, scenario) or leave_running(state, scenario=scenario)
    if scenario:
        ensure_played(ready, state, scenario, say=say)
    return ready


def demo_state() -> Path:
    """The state directory of the sandbox behind `connect` and `demo`; GAMELENS_STATE_DIR names another."""
    return Path(os.environ.get("GAMELENS_STATE_DIR") or platformdirs.user_state_path("gamelens") / "demo")


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """What a demo did: what was played, what the sandbox counted, which reports were written."""

    played: Played
    was_there: bool
    summary: dict[str, Any]
    reports: list[Path]


def demo(out: Path, *, scenario: str = DEMO_SCENARIO, say: Callable[[str], object] = lambda _: None) -> Demo:
    """The main job, end to end: a sandbox, a scenario, processing, every notebook, a report of each in *out*.

    The sandbox has the games of the scenario. What was already played today is not played again.
    """
    from gamelens.notebook.reports import write_report

    say("starting the sandbox")
    with sandbox_at(demo_state(), scenario=scenario) as ready:
        played, was_there = ensure_played(ready, demo_state(), scenario, say=say)
        reports = []
        for notebook in sorted(notebooks_folder().glob("*.ipynb")):
            say(f"running {notebook.name}")
            environment = environment_of(ready)
            reports.append(write_report(notebook, out, environment=environment, is_interactive=True, say=say))
        return Demo(played=played, was_there=was_there, summary=ask_console(ready, "GET", "/summary"), reports=reports)


def open_lab(*arguments: str) -> int:
    """JupyterLab on the notebooks, with the demo's sandbox behind them and *arguments* of its own; its exit code."""
    with sandbox_at(demo_state(), scenario=DEMO_SCENARIO) as ready:
        ensure_played(ready, demo_state(), DEMO_SCENARIO, say=_say)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container, where Jupyter would refuse
        command = [sys.executable, "-m", "jupyterlab", str(notebooks_folder()), *arguments]
        command += ["--allow-root"] if is_root else []
        return subprocess.run(command, env=os.environ | environment_of(ready), check=False).returncode  # noqa: S603


def notebooks_folder() -> Path:
    """The notebooks: those of this checkout, or those that came with the wheel."""
    beside = Path(__file__).parents[2] / "notebooks"
    return beside if beside.is_dir() else Path(__file__).parent / "notebook" / "shipped"


def find_notebook(name: str) -> Path:
    """The notebook at the path *name*, or one of ours: `01_ad_revenue`, or `ad_revenue` without its number.

    Raises:
        BadQuery: there is none.
    """
    if (path := Path(name)).suffix == ".ipynb" and path.is_file():
        return path.resolve()
    ours = {path.stem: path for path in sorted(notebooks_folder().glob("*.ipynb"))}
    ours |= {stem.partition("_")[2]: path for stem, path in ours.items()}
    wanted = Path(name).name.removesuffix(".ipynb")
    if wanted in ours and "/" not in name:
        return ours[wanted]
    raise BadQuery("notebook", name, "is neither a file nor one of ours", ours)


def played_at(state: Path) -> Played | None:
    """What was played into the sandbox over *state*, as far as is written there."""
    try:
        return msgspec.json.decode(_played_file(state).read_bytes(), type=Played)
    except (OSError, msgspec.DecodeError):
        return None


def ensure_played(
    ready: Ready, state: Path, scenario: str, *, say: Callable[[str], object] = lambda _: None
) -> tuple[Played, bool]:
    """Have *scenario*, ended today, in the sandbox over *state*; true when it was already there."""
    from gamelens.simulator import load_scenario

    wanted = load_scenario(scenario)
    already = played_at(state)
    if already is not None and _identity_of(already) == identity(wanted, today()):
        return already, True
    say(f"playing the scenario {scenario}")
    ask_console(ready, "POST", "/reset")
    _played_file(state).unlink(missing_ok=True)
    played = play_into(ready, wanted)
    say("processing")
    ask_console(ready, "POST", "/process")
    with replace_file(_played_file(state)) as draft:
        draft.write_bytes(msgspec.json.encode(played))
    return played, False


def _identity_of(played: Played) -> Played:
    return msgspec.structs.replace(played, events=0, requests=0, sent_bytes=0, seconds=0.0)


def _played_file(state: Path) -> Path:
    return state / "played.json"


def _say(line: str) -> None:
    print(f"gamelens: {line}", file=sys.stderr, flush=True)
