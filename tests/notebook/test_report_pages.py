"""What the shipped notebooks show, in worlds in which something is missing, and with everything that can be set.

`bench/test_report_pages.py` tries every notebook in every world.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.cli.report_command import report
from gamelens.local.sample_data import write_files
from gamelens.notebook.reports.notebook_parameters import typed
from gamelens.raw_events.lake_client import open_lake
from gamelens.simulator.output.external_files import outside_files
from support.notebook_pages import NOTEBOOKS, defaults_of, run_notebook
from support.page_checks import CHECKS, checked_page
from support.printed_commands import COMMANDS, ROOT
from support.report_worlds import SCENARIO, TODAY, World, open_worlds

pytestmark = pytest.mark.slow

NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
IN_WORLDS = {
    "00_monday": ("empty", "bare", "demo", "no purchases", "week-old"),
    "01_ad_revenue": ("empty", "no ads", "one day", "no countries"),
    "02_retention": ("empty", "one day", "bare"),
    "03_health": ("empty", "no purchases", "one day"),
    "04_outside_data": ("empty", "demo", "bare"),
    "05_experiments": ("empty", "bare", "no purchases"),
    "06_raw_events": ("empty", "week-old", "no ads"),
    "07_why_numbers_differ": ("empty", "no countries", "one day"),
    "08_tour": ("empty", "one day", "week-old"),
}
"""The worlds that each notebook is tried in here.

Its defaults on the demo's players are what `notebooks/conftest.py` runs."""
GAME = "11002"
WITH_PARAMETERS: dict[str, dict[str, Any]] = {
    "00_monday": {"games": [GAME, "12001"], "targets": "targets.toml", "notes": "notes.toml"},
    "01_ad_revenue": {"over": "last 14 complete days", "games": GAME, "by": "country_code"},
    "02_retention": {
        **{"over": "last 56 complete days", "games": GAME, "by": "platform"},
        **{"ages": [1, 3], "horizon": 20, "seed": 2},
    },
    "03_health": {
        **{"over": "last 56 complete days", "games": GAME, "metrics": "user_unique", "days": 3},
        "accept": "notes.toml",
    },
    "04_outside_data": {
        **{"over": "last 14 complete days", "games": GAME, "reaching": 3, "horizon": 30},
        **{"folder": "files", "names": {"Facebook": "Meta Ads"}},
    },
    "05_experiments": {
        **{"over": "last 28 complete days", "games": "11001", "experiment": "first_gate", "control": "late_gate"},
        **{"expected": {"ctrl": 2, "late_gate": 1}, "ages": [1], "decides": ["D1 retention"], "lift": 0.2},
    },
    "06_raw_events": {
        **{"over": "last 7 complete days", "games": [GAME], "zone": "UTC", "away": 3, "first_days": 2},
        **{"events": "events.parquet"},
    },
    "07_why_numbers_differ": {
        **{"over": "last 7 complete days", "by": "country_code", "installed": "last 14 complete days"},
        **{"ages": [1], "zone": "UTC"},
    },
    "08_tour": {"over": "last 14 complete days", "games": GAME},
}
"""A value of each parameter that is not its default, as the command line gives it: one game is text.

`state` of a lake is set in any case.
"""
OF_MONDAY = (ROOT / "docs/pages/how-to/monday.md").read_text(encoding="utf-8")


Given = tuple[tuple[str, str], ...]
"""The parameters of a printed command."""


def write_events(lake: Path, name: str) -> None:
    """Write the events of a lake as a file, with one of another game in its last hour: a file ends with its events."""
    with open_lake(lake, progress=False) as opened:
        events, end = opened.relation("events").to_arrow_table(), opened.available().end
    (last,) = events.slice(0, 1).to_pylist()
    last |= {"ts": end.replace(tzinfo=None) - timedelta(seconds=1), "game_id": "12001", "event_uuid": "last"}
    pq.write_table(pa.concat_tables([events, pa.Table.from_pylist([last], schema=events.schema)]), name)


