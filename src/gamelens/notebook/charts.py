"""Figures: every `draw_` function takes a frame and answers a plotly Figure.

Each has a title, its unit in the subtitle, one colour a game, and a line below that says where the numbers come from
and as of when. Names from outside are escaped; a null is "(unknown)". Nothing is fetched: the page that shows a figure
brings plotly with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from pandas import DataFrame
from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from gamelens.analysis.frames import UNKNOWN, label_columns, series_names
from gamelens.errors import BadQuery
from gamelens.notebook.captions import every_of, headline, main_value, title_of, unit_in, words_by, words_per_bucket
from gamelens.notebook.labels import Unit, escape, hover_format, name_of, readable, shorten, tick_format, unit_of
from gamelens.notebook.receipts import source_line, unfinished
from gamelens.notebook.style import GAME_COLOURS, MUTED, PALE, PALETTE, SEQUENTIAL, template
from gamelens.notebook.traces import MOST_LINES, band_traces, curve_traces, line_traces

MOST_BARS: Final = 20
MOST_PANELS: Final = 24


def draw_lines(
    frame: DataFrame, value: str | None = None, *, by: str | Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """*value* over time, a line for each value of *by*; buckets that are not finished are dashed.

    The largest eight have a colour and a name, the others stay pale behind them.

    Raises:
        BadQuery: a value of *by* has several rows in one bucket; nothing is added up here.
    """
    value = value or main_value(frame)
    unit, names = unit_in(frame, value), series_names(frame, by)
    rows = _one_row_each(frame.assign(_name=names), ["timestamp", "_name"])
    table = rows.pivot(index="timestamp", columns="_name", values=value)
    table = table.astype("float64").where(table.notna(), 0.0 if unit.is_sum and not _is_cut(frame) else float("nan"))
    order = table.sum().sort_values(ascending=False).index.tolist()
    figure, colours, partial = Figure(), _colours(frame, by, order), unfinished(frame)
    for place in reversed(range(len(order))):
        points = table[order[place]]
        for trace in line_traces(points, escape(shorten(order[place])), colours[order[place]], unit, partial, place):
            figure.add_trace(trace)
    figure.update_layout(showlegend=len(order) > 1, legend_traceorder="reversed")
    _number_axis(figure, "y", unit, table.max().max() if len(table) else 1)
    dated = [*table.index] if len(table) <= 8 else None
    figure.update_xaxes(tickformat="%-d %b", tickvals=dated, hoverformat="%a %-d %b %Y")
    more = f", largest {MOST_LINES} of {len(order)} named" if len(order) > MOST_LINES else ""
    more += ", dotted: not a whole " + escape(every_of(frame)) if partial else ""
    return _finish(figure, frame, title or title_of(frame, value, by), f"{words_per_bucket(frame, unit)}{more}")


def draw_bars(
    frame: DataFrame,
    value: str | Sequence[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    title: str | None = None,
    is_sorted: bool = True,
) -> Figure:
    """*value* for each value of *by*, largest on top; several values are stacked. One bucket of time only.

    Raises:
        BadQuery: the frame has several buckets, or several rows for one bar; nothing is added up here.
    """
    if "timestamp" in frame and frame["timestamp"].nunique() > 1:
        raise BadQuery("frame", f"{frame['timestamp'].nunique()} buckets", "must hold one: ask with every='all'")
    values = [value or main_value(frame)] if value is None or isinstance(value, str) else list(value)
    unit = unit_in(frame, values[0])
    bars = frame.assign(_name=series_names(frame, by))[["_name", *values]].astype(dict.fromkeys(values, "float64"))
    bars = _one_row_each(bars, ["_name"])
    bars["_size"] = bars[values].sum(axis=1)
    bars = bars.sort_values("_size", ascending=False, kind="stable") if is_sorted else bars
    shown, largest = bars.head(MOST_BARS).iloc[::-1], bars["_size"].max() if len(bars) else 1
    colours = _colours(frame, by, list(shown["_name"]))
    is_game = _is_game(label_columns(frame) if by is None else by)
    figure = Figure()
    for place, name in enumerate(values):
        own = [colours[bar] if is_game else PALE if bar == UNKNOWN else PALETTE[0] for bar in shown["_name"]]
        figure.add_bar(
            x=shown[name],
            y=[escape(bar) for bar in shown["_name"]],
            orientation="h",
            name=escape(name_of(name)),
            marker={"color": own if len(values) == 1 else PALETTE[place], "cornerradius": 2},
            text=[readable(number, unit.kind) for number in shown[name]] if len(values) == 1 else None,
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"%{{y}}: %{{x:{hover_format(unit.kind, largest)}}}<extra>{escape(name_of(name))}</extra>",
        )
    figure.update_layout(
        barmode="stack", bargap=0.35, showlegend=len(values) > 1, hovermode="closest", legend_traceorder="normal"
    )
    figure.update_layout(height=max(220, 176 + 30 * max(1, len(shown))))
    _number_axis(figure, "x", unit, largest)
    figure.update_xaxes(showgrid=True, showline=False)
    names = list(dict.fromkeys(shown["_name"]))
    figure.update_yaxes(type="category", showgrid=False, tickvals=[escape(name) for name in names])
    figure.update_yaxes(ticktext=[escape(shorten(name)) for name in names])
    more = f", largest {MOST_BARS} of {len(bars)}" if len(bars) > MOST_BARS else ""
    return _finish(figure, frame, title or title_of(frame, values[0], by), f"{unit.words}{more}")


def draw_cohorts(matrix: DataFrame, *, title: str | None = None) -> Figure:
    """A cohort matrix as a heatmap: oldest install day on top, blank where the day has not come."""
    days = [
        " · ".join(_day_or_name(part) for part in (row if isinstance(row, tuple) else (row,))) for row in matrix.index
    ]
    shares = matrix.astype("float64")
    figure = Figure(
        go.Heatmap(
            z=shares.to_numpy(),
            x=[f"D{age}" for age in matrix.columns],
            y=days,
            colorscale=[list(step) for step in SEQUENTIAL],
            zmin=0,
            zmax=_darkest(shares),
            xgap=2,
            ygap=2,
            hoverongaps=False,
            hovertemplate="installed %{y}, %{x}: %{z:.1%}<extra></extra>",
            texttemplate="%{z:.0%}" if shares.shape[1] <= 20 else None,
            textfont={"size": 11},
            colorbar={"tickformat": ".0%", "thickness": 10, "outlinewidth": 0, "len": 0.6, "y": 1, "yanchor": "top"},
        )
    )
    figure.update_layout(hovermode="closest", height=200 + 20 * max(6, len(days)), margin_t=112)
    figure.update_xaxes(type="category", side="top", showline=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return _finish(figure, matrix, title or "Who came back", "share of the players installed on a day, by days since")


def draw_curve(curve: DataFrame, *, by: str | None = None, title: str | None = None) -> Figure:
    """Retention by age with its interval as a band, a curve for each value of *by*."""
    names = series_names(curve, by)
    order = curve.assign(_name=names).groupby("_name")["installs"].max().sort_values(ascending=False).index.tolist()
    colours, figure = _colours(curve, by, order), Figure()
    for name in order[:MOST_LINES]:
        rows = curve[names == name].sort_values("age").astype({"age": "float64", "retention": "float64"})
        for trace in curve_traces(rows, escape(shorten(name)), colours[name]):
            figure.add_trace(trace)
    ages = sorted(int(age) for age in curve["age"].unique())
    figure.update_layout(showlegend=len(order) > 1)
    figure.update_xaxes(tickvals=ages, ticktext=[f"D{age}" for age in ages])
    _number_axis(figure, "y", unit_of("retention"), curve["high"].max() if len(curve) else 1)
    by_what = f" by {words_by(curve, by)}" if len(order) > 1 else ""
    return _finish(figure, curve, title or f"Retention{by_what}", "share of new players back on a day, 95% interval")


def draw_bands(scores: DataFrame, *, title: str | None = None) -> Figure:
    """Every game and metric as a small panel: the days, the band they usually keep to, and the flagged ones.

    Takes the frame of `gamelens.analysis.health.judged`; of more than 24 panels those with the largest surprises stay.
    """
    panels = [(metric, game) for metric in scores["metric"].unique() for game in scores["game"].unique()]
    surprise = scores.assign(size=scores["z"].abs()).groupby(["metric", "game"], observed=True)["size"].max().fillna(0)
    kept = sorted((panel for panel in panels if panel in surprise), key=lambda panel: -surprise[panel])[:MOST_PANELS]
    panels = [panel for panel in panels if panel in kept]
    columns = max(1, min(4, scores["game"].nunique()))
    height = max(1, -(-len(panels) // columns))
    figure = make_subplots(rows=height, cols=columns, horizontal_spacing=0.06, vertical_spacing=0.34 / height)
    colours = GAME_COLOURS.of(str(game) for game in scores["game"].unique())
    for place, (metric, game) in enumerate(panels):
        rows = scores[(scores["metric"] == metric) & (scores["game"] == game)].sort_values("timestamp")
        where = {"row": place // columns + 1, "col": place % columns + 1}
        figure.add_traces(list(band_traces(rows, colours[str(game)])), rows=where["row"], cols=where["col"])
        axis = figure.get_subplot(**where)
        # a wide band above a quiet series would press the series flat
        axis.yaxis.range = [0, 1.25 * max(rows["value"].max(), rows["expected"].max(), 1e-9)]
        figure.add_annotation(
            text=f"<b>{escape(metric)}</b>  {escape(game)}",
            xref=f"{axis.yaxis.anchor} domain",
            yref=f"{axis.xaxis.anchor} domain",
            **{
                "x": 0,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": 4,
                "showarrow": False,
                "font_size": 12,
            },
        )
    figure.update_xaxes(tickformat="%-d %b", nticks=4, hoverformat="%a %-d %b %Y")
    figure.update_yaxes(tickformat="~s", nticks=4)
    figure.update_layout(showlegend=False, height=160 + 165 * height)
    flagged = int(scores["is_flagged"].fillna(False).sum())
    words = f"band: what the weekday usually brings; diamonds: {flagged} flagged day{'' if flagged == 1 else 's'}"
    return _finish(figure, scores, title or "As usual, or not", words)


def _one_row_each(rows: DataFrame, keys: list[str]) -> DataFrame:
    twice = rows.duplicated(keys)
    if twice.any():
        name = rows.loc[twice, "_name"].iloc[0]
        raise BadQuery("by", name, "has several rows in one bucket: draw by all dimensions, or add them up first")
    return rows


def _darkest(shares: DataFrame) -> float:
    """A share few cells exceed, so that one lucky small cohort does not bleach the others."""
    cells = shares.to_numpy(dtype="float64")
    known = cells[~np.isnan(cells)]
    return max(float(np.quantile(known, 0.98)), 0.01) if len(known) else 1.0


def _finish(figure: Figure, frame: DataFrame, title: str, subtitle: str) -> Figure:
    figure.update_layout(template=template(), title_text=headline(title, subtitle))
    if not len(figure.data) or not len(frame):
        figure.add_annotation(text="nothing in this interval", showarrow=False, font={"color": MUTED, "size": 14})
    figure.add_annotation(
        text=escape(source_line(frame)),
        font={"color": MUTED, "size": 11},
        showarrow=False,
        align="left",
        **{"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yref": "paper", "yanchor": "top", "yshift": -40},
    )
    return figure


def _number_axis(figure: Figure, axis: str, unit: Unit, largest: float) -> None:
    top = float(largest) if pd.notna(largest) and largest > 0 else 1.0
    update = figure.update_yaxes if axis == "y" else figure.update_xaxes
    update(tickformat=tick_format(unit.kind, top), rangemode="tozero", nticks=6)


def _colours(frame: DataFrame, by: str | Sequence[str] | None, names: list[str]) -> dict[str, str]:
    if _is_game(label_columns(frame) if by is None else by):
        return GAME_COLOURS.of(names)
    known = [name for name in names if name != UNKNOWN]
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(known)}
    return {**colours, UNKNOWN: MUTED}


def _is_game(by: str | Sequence[str]) -> bool:
    return ([by] if isinstance(by, str) else list(by)) in (["game"], ["game_id"])


def _is_cut(frame: DataFrame) -> bool:
    receipt = frame.attrs.get("gamelens") or {}
    return bool(receipt.get("truncated") or receipt.get("gaps"))


def _day_or_name(part: Any) -> str:
    return (
        f"{part.day} {part:%b %Y}" if isinstance(part, pd.Timestamp) else escape("(unknown)" if pd.isna(part) else part)
    )


from gamelens.notebook.projections import draw_ltv as draw_ltv  # noqa: E402
from gamelens.notebook.projections import draw_projection as draw_projection  # noqa: E402
