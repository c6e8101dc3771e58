"""The source line below a table that a notebook or a widget shows."""

from __future__ import annotations

import sys
from typing import Final

from pandas import DataFrame

from gamelens.notebook.labels import escape
from gamelens.notebook.receipt_text import source_line
from gamelens.wire.receipts import Receipt

BADGE: Final = "gamelens-badge"
"""CSS class of the badge beside simulated numbers, by which a report finds it."""
_STYLE: Final = "color: var(--jp-ui-font-color2, GrayText); font-size: 11px"


def source_html(frame: DataFrame) -> str:
    """Return the source line of *frame* as HTML, the badge in bold, or "" without a receipt."""
    line, badge = escape(source_line(frame)), escape(Receipt.of(frame.attrs).provenance.badge)
    if badge:
        line = line.replace(badge, f'<b class="{BADGE}">{badge}</b>', 1)
    return f'<div class="gamelens-source" style="{_STYLE}">{line}</div>' if line else ""


def show_sources() -> None:
    """Let the notebook of this process, if any, show the source line below a frame.

    Formatters of frames that are there already stay.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        if DataFrame not in formatter:
            formatter.for_type(DataFrame, _table_with_source)


def _table_with_source(frame: DataFrame) -> str | None:
    """Return the table that pandas makes, with the source line, or None if it makes none."""
    table: str | None = getattr(frame, "_repr_html_")()  # noqa: B009  (not in the stubs)
    return None if table is None else table + source_html(frame)
