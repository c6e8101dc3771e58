"""Fixtures of notebooks run by pytest with nbmake: a sandbox with `small`, and a check of what they print.

With recorded answers in GAMELENS_REPLAY no sandbox is started. A notebook that writes to standard error, as a warning
does, fails, because its reader would see that text. So does one that shows a frame as pandas prints it and not as
`df.lens.table()`, and one whose last section shows nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbmake.nb_result import NotebookError  # type: ignore[import-untyped]
from nbmake.nb_run import NotebookRun  # type: ignore[import-untyped]
from nbmake.pytest_items import NotebookFailedException, NotebookItem  # type: ignore[import-untyped]

from gamelens.local.pytest_plugin import sandbox_for
from support.notebook_files import silent_at_the_end

_of_kernels: dict[str, str] = {}


@contextlib.contextmanager
def _kernel_environment(config: pytest.Config) -> Iterator[None]:
    """Name the sandbox in the environment, but not to the tests that this process runs after."""
    before = dict(os.environ)
    try:
        if "GAMELENS_REPLAY" not in os.environ:
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
        """Execute the notebook as nbmake does and fail at the first complaint."""
        option = self.config.option
        with _kernel_environment(self.config):
            run = NotebookRun(Path(self.filename), option.nbmake_timeout, kernel=option.nbmake_kernel)
            try:
                ran = run.execute()
            except RuntimeError as error:  # a port that was free when it was chosen may be another test's by now
                if "Kernel died before replying" not in str(error):
                    raise
                ran = run.execute()
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
