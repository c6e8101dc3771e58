"""P-values, and their corrections for many tests at once.

In plain numpy: the health board also works where scipy is not installed. Tests compare the results with scipy.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas import Series

Floats = NDArray[np.float64]

_SQRT_2: Final = math.sqrt(2)
_erfc: Final = np.frompyfunc(math.erfc, 1, 1)


def two_sided(z: Floats, observations: Floats | float = math.inf) -> Floats:
    """Return the probability of a deviation of at least *z* standard errors to either side.

    The standard error was estimated from *observations* values (Student's t); an infinite number gives the standard
    normal distribution. Student's t is transformed to a normal value by Wallace's approximation: three correct digits
    from 5 observations on. NaN stays NaN.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        normal = (8 * observations + 1) / (8 * observations + 3) * np.sqrt(observations * np.log1p(z**2 / observations))
    normal = np.where(np.isinf(observations), np.abs(z), normal)
    return np.asarray(_erfc(normal / _SQRT_2), dtype="float64")


def holm(p_values: Series[Any]) -> Series[Any]:
    """Return p-values corrected for multiple tests by Holm's method (1979).

    NA stays NA and does not count as a test.
    """
    tested = p_values.astype("float64").dropna().sort_values()
    corrected = tested * np.arange(len(tested), 0, -1)
    return corrected.cummax().clip(upper=1.0).reindex(p_values.index)


def false_discovery(p_values: Floats) -> Floats:
    """Return the q-values of Benjamini and Hochberg for each column of p-values.

    A q-value is the expected share of false discoveries among the findings with at most this p-value. NaN is no test
    and stays NaN.
    """
    ranked = np.argsort(p_values, axis=0, kind="stable")  # NaN last
    tests = (~np.isnan(p_values)).sum(axis=0)
    rank = np.arange(1, len(p_values) + 1)[:, None]
    scaled = np.take_along_axis(p_values, ranked, axis=0) * tests / rank
    lowest = np.minimum.accumulate(np.where(np.isnan(scaled), np.inf, scaled)[::-1], axis=0)[::-1]
    q = np.full_like(p_values, np.nan)
    np.put_along_axis(q, ranked, np.minimum(lowest, 1.0), axis=0)
    return np.where(np.isnan(p_values), np.nan, q)
