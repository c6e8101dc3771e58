"""Experiments and other splits: the effect of an arm, its size and its uncertainty.

Never asks a service and never draws. Open `comparison` first.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.experiments.arm_outcomes import OTHERS, payers, per_new_player
from gamelens.analysis.experiments.comparison import compare
from gamelens.analysis.experiments.cuped import compare_players
from gamelens.analysis.experiments.next_steps import next_steps
from gamelens.analysis.experiments.power_analysis import detectable_effects, minimal_effect, power, sample_size
from gamelens.analysis.experiments.probability_best import probability_best
from gamelens.analysis.experiments.sample_ratios import arms, newest_arms, sample_ratio
from gamelens.errors import no_such_name

__all__ = [
    "OTHERS",
    "arms",
    "compare",
    "compare_players",
    "detectable_effects",
    "minimal_effect",
    "newest_arms",
    "next_steps",
    "payers",
    "per_new_player",
    "power",
    "probability_best",
    "sample_ratio",
    "sample_size",
]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
