"""Variation between install days: the part that chance explains, and the rest.

Two things make a day's share of returning players uncertain. Chance: each player returns or not, and those who return
on one day are more likely to return on another, so the ages of one cohort move together. And the day itself: a
campaign, a weekend or a build brings players who are all a little better or worse. More players reduce the first, only
more days reduce the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.over_days import over_days
from gamelens.analysis.retention.cohort_triangles import CohortTriangle
from gamelens.analysis.retention.constants import BORROWED_DAYS, SAME_PLAYERS, SETTLED, VARIANCE_STEPS

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class DayVariance:
    """Relative variance of install days around the common curve beyond chance.

    Attributes:
        pooled: of all ages together; 0 if chance explains everything, or if there is only one cohort.
        by_age: of each age, the less from its own cohorts and the more from all ages the fewer have reached it.
        degrees: degrees of freedom of *by_age*, 0 with one cohort.
    """

    pooled: float
    by_age: Floats
    degrees: Floats

    def prudent(self) -> Floats:
        """Return the variance of each age, raised because few days estimate it roughly."""
        return self.by_age * _inflation(self.degrees, 0.95)


def day_variance(cohorts: CohortTriangle) -> DayVariance:
    """Return the relative variance of install days around the common curve beyond chance.

    By moments: weighted squared distances from the weighted mean, less what chance puts there (Kleinman 1973). A day
    weighs the less, the larger its variance by chance and by day together. So a day with half of all players neither
    pulls the mean to itself nor decides the estimate. For one age it is the estimate of Paule and Mandel (1982).
    """
    degrees = np.maximum((cohorts.installs > 0).sum(axis=0) - 1.0, 0.0)
    sizes = np.where(cohorts.installs > 0, cohorts.installs, np.inf)
    at = cohorts.installs > 0
    mean = np.nan_to_num(cohorts.shares())
    pooled, by_age = 0.0, np.zeros(len(mean))
    for _ in range(VARIANCE_STEPS if degrees.any() else 0):
        before = np.concatenate([mean, by_age])
        positive = np.where(mean > 0, mean, np.inf)
        chance = (1 - mean) / positive / sizes
        weights = np.divide(at, chance + by_age, out=np.zeros_like(sizes), where=at & (chance + by_age > 0))
        weights /= np.maximum(weights.sum(axis=0), 1e-300)
        mean = (weights * cohorts.returned / sizes).sum(axis=0)
        squares = (weights * (cohorts.returned / sizes - mean) ** 2).sum(axis=0)
        left = weights * (1 - weights)
        beyond = squares - (left * chance).sum(axis=0) * mean**2
        size = left.sum(axis=0) * mean**2
        pooled = beyond.sum() / size.sum() if size.sum() else 0.0
        ratios = np.divide(beyond, size, out=np.full_like(size, pooled), where=size > 0)
        by_age = np.maximum(0.0, (degrees * ratios + BORROWED_DAYS * pooled) / (degrees + BORROWED_DAYS))
        if np.abs(np.concatenate([mean, by_age]) - before).max() < SETTLED:
            break
    return DayVariance(float(max(0.0, pooled)), by_age, np.minimum(degrees + BORROWED_DAYS, degrees.max(initial=0.0)))


def chance_of_days(cohorts: CohortTriangle) -> float:
    """Return the p-value of the differences between install days at the first age.

    Pearson's chi-squared of homogeneity; NaN for fewer than two install days.
    """
    from scipy.stats import chi2_contingency

    at = cohorts.installs[:, 0] > 0 if len(cohorts.ages) else np.zeros(0, dtype=bool)
    if at.sum() < 2:
        return float("nan")
    returned = cohorts.returned[at, 0]
    counts = np.array([returned, cohorts.installs[at, 0] - returned])
    return float(chi2_contingency(counts, correction=False).pvalue) if counts.any(axis=1).all() else 1.0


def effective_installs(cohorts: CohortTriangle, variance: DayVariance, *, confidence: float = 0.95) -> Floats:
    """Return the installs that would be as uncertain by chance alone as these, at each age.

    Fewer days estimate *variance* more roughly: Student's t instead of the normal distribution, with Satterthwaite's
    degrees of freedom for the sum of chance, which is known, and the variance of days. Ages that a week of install days
    has reached are no more certain than `over_days` says, which knows that successive days may be alike.
    """
    from scipy.special import ndtri

    reached, _ = cohorts.totals_by_age()
    shares = np.clip(np.nan_to_num(cohorts.shares()), 0, 1 - 1e-9)
    squares = (cohorts.installs**2).sum(axis=0)
    of_days = variance.by_age * shares / (1 - shares) * squares / np.maximum(reached, 1)
    degrees = variance.degrees * ((1 + of_days) / np.maximum(of_days, 1e-9)) ** 2
    fewer: Floats = reached / (1 + of_days) / _inflation(degrees, confidence)
    if not len(cohorts.days):
        return fewer
    returned, installs = cohorts.returned.T, cohorts.installs.T
    # the ages of one install day are made of the same players
    days = over_days(returned, installs, cohorts.days, counted="shares", is_balanced=False, is_pooled=False)
    errors = days.half_width(confidence) / float(ndtri((1 + confidence) / 2))
    as_many = np.divide(1 - shares, shares * errors**2, out=np.full_like(errors, np.inf), where=shares * errors > 0)
    return np.minimum(fewer, as_many)


def _inflation(degrees: Floats, confidence: float) -> Floats:
    """Return the squared ratio of Student's quantile to the normal one, 1 without degrees."""
    from scipy.special import ndtri, stdtrit

    tail = (1 + confidence) / 2
    ratio: Floats = (stdtrit(np.clip(degrees, 1.0, 1e9), tail) / ndtri(tail)) ** 2
    return np.where(degrees > 0, ratio, 1.0)


