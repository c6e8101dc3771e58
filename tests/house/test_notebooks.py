"""Rules for the shipped notebooks, read as files: structure, parameters, no outputs.

`notebooks/conftest.py` checks what they print when they run.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

import gamelens as gl
from gamelens.analysis.claims import findings
from gamelens.analysis.claims.templates import words
from gamelens.notebook.reports.html_page import CONCLUSIONS, REMOVED, SILENT
from gamelens.notebook.reports.notebook_parameters import parameters_of
from support.notebook_claims import COUNTED
from support.notebook_files import code_cell, new_output, notebook_of, silent_at_the_end
from support.words import in_notebook, in_python

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SCENARIOS = (ROOT / "src/gamelens/simulator/scenarios").glob("*.toml")
JUDGED = {"01_ad_revenue", "02_retention", "05_experiments", "07_why_numbers_differ"}
FORMATTED = re.compile(r"\{[^{}\n]*:[.,\w%+]+\}")
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str | None = None) -> list[Any]:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return [cell for cell in notebook.cells if kind in (None, cell.cell_type)]


def invented_names() -> set[str]:
    """Return titles of games and studios, and networks, that the shipped scenarios invented."""
    described = [tomllib.loads(path.read_text()) for path in SCENARIOS]
    studios = [studio for scenario in described for studio in scenario.get("studio", [])]
    games = [game for studio in studios for game in studio.get("game", [])]
    return {table.get("title") or table.get("name") for table in [*studios, *games]} - {None}


def _assigned(line: ast.stmt) -> list[tuple[str, Any]]:
    """Return the names and literals that one line of a parameters cell assigns."""
    assert isinstance(line, ast.Assign | ast.AnnAssign)
    assert line.value is not None
    targets = line.targets if isinstance(line, ast.Assign) else [line.target]
    return [(target.id, ast.literal_eval(line.value)) for target in targets if isinstance(target, ast.Name)]


def test_the_notebooks_are_there() -> None:
    """The page of Monday and the notebooks on revenue, retention and health exist."""
    assert {"00_monday", "01_ad_revenue", "02_retention", "03_health"} <= {path.stem for path in NOTEBOOKS}


@every_notebook
def test_a_notebook_holds_no_outputs(path: Path) -> None:
    """Notebooks are stored without outputs and execution counts."""
    assert not [cell for cell in cells(path, "code") if cell.outputs or cell.execution_count]


@every_notebook
def test_cells_keep_their_ids(path: Path) -> None:
    """Format 4.5 and unique cell ids keep the difference of two versions readable."""
    raw = nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    assert (raw.nbformat, raw.nbformat_minor) >= (4, 5)
    assert len({cell.id for cell in raw.cells}) == len(raw.cells)


@every_notebook
def test_cells_are_short(path: Path) -> None:
    """A code cell has at most twelve lines."""
    assert max(len(cell.source.splitlines()) for cell in cells(path, "code")) <= 12


@every_notebook
def test_a_notebook_begins_with_a_title_and_a_promise(path: Path) -> None:
    """The first cell is a title and one sentence that says what the notebook shows."""
    first = cells(path)[0]
    assert first.cell_type == "markdown"
    assert re.fullmatch(r"# \S[^\n]*\n\n[A-Z0-9][^\n]*[^.\n]\.", first.source)


@every_notebook
def test_parameters_are_plain_and_come_second(path: Path) -> None:
    """The second cell is tagged `parameters` and assigns literals, as papermill needs it."""
    second = cells(path)[1]
    assert second.metadata.get("tags") == ["parameters"]
    lines = ast.parse(second.source).body
    assert {type(line) for line in lines} <= {ast.Assign, ast.AnnAssign}
    values = {name: value for line in lines for name, value in _assigned(line)}
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert parameters_of(notebook) == values != {}


@every_notebook
def test_a_notebook_starts_from_connect(path: Path) -> None:
    """The first code cell after the parameters calls `gl.connect`, or opens a lake, and no other connects."""
    setup, *rest = cells(path, "code")[1:]
    assert "gl.connect(" in setup.source or "gl.open_lake(" in setup.source
    assert not [cell.source for cell in rest if "connect(" in cell.source]


@every_notebook
def test_text_comes_before_code(path: Path) -> None:
    """A notebook has at least three headings, and text before its first result."""
    headings = [cell.source for cell in cells(path, "markdown")[1:] if cell.source.startswith("#")]
    assert len(headings) >= 3
    assert cells(path)[3].cell_type == "markdown"


@every_notebook
def test_a_notebook_ends_in_conclusions(path: Path) -> None:
    """The last section has sentences computed from the data."""
    end = cells(path)
    last = max(
        place for place, cell in enumerate(end) if cell.cell_type == "markdown" and cell.source.startswith("## ")
    )
    assert any(re.search(r"\b(say|conclusions)\(", cell.source) for cell in end[last + 1 :] if cell.cell_type == "code")


@every_notebook
def test_a_report_of_it_begins_with_the_conclusions(path: Path) -> None:
    """The last heading is "What to take away" and has the tag that puts its section first in a report."""
    headings = [cell for cell in cells(path, "markdown") if cell.source.startswith("## ")]
    assert headings[-1].source.splitlines()[0] == "## What to take away"
    assert [CONCLUSIONS in cell.metadata.get("tags", []) for cell in headings].index(True) == len(headings) - 1


@every_notebook
def test_a_report_of_it_shows_nothing_for_a_kernel(path: Path) -> None:
    """Intervals, which are Python values, and widgets are tagged as not for a page, and so is "Look further"."""
    for cell in cells(path):
        last = cell.source.rstrip().rpartition("\n")[2]
        tags = {*cell.metadata.get("tags", [])}
        if cell.cell_type == "code" and (last.endswith(".available()") or last.startswith("widgets.explorer(")):
            assert tags & {REMOVED, SILENT}, f"a report would show {last}"
        if cell.cell_type == "markdown" and cell.source.startswith("## Look further"):
            assert REMOVED in tags


@every_notebook
def test_computed_sentences_are_claims(path: Path) -> None:
    """`say` formats no number: claims bring them."""
    formats = FORMATTED.findall("\n".join(cell.source for cell in cells(path, "code") if "say(" in cell.source))
    assert formats == []


def claim_functions() -> set[str]:
    """Return the functions whose results say something, but for those of a lake, which 06 alone shows."""
    own = (name.partition(".") for name in findings.analyses())
    return {name for room, _, name in own if room != "raw_events"} | {gl.reconcile.__name__}


def test_claims_of_the_notebooks_are_judged() -> None:
    """What 01, 02 and 05 claim is judged by `bench/test_claims.py`, or its function is known to count only."""
    sources = ["\n".join(cell.source for cell in cells(path, "code")) for path in NOTEBOOKS if path.stem in JUDGED]
    shown = {name for name in claim_functions() if any(f"{name}(" in source for source in sources)}
    judged = (ROOT / "tests/support/notebook_claims.py").read_text()
    assert len(shown) > len(COUNTED)
    assert {name for name in shown - COUNTED if f"{name}(" not in judged} == set()
    assert shown >= COUNTED


def test_rates_are_queried_by_day() -> None:
    """What 01 says of ad events has intervals from days, so none of those queries asks for one bucket."""
    (path,) = (path for path in NOTEBOOKS if path.stem == "01_ad_revenue")
    sources = [cell.source for cell in cells(path, "code")]
    lines = [line for source in sources for line in source.splitlines()]
    of_events = [line for line in lines if "event_count" in line]
    assert len(of_events) == 2
    assert not [line for line in of_events if "every" in line]


@every_notebook
def test_a_notebook_names_no_game_of_the_scenarios(path: Path) -> None:
    """Notebooks run on any data, so they name no game or studio of the shipped scenarios."""
    source = "\n".join(cell.source for cell in cells(path))
    assert not [name for name in invented_names() if name in source]


# What period data are of is a value: typed in prose, it stays when the parameter changes.

_NUMBER = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d+)"
TYPED_PERIOD = re.compile(
    rf"\b(?:yesterday|today|tomorrow|this (?:week|month)|the {_NUMBER} (?:complete )?(?:days|weeks|months)"
    rf"|(?:last|past|previous|latest) (?:{_NUMBER} (?:complete )?days"
    rf"|(?:{_NUMBER} )?(?:complete )?(?:weeks?|months?|years?)))\b",
    re.IGNORECASE,
)
TIME_RANGE = re.compile(r"last (\d+ )?complete (days|weeks)|last week")
"""What `over` is set to."""


@every_notebook
def test_prose_types_no_period(path: Path) -> None:
    """Neither its text nor the text in its code, but for values of `over`."""
    texts = [text for _, text in in_notebook(path.read_text(encoding="utf-8"))]
    assert [text for text in texts if TYPED_PERIOD.search(text) and not TIME_RANGE.fullmatch(text)] == []


def test_claims_type_no_period() -> None:
    """A sentence of an analysis, and of a report around it, has its period from the result."""
    typed = [(kind, case) for kind, table in words().items() for case in table if TYPED_PERIOD.search(table[case])]
    assert typed == []
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src/gamelens/notebook").rglob("*.py"))
    texts = [text for source in sources for _, text in in_python(source)]
    assert [text for text in texts if TYPED_PERIOD.search(text) and not TIME_RANGE.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("text", "is_typed"),
    [
        ("How the last eight weeks went.", True),
        ("Revenue of the last 28 complete days.", True),
        ("What yesterday brought.", True),
        ("The four weeks before.", True),
        ("The last month.", True),
        ("Compared with up to four weeks before, by one to four weeks.", False),
        ("The last day of the period.", False),
    ],
)
def test_a_typed_period_is_found(text: str, is_typed: bool) -> None:
    """A window of a method and the end of what is shown are none."""
    assert (TYPED_PERIOD.search(text) is not None) == is_typed


# The check of executed notebooks in `notebooks/conftest.py`: the last code cell shows something.

PRINTED = new_output("stream", name="stdout", text="a sentence")


def test_a_notebook_whose_last_cell_shows_nothing_is_found() -> None:
    """As when `lake.close()` follows the sentences; other cells do not count."""
    quiet = notebook_of(code_cell("say(1)", outputs=[PRINTED]), code_cell("say(2)\nlake.close()"))
    assert silent_at_the_end(quiet) == ("say(2)\nlake.close()", 1)
    blank = notebook_of(code_cell("print()", outputs=[new_output("stream", name="stdout", text="\n")]))
    assert silent_at_the_end(blank) == ("print()", 0)


def test_a_sentence_at_the_end_is_enough() -> None:
    """Printed or displayed."""
    shown = new_output("display_data", data={"text/html": "a sentence"})
    assert silent_at_the_end(notebook_of(code_cell("say(1)", outputs=[shown]))) is None
    assert silent_at_the_end(notebook_of(code_cell("print(1)", outputs=[PRINTED]))) is None
