"""The demo and JupyterLab, on the sandbox of this machine and the shipped notebooks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import platformdirs
from tqdm import tqdm

from gamelens._files import replace_file
from gamelens.client.connection.settings import writable_folder
from gamelens.errors import BadQuery
from gamelens.local.connect import DEMO_SCENARIO, STATE_DIR, demo_state, print_status
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import PopulationRecord, ensure_populated
from gamelens.local.sandbox_process import call_control_api, running_sandbox

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ControlSummary


_FIRST: Final = "00_monday.ipynb"
_OF_LAKE: Final = "06_raw_events"
"""The notebook of a lake that reads the demo's own where that has many players, and so shows their story."""
NOTEBOOKS: Final = "GAMELENS_NOTEBOOKS"
SHIPPED_NOTEBOOKS: Final = Path(__file__).parents[1] / "notebook" / "shipped"
"""The folder into which `hatch_build.py` puts the notebooks of a wheel."""


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a demo. *was_populated* says whether the sandbox already held the population."""

    population: PopulationRecord
    was_populated: bool
    summary: ControlSummary
    reports: list[Path]


def run_demo(out: Path, *, scenario: str = DEMO_SCENARIO, say: Callable[[str], object] = lambda _: None) -> Demo:
    """Run everything, end to end, and write a report of each notebook into *out*.

    That is: start a sandbox with the games of *scenario*, populate it, process, and run the notebooks side by side. A
    scenario that was played today is not played again. Figures are still where this machine has a browser to draw them.
    """
    from gamelens.notebook.figures.browser_rendering import one_browser
    from gamelens.notebook.reports.report import advice_at_end, write_report

    say("starting the sandbox")
    state = writable_folder(demo_state(scenario), STATE_DIR)
    with running_sandbox(state, scenario=scenario) as ready:
        population, was_populated = _fill(ready, state, scenario, say=say)
        has_lake = population.loaded > 0
        environment, notebooks = environment_of(ready), sorted(notebooks_folder().glob("*.ipynb"))

        def write(notebook: Path) -> Path:
            say(f"running {notebook.name}")
            return write_report(
                notebook,
                out,
                parameters=[("state", str(state))] if has_lake and notebook.stem == _OF_LAKE else [],
                environment=environment,
                beside=[notebook.stem for notebook in notebooks],
                say=say,
                advise=advise,
            )

        # One more than there are processors, because each notebook also waits for answers.
        with advice_at_end(say) as advise, one_browser(), ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
            reports = list(pool.map(write, notebooks))
        summary = call_control_api(ready, lambda api: api.summary())
        return Demo(population=population, was_populated=was_populated, summary=summary, reports=reports)


def _fill(
    ready: SandboxInfo, state: Path, scenario: str, *, say: Callable[[str], object]
) -> tuple[PopulationRecord, bool]:
    """Populate the sandbox unless it is, with a progress bar if standard error is a terminal."""
    from gamelens.simulator import load_scenario
    from gamelens.simulator.output.play import estimated_events

    with tqdm(unit=" events", unit_scale=True, dynamic_ncols=True, leave=False, delay=0.5, disable=None) as bar:

        def count(events: int) -> None:
            if bar.total is None and not bar.disable:
                bar.total = estimated_events(load_scenario(scenario))
            bar.update(events)

        return ensure_populated(ready, state, scenario, workers=os.cpu_count() or 1, say=say, on_batch=count)


def open_lab(*arguments: str) -> int:
    """Run JupyterLab in this process on a copy of the notebooks, and return its exit code.

    The demo's sandbox runs meanwhile, one for all JupyterLabs. *arguments* are passed to JupyterLab, which opens the
    page of Monday unless they name something else.
    """
    from gamelens.notebook.figures.iri_grammar import defer_iri_grammar

    folder, state = writable_folder(lab_folder(), NOTEBOOKS), writable_folder(demo_state(), STATE_DIR)
    for line in copy_notebooks(notebooks_folder(), folder):
        print_status(line)
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in a container, where Jupyter would refuse
    opened = [] if any(not argument.startswith("-") for argument in arguments) else [str(folder / _FIRST)]
    defer_iri_grammar()
    with ThreadPoolExecutor(1) as importer:
        lab = importer.submit(import_module, "jupyterlab.labapp")  # which takes as long as the sandbox to start
        with running_sandbox(state, scenario=DEMO_SCENARIO) as ready:
            _fill(ready, state, DEMO_SCENARIO, say=print_status)
            os.environ |= environment_of(ready)  # for the kernels
            lab.result().main([f"--ServerApp.root_dir={folder}", *opened, *arguments, *["--allow-root"] * is_root])
            return 0


def lab_folder() -> Path:
    """Return the folder of the copies: GAMELENS_NOTEBOOKS, or one in the documents."""
    named = os.environ.get(NOTEBOOKS)
    return Path(named).expanduser() if named else platformdirs.user_documents_path() / "gamelens"


def copy_notebooks(source: Path, folder: Path) -> list[str]:
    """Copy the notebooks of *source* into *folder*. Returns lines for the user.

    A notebook that the user has changed stays as it is. When ours has changed as well, it is put beside it.

    Raises:
        BadQuery: the file that records what was copied is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / ".gamelens.json"
    try:  # the digest of each notebook that was copied, by its name
        copied = msgspec.json.decode(record.read_bytes(), type=dict[str, str]) if record.is_file() else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        rule = "is not the record of copied notebooks that gamelens wrote: delete it; your notebooks are not affected"
        raise BadQuery("GAMELENS_NOTEBOOKS", str(record), rule) from None
    said = [] if copied else [f"your copies of the notebooks are in {folder}"]
    for ours in sorted(source.glob("*.ipynb")):
        content = ours.read_bytes()
        newest, copy = _digest(content), folder / ours.name
        if copied.get(ours.name) == newest:
            continue  # ours has not changed since: whatever became of the copy is the user's
        if not copy.exists() or _digest(copy.read_bytes()) in (copied.get(ours.name), newest):
            target = copy
        else:
            target = folder / f"{ours.stem}.new.ipynb"
            said.append(f"{copy.name} has your changes and is kept; the newer version is {target.name}")
        with replace_file(target) as draft:
            draft.write_bytes(content)
        copied[ours.name] = newest
    with replace_file(record) as draft:
        draft.write_text(json.dumps(copied, indent=1))
    return said


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
    raise BadQuery("notebook", name, "is neither a file nor a notebook of gamelens", shipped)
