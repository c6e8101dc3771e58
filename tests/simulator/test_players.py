"""Drawn players: retention against the closed form, install days, platforms, devices."""

from __future__ import annotations

from datetime import date
from math import lgamma, sqrt

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.simulator import BgbbModel, fit_retention, load_scenario
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import DEVICES, draw_active, draw_players
from gamelens.simulator.scenarios.game_profile import GameProfile

SHAPES = st.floats(0.05, 20)
CASUAL = fit_retention(0.37, 0.125, 0.04)


def draw_casual(players: int = 100_000, days: int = 30) -> np.ndarray:
    """Draw active days of casual players who install on day 0."""
    return draw_active(np.zeros(players, dtype=np.int64), days=days, activity=CASUAL, rng=np.random.default_rng(1))


@given(SHAPES, SHAPES, SHAPES, SHAPES, st.integers(1, 60))
def test_retention_is_the_ratio_of_beta_functions(
    alpha: float, beta: float, gamma: float, delta: float, day: int
) -> None:
    """D-n is alpha / (alpha + beta) times B(gamma, delta + n) / B(gamma, delta)."""
    log_survival = lgamma(delta + day) - lgamma(delta) + lgamma(gamma + delta) - lgamma(gamma + delta + day)
    expected = alpha / (alpha + beta) * np.exp(log_survival)
    assert BgbbModel(alpha, beta, gamma, delta).retention(day) == pytest.approx(expected, rel=1e-9)


@given(SHAPES, SHAPES, SHAPES, SHAPES)
def test_every_player_is_active_on_the_install_day(alpha: float, beta: float, gamma: float, delta: float) -> None:
    """D0 is 1 for any parameters."""
    assert BgbbModel(alpha, beta, gamma, delta).retention(0) == 1


@given(SHAPES, SHAPES, SHAPES, SHAPES, st.integers(1, 60))
def test_retention_never_rises(alpha: float, beta: float, gamma: float, delta: float, day: int) -> None:
    """D-(n+1) is at most D-n for any parameters."""
    activity = BgbbModel(alpha, beta, gamma, delta)
    assert activity.retention(day + 1) <= activity.retention(day)


@pytest.mark.parametrize("game", load_scenario("calm").games, ids=lambda game: game.title)
def test_fit_meets_its_three_targets(game: GameProfile) -> None:
    """The fit of each game of `calm` has its D1, D7 and D28 to 1e-8."""
    fitted, target = game.retention.activity(), game.retention
    retained = [fitted.retention(day) for day in (1, 7, 28)]
    assert retained == pytest.approx([target.d1, target.d7, target.d28], rel=1e-8)


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.1, 0.9))
def test_fit_finds_back_any_population_from_its_retention(gamma: float, delta: float, mean: float) -> None:
    """D2 and D14 of a population follow from its D1, D7 and D28."""
    truth = BgbbModel(mean * 3, (1 - mean) * 3, gamma, delta)
    fitted = fit_retention(*(truth.retention(day) for day in (1, 7, 28)))
    assert [fitted.retention(day) for day in (2, 14)] == pytest.approx(
        [truth.retention(day) for day in (2, 14)], rel=1e-3
    )


@pytest.mark.parametrize("day", [1, 2, 7, 14, 28])
def test_drawn_players_come_back_as_the_closed_form_says(day: int) -> None:
    """Drawn D-n lies within 4 standard errors of the closed form, at a fixed seed."""
    active, expected = draw_casual(), CASUAL.retention(day)
    assert abs(active[:, day].mean() - expected) < 4 * sqrt(expected * (1 - expected) / len(active))


@pytest.mark.parametrize("pair", [(1, 7), (1, 28), (7, 28)])
def test_drawn_players_come_back_on_both_days_as_the_closed_form_says(pair: tuple[int, int]) -> None:
    """Drawn joint retention of two days lies within 4 standard errors of the closed form."""
    first, second = pair
    active, expected = draw_casual(), CASUAL.retention_both(first, second)
    share = (active[:, first] & active[:, second]).mean()
    assert abs(share - expected) < 4 * sqrt(expected * (1 - expected) / len(active))


def test_mean_active_days_follow_the_closed_form() -> None:
    """The mean number of active days in 30 is within 1 % of the closed form."""
    assert draw_casual().sum(axis=1).mean() == pytest.approx(CASUAL.active_days(30), rel=0.01)


def test_no_player_is_active_before_the_install_day() -> None:
    """The first active day of each player is the install day."""
    install = np.arange(20, dtype=np.int64)
    active = draw_active(install, days=20, activity=CASUAL, rng=np.random.default_rng(2))
    assert [int(np.argmax(row)) for row in active] == install.tolist()


def test_installs_follow_the_weekday() -> None:
    """Installs of a week starting on Saturday 2026-11-21 follow the weights of the weekdays."""
    scenario = msgspec.structs.replace(load_scenario("calm", days=7), trend=0.0, campaigns=())
    install_plan = plan_installs(scenario.games[0], scenario=scenario, first_weekday=date(2026, 11, 21).weekday())
    expected = np.roll(scenario.weekdays, -5) / np.sum(scenario.weekdays)
    assert install_plan.installs.sum(axis=0) == pytest.approx(expected)


def test_ios_odds_of_the_country_decide_the_platform_mix() -> None:
    """The iOS odds of a country multiply those of the game: 5 times in Japan."""
    scenario = msgspec.structs.replace(load_scenario("calm"), campaigns=())
    game = scenario.games[0]
    players = draw_players(
        50_000,
        game=game,
        scenario=scenario,
        activity=CASUAL,
        install_plan=plan_installs(game, scenario=scenario, first_weekday=0),
        rng=np.random.default_rng(3),
    )
    japan, ios = list(game.countries).index("JP"), list(game.platforms).index("ios")
    share = (players.platform[players.country == japan] == ios).mean()
    assert share == pytest.approx(5 * 0.22 / (5 * 0.22 + 0.78), abs=0.03)


@pytest.mark.parametrize("device", [device for devices in DEVICES.values() for device in devices])
def test_devices_have_the_platform_of_their_os_version(device: tuple[str, str, str]) -> None:
    """`os_version` of a device starts with its platform (Wire 3.4, Platforms and versions)."""
    platform = next(name for name, devices in DEVICES.items() if device in devices)
    assert device[2].split()[0] == platform
