"""Variation between install days: two days of 100 players, 60 and 40 return on day 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of
from gamelens.analysis.retention.constants import SAME_PLAYERS
from gamelens.analysis.retention.day_variation import (
    DayVariance,
    chance_of_days,
    covariance,
    day_variance,
    effective_installs,
)
from support.retention_frames import frame_of


@pytest.fixture
def frame() -> DataFrame:
    """Two install days of 100 players, of whom 60 and 40 return on day 1."""
    return frame_of([100, 100], np.array([[60], [40]]), [1])


@pytest.fixture
def two_days(frame: DataFrame) -> CohortTriangle:
    """The cohort triangle of those two days."""
    return next(cohorts_of(frame, None))[1]


def test_variance_is_what_chance_leaves(two_days: CohortTriangle) -> None:
    """The variance between days is the observed one less the binomial one.

    Squares 2 x (10^2 + 10^2) less chance 100 x 0.5 x 0.5 x 2 = 50, over 50^2 + 50^2.
    """
    variance = day_variance(two_days)
    assert variance.pooled == pytest.approx((400 - 50) / 5000)
    assert variance.by_age == pytest.approx([(400 - 50) / 5000])


def test_days_no_farther_apart_than_chance_puts_them_do_not_differ() -> None:
    """Days that differ by no more than chance have a variance of 0, not a negative one."""
    alike = next(cohorts_of(frame_of([100, 100], np.array([[52], [48]]), [1]), None))[1]
    assert day_variance(alike).pooled == 0.0
    assert day_variance(alike).by_age.tolist() == [0.0]


def test_one_day_says_nothing_about_others() -> None:
    """With one install day the variance is 0 and the p-value NaN."""
    alone = next(cohorts_of(frame_of([100], np.array([[60, 30]]), [1, 2]), None))[1]
    assert day_variance(alone).by_age.tolist() == [0.0, 0.0]
    assert np.isnan(chance_of_days(alone))


def test_differing_days_are_worth_fewer_installs(two_days: CohortTriangle) -> None:
    """Variation between days lowers the effective number of installs.

    1 + 0.07 x (0.5 / 0.5) x (100^2 + 100^2) / 200 = 8 times the variance, so 200 / 8.
    """
    is_known_exactly = DayVariance(0.07, np.array([0.07]), np.array([1e9]))
    assert effective_installs(two_days, is_known_exactly) == pytest.approx([25.0])


def test_few_days_are_worth_fewer_still(two_days: CohortTriangle) -> None:
    """A variance from two days widens by Student's t of (8 / 7)^2 degrees (Satterthwaite)."""
    from scipy import stats

    student = stats.t.ppf(0.975, (8 / 7) ** 2) / stats.norm.ppf(0.975)
    assert effective_installs(two_days, day_variance(two_days)) == pytest.approx([25 / student**2])


def test_the_widened_interval_is_wilsons_of_the_effective_installs(frame: DataFrame) -> None:
    """The widened interval is Wilson's for the effective installs, counts stay as they are."""
    curve = retention.average_curve(frame, widened=True)
    cohorts = next(cohorts_of(frame, None))[1]
    effective = effective_installs(cohorts, day_variance(cohorts))
    low, high = retention.wilson(effective / 2, effective)
    assert curve[["low", "high"]].to_numpy()[0] == pytest.approx([low[0], high[0]])
    assert curve["installs"].item() == 200


def test_chance_of_days_is_that_of_a_chi_squared(two_days: CohortTriangle) -> None:
    """The p-value of equal days is that of a chi-squared test: 8 with 1 degree is 0.0047."""
    from scipy import stats

    assert chance_of_days(two_days) == pytest.approx(stats.chi2.sf(8, 1))


def test_spread_is_relative_to_retention(frame: DataFrame) -> None:
    """The spread of days is a standard deviation relative to retention."""
    spread = retention.day_spread(frame, "game").iloc[0]
    assert (spread["game"], spread["cohorts"]) == ("Tile", 2)
    assert spread["spread"] == pytest.approx(0.07**0.5)


