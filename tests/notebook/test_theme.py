"""Themes: colours that differ for every eye and are readable (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import plotly.graph_objects as go
import plotly.io
import pytest
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.errors import BadQuery
from gamelens.notebook import charts
from gamelens.notebook.figures import theme as theme_module
from gamelens.notebook.figures.theme import DARK, LIGHT, Theme, theme, use_theme

BOTH = pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])

# Machado, Oliveira and Fernandes 2009, severity 1.0, over linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
LEAST_APART = 6.0  # of 100 in OKLab; what the eye just tells apart side by side is about 2


@pytest.fixture(autouse=True)
def _restore_theme(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test without a theme in the environment, and reset the theme afterwards."""
    monkeypatch.delenv(theme_module.VARIABLE, raising=False)
    yield
    use_theme("auto")


def linear(colour: str) -> NDArray[np.float64]:
    """Return *colour* as linear RGB."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2)."""
    dark, bright = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def perceived(colour: str, vision: str) -> NDArray[np.float64]:
    """Return *colour* in OKLab (Ottosson 2020), as seen with *vision*."""
    seen = np.clip(np.array(VISIONS[vision]) @ linear(colour), 0, 1)
    cones = np.cbrt(
        [
            [0.4122214708, 0.5363325363, 0.0514459929] @ seen,
            [0.2119034982, 0.6806995451, 0.1073969566] @ seen,
            [0.0883024619, 0.2817188376, 0.6299787005] @ seen,
        ]
    )
    return 100 * np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468] @ cones,
            [1.9779984951, -2.4285922050, 0.4505937099] @ cones,
            [0.0259040371, 0.7827717662, -0.8086757660] @ cones,
        ]
    )


def between(look: Theme, place: float) -> str:
    """Return the colour of the sequential scale at *place*, mixed as a browser does."""
    steps = look.sequential
    low = min(int(place * (len(steps) - 1)), len(steps) - 2)
    share = place * (len(steps) - 1) - low
    pairs = [(int(steps[low][at : at + 2], 16), int(steps[low + 1][at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one + share * (other - one)):02x}" for one, other in pairs)


@BOTH
@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_colours_of_the_palette_are_told_apart(look: Theme, vision: str) -> None:
    """Any two colours of the palette differ by 6 of 100 in OKLab, for every kind of vision."""
    seen = [perceived(colour, vision) for colour in look.palette]
    closest = min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))
    assert closest >= LEAST_APART


@BOTH
def test_marks_stand_out_from_the_paper(look: Theme) -> None:
    """Colours of marks have a contrast of at least 3 to the paper (WCAG 2.2, 1.4.11)."""
    assert min(contrast(colour, look.paper) for colour in (*look.palette, look.muted, look.alarm)) >= 3


@BOTH
def test_texts_are_readable(look: Theme) -> None:
    """Colours of texts have a contrast of at least 4.5 to the paper (WCAG 2.2, 1.4.3)."""
    assert min(contrast(colour, look.paper) for colour in (look.ink, look.muted)) >= 4.5


@BOTH
def test_numbers_are_readable_in_every_cell(look: Theme) -> None:
    """Text has a contrast of at least 4.5 to every colour of the sequential scale."""
    assert min(contrast(between(look, place), look.ink) for place in np.linspace(0, 1, 41)) >= 4.5


def test_a_theme_is_chosen() -> None:
    """`use_theme` selects the light or the dark theme."""
    use_theme("dark")
    assert theme() is DARK
    use_theme("light")
    assert theme() is LIGHT


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default theme comes from `GAMELENS_THEME`, unless one is selected."""
    assert theme() is LIGHT
    monkeypatch.setenv("GAMELENS_THEME", "dark")
    assert theme() is DARK
    use_theme("light")
    assert theme() is LIGHT


def test_an_unknown_theme_is_refused() -> None:
    """An unknown theme raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery, match="Did you mean `dark`"):
        use_theme("darkk")


def test_an_unknown_theme_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown theme in `GAMELENS_THEME` raises `BadQuery` that names the variable."""
    monkeypatch.setenv("GAMELENS_THEME", "night")
    with pytest.raises(BadQuery, match="GAMELENS_THEME"):
        theme()


@pytest.mark.parametrize(("name", "look"), [("gamelens", LIGHT), ("gamelens_dark", DARK)])
def test_plotly_knows_the_templates(name: str, look: Theme) -> None:
    """Both themes are registered as plotly templates."""
    own = go.Figure(layout={"template": name})
    assert own.layout.template.layout.paper_bgcolor == look.paper
    assert plotly.io.templates[name].layout.colorway == look.palette


@pytest.mark.slow
def test_a_dark_figure_holds_no_colour_of_the_light_theme(networks: DataFrame, cohorts: DataFrame) -> None:
    """Figures drawn with the dark theme contain no colour of the light one."""
    use_theme("dark")
    figures = [networks.lens.plot(), networks[:3].lens.plot(), charts.draw_cohorts(cohorts.lens.matrix())]
    figures += [cohorts.lens.plot(), charts.draw_panels(networks, "ilrd_revenue", by="ilrd_network_name")]
    light = {LIGHT.paper, LIGHT.ink, LIGHT.muted, LIGHT.pale, *LIGHT.palette, *LIGHT.sequential}
    assert not [colour for figure in figures for colour in light if colour in figure.to_json()]
