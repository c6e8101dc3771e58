"""The population is what the formulas say: z-tests at fixed seeds, and the same tests turned on wrong populations."""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.simulator import BgbbMixture, BgbbModel, fit_retention
from gamelens.simulator.population.players import draw_active
from support.statistical_tests import Draw, drawn, holm_rejects, p_values, uniform

pytestmark = pytest.mark.slow

PLAYERS = 200_000
CASUAL = fit_retention(0.37, 0.125, 0.04)
POPULATIONS = {
    "casual": CASUAL,
    "hypercasual": fit_retention(0.24, 0.03, 0.004),
    "midcore": fit_retention(0.26, 0.068, 0.018),
    "joint": fit_retention(0.4452, 0.1861, 0.08, 0.1462),
    "plays more": CASUAL.moved(play=0.4),
    "stays longer": CASUAL.moved(drop_out=-0.5),
    "both, worse": CASUAL.moved(play=-1.2, drop_out=0.9),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_day_and_pair_is_as_the_closed_form_says(name, seed) -> None:
    activity = POPULATIONS[name]
    assert not holm_rejects(p_values(drawn(activity, PLAYERS, np.random.default_rng(seed)), activity))


def test_everybody_plays_on_day_0() -> None:
    assert drawn(CASUAL, 1000, np.random.default_rng(1))[:, 0].all()


def test_the_arms_of_an_experiment_counted_together_are_a_mixture() -> None:
    rng, moved = np.random.default_rng(5), CASUAL.moved(play=0.8, drop_out=-0.7)
    active = np.concatenate([drawn(CASUAL, 150_000, rng), drawn(moved, 50_000, rng)])
    assert not holm_rejects(p_values(active, BgbbMixture(((3.0, CASUAL), (1.0, moved)))))
    assert holm_rejects(p_values(active, CASUAL))


def alike(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Every player plays with the mean chance: right on every day, wrong on pairs."""
    many = 1e9
    one = BgbbModel(activity.plays() * many, (1 - activity.plays()) * many, activity.gamma, activity.delta)
    return drawn(one, players, rng)


def equally_loyal(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Every player drops out with the mean chance: right on day 1, wrong later."""
    mean, many = activity.gamma / (activity.gamma + activity.delta), 1e9
    return drawn(BgbbModel(activity.alpha, activity.beta, mean * many, (1 - mean) * many), players, rng)


def a_day_late(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Nobody drops out before day 2."""
    active = drawn(activity, players, rng)
    return np.column_stack([active[:, :1], rng.random(players) < activity.plays(), active[:, 1:-1]])


def past_midnight(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """A session in a hundred runs into the next day."""
    active = drawn(activity, players, rng)
    runs_on = active[:, :-1] & (rng.random((players, 30)) < 0.01)
    return np.column_stack([active[:, :1], active[:, 1:] | runs_on])


def losing_some(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """One day in fifty of a returning player is lost."""
    active = drawn(activity, players, rng)
    kept = rng.random((players, 30)) >= 0.02
    return np.column_stack([active[:, :1], active[:, 1:] & kept])


def without_the_step(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """What an experiment does to the chance to play does not arrive."""
    return drawn(activity.moved(play=0.1), players, rng)


def never_dropping_out(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Only the chance to play is left of the two mechanisms."""
    install = np.zeros(players, dtype=np.int64)
    return draw_active(install, days=31, activity=activity, rng=rng, drop_out=-30.0)


@pytest.mark.parametrize(
    "wrong", [alike, equally_loyal, a_day_late, past_midnight, losing_some, without_the_step, never_dropping_out]
)
def test_a_population_with_one_mechanism_broken_is_found_out(wrong: Draw) -> None:
    assert holm_rejects(p_values(wrong(CASUAL, PLAYERS, np.random.default_rng(1)), CASUAL))


def test_uniform_numbers_pass_for_uniform_and_others_do_not() -> None:
    numbers = np.random.default_rng(1).random(200)
    assert uniform(numbers) > 0.1
    assert uniform(numbers**1.5) < 0.001
