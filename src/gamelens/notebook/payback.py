"""How much of what players cost they have brought back, by days since install."""

from __future__ import annotations

from typing import Final

from pandas import DataFrame
from plotly.graph_objects import Figure

from gamelens._text import format_number
from gamelens.analysis.frames import series_names
from gamelens.notebook.captions import words_by
from gamelens.notebook.figures import finish, number_axis
from gamelens.notebook.labels import Unit, escape, shorten
from gamelens.notebook.style import theme

MOST_CURVES: Final = 8


def draw_payback(roas: DataFrame, by: str = "install_publisher", *, title: str | None = None) -> Figure:
    """Return on ad spend by age, a line for each of the eight largest spenders; the dotted line is paid back.

    Takes the frame of `gamelens.analysis.acquisition.return_on_spend`.
    """
    look, figure = theme(), Figure()
    names = series_names(roas, by)
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
                [format_number(spend, "money"), format_number(money, "money")]
                for spend, money in zip(rows["spend"], rows["money"], strict=True)
            ],
            hovertemplate="%{y:.1%}, %{customdata[1]} of %{customdata[0]}",
        )
    ages = sorted({int(age) for age in roas["age"]})
    highest = float(roas["roas"].max()) if len(roas) else 1.0
    number_axis(figure, "y", Unit("share", "share of ad spend"), highest)
    if highest >= 0.5:
        figure.add_hline(y=1, line={"color": look.muted, "width": 1, "dash": "dot"})
    figure.update_xaxes(tickvals=ages, ticktext=[f"D{age}" for age in ages])
    figure.update_layout(showlegend=len(order) > 1)
    by_what = f" by {words_by(roas, by)}" if len(order) > 1 else ""
    words = "money of bought players as a share of their ad spend, by days since install"
    return finish(figure, roas, title or f"Return on ad spend{by_what}", words, kind="share")
