"""Who comes back when, in closed form: a BG/BB population.

Each player has a chance *p* ~ Beta(alpha, beta) to play on a day and a chance *theta* ~ Beta(gamma, delta) to drop
out for good before it. Everybody plays on the install day; on each later day a player who is still there plays with
chance p. So retention has a closed form, and what is measured later can be proved right.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from gamelens.errors import BadQuery


class Activity(msgspec.Struct, frozen=True):
    """A BG/BB population: p ~ Beta(alpha, beta), theta ~ Beta(gamma, delta)."""

    alpha: float
    beta: float
    gamma: float
    delta: float

    def survival(self, day: int) -> float:
        """Chance to be still there *day* days after install: E[(1 - theta)^day]."""
        k = np.arange(day)
        return float(np.prod((self.delta + k) / (self.gamma + self.delta + k)))

    def retention(self, day: int) -> float:
        """Chance to play *day* days after install; 1 on day 0."""
        return self.survival(day) * self.alpha / (self.alpha + self.beta) if day else 1.0

    def retention_both(self, first: int, second: int) -> float:
        """Chance to play on both days, *first* before *second*, each 1 or more days after install."""
        weight = self.alpha + self.beta
        play_twice = self.alpha * (self.alpha + 1) / (weight * (weight + 1))
        return self.survival(max(first, second)) * play_twice if first != second else self.retention(first)

    def active_days(self, days: int) -> float:
        """Days played on average in the first *days* days, the install day counted."""
        return sum(self.retention(day) for day in range(days))


def fit(d1: float, d7: float, d28: float, *, habit: float = 3.0) -> Activity:
    """The population with these D1, D7 and D28; *habit* is alpha + beta, and small makes players differ more.

    D7 / D1 and D28 / D1 do not depend on p, so they fix gamma and delta (Newton on their logarithms); D1 then fixes
    the mean of p, and *habit* its spread.

    Raises:
        BadQuery: no population has these three.
    """
    wanted = np.log([d7 / d1, d28 / d1])
    x = np.zeros(2)
    error = _log_ratios(x) - wanted
    for _ in range(200):
        if np.abs(error).max() < 1e-12:
            break
        x, error = _newton_step(x, error, wanted)
    gamma, delta = (float(value) for value in np.exp(x))
    mean = d1 * (gamma + delta) / delta
    if np.abs(error).max() > 1e-9 or not mean < 1:
        raise BadQuery(
            "retention", (d1, d7, d28), "fits no BG/BB population: bring d7 and d28 nearer to d1, or d1 down"
        )
    return Activity(mean * habit, (1 - mean) * habit, gamma, delta)


def _log_ratios(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of S(7) / S(1) and S(28) / S(1) at gamma, delta = exp(x)."""
    gamma, delta = np.exp(x)
    k = np.arange(1, 28)
    steps = np.cumsum(np.log(delta + k) - np.log(gamma + delta + k))
    return np.array([steps[5], steps[26]])


def _newton_step(
    x: NDArray[np.float64], error: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One damped step; the error never grows."""
    h = 1e-6
    slopes = np.column_stack([(_log_ratios(x + h * unit) - _log_ratios(x - h * unit)) / (2 * h) for unit in np.eye(2)])
    step = np.clip(np.linalg.lstsq(slopes, error, rcond=None)[0], -2, 2)
    for scale in 0.5 ** np.arange(20):
        nearer = np.clip(x - scale * step, -12, 12)
        if np.abs(new := _log_ratios(nearer) - wanted).max() < np.abs(error).max():
            return nearer, new
    return x, error
