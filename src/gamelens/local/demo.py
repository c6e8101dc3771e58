"""The demo and JupyterLab, on the sandbox of this machine and the shipped notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gamelens.errors import BadQuery
from gamelens.local.connect import DEMO_SCENARIO, demo_state, print_status
from gamelens.local.population_record import PopulationRecord
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import call_control_api, running_sandbox

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ControlSummary


SHIPPED_NOTEBOOKS: Final = Path(__file__).parents[1] / "notebook" / "shipped"
"""The folder into which `hatch_build.py` puts the notebooks of a wheel."""


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a demo.

    Attributes:
        population: what the sandbox holds.
        was_populated: whether it already held that.
        summary: the counts of the sandbox.
        reports: the files that were written.
    """

    population: PopulationRecord
    was_populated: bool
    summary: ControlSummary
    reports: list[Path]


def run_demo(out: Path, *, scenario: str = DEMO_SCENARIO, say: Callable[[str], object] = lambda _: None) -> Demo:
    """Run everything, end to end, and write a report of each notebook into *out*.

    That is: start a sandbox with the games of *scenario*, populate it, process, and run the notebooks. A scenario that
    was played today is not played again.
    """
    from gamelens.notebook.reports.report import write_report

    say("starting the sandbox")
    state = demo_state(scenario)
    with running_sandbox(state, scenario=scenario) as ready:
        population, was_populated = ensure_populated(ready, state, scenario, say=say)
        reports = []
        for notebook in sorted(notebooks_folder().glob("*.ipynb")):
            say(f"running {notebook.name}")
            environment = environment_of(ready)
            reports.append(write_report(notebook, out, environment=environment, is_interactive=True, say=say))
        summary = call_control_api(ready, lambda api: api.summary())
        return Demo(population=population, was_populated=was_populated, summary=summary, reports=reports)


def open_lab(*arguments: str) -> int:
    """Run JupyterLab on the notebooks with the demo's sandbox, and return its exit code.

    *arguments* are passed to JupyterLab.
    """
    with running_sandbox(demo_state(), scenario=DEMO_SCENARIO) as ready:
        ensure_populated(ready, demo_state(), DEMO_SCENARIO, say=print_status)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container, where Jupyter would refuse
        command = [sys.executable, "-m", "jupyterlab", str(notebooks_folder()), *arguments]
        command += ["--allow-root"] if is_root else []
        return subprocess.run(command, env=os.environ | environment_of(ready), check=False).returncode  # noqa: S603


def notebooks_folder() -> Path:
    """Return the folder of the notebooks: in this checkout, or in the installed wheel."""
    checkout = Path(__file__).parents[3] / "notebooks"
    return checkout if checkout.is_dir() else SHIPPED_NOTEBOOKS


def find_notebook(name: str) -> Path:
    """Return the path of the notebook *name*.

    *name* is a file, or a shipped notebook such as `01_ad_revenue` or, without its number, `ad_revenue`.

    Raises:
        BadQuery: *name* is neither.
    """
    if (path := Path(name)).suffix == ".ipynb" and path.is_file():
        return path.resolve()
    shipped = {path.stem: path for path in sorted(notebooks_folder().glob("*.ipynb"))}
    shipped |= {stem.partition("_")[2]: path for stem, path in shipped.items()}
    wanted = Path(name).name.removesuffix(".ipynb")
    if wanted in shipped and "/" not in name:
        return shipped[wanted]
    raise BadQuery("notebook", name, "is neither a file nor one of ours", shipped)
