"""Chances of coincidence: p-values, and their corrections where many of them are looked at.

In plain numpy: the health board works where scipy, which only fits need, is not installed. Tests compare with scipy.
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


def two_sided(z: Floats, known: Floats | float = math.inf) -> Floats:
    """Return the chance of a deviation of at least *z* standard errors to either side; NaN stays.

    The standard error was estimated from *known* values (Student's t); infinitely many are the standard normal. The
    former goes through Wallace's transformation to a normal value: three correct digits from 5 values on.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        normal = (8 * known + 1) / (8 * known + 3) * np.sqrt(known * np.log1p(z**2 / known))
    normal = np.where(np.isinf(known), np.abs(z), normal)
    return np.asarray(_erfc(normal / _SQRT_2), dtype="float64")


def holm(p_values: Series[Any]) -> Series[Any]:
    """Return the p-values corrected for looking at all of them (Holm 1979); NA stays and does not count."""
    known = p_values.astype("float64").dropna().sort_values()
    raised = known * np.arange(len(known), 0, -1)
    return raised.cummax().clip(upper=1.0).reindex(p_values.index)


def false_discovery(chance: Floats) -> Floats:
    """Return Benjamini and Hochberg's q of each column of p-values: the share of chance findings up to there.

    NaN is no test and stays NaN.
    """
    ranked = np.argsort(chance, axis=0, kind="stable")  # NaN last
    tests = (~np.isnan(chance)).sum(axis=0)
    rank = np.arange(1, len(chance) + 1)[:, None]
    scaled = np.take_along_axis(chance, ranked, axis=0) * tests / rank
    lowest = np.minimum.accumulate(np.where(np.isnan(scaled), np.inf, scaled)[::-1], axis=0)[::-1]
    q = np.full_like(chance, np.nan)
    np.put_along_axis(q, ranked, np.minimum(lowest, 1.0), axis=0)
    return np.where(np.isnan(chance), np.nan, q)
