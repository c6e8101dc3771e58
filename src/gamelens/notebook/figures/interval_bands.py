"""Bands around curves and series: the confidence interval of a curve, and the usual range of a scored series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import plotly.graph_objects as go
from pandas import DataFrame

from gamelens.notebook.figures.theme import theme, translucent

MOST_BANDS: Final = 3
"""Bands that can be told apart where they overlap. The intervals of further curves stand in their text on hover."""


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
