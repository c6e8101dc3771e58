"""How far install days differ, by hand: two days of 100 players, of whom 60 and 40 are back on day 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import retention
from gamelens.analysis.retention.cohort_triangles import cohorts_of
from gamelens.analysis.retention.day_variation import (
    SAME_PLAYERS,
    chance_of_days,
    covariance,
    day_variance,
    effective_installs,
)
from support.retention_frames import frame_of


@pytest.fixture
def frame():
    return frame_of([100, 100], np.array([[60], [40]]), [1])


@pytest.fixture
def two_days(frame):
    return next(cohorts_of(frame, None))[1]


def test_variance_is_what_chance_leaves(two_days) -> None:
    """Squares 2 x (10^2 + 10^2) less chance 100 x 0.5 x 0.5 x 2 = 50, over 50^2 + 50^2."""
    assert day_variance(two_days) == pytest.approx((400 - 50) / 5000)


def test_days_no_farther_apart_than_chance_puts_them_do_not_differ() -> None:
    alike = next(cohorts_of(frame_of([100, 100], np.array([[52], [48]]), [1]), None))[1]
    assert day_variance(alike) == 0.0


def test_one_day_says_nothing_about_others() -> None:
    alone = next(cohorts_of(frame_of([100], np.array([[60, 30]]), [1, 2]), None))[1]
    assert day_variance(alone) == 0.0
    assert np.isnan(chance_of_days(alone))


def test_differing_days_are_worth_fewer_installs(two_days) -> None:
    """1 + 0.07 x (0.5 / 0.5) x (100^2 + 100^2) / 200 = 8 times the variance, so 200 / 8."""
    assert effective_installs(two_days, 0.07) == pytest.approx([25.0])


def test_the_widened_interval_is_wilsons_of_so_many(frame) -> None:
    curve = retention.average_curve(frame, widened=True)
    low, high = retention.wilson([12.5], [25.0])
    assert curve[["low", "high"]].to_numpy()[0] == pytest.approx([low[0], high[0]])
    assert curve["installs"].item() == 200


def test_chance_of_days_is_that_of_a_chi_squared(two_days) -> None:
    """Chi-squared 8 with 1 degree of freedom: 0.0047."""
    assert chance_of_days(two_days) == pytest.approx(0.0047, abs=0.0005)


def test_spread_is_relative_to_retention(frame) -> None:
    spread = retention.day_spread(frame, "game").iloc[0]
    assert (spread["game"], spread["cohorts"]) == ("Tile", 2)
    assert spread["spread"] == pytest.approx(0.07**0.5)


def test_spread_of_one_day_is_not_known() -> None:
    spread = retention.day_spread(frame_of([100], np.array([[60]]), [1])).iloc[0]
    assert pd.isna(spread["spread"])
    assert pd.isna(spread["p_value"])


def test_spread_of_nothing_has_the_same_columns(frame) -> None:
    assert retention.day_spread(frame[:0], "game").dtypes.equals(retention.day_spread(frame, "game").dtypes)


def test_covariance_counts_players_two_ages_share() -> None:
    """Both cohorts reach age 1, one reaches age 2: 200 binomial players, and 100 shared ones."""
    frame = frame_of([100, 100], np.array([[50, 20], [50, 20]]), [1, 2], until=3)
    cohorts = next(cohorts_of(frame, None))[1]
    found = covariance(cohorts, np.array([0.5, 0.2]), 0.01)
    shared = 100 * (SAME_PLAYERS * 0.2 - 0.1) + 0.01 * 100**2 * 0.1
    assert found == pytest.approx(np.array([[200 * 0.25 + 0.01 * 20_000 * 0.25, shared], [shared, 16 + 4]]))
