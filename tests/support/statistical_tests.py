"""The statistics that tests hold a population against: z-tests, Holm's correction, Kolmogorov and Smirnov, power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np

from gamelens.simulator import BgbbMixture, BgbbModel
from gamelens.simulator.population.players import draw_active

DAYS = range(1, 31)
PAIRS = ((1, 7), (1, 28), (7, 28))
Draw = Callable[[BgbbModel, int, np.random.Generator], np.ndarray]
"""Who of so many players plays on which day after install, shape (players, 31)."""


def drawn(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """As the simulator draws them."""
    return draw_active(np.zeros(players, dtype=np.int64), days=31, activity=activity, rng=rng)


def p_values(active: np.ndarray, truth: BgbbModel | BgbbMixture) -> list[float]:
    """Of a z-test for each D-n, n = 1 to 30, and for each of `PAIRS`, against the closed form."""
    shares = [(active[:, day].mean(), truth.retention(day)) for day in DAYS]
    both = [((active[:, i] & active[:, j]).mean(), truth.retention_both(i, j)) for i, j in PAIRS]
    return [two_sided(share, expected, len(active)) for share, expected in shares + both]


def two_sided(share: float, expected: float, count: int) -> float:
    """The p-value of a *share* of *count* where *expected* is true."""
    return erfc(abs(share - expected) / sqrt(expected * (1 - expected) / count) / sqrt(2))


def compared(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of two shares being one, pooled: the test an experiment is read with."""
    pooled = (first.sum() + second.sum()) / (len(first) + len(second))
    error = sqrt(pooled * (1 - pooled) * (1 / len(first) + 1 / len(second)))
    return erfc(abs(first.mean() - second.mean()) / error / sqrt(2))


def holm_rejects(p: Sequence[float], *, alpha: float = 0.001) -> bool:
    """Whether Holm's procedure rejects any: its first step decides that."""
    return min(p) * len(p) < alpha


def uniform(p: Sequence[float]) -> float:
    """The p-value of *p* being uniform over 0 to 1 (Kolmogorov, Smirnov; the asymptotic series)."""
    ordered, count = np.sort(p), len(p)
    above = np.max(np.arange(1, count + 1) / count - ordered)
    below = np.max(ordered - np.arange(count) / count)
    far = max(above, below) * (sqrt(count) + 0.12 + 0.11 / sqrt(count))
    k = np.arange(1, 101)
    return float(np.clip(2 * np.sum((-1.0) ** (k - 1) * np.exp(-2 * (k * far) ** 2)), 0, 1))


def power(control: float, treated: float, players: int, *, alpha: float = 0.05) -> float:
    """Chance that `compared` finds the difference of two true shares with so many *players* in each arm."""
    normal = NormalDist()
    pooled = (control + treated) / 2
    under_none = sqrt(2 * pooled * (1 - pooled) / players)
    under_both = sqrt((control * (1 - control) + treated * (1 - treated)) / players)
    needed = normal.inv_cdf(1 - alpha / 2) * under_none
    return normal.cdf((abs(treated - control) - needed) / under_both)
