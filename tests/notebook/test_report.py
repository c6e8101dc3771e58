"""Reports: a notebook run with parameters and written whole or not at all."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gamelens.errors import BadQuery, Refused
from gamelens.notebook.reports.report import advice_at_end, write_report
from support.notebook_files import code_cell, notebook_of, read_notebook, write_notebook

pytestmark = pytest.mark.slow
PARAMETERS = "top = 3\nover = 'last 7 complete days'"
BARS = {"data": [{"type": "bar", "x": [1, 2]}], "layout": {"meta": {"alt": "Two bars."}}}
FIGURE = f"display({{'application/vnd.plotly.v1+json': {BARS}}}, raw=True)"
"""What plotly displays, without the second that a kernel takes to import it."""


def notebook(folder: Path, *cells: str) -> Path:
    """Write a notebook of *cells* to *folder*, the first one with the parameters."""
    first, *others = cells
    return write_notebook(notebook_of(code_cell(first, is_parameters=True), *others), folder / "made.ipynb")


class Run(NamedTuple):
    """A notebook that ran: its page, and what was passed to `say`."""

    page: str
    name: str
    messages: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of cells that print parameters and variables, warn, and show a bar of progress."""
    cells = (
        "print('the number is', top * 2, over)",
        "import os; print(os.environ['OURS'] + os.environ['ADDED'], 'is there')",
        "import ipywidgets\nipywidgets.IntProgress()",
        "import warnings\nwarnings.warn('old news')",
        "print('the last number is 7')",
    )
    messages: list[str] = []
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OURS", "a")
        page = write_report(
            notebook(folder, PARAMETERS, *cells),
            folder / "one.html",
            parameters=[("top", "21")],
            environment={"ADDED": "b"},
            say=messages.append,
        )
    return Run(page.read_text(), page.name, messages)


@pytest.mark.wide
def test_links_to_notebooks_lead_to_reports_that_are_there(tmp_path: Path) -> None:
    """One beside it and one that is written too are linked; of another the page has the command."""
    links = "[a](made_a.ipynb), [b](made_b.ipynb), [c](made_c.ipynb)"
    (tmp_path / "made_a.html").touch()
    of_links = notebook(tmp_path, PARAMETERS, f"from IPython.display import Markdown\nMarkdown({links!r})")
    page = write_report(of_links, tmp_path, beside=["made_b"]).read_text()
    assert '<a href="made_a.html">a</a>, <a href="made_b.html">b</a>, <code>gamelens report made_c</code>' in page


def test_parameters_reach_the_cells_and_the_foot_of_the_page(run: Run) -> None:
    """Given parameters replace the defaults in cells and in the footer."""
    assert "the number is 42 last 7 complete days" in run.page
    assert "top = 21, over = &#x27;last 7 complete days&#x27;" in run.page


def test_a_kernel_has_our_environment_and_what_is_added(run: Run) -> None:
    """The kernel has the environment of this process and the variables given."""
    assert "ab is there" in run.page


def test_a_bar_of_progress_leaves_nothing_to_fetch(run: Run) -> None:
    """A progress bar leaves no widget and no URL in the page."""
    assert ("unpkg.com" in run.page, "widget-view" in run.page) == (False, False)
    assert "the last number is 7" in run.page


def test_warnings_of_cells_are_passed_on_and_not_shown(run: Run) -> None:
    """A warning of a cell is passed to `say` with its cell, and is not on the page."""
    assert run.name == "one.html"
    assert "old news" not in run.page
    assert len(run.messages) == 1
    assert run.messages[0].startswith("made.ipynb, cell 5 (import warnings): ")
    assert "old news" in run.messages[0]


def test_a_cell_that_fails_is_named_and_the_last_report_stays(tmp_path: Path) -> None:
    """A failing cell raises `Refused` with its number and error, and the old report stays."""
    report = tmp_path / "out" / "made.html"
    report.parent.mkdir()
    report.write_text("of yesterday")
    path = notebook(tmp_path, PARAMETERS, "x = 1", "days = []\nraise ValueError('no such day')")
    with pytest.raises(Refused, match=r"made\.ipynb did not run: cell 3 \(days = \[\]\): ValueError: no such day"):
        write_report(path, report, parameters=[("top", "1")])
    assert {entry.name: entry.read_text() for entry in report.parent.iterdir()} == {"made.html": "of yesterday"}


@pytest.mark.wide
def test_a_service_without_data_is_told_in_a_sentence(tmp_path: Path) -> None:
    """What is missing and what to do, without a cell or a traceback."""
    nothing = "import gamelens as gl\nnow = gl.Interval.parse('2026-11-20/PT0S')"
    path = notebook(tmp_path, PARAMETERS, f"{nothing}\nraise gl.NotYetAvailable('2026-11-01/2026-11-20', now)")
    with pytest.raises(Refused) as refused:
        write_report(path, tmp_path)
    assert str(refused.value) == (
        "made.ipynb has nothing to show: the service has no data yet. Ask again when its first events are processed; "
        "`gamelens simulate` sends events of invented players to a sandbox"
    )
    assert not (tmp_path / "made.html").exists()


