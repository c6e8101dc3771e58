"""Lines over time, and bars for a single bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens._scales import Scale
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.analysis.tidy_frames.frame_columns import catalog_of, series_names
from gamelens.errors import BadQuery
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.annotations import Notes, draw_notes, notes_about, words_on_notes
from gamelens.notebook.figures.captions import date_formats, main_value, title_of, unit_in, words_per_bucket
from gamelens.notebook.figures.colours import MOST_LINES, colours_of, is_game
from gamelens.notebook.figures.figure_frame import finish, is_cut, number_axis, one_row_each
from gamelens.notebook.figures.previous_period_lines import pale_traces, table_of, words_on_previous
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.figures.unfinished_buckets import line_traces
from gamelens.notebook.frame_receipts import sourced, unfinished
from gamelens.notebook.labels import row_label, shorten
from gamelens.receipts import Receipt

MOST_BARS: Final = 24  # hours of a day


def draw_lines(
    frame: DataFrame,
    value: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    previous: DataFrame | None = None,
    notes: Notes | None = None,
    title: str | None = None,
    source: DataFrame | None = None,
) -> Figure:
    """Draw *value* over time, one line for each value of *by*, unfinished buckets dotted.

    The eight largest lines have a colour and a name, the others are pale lines in the background.

    Args:
        frame: as `query()` returns it.
        value: a column. None is the main number of the frame.
        by: dimensions. None means all dimensions of the frame.
        previous: the same query over the period before, drawn as pale lines behind those with a name.
        notes: releases, campaigns and holidays to shade: the path of a TOML file as `health` accepts it.
        title: None is a default title.
        source: the frame that *frame* was computed from, whose receipt is shown where pandas left none.

    Raises:
        BadQuery: a value of *by* has several rows in one bucket, as figures add nothing up, or *notes* cannot be read.
    """
    frame = sourced(frame, source)
    value = value or main_value(frame)
    unit, names = unit_in(frame, value), series_names(frame, by)
    rows, about = one_row_each(frame.assign(_name=names), ["timestamp", "_name"]), notes_about(frame, value, notes)
    table = table_of(rows, value, is_sum=unit.is_sum and not is_cut(frame))
    order = table.sum().sort_values(ascending=False).index.tolist()
    figure, colours, partial = Figure(), colours_of(frame, by, order[:MOST_LINES]), unfinished(frame)
    if previous is not None:
        figure.add_traces([*pale_traces(frame, previous, value, unit, by, colours).values()])
    draw_notes(figure, about)
    for place in reversed(range(len(order))):
        points = table[order[place]]
        for trace in line_traces(points, escape(shorten(order[place])), colours.get(order[place]), unit, partial):
            figure.add_trace(trace.update(legendgroup=str(place)))  # two names may look the same
    figure.update_layout(showlegend=len(order) > 1, legend_traceorder="reversed")
    number_axis(figure, "y", unit, table.max().max() if len(table) else 1)
    dated = [*table.index] if len(table) <= 8 else None
    figure.update_xaxes(tickvals=dated, **date_formats(frame))
    more = f", largest {MOST_LINES} of {len(order)} named" if len(order) > MOST_LINES else ""
    more += ", dotted: incomplete " + str(Receipt.of(frame.attrs).asked.every) if partial else ""
    words = f"{words_per_bucket(frame, unit)}{more}{words_on_previous(previous)}{words_on_notes(about)}"
    return finish(figure, frame, title or title_of(frame, value, by), words, kind=unit.written)


def draw_bars(
    frame: DataFrame,
    value: str | Sequence[str] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    title: str | None = None,
    is_sorted: bool = True,
    source: DataFrame | None = None,
) -> Figure:
    """Draw *value* for each value of *by* as a bar, the largest on top.

    Args:
        frame: with one bucket of time at most.
        value: a column, or several, which are stacked. None is the main number of the frame.
        by: dimensions. None means all dimensions of the frame.
        title: None is a default title.
        is_sorted: False keeps the order of the frame.
        source: as in `draw_lines`.

    Raises:
        BadQuery: the frame has several buckets, or several rows for one bar. Figures add nothing up.
    """
    frame = sourced(frame, source)
    if "timestamp" in frame and frame["timestamp"].nunique() > 1:
        raise BadQuery("frame", f"{frame['timestamp'].nunique()} buckets", "must be one: query with every='all'")
    values = [value or main_value(frame)] if value is None or isinstance(value, str) else list(value)
    unit = unit_in(frame, values[0])
    bars = frame.assign(_name=series_names(frame, by))[["_name", *values]].astype(dict.fromkeys(values, "float64"))
    bars = one_row_each(bars, ["_name"])
    bars["_size"] = bars[values].sum(axis=1)
    bars = bars.sort_values("_size", ascending=False, kind="stable") if is_sorted else bars
    shown, largest = bars.head(MOST_BARS).iloc[::-1], bars["_size"].max() if len(bars) else 1
    colours = colours_of(frame, by, list(shown["_name"]))
    look, figure = theme(), Figure()
    catalog = catalog_of(frame)
    special = colours if is_game(frame, by) else {UNKNOWN: look.muted}
    bar_colours = [special.get(bar, look.palette[0]) for bar in shown["_name"]]
    scale = Scale.of(unit.written, shown[values].to_numpy().ravel())
    places = [*range(len(shown))]  # not the names: two of them may look the same
    for place, name in enumerate(values):
        figure.add_bar(
            x=shown[name],
            y=places,
            hovertext=[escape(bar) for bar in shown["_name"]],
            orientation="h",
            name=escape(name_of(name, catalog)),
            marker={"color": bar_colours if len(values) == 1 else look.palette[place], "cornerradius": 2},
            text=[scale.text(number) for number in shown[name]] if len(values) == 1 else None,
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"%{{hovertext}}: %{{x:{scale.d3}}}<extra>{escape(name_of(name, catalog))}</extra>",
        )
    figure.update_layout(
        barmode="stack", bargap=0.35, showlegend=len(values) > 1, hovermode="closest", legend_traceorder="normal"
    )
    figure.update_layout(height=max(220, 176 + 30 * max(1, len(shown))))
    number_axis(figure, "x", unit, largest)
    figure.update_xaxes(showgrid=True, showline=False)
    if len(shown) and (lowest := shown[values].min().min()) < 0:
        figure.update_xaxes(range=[1.2 * lowest, 1.2 * max(largest, 0.0)])  # room for numbers left of their bars
    figure.update_yaxes(showgrid=False, tickvals=places, ticktext=[row_label(name) for name in shown["_name"]])
    kept = "largest" if is_sorted else "first"
    more = f", {kept} {MOST_BARS} of {len(bars)}" if len(bars) > MOST_BARS else ""
    return finish(figure, frame, title or title_of(frame, values[0], by), f"{unit.unit_words}{more}", kind=unit.written)
