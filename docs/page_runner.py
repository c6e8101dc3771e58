"""Runs the code of pages and notebooks in IPython, and returns what each block shows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pandas as pd
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from gamelens.errors import GamelensError
from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.tables.frame_table import show_tables

FIGURE = "application/vnd.plotly.v1+json"
_TABLES = ("display.width", 160, "display.max_columns", None)
_SETTINGS = Config({"HistoryManager": {"enabled": False}})
RECORD, REPLAY, CACHE = "GAMELENS_RECORD", "GAMELENS_REPLAY", "GAMELENS_CACHE_DIR"
ENVIRONMENT = {
    "PLOTLY_RENDERER": "plotly_mimetype",  # figures as JSON
    "XDG_CONFIG_HOME": "/home/ada/.config",  # in messages, whoever builds the site
    "COLUMNS": "100",
    "NO_COLOR": "1",
}
_NOTEBOOK: Final = re.compile(r"\]\((\w+)\.ipynb\)")
_SECTION: Final = re.compile(r"\]\(#(\S+)\)(?=\s|$)")


class Output(NamedTuple):
    """One thing that a block shows."""

    text: str
    """For the Markdown twin, and for the site if there is nothing else."""
    markup: str = ""
    """The same as HTML or Markdown, if there is."""
    figure: Mapping[str, Any] | None = None
    """The same as a plotly figure, if it is one."""


class PageError(Exception):
    """An error when a block of a page fails, or does not fail where it should."""


class PageRunner:
    """One IPython shell, used by one page after the other."""

    def __init__(self) -> None:
        self._main = sys.modules["__main__"]
        self._shell: Any = InteractiveShell.instance(config=_SETTINGS)
        show_tables()

    def close(self) -> None:
        """Give up the shell, after which this process has none, and its own module `__main__` again."""
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = self._main

    @contextmanager
    def page(self, answers: Path, *, is_recording: bool = False) -> Iterator[None]:
        """Run the blocks of one page: with no names, in a folder that has nothing but *answers*, called so.

        Args:
            answers: folder of recorded answers.
            is_recording: whether the service that the environment names is asked, and its answers written there.
        """
        before = dict(os.environ)
        self._shell.reset(new_session=False)
        try:
            with TemporaryDirectory() as folder, chdir(folder), pd.option_context(*_TABLES):
                Path("answers").symlink_to(answers)
                os.environ |= ENVIRONMENT | {
                    RECORD if is_recording else REPLAY: str(answers),
                    CACHE: f"{folder}/.cache",
                }
                yield
        finally:
            os.environ.clear()
            os.environ |= before

    def run(self, code: str, *, raises: bool = False) -> list[Output]:
        """Run one block and return its outputs.

        Args:
            code: Python, with `await` if needed.
            raises: whether it ends in an error of gamelens, whose message is then the last output.

        Raises:
            PageError: it fails, writes to standard error, or does not fail although it should.
        """
        with capture_output() as captured:
            self._shell.display_trap.hook = sys.displayhook  # takes up the value of the last line too
            result = self._shell.run_cell(code)
        error = result.error_in_exec or result.error_before_exec
        if isinstance(error, GamelensError) != raises or (error is not None and not raises):
            raise PageError(f"this block {f'ends in {error!r}' if error else 'raises no error'}:\n{code}") from error
        if captured.stderr:
            raise PageError(f"this block writes to standard error:\n{code}\n{captured.stderr}")
        printed = "" if raises else captured.stdout
        outputs = [Output(printed.rstrip())] if printed.strip() else []
        outputs += [found for it in captured.outputs if (found := _output(it.data)) is not None]
        return [*outputs, Output(f"{type(error).__name__}: {error}")] if error else outputs

    def value(self, expression: str) -> str:
        """Return an expression of prose as text, with a format as in an f-string: `total:,.0f`."""
        try:
            return str(self._shell.ev(f'f"""{{{expression}}}"""'))
        except Exception as error:
            raise PageError(f"{{{{ {expression} }}}} in the text ends in {error!r}") from error


def _slug(heading: str) -> str:
    """Return the place of a section, as the site names it, for the place that JupyterLab names."""
    return re.sub(r"[^\w-]", "", heading.lower())


def _output(data: Mapping[str, Any]) -> Output | None:
    """Return what a browser shows of a MIME bundle, and its text."""
    plain = str(data.get("text/plain", ""))
    if FIGURE in data:
        return Output(f"Figure: {alt_text(data[FIGURE])}", figure=data[FIGURE])
    if "text/markdown" in data:
        text = _NOTEBOOK.sub(r"](\1.md)", str(data["text/markdown"]))
        text = _SECTION.sub(lambda link: f"](#{_slug(link[1])})", text)
        return Output(text, text)
    return Output(plain, str(data.get("text/html", ""))) if plain else None
