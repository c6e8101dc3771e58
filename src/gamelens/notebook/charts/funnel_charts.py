"""Funnels: from requested to clicked ads, and the steps that players reach."""

from __future__ import annotations

from typing import Final

import pandas as pd
from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens.analysis.claims.leaders import largest_loss
from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.figure_frame import finish
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import shorten
from gamelens.notebook.tables.column_texts import columns_of

_OF_ADS: Final = ("events", "share_of_requests", "share_of_step_before", "requests")
_OF_PLAYERS: Final = ("players", "share", "of_previous", "all")


def draw_funnel(steps: DataFrame, *, title: str | None = None) -> Figure:
    """Draw the steps from request to click, or those that players reach, with their counts and shares.

    The shares are of the first step and of the step before. The step before which clearly the most players stop is
    drawn in the colour of alarms, the others in grey.

    Args:
        steps: the frame of `gamelens.analysis.ads.waterfall` or of `gamelens.raw_events.funnel`.
        title: None is a default title.
    """
    look, figure, is_of_players = theme(), Figure(), "players" in steps
    names = (
        [shorten(str(name)) for name in steps["name"]]
        if is_of_players
        else [name_of(str(step)) for step in steps["step"]]
    )
    count = "players" if is_of_players else "events"
    words = _words(steps, *(_OF_PLAYERS if is_of_players else _OF_ADS))
    colours, labels = [look.palette[0]] * len(names), [escape(word) for word in words]
    if is_of_players and (loss := largest_loss(steps)).is_clear:
        at = [str(name) for name in steps["name"]].index(loss.subject["name"])
        colours = [look.muted] * len(names)
        colours[at], labels[at] = look.alarm, f"<b>{labels[at]}</b>"
    if len(steps) and steps[count].max() > 0:
        figure.add_bar(
            x=steps[count].astype("float64"),
            y=[escape(name) for name in names],
            orientation="h",
            marker={"color": colours, "cornerradius": 2},
            text=labels,
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
        figure.update_xaxes(range=[0, 1.45 * float(steps[count].max())])  # room for the words beside the longest
    figure.update_layout(
        showlegend=False,
        hovermode="closest",
        bargap=0.3,
        height=190 + (34 if is_of_players else 46) * max(1, len(steps)),
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    alt = "; ".join(f"{name} {word}" for name, word in zip(names, words, strict=True))
    headline, unit = ("How far players come", "players") if is_of_players else ("From request to click", "ads")
    return finish(figure, steps, title or headline, unit, kind="count", alt=alt)


def _words(steps: DataFrame, count: str, of_first: str, of_before: str, first: str) -> list[str]:
    """Return the label of each bar, with the numbers of the table.

    Args:
        steps: the frame.
        count: its column of counts.
        of_first: its column of shares of the first step.
        of_before: its column of shares of the step before.
        first: what the first step is called.
    """
    texts, words = {column.column: column for column in columns_of(steps)}, []
    for place, row in enumerate(steps.to_dict("records")):
        label = texts[count].text(place)
        if not pd.isna(row[of_before]):
            label += f" · {texts[of_before].text(place)} of the step before"
            if row[of_first] != row[of_before]:
                label += f" · {texts[of_first].text(place)} of {first}"
        words.append(label)
    return words
