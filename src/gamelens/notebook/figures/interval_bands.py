"""Bands around curves and series: the confidence interval of a curve, and the usual range of a scored series."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

import plotly.graph_objects as go
from pandas import DataFrame, Series, Timedelta

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
    fill = translucent(colour, 0.15)
    return _area(rows["age"], rows["low"], rows["high"], fill).update(legendgroup=name, showlegend=False)


def band_traces(rows: DataFrame, colour: str, number: str) -> Iterator[go.Scatter]:
    """Yield the days of one scored series over their usual band, with flagged days as diamonds.

    What several days together show is not a day's: an incident that its last day reads off a window is a thick line at
    the level of the window, over the narrower band of such levels.

    Args:
        rows: of one series, in order, from `gamelens.analysis.health.score_days`.
        colour: of the line.
        number: d3 format of its values.
    """
    is_day = rows["window_days"].fillna(1) == 1
    levels = list(flagged_levels(rows))
    of_levels = rows["timestamp"].isin([day for _, window in levels for day in window])
    judged = rows[rows["expected"].notna() & is_day & ~of_levels]
    usual = translucent(theme().muted, 0.16)
    yield _area(judged["timestamp"], judged["low"], judged["high"], usual)
    for row, window in levels:
        yield _area(window, [row["low"]] * len(window), [row["high"]] * len(window), usual)
    yield go.Scatter(
        x=rows["timestamp"],
        y=rows["value"].where(is_day, rows["part"] / rows["whole"]),
        mode="lines",
        line={"color": colour, "width": 1.75},
        hovertemplate=f"%{{y:{number}}}<extra></extra>",
    )
    for row, window in levels:
        yield go.Scatter(
            x=window,
            y=[row["value"]] * len(window),
            mode="lines",
            line={"color": theme().alarm, "width": 4},
            hovertemplate=f"%{{y:{number}}} over {len(window)} days, flagged<extra></extra>",
        )
    days = rows[flags_of(rows) & is_day & ~of_levels]
    yield go.Scatter(
        x=days["timestamp"],
        y=days["value"],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": theme().alarm, "line": {"color": theme().paper, "width": 1.5}},
        hovertemplate="flagged<extra></extra>",
    )


def flagged_levels(rows: DataFrame) -> Iterator[tuple[dict[Hashable, Any], Series]]:
    """Yield the last flagged row of each incident of a series that a window of days shows, and the days of that window.

    *rows* are of one series, in order, from `gamelens.analysis.health.score_days`.
    """
    flagged = rows[flags_of(rows)]
    newest = flagged.drop_duplicates("since", keep="last")
    for row in newest[newest["window_days"] > 1].to_dict("records"):
        first = row["timestamp"] - Timedelta(days=int(row["window_days"]) - 1)
        yield row, rows["timestamp"][rows["timestamp"].between(first, row["timestamp"])]


def flags_of(scores: DataFrame) -> Series[bool]:
    """Return which days of a scored board are flagged; one without a score is not."""
    return scores["is_flagged"].fillna(False).astype(bool)


def _area(places: Iterable[Any], low: Iterable[float], high: Iterable[float], fill: str) -> go.Scatter:
    """Return the area between *low* and *high* at each of *places*."""
    places = [*places]
    return go.Scatter(
        x=[*places, *reversed(places)],
        y=[*high, *reversed([*low])],
        fill="toself",
        fillcolor=fill,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
    )
