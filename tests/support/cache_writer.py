"""Slices, tables and caches for tests of the cache, and a process that writes to one.

python cache_writer.py write FOLDER SEED    stores day after day for ever, and prints a line for each
python cache_writer.py race FOLDER SEED     stores the same ten days twenty times
python cache_writer.py fork FOLDER SEED     stores a day, and another in a forked child
python cache_writer.py full FOLDER SEED     stores with files limited to 64 KiB, and prints why the cache is off
python cache_writer.py denied FOLDER SEED   stores as a user without permission, and prints why the cache is off
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from gamelens.client.answer_cache import AnswerCache, CacheKey
from gamelens.client.tables.table_differences import Restatement
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.wire.intervals import Interval

DAY = timedelta(days=1)
START = datetime(2026, 8, 1, tzinfo=UTC)
ASKED = CacheKey("revenue", ("country_code",), '{"every":"day"}', adds_up=True)
STAMP = pa.timestamp("us", tz="UTC")
BEGAN_S = 1_790_000_000.0


class Clock:
    """A clock in seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Move the clock by *seconds*."""
        self.now_s += seconds


def day_slice(day: int) -> BucketSlice:
    """Return the slice of a whole day."""
    start = START + day * DAY
    return BucketSlice(Interval(start, start + DAY), start)


def day_slices(days: Iterable[int]) -> list[BucketSlice]:
    """Return the slices of whole *days*."""
    return [day_slice(day) for day in days]


def available(until: float) -> Interval:
    """Return the available interval up to the start of day *until*."""
    return Interval(START - 100 * DAY, START + until * DAY)


LATER = available(1000)  # long after all days of the tests: everything is settled


def rows(day: int, *values: tuple[str | None, float], **more: Any) -> pa.Table:
    """Return rows of one day, one for each country and sum."""
    return pa.table(
        {
            "timestamp": pa.array([START + day * DAY for _ in values], STAMP),
            "country_code": pa.array([country for country, _ in values], pa.string()),
            "event_count": pa.array([int(value) for _, value in values], pa.int64()),
            "sum": pa.array([value for _, value in values], pa.float64()),
            **more,
        }
    )


def rows_of_seed(day: int, seed: int, size: int = 5) -> pa.Table:
    """Return rows of one day that identify the writer by its *seed*."""
    return rows(day, *((f"C{number}", seed * 1000.0 + day) for number in range(size)))


def keep(
    cache: AnswerCache, days: Sequence[int], table: pa.Table, until: Interval = LATER, key: CacheKey = ASKED
) -> list[Restatement]:
    """Store *table* as the rows of *days*, and return the restatements."""
    return cache.keep(key, day_slices(days), table, available=until)


def find(
    cache: AnswerCache, days: Sequence[int], until: Interval = LATER, fresh_s: float = 0.0, key: CacheKey = ASKED
) -> pa.Table | None:
    """Return the cached rows of *days*."""
    return cache.find(key, day_slices(days), available=until, fresh_s=fresh_s).table


def found_days(
    cache: AnswerCache, days: Sequence[int], until: Interval = LATER, fresh_s: float = 0.0, key: CacheKey = ASKED
) -> list[int]:
    """Return which of *days* are cached, and assert that the index agrees with the files."""
    looked = cache.fresh_slices(key, day_slices(days), available=until, fresh_s=fresh_s)
    result = cache.find(key, day_slices(days), available=until, fresh_s=fresh_s).slices
    assert looked == result
    return [day for day in days if day_slice(day) in result]


def _write(cache: AnswerCache, seed: int) -> None:
    """Store day after day."""
    for day in range(10_000):
        keep(cache, [day], rows_of_seed(day, seed))
        print(day, flush=True)


def _race(cache: AnswerCache, seed: int) -> None:
    """Store the same ten days twenty times, and read them each time."""
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(20):
        keep(cache, range(10), pa.concat_tables([rows_of_seed(day, seed) for day in range(10)]))
        table = find(cache, range(10))
        assert table is not None
        assert len(table) == 50
    assert cache.info().off is None, cache.info()


def _fork(cache: AnswerCache, seed: int) -> None:
    """Store a day, another one in a forked child, and a third afterwards."""
    keep(cache, [0], rows_of_seed(0, seed))
    child = os.fork()
    if not child:
        keep(cache, [1], rows_of_seed(1, seed))
        os._exit(0 if found_days(cache, [0, 1]) == [0, 1] and cache.info().off is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    keep(cache, [2], rows_of_seed(2, seed))
    assert found_days(cache, [0, 1, 2]) == [0, 1, 2]
    assert cache.info().off is None, cache.info()


def _full(cache: AnswerCache, seed: int) -> None:
    """Store until files would exceed 64 KiB."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
    _until_off(cache, seed)


def _denied(cache: AnswerCache, seed: int) -> None:
    """Store as a user without permission."""
    # Imports what is imported on first use, since the other user may not read the modules.
    keep(AnswerCache(cache.folder.parent / "warm", owner="ann"), [0], rows_of_seed(0, seed))
    if os.geteuid() == 0:
        os.setuid(65534)
    _until_off(cache, seed)


def _until_off(cache: AnswerCache, seed: int) -> None:
    """Store days until the cache is off, and print why."""
    for day in range(200):
        keep(cache, [day], rows_of_seed(day, seed))
        if cache.info().off is not None:
            break
    assert find(cache, [0]) is None
    print(cache.info().off)


if __name__ == "__main__":
    work = {"write": _write, "race": _race, "fork": _fork, "full": _full, "denied": _denied}[sys.argv[1]]
    cache = AnswerCache(Path(sys.argv[2]), owner="ann")
    work(cache, int(sys.argv[3]))
    cache.close()
