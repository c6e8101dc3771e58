"""Events of a batch that have a name, in ranges of the keys of the names.

All copies of a name are in one range, and each range becomes a run: so the runs that a large batch is compared with are
few, and memory does not grow with the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gamelens.sandbox.storage.keyed_runs import SETTLED_KEYS, Ints, Keys, UInts

_SAMPLE_EVERY: Final = 1 << 12


class NamedEvents:
    """Keys of names with the numbers of their events, kept in files below *scratch*."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._paths: list[Path] = []
        self._samples: list[UInts] = []
        self._events = 0

    def add(self, keys: Keys, seq: Ints) -> None:
        """Add events, the keys of whose names are sorted by their higher half."""
        self._paths.append(self._scratch / f"names-{len(self._paths)}.npy")
        np.save(self._paths[-1], np.stack([keys.high, keys.low, seq.view(np.uint64)]))
        self._samples.append(keys.high[::_SAMPLE_EVERY].copy())
        self._events += len(seq)

    def take_ranges(self, most: int = SETTLED_KEYS) -> Iterator[tuple[Keys, Ints]]:
        """Yield keys and numbers in ranges of about *most* events.

        The keys are sorted by their higher half. The files are deleted at the end.
        """
        marks = self._marks(-(-self._events // most))
        for place in range(len(marks) + 1 if self._paths else 0):
            rows = np.concatenate([_range_of(path, marks, place) for path in self._paths], axis=1)
            high, low, seq = rows[:, np.argsort(rows[0], kind="stable")]  # merges sorted files in linear time
            yield Keys(high, low), seq.view(np.int64)
        for path in self._paths:
            path.unlink()

    def _marks(self, ranges: int) -> UInts:
        """Return the keys that cut the events into about so many *ranges*, fewer than that."""
        samples = np.sort(np.concatenate([np.empty(0, dtype=np.uint64), *self._samples]))
        return np.unique(samples[[len(samples) * place // ranges for place in range(1, ranges)]])


def _range_of(path: Path, marks: UInts, place: int) -> UInts:
    """Return the columns of the rows in the range of keys before the mark at *place*."""
    rows: UInts = np.load(path, mmap_mode="r")  # not kept: pages that are mapped count as memory
    cuts = (0, *np.searchsorted(rows[0], marks).tolist(), rows.shape[1])
    return np.array(rows[:, cuts[place] : cuts[place + 1]])


def is_first(keys: Keys, seq: Ints) -> NDArray[np.bool_]:
    """Return for each event whether no other of the same key has a lower number.

    The keys are sorted by their higher half.
    """
    has_neighbour = np.zeros(len(seq), dtype=np.bool_)
    is_same = np.diff(keys.high) == 0
    has_neighbour[:-1] |= is_same
    has_neighbour[1:] |= is_same
    suspects = np.flatnonzero(has_neighbour)
    suspects = suspects[np.lexsort((seq[suspects], keys.low[suspects], keys.high[suspects]))]
    is_again = (np.diff(keys.high[suspects]) == 0) & (np.diff(keys.low[suspects]) == 0)
    found = np.ones(len(seq), dtype=np.bool_)
    found[suspects[1:][is_again]] = False
    return found
