"""The installs of a game by day and source (organic, bought, from campaigns), and the arms of its experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from gamelens.simulator.population.arrays import Flags, Floats, Ints
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import Campaign, GameSilence, ScenarioExperiment, ScenarioVariant
from gamelens.simulator.scenarios.validation import InvalidScenarioValue

NO_ARM: Final = -1


@dataclass(frozen=True, eq=False, slots=True)
class InstallPlan:
    """The installs of a game by source: organic, then its publishers, then its campaigns."""

    installs: Floats  # share of all installs by source and day, adding up to 1
    country: Floats  # shares of the countries by source
    platform: Floats  # shares of the platforms by source and country
    publisher: Ints  # position of each source's publisher, or -1
    publishers: tuple[str, ...]
    stay: Floats  # share of the players of each source who do not drop out at once
    spend: Floats  # step on the logit scale of the chance that a player of each source ever pays
    cost: Floats  # cost of an install of each source as a multiple of the usual one


def plan_installs(game: GameProfile, *, scenario: Scenario, first_weekday: int) -> InstallPlan:
    """Return the installs of *game* by source and day.

    *first_weekday* is the weekday of day 0, Monday is 0.

    Raises:
        InvalidScenarioValue: the game is silent on every day with installs.
    """
    day = np.arange(scenario.days)
    ordinary = np.array(scenario.weekdays)[(first_weekday + day) % 7] * (1 + scenario.trend) ** (day / 7)
    if scenario.install_days is not None:
        ordinary[scenario.install_days :] = 0
    ordinary /= ordinary.sum() or 1
    paid, campaigns = game.paid, scenario.campaigns_of(game)
    bought = list(paid.publishers.items()) if paid else []
    names = [None, *(name for name, _ in bought), *(campaign.publisher for campaign in campaigns)]
    share = paid.share if paid else 0.0
    total = sum(weight for _, weight in bought)
    rows = [ordinary * (1 - share), *(ordinary * share * weight / total for _, weight in bought)]
    # The size of a campaign is relative to an ordinary day: the mean over all days with installs.
    ordinary_day = 1 / max(int(np.count_nonzero(ordinary)), 1)
    rows += [
        np.where((day >= campaign.day) & (day < campaign.day + campaign.days), campaign.size, 0.0) * ordinary_day
        for campaign in campaigns
    ]
    installs = np.array(rows)
    installs[:, ~open_days(game, scenario=scenario)] = 0
    if not installs.sum():
        raise InvalidScenarioValue("incident", game.title, "is silent on every day that would have installs")
    publishers = publishers_of(game, scenario=scenario)
    ordinary_sources: list[Campaign | None] = [None] * (1 + len(bought))
    mixes = [_mix(game, scenario=scenario, campaign=campaign) for campaign in [*ordinary_sources, *campaigns]]
    return InstallPlan(
        installs=installs / installs.sum(),
        country=np.array([country for country, _ in mixes]),
        platform=np.array([platform for _, platform in mixes]),
        publisher=np.array([-1 if name is None else publishers.index(name) for name in names]),
        publishers=publishers,
        stay=np.array([1.0] * len(ordinary_sources) + [campaign.stay for campaign in campaigns]),
        spend=np.array([0.0] * len(ordinary_sources) + [campaign.spend for campaign in campaigns]),
        cost=np.array([1.0] * len(ordinary_sources) + [campaign.cost for campaign in campaigns]),
    )


def publishers_of(game: GameProfile, *, scenario: Scenario) -> tuple[str, ...]:
    """Return the names of all publishers of *game*, each once."""
    bought = [] if game.paid is None else [*game.paid.publishers]
    return tuple(dict.fromkeys([*bought, *(campaign.publisher for campaign in scenario.campaigns_of(game))]))


def open_days(game: GameProfile, *, scenario: Scenario) -> Flags:
    """Return a mask of the days on which *game* is not silent."""
    is_open = np.ones(scenario.days, dtype=np.bool_)
    for incident in scenario.incidents_of(game):
        if isinstance(incident, GameSilence):
            is_open[incident.day : incident.day + incident.days] = False
    return is_open


def _mix(game: GameProfile, *, scenario: Scenario, campaign: Campaign | None) -> tuple[Floats, Floats]:
    """Return the shares of countries, and of platforms by country, for one source."""
    countries = (campaign.countries if campaign else ()) or tuple(game.countries)
    platforms = (campaign.platforms if campaign else ()) or tuple(game.platforms)
    country = np.array([share if code in countries else 0.0 for code, share in game.countries.items()])
    odds = [scenario.country(code).ios_odds for code in game.countries]
    platform = np.array(
        [
            [
                (name in platforms) * share * (ios_factor if name == "ios" else 1)
                for name, share in game.platforms.items()
            ]
            for ios_factor in odds
        ]
    )
    return country / country.sum(), platform / platform.sum(axis=1, keepdims=True)


class Arm(msgspec.Struct, frozen=True):
    """A variant of an experiment and its share of all players while the experiment runs."""

    experiment: ScenarioExperiment
    variant: ScenarioVariant
    share: float


def arms_of(game: GameProfile, *, scenario: Scenario) -> list[Arm]:
    """Return the arms of all experiments of *game*."""
    return [
        Arm(experiment, variant, experiment.share * variant.share / sum(other.share for other in experiment.variants))
        for experiment in scenario.experiments_of(game)
        for variant in experiment.variants
    ]


def draw_arms(install_day: Ints, arms: list[Arm], *, rng: np.random.Generator) -> Ints:
    """Draw the arm of each player, or `NO_ARM`.

    The experiments that run on the install day share the players, and each player is in at most one of them.
    """
    position, arm = rng.random(len(install_day)), np.full(len(install_day), NO_ARM, dtype=np.int64)
    used_share = np.zeros(len(install_day))
    for index, test_arm in enumerate(arms):
        is_running = (install_day >= test_arm.experiment.day) & (install_day < test_arm.experiment.until)
        is_in = is_running & (used_share <= position) & (position < used_share + test_arm.share)
        arm[is_in] = index
        used_share = used_share + is_running * test_arm.share
    return arm


def steps(arms: list[Arm], effect: str, arm: Ints) -> Floats:
    """Return the step on the logit scale for players of these arms, 0 without an arm.

    *effect* is "play", "drop_out" or "spend".
    """
    by_arm = np.array([*(getattr(test_arm.variant, effect) for test_arm in arms), 0.0])
    return by_arm[arm]


def charged(cents: Ints, arms: list[Arm], arm: Ints) -> Ints:
    """Return what players of these arms pay for items of the usual price *cents*, in whole hundredths."""
    factors = np.array([*(test_arm.variant.price for test_arm in arms), 1.0])
    paid: Ints = np.maximum(np.rint(cents * factors[arm]), 1).astype(np.int64)
    return paid