def test_spread_of_one_day_is_not_known() -> None:
    """With one install day the spread and its p-value are NA."""
    spread = retention.day_spread(frame_of([100], np.array([[60]]), [1])).iloc[0]
    assert pd.isna(spread["spread"])
    assert pd.isna(spread["p_value"])


def test_spread_of_nothing_has_the_same_columns(frame: DataFrame) -> None:
    """An empty frame gives the same columns and dtypes."""
    assert retention.day_spread(frame[:0], "game").dtypes.equals(retention.day_spread(frame, "game").dtypes)


def test_covariance_counts_players_two_ages_share() -> None:
    """The covariance of two ages counts only cohorts that have reached both.

    Both cohorts reach age 1 and one reaches age 2: 200 binomial players, and 100 shared ones.
    """
    frame = frame_of([100, 100], np.array([[50, 20], [50, 20]]), [1, 2], until=3)
    cohorts = next(cohorts_of(frame, None))[1]
    result = covariance(cohorts, np.array([0.5, 0.2]), 0.01)
    shared = 100 * (SAME_PLAYERS * 0.2 - 0.1) + 0.01 * 100**2 * 0.1
    assert result == pytest.approx(np.array([[200 * 0.25 + 0.01 * 20_000 * 0.25, shared], [shared, 16 + 4]]))


@pytest.fixture(scope="module")
def one_large_day() -> CohortTriangle:
    """29 install days of 500 players and one of 20,000, with D1 of 0.4 give or take 0.07."""
    rng = np.random.default_rng(5)
    sizes = np.array([500.0] * 29 + [20_000.0])[:, None]
    shares = np.clip(rng.normal(0.4, 0.07, sizes.shape), 0, 1)
    return CohortTriangle(np.array([1]), sizes, rng.binomial(sizes.astype(int), shares).astype("float64"))


def test_the_variance_is_that_of_paule_and_mandel(one_large_day: CohortTriangle) -> None:
    """For one age it equals the iterated estimate of statsmodels, given the same chance."""
    from statsmodels.stats.meta_analysis import combine_effects

    variance, shares = day_variance(one_large_day), one_large_day.returned / one_large_day.installs
    mean = 0.4
    for _ in range(20):  # the mean that belongs to the estimate
        chance = mean * (1 - mean) / one_large_day.installs
        weights = 1 / (chance + variance.by_age * mean**2)
        mean = float((weights * shares).sum() / weights.sum())
    expected = combine_effects(shares[:, 0], chance[:, 0], method_re="iterated").tau2
    assert variance.by_age[0] * mean**2 == pytest.approx(expected, rel=1e-3)


def test_one_large_day_does_not_hide_the_spread(one_large_day: CohortTriangle) -> None:
    """The spread is 0.07 of 0.4 within a third, although one day has 58 % of the players."""
    assert day_variance(one_large_day).by_age[0] ** 0.5 == pytest.approx(0.175, rel=0.33)


@pytest.mark.wide
@pytest.mark.parametrize("largest", [500, 10_000, 20_000])
def test_widened_intervals_hold_the_mean_of_days(largest: int) -> None:
    """Of 100 draws with unequal days 91 to 99 % hold the mean of install days."""
    rng, is_held = np.random.default_rng(3), []
    installs = np.array([500] * 29 + [largest])[:, None].repeat(2, axis=1)
    for _ in range(100):
        shares = np.array([0.4, 0.15]) * np.exp(rng.normal(-0.02, 0.2, (30, 1)))
        cohorts = CohortTriangle(
            np.array([1, 7]), installs.astype("float64"), rng.binomial(installs, shares).astype("float64")
        )
        effective = effective_installs(cohorts, day_variance(cohorts))
        low, high = retention.wilson(cohorts.shares() * effective, effective)
        is_held.append((low <= [0.4, 0.15]) & (high >= [0.4, 0.15]))
    assert 0.91 < np.mean(is_held) < 0.99
