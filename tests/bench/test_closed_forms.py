"""Closed forms of our own beside those of scipy and statsmodels: the same numbers, and at least ten times as fast.

Run by `make bench`. A form that is not so is replaced by the library's. The times are the shortest of several runs on
data of the usual size, and only their ratio counts, so a busy machine is no reason to fail. Forms that no library has
are in the README of the analysis room.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.regression.linear_model import WLS
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

from gamelens.analysis.experiments.arm_pairs import _covariance
from gamelens.analysis.retention.cohort_triangles import CohortTriangle
from gamelens.analysis.retention.day_variation import day_variance
from gamelens.analysis.significance import false_discovery, holm
from gamelens.analysis.wilson_intervals import newcombe

Floats = NDArray[np.float64]
LEAST = 10.0
RUNS = 30


def seconds(work: Callable[[], object]) -> float:
    """Return the shortest time that *work* took."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def with_gaps(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return values between 0 and 1, of which a tenth is unknown."""
    values = rng.random(shape)
    values[rng.random(shape) < 0.1] = np.nan
    return values


def discoveries(rng: np.random.Generator) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """False discovery rates of the 79 series of a board on 112 days; scipy's has no place for unknown ones."""
    p = with_gaps(rng, (79, 112))

    def of_scipy() -> Floats:
        """Return the rates day by day."""
        q = np.full_like(p, np.nan)
        for day in range(p.shape[1]):
            is_known = ~np.isnan(p[:, day])
            q[is_known, day] = stats.false_discovery_control(p[is_known, day])
        return q

    return lambda: false_discovery(p), of_scipy


def corrections(rng: np.random.Generator) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Holm's correction of 40 comparisons; that of statsmodels collects garbage at each call."""
    p = pd.Series(rng.random(40))
    return lambda: holm(p).to_numpy(), lambda: multipletests(p.to_numpy(), method="holm")[1]


def weighted_days(rng: np.random.Generator) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The variance of a mean of unequal days, which is that of a regression with robust errors (HC2)."""
    values, weights = rng.normal(size=60), rng.integers(50, 500, 60).astype("float64")
    design = np.ones((60, 1))
    return (
        lambda: _covariance(values[None, :], weights)[0][0, 0],
        lambda: WLS(values, design, weights=weights).fit(cov_type="HC2").cov_params()[0, 0],
    )


def differences(rng: np.random.Generator) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Newcombe's interval of a difference, whose p-value is found by trying levels."""
    returned, base = rng.integers(30, 70, 2)
    normal = float(stats.norm.ppf(0.975))
    return (
        lambda: newcombe(returned / 100, base / 120, 100, 120, normal),
        lambda: confint_proportions_2indep(returned, 100, base, 120, method="newcomb", compare="diff"),
    )


FORMS = [discoveries, corrections, weighted_days, differences]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_closed_form_is_worth_its_lines(form: Callable[..., tuple[Callable[[], Any], Callable[[], Any]]]) -> None:
    """It gives the numbers of the library, ten times as fast."""
    own, library = form(np.random.default_rng(1))
    assert own() == pytest.approx(library(), nan_ok=True)
    ratio = seconds(library) / seconds(own)
    print(f"\n{form.__doc__}\n  {ratio:.1f} x as fast, {1e6 * seconds(own):.0f} microseconds")
    assert ratio >= LEAST


def test_differing_days_are_estimated_for_all_ages_at_once() -> None:
    """Ten ages in one go take less than a tenth of the time of ten meta-analyses (Paule and Mandel)."""
    rng = np.random.default_rng(2)
    installs = np.full((30, 10), 500.0)
    shares = np.linspace(0.4, 0.05, 10) * np.exp(0.1 * rng.standard_normal((30, 1)))
    cohorts = CohortTriangle(np.arange(1, 11), installs, rng.binomial(500, shares).astype("float64"))

    def by_age() -> list[float]:
        """Return the variance of days at each age."""
        rates = cohorts.returned / installs
        chance = rates.mean(axis=0) * (1 - rates.mean(axis=0)) / 500
        return [
            combine_effects(rates[:, age], np.full(30, chance[age]), method_re="iterated").tau2 for age in range(10)
        ]

    mean = (cohorts.returned / installs).mean(axis=0)
    assert day_variance(cohorts).pooled == pytest.approx(float(np.mean(by_age() / mean**2)), rel=0.3)
    ratio = seconds(by_age) / seconds(lambda: day_variance(cohorts))
    print(f"\nvariation of install days: {ratio:.1f} x as fast")
    assert ratio >= LEAST
