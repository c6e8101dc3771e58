"""The time limit of queries."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from gamelens.sandbox.engines.duckdb_engine import TimeLimit


def test_what_takes_too_long_is_stopped_once() -> None:
    """Blocks that are too slow are stopped, at the same time as others end by themselves."""
    limit, stopped = TimeLimit(0.2), list[int]()

    def run(number: int) -> None:
        has_stopped = threading.Event()
        with limit.over(lambda: (stopped.append(number), has_stopped.set())):  # type: ignore[arg-type,func-returns-value]
            if number % 2:
                assert has_stopped.wait(10)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(20)))
    assert sorted(stopped) == list(range(1, 20, 2))
    limit.close()


def test_a_block_after_idle_time_is_stopped_too() -> None:
    """The thread sleeps without blocks, and wakes for the next one."""
    limit = TimeLimit(0.1)
    for _ in range(3):
        has_stopped = threading.Event()
        with limit.over(has_stopped.set):
            assert has_stopped.wait(10)
        time.sleep(0.15)
    limit.close()


def test_nothing_is_stopped_after_its_end() -> None:
    """A block that ended in time is left alone, and hundreds of them need one thread."""
    limit, threads, stopped = TimeLimit(0.5), threading.active_count(), list[int]()
    for number in range(300):
        with limit.over(lambda number=number: stopped.append(number)):  # type: ignore[misc]
            pass
    assert threading.active_count() <= threads + 1
    time.sleep(0.7)
    assert stopped == []
    limit.close()
