"""Bridges from the earlier to the later revenue, whole and by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens._scales import Scale
from gamelens.analysis.decomposition import PARTS, total_change
from gamelens.analysis.tidy_frames.columns import column_named
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.captions import words_by
from gamelens.notebook.figures.figure_frame import finish, number_axis
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import row_label

MOST_SEGMENTS: Final = 12
_SMALL_STEP: Final = 0.1
_UP, _DOWN = 2, 5  # places in the palette


def draw_decomposition(parts: DataFrame, *, title: str | None = None) -> Figure:
    """Draw the bridge from the earlier to the later revenue: volume, mix and price.

    Where the steps are small beside the revenue, the axis starts above 0 and the subtitle says so.

    Args:
        parts: the frame of `gamelens.analysis.decomposition.decompose`.
        title: None is a default title.
    """
    look, row, figure, unit = theme(), total_change(parts).iloc[0], Figure(), column_named("ad_revenue")
    heights = [float(row["before"]), *(float(row[name]) for name in PARTS), float(row["after"])]
    scale = Scale.of("money", heights)
    words = [scale.text(height, is_signed=0 < place < len(heights) - 1) for place, height in enumerate(heights)]
    if len(parts):
        figure.add_waterfall(
            x=["Before", "Volume", "Mix", "Price", "After"],
            y=[*heights[:-1], None],
            measure=["absolute", *["relative"] * len(PARTS), "total"],
            text=words,
            textposition="outside",
            cliponaxis=False,
            connector={"line": {"color": look.pale, "width": 1}},
            increasing={"marker": {"color": look.palette[_UP]}},
            decreasing={"marker": {"color": look.palette[_DOWN]}},
            totals={"marker": {"color": look.muted}},
            hovertemplate="%{x}: %{text}<extra></extra>",
        )
    highest, lowest = _levels(heights)
    number_axis(figure, "y", unit, highest)
    is_cut = len(parts) > 0 and lowest > 0 and highest - lowest < _SMALL_STEP * highest
    if is_cut:
        margin = max(highest - lowest, 0.01 * highest)
        figure.update_yaxes(range=[max(0.0, lowest - 1.5 * margin), highest + margin], rangemode="normal")
        figure.update_yaxes(tickformat=Scale.of_axis("money", highest - lowest + 2.5 * margin).d3)
    figure.update_layout(showlegend=False, hovermode="closest", bargap=0.35)
    alt = "; ".join(f"{name} {text}" for name, text in zip(["before", *PARTS, "after"], words, strict=True))
    more = ", the axis does not start at 0" if is_cut else ""
    return finish(figure, parts, title or "Why revenue changed", f"{unit.unit_words}{more}", kind="money", alt=alt)


def draw_contributions(parts: DataFrame, by: str | Sequence[str], *, title: str | None = None) -> Figure:
    """Draw the change of each segment, split into volume, mix and price.

    The twelve largest changes are shown, each net change as a diamond.

    Args:
        parts: the frame of `gamelens.analysis.decomposition.decompose`.
        by: the columns that name a segment.
        title: None is a default title.
    """
    look, figure, unit = theme(), Figure(), column_named("ad_revenue")
    shown = parts.head(MOST_SEGMENTS).iloc[::-1]
    scale = Scale.of("money", shown[[*PARTS, "change"]].to_numpy().ravel())
    names = [escape(name) for name in series_names(shown, by)]
    for place, part in enumerate(PARTS):
        figure.add_bar(
            x=shown[part],
            y=names,
            orientation="h",
            name=part.capitalize(),
            marker={"color": look.palette[place]},
            customdata=[scale.text(amount, is_signed=True) for amount in shown[part]],
            hovertemplate=f"%{{y}}: %{{customdata}}<extra>{part.capitalize()}</extra>",
        )
    figure.add_scatter(
        x=shown["change"],
        y=names,
        mode="markers",
        name="Change",
        marker={"symbol": "diamond", "size": 9, "color": look.ink, "line": {"color": look.paper, "width": 1.5}},
        customdata=[scale.text(amount, is_signed=True) for amount in shown["change"]],
        hovertemplate="%{y}: %{customdata}<extra>Change</extra>",
    )
    figure.update_layout(barmode="relative", bargap=0.35, hovermode="closest", legend_traceorder="normal")
    figure.update_layout(height=max(260, 196 + 30 * max(1, len(shown))))
    number_axis(figure, "x", unit, float(shown["change"].abs().max()) if len(shown) else 1.0)
    figure.update_xaxes(showgrid=True, showline=False, rangemode="normal", zeroline=True, zerolinecolor=look.muted)
    figure.update_yaxes(type="category", showgrid=False, tickvals=names)
    figure.update_yaxes(ticktext=[row_label(name) for name in series_names(shown, by)])
    more = f", largest {MOST_SEGMENTS} of {len(parts)}" if len(parts) > MOST_SEGMENTS else ""
    words = f"{unit.unit_words}, change by {words_by(parts, by)}{more}"
    return finish(figure, parts, title or "Where revenue changed", words, kind="money", alt=_in_words(shown, by, scale))


def _levels(heights: list[float]) -> tuple[float, float]:
    """Return the highest and the lowest level that the bridge reaches."""
    levels = [heights[0]]
    for step in heights[1:-1]:
        levels.append(levels[-1] + step)
    return max(levels), min(levels)


def _in_words(shown: DataFrame, by: str | Sequence[str], scale: Scale) -> str:
    pairs = zip(series_names(shown, by)[::-1], shown["change"][::-1], strict=True)
    return "; ".join(f"{name} {scale.text(change, is_signed=True)}" for name, change in pairs)
