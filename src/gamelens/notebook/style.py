"""The look of every figure: one light template, colours that survive colour blindness, one colour for each game."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

INK: Final = "#1f2933"
MUTED: Final = "#6b7785"
GRID: Final = "#e6eaef"
PALE: Final = "#c9d1da"
ALARM: Final = "#b3261e"
PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#4b3f92", "#8a7a12")
"""Okabe and Ito's colours without yellow and black, which a white page swallows, and two more dark ones."""
SEQUENTIAL: Final = ((0.0, "#f3f8fc"), (0.25, "#c6dcee"), (0.5, "#7db3d8"), (0.75, "#2b7bb5"), (1.0, "#08416f"))

_UNUSED_BUTTONS: Final = ("zoom", "pan", "select", "lasso", "zoomIn", "zoomOut", "autoScale", "toggleSpikelines")
_FONT: Final = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"


class GameColours:
    """A colour for each game, kept for as long as the process lives, so that a game looks the same in every figure."""

    def __init__(self) -> None:
        self._colours: dict[str, str] = {}

    def of(self, games: Iterable[str]) -> dict[str, str]:
        """Colours of *games*; those not met before take the next ones, in alphabetical order."""
        wanted = list(games)
        for game in sorted({*wanted} - {*self._colours}):
            self._colours[game] = PALETTE[len(self._colours) % len(PALETTE)]
        return {game: self._colours[game] for game in wanted}


GAME_COLOURS: Final = GameColours()


class Theme(NamedTuple):
    """Colours by what they are for."""

    paper: str = "#ffffff"
    ink: str = INK
    muted: str = MUTED
    grid: str = GRID
    pale: str = PALE
    alarm: str = ALARM
    palette: tuple[str, ...] = PALETTE


def theme() -> Theme:
    """The theme in force."""
    return Theme()


def translucent(colour: str, alpha: float) -> str:
    """*colour* (#rrggbb) as rgba."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def template() -> dict[str, Any]:
    """The layout every figure starts from."""
    axis = {
        "automargin": True,
        "gridcolor": GRID,
        "linecolor": PALE,
        "ticks": "",
        "tickfont": {"color": MUTED, "size": 12},
        "title": {"font": {"color": MUTED, "size": 12}, "standoff": 8},
        "zeroline": False,
    }
    layout = {
        "autosize": True,
        "colorway": list(PALETTE),
        "font": {"family": _FONT, "color": INK, "size": 13},
        "height": 420,
        "hoverlabel": {"bgcolor": "white", "bordercolor": PALE, "font": {"family": _FONT, "color": INK, "size": 12}},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
        "margin": {"l": 16, "r": 24, "t": 104, "b": 72},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": PALE, "activecolor": MUTED, "remove": list(_UNUSED_BUTTONS)},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "title": {
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 26},
            "font": {"size": 19, "color": INK},
        },
        "xaxis": {**axis, "showgrid": False, "showline": True, "ticklabelstandoff": 4},
        "yaxis": {**axis, "ticklabelstandoff": 6},
    }
    return {"layout": layout}