def reports() -> list[tuple[str, Given]]:
    """Return notebook and parameters of each report of a shipped notebook that a README, a page or --help prints."""
    typed_words = [*COMMANDS, *re.findall(r"Example: gamelens (.*)", report.help or "")]
    given = [shlex.split(words)[1:] for words in typed_words if words.startswith("report ")]
    asked = [report.make_context("report", words).params for words in given]
    return sorted({(each["notebook"], each["parameters"]) for each in asked if each["notebook"] in NAMES})


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    """All worlds, by name."""
    yield from open_worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the page on Monday describes, and with those about the demo's players."""
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("targets", "notes"), re.findall(r"```toml\n(.*?)```", OF_MONDAY, re.DOTALL), strict=True):
        (tmp_path / f"{name}.toml").write_text(text)
    write_files(outside_files(SCENARIO, ends_on=TODAY), tmp_path / "files")
    return tmp_path


@pytest.mark.shown_by("00_monday-empty", "03_health-no purchases")
@pytest.mark.parametrize(
    ("notebook", "world"),
    [(name, world) for name, worlds in IN_WORLDS.items() for world in worlds],
)
def test_a_page_is_right_whatever_is_missing(worlds: dict[str, World], folder: Path, notebook: str, world: str) -> None:
    """It is shown without a warning, or stops in a sentence with a next step where there are no data at all."""
    checked_page(notebook, worlds[world], folder)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("notebook", "parameters"), reports())
def test_a_documented_report_is_right(worlds: dict[str, World], folder: Path, notebook: str, parameters: Given) -> None:
    """The key numbers of a printed command are those of its own period."""
    checked_page(notebook, worlds["demo"], folder, typed(parameters, defaults_of(notebook), notebook=notebook))


@pytest.mark.shown_by("00_monday")
@pytest.mark.parametrize("notebook", WITH_PARAMETERS)
def test_a_page_is_right_whatever_is_set(worlds: dict[str, World], folder: Path, notebook: str) -> None:
    """Each parameter has another value than its default, and none was forgotten."""
    defaults, given = defaults_of(notebook), WITH_PARAMETERS[notebook]
    assert given.keys() == defaults.keys() - {"state"}
    assert [name for name in given if given[name] == defaults[name]] == []
    if "events" in given:
        write_events(worlds["demo"].lake(), given["events"])
    checked_page(notebook, worlds["demo"], folder, given)


@pytest.mark.wide
def test_monday_of_old_data_begins_with_their_age(worlds: dict[str, World]) -> None:
    """A sandbox whose data ended eight days ago; what the newest complete week brought comes after."""
    page = run_notebook("00_monday", {}, worlds["no countries"].lens(days_later=8))
    lines = page.below("What to take away").splitlines()
    first, second, *_ = [line for line in lines if line.startswith("- ")]
    assert first == "- The data end on 20 Nov 2026 10:00 UTC, 8 days ago: nothing is known of the time since."
    assert " in the week of 9 November" in second


def test_there_are_reports_to_try() -> None:
    """READMEs, pages and --help print four different reports at least, one of yesterday among them."""
    assert len(reports()) >= 4
    assert ("01_ad_revenue", (("over", "yesterday"),)) in reports()


@pytest.mark.wide
def test_a_page_of_another_period_is_found(worlds: dict[str, World]) -> None:
    """The check is not empty: the key numbers of 14 days are not those of seven."""
    given = WITH_PARAMETERS["01_ad_revenue"]
    page, known = worlds["demo"].page("01_ad_revenue", given), {**given, "games": [GAME]}
    CHECKS["01_ad_revenue"](page, worlds["demo"], known)
    with pytest.raises(AssertionError):
        CHECKS["01_ad_revenue"](page, worlds["demo"], {**known, "over": "last 7 complete days"})