@pytest.mark.wide
def test_a_kernel_that_dies_is_told_with_its_cell(tmp_path: Path) -> None:
    """`Refused` names the cell that ran."""
    cell = "os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)"
    path = notebook(tmp_path, PARAMETERS, "import os, signal, time", cell)
    why = f"made.ipynb did not run: cell 3 ({cell}): its kernel died, or was ended by Ctrl-C or a signal"
    with pytest.raises(Refused, match=re.escape(why)):
        write_report(path, tmp_path)
    assert not (tmp_path / "made.html").exists()


@pytest.mark.wide
def test_a_cell_that_a_signal_interrupts_is_told_as_a_signal(tmp_path: Path) -> None:
    """The kernel may report the interrupt before it ends."""
    path = notebook(tmp_path, PARAMETERS, "raise KeyboardInterrupt")
    why = "cell 2 (raise KeyboardInterrupt): its kernel died, or was ended by Ctrl-C or a signal"
    with pytest.raises(Refused, match=re.escape(why)):
        write_report(path, tmp_path)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("cell", ["os.kill(os.getppid(), signal.SIGINT)", "os.kill(os.getppid(), signal.SIGTERM)"])
def test_a_report_that_a_signal_ends_is_told_with_its_cell(tmp_path: Path, cell: str) -> None:
    """Ctrl-C and `kill` end the kernel too, and the message names the cell that ran."""
    path = notebook(tmp_path, PARAMETERS, "import os, signal, time", f"{cell}; time.sleep(60)")
    code = "import sys; from pathlib import Path; from gamelens.notebook.reports.report import write_report\n"
    code += "write_report(*map(Path, sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, path, tmp_path], capture_output=True, text=True, check=False)
    why = f"cell 3 ({cell}; time.sleep(60)): its kernel died, or was ended by Ctrl-C or a signal"
    assert f"Refused: made.ipynb did not run: {why}\n" in done.stderr
    assert not (tmp_path / "made.html").exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_figures_stand_still_and_are_small(tmp_path: Path) -> None:
    """Figures are SVG with an alternative text, and the page has no script."""
    page = write_report(notebook(tmp_path, FIGURE), tmp_path).read_text()
    assert '<figure class="still light" role="img" aria-label="Two bars."><div class="wide"><svg' in page
    assert len(page) < 40_000
    assert "<script" not in page


@pytest.mark.wide
def test_without_a_browser_figures_move_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a browser figures are interactive, and `say` gets the reason."""
    browser = tmp_path / "none"
    monkeypatch.setenv("BROWSER_PATH", str(browser))
    messages: list[str] = []
    page = write_report(notebook(tmp_path, FIGURE), tmp_path, say=messages.append).read_text()
    assert "Plotly.newPlot" in page
    why = f"BROWSER_PATH names {browser}, which is not a program: correct it"
    assert messages == [f"the figures are interactive, and the page larger: {why}"]


@pytest.mark.wide
def test_advice_for_several_reports_comes_once_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing on this machine is one line, not one for each report."""
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    lines: list[str] = []
    path = notebook(tmp_path, FIGURE)
    with advice_at_end(lines.append) as advise:
        for name in ("a", "b"):
            write_report(path, tmp_path / name, say=lines.append, advise=advise)
        assert lines == []
    assert [line.partition(":")[0] for line in lines] == ["the figures are interactive, and the page larger"]


def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path) -> None:
    """A damaged or missing notebook raises `Refused` that names the file."""
    (tmp_path / "a.ipynb").write_text("{]")
    with pytest.raises(Refused, match=r"a\.ipynb is not a notebook"):
        write_report(tmp_path / "a.ipynb", tmp_path)
    with pytest.raises(Refused, match=r"cannot read .*b\.ipynb: No such file"):
        write_report(tmp_path / "b.ipynb", tmp_path)


def test_an_unknown_parameter_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """An unknown parameter raises `BadQuery` before any cell runs."""
    with pytest.raises(BadQuery, match="Did you mean `over`"):
        write_report(notebook(tmp_path, PARAMETERS, "raise"), tmp_path, parameters=[("ovr", "x")])


def test_a_kernel_that_does_not_start_is_told_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel whose process fails raises `Refused` with what it wrote last."""
    folder = tmp_path / "kernels" / "broken"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-c", "raise SystemExit('no ipykernel here')", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "broken", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    document = notebook_of("1")
    document.metadata.kernelspec = {"name": "broken", "display_name": "broken"}
    why = r"made\.ipynb did not run: before its first cell: no ipykernel here: .*Kernel died"
    with pytest.raises(Refused, match=why):
        write_report(write_notebook(document, tmp_path / "made.ipynb"), tmp_path)


def test_a_kernel_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A notebook for a kernel that is not installed raises `Refused` that names the kernel."""
    path = notebook(tmp_path, "1")
    document = read_notebook(path)
    document.metadata.kernelspec = {"name": "julia", "display_name": "Julia"}
    write_notebook(document, path)
    with pytest.raises(Refused, match=r"made\.ipynb needs the kernel julia, which is not installed"):
        write_report(path, tmp_path)
