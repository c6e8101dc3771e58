"""Money by age: per new player of the install days, and its decay per returning player.

Money is heavy-tailed: few players bring most of it. Its spread is therefore taken from the install days themselves, and
a band reaches further up than down, because the next large payer may not have come yet. Numbers in brackets are the
formulas of the page "Lifetime value" (`docs/pages/explanation/method-value.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.over_days import over_days
from gamelens.analysis.retention.constants import DECAY, WEEK

Floats = NDArray[np.float64]
Ages = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """A value with its lower and upper bound, by age."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, slots=True)
class CohortMoney:
    """Install days by age.

    Attributes:
        days: the install days, in days since 1970-01-01.
        installs: players of each install day.
        money: dollars of each install day at each age, shape (install days, ages from 0 on).
        is_reached: whether the install day has reached the age, same shape.
    """

    days: Ages
    installs: Floats
    money: Floats
    is_reached: NDArray[np.bool_]

    def reached_installs(self) -> Floats:
        """Return the installs that have reached each age."""
        installs: Floats = self.installs @ self.is_reached
        return installs

    def measured_ages(self) -> int:
        """Return the number of ages, from 0 on, that enough install days have reached."""
        days = self.is_reached.sum(axis=0)
        return int((days >= max(1, min(WEEK, len(self.installs)))).sum())

    def value(self, confidence: float) -> tuple[Band, Floats]:
        """Return the dollars per new player up to each measured age, and `DayEstimates.excess` of each.

        Bounds are NaN where they cannot be known: for fewer than 7 install days, or without money.
        """
        ages = self.measured_ages()
        installs = self.reached_installs()[:ages]  # (ages,)
        money = (self.money * self.is_reached)[:, :ages]  # (install days, ages)
        by_age = money.sum(axis=0) / installs  # (1), (ages,)
        expected = (self.installs[:, None] * self.is_reached[:, :ages]) * by_age
        influence = np.cumsum((money - expected) / installs, axis=1)  # (2), (install days, ages)
        value, share = np.cumsum(by_age), self.installs / self.installs.sum()
        earned = value[:, None] * share + influence.T  # of each install day, (ages, install days)
        # the ages of one install day are made of the same players
        estimates = over_days(earned, np.tile(share, (ages, 1)), self.days, is_balanced=False, is_pooled=False)
        variance = (value * estimates.half_width(confidence) / NormalDist().inv_cdf((1 + confidence) / 2)) ** 2
        low, high = gamma_bounds(value, variance, influence.max(axis=0, initial=0), confidence)  # (3)
        _, raised = estimates.bounds(confidence)
        high = np.where(estimates.excess > 0, np.fmax(high, raised), high)
        return Band(value, low, high), estimates.excess


def with_tails(measured: Band, tails: Sequence[Band]) -> Band:
    """Return *measured* and, at the ages that follow, its last value plus the *tails*.

    The distances of independent bounds are added in squares (MOVER, Zou and Donner 2008): (6). Without a measured age
    nothing is known.
    """
    if not len(measured.value):
        unknown = np.full(1 + len(tails[0].value), np.nan)
        return Band(unknown, unknown, unknown)
    value, low, high = measured.value[-1], measured.low[-1], measured.high[-1]
    whole = value + np.sum([tail.value for tail in tails], axis=0)
    down = np.sqrt((value - low) ** 2 + np.sum([(tail.value - tail.low) ** 2 for tail in tails], axis=0))
    up = np.sqrt((high - value) ** 2 + np.sum([(tail.high - tail.value) ** 2 for tail in tails], axis=0))
    return Band(
        np.append(measured.value, whole),
        np.append(measured.low, np.maximum(whole - down, 0)),
        np.append(measured.high, whole + up),
    )


