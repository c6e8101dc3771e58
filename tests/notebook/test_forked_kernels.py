"""Kernels that are forked from one process: as new as others, and sooner there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelens.errors import Refused
from gamelens.notebook.reports.forked_kernels import forked_kernels
from gamelens.notebook.reports.report import write_report
from support.notebook_files import code_cell, notebook_of, write_notebook

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")]


@pytest.fixture(scope="module", autouse=True)
def block() -> Iterator[None]:
    """The block whose kernels are forked."""
    with forked_kernels(["decimal"]):
        yield


def report(folder: Path, *cells: str, name: str = "made", environment: dict[str, str] | None = None) -> str:
    """Return the page of a notebook of *cells*."""
    notebook = write_notebook(notebook_of(code_cell("top = 3", is_parameters=True), *cells), folder / f"{name}.ipynb")
    return write_report(notebook, folder, environment=environment).read_text()


def test_a_forked_kernel_has_its_modules_its_folder_and_what_is_added(tmp_path: Path) -> None:
    """What was named is imported already; folder and environment are those of the report, and it leads its group."""
    page = report(
        tmp_path,
        "import sys; print('imported' if 'decimal' in sys.modules else 'missing', 'plotly.io' in sys.modules)",
        "import os; print('in', os.getcwd(), os.environ['ADDED'])",
        "import multiprocessing as m; print('forked', m.parent_process() is not None, os.getpgid(0) == os.getpid())",
        environment={"ADDED": "ours"},
    )
    assert "imported True" in page
    assert f"in {tmp_path} ours" in page
    assert "forked True True" in page


def test_a_forked_kernel_knows_nothing_of_another(tmp_path: Path) -> None:
    """Neither names nor modules nor the environment that the one before set."""
    report(tmp_path, "import os, decimal; os.environ['LEFT'] = 'x'; decimal.left = left = 1; print(left)", name="first")
    page = report(
        tmp_path, "import os, decimal; print('LEFT' in os.environ, hasattr(decimal, 'left'), 'left' in dir())"
    )
    assert "False False False" in page


def test_what_a_forked_kernel_registers_for_its_end_is_done(tmp_path: Path) -> None:
    """As what holds a file or a process of its own does."""
    report(tmp_path, "import atexit, pathlib; atexit.register(pathlib.Path('ended').touch); print('registered')")
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)", "os.killpg(0, 15)"])
def test_a_forked_kernel_that_ends_is_named_with_its_cell_and_alone(tmp_path: Path, end: str) -> None:
    """The signal to its group reaches neither this process nor the one that is forked, which forks the next."""
    with pytest.raises(Refused, match=r"cell 2 \(import os.*its kernel died"):
        report(tmp_path, f"import os; {end}")
    assert "42" in report(tmp_path, "print(6 * 7)", name="next")


def test_an_error_of_a_cell_ends_the_forked_kernel(tmp_path: Path) -> None:
    """And is told as that of another kernel."""
    with pytest.raises(Refused, match="ZeroDivisionError"):
        report(tmp_path, "import os, pathlib; pathlib.Path('pid').write_text(str(os.getpid()))", "1 / 0")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
