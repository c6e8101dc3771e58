"""Program that compares two shares as GrowthBook does, for each pair of arms in a JSON file.

    python growthbook_arms.py ARMS.json ANSWERS.json

Reads a list of [players, successes, control players, control successes]. Writes the interval of one look, of a
sequential test, and the seconds of both. It runs in an interpreter of its own, as gbstats needs an older numpy.
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
from gbstats.models.statistics import ProportionStatistic  # type: ignore[import-not-found]

answers = []
began = time.perf_counter()
for players, successes, base_players, base_successes in json.loads(Path(sys.argv[1]).read_text()):
    arms = ProportionStatistic(n=base_players, sum=base_successes), ProportionStatistic(n=players, sum=successes)
    once = TwoSidedTTest(*arms, FrequentistConfig(difference_type="absolute")).compute_result()
    always = SequentialTwoSidedTTest(*arms, SequentialConfig(difference_type="absolute")).compute_result()
    answers.append({"once": once.ci, "always": always.ci, "p_value": once.p_value})
took_s = time.perf_counter() - began
Path(sys.argv[2]).write_text(json.dumps({"answers": answers, "seconds": took_s}))
