"""Who the players are and on which days they come; `activity` says how likely that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.simulator.activity import Activity
from gamelens.simulator.scenario import Scenario
from gamelens.simulator.traits import Game

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

UPDATE_LAG_DAYS: Final = 2.0
"""Mean days until a player who is already there updates the game."""

DEVICES: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "android": (
        ("samsung", "SM-A546B", "android 14"),
        ("samsung", "SM-G991B", "android 13"),
        ("xiaomi", "Redmi Note 12", "android 13"),
        ("oppo", "CPH2387", "android 12"),
        ("google", "Pixel 7", "android 15"),
        ("motorola", "moto g54", "android 14"),
    ),
    "ios": (
        ("apple", "iPhone12,1", "ios 17.6.1"),
        ("apple", "iPhone14,5", "ios 18.1"),
        ("apple", "iPhone15,2", "ios 18.3.2"),
        ("apple", "iPad13,18", "ios 17.7"),
    ),
}
"""Manufacturer, device and os_version by platform, each as likely as the next."""


@dataclass(frozen=True, eq=False, slots=True)
class Players:
    """A block of players of one game; arrays of shape (n,), days are days of the scenario.

    *country* and *platform* are positions in the game's mixes, *device* in `DEVICES` of the platform, *active* has
    shape (n, days).
    """

    install_day: Ints
    active: Flags
    country: Ints
    platform: Ints
    device: Ints
    update_lag: Ints
    is_payer: Flags

    def __len__(self) -> int:
        return len(self.install_day)


def draw_players(
    count: int, *, game: Game, scenario: Scenario, activity: Activity, installs: Floats, rng: np.random.Generator
) -> Players:
    """*count* players of *game*; *installs* is the share of installs on each day of the scenario."""
    install_day = pick(rng, installs, count)
    country = pick(rng, shares(game.countries.values()), count)
    platform = _draw_platforms(country, game=game, scenario=scenario, rng=rng)
    sizes = np.array([len(DEVICES[name]) for name in game.platforms])
    return Players(
        install_day=install_day,
        active=draw_active(install_day, days=scenario.days, activity=activity, rng=rng),
        country=country,
        platform=platform,
        device=rng.integers(0, sizes[platform]),
        update_lag=rng.geometric(1 / (1 + UPDATE_LAG_DAYS), count) - 1,
        is_payer=rng.random(count) < game.purchases.payers,
    )


def draw_active(install_day: Ints, *, days: int, activity: Activity, rng: np.random.Generator) -> Flags:
    """Who plays on which day, shape (players, days)."""
    count = len(install_day)
    p = rng.beta(activity.alpha, activity.beta, count)
    theta = rng.beta(activity.gamma, activity.delta, count)
    # The trials before the first drop-out are the days survived; theta is kept off 0, where there is no last trial.
    survived = np.minimum(rng.geometric(np.maximum(theta, 1e-12)) - 1, days)
    age = np.arange(days)[None, :] - install_day[:, None]
    plays = rng.random((count, days)) < p[:, None]
    active: Flags = (age == 0) | ((age > 0) & (age <= survived[:, None]) & plays)
    return active


def install_shares(scenario: Scenario, first_weekday: int) -> Floats:
    """Share of installs on each day; *first_weekday* is the weekday of day 0, Monday is 0."""
    weekday = (first_weekday + np.arange(scenario.days)) % 7
    return shares(np.array(scenario.weekdays)[weekday])


def shares(weights: Iterable[float]) -> Floats:
    """*weights*, scaled to add up to 1."""
    values = np.array(list(weights), dtype=np.float64)
    scaled: Floats = values / values.sum()
    return scaled


def pick(rng: np.random.Generator, weights: Floats, count: int) -> Ints:
    """*count* positions drawn with these shares."""
    return np.minimum(np.searchsorted(np.cumsum(weights), rng.random(count), side="right"), len(weights) - 1)


def _draw_platforms(country: Ints, *, game: Game, scenario: Scenario, rng: np.random.Generator) -> Ints:
    odds = np.array([scenario.country(code).ios_odds for code in game.countries])
    weights = np.array(
        [[share * (tilt if name == "ios" else 1) for name, share in game.platforms.items()] for tilt in odds]
    )
    cumulated = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = rng.random(len(country))[:, None] >= cumulated[country, :-1]
    platform: Ints = drawn.sum(axis=1)
    return platform
