"""Drawn retention against the BG/BB closed form, with wrong populations as controls."""

from __future__ import annotations

import numpy as np
import pytest

from gamelens.simulator import BgbbMixture, BgbbModel, fit_retention
from gamelens.simulator.population.players import draw_active
from support.statistical_tests import ActivityDraw, draw_activity, holm_rejects, retention_p_values, uniformity_p_value

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


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("name", POPULATIONS)
def test_every_day_and_pair_is_as_the_closed_form_says(name: str) -> None:
    """Drawn D1 to D30 and three joint retentions agree with the closed form (z-tests, Holm)."""
    activity, seed = POPULATIONS[name], 1
    assert not holm_rejects(retention_p_values(draw_activity(activity, PLAYERS, np.random.default_rng(seed)), activity))


def test_every_player_is_active_on_day_0() -> None:
    """Every player is active on the install day."""
    assert draw_activity(CASUAL, 1000, np.random.default_rng(1))[:, 0].all()


def test_the_arms_of_an_experiment_counted_together_are_a_mixture() -> None:
    """Two arms counted together follow their weighted mixture, not the untreated population."""
    rng, moved = np.random.default_rng(5), CASUAL.moved(play=0.8, drop_out=-0.7)
    active = np.concatenate([draw_activity(CASUAL, 150_000, rng), draw_activity(moved, 50_000, rng)])
    assert not holm_rejects(retention_p_values(active, BgbbMixture(((3.0, CASUAL), (1.0, moved)))))
    assert holm_rejects(retention_p_values(active, CASUAL))


def all_alike(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who all play with the mean chance: right on every day, wrong on pairs."""
    concentration = 1e9
    one = BgbbModel(
        activity.plays() * concentration, (1 - activity.plays()) * concentration, activity.gamma, activity.delta
    )
    return draw_activity(one, players, rng)


def equally_loyal(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who all drop out with the mean chance: right on day 1, wrong later."""
    mean, concentration = activity.gamma / (activity.gamma + activity.delta), 1e9
    return draw_activity(
        BgbbModel(activity.alpha, activity.beta, mean * concentration, (1 - mean) * concentration), players, rng
    )


def a_day_late(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who cannot drop out before day 2."""
    active = draw_activity(activity, players, rng)
    return np.column_stack([active[:, :1], rng.random(players) < activity.plays(), active[:, 1:-1]])


def past_midnight(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players of whose sessions one in a hundred runs into the next day."""
    active = draw_activity(activity, players, rng)
    runs_on = active[:, :-1] & (rng.random((players, 30)) < 0.01)
    return np.column_stack([active[:, :1], active[:, 1:] | runs_on])


def losing_some(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who lose one active day in fifty."""
    active = draw_activity(activity, players, rng)
    is_kept = rng.random((players, 30)) >= 0.02
    return np.column_stack([active[:, :1], active[:, 1:] & is_kept])


def without_the_step(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who do not get the step that their experiment gives."""
    return draw_activity(activity.moved(play=0.1), players, rng)


def never_dropping_out(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw players who play by chance and never drop out."""
    install = np.zeros(players, dtype=np.int64)
    return draw_active(install, days=31, activity=activity, rng=rng, drop_out=-30.0)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "wrong", [all_alike, equally_loyal, a_day_late, past_midnight, losing_some, without_the_step, never_dropping_out]
)
def test_a_population_with_one_broken_mechanism_is_rejected(wrong: ActivityDraw) -> None:
    """Negative control: the z-tests reject every population with one mechanism wrong."""
    assert holm_rejects(retention_p_values(wrong(CASUAL, PLAYERS, np.random.default_rng(1)), CASUAL))


def test_the_uniformity_test_accepts_uniform_numbers_only() -> None:
    """The Kolmogorov-Smirnov test accepts 200 uniform numbers and rejects their 1.5th powers."""
    numbers = np.random.default_rng(1).random(200)
    assert uniformity_p_value(numbers) > 0.1
    assert uniformity_p_value(numbers**1.5) < 0.001
