"""Program that compares arms as tea-tasting does, for each pair of arms in a JSON file.

    python tea_tasting_arms.py ARMS.json ANSWERS.json

Reads a list of pairs: the arm and its control, each with n and mean, and for means var, with a covariate also before,
before_var and cov. Writes the intervals of the difference and of the relative one, and the seconds of all. It runs in
an interpreter of its own, which keeps its dependencies out of ours.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import tea_tasting as tt  # type: ignore[import-not-found]
from tea_tasting.aggr import Aggregates  # type: ignore[import-not-found]


def aggregates(arm: dict[str, Any]) -> Any:
    """Return what tea-tasting reads of an arm."""
    mean, var, cov = {"y": arm["mean"]}, {"y": arm.get("var", 0.0)}, {}
    if "before" in arm:
        mean["b"], var["b"], cov["b", "y"] = arm["before"], arm["before_var"], arm["cov"]
    return Aggregates(count_=arm["n"], mean_=mean, var_=var, cov_=cov)


answers = []
began = time.perf_counter()
for treated, control in json.loads(Path(sys.argv[1]).read_text()):
    if "var" not in control:
        metric = tt.Proportion("y", method="norm", correction=False, equal_var=False)
    else:
        metric = tt.Mean("y", "b" if "before" in control else None)
    found = metric.analyze_aggregates(aggregates(control), aggregates(treated))
    once = [found.effect_size_ci_lower, found.effect_size_ci_upper]
    relative = [found.rel_effect_size_ci_lower, found.rel_effect_size_ci_upper]
    answers.append({"once": once, "relative": relative, "p": found.pvalue, "difference": found.effect_size})
took_s = time.perf_counter() - began
Path(sys.argv[2]).write_text(json.dumps({"answers": answers, "seconds": took_s}))
