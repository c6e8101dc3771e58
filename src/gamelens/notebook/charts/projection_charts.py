"""Figures of projected retention and lifetime value, and of payback of ad spend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from pandas import DataFrame, Series
from plotly.graph_objects import Figure

from gamelens._scales import Scale
from gamelens.analysis.tidy_frames import label_columns, with_receipts_of
from gamelens.analysis.tidy_frames.columns import Column, column_named
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.captions import words_by
from gamelens.notebook.figures.colours import MOST_LINES, colours_of
from gamelens.notebook.figures.figure_frame import finish, number_axis
from gamelens.notebook.figures.interval_bands import MOST_BANDS, interval_band
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import shorten

MARKED_AGES: Final = (30, 90)
MOST_CURVES: Final = 8
_TICKS: Final = (1, 3, 7, 14, 30, 60, 90, 120, 180, 270, 365)
_CURVE_COLUMNS: Final = ("model", "why")


def draw_projection(
    projection: DataFrame, curve: DataFrame | None = None, *, by: str | None = None, title: str | None = None
) -> Figure:
    """Draw projected retention curves, and the counted points of *curve*.

    Ages beyond the last counted day are dashed over a band. There is one line for each value of *by*, or, without a
    dimension, one for each model, and only the chosen model has a band. With more than three values, the three with the
    most installs in *curve* have one, or the first three; the text on hover has the interval of each. D30 and D90 are
    marked.

    Args:
        projection: the frame of `gamelens.analysis.retention.project_retention`.
        curve: the frame of `gamelens.analysis.retention.average_curve`.
        by: a dimension. None means all dimensions of the frame.
        title: None is a default title.
    """
    groups = _groups(projection, by)
    rows = projection[projection["is_chosen"] | (projection["model"].notna() & (not groups))]
    lines, counted = _lines_by_name(rows, groups or ["model"]), {} if curve is None else _lines_by_name(curve, groups)
    names = list(dict.fromkeys([*lines, *(counted if groups else ())]))
    colours, figure = colours_of(rows, by or (groups or ["model"])[0], names), Figure()
    unit = column_named("retention")
    taken = [name for name, line in lines.items() if line["is_chosen"].any() or len(lines) == 1]
    banded = _largest(taken, counted)
    for name, line in lines.items():
        is_taken = name in taken
        for trace in _line_traces(
            line, "retention", name, colours[name], unit, is_taken=is_taken, has_band=name in banded
        ):
            figure.add_trace(trace)
        if is_taken:
            _mark_ages(figure, line, "retention", colours[name])
            if not groups or len(lines) == 1:
                _label_marked_ages(
                    figure, line, "retention", unit, around=[rows[["age", "retention"]], *counted.values()]
                )
    for name, points in counted.items():
        figure.add_trace(_points(points, colours[name] if groups else theme().ink, is_named=not groups))
    figure.update_layout(showlegend=len(figure.data) > 0)
    _age_axis(figure, rows, is_log=True)
    tops = [rows["retention"].max(), *(points["high"].max() for points in counted.values())]
    number_axis(figure, "y", unit, Series(tops, dtype="float64").max())
    subtitle = "share of new players active on a day; points: counted, with their interval; dashed: projected"
    subtitle += _words_on_many(rows, groups)
    heading = title or _title("Retention, projected", projection, groups)
    drawn = projection if curve is None else with_receipts_of(projection.copy(deep=False), projection, curve)
    return finish(figure, drawn, heading, subtitle, alt=_in_words(lines, "retention", unit))


def draw_ltv(values: DataFrame, *, by: str | None = None, title: str | None = None) -> Figure:
    """Draw the money of a new player by age with its band, projected ages dashed.

    Of more than three lines those with the most installs have a band; the text on hover has the interval of each.

    Args:
        values: the frame of `gamelens.analysis.retention.ltv`.
        by: a dimension. None means all dimensions of the frame.
        title: None is a default title.
    """
    groups = _groups(values, by)
    lines = _lines_by_name(values[values["ltv"].notna()], groups)
    colours, figure = colours_of(values, by or (groups or ["model"])[0], list(lines)), Figure()
    unit = column_named("ltv")
    banded = _largest([*lines], lines)
    for name, line in lines.items():
        for trace in _line_traces(line, "ltv", name, colours[name], unit, is_taken=True, has_band=name in banded):
            figure.add_trace(trace)
        _mark_ages(figure, line, "ltv", colours[name])
        if len(lines) == 1:
            _label_marked_ages(figure, line, "ltv", unit, around=[line])
    figure.update_layout(showlegend=len(lines) > 1)
    _age_axis(figure, values, is_log=False)
    number_axis(figure, "y", unit, values[["ltv", "high"]].max().max())
    subtitle = f"{unit.unit_words} up to an age, install day included; solid: measured, dashed: projected"
    subtitle += _words_on_many(values[values["ltv"].notna()], groups)
    heading = title or _title("Lifetime value", values, groups)
    return finish(figure, values, heading, subtitle, alt=_in_words(lines, "ltv", unit))


def _groups(frame: DataFrame, by: str | None) -> list[str]:
    """Return the dimensions whose values have a line each."""
    return [by] if by else [name for name in label_columns(frame) if name not in _CURVE_COLUMNS and name != "is_chosen"]


def _lines_by_name(rows: DataFrame, columns: list[str]) -> dict[str, DataFrame]:
    """Return the rows of the first eight series, each sorted by age.

    Without *columns*, all rows are one series.
    """
    names = series_names(rows, columns) if columns else Series("all", index=rows.index, dtype="str")
    order = list(dict.fromkeys(names))[:MOST_LINES]
    return {name: rows[names == name].sort_values("age").astype({"age": "int64"}) for name in order}


def _largest(names: list[str], counted: dict[str, DataFrame]) -> list[str]:
    """Return the lines that have a band: all of few, of many those with the most installs *counted*."""
    installs = {name: rows["installs"].fillna(0).max() for name, rows in counted.items()}
    return names if len(names) <= MOST_BANDS else sorted(names, key=lambda name: -installs.get(name, 0))[:MOST_BANDS]


def _words_on_many(rows: DataFrame, groups: list[str]) -> str:
    """Return which of the values of *groups* have a line and a band, where that is not all."""
    many = series_names(rows, groups).nunique() if groups else 1
    words = f"; first {MOST_LINES} of {many}" if many > MOST_LINES else ""
    return words + (f"; bands: largest {MOST_BANDS}" if many > MOST_BANDS else "")


def _line_traces(
    line: DataFrame, value: str, name: str, colour: str, unit: Column, *, is_taken: bool, has_band: bool
) -> Iterator[go.Scatter]:
    """Yield one curve: counted ages solid, projected ages dashed, wider if it is taken."""
    past, later = line[~line["is_projected"]], line[line["is_projected"]]
    ahead = line.loc[[*past.index[-1:], *later.index]]
    shown = escape(shorten(name))
    if has_band:
        yield interval_band(line if value == "ltv" else ahead, shown, colour)
    stroke: dict[str, Any] = {"color": colour, "width": 2.25 if is_taken else 1.5}
    format_ = _scale(line, value, unit).d3
    for part, dash in ((past, "solid"), (ahead if len(later) else later, "dash")):
        yield go.Scatter(
            x=part["age"],
            y=part[value],
            mode="lines",
            line={**stroke, "dash": dash},
            name=shown,
            legendgroup=shown,
            showlegend=dash == "solid" or not len(past),
            customdata=part[["low", "high"]].to_numpy(),
            hovertemplate=f"%{{y:{format_}}} (%{{customdata[0]:{format_}}} to %{{customdata[1]:{format_}}})",
        )


def _points(points: DataFrame, colour: str, *, is_named: bool) -> go.Scatter:
    """Return the counted points with their intervals."""
    points = points.astype({"retention": "float64"})
    return go.Scatter(
        x=points["age"],
        y=points["retention"],
        mode="markers",
        marker={"color": colour, "size": 6},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": points["high"] - points["retention"],
            "arrayminus": points["retention"] - points["low"],
            "color": colour,
            "thickness": 1,
            "width": 3,
        },
        name="counted",
        showlegend=is_named,
        hovertemplate="counted: %{y:.1%}<extra></extra>",
    )


def _mark_ages(figure: Figure, line: DataFrame, value: str, colour: str) -> None:
    """Mark the values at `MARKED_AGES` with diamonds."""
    marked = line[line["age"].isin(MARKED_AGES)]
    figure.add_scatter(
        x=marked["age"],
        y=marked[value],
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": colour},
        hoverinfo="skip",
        showlegend=False,
    )


def _in_words(lines: dict[str, DataFrame], value: str, unit: Column) -> str:
    """Return the values of every line at `MARKED_AGES`, for the alternative text."""
    marked = {name: line[line["age"].isin(MARKED_AGES)] for name, line in lines.items()}
    return "; ".join(
        f"{name}: " + ", ".join(f"D{row['age']} {_with_band(row, value, unit)}" for row in rows.to_dict("records"))
        for name, rows in marked.items()
        if len(rows)
    )


def _with_band(row: dict[Any, Any], value: str, unit: Column) -> str:
    scale = Scale.of(unit.written, [row[value]], [(row["high"] - row["low"]) / 2])
    return f"{scale.text(row[value])} ({scale.interval(row['low'], row['high'])})"


def _label_marked_ages(
    figure: Figure, line: DataFrame, value: str, unit: Column, *, around: Sequence[DataFrame]
) -> None:
    """Write the values at `MARKED_AGES` above what is drawn there of *line* and *around*."""
    is_log, scale = value == "retention", _scale(line, value, unit)
    for row in line[line["age"].isin(MARKED_AGES)].to_dict("records"):
        figure.add_annotation(
            x=log10(row["age"]) if is_log else row["age"],
            y=max(_highest(frame, row["age"]) for frame in [line, *around]),
            text=f"<b>D{row['age']} {scale.text(row[value])}</b><br>{scale.interval(row['low'], row['high'])}",
            showarrow=False,
            align="center",
            yanchor="bottom",
            yshift=8,
            font={"size": 12},
        )


def _scale(line: DataFrame, value: str, unit: Column) -> Scale:
    """Return how the values of a curve are written, by their bands at `MARKED_AGES` if it reaches them."""
    marked = line[line["age"].isin(MARKED_AGES)]
    marked = marked if len(marked) else line
    return Scale.of(unit.written, marked[value], (marked["high"] - marked["low"]) / 2)


def _highest(frame: DataFrame, age: int) -> float:
    """Return the highest value that *frame* draws near *age*, where a label would cover it."""
    near = frame.loc[frame["age"].between(0.8 * age, 1.25 * age), frame.columns.intersection(["retention", "high"])]
    return float(np.nan_to_num(near.to_numpy(dtype="float64")).max(initial=0.0))


def _age_axis(figure: Figure, rows: DataFrame, *, is_log: bool) -> None:
    """Set ticks and range of the age axis."""
    last = int(rows["age"].max()) if len(rows) else 1
    ticks = [age for age in _TICKS if age <= last and (is_log or age >= last / 15)]
    figure.update_xaxes(tickvals=ticks, ticktext=[f"D{age}" for age in ticks])
    if is_log:
        figure.update_xaxes(type="log", range=[log10(0.9), log10(max(last, 2) * 1.3)])
    else:
        figure.update_xaxes(range=[0, last * 1.06])


def _title(what: str, frame: DataFrame, groups: list[str]) -> str:
    return f"{what} by {words_by(frame, groups)}" if groups else what


def draw_payback(roas: DataFrame, by: str = "install_publisher", *, title: str | None = None) -> Figure:
    """Draw the return on ad spend by age, a line for each of the eight largest spenders.

    The dotted line at 100% is the point of payback.

    Args:
        roas: the frame of `gamelens.analysis.outside_data.return_on_spend`.
        by: the column that names a spender.
        title: None is a default title.
    """
    look, figure = theme(), Figure()
    names = series_names(roas, by)
    money_scale = Scale.of("money", [*roas["spend"], *roas["money"]])
    order = roas.assign(_name=names).groupby("_name")["spend"].max().sort_values(ascending=False).index.tolist()
    for place, name in enumerate(order[:MOST_CURVES]):
        rows = roas[names == name].sort_values("age")
        figure.add_scatter(
            x=rows["age"].astype("int64"),
            y=rows["roas"],
            mode="lines+markers",
            name=escape(shorten(name)),
            line={"color": look.palette[place % len(look.palette)], "width": 2.25},
            marker={"size": 6},
            customdata=[
                [money_scale.text(spend), money_scale.text(money)]
                for spend, money in zip(rows["spend"], rows["money"], strict=True)
            ],
            hovertemplate="%{y:.1%}, %{customdata[1]} of %{customdata[0]}",
        )
    ages = sorted({int(age) for age in roas["age"]})
    highest = float(roas["roas"].max()) if len(roas) else 1.0
    number_axis(figure, "y", column_named("roas"), highest)
    if highest >= 0.5:
        figure.add_hline(y=1, line={"color": look.muted, "width": 1, "dash": "dot"})
    figure.update_xaxes(tickvals=ages, ticktext=[f"D{age}" for age in ages])
    figure.update_layout(showlegend=len(order) > 1)
    by_what = f" by {words_by(roas, by)}" if len(order) > 1 else ""
    words = "revenue of paid installs as a share of their ad spend, by days since install"
    return finish(figure, roas, title or f"Return on ad spend{by_what}", words, kind="share")
