"""A notebook as a page: what needs a kernel or the network is not in it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from gamelens.errors import Refused
from gamelens.notebook.reports import write_report

pytestmark = pytest.mark.slow


def notebook(folder: Path, *cells: str) -> Path:
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(document, folder / "made.ipynb")
    return folder / "made.ipynb"


def test_a_bar_of_progress_leaves_nothing_to_fetch(tmp_path: Path) -> None:
    made = notebook(tmp_path, "import ipywidgets\nipywidgets.IntProgress()", "print('the number is 7')")
    page = write_report(made, tmp_path / "out", environment={}).read_text()
    assert ("unpkg.com" in page, "widget-view" in page, "the number is 7" in page) == (False, False, True)


def test_a_cell_that_fails_names_the_error(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"made\.ipynb did not run: ValueError: no such day"):
        write_report(notebook(tmp_path, "raise ValueError('no such day')"), tmp_path / "out", environment={})
