"""Many small figures side by side."""

from __future__ import annotations

from typing import Final

from pandas import DataFrame
from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from gamelens.analysis.frames import label
from gamelens.notebook.colours import game_colours
from gamelens.notebook.figures import finish
from gamelens.notebook.labels import escape
from gamelens.notebook.traces import band_traces

MOST_PANELS: Final = 24


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
    colours = game_colours(label(scores["game"]).unique(), scores)
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
    return finish(figure, scores, title or "As usual, or not", words)
