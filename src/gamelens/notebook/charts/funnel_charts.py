"""The ad funnel: from requested to clicked ads."""

from __future__ import annotations

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.figure_frame import finish
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.tables.column_texts import columns_of


def draw_funnel(steps: DataFrame, *, title: str | None = None) -> Figure:
    """Draw the steps from request to click with their counts and shares.

    The shares are of all requests and of the step before.

    Args:
        steps: the frame of `gamelens.analysis.ads.waterfall`.
        title: None is a default title.
    """
    look, figure = theme(), Figure()
    names = [name_of(str(step)) for step in steps["step"]]
    words = _words(steps)
    if len(steps) and steps["events"].max() > 0:
        figure.add_bar(
            x=steps["events"].astype("float64"),
            y=[escape(name) for name in names],
            orientation="h",
            marker={"color": look.palette[0], "cornerradius": 2},
            text=[escape(word) for word in words],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
        figure.update_xaxes(range=[0, 1.45 * float(steps["events"].max())])  # room for the words beside the longest
    figure.update_layout(showlegend=False, hovermode="closest", bargap=0.3, height=190 + 46 * max(1, len(steps)))
    figure.update_xaxes(visible=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    alt = "; ".join(f"{name} {word}" for name, word in zip(names, words, strict=True))
    return finish(figure, steps, title or "From request to click", "ads", kind="count", alt=alt)


def _words(steps: DataFrame) -> list[str]:
    """Return the label of each bar, with the numbers of the table."""
    texts, words = {column.column: column for column in columns_of(steps)}, []
    for place, row in enumerate(steps.to_dict("records")):
        label = texts["events"].text(place)
        if not pd.isna(row["share_of_step_before"]):
            label += f" · {texts['share_of_step_before'].text(place)} of the step before"
            if row["share_of_requests"] != row["share_of_step_before"]:
                label += f" · {texts['share_of_requests'].text(place)} of requests"
        words.append(label)
    return words
