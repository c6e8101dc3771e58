"""Retention figures: cohorts as a heatmap, averages as curves with their intervals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.tidy_frames.columns import column_named
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.notebook.escaping import escape, text_of
from gamelens.notebook.figures.captions import words_by
from gamelens.notebook.figures.colours import MOST_LINES, colours_of
from gamelens.notebook.figures.figure_frame import finish, number_axis
from gamelens.notebook.figures.interval_bands import MOST_BANDS, curve_traces
from gamelens.notebook.figures.theme import scale, theme
from gamelens.notebook.labels import shorten
from gamelens.receipt_text import day_text

MOST_ROWS: Final = 62
_ROW_PX: Final = 20
_FLATTEST_PX: Final = 3


def draw_cohorts(matrix: DataFrame, *, title: str | None = None) -> Figure:
    """Draw a cohort matrix as a heatmap, the oldest install day on top.

    Days that have not come yet are blank.

    Args:
        matrix: shares by install day (rows) and age (columns), from `df.lens.matrix()`.
        title: None is a default title.
    """
    days = [" · ".join(map(_part, row if isinstance(row, tuple) else (row,))) for row in matrix.index]
    shares, places = matrix.astype("float64"), [*range(len(days))]  # not the names: two of them may look the same
    step = -(-len(days) // MOST_ROWS) or 1  # of many days only some are named, and all are flatter
    row_px = _ROW_PX if step == 1 else max(_FLATTEST_PX, _ROW_PX * MOST_ROWS // len(days))
    figure = Figure(
        go.Heatmap(
            z=shares.to_numpy(),
            x=[f"D{age}" for age in matrix.columns],
            y=places,
            customdata=[[day] * shares.shape[1] for day in days],
            colorscale=scale(theme().sequential),
            zmin=0,
            zmax=_darkest(shares),
            xgap=2,
            ygap=2 if step == 1 else 0,
            hoverongaps=False,
            hovertemplate="installed %{customdata}, %{x}: %{z:.1%}<extra></extra>",
            texttemplate="%{z:.0%}" if shares.shape[1] <= 20 and step == 1 else None,
            textfont={"size": 11, "color": theme().ink},
            colorbar={
                "tickformat": ".0%",
                "thickness": 10,
                "outlinewidth": 0,
                **{"len": 140, "lenmode": "pixels", "y": 1, "yanchor": "top", "nticks": 5},
            },
        )
    )
    figure.update_layout(hovermode="closest", height=192 + row_px * max(6, len(days)))
    figure.update_xaxes(type="category", side="top", showline=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, tickvals=places[::step], ticktext=days[::step])
    words = "share of a day's new players, by days since install"
    return finish(figure, matrix, title or "Who came back", words)


def draw_curve(curve: DataFrame, *, by: str | None = None, title: str | None = None) -> Figure:
    """Draw retention by age with its interval as a band, one curve for each value of *by*.

    Of more than three curves those with the most installs have a band; the text on hover has the interval of each.

    Args:
        curve: the frame of `gamelens.analysis.retention.average_curve`.
        by: a dimension. None means all dimensions of the frame.
        title: None is a default title.
    """
    names = series_names(curve, by)
    order = curve.assign(_name=names).groupby("_name")["installs"].max().sort_values(ascending=False).index.tolist()
    colours, figure = colours_of(curve, by, order[:MOST_LINES]), Figure()
    for name in order[:MOST_LINES]:
        rows = curve[names == name].sort_values("age").astype({"age": "float64", "retention": "float64"})
        for trace in curve_traces(rows, escape(shorten(name)), colours[name], has_band=name in order[:MOST_BANDS]):
            figure.add_trace(trace)
    ages = sorted(int(age) for age in curve["age"].unique())
    figure.update_layout(showlegend=len(order) > 1)
    figure.update_xaxes(tickvals=ages, ticktext=[f"D{age}" for age in ages])
    number_axis(figure, "y", column_named("retention"), curve["high"].max() if len(curve) else 1)
    by_what = f" by {words_by(curve, by)}" if len(order) > 1 else ""
    words = "share of new players active on a day, 95% interval"
    words += f" of the largest {MOST_BANDS}" if len(order) > MOST_BANDS else ""
    words += f", largest {MOST_LINES} of {len(order)}" if len(order) > MOST_LINES else ""
    return finish(figure, curve, title or f"Retention{by_what}", words, kind="share")


def _darkest(shares: DataFrame) -> float:
    """Return the share that gets the darkest colour.

    Few cells exceed it, so a single high share of a small cohort does not make all others look pale.
    """
    cells = shares.to_numpy(dtype="float64")
    known = cells[~np.isnan(cells)]
    return max(float(np.quantile(known, 0.98)), 0.01) if len(known) else 1.0


def _part(part: Any) -> str:
    return day_text(part) if isinstance(part, pd.Timestamp) else text_of(part if pd.isna(part) else shorten(str(part)))
