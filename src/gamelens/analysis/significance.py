"""Building blocks of tests: p-values, corrections for many, intervals of looks and of ratios.

scipy computes distributions, from the extra `analysis`; NaN means no test. False discovery rates and Holm's correction
are our own: importing `scipy.stats` for the former takes longer than a board takes to judge, and `multipletests` of
statsmodels collects garbage at each call, which takes a quarter of a second in a notebook.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import Series

Floats = NDArray[np.float64]

LEVEL: Final = 0.05
"""P-value, corrected for all tests of a frame, below which a difference is claimed.

Choice: the convention since Fisher 1925, and what an interval of 95% says.
"""


def two_sided(z: Floats, observations: Floats | float = math.inf) -> Floats:
    """Return the probability of a deviation of at least *z* standard errors to either side.

        significance.two_sided(2.1, observations=14)

    The standard error was estimated from *observations* values (Student's t); an infinite number gives the standard
    normal distribution. NaN stays NaN.
    """
    from scipy.special import stdtr

    return np.asarray(2 * stdtr(observations, -np.abs(z)), dtype="float64")


def holm(p_values: Series[Any]) -> Series[Any]:
    """Return p-values corrected for multiple tests by Holm's method (1979).

        days = lens.query("dau", by="country_code", over="last 2 complete weeks")
        significance.holm(changes.change(days).p_value)

    NA stays NA and does not count as a test.
    """
    tested = p_values.astype("float64").dropna().sort_values()
    raised = np.maximum.accumulate(tested.to_numpy() * np.arange(len(tested), 0, -1))
    return Series(np.minimum(raised, 1.0), index=tested.index).reindex(p_values.index)


def false_discovery(p_values: Floats) -> Floats:
    """Return the q-values of Benjamini and Hochberg for each column of p-values.

        players = lens.query("user_unique", by="game", over="last 28 complete days")
        board = health.board(health.score_days(health.daily([players])))
        significance.false_discovery(board[["p"]].to_numpy())

    A q-value is the expected share of false discoveries among the findings with at most this p-value. NaN means no test
    and stays NaN.
    """
    order = np.argsort(p_values, axis=0)  # NaN last
    ordered = np.take_along_axis(p_values, order, axis=0)
    tests, ranks = np.isfinite(ordered).sum(axis=0), np.arange(1, len(ordered) + 1)[:, None]
    ordered = np.fmin.accumulate((ordered * tests / ranks)[::-1], axis=0)[::-1]
    q = np.empty_like(p_values)
    np.put_along_axis(q, order, np.minimum(ordered, 1.0), axis=0)
    return np.where(np.isnan(p_values), np.nan, q)


def always_valid_half_width(error: float, scale: float, *, confidence: float = 0.95) -> float:
    """Return half the width of an interval that holds at all looks together, however many.

        significance.always_valid_half_width(0.012, scale=0.03)

    It inverts the mixture sequential probability ratio test (Robbins 1970): *error* is the standard error at this look,
    *scale* the standard deviation of the normal mixture over effects, which must not depend on the estimate. The
    interval is half as wide again as the usual one where the error is about a third of the scale, and wider elsewhere.
    NaN without an error, infinite without a scale.
    """
    if math.isnan(error):
        return math.nan
    if error == 0:
        return 0.0
    information = (scale / error) ** 2
    if information == 0:
        return math.inf
    return error * math.sqrt((1 + 1 / information) * (math.log1p(information) - 2 * math.log(1 - confidence)))


def difference_of(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the difference of two independent estimates and its bounds.

        significance.difference_of((0.42, 0.40, 0.44), (0.38, 0.35, 0.41))

    By the method MOVER (Zou and Donner 2008). Each is a value with the bounds of its interval. Bands that overlap may
    still differ.
    """
    size = first[0] - second[0]
    down = math.hypot(first[0] - first[1], second[2] - second[0])
    up = math.hypot(first[2] - first[0], second[0] - second[1])
    return size, size - down, size + up


def ratio_bounds(
    value: float,
    base: float,
    below: tuple[float, float, float],
    above: tuple[float, float, float] | None = None,
) -> tuple[float, float]:
    """Return the bounds of *value* divided by *base*: the ratios r for which value - r base may be 0.

        squares = (1.96 * 0.010) ** 2, 0.0, (1.96 * 0.008) ** 2
        significance.ratio_bounds(0.42, 0.38, squares)

    It is Fieller's (1954). It holds 1 where the interval of the difference, with the same errors, holds 0, and only
    there. NaN where *base* itself may be 0: then nothing bounds the ratio.

    Args:
        value: the numerator's estimate.
        base: the denominator's, above 0.
        below: what bounds the ratio from below: variance of *value*, covariance, variance of *base*, each times the
            square of the standard errors that the interval is wide, to either side.
        above: the same for the upper bound, by default *below*.
    """
    bounds = []
    for side, (of_value, of_both, of_base) in ((-1, below), (1, below if above is None else above)):
        # (value - r base)^2 = of_value - 2 r of_both + r^2 of_base, as square r^2 - 2 middle r + rest = 0
        square, middle, rest = base**2 - of_base, value * base - of_both, value**2 - of_value
        root = math.sqrt(max(middle**2 - square * rest, 0.0))
        if side > 0:
            bounds.append((middle + root) / square if square > 0 else math.nan)
        else:  # the same root, where *square* is 0 too
            bounds.append(rest / (middle + root) if middle + root > 0 else (middle - root) / square)
    low, high = bounds
    return (math.nan, math.nan) if math.isnan(high) else (low, high)
