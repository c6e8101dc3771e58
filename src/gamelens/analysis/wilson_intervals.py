"""Wilson's interval of a share, and Newcombe's of the difference of two shares, made of Wilson's.

A share is a proportion, such as the installed players who returned. Where days and not players are the repetitions,
`over_days` has the intervals.
"""

from __future__ import annotations

from math import hypot, nan, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gamelens.analysis.significance import ratio_bounds
from gamelens.errors import BadQuery

_MOST_ERRORS: Final = 38.0
"""Standard errors beyond which a probability is no number any more.

Numerical: the normal distribution beyond 38.5 is below the least double.
"""


def wilson(
    successes: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return low and high of a share's Wilson score interval (0 to 1), NaN without trials.

        retention.wilson(120, 400)

    Raises:
        BadQuery: *confidence* is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise BadQuery("confidence", confidence, "must lie between 0 and 1")
    from statsmodels.stats.proportion import proportion_confint

    n = np.asarray(trials, dtype="float64")
    low, high = proportion_confint(
        np.asarray(successes, dtype="float64"), np.where(n > 0, n, np.nan), alpha=1 - confidence, method="wilson"
    )
    return low, high


def newcombe(share: float, base: float, size: float, base_size: float, normal: float) -> tuple[float, float]:
    """Return the bounds of the difference of two shares that lie *normal* standard errors away.

    Newcombe's hybrid score interval (1998, method 10), made of the Wilson intervals of both shares.
    """
    (low, high), (base_low, base_high) = _wilson(share, size, normal), _wilson(base, base_size, normal)
    return share - base - hypot(share - low, base_high - base), share - base + hypot(high - share, base - base_low)


def newcombe_ratio(share: float, base: float, size: float, base_size: float, normal: float) -> tuple[float, float]:
    """Return the bounds of the ratio of two shares that lie *normal* standard errors away, NaN without successes.

    The method MOVER for a ratio (Donner and Zou 2012), made of the Wilson intervals of both shares: it holds 1 where
    the interval of `newcombe` holds 0, and only there.
    """
    (low, high), (base_low, base_high) = _wilson(share, size, normal), _wilson(base, base_size, normal)
    if base <= 0:
        return nan, nan
    below, above = (
        ((share - low) ** 2, 0.0, (base_high - base) ** 2),
        ((high - share) ** 2, 0.0, (base - base_low) ** 2),
    )
    return ratio_bounds(share, base, below, above)


def _wilson(share: float, size: float, normal: float) -> tuple[float, float]:
    square = normal * normal / size
    middle = (share + square / 2) / (1 + square)
    half = sqrt(square * (max(share * (1 - share), 0.0) + square / 4)) / (1 + square)
    return middle - half, middle + half


def newcombe_p(share: float, base: float, size: float, base_size: float) -> float:
    """Return the p-value of no difference between two shares: at its level the interval of Newcombe just reaches 0."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if share < base:
        share, base, size, base_size = base, share, base_size, size
    if newcombe(share, base, size, base_size, _MOST_ERRORS)[0] > 0:
        return 0.0
    return float(2 * ndtr(-brentq(lambda normal: newcombe(share, base, size, base_size, normal)[0], 0, _MOST_ERRORS)))
