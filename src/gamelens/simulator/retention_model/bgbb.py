"""Who comes back when, in closed form: a BG/BB population.

Each player has a chance *p* ~ Beta(alpha, beta) to play on a day and a chance *theta* ~ Beta(gamma, delta) to drop
out for good before it. Everybody plays on the install day; on each later day a player who is still there plays with
chance p. So retention has a closed form, and what is measured later can be proved right.

An experiment moves everybody's p or theta by the same step on the logit scale. The shares that come out are then means
of smooth functions over the two Beta distributions, which `quadrature` integrates to a double's precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from gamelens.errors import BadQuery
from gamelens.simulator.retention_model.quadrature import beta_mean, shifted


class BgbbModel(msgspec.Struct, frozen=True):
    """A BG/BB population: p ~ Beta(alpha, beta), theta ~ Beta(gamma, delta).

    *play* and *drop_out* are steps on the logit scale of p and theta: 0 without an experiment.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    play: float = 0.0
    drop_out: float = 0.0

    def survival(self, day: int) -> float:
        """Chance to be still there *day* days after install: E[(1 - theta)^day]."""
        if self.drop_out:
            return beta_mean(lambda theta: (1 - shifted(theta, self.drop_out)) ** day, self.gamma, self.delta)
        k = np.arange(day)
        return float(np.prod((self.delta + k) / (self.gamma + self.delta + k)))

    def plays(self, times: int = 1) -> float:
        """Chance of a player who is still there to play on each of *times* days: E[p^times]."""
        if self.play:
            return beta_mean(lambda p: shifted(p, self.play) ** times, self.alpha, self.beta)
        k = np.arange(times)
        return float(np.prod((self.alpha + k) / (self.alpha + self.beta + k)))

    def retention(self, day: int) -> float:
        """Chance to play *day* days after install; 1 on day 0."""
        return self.survival(day) * self.plays() if day else 1.0

    def retention_both(self, first: int, second: int) -> float:
        """Chance to play on both days after install."""
        if first == second or not first or not second:
            return self.retention(max(first, second))
        return self.survival(max(first, second)) * self.plays(2)

    def active_days(self, days: int) -> float:
        """Days played on average in the first *days* days, the install day counted."""
        return sum(self.retention(day) for day in range(days))

    def moved(self, *, play: float = 0.0, drop_out: float = 0.0) -> BgbbModel:
        """The same players with p and theta moved by these steps on the logit scale."""
        return msgspec.structs.replace(self, play=self.play + play, drop_out=self.drop_out + drop_out)


class BgbbMixture(msgspec.Struct, frozen=True):
    """Several populations in one, each with its weight: the arms of an experiment, counted together."""

    components: tuple[tuple[float, BgbbModel], ...]

    def retention(self, day: int) -> float:
        """Chance to play *day* days after install; 1 on day 0."""
        return self._mean([component.retention(day) for _, component in self.components])

    def retention_both(self, first: int, second: int) -> float:
        """Chance to play on both days after install."""
        return self._mean([component.retention_both(first, second) for _, component in self.components])

    def active_days(self, days: int) -> float:
        """Days played on average in the first *days* days, the install day counted."""
        return self._mean([component.active_days(days) for _, component in self.components])

    def _mean(self, values: Sequence[float]) -> float:
        weights = [weight for weight, _ in self.components]
        return float(np.dot(weights, values) / sum(weights))


def logit_step_for_lift(activity: BgbbModel, lift: float) -> float:
    """The step on the logit scale of p that multiplies every D-n of *activity* by *lift*.

    Raises:
        BadQuery: even playing every day would not.
    """
    target = activity.plays() * lift
    if not 0 < target < 1:
        raise BadQuery("lift", lift, f"must be more than 0 and less than {1 / activity.plays():.4g}")
    low, high = -30.0, 30.0
    for _ in range(80):
        step = (low + high) / 2
        low, high = (step, high) if activity.moved(play=step).plays() < target else (low, step)
    return (low + high) / 2
