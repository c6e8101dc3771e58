"""The shipped notebooks, each executed once in a run of the tests. What is said of their pages is read from that."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import nbformat
import pytest
from nbmake.nb_result import NotebookResult  # type: ignore[import-untyped]
from nbmake.nb_run import NotebookRun  # type: ignore[import-untyped]

from gamelens.notebook.reports.html_page import page_of
from gamelens.notebook.reports.notebook_parameters import parameters_of
from support.shared_by_workers import made_once

ROOT: Final = Path(__file__).parents[2]
NOTEBOOKS: Final = ROOT / "notebooks"
RECORDED: Final = ROOT / "data" / "recorded"
OF_A_LAKE: Final = ("06_raw_events", "07_why_numbers_differ")
"""The notebooks about a lake, which no recording has."""
_DEADLINE_S: Final = 300


@contextmanager
def recorded_answers() -> Iterator[None]:
    """Let kernels that are started meanwhile answer from the recording."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GAMELENS_REPLAY", str(RECORDED))
        yield


def executed(name: str, where: AbstractContextManager[None] | None = None) -> NotebookResult:
    """Return the shipped notebook *name* as it was executed, with its error if it has one.

    Args:
        name: such as `02_retention`.
        where: the context that its kernel is started in, by default that of recorded answers.
    """

    def execute(path: Path) -> None:
        run = NotebookRun(NOTEBOOKS / f"{name}.ipynb", _DEADLINE_S)
        with where or recorded_answers():
            try:
                ran = run.execute()
            except RuntimeError as error:  # a port that was free when it was chosen may be another test's by now
                if "Kernel died before replying" not in str(error):
                    raise
                ran = run.execute()
        path.write_bytes(pickle.dumps((nbformat.writes(ran.nb), ran.error)))  # type: ignore[no-untyped-call]

    text, error = pickle.loads(made_once(f"{name}.executed", execute).read_bytes())
    return NotebookResult(nbformat.reads(text, as_version=4), error)  # type: ignore[no-untyped-call]


def report_of(name: str, folder: Path, *, is_interactive: bool = False) -> Path:
    """Write the report of the shipped notebook *name* on recorded answers to *folder*, and return its path."""
    ran = executed(name)
    assert ran.error is None, ran.error
    page = page_of(
        ran.nb,
        name=f"{name}.ipynb",
        is_interactive=is_interactive,
        parameters=parameters_of(ran.nb),
        made_at=datetime.now(UTC),
    )
    path = folder / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    return path
