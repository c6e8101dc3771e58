"""How likely chance alone is, and how much of what stands out on a whole board may be chance.

In plain numpy: the board works where scipy, which only fits need, is not installed. Tests hold it to scipy's own.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SQRT_2: Final = math.sqrt(2)
_erfc: Final = np.frompyfunc(math.erfc, 1, 1)


def two_sided(z: Floats, known: Floats) -> Floats:
    """Chance of a stray as far as *z*, whose unit was estimated from *known* values (Student's t); NaN stays.

    Student's t goes through Wallace's transformation to a normal value: three correct digits from 5 values on.
    """
    with np.errstate(invalid="ignore"):
        normal = (8 * known + 1) / (8 * known + 3) * np.sqrt(known * np.log1p(z**2 / known))
    normal = np.where(np.isinf(known), np.abs(z), normal)
    return np.asarray(_erfc(normal / _SQRT_2), dtype="float64")


def false_discovery(chance: Floats) -> Floats:
    """Benjamini and Hochberg's q for each column of *chance* by itself: the share of chance findings up to there.

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
