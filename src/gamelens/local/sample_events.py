"""The lakes that notebooks read: one's own, or one with the raw events of invented players."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from gamelens.client.connection.settings import writable_folder
from gamelens.errors import Refused
from gamelens.local.connect import STATE_DIR, demo_state
from gamelens.local.sandbox_population import read_population_record, today

_READY = "gamelens.db"


def own_lake() -> Path | None:
    """Return the folder of one's own lake: GAMELENS_LAKE, else `lake` in the config file. None if neither names one.

    `gl.open_lake` opens it.

    Raises:
        Refused: the folder does not exist.
    """
    from gamelens.client.connection.settings import Settings

    settings = Settings.from_environment()
    named = settings.find("lake")
    if named is None:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise Refused(
            f"the setting lake ({settings.source('lake')}) names {named}, which is not a folder: "
            "`gamelens lake import SOURCE --state FOLDER` makes a lake"
        )
    return folder


def demo_lake() -> Path | None:
    """Return the state directory of today's demo, whose lake has the story that the other notebooks show.

    `gl.open_lake` opens it, also while its sandbox runs. None without a demo of today, or where answers come from a
    recording.
    """
    played = None if os.environ.get("GAMELENS_REPLAY") else read_population_record(demo_state())
    is_story = played is not None and played.loaded > 0 and played.ends_on == today()
    return demo_state() if is_story else None


def sample_lake(folder: str | Path | None = None, *, scenario: str = "small") -> Path:
    """Return the state directory of a lake with the raw events of invented players.

    `gl.open_lake` opens it. The players of *scenario* are simulated up to yesterday, their events written as the
    service's export of raw events and imported. That takes seconds for `small`, and is done once a day.

    Args:
        folder: a folder that is used as it is if it has a lake, and made otherwise; by default one beside the demo's.
        scenario: name of a shipped scenario, or a TOML file.

    Raises:
        BadQuery: there is no such scenario.
        Refused: *folder* has other files, or the lake cannot be made.
    """
    from gamelens.simulator import load_scenario

    population = load_scenario(scenario)
    state = Path(folder) if folder is not None else _todays_folder(population.name)
    if (state / _READY).exists():
        return state
    if state.exists() and any(state.iterdir()):
        raise Refused(f"{state} has other files but no lake: name a folder that does not exist")
    state.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=state.parent, prefix=".lake-") as scratch:
        made = _made_lake(scenario, Path(scratch))
        if not (state / _READY).exists():  # another process may have made it meanwhile
            made.rename(state)
    return state


def _todays_folder(name: str) -> Path:
    """Return the folder of today's lake. Folders of other days are removed."""
    lakes = writable_folder(demo_state() / "lakes", STATE_DIR)
    state = lakes / f"{name}-{today()}"
    for earlier in lakes.glob(f"{name}-????-??-??"):
        if earlier != state:
            shutil.rmtree(earlier, ignore_errors=True)
    return state


def _made_lake(scenario: str, scratch: Path) -> Path:
    """Make the lake in *scratch* and return its state directory."""
    from gamelens.sandbox.imports.import_run import import_raw_events
    from gamelens.sandbox.options import SandboxOptions
    from gamelens.sandbox.server import Sandbox
    from gamelens.simulator import export_raw, load_scenario

    population, state = load_scenario(scenario), scratch / "state"
    export_raw(population, scratch / "export", "raw-json", ends_on=today())
    sandbox = Sandbox(SandboxOptions(state=state, titles=population.titles))
    sandbox.set_scenario(population.name)  # so that receipts say that the players are invented
    sandbox.close()
    with ThreadPoolExecutor(1) as thread:  # an import runs an event loop, and so does the kernel of a notebook
        thread.submit(import_raw_events, state, [str(scratch / "export")]).result()
    return state
