"""Intervals as rows: differences from the control, chances, eCPM like for like."""

from __future__ import annotations

from typing import Final

import pandas as pd
from pandas import DataFrame, Series
from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from gamelens._scales import Scale
from gamelens.analysis.experiments.arm_outcomes import EXPERIMENT, MEASURE
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames import display_values, label_columns
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.captions import words_by
from gamelens.notebook.figures.figure_frame import finish
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import row_label
from gamelens.notebook.tables.column_texts import columns_of

_SCALE: Final = {"share": 100.0, "money": 1.0, "number": 1.0}
_WORDS: Final = {"share": "percentage points", "money": "USD", "number": "the measure's own unit"}
_TICKS: Final = {"share": {"ticksuffix": " pp"}, "money": {"tickformat": "$~f"}, "number": {}}
_STEPS: Final = {"decide": "<b>decide now</b>", "stop": "too few players", "not known": "not clear"}
"""Words beside a row for the steps that are called otherwise there."""
_NOT_NAMES: Final = ("control", "unit", "design", "step")
_ROW_PX: Final = 34
_GAP_PX: Final = 48


def draw_differences(differences: DataFrame, *, title: str | None = None) -> Figure:
    """Draw each arm's difference from the control with its intervals, one row each.

    The thick interval holds for a single look, the thin one at every look. Units have separate axes. A filled
    mark means that the thick interval excludes 0, also after the correction for all rows; a cross means that there is
    no interval. What to do, where the frame says so, stands beside each row.

    Args:
        differences: the frame of `gamelens.analysis.experiments.compare`, or of `next_steps`.
        title: None is a default title.
    """
    look, words = theme(), _in_words(differences)
    units = [unit for unit in _SCALE if (differences["unit"] == unit).any()] or ["share"]
    heights = [max(1, int((differences["unit"] == unit).sum())) for unit in units]
    gap = _GAP_PX / (_ROW_PX * sum(heights) + _GAP_PX * len(units))
    figure = make_subplots(rows=len(units), cols=1, row_heights=heights, vertical_spacing=gap if len(units) > 1 else 0)
    for place, unit in enumerate(units, start=1):
        rows = differences[differences["unit"] == unit]
        numbers = rows[["difference", "low", "high", "always_low", "always_high"]].astype("float64") * _SCALE[unit]
        is_sure = ((numbers["low"] > 0) | (numbers["high"] < 0)) & ~(rows["p_adjusted"].astype("float64") >= LEVEL)
        _draw_marks(figure, numbers, _names(rows), words[differences["unit"] == unit].tolist(), is_sure, place)
        if "step" in rows:
            _draw_steps(figure, numbers, rows, place)
        figure.add_vline(x=0, line={"color": look.muted, "width": 1, "dash": "dot"}, row=place, col=1)
        figure.update_xaxes(**_TICKS[unit], row=place, col=1)
    figure.update_xaxes(showgrid=True, showline=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_layout(showlegend=False, hovermode="closest")
    figure.update_layout(height=182 + _ROW_PX * sum(heights) + _GAP_PX * (len(units) - 1))
    subtitle = "difference from the control in " + " and ".join(_WORDS[unit] for unit in units)
    subtitle += ", 95% interval; thin: valid at every daily look"
    return finish(figure, differences, title or "What the arms changed", subtitle, alt="; ".join(words))


def draw_chances(chances: DataFrame, *, title: str | None = None) -> Figure:
    """Draw the likely range of each variant's true share, and its probability of being the best.

    Args:
        chances: the frame of `gamelens.analysis.experiments.probability_best`.
        title: None is a default title.
    """
    look, figure = theme(), Figure()
    names = _names(chances)
    for place, name in enumerate(names):
        row = chances.iloc[place]
        figure.add_scatter(
            x=[100 * row["low"], 100 * row["high"]],
            y=[escape(name)] * 2,
            mode="lines",
            line={"color": look.palette[0], "width": 5},
            hoverinfo="skip",
        )
    scale, rows = Scale.of("share", chances["chance_best"]), [escape(name) for name in names]
    text = [f"{scale.text(chance)} to be best" for chance in chances["chance_best"]]
    figure.add_scatter(
        x=100 * chances["value"],
        y=rows,
        mode="markers",
        marker={"size": 11, "color": look.paper, "line": {"color": look.palette[0], "width": 2.5}},
        text=text,
        hovertemplate="%{y}: %{x:.2f}%, %{text}<extra></extra>",
    )
    figure.add_scatter(  # right of the range, where it covers no name
        x=100 * chances["high"],
        y=rows,
        mode="text",
        text=[f"  {words}" for words in text],
        textposition="middle right",
        textfont={"size": 11, "color": look.muted},
        cliponaxis=False,
        hoverinfo="skip",
    )
    if len(chances):
        lowest, highest = 100 * chances["low"].min(), 100 * chances["high"].max()
        figure.update_xaxes(range=[lowest - 0.05 * (highest - lowest), highest + 0.3 * (highest - lowest)])
    figure.update_layout(showlegend=False, hovermode="closest", height=190 + 44 * max(1, len(chances)))
    figure.update_xaxes(ticksuffix="%", showgrid=True, showline=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, tickvals=rows)
    figure.update_yaxes(ticktext=[row_label(name) for name in names])
    alt = "; ".join(f"{name} {words}" for name, words in zip(names, text, strict=True))
    words = "share of players, central 95% of the likely values"
    headline = title or "How likely each variant is to be the best"
    return finish(figure, chances, headline, words, kind="share", alt=alt, above=12)


def draw_ecpm_index(index: DataFrame, by: str = "network", *, title: str | None = None) -> Figure:
    """Draw the eCPM of each value of *by* against the eCPM of the others, like for like.

    A filled mark means that the interval excludes no difference, a cross means that there is no interval.

    Args:
        index: the frame of `gamelens.analysis.ads.ecpm_index`.
        by: the column that names the rows.
        title: None is a default title.
    """
    look, rows = theme(), index[index["index"].notna()]
    names = display_values(rows[by]).tolist()
    numbers = 100 * (rows[["index", "low", "high"]].astype("float64") - 1)
    figure = make_subplots(rows=1, cols=1)
    words = [_index_in_words(name, *row) for name, row in zip(names, numbers.to_numpy(), strict=True)]
    is_sure = (numbers["low"] > 0) | (numbers["high"] < 0)
    _draw_marks(figure, numbers.rename(columns={"index": "difference"}), names, words, is_sure, 1)
    figure.add_vline(x=0, line={"color": look.muted, "width": 1, "dash": "dot"})
    figure.update_xaxes(ticksuffix="%", showgrid=True, showline=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_layout(showlegend=False, hovermode="closest", height=182 + _ROW_PX * max(1, len(rows)))
    subtitle = "eCPM compared with the others in the same game, country, format and day, joint 95% intervals"
    return finish(
        figure, index, title or f"eCPM by {words_by(index, by)}, like for like", subtitle, alt="; ".join(words)
    )


def draw_returns(returns: DataFrame, by: str = "install_publisher", *, title: str | None = None) -> Figure:
    """Draw what the players of each value of *by* bring in, as a share of what they cost, with its interval.

    A filled mark means that the interval excludes 100%, where they pay for themselves; a cross means that there is no
    interval.

    Args:
        returns: the frame of `gamelens.analysis.outside_data.ltv_against_cpi`.
        by: the column that names the rows.
        title: None is a default title.
    """
    look, rows = theme(), returns[returns["ltv_to_cpi"].notna()]
    costs, spends = Scale.of("money", rows["cpi"]), Scale.of("money", rows["spend"])
    names = [
        f"{name}, {spends.text(spend)} at {costs.text(cost)}"
        for name, spend, cost in zip(display_values(rows[by]), rows["spend"], rows["cpi"], strict=True)
    ]
    numbers = 100 * rows[["ltv_to_cpi", "low", "high"]].astype("float64")
    figure, scale = make_subplots(rows=1, cols=1), Scale.of("share", rows["ltv_to_cpi"])
    words = [
        f"{name} an install: {scale.text(row['ltv_to_cpi'])} of it comes back"
        + (", no interval" if pd.isna(row["low"]) else f", {scale.interval(row['low'], row['high'])}")
        for name, row in zip(names, rows.to_dict("records"), strict=True)
    ]
    is_sure = (numbers["low"] > 100) | (numbers["high"] < 100)
    _draw_marks(figure, numbers.rename(columns={"ltv_to_cpi": "difference"}), names, words, is_sure, 1)
    figure.add_vline(
        x=100,
        line={"color": look.muted, "width": 1, "dash": "dot"},
        annotation={"text": "pays for itself", "font": {"size": 11, "color": look.muted}, "yanchor": "bottom"},
        annotation_position="top",
    )
    figure.update_xaxes(ticksuffix="%", showgrid=True, showline=False, rangemode="tozero")
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_layout(showlegend=False, hovermode="closest", height=182 + _ROW_PX * max(1, len(rows)))
    subtitle = (
        f"share of the cost that comes back, 95% interval; beside each {words_by(rows, by)}: spend, cost of an install"
    )
    return finish(figure, returns, title or "Cost against return", subtitle, alt="; ".join(words))


def _index_in_words(name: str, index: float, low: float, high: float) -> str:
    """Return the alternative text of a row of `draw_ecpm_index`."""
    bounds = "no interval" if pd.isna(low) else f"{low:+.0f}% to {high:+.0f}%"
    return f"{name}: {index:+.0f}% against the others, {bounds}"


def _draw_steps(figure: Figure, numbers: DataFrame, rows: DataFrame, place: int) -> None:
    """Write what to do right of the widest interval of row *place* of the figure, in bold if it is to decide."""
    bounds = [name for name in numbers if name != "difference"]
    highest, lowest = numbers.max().max(), numbers.min().min()
    highest, lowest = (0.0 if pd.isna(end) else float(end) for end in (highest, lowest))
    figure.add_scatter(
        x=numbers[["difference", *bounds]].max(axis=1).fillna(highest),
        y=[escape(name) for name in _names(rows)],
        mode="text",
        text=[f"  {_STEPS.get(step, step)}" for step in rows["step"].astype("str")],
        textposition="middle right",
        textfont={"size": 12, "color": theme().ink},
        cliponaxis=False,
        hoverinfo="skip",
        row=place,
        col=1,
    )
    room = (highest - lowest) or 1.0
    figure.update_xaxes(range=[lowest - 0.05 * room, highest + 0.24 * room], row=place, col=1)


def _draw_marks(
    figure: Figure, numbers: DataFrame, names: list[str], words: list[str], is_sure: Series[bool], place: int
) -> None:
    """Draw estimates as row *place* of the figure, filled where one *is_sure*.

    *numbers* has difference, low and high, and may have the interval that holds at every look, which is drawn thinly.
    """
    look = theme()
    colours = [look.palette[0] if sure else look.muted for sure in is_sure]
    inner = [colour if sure else look.paper for colour, sure in zip(colours, is_sure, strict=True)]
    intervals = [("low", "high", 3.5), ("always_low", "always_high", 1.0)]
    for low, high, width in intervals if "always_low" in numbers else intervals[:1]:
        is_thick = low == "low"
        figure.add_scatter(
            x=numbers["difference"],
            y=[escape(name) for name in names],
            mode="markers",
            error_x={
                "type": "data",
                "symmetric": False,
                "array": (numbers[high] - numbers["difference"]).fillna(0.0),
                "arrayminus": (numbers["difference"] - numbers[low]).fillna(0.0),
                "color": look.muted,
                "thickness": width,
                "width": 0 if is_thick else 4,
            },
            marker={
                "size": 10 if is_thick else 0,
                "symbol": ["circle" if is_known else "x-thin" for is_known in numbers["low"].notna()],
                "color": inner,
                "line": {"color": colours, "width": 2 if is_thick else 0},
            },
            text=[escape(text) for text in words],
            hovertemplate="%{text}<extra></extra>" if is_thick else None,
            hoverinfo=None if is_thick else "skip",
            row=place,
            col=1,
        )
    ticks = [escape(name) for name in names]
    figure.update_yaxes(tickvals=ticks, ticktext=[row_label(name) for name in names], row=place, col=1)


def _names(frame: DataFrame) -> list[str]:
    """Return the name of each row: measure, arm, split, and experiment if there are several."""
    parts = [display_values(frame[column]).tolist() for column in _name_columns(frame)]
    return [" · ".join(row) for row in zip(*parts, strict=True)]


def _name_columns(frame: DataFrame) -> list[str]:
    """Return the columns that name a row: the measure first, an experiment only beside others."""
    texts = [name for name in label_columns(frame) if name not in _NOT_NAMES]
    is_single = EXPERIMENT in frame and frame[EXPERIMENT].nunique() <= 1
    return sorted((name for name in texts if name != EXPERIMENT or not is_single), key=lambda name: name != MEASURE)


def _in_words(differences: DataFrame) -> Series[str]:
    """Return each row in words, for tooltips and the alternative text, with the numbers of its table."""
    columns = [column for column in _name_columns(differences) if column != MEASURE]
    texts = {column.column: column for column in columns_of(differences)}
    words = []
    for place, row in enumerate(differences.to_dict("records")):
        value, base, interval = (texts[name].text(place) for name in ("value", "control_value", "low"))
        difference = "no interval" if pd.isna(row["low"]) else f"a difference from {interval}"
        words.append(
            f"{row[MEASURE]} of {', '.join(str(row[name]) for name in columns)}: {value} against {base}, {difference}"
        )
    return Series(words, index=differences.index, dtype="str")
