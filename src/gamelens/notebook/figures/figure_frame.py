"""What every figure ends with: the theme, a headline, where the numbers come from, and the same in words.

A module that draws a new kind of figure starts from `Figure()`, takes its colours from `colours` and `style.theme`,
lets every name through `labels.escape`, and hands the figure to `finish`.
"""

from __future__ import annotations

import html
from typing import Final

import pandas as pd
import plotly.graph_objects as go
import plotly.io
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.errors import BadQuery
from gamelens.notebook.figures.alt_text import describe_traces, sentences
from gamelens.notebook.figures.captions import headline, source
from gamelens.notebook.figures.theme import THEMES, layout_of, theme
from gamelens.notebook.labels import ColumnUnit, Kind, tick_format
from gamelens.notebook.receipt_text import source_line
from gamelens.wire.receipts import Receipt

NOTHING: Final = "nothing in this interval"
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
    kind: Kind = "number",
    says: str | None = None,
    above: int = 0,
) -> Figure:
    """*figure* in the theme in force, with its headline and the source line of *frame*; all three are plain text.

    Its text alternative (`layout.meta["alt"]`) is made of these and of what it *says*: when that is None, what can be
    read from its traces, whose numbers are of *kind*. So many pixels *above* what is drawn are kept free.
    """
    look, line = theme(), source_line(frame)
    subtitle = subtitle[:1].upper() + subtitle[1:]
    says = describe_traces(figure, kind) if says is None else says
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
    parts = dict.fromkeys((title, subtitle, says or NOTHING.capitalize(), line))
    figure.update_layout(
        template=look.template,
        title_text=headline(title, subtitle),
        meta={"alt": sentences(*parts)},
    )
    return _with_room(figure, above)


def _with_room(figure: Figure, above: int) -> Figure:
    """*figure* so high that nothing stands on the headline on a page 800 pixels wide; what it draws keeps its size."""
    lines = figure.layout.title.text.count("<br>") + 1
    is_on_top = figure.layout.xaxis.side == "top"
    room = 38 + 22 * (lines + _legend_rows(figure)) + 26 * is_on_top + above
    rows = figure.layout.annotations[-1].text.count("<br>")
    height = (figure.layout.height or HEIGHT) + (room - USUAL_ROOM) + 14 * rows
    return figure.update_layout(height=height, margin={"t": room, "b": 72 + 14 * rows})


def _legend_rows(figure: Figure) -> int:
    """In how many rows the legend is broken: as one row, or in columns as wide as its longest name."""
    if figure.layout.showlegend is False:
        return 0
    widths = [56 + 7 * len(html.unescape(it.name)) for it in figure.data if it.name and it.showlegend is not False]
    if len(widths) < 2 and not figure.layout.showlegend:
        return 0
    return 1 if sum(widths) <= _LEGEND_PX else -(-len(widths) // max(1, _LEGEND_PX // max(widths)))


def number_axis(figure: Figure, axis: str, unit: ColumnUnit, largest: float) -> None:
    """Write the numbers along *axis* ("x" or "y") in *unit*, from 0 to about *largest*."""
    top = float(largest) if pd.notna(largest) and largest > 0 else 1.0
    update = figure.update_yaxes if axis == "y" else figure.update_xaxes
    update(tickformat=tick_format(unit.kind, top), rangemode="tozero", nticks=6)


def one_row_each(rows: DataFrame, keys: list[str]) -> DataFrame:
    """*rows*, whose series are called `_name`, if no two have the same *keys*.

    Raises:
        BadQuery: two have; nothing is added up in a figure.
    """
    twice = rows.duplicated(keys)
    if twice.any():
        name = rows.loc[twice, "_name"].iloc[0]
        raise BadQuery("by", name, "has several rows in one bucket: draw by all dimensions, or add them up first")
    return rows


def is_cut(frame: DataFrame) -> bool:
    """Whether rows may be missing from *frame*, so that no row need not mean nothing."""
    return not Receipt.of(frame.attrs).is_complete
