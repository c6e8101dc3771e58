"""Program that compares arms as GrowthBook does, for each pair of arms in a JSON file.

    python growthbook_arms.py ARMS.json ANSWERS.json

Reads a list of pairs: the arm and its control, each with n, sum and, for means, sum_squares; without it the sum is a
number of successes. Writes the intervals of one look and of a sequential test of the difference, the one of the
relative difference, and the seconds of all. It runs in an interpreter of its own, as gbstats needs an older numpy.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from gbstats.frequentist.tests import (  # type: ignore[import-not-found]
    FrequentistConfig,
    SequentialConfig,
    SequentialTwoSidedTTest,
    TwoSidedTTest,
)
from gbstats.models.statistics import ProportionStatistic, SampleMeanStatistic  # type: ignore[import-not-found]

answers = []
began = time.perf_counter()
for pair in json.loads(Path(sys.argv[1]).read_text()):
    arms = [SampleMeanStatistic(**arm) if "sum_squares" in arm else ProportionStatistic(**arm) for arm in pair]
    arms = arms[::-1]  # the control first
    once = TwoSidedTTest(*arms, FrequentistConfig(difference_type="absolute")).compute_result()
    relative = TwoSidedTTest(*arms, FrequentistConfig(difference_type="relative")).compute_result()
    always = SequentialTwoSidedTTest(*arms, SequentialConfig(difference_type="absolute")).compute_result()
    answers.append({"once": once.ci, "relative": relative.ci, "always": always.ci, "p": once.p_value})
took_s = time.perf_counter() - began
Path(sys.argv[2]).write_text(json.dumps({"answers": answers, "seconds": took_s}))
