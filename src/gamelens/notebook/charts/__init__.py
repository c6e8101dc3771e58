"""Figures: every `draw_` function takes a frame and returns a plotly figure.

Each figure has a title, its unit in the subtitle, one colour per game, and a source line below with the date of the
data. Names from outside are escaped, and a null is "(unknown)". Never queries, and computes no metric: frames come from
a client or from `analysis`. Open `line_charts` first.

    line_charts         draw_lines, draw_bars
    cohort_charts       draw_cohorts, draw_curve
    small_multiples     draw_panels, draw_bands
    bridge_charts       draw_decomposition, draw_contributions, draw_money_drivers, draw_causes
    funnel_charts       draw_funnel
    forest_plots        draw_differences, draw_chances, draw_ecpm_index, draw_returns
    projection_charts   draw_projection, draw_ltv, draw_payback
    special_day_charts  draw_occasions

`alt_text` describes a figure in words, and `save` writes it to a file. `use_theme` selects colours and fonts. plotly
knows the themes as the templates "gamelens" and "gamelens_dark".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamelens.errors import no_such_name
from gamelens.notebook.charts.bridge_charts import (
    draw_causes,
    draw_contributions,
    draw_decomposition,
    draw_money_drivers,
)
from gamelens.notebook.charts.cohort_charts import draw_cohorts, draw_curve
from gamelens.notebook.charts.forest_plots import draw_chances, draw_differences, draw_ecpm_index, draw_returns
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
    "draw_causes",
    "draw_chances",
    "draw_cohorts",
    "draw_contributions",
    "draw_curve",
    "draw_decomposition",
    "draw_differences",
    "draw_ecpm_index",
    "draw_funnel",
    "draw_lines",
    "draw_ltv",
    "draw_money_drivers",
    "draw_occasions",
    "draw_panels",
    "draw_payback",
    "draw_projection",
    "draw_returns",
    "main_value",
    "save",
    "use_theme",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
