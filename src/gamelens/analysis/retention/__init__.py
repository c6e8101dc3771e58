"""Retention: the share of players who return, by age, and its projection.

Never asks a service and never draws. Open `retention_rates` first.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.retention.cohort_drift import drift
from gamelens.analysis.retention.curve_selection import compare_curves
from gamelens.analysis.retention.lifetime_value import ltv
from gamelens.analysis.retention.projection import project_retention
from gamelens.analysis.retention.retention_rates import (
    average_curve,
    by_half,
    cohort_matrix,
    cohort_sizes,
    day_range,
    day_spread,
    pooled,
)
from gamelens.analysis.wilson_intervals import wilson
from gamelens.errors import no_such_name

__all__ = [
    "average_curve",
    "by_half",
    "cohort_matrix",
    "cohort_sizes",
    "compare_curves",
    "day_range",
    "day_spread",
    "drift",
    "ltv",
    "pooled",
    "project_retention",
    "wilson",
]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
