"""Experiments: the effect of a variant, its size and its uncertainty.

Never asks a service and never draws. Open `variant_tests` first.
"""

from gamelens.analysis.experiments.control_comparison import concat_comparisons, control_of
from gamelens.analysis.experiments.power_analysis import detectable_effects, minimal_effect, power, sample_size
from gamelens.analysis.experiments.revenue_per_player import money_differences, money_per_player
from gamelens.analysis.experiments.variant_tests import (
    arms,
    conversion_shares,
    differences,
    probability_best,
    retention_shares,
    sample_ratio,
)

__all__ = [
    "arms",
    "concat_comparisons",
    "control_of",
    "conversion_shares",
    "detectable_effects",
    "differences",
    "minimal_effect",
    "money_differences",
    "money_per_player",
    "power",
    "probability_best",
    "retention_shares",
    "sample_ratio",
    "sample_size",
]
