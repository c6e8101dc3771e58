"""`gamelens report`: what it finds, what it refuses, what it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from click.testing import Result

from gamelens.local import demo

CELLS = (
    "over = 'last 2 complete days'\ngames = None",
    "import gamelens as gl",
    "days = gl.connect().query('user_unique', over=over, games=games)\nprint(len(days), 'days of', games)",
)
Typed = Callable[..., Result]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "ours.ipynb")
    return tmp_path / "ours.ipynb"


def test_a_notebook_of_ours_is_found_by_name_with_or_without_its_number() -> None:
    found = {demo.find_notebook(name) for name in ("01_ad_revenue", "ad_revenue", "01_ad_revenue.ipynb")}
    assert found == {demo.notebooks_folder() / "01_ad_revenue.ipynb"}


def test_a_file_is_found_by_its_path(notebook: Path) -> None:
    assert demo.find_notebook(str(notebook)) == notebook


def test_a_name_that_is_none_is_refused_with_the_nearest(typed: Typed) -> None:
    told = typed("report", "ad_revenu")
    assert (told.exit_code, "Did you mean `ad_revenue`?" in told.stderr) == (1, True)


def test_an_unknown_parameter_is_refused_with_the_nearest(typed: Typed, notebook: Path) -> None:
    told = typed("report", notebook, "-p", "ovr", "x")
    assert (told.exit_code, "no parameter of ours.ipynb. Did you mean `over`?" in told.stderr) == (1, True)


def test_a_parameter_needs_name_and_value(typed: Typed, notebook: Path) -> None:
    assert typed("report", notebook, "-p", "over").exit_code == 2


@pytest.mark.slow
def test_a_report_answers_from_the_configured_service(typed: Typed, notebook: Path, tmp_path: Path) -> None:
    over = ("-p", "over", "last 3 complete days")
    told = typed("report", notebook, *over, "-p", "games", "1001", "--out", tmp_path / "page" / "a.html")
    assert (told.exit_code, told.stdout) == (0, f"{tmp_path / 'page' / 'a.html'}\n"), told.stderr
    page = (tmp_path / "page" / "a.html").read_text()
    assert "3 days of 1001" in page
    assert "over = &#x27;last 3 complete days&#x27;, games = &#x27;1001&#x27;" in page


@pytest.mark.slow
def test_a_cell_that_fails_is_one_line_and_no_file(typed: Typed, notebook: Path, tmp_path: Path) -> None:
    told = typed("report", notebook, "-p", "games", "nope", "--out", tmp_path / "page")
    assert told.exit_code == 1
    assert told.stderr.startswith("Error: ours.ipynb did not run: cell 3 (days = gl.connect().query('user_unique'")
    assert "BadQuery: games = 'nope' is no" in told.stderr
    assert (told.stderr.count("\n"), (tmp_path / "page").exists()) == (1, False)
