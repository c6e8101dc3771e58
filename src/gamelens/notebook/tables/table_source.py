"""The source line below a table that a notebook or a widget shows."""

from __future__ import annotations

from typing import Final

from pandas import DataFrame

from gamelens.notebook.escaping import escape
from gamelens.receipt_text import source_line
from gamelens.receipts import Receipt

BADGE: Final = "gamelens-badge"
"""CSS class of the badge beside simulated numbers, by which a report finds it."""
_STYLE: Final = "color: var(--jp-ui-font-color2, GrayText); font-size: 11px"


def source_html(frame: DataFrame) -> str:
    """Return the source line of *frame* as HTML, or "" without a receipt."""
    line = badged(source_line(frame), Receipt.of(frame.attrs).provenance.badge)
    return f'<div class="gamelens-source" style="{_STYLE}">{line}</div>' if line else ""


def badged(line: str, badge: str) -> str:
    """Return a source line as HTML, with its *badge*, if any, in bold."""
    escaped, marked = escape(line), escape(badge)
    return escaped.replace(marked, f'<b class="{BADGE}">{marked}</b>', 1) if badge else escaped
