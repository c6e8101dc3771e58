"""Constants of experiments, each with its source: a derivation, a paper, an experiment (`make methods`) or a choice."""

from __future__ import annotations

from typing import Final

TYPICAL_LIFT: Final = 0.2
"""Standard deviation of the effects over which an always-valid interval averages, as a part of the mean of both arms.
The interval holds for effects of any size and is narrowest for such. It must not depend on the result, so it is a
constant.

Experiment: width of always-valid intervals as a multiple of intervals for one look, and how often they exclude no
effect on any of 60 mornings.
"""
SUSPECT: Final = 0.001
"""P-value of the split below which no result of the experiment can be trusted.

Paper: Fabijan and others 2019, https://doi.org/10.1145/3292500.3330722, report thresholds from 0.01 to 0.0005; a
thousandth lets a platform with a few hundred experiments a year doubt none without reason.
"""
FEWEST_EXPECTED: Final = 5.0
"""Expected players that the smallest arm needs on a day.

Days with fewer are tested together with the next.

Paper: Cochran 1954, https://doi.org/10.2307/3001616: chi-squared holds where every cell expects five.
"""
QUARTER_DAYS: Final = 91
"""Install days after which waiting for an answer costs more than the answer is worth.

Choice: a quarter of a year, the horizon of a plan.
"""
MOST_DAYS: Final = 365
"""Days beyond which a sentence says "more than" instead of the number.

Choice: a year.
"""
DRAWS: Final = 100_000
"""Samples of each arm's posterior from which the probability to be the best is counted.

Derived: a probability of a half has then a simulation error of 0.5 over the root of the draws, 0.16 percentage points.
"""
