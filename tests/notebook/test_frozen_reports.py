"""What the shipped reports say, word by word, on recorded answers: their sentences, tables and titles of figures.

The files in `frozen` hold it. A change that is meant writes them anew, and shows in the diff:

    SNAPSHOTS=write .venv/bin/pytest -m wide tests/notebook/test_frozen_reports.py
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Final

import pytest

import gamelens as gl
from gamelens import local
from gamelens.sandbox.imports.import_run import import_raw_events
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import export_raw, load_scenario
from support.executed_notebooks import RECORDED
from support.notebook_pages import NOTEBOOKS, run_notebook

pytestmark = pytest.mark.wide

FROZEN: Final = Path(__file__).with_name("frozen")
COMMAND: Final = "SNAPSHOTS=write .venv/bin/pytest -m wide tests/notebook/test_frozen_reports.py"
NOW: Final = datetime(2026, 11, 5, 12, tzinfo=UTC)
"""The time of the lake that notebooks about raw events get, of which there is no recording."""

_WIDGET: Final = re.compile(r"^(\w+)\(.* object at 0x.*")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake that a reader without one gets, made on a clock that stands still."""
    folder, clock, scenario = tmp_path_factory.mktemp("lake"), Clock(), load_scenario("small")
    clock.freeze(NOW)
    export_raw(scenario, folder / "export", "raw-json", ends_on=NOW.date())
    sandbox = Sandbox(SandboxOptions(state=folder / "state", titles=scenario.titles), clock=clock)
    sandbox.set_scenario(scenario.name)
    sandbox.close()
    import_raw_events(folder / "state", [str(folder / "export")], clock=clock)
    return folder / "state"


@pytest.mark.parametrize("name", sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_report_says_what_it_said(name: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay has the clock of its recording."""
    monkeypatch.setenv("GAMELENS_REPLAY", str(RECORDED))
    monkeypatch.delenv("GAMELENS_LAKE", raising=False)
    monkeypatch.setattr(local, "sample_lake", lambda: lake)
    monkeypatch.chdir(tmp_path)
    with gl.connect(replay=RECORDED, when_unavailable="clip") as lens:
        page = run_notebook(name, {}, lens)
    assert page.complaint == ""
    lines = lasting(page.text)
    path = FROZEN / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if changes := [*unified_diff(before, lines, "before", "now", lineterm="", n=0)]:
        pytest.fail("\n".join([*changes, f"If this is meant: {COMMAND}"]), pytrace=False)


def lasting(text: str) -> list[str]:
    """Return the lines of *text* without the version of gamelens and the addresses of widgets in memory."""
    known = text.replace(f"gamelens {gl.__version__}", "gamelens")
    return [_WIDGET.sub(r"\1", line).rstrip() for line in known.splitlines()]
