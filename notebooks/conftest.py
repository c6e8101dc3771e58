"""What the notebooks need when pytest runs them with nbmake: a sandbox with the `small` scenario, and a strict reader.

Where GAMELENS_REPLAY names recorded answers they need no sandbox. A notebook that writes to standard error, as a
warning does, fails: its reader would see that.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nbmake.nb_result import NotebookError
from nbmake.nb_run import NotebookRun
from nbmake.pytest_items import NotebookFailedException, NotebookItem

from gamelens.local.pytest_plugin import sandbox_for


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let every kernel find a sandbox as it would find the real service."""
    if "GAMELENS_REPLAY" not in os.environ:
        sandbox_for(item.config, scenario="small")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Read what nbmake's notebooks print as well."""
    items[:] = [_quiet(item) if type(item) is NotebookItem else item for item in items]


class QuietNotebook(NotebookItem):
    """A notebook that must run, and complain of nothing."""

    def runtest(self) -> None:
        """Run it as nbmake does, and read what it printed."""
        option = self.config.option
        ran = NotebookRun(Path(self.filename), option.nbmake_timeout, kernel=option.nbmake_kernel).execute()
        if ran.error is None:
            ran.error = next(filter(None, map(_complaint, range(len(ran.nb.cells)), ran.nb.cells)), None)
        if ran.error is not None:
            raise NotebookFailedException(ran)


def _quiet(item: NotebookItem) -> QuietNotebook:
    return QuietNotebook.from_parent(item.parent, filename=item.filename)


def _complaint(place: int, cell: dict) -> NotebookError | None:
    said = "".join(
        output.text
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and (output.name == "stderr" or "Warning: " in output.text)
    )
    return NotebookError(said.strip().splitlines()[0], f"{cell.source}\n\n{said}", place) if said.strip() else None
