"""Experiments and other splits: the effect of an arm, its size and its uncertainty.

Never asks a service and never draws. Open `comparison` first.
"""

from gamelens.analysis.experiments.arm_outcomes import OTHERS, per_new_player
from gamelens.analysis.experiments.comparison import compare, probability_best
from gamelens.analysis.experiments.player_outcomes import compare_players
from gamelens.analysis.experiments.power_analysis import detectable_effects, minimal_effect, power, sample_size
from gamelens.analysis.experiments.sample_ratios import arms, newest_arms, sample_ratio
from gamelens.analysis.experiments.verdicts import (
    advice_claims,
    arms_claim,
    best_claims,
    difference_claims,
    payers_claim,
    reach_claims,
    split_claims,
)

__all__ = [
    "OTHERS",
    "advice_claims",
    "arms",
    "arms_claim",
    "best_claims",
    "compare",
    "compare_players",
    "detectable_effects",
    "difference_claims",
    "minimal_effect",
    "newest_arms",
    "payers_claim",
    "per_new_player",
    "power",
    "probability_best",
    "reach_claims",
    "sample_ratio",
    "sample_size",
    "split_claims",
]
