"""Small figures side by side: a value of every game, or its usual range."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series
from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from gamelens._scales import NumberKind, Scale
from gamelens._text import counted
from gamelens.analysis.health import BoardNotes
from gamelens.analysis.tidy_frames import display_values
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.analysis.tidy_frames.written_columns import ROW_UNITS
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.alt_text import short_list
from gamelens.notebook.figures.annotations import Notes, draw_notes, games_of, notes_about, words_on_notes
from gamelens.notebook.figures.captions import date_formats, main_value, title_of, unit_in, words_per_bucket
from gamelens.notebook.figures.colours import colours_of, game_colours
from gamelens.notebook.figures.figure_frame import finish, is_cut, one_row_each
from gamelens.notebook.figures.interval_bands import band_traces, flagged_levels, flags_of
from gamelens.notebook.figures.previous_period_lines import pale_traces, table_of, words_on_previous
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.figures.unfinished_buckets import line_traces
from gamelens.notebook.frame_receipts import unfinished
from gamelens.notebook.labels import shorten
from gamelens.receipt_text import day_text
from gamelens.receipts import Receipt

MOST_PANELS: Final = 24
MOST_ACROSS: Final = 4
_PANEL_PX: Final = 165
_LETTERS: Final = 100  # fit into 760 pixels
_HEAD_PX: Final = 18


def draw_panels(
    frame: DataFrame,
    value: str | None = None,
    *,
    by: str | Sequence[str] = "game",
    is_same_scale: bool = False,
    previous: DataFrame | None = None,
    notes: Notes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw *value* over time in a small panel for each value of *by*, 24 panels at most.

    Each heading has the last value of a whole bucket. All panels share the time axis.

    Args:
        frame: as `query()` returns it.
        value: a column. None is the main number of the frame.
        by: the dimensions with a panel for each value. The largest values are drawn.
        is_same_scale: True gives all panels one scale, which shows sizes. False gives each its own, which shows shapes.
        previous: the same query over the period before, drawn as a pale line behind.
        notes: releases, campaigns and holidays to shade: the path of a TOML file as `health` accepts it.
        title: None is a default title.

    Raises:
        BadQuery: a value of *by* has several rows in one bucket, as figures add nothing up, or *notes* cannot be read.
    """
    value = value or main_value(frame)
    unit, partial = unit_in(frame, value), unfinished(frame)
    rows = one_row_each(frame.assign(_name=series_names(frame, by)), ["timestamp", "_name"])
    table = table_of(rows, value, is_sum=unit.is_sum and not is_cut(frame))
    order = table.sum().sort_values(ascending=False, kind="stable").index.tolist()
    shown = order[:MOST_PANELS]
    finished = {name: table[name][~table.index.isin(list(partial))].dropna() for name in shown}
    last = {
        name: Scale.of(unit.written, points).text(points.iloc[-1]) if len(points) else ""
        for name, points in finished.items()
    }
    heading = max((len(name) + len(last[name]) for name in shown), default=0)
    grid, colours = _PanelGrid(frame, len(shown), longest=heading), colours_of(frame, by, shown)
    about = notes_about(frame, value, notes)
    before = {} if previous is None else pale_traces(frame, previous, value, unit, by, colours)
    for name in shown:
        points = table[name]
        traces = line_traces(points, escape(shorten(name)), colours[name], unit, partial)
        behind = [before[name]] if name in before else []
        axis = grid.add([*behind, *traces], name, last[name])
        grid.shade(about, games_of(rows[rows["_name"] == name]))
        drawn = [table[shown].to_numpy() if is_same_scale else points.to_numpy(), *(line.y for line in behind)]
        _set_scale(axis, unit, np.concatenate([axes.ravel() for axes in drawn]))
    figure = grid.figure.update_traces(showlegend=False)
    if len(table) > 1:
        figure.update_traces(mode="lines")
    words = f"{words_per_bucket(frame, unit)}, {'one scale for all' if is_same_scale else 'each on its own scale'}"
    words += f", largest {MOST_PANELS} of {len(order)}" if len(order) > MOST_PANELS else ""
    words += f", dotted: incomplete {Receipt.of(frame.attrs).asked.every}" if partial else ""
    words += ", number: latest value" if any(last.values()) else ""
    words += words_on_previous(previous) + words_on_notes(about)
    return finish(figure, frame, title or title_of(frame, value, by), words, kind=unit.written, above=grid.head_px)


