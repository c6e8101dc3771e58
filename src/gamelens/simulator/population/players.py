"""The players of a block and the days on which they are active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gamelens.simulator.population.arrays import Flags, Floats, Ints, pick, pick_by
from gamelens.simulator.population.installs import InstallPlan, arms_of, draw_arms, open_days, steps
from gamelens.simulator.retention_model.bgbb import BgbbModel, shifted
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import BadBuild

UPDATE_LAG_DAYS: Final = 2.0
"""Mean days until an existing player updates the game."""

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
"""Manufacturer, device and os_version by platform, all equally likely."""


@dataclass(frozen=True, eq=False, slots=True)
class Players:
    """A block of players of one game, as arrays of shape (n,).

    Days are counted from the scenario's first.
    """

    install_day: Ints
    active: Flags  # whether the player is active on each day, shape (n, days)
    country: Ints  # position in the game's countries
    platform: Ints  # position in the game's platforms
    device: Ints  # position in `DEVICES` of the platform
    update_lag: Ints  # days until the player updates to a new build
    is_payer: Flags
    publisher: Ints  # position in the publishers of the install plan, or -1
    arm: Ints  # position in the game's arms, or -1
    appetite: Floats  # logarithm of the player's session length relative to others

    def __len__(self) -> int:
        return len(self.install_day)


def draw_players(
    count: int,
    *,
    game: GameProfile,
    scenario: Scenario,
    activity: BgbbModel,
    install_plan: InstallPlan,
    rng: np.random.Generator,
) -> Players:
    """Draw *count* players of *game*.

    They install as *install_plan* says and return as *activity* says.
    """
    source, install_day = np.divmod(pick(rng, install_plan.installs.ravel(), count), scenario.days)
    country = pick_by(rng, install_plan.country, source)
    platform = pick_by(
        rng, install_plan.platform.reshape(-1, len(game.platforms)), source * len(game.countries) + country
    )
    sizes = np.array([len(DEVICES[name]) for name in game.platforms])
    arms = arms_of(game, scenario=scenario)
    arm = draw_arms(install_day, arms, rng=rng)
    chance = draw_chances(count, activity=activity, rng=rng, play=steps(arms, "play", arm))
    active = draw_active(
        install_day,
        days=scenario.days,
        activity=activity,
        rng=rng,
        chance=chance,
        drop_out=steps(arms, "drop_out", arm),
        more=holiday_steps(game, scenario=scenario)[country],
        quits_at_once=1
        - install_plan.stay[source] * staying_share(install_day, country, platform, game=game, scenario=scenario),
    )
    payers = shifted(np.full(count, game.purchases.payers), steps(arms, "spend", arm) + install_plan.spend[source])
    return Players(
        install_day=install_day,
        active=active & open_days(game, scenario=scenario),
        country=country,
        platform=platform,
        device=rng.integers(0, sizes[platform]),
        update_lag=rng.geometric(1 / (1 + UPDATE_LAG_DAYS), count) - 1,
        is_payer=rng.random(count) < payers,
        publisher=install_plan.publisher[source],
        arm=arm,
        # Players who play on more days have longer sessions.
        appetite=game.sessions.player_sigma * rng.standard_normal(count)
        + game.sessions.keen * np.log(np.maximum(chance, 1e-3) / activity.plays()),
    )


def draw_chances(count: int, *, activity: BgbbModel, rng: np.random.Generator, play: Floats | float = 0.0) -> Floats:
    """Draw each player's probability of playing on a day.

    *play* is a step on the logit scale, added to the step of *activity*.
    """
    return shifted(rng.beta(activity.alpha, activity.beta, count), activity.play + play)


def draw_active(
    install_day: Ints,
    *,
    days: int,
    activity: BgbbModel,
    rng: np.random.Generator,
    chance: Floats | None = None,
    drop_out: Floats | float = 0.0,
    more: Floats | None = None,
    quits_at_once: Floats | float = 0.0,
) -> Flags:
    """Draw the days on which each player is active, shape (players, days).

    *chance* is each player's probability to play on a day, by default from `draw_chances`. *drop_out* is a step on
    the logit scale, added to the step of *activity*, *more* a step for *chance* by player and day, and *quits_at_once*
    the probability to drop out right after the install day.
    """
    count = len(install_day)
    p = draw_chances(count, activity=activity, rng=rng) if chance is None else chance
    theta = shifted(rng.beta(activity.gamma, activity.delta, count), activity.drop_out + drop_out)
    # The trials before the first drop-out are the days survived. At theta = 0 there would be no last trial.
    survived = np.minimum(rng.geometric(np.clip(theta, 1e-12, 1)) - 1, days)
    survived = np.where(rng.random(count) < quits_at_once, 0, survived)
    age = np.arange(days)[None, :] - install_day[:, None]
    plays = rng.random((count, days)) < (p[:, None] if more is None or not more.any() else shifted(p[:, None], more))
    active: Flags = (age == 0) | ((age > 0) & (age <= survived[:, None]) & plays)
    return active


def holiday_steps(game: GameProfile, *, scenario: Scenario) -> Floats:
    """Return the step of the chance to play by country of *game* and day, 0 without a holiday."""
    found = np.zeros((len(game.countries), scenario.days))
    for holiday in scenario.holidays:
        if holiday.day < scenario.days:
            found[[code in holiday.countries for code in game.countries], holiday.day] += holiday.play
    return found


def staying_share(install_day: Ints, country: Ints, platform: Ints, *, game: GameProfile, scenario: Scenario) -> Floats:
    """Return the share of players who do not quit at once because of a bad build."""
    share = np.ones(len(install_day))
    released = np.array([build.day for build in game.builds])
    build = np.searchsorted(released, install_day, side="right") - 1
    for incident in scenario.incidents_of(game):
        if isinstance(incident, BadBuild):
            is_affected = build == [version.name for version in game.builds].index(incident.build)
            if incident.country is not None:
                is_affected &= country == list(game.countries).index(incident.country)
            if incident.platform is not None:
                is_affected &= platform == [*map(str, game.platforms)].index(incident.platform)
            share[is_affected] *= incident.stay
    return share
