"""Retention curves in closed form, and fitted to counts whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame

from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of
from gamelens.analysis.retention.retention_curves import (
    BG_BB,
    CURVES,
    POWER_LAW,
    SHIFTED_BG,
    WEIBULL,
    RetentionCurve,
    fit,
    misfit,
)
from gamelens.simulator import BgbbModel
from gamelens.simulator import fit_retention as population
from support.retention_frames import expected_frame, frame_of

AGES = np.arange(1, 15)
CASUAL = population(0.37, 0.125, 0.04)
TRUTHS: dict[str, Callable[[int], float]] = {
    "BG/BB": CASUAL.retention,
    "shifted beta-geometric": lambda age: BgbbModel(1e9, 1, 1.2, 1.1).retention(age),
    "Weibull": lambda age: 0.7 * exp(-0.5 * age**0.4),
    "power law": lambda age: 0.4 * age**-0.55,
}


def triangle(frame: DataFrame) -> CohortTriangle:
    """Return the cohort triangle of *frame*, not split."""
    return next(cohorts_of(frame, None))[1]


def logit(share: float) -> float:
    """Return the logit of *share*."""
    return log(share / (1 - share))


def test_bg_bb_by_hand() -> None:
    """BG/BB with E[p] = 1/2 and a uniform theta has retention 1 / (2 n + 2).

    That is E[p] E[(1 - theta)^n], where the second factor is 1 / (n + 1).
    """
    shares = BG_BB.shares(np.array([0.0, 0.0, log(2)]), np.array([1, 2, 3]))
    assert shares == pytest.approx([1 / 4, 1 / 6, 1 / 8])


def test_shifted_beta_geometric_by_hand() -> None:
    """With theta ~ Beta(1, 2) the shifted beta-geometric has retention 2 / (n + 2)."""
    shares = SHIFTED_BG.shares(np.array([logit(1 / 3), log(3)]), np.array([1, 2, 3]))
    assert shares == pytest.approx([2 / 3, 2 / 4, 2 / 5])


def test_power_law_by_hand() -> None:
    """A power law of 0.4 with exponent 0.5 halves retention at four times the age."""
    shares = POWER_LAW.shares(np.array([logit(0.4), log(0.5)]), np.array([1, 4, 16]))
    assert shares == pytest.approx([0.4, 0.2, 0.1])


def test_weibull_by_hand() -> None:
    """With a = 1/2, r = log 2 and k = 1/2 retention halves at ages 1, 4 and 9."""
    shares = WEIBULL.shares(np.array([0.0, log(log(2)), log(0.5)]), np.array([1, 4, 9]))
    assert shares == pytest.approx([1 / 4, 1 / 8, 1 / 16])


@given(*[st.floats(0.2, 9)] * 4, st.integers(1, 120))
def test_bg_bb_is_the_closed_form_of_the_population(
    alpha: float, beta: float, gamma: float, delta: float, age: int
) -> None:
    """The curve equals the closed form of the simulator for any parameters and age."""
    point = np.array([log(alpha / beta), log(gamma / delta), log(gamma + delta)])
    truth = BgbbModel(alpha, beta, gamma, delta).retention(age)
    assert BG_BB.shares(point, np.array([age])).item() == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_slopes_are_those_of_the_logarithms(curve: RetentionCurve) -> None:
    """Analytic slopes equal numeric derivatives of the curve's shape."""
    point, step = np.array(curve.centre), 1e-6
    _, slopes = curve.shape(point, AGES)
    for place in range(len(point)):
        shifted = point + step * np.eye(len(point))[place]
        numeric = (curve.shape(shifted, AGES)[0] - curve.shape(point, AGES)[0]) / step
        assert slopes[:, place] == pytest.approx(numeric, abs=1e-4)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_a_curve_finds_itself(curve: RetentionCurve) -> None:
    """A curve fitted to its own first 14 ages predicts ages up to 120 within 2 %."""
    truth = TRUTHS[curve.name]
    fitted = fit(curve, triangle(expected_frame(truth, AGES)))
    later = np.array([30, 90, 120])
    assert fitted.shares(later) == pytest.approx([truth(int(age)) for age in later], rel=0.02)


