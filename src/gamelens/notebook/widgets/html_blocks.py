"""HTML of widgets: tables, messages and code, with names from outside as text only."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd
from pandas import DataFrame

from gamelens._scales import Scale
from gamelens.analysis.tidy_frames.written_columns import written_columns
from gamelens.errors import AuthError, GamelensError, Refused
from gamelens.notebook.labels import escape, text_of
from gamelens.notebook.tables.table_source import source_html

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Tone = Literal["quiet", "asking", "wrong"]
FIGURE: Final = "application/vnd.plotly.v1+json"
MOST_ROWS: Final = 100
AGAIN: Final = "Your selection is kept: press Ask again when the service is back."
_log: Final = logging.getLogger(__name__)
_UNKNOWN: Final = '<span class="none">n/a</span>'


def pane(inner: str) -> str:
    """Return *inner*, which is HTML, in the style of the widgets."""
    return f'<div class="gamelens-pane">{inner}</div>'


def message(text: str, tone: Tone = "quiet") -> str:
    """Return *text*, which is plain, as a message."""
    role = ' role="alert"' if tone == "wrong" else ' role="status"'
    return pane(f'<div class="{tone}"{role}>{escape(text)}</div>') if text else ""


def code(text: str) -> str:
    """Return *text* as code that one click selects as a whole."""
    # Not labels.escape, which joins several spaces to one: the code must stay runnable.
    return pane(f"<pre>{html.escape(text)}</pre>")


def table(frame: DataFrame, *, most: int = MOST_ROWS, classes: dict[str, str] | None = None) -> str:
    """Return the first rows of *frame* as a table, with its source line if it has a receipt.

    Args:
        frame: any frame.
        most: the number of rows at most.
        classes: for a column, the column that holds the CSS class of its cells.
    """
    shown = frame.head(most)
    numbers = {
        each.name: each.scale()
        for each in written_columns(shown)
        if pd.api.types.is_numeric_dtype(shown.dtypes.iloc[each.place])
    }
    head = "".join(f'<th{_class(str(name) in numbers)} scope="col">{escape(name)}</th>' for name in shown.columns)
    styled = classes or {}
    rows = "".join(
        "<tr>"
        + "".join(_cell(row[name], numbers.get(str(name)), row.get(styled.get(str(name), ""))) for name in row)
        + "</tr>"
        for row in shown.to_dict("records")
    )
    more = f'<div class="quiet">the first {most:,} of {len(frame):,} rows</div>' if len(frame) > most else ""
    label = escape(f"Table: {', '.join(map(str, shown.columns))}")
    cells = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    cells = f'<div class="scroll" role="group" aria-label="{label}" tabindex="0">{cells}</div>'
    return pane(f"{cells}{more}{source_html(frame)}")


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


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: Any, scale: Scale | None, style: Any) -> str:
    """Return *value* as a table cell. *scale* writes numbers, *style* is the CSS class, if it is text."""
    is_null = value is None or value is pd.NaT or value is pd.NA or value != value
    if scale is not None or (isinstance(value, (int, float)) and not is_null):
        written = (scale or Scale.of("number", [value])).text(value)
        return f'<td class="number">{_UNKNOWN if is_null else written}</td>'
    if isinstance(value, datetime) and not is_null:
        return f"<td>{value:%Y-%m-%d}</td>" if _is_midnight(value) else f"<td>{value:%Y-%m-%d %H:%M}</td>"
    name = f' class="{escape(style)}"' if isinstance(style, str) else ' class="none"' if is_null else ""
    return f"<td{name}>{text_of(None if is_null else value)}</td>"


def _is_midnight(moment: datetime) -> bool:
    return (moment.hour, moment.minute) == (0, 0)


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
