"""`gamelens report`: notebooks it finds, parameters it refuses, pages it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamelens.local import demo
from support.command_process import PlayedSandbox, RunCommand
from support.notebook_files import code_cell, notebook_of, write_notebook

CELLS = (
    "over = 'last 2 complete days'\ngames = None",
    "import gamelens as gl",
    "days = gl.connect().query('user_unique', over=over, games=games)\nprint(len(days), 'days of', games)",
    "days.lens.plot()",
)


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook with parameters that queries the configured service."""
    parameters, *cells = CELLS
    return write_notebook(notebook_of(code_cell(parameters, is_parameters=True), *cells), tmp_path / "ours.ipynb")


def test_a_shipped_notebook_is_found_by_its_name() -> None:
    """A shipped notebook is found by its name, with or without number and suffix."""
    paths = {demo.find_notebook(name) for name in ("01_ad_revenue", "ad_revenue", "01_ad_revenue.ipynb")}
    assert paths == {demo.notebooks_folder() / "01_ad_revenue.ipynb"}


def test_a_file_is_found_by_its_path(notebook: Path) -> None:
    """Another notebook is found by its path."""
    assert demo.find_notebook(str(notebook)) == notebook


def test_an_unknown_notebook_is_refused_with_the_nearest(run_command: RunCommand) -> None:
    """An unknown notebook has exit code 1 and the nearest name."""
    result = run_command("report", "ad_revenu")
    assert (result.exit_code, "Did you mean `ad_revenue`?" in result.stderr) == (1, True)


def test_an_unknown_parameter_is_refused_with_the_nearest(run_command: RunCommand, notebook: Path) -> None:
    """An unknown parameter has exit code 1 and the nearest name."""
    result = run_command("report", notebook, "-p", "ovr", "x")
    assert (result.exit_code, "not a parameter of ours.ipynb. Did you mean `over`?" in result.stderr) == (1, True)


def test_a_parameter_needs_name_and_value(run_command: RunCommand, notebook: Path) -> None:
    """A parameter without a value has exit code 2."""
    assert run_command("report", notebook, "-p", "over").exit_code == 2


@pytest.mark.slow
def test_a_report_answers_from_the_configured_service(
    run_command: RunCommand, sandbox: PlayedSandbox, notebook: Path, tmp_path: Path
) -> None:
    """A report queries the configured service. Its path is all that is printed, and no key is on the page."""
    parameters = ("-p", "over", "last 3 complete days", "-p", "games", "1001", "--interactive")
    result = run_command("report", notebook, *parameters, "--out", tmp_path / "page" / "a.html")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{tmp_path / 'page' / 'a.html'}\n", "")
    page = (tmp_path / "page" / "a.html").read_text()
    assert "3 days of 1001" in page
    assert "over = &#x27;last 3 complete days&#x27;, games = &#x27;1001&#x27;" in page
    assert "plotly" in page
    assert sandbox.environment["GAMELENS_API_KEY"] not in page


@pytest.mark.wide
@pytest.mark.slow
def test_a_cell_that_fails_is_one_line_and_no_file(run_command: RunCommand, notebook: Path, tmp_path: Path) -> None:
    """A failing cell has exit code 1 and one line with cell and error, and no file is left."""
    result = run_command("report", notebook, "-p", "games", "nope", "--out", tmp_path / "page")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ours.ipynb did not run: cell 3 (days = gl.connect().query('user_unique'")
    assert "BadQuery: games = 'nope' is neither" in result.stderr
    assert (result.stderr.count("\n"), (tmp_path / "page").exists()) == (1, False)
