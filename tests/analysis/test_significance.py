"""P-values, their adjustment, false discovery rates and always-valid intervals, against SciPy and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis.significance import (
    always_valid_half_width,
    difference_of,
    false_discovery,
    holm,
    ratio_bounds,
    two_sided,
)


def test_q_is_what_scipy_says() -> None:
    """False discovery rates equal those of SciPy, column by column."""
    from scipy import stats

    chance = np.random.default_rng(1).uniform(size=(40, 3)) ** 3
    assert false_discovery(chance) == pytest.approx(stats.false_discovery_control(chance, axis=0))


def test_what_is_not_tested_counts_for_nothing() -> None:
    """A NaN among p-values stays NaN and does not count as a test."""
    from scipy import stats

    chance = np.array([[0.01], [np.nan], [0.04]])
    assert false_discovery(chance)[[0, 2], 0] == pytest.approx(stats.false_discovery_control([0.01, 0.04]))
    assert np.isnan(false_discovery(chance)[1, 0])


@pytest.mark.parametrize("freedom", [7.0, 10.5, 40.0, np.inf])
def test_the_chance_of_a_stray_is_students(freedom: float) -> None:
    """Two-sided p-values are those of Student's t, or of the normal distribution."""
    from scipy import stats

    z = np.array([0.0, 1.0, 2.5, 4.0])
    wanted = 2 * stats.t.sf(z, freedom) if np.isfinite(freedom) else 2 * stats.norm.sf(z)
    assert two_sided(z, np.full(4, freedom)) == pytest.approx(wanted)


def test_holm_raises_p_values_step_by_step_and_skips_nan() -> None:
    """Holm's adjustment multiplies step by step, stays monotonic and skips NaN."""
    raised = holm(pd.Series([0.01, 0.04, float("nan"), 0.03]))
    assert raised.tolist()[:2] == pytest.approx([0.03, 0.06])
    assert raised.iloc[3] == pytest.approx(0.06)
    assert pd.isna(raised.iloc[2])


def test_holm_is_what_statsmodels_says() -> None:
    """Corrected p-values equal those of statsmodels, whatever the order and the index of the rows."""
    from statsmodels.stats.multitest import multipletests

    chance = np.random.default_rng(2).uniform(size=30) ** 3
    rows = pd.Series(chance, index=[*range(30, 0, -1)])
    assert holm(rows).tolist() == pytest.approx(multipletests(chance, method="holm")[1].tolist())
    assert holm(pd.Series([float("nan")])).isna().all()


def test_always_valid_intervals_hold_one_path_in_twenty_at_most() -> None:
    """Of 4,000 means of up to 500 normal values at most 5 % ever leave the interval, and 30 % one for a single look."""
    rng, count = np.random.default_rng(6), np.arange(1, 501)
    means = rng.normal(size=(4000, 500)).cumsum(axis=1) / count
    half = np.array([always_valid_half_width(1 / n**0.5, 0.2) for n in count])
    assert 0.01 < (np.abs(means) > half).any(axis=1).mean() <= 0.05
    assert (np.abs(means) > 1.96 / count**0.5).any(axis=1).mean() > 0.3


def test_an_always_valid_interval_is_half_as_wide_again_at_best() -> None:
    """Its width is 1.55 times that of the usual one where the error is a third of the scale."""
    ratio = [always_valid_half_width(error, 1.0) / (1.959964 * error) for error in (0.01, 1 / 3, 5.0)]
    assert ratio[1] == pytest.approx(1.55, abs=0.01)
    assert min(ratio) == ratio[1]


def test_without_an_error_or_a_scale_nothing_is_known() -> None:
    """No error gives NaN, an error of 0 no width, and no scale an infinite one."""
    assert np.isnan(always_valid_half_width(float("nan"), 1.0))
    assert always_valid_half_width(0.0, 1.0) == 0
    assert always_valid_half_width(1.0, 0.0) == np.inf


def test_the_difference_of_two_estimates_adds_their_errors() -> None:
    """Symmetric intervals of 3 and 4 give one of 5."""
    assert difference_of((10.0, 7.0, 13.0), (2.0, -2.0, 6.0)) == (8.0, 3.0, 13.0)


def test_the_bounds_of_a_ratio_are_where_the_difference_reaches_zero() -> None:
    """At each bound r the interval of value - r base just holds 0, whatever the errors and their covariance."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        root = rng.normal(size=(2, 2)) * 0.2
        errors = root @ root.T
        value, base = rng.uniform(-1, 2), rng.uniform(1, 2)
        low, high = ratio_bounds(value, base, (errors[0, 0], errors[0, 1], errors[1, 1]))
        assert low < value / base < high
        for ratio in (low, high):
            contrast = np.array([1, -ratio])
            assert (value - ratio * base) ** 2 == pytest.approx(contrast @ errors @ contrast)


def test_nothing_bounds_a_ratio_to_what_may_be_zero() -> None:
    """The base is one error away from 0: both bounds are NaN. A value of 0 that cannot be smaller has the bound 0."""
    assert np.isnan(ratio_bounds(0.5, 1.0, (0.1, 0.0, 1.0))).all()
    assert ratio_bounds(0.0, 1.0, (0.0, 0.0, 1.1), (0.1, 0.0, 0.2))[0] == 0.0
