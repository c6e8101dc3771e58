"""How far install days differ: what chance explains of it, and what it does not.

Two things make a day's share of returning players uncertain. Chance: each of its players comes back or not, and those
who come back on one day are the likelier to come back on another, so ages of one cohort move together. And the day
itself: a campaign, a weekend, a build bring players who are all a little better or worse. The first shrinks with
players, the second only with more days.
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
"""Of those who play on a late day, the share that played on an earlier one: D1 of D7 in the public Cookie Cats data.

Totals cannot tell it: it would take players. It says how much the ages of one cohort move together.
"""


def day_variance(cohorts: CohortTriangle) -> float:
    """Variance of install days around the common curve, relative to it, that chance does not explain.

    By moments, over all cells: squared distances less what binomial counts would have, over squared expectations. 0
    where chance explains everything, and where there is only one cohort, which says nothing about others.
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
    """How often install days would lie as far apart at the first age as they do, or farther, by chance alone.

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
    """As many installs as would be as uncertain by chance alone as these are with days that differ by *variance*."""
    reached, _ = cohorts.known()
    shares = np.clip(np.nan_to_num(cohorts.shares()), 0, 1 - 1e-9)
    squares = (cohorts.installs**2).sum(axis=0)
    widening = 1 + variance * shares / (1 - shares) * squares / np.maximum(reached, 1)
    fewer: Floats = reached / widening
    return fewer


def covariance(cohorts: CohortTriangle, shares: Floats, variance: float) -> Floats:
    """Covariance between ages of how many come back in all, where *shares* are true.

    Two ages share the players of the cohorts that have reached both, and the luck of those days.
    """
    place = np.arange(len(shares))
    later = np.maximum.outer(place, place)
    # never fewer than if one day said nothing about the other
    both = np.maximum(SAME_PLAYERS, shares[np.minimum.outer(place, place)]) * shares[later]
    np.fill_diagonal(both, shares)
    apart = np.outer(shares, shares)
    in_both = np.minimum(cohorts.installs[:, :, None], cohorts.installs[:, None, :])
    players = in_both.sum(axis=0) * (both - apart)
    days = variance * (in_both**2).sum(axis=0) * apart
    total: Floats = players + days
    return total
