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

from gamelens.notebook.charts.bridge_charts import draw_contributions, draw_decomposition
from gamelens.notebook.charts.cohort_charts import draw_cohorts, draw_curve
from gamelens.notebook.charts.forest_plots import draw_chances, draw_differences
from gamelens.notebook.charts.funnel_charts import draw_funnel
from gamelens.notebook.charts.line_charts import draw_bars, draw_lines
from gamelens.notebook.charts.projection_charts import draw_ltv, draw_payback, draw_projection
from gamelens.notebook.charts.small_multiples import MOST_PANELS, draw_bands, draw_panels
from gamelens.notebook.charts.special_day_charts import draw_occasions
from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.figures.captions import main_value
from gamelens.notebook.figures.image_files import save
from gamelens.notebook.figures.theme import use_theme

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