def chance_and_days(cohorts: CohortTriangle, shares: Floats, variance: Floats) -> Floats:
    """Return the covariance of returning players by age if each age had its own players.

    Ages that share players lie closer together than that, so a curve is not refused for want of that knowledge.
    """
    reached, _ = cohorts.totals_by_age()
    return np.diag(reached * shares * (1 - shares) + 1e-9) + _effects_of_days(cohorts, shares, variance)


def covariance(cohorts: CohortTriangle, shares: Floats, variance: Floats | float) -> Floats:
    """Return the covariance between ages of the returning players, given true *shares*.

    Two ages share the players of the cohorts that have reached both, and the effects of those days, which have the
    relative *variance*, one for all ages or one for each.
    """
    players = _shared_installs(cohorts).sum(axis=0) * _per_player(shares)
    total: Floats = players + _effects_of_days(cohorts, shares, variance)
    return total


def chance_by_cohort(cohorts: CohortTriangle, shares: Floats) -> Floats:
    """Return the relative variance by chance of each cohort, NaN without installs."""
    variances = np.einsum("cab,ab->c", _shared_installs(cohorts), _per_player(shares))
    squares = (cohorts.installs @ shares) ** 2
    relative: Floats = variances / np.where(squares > 0, squares, np.nan)
    return relative


def _per_player(shares: Floats) -> Floats:
    """Return the covariance between ages of one player's returns."""
    positions = np.arange(len(shares))
    later = np.maximum.outer(positions, positions)
    # at least as many as if the two days were independent
    both = np.maximum(SAME_PLAYERS, shares[np.minimum.outer(positions, positions)]) * shares[later]
    np.fill_diagonal(both, shares)
    per_player: Floats = both - np.outer(shares, shares)
    return per_player


def _effects_of_days(cohorts: CohortTriangle, shares: Floats, variance: Floats | float) -> Floats:
    """Return the covariance of returning players by age that differing days make."""
    effects = np.sqrt(variance) * shares
    covariances: Floats = (_shared_installs(cohorts) ** 2).sum(axis=0) * np.outer(effects, effects)
    return covariances


def _shared_installs(cohorts: CohortTriangle) -> Floats:
    """Return the installs that have reached both of two ages, shape (cohorts, ages, ages)."""
    return np.minimum(cohorts.installs[:, :, None], cohorts.installs[:, None, :])
