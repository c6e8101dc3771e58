"""P-values of 200 drawn populations against the closed form, which must be uniform.

Run by `make bench`.
"""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.simulator import BgbbModel, fit_retention
from support.statistical_tests import DAYS, PAIRS, draw_activity, retention_p_values, uniformity_p_value

SEEDS, PLAYERS = 200, 200_000
CASUAL = fit_retention(0.37, 0.125, 0.04)
TESTS = [*(f"D{day}" for day in DAYS), *(f"D{first} and D{second}" for first, second in PAIRS)]


@pytest.mark.parametrize(
    "activity", [CASUAL, CASUAL.moved(play=0.3, drop_out=-0.4)], ids=["as fitted", "in an experiment"]
)
def test_p_values_are_uniform(activity: BgbbModel) -> None:
    """No z-test of a D-n or a pair has p-values less uniform than p = 0.001."""
    generators = [np.random.default_rng([9, seed]) for seed in range(SEEDS)]
    p = np.array([retention_p_values(draw_activity(activity, PLAYERS, rng), activity) for rng in generators])
    uniformity = {name: uniformity_p_value(column) for name, column in zip(TESTS, p.T, strict=True)}
    worst = min(uniformity, key=lambda name: uniformity[name])
    print(
        f"\n{SEEDS} seeds of {PLAYERS:,} players, {len(uniformity)} tests: "
        f"least uniform {worst}, p = {uniformity[worst]:.3f}"
    )
    # Of as many tests as these one in thirty would fall below by chance; with fixed seeds the result never changes.
    assert uniformity[worst] > 0.001
