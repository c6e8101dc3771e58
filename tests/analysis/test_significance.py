"""P-values, their adjustment and false discovery rates, against SciPy and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gamelens.analysis.significance import false_discovery, holm, two_sided


def test_q_is_what_scipy_says() -> None:
    """False discovery rates equal those of SciPy, column by column."""
    chance = np.random.default_rng(1).uniform(size=(40, 3)) ** 3
    assert false_discovery(chance) == pytest.approx(stats.false_discovery_control(chance, axis=0))


def test_what_is_not_tested_counts_for_nothing() -> None:
    """A NaN among p-values stays NaN and does not count as a test."""
    chance = np.array([[0.01], [np.nan], [0.04]])
    assert false_discovery(chance)[[0, 2], 0] == pytest.approx(stats.false_discovery_control([0.01, 0.04]))
    assert np.isnan(false_discovery(chance)[1, 0])


@pytest.mark.parametrize("freedom", [7.0, 10.5, 40.0, np.inf])
def test_the_chance_of_a_stray_is_students(freedom: float) -> None:
    """Two-sided p-values are within 5 % of Student's t, or of the normal distribution."""
    z = np.array([0.0, 1.0, 2.5, 4.0])
    wanted = 2 * stats.t.sf(z, freedom) if np.isfinite(freedom) else 2 * stats.norm.sf(z)
    assert two_sided(z, np.full(4, freedom)) == pytest.approx(wanted, rel=0.05)


def test_holm_raises_p_values_step_by_step_and_skips_nan() -> None:
    """Holm's adjustment multiplies step by step, stays monotonic and skips NaN."""
    raised = holm(pd.Series([0.01, 0.04, float("nan"), 0.03]))
    assert raised.tolist()[:2] == pytest.approx([0.03, 0.06])
    assert raised.iloc[3] == pytest.approx(0.06)
    assert pd.isna(raised.iloc[2])
