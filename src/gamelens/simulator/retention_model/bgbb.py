"""The BG/BB model of retention, in closed form.

Each player has a probability *p* ~ Beta(alpha, beta) of playing on a day and a probability *theta* ~ Beta(gamma, delta)
of dropping out for good before it. All players play on the install day. On each later day a player who has not dropped
out plays with probability p. Retention then has a closed form, which a measured value can be compared with.

An experiment moves p or theta of all its players by the same step on the logit scale. The resulting shares are means of
smooth functions over the two Beta distributions, which Gauss-Jacobi quadrature
integrates to double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gamelens.errors import BadQuery, suggests_names

Floats = NDArray[np.float64]

NODES: Final = 128
"""Number of nodes: the rule is exact for polynomials up to twice this degree.

With logit steps of up to 4 its error is far below the last digit of a double.
"""


@suggests_names
class BgbbModel(msgspec.Struct, frozen=True):
    """A BG/BB population: p ~ Beta(alpha, beta), theta ~ Beta(gamma, delta).

    Attributes:
        alpha, beta: distribution of the probability p of playing on a day.
        gamma, delta: distribution of the probability theta of dropping out before a day.
        play: step added to p on the logit scale, 0 without an experiment.
        drop_out: step added to theta on the logit scale, 0 without an experiment.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    play: float = 0.0
    drop_out: float = 0.0

    def survival(self, day: int) -> float:
        """Return the probability of not having dropped out by *day*: E[(1 - theta)^day]."""
        if self.drop_out:
            return beta_mean(lambda theta: (1 - shifted(theta, self.drop_out)) ** day, self.gamma, self.delta)
        k = np.arange(day)
        return float(np.prod((self.delta + k) / (self.gamma + self.delta + k)))

    def plays(self, times: int = 1) -> float:
        """Return the probability of playing on each of *times* days before drop-out: E[p^times]."""
        if self.play:
            return beta_mean(lambda p: shifted(p, self.play) ** times, self.alpha, self.beta)
        k = np.arange(times)
        return float(np.prod((self.alpha + k) / (self.alpha + self.beta + k)))

    def retention(self, day: int) -> float:
        """Return the probability of playing *day* days after install, 1 on day 0."""
        return self.survival(day) * self.plays() if day else 1.0

    def retention_both(self, first: int, second: int) -> float:
        """Return the probability of playing on both days after install."""
        if first == second or not first or not second:
            return self.retention(max(first, second))
        return self.survival(max(first, second)) * self.plays(2)

    def active_days(self, days: int) -> float:
        """Return the mean number of days played in the first *days* days, install day included."""
        return sum(self.retention(day) for day in range(days))

    def moved(self, *, play: float = 0.0, drop_out: float = 0.0) -> BgbbModel:
        """Return the population with p and theta moved by these steps on the logit scale."""
        return msgspec.structs.replace(self, play=self.play + play, drop_out=self.drop_out + drop_out)


@suggests_names
class BgbbMixture(msgspec.Struct, frozen=True):
    """Several populations with a weight each: the arms of an experiment, counted together."""

    components: tuple[tuple[float, BgbbModel], ...]

    def retention(self, day: int) -> float:
        """Return the probability of playing *day* days after install, 1 on day 0."""
        return self._mean([component.retention(day) for _, component in self.components])

    def retention_both(self, first: int, second: int) -> float:
        """Return the probability of playing on both days after install."""
        return self._mean([component.retention_both(first, second) for _, component in self.components])

    def active_days(self, days: int) -> float:
        """Return the mean number of days played in the first *days* days, install day included."""
        return self._mean([component.active_days(days) for _, component in self.components])

    def _mean(self, values: Sequence[float]) -> float:
        weights = [weight for weight, _ in self.components]
        return float(np.dot(weights, values) / sum(weights))


def logit_step_for_lift(activity: BgbbModel, lift: float) -> float:
    """Return the step on the logit scale of p that multiplies every D-n by *lift*.

    Raises:
        BadQuery: not even players who play every day reach that.
    """
    target = activity.plays() * lift
    if not 0 < target < 1:
        raise BadQuery("lift", lift, f"must be more than 0 and less than {1 / activity.plays():.4g}")
    low, high = -30.0, 30.0
    for _ in range(80):
        step = (low + high) / 2
        low, high = (step, high) if activity.moved(play=step).plays() < target else (low, step)
    return (low + high) / 2


def beta_mean(function: Callable[[Floats], Floats], a: float, b: float) -> float:
    """Return E[function(x)] of x ~ Beta(a, b), accurate to rounding for smooth functions."""
    nodes, weights = _rule(a, b)
    return float(weights @ function(nodes))


def shifted(chance: Floats, by: Floats | float) -> Floats:
    """Return *chance* moved by *by* on the logit scale, where 0 and 1 do not move."""
    odds = np.exp(by)
    moved: Floats = odds * chance / (1 - chance + odds * chance)
    return moved


@lru_cache(maxsize=256)
def _rule(a: float, b: float) -> tuple[Floats, Floats]:
    """Return nodes in (0, 1) and weights that add up to 1, by the Golub-Welsch algorithm.

    They are eigenvalues and eigenvectors of the recurrence of the Jacobi polynomials, whose exponents belong to
    (1 - t)^(b - 1) (1 + t)^(a - 1) over t = 2 x - 1.
    """
    k = np.arange(1, NODES)
    total = a + b - 2
    diagonal = np.empty(NODES)
    diagonal[0] = (a - b) / (a + b)
    diagonal[1:] = ((a - 1) ** 2 - (b - 1) ** 2) / ((2 * k + total) * (2 * k + total + 2))
    # k = 1 separately: the general formula is 0 / 0 if a + b is 1.
    squared = np.empty(NODES - 1)
    squared[0] = 4 * a * b / ((a + b) ** 2 * (a + b + 1))
    k = k[1:]
    squared[1:] = 4 * k * (k + a - 1) * (k + b - 1) * (k + total) / ((2 * k + total) ** 2 * ((2 * k + total) ** 2 - 1))
    off_diagonal = np.sqrt(squared)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return np.clip((1 + values) / 2, 0, 1), vectors[0] ** 2
