"""Traces of figures: lines with unfinished ends, and curves and series with bands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
from pandas import DataFrame, Series

from gamelens._scales import Scale
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.notebook.figures.theme import theme, translucent

MOST_LINES: Final = 8
MOST_BANDS: Final = 3
"""Bands that can be told apart where they overlap. The intervals of further curves stand in their text on hover."""
_MARKED_POINTS: Final = 45


def line_traces(
    points: Series[Any], name: str, colour: str | None, unit: Column, partial: set[pd.Timestamp]
) -> Iterator[go.Scatter]:
    """Yield the traces of one series: whole buckets as a line, unfinished ends dotted.

    Args:
        points: values by timestamp.
        name: escaped.
        colour: None draws a pale line without a name, in the background.
        unit: of the values.
        partial: the unfinished buckets. Lines to and from them are dotted.
    """
    known = points.notna()
    whole = points.where(~points.index.isin(list(partial)))
    is_named = colour is not None
    style: dict[str, Any] = {
        "x": points.index,
        "legendgroup": name,
        "line": {"color": colour or theme().pale, "width": 2.25 if is_named else 1},
        "marker": {"size": 5 if known.sum() > 1 else 9},
        "mode": "lines+markers" if is_named and known.sum() <= _MARKED_POINTS else "lines",
        "name": name,
    }
    hover = f"%{{y:{Scale.of(unit.written, points).d3}}}" if is_named else None
    yield go.Scatter(y=whole, showlegend=is_named, hovertemplate=hover, hoverinfo=None if hover else "skip", **style)
    cut = points.index.isin(list(partial))
    near = cut | Series(cut).shift(1, fill_value=False).to_numpy() | Series(cut).shift(-1, fill_value=False).to_numpy()
    if cut.any():
        style |= {"line": {**style["line"], "dash": "dot"}, "mode": "lines" if near.sum() > 1 else "markers"}
        yield go.Scatter(y=points.where(near), showlegend=False, hoverinfo="skip", **style)


def curve_traces(rows: DataFrame, name: str, colour: str, *, has_band: bool) -> Iterator[go.Scatter]:
    """Yield one retention curve, and the band of its confidence interval if it *has_band*."""
    ages = rows["age"].tolist()
    if has_band:
        yield interval_band(rows, name, colour)
    yield go.Scatter(
        x=ages,
        y=rows["retention"],
        mode="lines+markers",
        line={"color": colour, "width": 2.25},
        marker={"size": 6},
        name=name,
        legendgroup=name,
        customdata=rows[["low", "high", "installs"]].astype("float64").to_numpy(),
        hovertemplate="%{y:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%} of %{customdata[2]:,} installs)",
    )


def interval_band(rows: DataFrame, name: str, colour: str) -> go.Scatter:
    """Return the area between `low` and `high` at each age, drawn behind the curve *name*."""
    return go.Scatter(
        x=[*rows["age"], *reversed(rows["age"].tolist())],
        y=[*rows["high"], *reversed(rows["low"].tolist())],
        fill="toself",
        fillcolor=translucent(colour, 0.15),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        legendgroup=name,
        showlegend=False,
    )


def band_traces(rows: DataFrame, colour: str, number: str) -> Iterator[go.Scatter]:
    """Yield one scored series over its usual band, with flagged days as diamonds.

    Args:
        rows: of one series, in order, from `gamelens.analysis.health.score_days`.
        colour: of the line.
        number: d3 format of its values.
    """
    judged = rows[rows["expected"].notna()]
    yield go.Scatter(
        x=[*judged["timestamp"], *reversed(judged["timestamp"].tolist())],
        y=[*judged["high"], *reversed(judged["low"].tolist())],
        fill="toself",
        fillcolor=translucent(theme().muted, 0.16),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
    )
    yield go.Scatter(
        x=rows["timestamp"],
        y=rows["value"],
        mode="lines",
        line={"color": colour, "width": 1.75},
        hovertemplate=f"%{{y:{number}}}<extra></extra>",
    )
    flagged = rows[rows["is_flagged"].fillna(False).astype(bool)]
    yield go.Scatter(
        x=flagged["timestamp"],
        y=flagged["value"],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": theme().alarm, "line": {"color": theme().paper, "width": 1.5}},
        hovertemplate="flagged<extra></extra>",
    )
