"""Keyed runs: facts about all earlier events that processing looks up by key.

A run is a file of fixed-width columns (uncompressed Arrow IPC), sorted by key and memory-mapped. Looking up the keys of
new events is a binary search that touches a few pages, whatever the size of the lake. Processing adds a run per kind
and four million names, and one key may lie in several runs. Texts are keyed by 128 bits: a lower-case UUID by its own,
any other text by its BLAKE2b digest, both mixed with the game's.

Questions never read a run, and every run can be made again from the tables of the lake.
"""

from __future__ import annotations

import os
from binascii import unhexlify
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

UInts = NDArray[np.uint64]
Ints = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

PREFIX: Final = "run_"
"""First letters of the kind of a run in the manifest."""

SETTLED_KEYS: Final = 4_000_000
"""Rows from which a run is not merged again: rows are small, and every run is searched."""

PAYLOADS: Final[dict[str, dict[str, str]]] = {
    "names": {},  # (game, event_uuid) of every event that has one
    # (game, user): number; install and first purchase with times in microseconds and the numbers of their events
    "players": {
        **{"player": "int64", "installed_us": "int64", "stated": "int8", "install_seq": "int64"},
        **{"paid_us": "int64", "paid_seq": "int64", "combination": "int32"},
    },
    "player_days": {"combination": "int32"},  # a number and a day, exact: see `player_day`
    "sessions": {"day": "int32", "combination": "int32", "ended": "int8"},  # (game, session)
    "impressions": {"day": "int32"},  # (game, vendor's id), one row per event
}
"""Columns beside the key, by kind."""

BY_EVENT, APART, AT_EVENT = range(3)
"""How an install is known (`stated`): by its event; stated, with no event at its time; stated, at the time of an event.

A stated one comes before one by an event, and of the same time one at an event before one apart.
"""
_STATED_BY: Final = 3 << 61
"""What release 0.1.0 added to `install_seq` of an install that is stated apart; its runs have no `stated`."""
_DAY_BITS: Final = 22
LAST_DAY: Final = (1 << _DAY_BITS) - 1
"""The last day since 1970 that a key of `player_day` can hold, far after the year 9999."""
_UUID_LETTERS: Final = 36
_KINDS: Final = bytes(1 if chr(code) in "0123456789abcdef" else 2 if chr(code) == "-" else 0 for code in range(256))
_UUID_KINDS: Final = np.frombuffer(str(UUID(int=0)).encode().translate(_KINDS), dtype=np.uint32)
_TEXTS_AT_ONCE: Final = 1 << 18
_READ_FOR_KEY: Final = 1 << 17
"""Bytes that a search for one key reads from the disk: what operating systems read ahead by default."""
_ADVISED: Final = 1 << 19  # bytes; Linux takes no more than a few megabytes of one advice


class Keys(NamedTuple):
    """Keys of 128 bits, in two halves."""

    high: UInts
    low: UInts


class Hits(NamedTuple):
    """Rows of runs under the keys that were looked up: payload, higher half of the key, its place among those."""

    places: Ints
    columns: Columns
    keys: UInts


def text_keys(games: pa.Array[Any], texts: pa.Array[Any]) -> Keys:
    """Return the key of each text within its game, without nulls."""
    dictionary = games.dictionary_encode()
    salts = np.array([_salt(game) for game in dictionary.dictionary.to_pylist()], dtype=np.uint64).reshape(-1, 2)
    of_game = salts[numbers_of(dictionary.indices)]
    high, low = (np.empty(len(texts), dtype=np.uint64) for _ in range(2))
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = slice(start, start + _TEXTS_AT_ONCE)
        high[part], low[part] = _bits(texts.slice(start, _TEXTS_AT_ONCE).cast(pa.string()))
    return Keys(high ^ of_game[:, 0], low ^ of_game[:, 1])


def array_of(numbers: NDArray[Any]) -> pa.Array[Any]:
    """Return *numbers* as an array of Arrow.

    `pa.array`, `to_numpy` and `combine_chunks` of nothing import pandas: a third of a second in a process's first run.
    """
    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])


