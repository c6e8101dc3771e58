"""What every figure ends with: the theme, a headline, where the numbers come from, and the same in words.

A module that draws a new kind of figure starts from `Figure()`, takes its colours from `colours` and `style.theme`,
lets every name through `labels.escape`, and hands the figure to `finish`.
"""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
import plotly.io
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.frames import RECEIPT
from gamelens.errors import BadQuery
from gamelens.notebook.alternatives import in_words
from gamelens.notebook.captions import headline
from gamelens.notebook.labels import Kind, Unit, escape, plain, tick_format
from gamelens.notebook.receipts import source_line
from gamelens.notebook.style import THEMES, layout_of, theme

NOTHING: Final = "nothing in this interval"

for _look in THEMES.values():
    plotly.io.templates[_look.template] = go.layout.Template(layout=layout_of(_look))


def finish(
    figure: Figure, frame: DataFrame, title: str, subtitle: str, *, kind: Kind = "number", says: str | None = None
) -> Figure:
    """*figure* in the theme in force, with its headline and the source line of *frame*; all three are plain text.

    Its text alternative (`layout.meta["alt"]`) is made of these and of what it *says*: when that is None, what can be
    read from its traces, whose numbers are of *kind*.
    """
    look = theme()
    says = in_words(figure, kind) if says is None else says
    figure.update_layout(template=look.template, title_text=headline(title, subtitle))
    if not len(figure.data) or not len(frame):
        figure.add_annotation(text=NOTHING, showarrow=False, font={"color": look.muted, "size": 14})
    figure.add_annotation(
        text=escape(source_line(frame)),
        font={"color": look.muted, "size": 11},
        showarrow=False,
        align="left",
        **{"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yref": "paper", "yanchor": "top", "yshift": -40},
    )
    parts = (title, subtitle, says or NOTHING, source_line(frame))
    figure.update_layout(meta={"alt": " ".join(f"{plain(part).rstrip('.')}." for part in parts if part)})
    return figure


def number_axis(figure: Figure, axis: str, unit: Unit, largest: float) -> None:
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
    receipt: dict[str, Any] = frame.attrs.get(RECEIPT) or {}
    return bool(receipt.get("truncated") or receipt.get("gaps"))
