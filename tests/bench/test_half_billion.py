"""Half a billion events: made, processed and asked, in the memory of one machine.

It takes half an hour and 60 GB of disk, so `make bench` leaves it out unless GAMELENS_HALF_BILLION names a folder for
the lake. A lake that is there already is served as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from gamelens.catalog import METRICS
from gamelens.wire.limits import REQUESTS_AT_ONCE
from support.process_memory import memory_mib
from support.served_lake import Served, served_lake
from support.small_runs import SIZES, first_run_after_a_start, submit

FOLDER: Final = os.environ.get("GAMELENS_HALF_BILLION")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="GAMELENS_HALF_BILLION names no folder for the lake")

BY_COUNTRY: Final = {"query": {"type": "group", "dimension": "country_code"}}
PLAIN: Final = sorted(name for name, metric in METRICS.items() if metric.kinds == "plain")
MOST_MIB: Final = 3 * 1024
GROUPED_MONTH_S: Final = 0.05


@pytest.fixture(scope="module")
def largest() -> Iterator[Served]:
    """A sandbox over the lake."""
    with served_lake(Path(FOLDER or ""), 500_000_000) as served:
        yield served


def seconds(served: Served, metric: str, **body: Any) -> float:
    """Return the median seconds of eleven answers, after the first."""
    took = []
    for _ in range(12):
        began = time.perf_counter()
        served.query(metric, **body)
        took.append(time.perf_counter() - began)
    return median(took[1:])


def test_it_is_made_and_processed_in_bounded_memory(largest: Served) -> None:
    """At most 3 GiB."""
    made = largest.made
    print(
        f"\n{largest.size}: made in {made['make_s']:.0f} s, processed in {made['process_s']:.0f} s, "
        f"peak {made['peak_mib']:.0f} MiB; at rest {memory_mib(largest.pid, 'VmRSS'):.0f} MiB"
    )
    assert made["peak_mib"] < MOST_MIB


@pytest.mark.parametrize("metric", ["event_count", "ad_impressions_count", "revenue"])
def test_a_grouped_month(largest: Served, metric: str) -> None:
    """At most 50 ms."""
    took = seconds(largest, metric, **BY_COUNTRY)
    print(f"\n{metric} by country, a month: {1000 * took:.0f} ms")
    assert took <= GROUPED_MONTH_S


@pytest.mark.parametrize("granularity", ["day", "week", "month"])
def test_every_metric_by_country(largest: Served, granularity: str) -> None:
    """All of them answer, each in the time that is printed."""
    took = {metric: seconds(largest, metric, granularity=granularity, **BY_COUNTRY) for metric in PLAIN}
    print(f"\nby country and {granularity}: " + ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in took.items()))
    assert all(took.values())


def test_the_triangle(largest: Served) -> None:
    """Thirty requests, five at a time."""

    def query(age: int) -> Any:
        return largest.query("retention_retro", granularity="day", split_by="game_id", since_days_ago=age)

    took = []
    for _ in range(6):
        began = time.perf_counter()
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
            assert all(threads.map(query, range(1, 31)))
        took.append(time.perf_counter() - began)
    print(f"\nretention triangle: {1000 * median(took[1:]):.0f} ms")


@pytest.mark.parametrize("kind", SIZES)
def test_a_run(largest: Served, kind: str) -> None:
    """Few events are taken in without a look at all others."""
    took = []
    for seed in range(3):
        submit(largest, *SIZES[kind], seed=seed)
        took.append(largest.process())
    print(f"\n{kind}: {median(took):.2f} s, the first {took[0]:.2f} s")
    assert memory_mib(largest.pid, "VmHWM") < MOST_MIB


def test_the_first_run_after_a_start(largest: Served) -> None:
    """It waits for no file that is as it was."""
    took = [first_run_after_a_start(largest, seed=2000 + number) for number in range(3)]
    print(f"\nfirst run after a start, nothing cached: {', '.join(f'{s:.2f}' for s in took)} s")
    assert max(took) < 10
