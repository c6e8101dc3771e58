"""Figures: every `draw_` function takes a frame and answers a plotly Figure.

Each has a title, its unit in the subtitle, one colour a game, and a line below that says where the numbers come from
and as of when. Names from outside are escaped; a null is "(unknown)". Nothing is fetched: the page that shows a figure
brings plotly with it.

    lines       draw_lines, draw_bars
    cohorts     draw_cohorts, draw_curve
    panels      draw_panels, draw_bands
    bridges     draw_decomposition, draw_contributions
    funnels     draw_funnel
    forests     draw_differences, draw_chances
    projections draw_projection, draw_ltv
    payback     draw_payback
    calendars   draw_occasions

`alt_text` says what a figure shows, for who does not see it, and `save` writes it to a file.

Colours and fonts are those of `use_theme`; plotly knows the themes as the templates "gamelens" and "gamelens_dark".
"""

from __future__ import annotations

from gamelens.notebook.alternatives import alt_text
from gamelens.notebook.bridges import draw_contributions, draw_decomposition
from gamelens.notebook.calendars import draw_occasions
from gamelens.notebook.captions import main_value
from gamelens.notebook.cohorts import draw_cohorts, draw_curve
from gamelens.notebook.forests import draw_chances, draw_differences
from gamelens.notebook.funnels import draw_funnel
from gamelens.notebook.images import save
from gamelens.notebook.lines import draw_bars, draw_lines
from gamelens.notebook.panels import MOST_PANELS, draw_bands, draw_panels
from gamelens.notebook.payback import draw_payback
from gamelens.notebook.projections import draw_ltv, draw_projection
from gamelens.notebook.style import use_theme

__all__ = [
    "MOST_PANELS",
    "alt_text",
    "draw_bands",
    "draw_bars",
    "draw_chances",
    "draw_cohorts",
    "draw_contributions",
    "draw_curve",
    "draw_decomposition",
    "draw_differences",
    "draw_funnel",
    "draw_lines",
    "draw_ltv",
    "draw_occasions",
    "draw_panels",
    "draw_payback",
    "draw_projection",
    "main_value",
    "save",
    "use_theme",
]
