"""Rates of the import of raw events, beside a floor that only reads and parses the same files.

Run by `make bench`. Rates are events a second of processor time, so that other work on the machine counts little; each
is printed with its ratio to the floor in the same run.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import time
from collections import deque
from collections.abc import Callable
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from gamelens.sandbox.imports.import_counts import GameIds, ImportCounts
from gamelens.sandbox.imports.import_run import CHUNK_ROWS, DecodedGroup, import_raw_events
from gamelens.sandbox.imports.source_files import list_files, recognise_files
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.simulator import ExportFormat, export_raw, load_scenario
from gamelens.simulator.output.raw_export import TABLES
from gamelens.wire.limits import OLDEST_DAYS

EVENTS = int(os.environ.get("EVENTS", "2000000"))
DEMO_EVENTS = 62  # of a player of the demo, about
MOST_MIB = 2048
BARS = {"raw-json": 300_000, "event-parquet": 1_000_000}
"""Events a second of one core that are wanted."""
TEXTS = (
    "category user_id session_id event_uuid country_code platform build ad_sdk_name ad_type ad_action ad_network_name "
    "install_publisher ab_id ab_variant_id severity currency client_ts length amount"
)


class Measured(NamedTuple):
    """Events, seconds of processor time, and the most memory of a piece of work in a process of its own."""

    events: int
    seconds: float
    mib: float

    @property
    def rate(self) -> float:
        """Events a second of processor time."""
        return self.events / self.seconds


def measured(work: Callable[..., int], *arguments: Any) -> Measured:
    """Run *work* in a new process and measure it; its result is the number of events."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(sender, work, arguments))
    child.start()
    sender.close()  # so that a child that fails ends the wait
    found: Measured = receiver.recv()
    child.join()
    return found


def _measure(sender: Connection, work: Callable[..., int], arguments: tuple[Any, ...]) -> None:
    began = time.process_time()
    events = work(*arguments)
    seconds = time.process_time() - began
    sender.send(Measured(events, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def floor(kind: ExportFormat, folder: Path) -> int:
    """Read and parse the files with one statement of the engine, and return the number of events."""
    columns = ", ".join(f'"{name}" VARCHAR' for name in TEXTS.split())
    shape = f"{{arrival_ts: 'BIGINT', game_id: 'VARCHAR', data: 'STRUCT({columns}, impression_data JSON)'}}"
    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False}) as engine:
        if kind == "raw-json":
            rows = f"read_json('{folder}/*/*.gz', format = 'newline_delimited', columns = {shape})"
            every = ", ".join(f'max(data."{name}")' for name in (*TEXTS.split(), "impression_data"))
            return int(
                engine.sql(f"SELECT count(*), max(arrival_ts), max(game_id), {every} FROM {rows}").fetchall()[0][0]
            )
        total = 0
        for table in TABLES.values():
            rows = f"read_parquet('{folder}/{table}/*.parquet')"
            names = [name for name, *_ in engine.sql(f"DESCRIBE FROM {rows}").fetchall()]
            every = ", ".join(f'max(hash("{name}"))' for name in names)
            total += engine.sql(f"SELECT count(*), {every} FROM {rows}").fetchall()[0][0]
        return int(total)


def decode(kind: ExportFormat, folder: Path, scratch: Path) -> int:
    """Decode the files into the columns of the lake, without building its tables."""
    files = recognise_files(list_files([str(folder)]))
    counts = ImportCounts(files, [], None)
    group, rest, first = (
        DecodedGroup(scratch / "group", GameIds(["1001", "1002", "2001"], {}), counts, oldest_days=OLDEST_DAYS),
        deque(files),
        0,
    )
    while rest:
        if kind == "raw-json":
            first += group.add_lines(rest, first_seq=first, most=CHUNK_ROWS)
        else:
            first += group.add_table(rest.popleft(), first_seq=first)
    group.close()
    return group.counts.events


def take(folder: Path, state: Path) -> int:
    """Import the files into a new state directory."""
    return import_raw_events(state, [str(folder)]).events


@pytest.mark.parametrize("kind", ["raw-json", "event-parquet"])
def test_rates_of_an_import(tmp_path: Path, kind: ExportFormat) -> None:
    """An import takes less than 2 GiB of memory. Rates are printed beside those wanted, which are not reached yet."""
    scenario = load_scenario("calm", players=max(EVENTS // DEMO_EVENTS, 100))
    folder, state = tmp_path / "export", tmp_path / "state"
    export_raw(scenario, folder, kind, ends_on=date(2026, 11, 20))
    Sandbox(SandboxOptions(state=state, titles=scenario.titles)).close()
    (tmp_path / "scratch").mkdir()
    size = sum(path.stat().st_size for path in folder.rglob("*.*"))
    of_floor = measured(floor, kind, folder)
    of_decoding = measured(decode, kind, folder, tmp_path / "scratch")
    shutil.rmtree(tmp_path / "scratch")
    of_import = measured(take, folder, state)
    assert of_floor.events == of_decoding.events == of_import.events
    print(
        f"\n{kind}: {of_import.events:,} events of {size / of_import.events:.0f} bytes; load {os.getloadavg()[0]:.1f}"
    )
    for name, found in (("read and parse alone", of_floor), ("decoded", of_decoding), ("in the lake", of_import)):
        rate = f"{found.rate:9,.0f} events/s a core  {of_floor.rate / found.rate:4.1f} x the floor"
        print(f"  {name:<22}{rate}  {found.mib:5,.0f} MiB")
    print(f"  {'wanted':<22}{BARS[kind]:9,.0f} events/s a core")
    assert of_import.mib < MOST_MIB
