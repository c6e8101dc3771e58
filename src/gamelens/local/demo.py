"""The whole journey in one call: a sandbox with players, the notebooks executed against it, their reports.

`open_lab` starts JupyterLab on the same sandbox.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gamelens.errors import BadQuery
from gamelens.local.connect import DEMO_SCENARIO, demo_state, print_status
from gamelens.local.population_record import PopulationRecord
from gamelens.local.sandbox_info import (
    environment_of,
)
from gamelens.local.sandbox_population import (
    ensure_populated,
)
from gamelens.local.sandbox_process import (
    call_console,
    running_sandbox,
)

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ControlSummary


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """What a demo did: what was played, what the sandbox counted, which reports were written."""

    played: PopulationRecord
    was_there: bool
    summary: ControlSummary
    reports: list[Path]


def demo(out: Path, *, scenario: str = DEMO_SCENARIO, say: Callable[[str], object] = lambda _: None) -> Demo:
    """The main job, end to end: a sandbox, a scenario, processing, every notebook, a report of each in *out*.

    The sandbox has the games of the scenario. What was already played today is not played again.
    """
    from gamelens.notebook.reports.report import write_report

    say("starting the sandbox")
    with running_sandbox(demo_state(), scenario=scenario) as ready:
        played, was_there = ensure_populated(ready, demo_state(), scenario, say=say)
        reports = []
        for notebook in sorted(notebooks_folder().glob("*.ipynb")):
            say(f"running {notebook.name}")
            environment = environment_of(ready)
            reports.append(write_report(notebook, out, environment=environment, is_interactive=True, say=say))
        summary = call_console(ready, lambda console: console.summary())
        return Demo(played=played, was_there=was_there, summary=summary, reports=reports)


def open_lab(*arguments: str) -> int:
    """JupyterLab on the notebooks, with the demo's sandbox behind them and *arguments* of its own; its exit code."""
    with running_sandbox(demo_state(), scenario=DEMO_SCENARIO) as ready:
        ensure_populated(ready, demo_state(), DEMO_SCENARIO, say=print_status)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container, where Jupyter would refuse
        command = [sys.executable, "-m", "jupyterlab", str(notebooks_folder()), *arguments]
        command += ["--allow-root"] if is_root else []
        return subprocess.run(command, env=os.environ | environment_of(ready), check=False).returncode  # noqa: S603


def notebooks_folder() -> Path:
    """The notebooks: those of this checkout, or those that came with the wheel."""
    beside = Path(__file__).parents[3] / "notebooks"
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
