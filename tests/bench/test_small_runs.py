"""Cost of taking in few events, in lakes of 10 and of 100 million: it follows what is new.

Run by `make bench`, after the questions to the same lakes. Events are submitted over HTTP, a run is ordered over HTTP.
"""

from __future__ import annotations

import time
from contextlib import suppress
from statistics import median
from typing import Any

import psutil
import pytest

from gamelens.sandbox.processing.compaction import FAN_IN
from support.served_lake import Served
from support.small_runs import DAYS, SIZES, first_run_after_a_start, submit

BARS_S = {"1 event": 0.5, "10k of one day": 1.0, "10k late": 1.2, "100k late": 4.0}
took_s: dict[str, dict[str, float]] = {}
"""Seconds of a run by kind of batch and size of the lake."""


@pytest.mark.parametrize("kind", SIZES)
def test_a_run_costs_what_is_new(served: Served, kind: str) -> None:
    """A run takes at most the seconds of its bar, and writes at most 3 MB for 10,000 events."""
    runs = []
    for seed in range(3):
        submit(served, *SIZES[kind], seed=seed)
        before = files(served)
        runs.append(served.process())
        written = sum(size for path, size in files(served).items() if path not in before)
        if seed == 0:
            first = runs[0]
    took_s.setdefault(kind, {})[served.size] = sorted(runs)[1]
    print(f"\n{served.size}: {kind}: {sorted(runs)[1]:.2f} s, the first {first:.2f} s; written {written / 1e6:.2f} MB")
    assert sorted(runs)[1] <= BARS_S[kind]
    assert written <= 3e6 * max(SIZES[kind][0] / 10_000, 1)


def files(served: Served) -> dict[str, int]:
    """Return the sizes of the lake's files."""
    return {str(path): path.stat().st_size for path in (served.state / "lake").rglob("*") if path.is_file()}


QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "a grouped month": ("event_count", {"query": {"type": "group", "dimension": "country_code"}}),
    "daily actives": ("user_unique", {"granularity": "day", "query": {"type": "timeseries"}}),
    "session length": ("session_length", {"granularity": "day", "query": {"type": "timeseries"}}),
}


def test_questions_beside_compaction(served: Served) -> None:
    """A question takes at most twice its time while the lake is compacted."""
    wait_for_compaction(served)
    alone_s = {name: [seconds_of(served, name) for _ in range(20)] for name in QUESTIONS}
    for seed in range(FAN_IN):
        submit(served, 10_000, DAYS, seed=1000 + seed)
        served.process()
    until = time.monotonic() + 10
    while not is_compacting(served) and time.monotonic() < until:
        time.sleep(0.01)
    began, beside_s = time.perf_counter(), {name: list[float]() for name in QUESTIONS}
    while is_compacting(served):
        for name, measured in beside_s.items():
            measured.append(seconds_of(served, name))
    compacted_s = time.perf_counter() - began
    for name, measured in beside_s.items():
        alone, beside = median(alone_s[name]), median(measured)
        print(
            f"\n{served.size}: {name}: alone {1000 * alone:.0f} ms, beside {compacted_s:.0f} s of compaction "
            f"{1000 * beside:.0f} ms, slowest of {len(measured)} {1000 * max(measured):.0f} ms"
        )
        assert beside <= 2 * alone


def seconds_of(served: Served, name: str) -> float:
    """Return the seconds of one of the `QUESTIONS`."""
    metric, body = QUESTIONS[name]
    began = time.perf_counter()
    served.query(metric, **body)
    return time.perf_counter() - began


def is_compacting(served: Served) -> bool:
    """Return whether the sandbox has a worker, which compacts when nothing is processed."""
    children = psutil.Process(served.pid).children()
    running = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    with suppress(psutil.NoSuchProcess):  # one that has just ended
        return any("worker" in " ".join(child.cmdline()) for child in running)
    return False


def wait_for_compaction(served: Served) -> None:
    """Wait until the sandbox has had no worker for a second."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 1:
        if is_compacting(served):
            quiet_since = time.monotonic()
        time.sleep(0.05)


def test_the_first_run_after_a_start(served: Served) -> None:
    """At most 2.5 s with none of the lake's files in memory."""
    wait_for_compaction(served)
    took = [first_run_after_a_start(served, seed=2000 + number) for number in range(3)]
    print(f"\n{served.size}: first run after a start, nothing cached: {', '.join(f'{s:.2f}' for s in took)} s")
    assert max(took) <= 2.5


def test_the_size_of_the_lake_does_not_matter() -> None:
    """A run into a lake of 100 million events takes at most 1.3 times one into 10 million."""
    for kind, of_size in took_s.items():
        if len(of_size) < 2:
            pytest.skip("only one size was measured")
        small, large = (of_size[size] for size in sorted(of_size, key=len))
        print(f"\n{kind}: ten times the lake costs {large / small:.2f} x")
        assert large <= 1.3 * small
