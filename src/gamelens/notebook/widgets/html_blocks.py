"""HTML of widgets: tables, messages and code, with names from outside as text only."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pandas import DataFrame

from gamelens.errors import AuthError, GamelensError, Refused
from gamelens.notebook.escaping import escape
from gamelens.notebook.tables.html_layout import html_of_table
from gamelens.notebook.tables.table_contents import contents_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Tone = Literal["quiet", "asking", "wrong"]
FIGURE: Final = "application/vnd.plotly.v1+json"
MOST_ROWS: Final = 100
AGAIN: Final = "Your selection is kept: press Ask again when the service is back."
_log: Final = logging.getLogger(__name__)


def pane(inner: str) -> str:
    """Return *inner*, which is HTML, in the style of the widgets."""
    return f'<div class="gamelens-pane">{inner}</div>'


def message(text: str, tone: Tone = "quiet") -> str:
    """Return *text*, which is plain, as a message."""
    role = ' role="alert"' if tone == "wrong" else ' role="status"'
    return pane(f'<div class="{tone}"{role}>{escape(text)}</div>') if text else ""


def code(text: str) -> str:
    """Return *text* as code that one click selects as a whole."""
    # Not escaping.escape, which joins several spaces to one: the code must stay runnable.
    return pane(f"<pre>{html.escape(text)}</pre>")


def table(frame: DataFrame, *, most: int = MOST_ROWS, tones: str = "") -> str:
    """Return the first rows of *frame* as a table, with its source line if it has a receipt.

    Args:
        frame: any frame.
        most: the number of rows at most.
        tones: the heading of a column whose cells are tones, such as severities.
    """
    return pane(html_of_table(contents_of(frame, rows=most, total=False, bars=()), tones=tones))


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return *figure* as the MIME bundle that a front end draws."""
    from plotly import io

    drawn: dict[str, Any] = json.loads(io.to_json(figure, validate=False))
    return {FIGURE: {**drawn, "config": {"displaylogo": False}}}


def outputs_of(figures: Sequence[Figure]) -> tuple[dict[str, Any], ...]:
    """Return *figures* as the `outputs` of an Output widget.

    Set as a whole, they can be assigned from any thread, with or without a kernel.
    """
    return tuple({"output_type": "display_data", "data": figure_data(figure), "metadata": {}} for figure in figures)


def error_text(error: Exception, *, then: str = AGAIN) -> str:
    """Return what went wrong and what to do about it, in plain text.

    Args:
        error: any exception.
        then: advice for a service that may work again later.
    """
    if not isinstance(error, GamelensError):
        _log.debug("unexpected in a widget", exc_info=error)
        return f"Something went wrong inside gamelens ({type(error).__name__}). Try something else, or ask again."
    text = str(error).rstrip(".")
    if isinstance(error, AuthError):
        return f"{text}. `gamelens doctor` says which key is used."
    return f"{text}. {'Try something else.' if isinstance(error, Refused) else then}"
