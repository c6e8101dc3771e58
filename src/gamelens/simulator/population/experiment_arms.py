"""The arms of experiments: players, effects, and the retention of the whole game."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from gamelens.simulator.population.arrays import Floats, Ints
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.retention_model.bgbb import BgbbMixture, BgbbModel
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import ScenarioExperiment, ScenarioVariant

NO_ARM: Final = -1


class Arm(msgspec.Struct, frozen=True):
    """A variant of an experiment and its share of all players while the experiment runs."""

    experiment: ScenarioExperiment
    variant: ScenarioVariant
    share: float


def arms_of(game: GameProfile, *, scenario: Scenario) -> list[Arm]:
    """Return the arms of all experiments of *game*."""
    return [
        Arm(each, variant, each.share * variant.share / sum(other.share for other in each.variants))
        for each in scenario.experiments_of(game)
        for variant in each.variants
    ]


def draw_arms(install_day: Ints, arms: list[Arm], *, rng: np.random.Generator) -> Ints:
    """Draw the arm of each player, or `NO_ARM`.

    The experiments that run on the install day share the players, and each player is in at most one of them.
    """
    position, arm = rng.random(len(install_day)), np.full(len(install_day), NO_ARM, dtype=np.int64)
    used_share = np.zeros(len(install_day))
    for index, each in enumerate(arms):
        is_running = (install_day >= each.experiment.day) & (install_day < each.experiment.until)
        is_in = is_running & (used_share <= position) & (position < used_share + each.share)
        arm[is_in] = index
        used_share = used_share + is_running * each.share
    return arm


def steps(arms: list[Arm], effect: str, arm: Ints) -> Floats:
    """Return the step on the logit scale for players of these arms, 0 without an arm.

    *effect* is "play", "drop_out" or "spend".
    """
    by_arm = np.array([*(getattr(each.variant, effect) for each in arms), 0.0])
    return by_arm[arm]


def activity_of(game: GameProfile, *, variant: ScenarioVariant | None = None) -> BgbbModel:
    """Return the population of *game*, or of its players in *variant*."""
    activity = game.retention.activity()
    return activity if variant is None else activity.moved(play=variant.play, drop_out=variant.drop_out)


def mixture_of(game: GameProfile, *, scenario: Scenario, first_weekday: int) -> BgbbMixture:
    """Return the population of all arms of *game*, weighted by their installs.

    It leaves out incidents and the end of the scenario, which `output.forecast` includes.
    """
    by_day = plan_installs(game, scenario=scenario, first_weekday=first_weekday).installs.sum(axis=0)
    day = np.arange(scenario.days)
    parts = []
    for arm in arms_of(game, scenario=scenario):
        running = by_day[(day >= arm.experiment.day) & (day < arm.experiment.until)].sum()
        parts.append((float(running * arm.share), activity_of(game, variant=arm.variant)))
    rest = max(1 - sum(weight for weight, _ in parts), 0.0)
    return BgbbMixture(((rest, activity_of(game)), *((weight, part) for weight, part in parts if weight)))
