"""What every figure ends with: the theme, a headline, and where the numbers come from.

A module that draws a new kind of figure takes its colours from `style.theme`, lets every name through
`labels.escape`, and hands the figure to `finish`.
"""

from __future__ import annotations

from typing import Final

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.notebook.captions import headline
from gamelens.notebook.labels import Kind, Unit, escape, tick_format
from gamelens.notebook.receipts import source_line
from gamelens.notebook.style import template, theme

NOTHING: Final = "nothing in this interval"


def finish(
    figure: Figure, frame: DataFrame, title: str, subtitle: str, *, kind: Kind = "number", says: str | None = None
) -> Figure:
    """*figure* with its headline and the source line of *frame*; all three are plain text.

    What it *says* in words, or the *kind* of its numbers, becomes its text alternative.
    """
    look = theme()
    figure.update_layout(template=template(), title_text=headline(title, subtitle))
    if not len(figure.data) or not len(frame):
        figure.add_annotation(text=NOTHING, showarrow=False, font={"color": look.muted, "size": 14})
    figure.add_annotation(
        text=escape(source_line(frame)),
        font={"color": look.muted, "size": 11},
        showarrow=False,
        align="left",
        **{"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yref": "paper", "yanchor": "top", "yshift": -40},
    )
    figure.update_layout(meta={"alt": escape(f"{title}. {subtitle}. {says or kind}")})
    return figure


def number_axis(figure: Figure, axis: str, unit: Unit, largest: float) -> None:
    """Write the numbers along *axis* ("x" or "y") in *unit*, from 0 to about *largest*."""
    top = float(largest) if pd.notna(largest) and largest > 0 else 1.0
    update = figure.update_yaxes if axis == "y" else figure.update_xaxes
    update(tickformat=tick_format(unit.kind, top), rangemode="tozero", nticks=6)