def numbers_of(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> NDArray[Any]:
    """Return the numbers of *array*, which has no nulls, without a copy where they are in one piece (`array_of`)."""
    return np.from_dlpack(one_array(array) if isinstance(array, pa.ChunkedArray) else array)


def one_array(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return *column* in one piece, an empty one too (`array_of`)."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def player_day(player: Ints, day: Ints) -> UInts:
    """Return the key of a player on a day since 1970.

    The keys of a player's days follow each other.
    """
    return (player.astype(np.uint64) << np.uint64(_DAY_BITS)) | day.astype(np.uint64)


def day_of(keys: UInts) -> Ints:
    """Return the day in each key of `player_day`."""
    return (keys & np.uint64(LAST_DAY)).astype(np.int64)


class KeyedRun:
    """One run, mapped into memory."""

    def __init__(self, path: Path) -> None:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)  # a run is one batch, so that its columns are contiguous
        self.columns: Columns = {name: numbers_of(batch.column(place)) for place, name in enumerate(batch.schema.names)}
        if "install_seq" in self.columns and "stated" not in self.columns:
            seq = self.columns["install_seq"]
            self.columns["stated"] = (seq >= 1 << 61).astype(np.int8) * APART
            self.columns["install_seq"] = seq - (self.columns["stated"] == APART) * _STATED_BY

    def __len__(self) -> int:
        return len(self.columns["high"])

    def part_of(self, keys: UInts) -> slice:
        """Return the part of sorted *keys* that may be in the run."""
        ends = self.columns["high"][[0, -1]]
        return slice(int(np.searchsorted(keys, ends[0], "left")), int(np.searchsorted(keys, ends[1], "right")))

    def rows_between(self, first: UInts, last: UInts) -> tuple[Ints, Ints]:
        """Return the rows whose key is at least *first* and at most *last*.

        Each comes with the place of its pair of bounds.
        """
        high = self.columns["high"]
        start = np.searchsorted(high, first, "left")
        end = start.copy()
        is_found = high[np.minimum(start, len(high) - 1)] <= last  # most keys are in no run or in one
        is_found &= start < len(high)
        end[is_found] = np.searchsorted(high, last[is_found], "right")
        counts = end - start
        places = np.repeat(np.arange(len(first)), counts)
        offsets = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(start, counts) + offsets, places


class KeyedRuns:
    """All runs of one kind of `PAYLOADS`. One at a time is mapped."""

    def __init__(self, kind: str, paths: Sequence[Path]) -> None:
        self._kind = kind
        self._paths = paths

    def find(self, keys: Keys) -> Hits:
        """Return all rows of *keys*."""
        order = np.argsort(keys.high)  # neighbouring keys share pages
        high, low = keys.high[order], keys.low[order]

        def found() -> Iterator[Hits]:
            for run in map(KeyedRun, self._paths):
                some = run.part_of(high)
                rows, places = run.rows_between(high[some], high[some])
                is_same = run.columns["low"][rows] == low[some][places]
                yield self._hits(run, rows[is_same], order[some][places[is_same]])

        return self._joined(found())

    def between(self, first: UInts, last: UInts) -> Hits:
        """Return all rows of each range of keys, both ends included."""
        order = np.argsort(first)

        def found() -> Iterator[Hits]:
            for run in map(KeyedRun, self._paths):
                rows, places = run.rows_between(first[order], last[order])
                yield self._hits(run, rows, order[places])

        return self._joined(found())

    def _hits(self, run: KeyedRun, rows: Ints, places: Ints) -> Hits:
        columns = {name: run.columns[name][rows] for name in PAYLOADS[self._kind]}
        return Hits(places, columns, run.columns["high"][rows])

    def _joined(self, found: Iterable[Hits]) -> Hits:
        none = {name: np.empty(0, dtype=dtype) for name, dtype in PAYLOADS[self._kind].items()}
        parts = [Hits(np.empty(0, dtype=np.int64), none, np.empty(0, dtype=np.uint64)), *found]
        places, columns, keys = zip(*parts, strict=True)
        joined = {name: np.concatenate([of_part[name] for of_part in columns]) for name in none}
        return Hits(np.concatenate(places), joined, np.concatenate(keys))


def read_ahead(runs: Mapping[str, Sequence[Path]], keys: int) -> None:
    """Have the operating system read what searches of *runs*, files by kind, for so many *keys* touch.

    That is the column of keys, unless a few keys read little of it, and the end of each file. A system without such
    advice reads as it searches, and a file that cannot be read is left to the search.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for kind, paths in runs.items():
        columns = ("uint64", "uint64", *PAYLOADS[kind].values())
        sizes = {path: path.stat().st_size for path in paths if path.exists()}
        share = np.dtype("uint64").itemsize / sum(np.dtype(dtype).itemsize for dtype in columns)
        if keys * _READ_FOR_KEY < share * sum(sizes.values()):
            share = 0.0
        for path, size in sizes.items():
            with suppress(OSError), path.open("rb") as file:
                for start in (*range(0, int(size * share), _ADVISED), max(size - _ADVISED, 0)):
                    os.posix_fadvise(file.fileno(), start, _ADVISED, os.POSIX_FADV_WILLNEED)


def write_run(path: Path, kind: str, high: UInts, low: UInts | None, columns: Columns) -> None:
    """Write a run of *kind* to *path*, sorted by the higher half of its keys.

    Different keys hardly ever share that half: those that do stay in the order that they have.
    """
    order = np.argsort(high, kind="stable")
    arrays = {"high": high} | ({} if low is None else {"low": low})
    arrays |= {name: columns[name].astype(dtype, copy=False) for name, dtype in PAYLOADS[kind].items()}
    batch = pa.record_batch({name: array_of(array[order]) for name, array in arrays.items()})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def merge_columns(paths: Sequence[Path]) -> Columns:
    """Return the columns of the runs at *paths* together, key included, not sorted."""
    runs = [KeyedRun(path).columns for path in paths]
    return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}


def _bits(texts: pa.Array[Any]) -> tuple[UInts, UInts]:
    """Return both halves of the 128 bits of each text."""
    high, low = (np.zeros(len(texts), dtype=np.uint64) for _ in range(2))
    places = np.flatnonzero(numbers_of(pc.binary_length(texts)) == _UUID_LETTERS)
    if len(places):
        letters = _letters(texts if len(places) == len(texts) else texts.take(array_of(places)))
        kinds = np.frombuffer(letters.tobytes().translate(_KINDS), dtype=np.uint32).reshape(-1, len(_UUID_KINDS))
        is_uuid = (kinds == _UUID_KINDS).all(axis=1)
        places = places[is_uuid]
        high[places], low[places] = _halves(unhexlify(letters[is_uuid].tobytes().translate(None, b"-")))
    places = np.setdiff1d(np.arange(len(texts)), places, assume_unique=True)
    if len(places):
        digests = b"".join(_digest(text) for text in texts.take(array_of(places)).to_pylist())
        high[places], low[places] = _halves(digests)
    return high, low


def _halves(numbers: bytes) -> NDArray[np.uint64]:
    """Return both halves of numbers of 128 bits, as two rows."""
    return np.frombuffer(numbers, dtype=">u8").astype(np.uint64).reshape(-1, 2).T


def _letters(texts: pa.Array[Any]) -> NDArray[np.uint8]:
    """Return the bytes of texts of one length, a row for each."""
    joined = pa.concat_arrays([texts])  # without the offset of a slice
    offsets = np.frombuffer(joined.buffers()[1], dtype=np.int32)
    first = offsets[joined.offset]
    data = np.frombuffer(joined.buffers()[2], dtype=np.uint8)
    return data[first : first + len(joined) * _UUID_LETTERS].reshape(-1, _UUID_LETTERS)


@lru_cache(maxsize=4096)
def _salt(game: str) -> tuple[int, int]:
    digest = blake2b(game.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16, person=b"text").digest()
