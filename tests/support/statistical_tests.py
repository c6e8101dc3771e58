"""Statistical tests of drawn populations: z-tests, Holm, Kolmogorov-Smirnov, power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np

from gamelens.simulator import BgbbMixture, BgbbModel
from gamelens.simulator.population.players import draw_active

DAYS = range(1, 31)
PAIRS = ((1, 7), (1, 28), (7, 28))
ActivityDraw = Callable[[BgbbModel, int, np.random.Generator], np.ndarray]
"""A function that draws which of so many players play on which day after install, shape (players, 31)."""


def draw_activity(activity: BgbbModel, players: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the active days of *players* as the simulator does, shape (players, 31)."""
    return draw_active(np.zeros(players, dtype=np.int64), days=31, activity=activity, rng=rng)


def retention_p_values(active: np.ndarray, truth: BgbbModel | BgbbMixture) -> list[float]:
    """Return the p-values of z-tests against the closed form.

    One for each D-n, n = 1 to 30, then one for the joint retention of each of `PAIRS`.
    """
    shares = [(active[:, day].mean(), truth.retention(day)) for day in DAYS]
    both = [((active[:, i] & active[:, j]).mean(), truth.retention_both(i, j)) for i, j in PAIRS]
    return [share_p_value(share, expected, len(active)) for share, expected in shares + both]


def share_p_value(share: float, expected: float, count: int) -> float:
    """Return the two-sided p-value of a *share* of *count* if *expected* is the true share."""
    return erfc(abs(share - expected) / sqrt(expected * (1 - expected) / count) / sqrt(2))


def difference_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the two-sided p-value of two samples having one share, pooled."""
    pooled = (first.sum() + second.sum()) / (len(first) + len(second))
    error = sqrt(pooled * (1 - pooled) * (1 / len(first) + 1 / len(second)))
    return erfc(abs(first.mean() - second.mean()) / error / sqrt(2))


def mean_p_values(values: np.ndarray, expected: np.ndarray | float) -> list[float]:
    """Return the p-value of the mean over players of each column of *values*.

    The first axis of *values* is players. A column that is the same for every player has no error and is left out.
    """
    means, errors = np.atleast_1d(values.mean(axis=0)), np.atleast_1d(values.std(axis=0)) / sqrt(len(values))
    columns = zip(means.ravel(), errors.ravel(), np.ravel(expected), strict=True)
    return [erfc(abs(mean - true) / error / sqrt(2)) for mean, error, true in columns if error]


def holm_rejects(p: Sequence[float], *, alpha: float = 0.001) -> bool:
    """Return whether Holm's procedure rejects any hypothesis, which its first step decides."""
    return min(p) * len(p) < alpha


def uniformity_p_value(p: Sequence[float] | np.ndarray) -> float:
    """Return the p-value of *p* being uniform over 0 to 1 (Kolmogorov-Smirnov, asymptotic)."""
    ordered, count = np.sort(p), len(p)
    above = np.max(np.arange(1, count + 1) / count - ordered)
    below = np.max(ordered - np.arange(count) / count)
    distance = max(above, below) * (sqrt(count) + 0.12 + 0.11 / sqrt(count))
    k = np.arange(1, 101)
    return float(np.clip(2 * np.sum((-1.0) ** (k - 1) * np.exp(-2 * (k * distance) ** 2)), 0, 1))


def detection_power(control: float, treated: float, players: int, *, alpha: float = 0.05) -> float:
    """Return the power of `difference_p_value` for two true shares, *players* in each arm."""
    normal = NormalDist()
    pooled = (control + treated) / 2
    error_if_equal = sqrt(2 * pooled * (1 - pooled) / players)
    error = sqrt((control * (1 - control) + treated * (1 - treated)) / players)
    needed = normal.inv_cdf(1 - alpha / 2) * error_if_equal
    return normal.cdf((abs(treated - control) - needed) / error)
