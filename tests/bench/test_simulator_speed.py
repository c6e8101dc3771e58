"""Speed and memory of the simulator, as requests and as columns, beside serialising alone.

Run by `make bench`. Rounds of both take turns and the best of each counts, because the machine has other work too; each
figure is printed with the load average. The work of one core is measured in busy time, not in elapsed time.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from zlib_ng.zlib_ng import compress

from gamelens.client.events.collector_client import GZIP
from gamelens.simulator import RequestBatch, export_raw, load_scenario, play, play_columns
from gamelens.wire.signing import sign

ENDS_ON = date(2026, 11, 20)
LEVEL = 2  # the client's own
SECRET = "0" * 40
ROUNDS = 7


def busy_s(work: Callable[[], object]) -> float:
    """Return the seconds that this thread is busy with *work*."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def load() -> str:
    """Return the load average as text."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def test_the_wire_path_on_one_core() -> None:
    """Generate, serialise, gzip and sign 150,000 events/s on one core, half of the floor.

    The floor serialises and gzips events that exist already.
    """
    scenario = load_scenario("calm")

    def batches() -> Iterator[RequestBatch]:
        return islice(play(scenario, ends_on=ENDS_ON), 400)

    finished = [msgspec.json.decode(batch.body) for batch in batches()]
    events = sum(map(len, finished))

    def send() -> None:
        for batch in batches():
            sign(compress(batch.body, LEVEL, wbits=GZIP), secret_key=SECRET)

    def floor() -> None:
        for batch in finished:
            compress(msgspec.json.encode(batch), LEVEL, wbits=GZIP)

    rounds = [(busy_s(send), busy_s(floor)) for _ in range(ROUNDS)]
    sent_s, floor_s = (min(taken) for taken in zip(*rounds, strict=True))
    print(
        f"\nwire: {events / sent_s:,.0f} events/s of one core, {floor_s / sent_s:.2f} of what serialises and gzips "
        f"finished ones ({events / floor_s:,.0f}/s); {load()}"
    )
    assert events / sent_s > 150_000
    assert floor_s / sent_s > 0.5


def test_the_columnar_path(tmp_path: Path) -> None:
    """At least 1,000,000 events/s, or on a busy machine the equal in time of two cores."""
    scenario = load_scenario("calm", players=40_000, days=61)
    elapsed, busy = [], []
    counts: list[int] = []
    is_idle = os.getloadavg()[0] < 1
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        counts.clear()
        began, busy_before = time.perf_counter(), time.process_time()
        play_columns(scenario, folder, ends_on=ENDS_ON, on_events=counts.append)
        elapsed.append(time.perf_counter() - began)
        busy.append(time.process_time() - busy_before)
        shutil.rmtree(folder)
    events = sum(counts)
    rate, cost_us = events / min(elapsed), 1e6 * min(busy) / events
    print(f"\ncolumns: {rate:,.0f} events/s, {cost_us:.2f} us of a core for each; {load()}")
    assert (rate if is_idle else 2e6 / cost_us) > 1_000_000


def test_raw_json_on_one_core(tmp_path: Path) -> None:
    """At least 150,000 events/s of one core, gzipped; the floor gzips the finished lines alone."""
    scenario = load_scenario("demo", players=2048, days=61)
    busy, floors, events = [], [], 0
    for number in range(5):
        folder, began = tmp_path / str(number), time.process_time()
        events = export_raw(scenario, folder, "raw-json", ends_on=ENDS_ON)
        busy.append(time.process_time() - began)
        finished = [gzip.decompress(path.read_bytes()) for path in folder.rglob("*.gz")]
        began = time.process_time()
        for lines in finished:
            gzip.compress(lines, compresslevel=3)
        floors.append(time.process_time() - began)
        shutil.rmtree(folder)
    rate, floor = events / min(busy), events / min(floors)
    print(f"\nraw-json: {rate:,.0f} events/s of one core; gzip alone {floor:,.0f}; {load()}")
    assert rate > 150_000


_MEMORY = """
import json, sys
from datetime import date
from pathlib import Path
from gamelens.simulator import load_scenario, play, play_columns

way, players, days, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
scenario, counts = load_scenario("calm", players=players, days=days), []
if way == "wire":
    counts += [batch.events for batch in play(scenario, ends_on=date(2026, 11, 20))]
else:
    play_columns(scenario, folder, ends_on=date(2026, 11, 20), on_events=counts.append)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps([sum(counts), int(status["VmHWM"].split()[0]) / 1024]))
"""


def peak(way: str, folder: Path, *, players: int, days: int) -> tuple[int, float]:
    """Return the number of events and the peak MiB of a process of its own that makes them."""
    folder.mkdir()
    command: list[Any] = [sys.executable, "-c", _MEMORY, way, players, days, folder]
    events, mib = json.loads(subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout)
    print(f"\n{way}: {players:,} players, {days} days, {events:,} events: peak {mib:.0f} MiB")
    return events, mib


@pytest.mark.parametrize("way", ["wire", "columns"])
def test_memory_is_flat_in_the_number_of_days(way: str, tmp_path: Path) -> None:
    """300 days take at most 1.3 times the memory of 30, as blocks have one size."""
    few, many = (peak(way, tmp_path / str(days), players=3000, days=days) for days in (30, 300))
    assert many[0] > few[0]
    assert many[1] < 1.3 * few[1]


@pytest.mark.parametrize(("way", "players"), [("wire", 5_000), ("columns", 80_000)])
def test_memory_is_flat_in_the_number_of_players(way: str, players: int, tmp_path: Path) -> None:
    """Three times the players take at most 1.3 times the memory, once they fill a chapter."""
    few, many = (peak(way, tmp_path / str(number), players=number, days=30) for number in (players, 3 * players))
    assert many[0] > 2.5 * few[0]
    assert many[1] < 1.3 * few[1]
