"""Special days, such as holidays, compared with ordinary days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.figure_frame import finish
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import row_label
from gamelens.notebook.tables.column_texts import columns_of
from gamelens.receipt_text import day_text

MOST_DAYS: Final = 24


def draw_occasions(special: DataFrame, by: str | Sequence[str], *, title: str | None = None) -> Figure:
    """Draw each special day beside the range of its weekday, in percent of the usual value.

    Filled points are outside the range. The 24 largest changes are shown.

    Args:
        special: the frame of `gamelens.analysis.outside_data.compare_with_weekdays`.
        by: the columns that name a day, such as holiday and country.
        title: None is a default title.
    """
    look, figure = theme(), Figure()
    known = special[special["usual"].notna() & (special["usual"] > 0)]
    shown = known.head(MOST_DAYS).sort_values("change", kind="stable")
    names = [f"{name} · {day_text(at)}" for name, at in zip(series_names(shown, by), shown["timestamp"], strict=True)]
    words = _in_words(shown)
    ticks, usual = [escape(name) for name in names], shown["usual"]
    ends = zip(ticks, shown["low"] / usual - 1, shown["high"] / usual - 1, strict=True)
    for tick, low, high in ends:
        figure.add_scatter(
            x=[low, high], y=[tick] * 2, mode="lines", line={"color": look.pale, "width": 7}, hoverinfo="skip"
        )
    is_outside = shown["is_outside"].fillna(False).astype(bool)
    figure.add_scatter(
        x=shown["change"],
        y=ticks,
        mode="markers",
        marker={
            "size": 10,
            "color": [look.palette[0] if outside else look.paper for outside in is_outside],
            "line": {"color": look.palette[0], "width": 2},
        },
        text=[escape(text) for text in words],
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure.add_vline(x=0, line={"color": look.muted, "width": 1, "dash": "dot"})
    figure.update_layout(showlegend=False, hovermode="closest", height=max(240, 186 + 28 * max(1, len(shown))))
    figure.update_xaxes(tickformat="+.0%", showgrid=True, showline=False)
    figure.update_yaxes(type="category", showgrid=False, tickvals=ticks, ticktext=[row_label(name) for name in names])
    more = f", largest {MOST_DAYS} of {len(known)}" if len(known) > MOST_DAYS else ""
    alt = "; ".join(f"{name}: {text}" for name, text in zip(names, words, strict=True))
    about = f"change against the usual weekday; bar: range of the others; filled: outside it{more}"
    return finish(figure, shown, title or "Special days", about, kind="share", alt=alt)


def _in_words(special: DataFrame) -> list[str]:
    """Return each day in words, with the numbers of its table: its value, the usual value and the change."""
    texts = {column.column: column for column in columns_of(special)}
    return [
        f"{texts['value'].text(row)} instead of about {texts['usual'].text(row)}, {texts['change'].text(row)}"
        for row in range(len(special))
    ]