def draw_bands(scores: DataFrame, *, title: str | None = None) -> Figure:
    """Draw every series of a health board in a small panel, with its band and flagged days, or the level of several.

    Of more than 24 series, those with the largest deviations are drawn.

    Args:
        scores: the frame of `gamelens.analysis.health.score_days`.
        title: None is a default title.
    """
    scores = scores.assign(
        _game=display_values(scores["game"]), _metric=display_values(scores["metric"]), _name=_row_names(scores)
    )
    surprise = scores.assign(_size=scores["z"].abs()).groupby(["_metric", "_name"], sort=False)["_size"].max().fillna(0)
    chosen = surprise.sort_values(ascending=False, kind="stable").index[:MOST_PANELS]
    names, metrics, is_whole = scores["_name"].unique(), scores["_metric"].unique(), len(chosen) == len(surprise)
    across = len(names) if is_whole and 1 < len(names) <= MOST_ACROSS else None  # each row of panels is a metric
    grid, every = _PanelGrid(scores, len(chosen), across, lines=min(2, len(metrics))), product(metrics, names)
    colours = game_colours(scores["_game"].unique(), scores)
    levels = 0
    for metric, name in (panel for panel in every if panel in chosen):
        rows = scores[(scores["_metric"] == metric) & (scores["_name"] == name)].sort_values("timestamp")
        kind, highest = _kind(rows), float(rows[["value", "expected"]].max().max())
        traces = band_traces(rows, colours[rows["_game"].iloc[0]], Scale.of(kind, rows["value"]).d3)
        levels += len(list(flagged_levels(rows)))
        axis = grid.add(traces, *((metric, name) if len(metrics) > 1 else (name, "")))
        # not the band: a wide one would make a quiet series look flat
        axis.update(range=[0, 1.25 * max(highest, 1e-9)], tickformat=Scale.of_axis(kind, highest).d3)
    flagged = scores[flags_of(scores)]
    words = f"{metrics[0]}; " if len(metrics) == 1 else ""
    words += "band: usual range of the weekday; "
    words += f"diamonds: {counted(len(flagged), 'flagged day')}" if len(flagged) else "no day is flagged"
    words += ", thick where several days together show it" if levels else ""
    words += "" if is_whole else f"; the {MOST_PANELS} most surprising of {len(surprise)}"
    alt = _in_words(flagged, len(chosen))
    return finish(grid.figure, scores, title or "Latest day and usual range", words, alt=alt, above=grid.head_px)


def _row_names(scores: DataFrame) -> Series[str]:
    """Return the game of each row, followed by the segment where a row is about one."""
    games = display_values(scores["game"])
    if "dimension" not in scores:
        return games
    return games.where(scores["dimension"].isna(), games + " · " + display_values(scores["segment"]))


def _kind(rows: DataFrame) -> NumberKind:
    return next((kind for kind in ROW_UNITS if "kind" in rows and rows["kind"].iloc[0] == kind), "number")


class _PanelGrid:
    """A grid of *many* panels over the time of *frame*, each with a heading of *lines* lines.

    A heading whose *longest* parts do not fit into one line has two.
    *across* panels are side by side. None is 1 to 4, depending on *many*.
    """

    def __init__(
        self, frame: DataFrame, many: int, across: int | None = None, *, lines: int = 1, longest: int = 0
    ) -> None:
        across = across or max(1, min(many, 2 if many == 4 else 3 if many <= 9 else MOST_ACROSS))
        lines = 2 if longest + 2 > _LETTERS // across else lines
        high = max(1, -(-many // across))
        places = range(high * across)
        cells: list[dict[str, Any] | None] = [{} if place < max(many, 1) else None for place in places]
        rows = [cells[place : place + across] for place in places[::across]]
        space = {"horizontal_spacing": 0.24 / across, "vertical_spacing": (0.26 + 0.08 * lines) / high}
        self.figure = make_subplots(rows=high, cols=across, specs=rows, **space)
        self.figure.update_layout(showlegend=False, height=160 + (_PANEL_PX if high > 1 else 2 * _PANEL_PX) * high)
        self.figure.update_xaxes(matches="x" if many > 1 else None, nticks=3, **date_formats(frame))
        self.figure.layout.xaxis.matches = None  # the axis that the others match
        self.figure.update_yaxes(nticks=4)
        self.head_px = _HEAD_PX * lines
        self._is_two_lines = lines > 1
        self._letters = _LETTERS // across
        self._place = (1, 1)
        self._free = ((place // across + 1, place % across + 1) for place in range(many))

    def add(self, traces: Iterable[Any], name: str, more: str) -> Any:
        """Draw *traces* in the next panel, headed *name* and *more*, and return its y axis."""
        self._place = row, column = next(self._free)
        axes = self.figure.get_subplot(row, column)
        for trace in traces:
            self.figure.add_trace(trace, row=row, col=column)
        between, room = ("<br>", self._letters) if self._is_two_lines else ("  ", self._letters - len(more) - 2)
        self.figure.add_annotation(
            text=f"<b>{escape(shorten(name, room))}</b>{between}{escape(shorten(more, self._letters))}",
            hovertext=escape(f"{name} {more}"),
            xref=f"{axes.yaxis.anchor} domain",
            yref=f"{axes.xaxis.anchor} domain",
            font={"size": 12, "color": theme().ink},
            **{
                "x": 0,
                "y": 1,
                "xanchor": "left",
                "yanchor": "bottom",
                "align": "left",
                "yshift": 4,
                "showarrow": False,
            },
        )
        return axes.yaxis

    def shade(self, notes: BoardNotes, games: Collection[str]) -> None:
        """Shade the days of the notes about *games* in the panel that was drawn last."""
        row, column = self._place
        draw_notes(self.figure, notes, games, row=row, col=column)


def _set_scale(axis: Any, unit: Column, numbers: NDArray[np.float64]) -> None:
    """Fit the axis to *numbers*, with 0 included."""
    known = numbers[~np.isnan(numbers)]
    least, most = min(known.min(initial=0), 0.0), known.max(initial=0) or 1.0
    axis.update(tickformat=Scale.of_axis(unit.written, most).d3, range=[1.1 * least, 1.1 * most])


def _in_words(flagged: DataFrame, many: int) -> str:
    """Return the alternative text: the number of panels, and the newest flagged days."""
    newest = flagged.sort_values("timestamp", ascending=False)
    keys = zip(newest["_metric"], newest["_name"], newest["timestamp"], strict=True)
    named = [f"{metric} of {name} on {day_text(moment)}" for metric, name, moment in keys]
    panels = f"{many} panel{'' if many == 1 else 's'}"
    return f"{panels}, flagged: {short_list(named)}" if named else f"{panels}, nothing flagged" if many else ""
