"""Figures: every `draw_` function takes a frame and answers a plotly Figure.

Each has a title, its unit in the subtitle, one colour a game, and a line below that says where the numbers come from
and as of when. Names from outside are escaped; a null is "(unknown)". Nothing is fetched: the page that shows a figure
brings plotly with it.

    lines       draw_lines, draw_bars
    cohorts     draw_cohorts, draw_curve
    panels      draw_bands

Colours and fonts are those of `use_theme`; plotly knows the themes as the templates "gamelens" and "gamelens_dark".
"""

from __future__ import annotations

from gamelens.notebook.captions import main_value
from gamelens.notebook.cohorts import draw_cohorts, draw_curve
from gamelens.notebook.lines import draw_bars, draw_lines
from gamelens.notebook.panels import draw_bands
from gamelens.notebook.style import use_theme

__all__ = ["draw_bands", "draw_bars", "draw_cohorts", "draw_curve", "draw_lines", "main_value", "use_theme"]
