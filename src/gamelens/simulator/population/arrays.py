"""Array types, and the draws and run operations that every mechanism needs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def shares(weights: Iterable[float]) -> Floats:
    """Return *weights*, scaled to add up to 1."""
    values = np.array(list(weights), dtype=np.float64)
    scaled: Floats = values / values.sum()
    return scaled


def pick(rng: np.random.Generator, weights: Floats, count: int) -> Ints:
    """Draw *count* positions with probabilities in proportion to *weights*."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends / ends[-1], rng.random(count), side="right")


def pick_by(rng: np.random.Generator, weights: Floats, row: Ints) -> Ints:
    """Draw one position for each of *row*, with the weights in that row of *weights*."""
    ends = np.cumsum(weights, axis=1)
    # Row i covers i to i + 1, so that a single search in all rows finds the position in the right one.
    ends = np.minimum(ends / ends[:, -1:], 1) + np.arange(len(weights))[:, None]
    wanted = np.minimum(row + rng.random(len(row)), np.nextafter(row + 1.0, 0))
    place: Ints = np.searchsorted(ends.ravel(), wanted, side="right") - row * weights.shape[1]
    return place


def running_count(key: Ints) -> Ints:
    """Return 0, 1, 2 ... within each run of equal *key*s."""
    index = np.arange(len(key))
    place: Ints = index - np.maximum.accumulate(np.where(run_starts(key), index, 0))
    return place


def run_starts(key: Ints) -> Flags:
    """Return a mask of the elements that differ from the one before."""
    starts = np.ones(len(key), dtype=np.bool_)
    starts[1:] = key[1:] != key[:-1]
    return starts


def sum_before(values: Ints, key: Ints) -> Ints:
    """Return the sum of the *values* before each one within its run of equal *key*s."""
    before = np.cumsum(values) - values
    first = np.flatnonzero(run_starts(key))
    summed: Ints = before - np.repeat(before[first], np.diff(np.append(first, len(key))))
    return summed
