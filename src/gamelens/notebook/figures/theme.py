"""The light and the dark theme of all figures, suitable for colour-blind readers.

Drawing code calls `theme()` each time it draws, and contains no colour of its own.
"""

from __future__ import annotations

import os
from typing import Any, Final, Literal

import msgspec

from gamelens.errors import BadQuery

ThemeName = Literal["light", "dark"]
VARIABLE: Final = "GAMELENS_THEME"

_UNUSED_BUTTONS: Final = ("zoom", "pan", "select", "lasso", "zoomIn", "zoomOut", "autoScale", "toggleSpikelines")
_FONT: Final = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"


class Theme(msgspec.Struct, frozen=True):
    """Colours by their purpose, all as `#rrggbb`.

    Attributes:
        name: light or dark.
        paper: the background.
        ink: texts and outlines. Contrast 4.5:1 against *paper* and against the whole *sequential* scale.
        muted: less important texts and marks. Contrast 4.5:1 against *paper*.
        grid: grid lines.
        pale: marks in the background.
        alarm: flagged values. Contrast 3:1 against *paper*.
        palette: one colour for each compared value. Contrast 3:1 against *paper*.
        sequential: a scale from little to much.
        diverging: a scale with 0 in the middle.
    """

    name: ThemeName
    paper: str
    ink: str
    muted: str
    grid: str
    pale: str
    alarm: str
    palette: tuple[str, ...]
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]

    @property
    def template(self) -> str:
        """The name of the theme among plotly's templates."""
        return "gamelens" if self.name == "light" else f"gamelens_{self.name}"


LIGHT: Final = Theme(
    name="light",
    paper="#ffffff",
    ink="#1f2933",
    muted="#667280",
    grid="#e6eaef",
    pale="#c9d1da",
    alarm="#b3261e",
    palette=("#2b4bb5", "#a3521c", "#17a38e", "#6c2c5b", "#1b7cab", "#c77867", "#8e7fe2", "#918517"),
    sequential=("#eaf3fa", "#c5def0", "#8fc0e2", "#5199ce"),
    diverging=("#8c3a00", "#e08a4a", "#f4f4f2", "#5b9fd0", "#084a80"),
)
DARK: Final = Theme(
    name="dark",
    paper="#14191f",
    ink="#e7ecf1",
    muted="#98a5b3",
    grid="#29323c",
    pale="#46525f",
    alarm="#ff7a70",
    palette=("#7581f1", "#f5ad68", "#7beee8", "#ce5a96", "#0ca6d2", "#de8071", "#ca94fc", "#909327"),
    sequential=("#1d2b39", "#20425f", "#255884", "#2a6ba3"),
    diverging=("#f0a468", "#a35a1f", "#20272f", "#2a6da3", "#8cc4f0"),
)
THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in (LIGHT, DARK)}


class _Choice:
    """The theme that `use_theme` has set."""

    name: str = "auto"


_CHOICE: Final = _Choice()


def use_theme(name: str) -> None:
    """Draw all later figures in a theme: "light", "dark" or "auto".

    "auto" is the theme that GAMELENS_THEME names, else light.

    Raises:
        BadQuery: there is no such theme.
    """
    _CHOICE.name = _theme_name("theme", name)


def theme() -> Theme:
    """Return the current theme.

    Raises:
        BadQuery: GAMELENS_THEME names no theme.
    """
    name = _CHOICE.name
    if name == "auto":
        name = _theme_name(VARIABLE, os.environ.get(VARIABLE) or "auto")
    return THEMES.get(name, LIGHT)


def translucent(colour: str, alpha: float) -> str:
    """Return *colour* (#rrggbb) as rgba with the opacity *alpha*."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def scale(colours: tuple[str, ...]) -> list[list[Any]]:
    """Return *colours* as a plotly colour scale with even steps."""
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


def layout_of(look: Theme) -> dict[str, Any]:
    """Return the plotly layout that every figure in the theme *look* starts from."""
    axis = _axis(look)
    return {
        "autosize": True,
        "colorscale": {
            "sequential": scale(look.sequential),
            "sequentialminus": scale(look.sequential[::-1]),
            "diverging": scale(look.diverging),
        },
        "colorway": list(look.palette),
        "font": {"family": _FONT, "color": look.ink, "size": 13},
        "height": 420,
        "hoverlabel": {
            "bgcolor": look.paper,
            "bordercolor": look.pale,
            "font": {"family": _FONT, "color": look.ink, "size": 12},
        },
        "hovermode": "x unified",
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
        "margin": {"l": 16, "r": 24, "t": 104, "b": 72},
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": look.pale,
            "activecolor": look.muted,
            "remove": list(_UNUSED_BUTTONS),
        },
        "paper_bgcolor": look.paper,
        "plot_bgcolor": look.paper,
        "title": {
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 14, "t": 26},
            "font": {"size": 19, "color": look.ink},
        },
        "xaxis": {**axis, "showgrid": False, "showline": True, "ticklabelstandoff": 4},
        "yaxis": {**axis, "ticklabelstandoff": 6},
    }


def _axis(look: Theme) -> dict[str, Any]:
    return {
        "automargin": True,
        "gridcolor": look.grid,
        "linecolor": look.pale,
        "ticks": "",
        "tickfont": {"color": look.muted, "size": 12},
        "title": {"font": {"color": look.muted, "size": 12}, "standoff": 8},
        "zeroline": False,
        "zerolinecolor": look.pale,
    }


def _theme_name(field: str, name: str) -> str:
    """Return *name* if it is a theme or "auto".

    Raises:
        BadQuery: it is neither. The error names *field*.
    """
    if name != "auto" and name not in THEMES:
        raise BadQuery(field, name, "is not a theme", [*THEMES, "auto"])
    return name
