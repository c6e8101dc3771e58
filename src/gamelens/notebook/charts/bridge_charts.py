"""Bridges from one number to another: revenue by what moved it, whole and by segment, and two answers by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandas import DataFrame, Series
from plotly.graph_objects import Figure

from gamelens._scales import Scale
from gamelens.analysis.claims.findings import HALF_CENT
from gamelens.analysis.decomposition import PARTS, total_change
from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames.columns import Column, column_named
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.notebook.escaping import escape
from gamelens.notebook.figures.captions import words_by
from gamelens.notebook.figures.figure_frame import finish, number_axis
from gamelens.notebook.figures.theme import theme
from gamelens.notebook.labels import row_label, shorten

MOST_SEGMENTS: Final = 12
MOST_GAMES: Final = 6
_FEW_GAMES: Final = 3
_LETTERS_ACROSS: Final = 90  # of the width of all bars
_SMALL_STEP: Final = 0.1
_UP, _DOWN = 2, 5  # places in the palette


def draw_decomposition(parts: DataFrame, *, title: str | None = None) -> Figure:
    """Draw the bridge from the earlier to the later revenue: volume, mix and price.

    Where the steps are small beside the revenue, the axis starts above 0 and the subtitle says so.

    Args:
        parts: the frame of `gamelens.analysis.decomposition.decompose`.
        title: None is a default title.
    """
    row, figure, unit = total_change(parts).iloc[0], Figure(), column_named("ad_revenue")
    heights = [float(row["before"]), *(float(row[name]) for name in PARTS), float(row["after"])]
    scale = Scale.of("money", heights)
    words = [scale.text(height, is_signed=0 < place < len(heights) - 1) for place, height in enumerate(heights)]
    if len(parts):
        _draw_steps(figure, ["Before", "Volume", "Mix", "Price", "After"], heights, words)
    is_cut = _fit_axis(figure, unit, heights)
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


def draw_money_drivers(
    drivers: DataFrame, now: Series[float], before: Series[float], *, title: str | None = None
) -> Figure:
    """Draw what moved the money of each game: a row for each, the largest change on top, six at most.

    The bars of a row add up to its change. Those that are clear have a colour, those within day-to-day variation are
    grey.

    Args:
        drivers: the frame of `gamelens.analysis.changes.money_drivers` by game.
        now: money of each game (USD), by its title.
        before: the same of the period before.
        title: None is a default title.
    """
    look, figure, unit = theme(), Figure(), column_named("ad_revenue")
    change = drivers.groupby("game", observed=True)["effect"].sum()
    games = change.loc[change.abs().sort_values().index[-MOST_GAMES:]].index.tolist()
    shown = drivers[drivers["game"].isin(games) & (drivers["effect"].abs() >= HALF_CENT)]
    room = shown.groupby("game", observed=True)["effect"].apply(lambda effects: effects.abs().sum()).max()
    scale = Scale.of("money", [*now, *before])
    steps = Scale.of("money", shown["effect"])
    for driver, rows in shown.groupby("driver", sort=False, observed=True):
        is_clear, effects = (rows["p_adjusted"] < LEVEL).tolist(), rows["effect"].tolist()
        words = [f"{driver} {steps.text(effect, is_signed=True)}" for effect in effects]
        figure.add_bar(
            x=effects,
            y=[games.index(game) for game in rows["game"]],
            orientation="h",
            name=escape(driver),
            marker={
                "color": [
                    look.palette[_UP if effect > 0 else _DOWN] if clear else look.pale
                    for effect, clear in zip(effects, is_clear, strict=True)
                ],
                "line": {"color": look.paper, "width": 1.5},
            },
            text=[
                escape(text) if abs(effect) > len(text) * room / _LETTERS_ACROSS else ""
                for text, effect in zip(words, effects, strict=True)
            ],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": [look.paper if clear else look.ink for clear in is_clear], "size": 12},
            customdata=[escape(text) for text in words],
            hovertext=[escape(game) for game in rows["game"]],
            hovertemplate="%{hovertext}: %{customdata}<extra></extra>",
        )
    figure.update_layout(barmode="relative", bargap=0.3, showlegend=False, hovermode="closest")
    number_axis(figure, "x", unit, float(room) if len(shown) else 1.0)
    figure.update_xaxes(showgrid=True, showline=False, rangemode="normal", zeroline=True, zerolinecolor=look.muted)
    sums = [tuple(scale.text(money.get(game, 0.0)) for money in (now, before)) for game in games]
    between, row_px = ("<br>", 42) if len(games) <= _FEW_GAMES else (", ", 26)
    figure.update_layout(height=190 + row_px * max(1, len(games)))
    labels = [
        f"{escape(shorten(str(game)))}{between}{escape(after)}, before {escape(earlier)}"
        for game, (after, earlier) in zip(games, sums, strict=True)
    ]
    figure.update_yaxes(showgrid=False, tickvals=[*range(len(games))], ticktext=labels)
    more = f", largest {MOST_GAMES} of {len(change)}" if len(change) > MOST_GAMES else ""
    alt = "; ".join(
        f"{game} {after} against {earlier}: {_effects_in_words(shown, game, steps)}"
        for game, (after, earlier) in reversed([*zip(games, sums, strict=True)])
    )
    words_below = f"USD, by what moved it; grey: within day-to-day variation{more}"
    return finish(figure, drivers, title or "What moved the money of each game", words_below, kind="money", alt=alt)


def draw_causes(
    causes: DataFrame, before: float, after: float, *, names: tuple[str, str], title: str | None = None
) -> Figure:
    """Draw the bridge from one answer to another by the causes of their difference.

    Where the steps are small beside the answers, the axis starts above 0 and the subtitle says so.

    Args:
        causes: the frame `causes` of `gl.reconcile(...)`, whose amounts are the first answer less the second.
        before: the first answer, a count.
        after: the second answer.
        names: what the two answers are called.
        title: None is a default title.
    """
    figure, unit = Figure(), column_named("event_count")
    moved = causes[causes["amount"].abs() > 0]
    heights = [before, *(-moved["amount"]).tolist(), after]
    scale = Scale.of("count", heights)
    words = [scale.text(height, is_signed=0 < place < len(heights) - 1) for place, height in enumerate(heights)]
    labels = [names[0], *map(str, moved["cause"]), names[1]]
    _draw_steps(figure, [escape(label[:1].upper() + label[1:]) for label in labels], heights, words)
    is_cut = _fit_axis(figure, unit, heights)
    figure.update_layout(showlegend=False, hovermode="closest", bargap=0.35)
    alt = "; ".join(f"{name} {text}" for name, text in zip(labels, words, strict=True))
    more = ", the axis does not start at 0" if is_cut else ""
    return finish(figure, causes, title or "Why the answers differ", f"{unit.unit_words}{more}", kind="count", alt=alt)


def _draw_steps(figure: Figure, names: list[str], heights: list[float], words: list[str]) -> None:
    """Draw a bridge: the first of *heights* and the last are levels, the others steps between them."""
    look = theme()
    figure.add_waterfall(
        x=names,
        y=[*heights[:-1], None],
        measure=["absolute", *["relative"] * (len(heights) - 2), "total"],
        text=words,
        textposition="outside",
        cliponaxis=False,
        connector={"line": {"color": look.pale, "width": 1}},
        increasing={"marker": {"color": look.palette[_UP]}},
        decreasing={"marker": {"color": look.palette[_DOWN]}},
        totals={"marker": {"color": look.muted}},
        hovertemplate="%{x}: %{text}<extra></extra>",
    )


def _fit_axis(figure: Figure, unit: Column, heights: list[float]) -> bool:
    """Fit the axis to the levels of a bridge. Returns whether it starts above 0."""
    highest, lowest = _levels(heights)
    number_axis(figure, "y", unit, highest)
    is_cut = lowest > 0 and highest - lowest < _SMALL_STEP * highest
    if is_cut:
        margin = max(highest - lowest, 0.01 * highest)
        figure.update_yaxes(range=[max(0.0, lowest - 1.5 * margin), highest + margin], rangemode="normal")
        figure.update_yaxes(tickformat=Scale.of_axis(unit.written, highest - lowest + 2.5 * margin).d3)
    return is_cut


def _effects_in_words(shown: DataFrame, game: object, scale: Scale) -> str:
    """Return the effects on the money of *game*, the largest first."""
    rows = shown[shown["game"] == game].sort_values("effect", key=abs, ascending=False)
    pairs = zip(rows["driver"], rows["effect"], strict=True)
    return ", ".join(f"{driver} {scale.text(effect, is_signed=True)}" for driver, effect in pairs) or "no change"


def _levels(heights: list[float]) -> tuple[float, float]:
    """Return the highest and the lowest level that the bridge reaches."""
    levels = [heights[0]]
    for step in heights[1:-1]:
        levels.append(levels[-1] + step)
    return max(levels), min(levels)


def _in_words(shown: DataFrame, by: str | Sequence[str], scale: Scale) -> str:
    pairs = zip(series_names(shown, by)[::-1], shown["change"][::-1], strict=True)
    return "; ".join(f"{name} {scale.text(change, is_signed=True)}" for name, change in pairs)
