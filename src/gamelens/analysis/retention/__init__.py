"""Retention: the share of players who return, by age, and its projection.

Never asks a service and never draws. Open `retention_rates` first.
"""

from gamelens.analysis.retention.cohort_drift import drift_claims
from gamelens.analysis.retention.curve_selection import compare_curves, curve_verdict
from gamelens.analysis.retention.lifetime_value import dearest_claim, ltv
from gamelens.analysis.retention.projection import project_retention
from gamelens.analysis.retention.retention_claims import (
    day_range_claim,
    definitions_claim,
    gap_claim,
    installs_claim,
    level_claims,
    longest_claim,
)
from gamelens.analysis.retention.retention_rates import (
    average_curve,
    by_half,
    cohort_matrix,
    cohort_sizes,
    day_spread,
    pooled,
    wilson,
)

__all__ = [
    "average_curve",
    "by_half",
    "cohort_matrix",
    "cohort_sizes",
    "compare_curves",
    "curve_verdict",
    "day_range_claim",
    "day_spread",
    "dearest_claim",
    "definitions_claim",
    "drift_claims",
    "gap_claim",
    "installs_claim",
    "level_claims",
    "longest_claim",
    "ltv",
    "pooled",
    "project_retention",
    "wilson",
]
