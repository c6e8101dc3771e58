"""Variation between install days: the part that chance explains, and the rest.

Two things make a day's share of returning players uncertain. Chance: each player returns or not, and those who return
on one day are more likely to return on another, so the ages of one cohort move together. And the day itself: a
campaign, a weekend or a build brings players who are all a little better or worse. More players reduce the first, only
more days reduce the second.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.retention.cohort_triangles import CohortTriangle

Floats = NDArray[np.float64]

SAME_PLAYERS: Final = 0.79
"""Share of the players of a late day who also played on an earlier one.

D1 of D7 in the public Cookie Cats data. Totals do not contain it. It sets how much the ages of one cohort move
together.
"""


def day_variance(cohorts: CohortTriangle) -> float:
    """Return the relative variance of install days around the common curve beyond chance.

    By moments, over all cells: squared distances less the binomial variance, over squared expectations. 0 if chance
    explains everything, or if there is only one cohort.
    """
    expected = cohorts.installs * np.nan_to_num(cohorts.shares())
    days = (cohorts.installs > 0).sum(axis=0)
    at = days > 1
    if not at.any():
        return 0.0
    squares = ((cohorts.returned - expected) ** 2).sum(axis=0)[at] * days[at] / (days[at] - 1)
    chance = (expected * (1 - np.nan_to_num(cohorts.shares()))).sum(axis=0)[at]
    size = float((expected**2)[:, at].sum())
    return max(0.0, float((squares - chance).sum()) / size) if size else 0.0


def chance_of_days(cohorts: CohortTriangle) -> float:
    """Return the p-value of the differences between install days at the first age.

    Pearson's chi-squared of homogeneity, with Wilson and Hilferty's cube root for its tail; NaN for fewer than two
    install days.
    """
    at = cohorts.installs[:, 0] > 0 if len(cohorts.ages) else np.zeros(0, dtype=bool)
    degrees = int(at.sum()) - 1
    if degrees < 1:
        return float("nan")
    installs, share = cohorts.installs[at, 0], float(cohorts.shares()[0])
    if not 0 < share < 1:
        return 1.0
    distance = float(((cohorts.returned[at, 0] - installs * share) ** 2 / (installs * share * (1 - share))).sum())
    spread = 2 / (9 * degrees)
    return 1 - NormalDist().cdf(((distance / degrees) ** (1 / 3) - (1 - spread)) / sqrt(spread))


def effective_installs(cohorts: CohortTriangle, variance: float) -> Floats:
    """Return the installs that would be as uncertain by chance alone as these, at each age.

    *variance* is that between install days (`day_variance`).
    """
    reached, _ = cohorts.totals_by_age()
    shares = np.clip(np.nan_to_num(cohorts.shares()), 0, 1 - 1e-9)
    squares = (cohorts.installs**2).sum(axis=0)
    widening = 1 + variance * shares / (1 - shares) * squares / np.maximum(reached, 1)
    fewer: Floats = reached / widening
    return fewer


def covariance(cohorts: CohortTriangle, shares: Floats, variance: float) -> Floats:
    """Return the covariance between ages of the returning players, given true *shares*.

    Two ages share the players of the cohorts that have reached both, and the effects of those days.
    """
    positions = np.arange(len(shares))
    later = np.maximum.outer(positions, positions)
    # at least as many as if the two days were independent
    both = np.maximum(SAME_PLAYERS, shares[np.minimum.outer(positions, positions)]) * shares[later]
    np.fill_diagonal(both, shares)
    independent = np.outer(shares, shares)
    shared_installs = np.minimum(cohorts.installs[:, :, None], cohorts.installs[:, None, :])
    players = shared_installs.sum(axis=0) * (both - independent)
    days = variance * (shared_installs**2).sum(axis=0) * independent
    total: Floats = players + days
    return total
