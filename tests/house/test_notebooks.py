"""The notebooks as house-style has them; notebooks/conftest.py sees to what they say when they run."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

from gamelens.notebook.reports.notebook_parameters import parameters_of

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SCENARIOS = (ROOT / "src/gamelens/simulator/scenarios").glob("*.toml")
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str | None = None) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if kind in (None, cell.cell_type)]


def made_up_names() -> set[str]:
    """Titles of games and studios, and networks, that our own scenarios invented."""
    described = [tomllib.loads(path.read_text()) for path in SCENARIOS]
    studios = [studio for scenario in described for studio in scenario.get("studio", [])]
    games = [game for studio in studios for game in studio.get("game", [])]
    return {it.get("title") or it.get("name") for it in [*studios, *games]} - {None}


def _assigned(line: Any) -> list[tuple[str, Any]]:
    targets = line.targets if isinstance(line, ast.Assign) else [line.target]
    return [(target.id, ast.literal_eval(line.value)) for target in targets]


def test_the_notebooks_are_there() -> None:
    """architecture, The house."""
    assert {"00_tour", "01_ad_revenue", "02_retention", "03_health"} <= {path.stem for path in NOTEBOOKS}


@each
def test_a_notebook_holds_no_outputs(path: Path) -> None:
    """house-style, Notebooks: no stored outputs."""
    assert not [cell for cell in cells(path, "code") if cell.outputs or cell.execution_count]


@each
def test_cells_keep_their_ids(path: Path) -> None:
    """A change shows as what it is: format 4.5, and an id for each cell."""
    raw = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    assert (raw.nbformat, raw.nbformat_minor) >= (4, 5)
    assert len({cell.id for cell in raw.cells}) == len(raw.cells)


@each
def test_cells_are_short(path: Path) -> None:
    """house-style, Notebooks: short cells."""
    assert max(len(cell.source.splitlines()) for cell in cells(path, "code")) <= 12


@each
def test_a_notebook_begins_with_a_title_and_a_promise(path: Path) -> None:
    """house-style, Notebooks: a title, a one-sentence promise."""
    first = cells(path)[0]
    assert first.cell_type == "markdown"
    assert re.fullmatch(r"# \S[^\n]*\n\n[A-Z0-9][^\n]*[^.\n]\.", first.source)


@each
def test_parameters_are_plain_and_come_second(path: Path) -> None:
    """papermill and `gamelens report` set them: names and literals, nothing else."""
    second = cells(path)[1]
    assert second.metadata.get("tags") == ["parameters"]
    lines = ast.parse(second.source).body
    assert {type(line) for line in lines} <= {ast.Assign, ast.AnnAssign}
    values = {name: value for line in lines for name, value in _assigned(line)}
    assert parameters_of(nbformat.read(path, as_version=4)) == values != {}


@each
def test_a_notebook_starts_from_connect(path: Path) -> None:
    """house-style, Notebooks: one setup cell."""
    setup, *rest = cells(path, "code")[1:]
    assert "gl.connect()" in setup.source
    assert not [cell.source for cell in rest if "connect(" in cell.source]


@each
def test_text_comes_before_code(path: Path) -> None:
    """house-style, Notebooks: each section says what it is about."""
    headings = [cell.source for cell in cells(path, "markdown")[1:] if cell.source.startswith("#")]
    assert len(headings) >= 3
    assert cells(path)[3].cell_type == "markdown"


@each
def test_a_notebook_ends_in_what_an_analyst_would_conclude(path: Path) -> None:
    """The last section is a heading and sentences computed from the data."""
    end = cells(path)
    last = max(
        place for place, cell in enumerate(end) if cell.cell_type == "markdown" and cell.source.startswith("## ")
    )
    assert any("say(" in cell.source for cell in end[last + 1 :] if cell.cell_type == "code")


@each
def test_a_notebook_knows_no_game_by_name(path: Path) -> None:
    """It runs on anybody's data."""
    source = "\n".join(cell.source for cell in cells(path))
    assert not [name for name in made_up_names() if name in source]
