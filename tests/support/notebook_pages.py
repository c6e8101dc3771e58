"""Notebooks run in the process of the tests, and what they show: without kernel, page and browser."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest
from IPython.utils.capture import capture_output

import gamelens as gl
from gamelens.client.sync_client import Client
from gamelens.notebook.reports.notebook_parameters import inject, read_parameters
from gamelens.notebook.tables.frame_table import FrameTable
from support.notebook_files import read_notebook
from support.notebook_shell import notebook_shell

NOTEBOOKS: Final = Path(__file__).parents[2] / "notebooks"
_NUMBER: Final = re.compile(r"([+-]?)\$?([\d,]+(?:\.\d+)?)(%?)")


class Page:
    """What the cells of a notebook have shown.

    Attributes:
        shown: the objects and printed texts, each with the heading that it stands below.
        names: the variables of the notebook.
        complaint: the error of the cell that failed, or what a cell wrote to standard error; "" if all is well.
    """

    def __init__(self) -> None:
        self.shown: list[tuple[str, Any]] = []
        self.names: dict[str, Any] = {}
        self.complaint = ""

    @cached_property
    def _read(self) -> list[tuple[str, str]]:
        return [(heading, _as_read(each)) for heading, each in self.shown]

    @property
    def text(self) -> str:
        """All sentences and tables, as they are read."""
        return "\n".join(text for _, text in self._read)

    def below(self, heading: str) -> str:
        """Return the sentences and tables below *heading*."""
        return "\n".join(text for own, text in self._read if own == heading)

    def row(self, heading: str, name: str) -> list[str]:
        """Return the cells of the row called *name* of the first table below *heading*, without its bars."""
        table = next(each for own, each in self.shown if own == heading and isinstance(each, FrameTable))
        line = next(line for line in str(table).splitlines() if re.match(rf" *{re.escape(name)}\s\s", line))
        return re.split(r"\s\s+", re.sub("[▏▎▍▌▋▊▉█]+", "  ", line).strip())[1:]

    @property
    def key_numbers(self) -> dict[str, dict[str, str]]:
        """The table of key numbers: the cells of each row, by the name of the number."""
        lines = [line for line in self.below("What to take away").splitlines() if line.startswith("| ")]
        header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}

    @property
    def period(self) -> str:
        """The line above the key numbers."""
        text = self.below("What to take away")
        return text[: text.index("| Number")].strip()


def defaults_of(name: str) -> dict[str, Any]:
    """Return names and defaults of the parameters of the shipped notebook *name*."""
    return read_parameters(NOTEBOOKS / f"{name}.ipynb")


def run_notebook(name: str, parameters: Mapping[str, Any], lens: Client) -> Page:
    """Return what the shipped notebook *name* shows with *parameters*, where `gl.connect` returns *lens*."""
    document, page, heading = read_notebook(NOTEBOOKS / f"{name}.ipynb"), Page(), ""
    inject(document, dict(parameters))
    with pytest.MonkeyPatch.context() as patch, notebook_shell() as shell:
        patch.setattr(gl, "connect", lambda **_: lens)
        shell.user_ns["display"] = lambda *several: page.shown.extend((heading, each) for each in several)
        page.names = shell.user_ns
        for place, cell in enumerate(document.cells, 1):
            if cell.cell_type == "markdown":
                first = cell.source.splitlines()[0]
                heading = first.removeprefix("## ") if first.startswith("## ") else heading
                continue
            with capture_output() as caught:
                run = shell.run_cell(cell.source)
            if error := run.error_before_exec or run.error_in_exec:
                page.complaint = f"{name}, cell {place}: {type(error).__name__}: {error}"
                return page
            if caught.stderr.strip():
                page.complaint = f"{name}, cell {place}: {caught.stderr.strip()}"
            printed = re.sub(r"^Out\[\d+\]:.*", "", caught.stdout, flags=re.DOTALL).strip()
            page.shown += [(heading, printed)] if printed else []
            page.shown += [(heading, run.result)] if run.result is not None else []
    return page


def number_of(text: str) -> tuple[float, float]:
    """Return the number that *text* begins with, a percentage as a share, and half of its last digit."""
    found = _NUMBER.match(text)
    assert found, text
    digits, scale = found[2].replace(",", ""), 100 if found[3] else 1
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    return float(f"{found[1]}{digits}") / scale, half / scale


def is_number(text: str, value: float) -> bool:
    """Return whether *text* begins with *value*, rounded."""
    shown, half = number_of(text)
    return abs(shown - value) <= half * (1 + 1e-6) + 1e-9


def _as_read(shown: Any) -> str:
    """Return the text of something shown: of Markdown without links and markup of names, of a figure the title."""
    if hasattr(shown, "to_plotly_json"):
        shown = shown.layout.title.text or ""
    text = shown.data if hasattr(shown, "data") and isinstance(shown.data, str) else str(shown)
    text = re.sub(r" \[[^]\n]*\]\(#\S*\)$", "", text, flags=re.MULTILINE)
    return html.unescape(re.sub(r"</?(?:span|b|br|i|sup|details|summary)[^>]*>", "", text)).replace("\\", "")
