"""Power and sample size, by hand and on players whose truth is known in closed form."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from gamelens.simulator import load_scenario
from gamelens.simulator.population.installs import arms_of
from gamelens.simulator.population.players import draw_active
from support.closed_form import activity_of
from support.experiment_frames import many, ramp, shares


def test_sample_size_is_the_textbooks() -> None:
    """10 % against 12 % at two-sided 5 % and power 80 % needs 3,841 players per arm."""
    assert experiments.sample_size(0.10, 0.12) == 3841
    assert experiments.power(0.10, 0.12, 3841, 3841) == pytest.approx(0.8, abs=1e-4)
    assert experiments.minimal_effect(0.10, 3841, 3841) == pytest.approx(0.02, abs=1e-5)


def test_unequal_arms_need_more_players_together() -> None:
    """Arms of unequal size reach the same power only with more players in total."""
    control = experiments.sample_size(0.10, 0.12, ratio=0.25)
    assert experiments.power(0.10, 0.12, control * 0.25, control) == pytest.approx(0.8, abs=1e-3)
    assert control * 1.25 > 2 * 3841


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    """A share below 0, above 1 or NaN raises `BadQuery`."""
    with pytest.raises(BadQuery, match="between 0 and 1"):
        experiments.sample_size(0.1, share)


def test_equal_shares_cannot_be_told_apart_by_any_number() -> None:
    """A sample size for equal shares raises `BadQuery`."""
    with pytest.raises(BadQuery, match="no number of players"):
        experiments.sample_size(0.1, 0.1)


def test_reach_has_the_effect_that_the_players_can_find() -> None:
    """The reach of an experiment has the players needed for a lift and the smallest effect, at its own split.

    A control without successes needs an unknown number of players.
    """
    result = experiments.detectable_effects(shares({"ctrl": (400, 4000), "new": (100, 1000)}), lift=0.2).iloc[0]
    control = experiments.sample_size(0.1, 0.12, ratio=0.25)
    assert (result["control_players_needed"], result["players_needed"]) == (control, ceil(control / 4))
    assert result["minimal_effect"] == pytest.approx(experiments.minimal_effect(0.1, 1000, 4000))
    assert result["minimal_lift"] == pytest.approx(result["minimal_effect"] / 0.1)
    assert pd.isna(result["days_needed"])
    assert pd.isna(experiments.detectable_effects(shares({"ctrl": (0, 10), "new": (1, 10)}))["players_needed"].item())


def test_more_comparisons_need_more_players() -> None:
    """The level of a test is divided by the number of comparisons of the frame."""
    arms = {"ctrl": (100, 1000), "a": (100, 1000), "b": (100, 1000)}
    result = experiments.detectable_effects(shares(arms), lift=0.2)
    assert result["comparisons"].tolist() == [2, 2]
    assert result["players_needed"].tolist() == [experiments.sample_size(0.1, 0.12, confidence=0.975)] * 2


def test_the_days_needed_follow_from_the_pace() -> None:
    """Ten days of 100 players in each arm reach 3,841 players of each after 39 days."""
    days = pd.date_range("2026-11-01", periods=10, tz="UTC")
    frame = pd.concat([shares({"ctrl": (10, 100), "new": (10, 100)}).assign(timestamp=day) for day in days])
    result = experiments.detectable_effects(frame, lift=0.2).iloc[0]
    assert result["players_needed"] == 3841
    assert result["days_needed"] == 39
    assert result["quarter_lift"] == pytest.approx(experiments.minimal_effect(0.1, 9100, 9100) / 0.1)
    assert result["is_running"]


def test_a_ramp_needs_longer_than_an_equal_split() -> None:
    """A split that moves from 10 to 90 % wastes players: they count as many as are as informative."""
    effects = [experiments.detectable_effects(frame).iloc[0] for frame in (ramp(), ramp(split=(0.5, 0.5)))]
    assert effects[0]["minimal_lift"] > 1.1 * effects[1]["minimal_lift"]
    assert effects[0]["days_needed"] > 1.2 * effects[1]["days_needed"]


def test_of_experiments_without_effect_one_in_twenty_is_found() -> None:
    """Of 400 A/A experiments 5 % are significant, within three standard errors.

    The players are drawn as the simulator draws them. The interval misses 0 as often.
    """
    game = load_scenario("cookie-cats").games[0]
    rng, runs, players = np.random.default_rng(7), 400, 500
    install = np.zeros(2 * runs * players, dtype=np.int64)
    returned = (
        draw_active(install, days=2, activity=activity_of(game), rng=rng)[:, 1].reshape(2, runs, players).sum(axis=2)
    )
    result = experiments.compare(many(players, *returned))
    false_alarms = (result["p_value"] < 0.05).mean()
    assert abs(false_alarms - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)
    missed = ((result["low"] > 0) | (result["high"] < 0)).mean()
    assert abs(missed - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)


@pytest.mark.wide
def test_an_effect_is_found_as_often_as_the_formula_says() -> None:
    """At the computed sample size 80 % of 500 experiments are significant, within 3 errors.

    The shares are those of cookie-cats in closed form. The interval covers the effect in 95 % or more: those
    of selected rows are wider.
    """
    scenario = load_scenario("cookie-cats")
    game, rng, runs = scenario.games[0], np.random.default_rng(8), 500
    control, treated = (activity_of(game, variant=arm.variant).retention(7) for arm in arms_of(game, scenario=scenario))
    players = experiments.sample_size(control, treated)
    result = experiments.compare(
        many(players, rng.binomial(players, control, runs), rng.binomial(players, treated, runs))
    )
    assert abs((result["p_value"] < 0.05).mean() - 0.8) < 3 * sqrt(0.8 * 0.2 / runs)
    covered = ((result["low"] < treated - control) & (treated - control < result["high"])).mean()
    assert covered > 0.95 - 3 * sqrt(0.05 * 0.95 / runs)
