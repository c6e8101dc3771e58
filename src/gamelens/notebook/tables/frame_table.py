"""A frame as a table to look at, and what notebooks and reports show for a frame."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pandas import DataFrame, get_option, option_context

from gamelens.errors import suggests_names
from gamelens.notebook.tables.html_layout import html_of_table
from gamelens.notebook.tables.table_contents import contents_of
from gamelens.notebook.tables.table_source import source_html
from gamelens.notebook.tables.text_layout import text_of_table
from gamelens.receipt_text import period_text
from gamelens.wire.intervals import Interval

REPORT: Final = "GAMELENS_REPORT"
"""A kernel that runs for a report has this environment variable."""
MOST_ROWS: Final = 12


@suggests_names
class FrameTable:
    """A frame as a table: HTML in a notebook, text where it is printed, and `mail()`.

    Names from outside are escaped in each of them.
    """

    def __init__(
        self,
        frame: DataFrame,
        *,
        rows: int = MOST_ROWS,
        total: bool = False,
        bars: Sequence[str] = (),
        against: Mapping[str, DataFrame] | None = None,
        history: Mapping[str, DataFrame] | None = None,
    ) -> None:
        self._contents = contents_of(frame, rows=rows, total=total, bars=bars, against=against, history=history)

    def __str__(self) -> str:
        return text_of_table(self._contents)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """Return the table as HTML that follows the theme of its page, light or dark."""
        return html_of_table(self._contents)

    def mail(self) -> str:
        """Return the table as HTML for mail: style attributes only, no style sheet, no picture."""
        return html_of_table(self._contents, is_mail=True)


def show_tables() -> None:
    """Let the notebook of this process, if any, show frames as such tables.

    Intervals are shown in words. Reports and the documentation do so.
    """
    if (formatter := _html_formatter()) is not None:
        formatter.for_type(DataFrame, lambda frame: FrameTable(frame).html())
        formatter.for_type(Interval, lambda interval: f"<p>{period_text(interval)}</p>")


def show_sources() -> None:
    """Let the notebook of this process, if any, show the source line below a frame.

    Formatters of frames that are there already stay.
    """
    formatter = _html_formatter()
    if formatter is not None and DataFrame not in formatter:
        formatter.for_type(DataFrame, _frame_with_source)


def _html_formatter() -> Any:
    """Return the formatter of this process's notebook, or None outside of one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return None if shell is None else shell.display_formatter.formatters["text/html"]


def _frame_with_source(frame: DataFrame) -> str | None:
    """Return the table that pandas makes, with the source line, or None if it makes none.

    Names come from outside, and JupyterLab's MathJax would read two dollar signs of a table as a formula.
    """
    source = source_html(frame)
    with option_context("display.html.use_mathjax", get_option("display.html.use_mathjax") and not source):
        table: str | None = getattr(frame, "_repr_html_")()  # noqa: B009  (not in the stubs)
    return None if table is None else table + source
