"""Units, tables and caches for the tests of the cache, and the process that writes one until it is killed.

python cache_writer.py write FOLDER SEED    keeps day after day, prints a line for each, for ever
python cache_writer.py race FOLDER SEED     keeps the same ten days twenty times over
python cache_writer.py fork FOLDER SEED     keeps a day, and another in a forked child
python cache_writer.py full FOLDER SEED     keeps where no file may be larger than 64 KiB, prints why it is off
python cache_writer.py nobody FOLDER SEED   keeps as a user who may not write there, prints why it is off
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from gamelens.client.cache.answer_cache import AnswerCache, CacheKey
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.wire.intervals import Interval

DAY = timedelta(days=1)
START = datetime(2026, 8, 1, tzinfo=UTC)
ASKED = CacheKey("revenue", ("country_code",), '{"every":"day"}', adds_up=True)
STAMP = pa.timestamp("us", tz="UTC")
BEGAN_S = 1_790_000_000.0


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


def unit(day: int) -> BucketSlice:
    """A whole day."""
    start = START + day * DAY
    return BucketSlice(Interval(start, start + DAY), start)


def units(days: Iterable[int]) -> list[BucketSlice]:
    return [unit(day) for day in days]


def available(until: float) -> Interval:
    """All up to the start of day *until*."""
    return Interval(START - 100 * DAY, START + until * DAY)


LATER = available(1000)  # long after all days of the tests: everything is settled


def rows(day: int, *values: tuple[str | None, float], **more: Any) -> pa.Table:
    """Rows of one day, one for each country and sum."""
    return pa.table(
        {
            "timestamp": pa.array([START + day * DAY for _ in values], STAMP),
            "country_code": pa.array([country for country, _ in values], pa.string()),
            "event_count": pa.array([int(value) for _, value in values], pa.int64()),
            "sum": pa.array([value for _, value in values], pa.float64()),
            **more,
        }
    )


def of_seed(day: int, seed: int, size: int = 5) -> pa.Table:
    """Rows of one day that tell who wrote them."""
    return rows(day, *((f"C{number}", seed * 1000.0 + day) for number in range(size)))


def keep(
    cache: AnswerCache, days: Sequence[int], table: pa.Table, until: Interval = LATER, asked: CacheKey = ASKED
) -> Any:
    return cache.keep(asked, units(days), table, available=until)


def find(
    cache: AnswerCache, days: Sequence[int], until: Interval = LATER, fresh_s: float = 0.0, asked: CacheKey = ASKED
) -> pa.Table | None:
    return cache.find(asked, units(days), available=until, fresh_s=fresh_s).table


def there(
    cache: AnswerCache, days: Sequence[int], until: Interval = LATER, fresh_s: float = 0.0, asked: CacheKey = ASKED
) -> list[int]:
    """Which of *days* are found; what `look` says must be the same."""
    looked = cache.look(asked, units(days), available=until, fresh_s=fresh_s)
    found = cache.find(asked, units(days), available=until, fresh_s=fresh_s).units
    assert looked == found
    return [day for day in days if unit(day) in found]


def _write(cache: AnswerCache, seed: int) -> None:
    for day in range(10_000):
        keep(cache, [day], of_seed(day, seed))
        print(day, flush=True)


def _race(cache: AnswerCache, seed: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(20):
        keep(cache, range(10), pa.concat_tables([of_seed(day, seed) for day in range(10)]))
        table = find(cache, range(10))
        assert table is not None
        assert len(table) == 50
    assert cache.info().off is None, cache.info()


def _fork(cache: AnswerCache, seed: int) -> None:
    keep(cache, [0], of_seed(0, seed))
    child = os.fork()
    if not child:
        keep(cache, [1], of_seed(1, seed))
        os._exit(0 if there(cache, [0, 1]) == [0, 1] and cache.info().off is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    keep(cache, [2], of_seed(2, seed))
    assert there(cache, [0, 1, 2]) == [0, 1, 2]
    assert cache.info().off is None, cache.info()


def _full(cache: AnswerCache, seed: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
    _until_off(cache, seed)


def _nobody(cache: AnswerCache, seed: int) -> None:
    keep(
        AnswerCache(cache.folder.parent / "warm", owner="ann"), [0], of_seed(0, seed)
    )  # imports what a user may not read
    if os.geteuid() == 0:
        os.setuid(65534)
    _until_off(cache, seed)


def _until_off(cache: AnswerCache, seed: int) -> None:
    for day in range(200):
        keep(cache, [day], of_seed(day, seed))
        if cache.info().off is not None:
            break
    assert find(cache, [0]) is None
    print(cache.info().off)


if __name__ == "__main__":
    work = {"write": _write, "race": _race, "fork": _fork, "full": _full, "nobody": _nobody}[sys.argv[1]]
    held = AnswerCache(Path(sys.argv[2]), owner="ann")
    work(held, int(sys.argv[3]))
    held.close()
