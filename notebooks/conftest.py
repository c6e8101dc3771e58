"""Fixtures of notebooks run by pytest with nbmake: what answers them, and a check of what they print.

Those of `OF_A_LAKE` get a sandbox with `small`, the others recorded answers; with GAMELENS_RECORD or LIVE_NOTEBOOKS in
the environment all get the sandbox. A notebook that writes to standard error, as a warning does, fails, because its
reader would see that text. So does one that shows a frame as pandas prints it and not as `df.lens.table()`, and one
whose last section shows nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbmake.nb_result import NotebookError  # type: ignore[import-untyped]
from nbmake.pytest_items import NotebookFailedException, NotebookItem  # type: ignore[import-untyped]

from gamelens.local.pytest_plugin import sandbox_for
from support.executed_notebooks import OF_A_LAKE, executed
from support.notebook_files import silent_at_the_end

_of_kernels: dict[str, str] = {}


@contextlib.contextmanager
def _sandbox(config: pytest.Config) -> Iterator[None]:
    """Name the sandbox in the environment, but not to the tests that this process runs after."""
    before = dict(os.environ)
    try:
        sandbox_for(config, scenario="small")  # the first call alone changes the environment
        _of_kernels.update({name: value for name, value in os.environ.items() if before.get(name) != value})
        os.environ.update(_of_kernels)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the items of nbmake by items that check the output as well."""
    items[:] = [_quiet(item) if type(item) is NotebookItem else item for item in items]


class QuietNotebook(NotebookItem):  # type: ignore[misc]
    """A notebook that must run without error, warning or output to standard error."""

    def runtest(self) -> None:
        """Execute the notebook as nbmake does, unless another test did, and fail at the first complaint."""
        name = Path(self.filename).stem
        is_live = name in OF_A_LAKE or not {"GAMELENS_RECORD", "LIVE_NOTEBOOKS"}.isdisjoint(os.environ)
        ran = executed(name, _sandbox(self.config) if is_live else None)
        if ran.error is None:
            ran.error = next(filter(None, map(_complaint, range(len(ran.nb.cells)), ran.nb.cells)), None)
        if ran.error is None and (silent := silent_at_the_end(ran.nb)) is not None:
            ran.error = NotebookError("The last cell shows nothing: end it with its sentences", *silent)
        if ran.error is not None:
            raise NotebookFailedException(ran)


def _quiet(item: NotebookItem) -> QuietNotebook:
    quiet: QuietNotebook = QuietNotebook.from_parent(item.parent, filename=item.filename)
    return quiet


def _complaint(place: int, cell: NotebookNode) -> NotebookError | None:
    """Return the text that cell number *place* wrote to standard error, or its bare frame, as an error."""
    outputs = cell.get("outputs", [])
    text = "".join(
        output.text
        for output in outputs
        if output.output_type == "stream" and (output.name == "stderr" or "Warning: " in output.text)
    )
    if not text.strip() and any(
        'class="dataframe"' in output.get("data", {}).get("text/html", "") for output in outputs
    ):
        text = "A bare frame is shown: end the cell with .lens.table()"
    return NotebookError(text.strip().splitlines()[0], f"{cell.source}\n\n{text}", place) if text.strip() else None
