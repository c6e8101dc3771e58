"""Power and sample size, by hand and on players whose truth is known in closed form."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from gamelens.simulator import load_scenario
from gamelens.simulator.population.experiment_arms import activity_of, arms_of
from gamelens.simulator.population.players import draw_active
from support.experiment_frames import many, shares


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
    """The reach of an experiment has the players needed for a lift and the smallest effect.

    A control without successes needs an unknown number of players.
    """
    result = experiments.detectable_effects(shares({"ctrl": (400, 4000), "new": (800, 3841)}), lift=0.2).iloc[0]
    assert result["players_needed"] == 3841
    assert result["minimal_effect"] == pytest.approx(experiments.minimal_effect(0.1, 3841, 4000))
    assert result["minimal_lift"] == pytest.approx(result["minimal_effect"] / 0.1)
    assert pd.isna(experiments.detectable_effects(shares({"ctrl": (0, 10), "new": (1, 10)}))["players_needed"].item())


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
    result = experiments.differences(many(players, *returned))
    false_alarms = (result["p_value"] < 0.05).mean()
    assert abs(false_alarms - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)
    missed = ((result["low"] > 0) | (result["high"] < 0)).mean()
    assert abs(missed - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)


def test_an_effect_is_found_as_often_as_the_formula_says() -> None:
    """At the computed sample size 80 % of 500 experiments are significant, within 3 errors.

    The shares are those of cookie-cats in closed form. The interval covers the effect in 95 %.
    """
    scenario = load_scenario("cookie-cats")
    game, rng, runs = scenario.games[0], np.random.default_rng(8), 500
    control, treated = (activity_of(game, variant=arm.variant).retention(7) for arm in arms_of(game, scenario=scenario))
    players = experiments.sample_size(control, treated)
    result = experiments.differences(
        many(players, rng.binomial(players, control, runs), rng.binomial(players, treated, runs))
    )
    assert abs((result["p_value"] < 0.05).mean() - 0.8) < 3 * sqrt(0.8 * 0.2 / runs)
    covered = ((result["low"] < treated - control) & (treated - control < result["high"])).mean()
    assert abs(covered - 0.95) < 3 * sqrt(0.05 * 0.95 / runs)