def gamma_bounds(value: Floats, variance: Floats, largest: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the bounds of a sum of rare and large amounts (Fay and Feuer 1997).

    They are quantiles of gamma distributions of this mean and *variance*. For the upper one, the *largest* part comes
    once more. NaN without a value or a variance.
    """
    from scipy.special import gammaincinv

    is_known = (value > 0) & np.isfinite(variance)
    mean = np.where(is_known, value, 1.0)
    spread = np.maximum(np.where(is_known, variance, 1.0), 1e-12 * mean**2)
    low = gammaincinv(mean**2 / spread, (1 - confidence) / 2) * spread / mean
    mean, spread = mean + largest, spread + largest**2
    high = gammaincinv(mean**2 / spread, (1 + confidence) / 2) * spread / mean
    return np.where(is_known, np.minimum(low, value), np.nan), np.where(is_known, np.maximum(high, value), np.nan)


@dataclass(frozen=True, eq=False, slots=True)
class MoneyDecay:
    """The money of a returning player by age: exp(level) / (1 + age) ** decay, (4).

    Attributes:
        point: level and decay.
        covariance: their uncertainty.
    """

    point: Floats
    covariance: Floats

    def by_age(self, ages: Ages) -> Floats:
        """Return the dollars of a returning player at *ages*."""
        money: Floats = np.exp(_design(ages) @ self.point)
        return money

    def tail(self, retention: Floats, ages: Ages, confidence: float) -> Band:
        """Return the dollars per new player summed over *ages*, at which *retention* is known."""
        by_age = retention * self.by_age(ages)
        value = np.cumsum(by_age)
        slopes = np.cumsum(by_age[:, None] * _design(ages), axis=0) / value[:, None]
        spread = np.sqrt(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes))
        factor = np.exp(NormalDist().inv_cdf((1 + confidence) / 2) * spread)
        return Band(value, value / factor, value * factor)


def fit_decay(money: Floats, players: Floats, ages: Ages, cohort: Ages) -> MoneyDecay | None:
    """Fit the decay to cells of install days from age 1 on, or return None without money.

    A quasi-Poisson regression, (5): only the mean is modelled, and its uncertainty comes from whole install days
    (*cohort*), however money is spread between players. The weak prior matters where there are hardly any purchases. A
    rise with age is taken as none.
    """
    from scipy.optimize import minimize

    if not money.sum() > 0:
        return None
    rate = money.sum() / players.sum()
    dispersion = max(rate, ((money - rate * players) ** 2 / (rate * players)).mean())
    design, centre, prior = _design(ages), np.array([0.0, DECAY]), np.diag([0.0, 1.0])

    def expected(point: Floats) -> Floats:
        """Return the dollars of each cell."""
        return np.asarray(players * np.exp(design @ point))

    def loss(point: Floats) -> float:
        """Return minus the log posterior."""
        off = point - centre
        return float((expected(point) - money * (design @ point)).sum() / dispersion + off @ prior @ off / 2)

    def slope(point: Floats) -> Floats:
        """Return the slope of `loss`."""
        return np.asarray(design.T @ (expected(point) - money) / dispersion + prior @ (point - centre))

    def curvature(point: Floats) -> Floats:
        """Return the curvature of `loss`."""
        return np.asarray((design.T * expected(point)) @ design / dispersion + prior)

    best = minimize(loss, [np.log(rate), 0.0], jac=slope, hess=curvature, method="trust-exact").x
    if best[1] < 0:
        best = np.array([np.log(rate), 0.0])
    scores = (money - expected(best))[:, None] * design / dispersion
    by_cohort = np.zeros((cohort.max() + 1, 2))
    np.add.at(by_cohort, cohort, scores)
    inverse = np.linalg.inv(curvature(best))
    return MoneyDecay(best, inverse @ (by_cohort.T @ by_cohort + prior) @ inverse)


def _design(ages: Ages) -> Floats:
    """Return the design of the regression: 1 and -log(1 + age)."""
    return np.column_stack([np.ones(len(ages)), -np.log1p(ages)])
