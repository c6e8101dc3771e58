"""The last step of every figure: theme, headline, source line and alternative text.

To draw a new kind of figure, start from `Figure()`, take colours from `colours` and `theme.theme`, pass every name
through `escaping.escape`, and hand the figure to `finish`.
"""

from __future__ import annotations

import html
from typing import Final

import pandas as pd
import plotly.graph_objects as go
import plotly.io
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens._scales import NumberKind, Scale
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.errors import BadQuery
from gamelens.notebook.figures.alt_text import as_sentences, describe_traces
from gamelens.notebook.figures.captions import headline, source
from gamelens.notebook.figures.theme import THEMES, layout_of, theme
from gamelens.receipt_text import source_line
from gamelens.receipts import Receipt

NOTHING: Final = "no data in this interval"
HEIGHT: Final = 420
USUAL_ROOM: Final = 104
_LEGEND_PX: Final = 690

for _look in THEMES.values():
    plotly.io.templates[_look.template] = go.layout.Template(layout=layout_of(_look))


def finish(
    figure: Figure,
    frame: DataFrame,
    title: str,
    subtitle: str,
    *,
    kind: NumberKind = "number",
    alt: str | None = None,
    above: int = 0,
) -> Figure:
    """Add theme, headline, source line and alternative text to *figure*, and return it.

    A figure without data shows a short message instead of axes.

    Args:
        figure: the drawn figure.
        frame: the drawn frame. Its receipt gives the source line.
        title: plain text.
        subtitle: plain text.
        kind: how the numbers of the traces are written in the alternative text.
        alt: the content for the alternative text (`layout.meta["alt"]`). None describes the traces.
        above: height in pixels that stays free above the drawing, for panel headings.
    """
    look, line, receipt = theme(), source_line(frame), Receipt.of(frame.attrs)
    subtitle = subtitle[:1].upper() + subtitle[1:]
    alt = describe_traces(figure, kind, receipt.asked.every) if alt is None else alt
    if not len(figure.data) or not len(frame):
        middle = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        figure.add_annotation(text=NOTHING, showarrow=False, font={"color": look.muted, "size": 14}, **middle)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    figure.add_annotation(
        text=source(line),
        font={"color": look.muted, "size": 11},
        showarrow=False,
        align="left",
        **{"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yref": "paper", "yanchor": "top", "yshift": -40},
    )
    parts = dict.fromkeys((title, subtitle, alt or NOTHING.capitalize(), line))
    badge = receipt.provenance.badge
    figure.update_layout(
        template=look.template,
        title_text=headline(title, subtitle),
        meta={"alt": as_sentences(*parts)} | ({"badge": badge} if badge else {}),
    )
    return _with_room(figure, above)


def _with_room(figure: Figure, above: int) -> Figure:
    """Set height and margins so that nothing covers the headline on a page 800 pixels wide.

    The figure grows by what headline and legend need, so the drawing keeps its size.
    """
    lines = figure.layout.title.text.count("<br>") + 1
    is_on_top = figure.layout.xaxis.side == "top"
    legend_rows = _legend_rows(figure)
    room = 38 + 22 * (lines + legend_rows) + 26 * is_on_top + above
    rows = figure.layout.annotations[-1].text.count("<br>")
    height = (figure.layout.height or HEIGHT) + (room - USUAL_ROOM) + 14 * rows
    if legend_rows:  # on a narrower page it scrolls, and does not grow over the headline
        figure.update_layout(legend={"maxheight": 22 * legend_rows + 4})
    return figure.update_layout(height=height, margin={"t": room, "b": 72 + 14 * rows})


def _legend_rows(figure: Figure) -> int:
    """Return the number of rows that plotly breaks the legend into."""
    if figure.layout.showlegend is False:
        return 0
    widths = [
        56 + 7 * len(html.unescape(trace.name)) for trace in figure.data if trace.name and trace.showlegend is not False
    ]
    if len(widths) < 2 and not figure.layout.showlegend:
        return 0
    return 1 if sum(widths) <= _LEGEND_PX else -(-len(widths) // max(1, _LEGEND_PX // max(widths)))


def number_axis(figure: Figure, axis: str, unit: Column, largest: float) -> None:
    """Format the numbers of *axis* ("x" or "y") in *unit*, from 0 to about *largest*."""
    top = float(largest) if pd.notna(largest) and largest > 0 else 1.0
    update = figure.update_yaxes if axis == "y" else figure.update_xaxes
    update(tickformat=Scale.of_axis(unit.written, top).d3, rangemode="tozero", nticks=6)


def one_row_each(rows: DataFrame, keys: list[str]) -> DataFrame:
    """Return *rows* if no two have the same *keys*. `_name` is the name of the series.

    Raises:
        BadQuery: two rows do. A figure never adds them up.
    """
    twice = rows.duplicated(keys)
    if twice.any():
        name = rows.loc[twice, "_name"].iloc[0]
        raise BadQuery("by", name, "has several rows in one bucket: draw by all dimensions, or add them up first")
    return rows


def is_cut(frame: DataFrame) -> bool:
    """Return whether rows may be missing from *frame*, so that a missing row need not mean 0."""
    return not Receipt.of(frame.attrs).is_complete