def test_ages_with_gaps_and_unobserved_days_do_not_bias_the_fit() -> None:
    """Missing ages and cohorts too young for an age do not bias the projection."""
    ages = [1, 2, 3, 5, 7, 14, 21, 28]
    counts = np.round(np.outer([1_000_000] * 31, [CASUAL.retention(age) for age in ages]))
    fitted = fit(BG_BB, triangle(frame_of([1_000_000] * 31, counts, ages, until=31)))
    assert fitted.shares(np.array([90])).item() == pytest.approx(CASUAL.retention(90), rel=0.02)


def test_the_point_found_is_the_likeliest() -> None:
    """The fitted parameters have a higher posterior than points next to them on each axis."""
    counts = np.random.default_rng(1).binomial(200, [CASUAL.retention(int(age)) for age in AGES], (20, len(AGES)))
    cohorts = triangle(frame_of([200] * 20, counts, AGES))
    reached, returned = cohorts.totals_by_age()

    def likely(point: np.ndarray) -> float:
        """Return the logarithm of the posterior at *point*."""
        shares = BG_BB.shares(point, AGES)
        prior = ((point - np.array(BG_BB.centre)) / np.array(BG_BB.spread)) ** 2
        return float((returned * np.log(shares) + (reached - returned) * np.log1p(-shares)).sum() - prior.sum() / 2)

    point = fit(BG_BB, cohorts).point
    nearby = [point + step * axis for step in (-0.02, 0.02) for axis in np.eye(3)]
    assert likely(point) > max(likely(other) for other in nearby)


def test_counts_weigh_by_installs_and_not_by_days() -> None:
    """A day of 100,000 players outweighs one of 100 players with another retention."""
    shares = np.array([0.5 / (age + 1) for age in AGES])
    large, small = np.round(100_000 * shares), np.full(len(AGES), 100)
    fitted = fit(BG_BB, triangle(frame_of([100_000, 100], np.array([large, small]), AGES)))
    assert fitted.shares(np.array([1])).item() == pytest.approx(0.25, rel=0.02)


def test_misfit_is_the_binomial_deviance() -> None:
    """The misfit is the binomial deviance: here of 40 in 100 at an expected 1/4."""
    cohorts = triangle(frame_of([100], np.array([[40]]), [1]))
    at = fit(BG_BB, cohorts)
    quarter = type(at)(BG_BB, np.array([0.0, 0.0, log(2)]), at.covariance)
    assert misfit(quarter, cohorts) == pytest.approx(2 * (40 * log(0.4 / 0.25) + 60 * log(0.6 / 0.75)))


def test_more_players_narrow_the_draws_and_differing_days_widen_them() -> None:
    """Ten times the players halve the spread of draws, day variance adds 20 % or more."""
    rng = np.random.default_rng(2)
    counts = np.round(np.outer([500] * 20, [CASUAL.retention(int(age)) for age in AGES]))
    few, many = (triangle(frame_of([500 * times] * 20, counts * times, AGES)) for times in (1, 10))
    day_30 = np.array([30])
    spread = {
        name: fit(BG_BB, cohorts, variance=variance).draws(day_30, count=500, rng=rng).std()
        for name, cohorts, variance in (("few", few, 0.0), ("many", many, 0.0), ("days differ", few, 0.1))
    }
    assert spread["many"] < 0.5 * spread["few"]
    assert spread["days differ"] > 1.2 * spread["few"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
@pytest.mark.parametrize("counts", [[1, 0, 0, 0, 0], [100, 100, 100, 100, 99], [0, 0, 0, 0, 1], [5, 50, 2, 80, 1]])
def test_odd_counts_end_in_shares(curve: RetentionCurve, counts: list[int]) -> None:
    """Extreme counts still give finite parameters and draws from 0 to 1."""
    fitted = fit(curve, triangle(frame_of([100], np.array([counts]), [1, 2, 3, 7, 14])))
    draws = fitted.draws(np.array([1, 30, 365]), count=50, rng=np.random.default_rng(1))
    assert np.isfinite(fitted.point).all()
    assert ((draws >= 0) & (draws <= 1)).all()
