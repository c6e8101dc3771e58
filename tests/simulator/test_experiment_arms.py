"""Experiments: assignment to arms, effects in closed form, and the power to detect them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.simulator import BgbbModel, fit_retention, load_scenario, logit_step_for_lift
from gamelens.simulator.population.installs import NO_ARM, Arm, arms_of, draw_arms, steps
from gamelens.simulator.population.players import draw_active, draw_chances
from gamelens.simulator.retention_model.bgbb import beta_mean, shifted
from gamelens.simulator.scenarios.timeline import ScenarioExperiment, ScenarioVariant
from support.closed_form import mixture_of
from support.hypothesis_profiles import examples
from support.statistical_tests import detection_power, difference_p_value

CASUAL = fit_retention(0.37, 0.125, 0.04)
RUNS = 500


def arms(*variants: ScenarioVariant, **fields: Any) -> list[Arm]:
    """Return the arms of one experiment, each with its share of the players."""
    experiment = ScenarioExperiment(id="e", game="g", variants=variants, **fields)
    return [Arm(experiment, each, experiment.share * each.share / sum(v.share for v in variants)) for each in variants]


def p_values_of_runs(treated: ScenarioVariant, players: int, *, seed: int, cohorts: int = 1) -> np.ndarray:
    """Return the p-values of D1 in many runs of an experiment.

    *players* is the number in both arms of each cohort together.
    """
    both = arms(ScenarioVariant(id="ctrl"), treated)
    p: list[float] = []
    for run in range(RUNS):
        rng = np.random.default_rng([seed, run])
        install = np.zeros(players * cohorts, dtype=np.int64)
        arm = draw_arms(install, both, rng=rng)
        chance = draw_chances(len(arm), activity=CASUAL, rng=rng, play=steps(both, "play", arm))
        returned = draw_active(install, days=2, activity=CASUAL, rng=rng, chance=chance)[:, 1]
        by_cohort = zip(np.split(returned, cohorts), np.split(arm, cohorts), strict=True)
        p += [difference_p_value(returned[arm == 0], returned[arm == 1]) for returned, arm in by_cohort]
    return np.array(p)


@pytest.mark.wide
@pytest.mark.slow
def test_an_experiment_without_effect_is_found_in_one_of_twenty_runs() -> None:
    """Without an effect 5 % of the runs are significant at 5 %, and 50 % at 50 %.

    Ten cohorts a run are tested one by one: with a single one, chance alone would exceed the 1 % tolerance in every
    third run of this test.
    """
    p = p_values_of_runs(ScenarioVariant(id="same"), 1000, seed=1, cohorts=10)
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.01)
    assert (p < 0.5).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.parametrize("players", [5000, 10_000])
def test_five_percent_more_d1_is_found_with_the_power_the_formula_says(players: int) -> None:
    """5 % more D1 is detected as often as the power formula predicts."""
    step = logit_step_for_lift(CASUAL, 1.05)
    expected = detection_power(CASUAL.retention(1), CASUAL.moved(play=step).retention(1), players // 2)
    share = (p_values_of_runs(ScenarioVariant(id="better", play=step), players, seed=2) < 0.05).mean()
    assert abs(share - expected) < 1.96 * sqrt(expected * (1 - expected) / RUNS)


@pytest.mark.parametrize("lift", [0.5, 0.95, 1.05, 1.5])
@pytest.mark.parametrize("day", [1, 7, 28])
def test_a_step_of_play_lifts_every_day_alike(lift: float, day: int) -> None:
    """The logit step for a lift multiplies D1, D7 and D28 by that lift."""
    moved = CASUAL.moved(play=logit_step_for_lift(CASUAL, lift))
    assert moved.retention(day) == pytest.approx(lift * CASUAL.retention(day), rel=1e-9)


def test_a_lift_beyond_playing_every_day_is_refused() -> None:
    """A lift that needs a chance above 1 raises `BadQuery`."""
    with pytest.raises(BadQuery, match="lift = 3"):
        logit_step_for_lift(CASUAL, 3)


SHAPES = st.floats(0.2, 20)


@settings(deadline=None, max_examples=examples(15))
@given(SHAPES, SHAPES, st.floats(-2, 2), st.integers(1, 30))
def test_the_integral_is_the_hypergeometric_series(a: float, b: float, step: float, times: int) -> None:
    """The numeric integral of a moved Beta moment equals its hypergeometric series.

    E[(c x / (1 - x + c x))^n] of x ~ Beta(a, b) is c^n E[x^n] 2F1(n, a + n; a + b + n; 1 - c).
    """
    c, k = np.exp(step), np.arange(4000)
    # Of the two forms (Pfaff's) the one whose argument lies between 0 and 1 converges.
    z = 1 - c if c < 1 else 1 - 1 / c
    top = (times, a + times) if c < 1 else (times, b)
    ratios = (top[0] + k) * (top[1] + k) / ((a + b + times + k) * (1 + k)) * z
    series = 1 + np.cumprod(ratios).sum()
    j = np.arange(times)
    plain = np.prod((a + j) / (a + b + j))
    expected = plain * series * (c**times if c < 1 else 1)
    assert beta_mean(lambda x: shifted(x, step) ** times, a, b) == pytest.approx(expected, rel=1e-8)


@settings(deadline=None, max_examples=examples(10))
@given(SHAPES, SHAPES, SHAPES, SHAPES, st.integers(1, 40))
def test_a_step_too_small_to_see_changes_nothing(
    alpha: float, beta: float, gamma: float, delta: float, day: int
) -> None:
    """The integral with a step of 1e-9 equals the closed form without one."""
    plain = BgbbModel(alpha, beta, gamma, delta)
    moved = plain.moved(play=1e-9, drop_out=1e-9)
    assert moved.retention(day) == pytest.approx(plain.retention(day), rel=1e-6)
    assert moved.retention_both(day, day + 3) == pytest.approx(plain.retention_both(day, day + 3), rel=1e-6)


def test_players_are_in_one_arm_or_none_by_the_shares() -> None:
    """Each player is in at most one arm, by the shares of the experiments running at install."""
    install = np.repeat(np.arange(20), 10_000)
    first = arms(ScenarioVariant(id="a", share=1), ScenarioVariant(id="b", share=3), share=0.4, day=5, days=10)
    second = arms(ScenarioVariant(id="c"), ScenarioVariant(id="d"), share=0.6, day=10)
    arm = draw_arms(install, first + second, rng=np.random.default_rng(1))
    shares = {
        days: [(arm[np.isin(install, days)] == place).mean() for place in (NO_ARM, 0, 1, 2, 3)]
        for days in (tuple(range(5)), tuple(range(5, 10)), tuple(range(10, 15)), tuple(range(15, 20)))
    }
    expected = [[1, 0, 0, 0, 0], [0.6, 0.1, 0.3, 0, 0], [0, 0.1, 0.3, 0.3, 0.3], [0.4, 0, 0, 0.3, 0.3]]
    for of_days, wanted in zip(shares.values(), expected, strict=True):
        assert of_days == pytest.approx(wanted, abs=0.01)


def test_an_experiment_that_is_over_leaves_its_players_to_the_next() -> None:
    """Of two experiments that follow each other the later one gets the later installs."""
    install = np.repeat(np.arange(10), 1000)
    first = arms(ScenarioVariant(id="a"), ScenarioVariant(id="b"), day=0, days=5)
    second = arms(ScenarioVariant(id="c"), ScenarioVariant(id="d"), day=5)
    arm = draw_arms(install, first + second, rng=np.random.default_rng(1))
    assert set(arm[install < 5]) == {0, 1}
    assert set(arm[install >= 5]) == {2, 3}


def test_the_mixture_weighs_arms_by_those_who_install_while_they_run() -> None:
    """An arm weighs in the mixture by the installs of its days and its share of them."""
    scenario = msgspec.structs.replace(
        load_scenario("calm", days=20),
        weekdays=(1.0,) * 7,
        trend=0.0,
        campaigns=(),
        experiments=(
            ScenarioExperiment(
                id="e",
                game="Tile Harbor",
                share=0.5,
                day=10,
                variants=(ScenarioVariant(id="a"), ScenarioVariant(id="b", play=1.0)),
            ),
        ),
    )
    game = scenario.games[0]
    mixed = mixture_of(game, scenario=scenario, first_weekday=0)
    plain = game.retention.activity()
    expected = 0.875 * plain.retention(1) + 0.125 * plain.moved(play=1.0).retention(1)
    assert mixed.retention(1) == pytest.approx(expected)
    assert len(arms_of(game, scenario=scenario)) == 2


def test_spending_moves_the_share_of_payers_on_the_logit_scale() -> None:
    """A step of log 2 doubles the odds of paying: 2 % of payers become 0.04 / 1.02."""
    assert shifted(np.array([0.02]), np.log(2.0))[0] == pytest.approx(0.04 / 1.02)
