"""An import on a Spark cluster of one and of two workers, each of one core, and the shape of its stages.

Run by `make bench` where there are Spark and Java. Driver and master run on the same machine as the workers, so with
two cores two workers do not have one each.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import defaultdict
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelens.sandbox.imports.import_run import ImportOptions, import_raw_events
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.simulator import Scenario, export_raw, load_scenario
from gamelens.simulator.output.play import estimated_events
from support.reference_lake import different_rows, lake_tables
from support.spark_cluster import spark_cluster

pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")

EVENTS = int(os.environ.get("EVENTS", "1000000"))
DAYS = 8
FILE_ROWS = 50_000
LARGEST = 12
SETTINGS = """
spark.eventLog.enabled true
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.eventLog.dir file:{folder}
"""


def scenario() -> Scenario:
    """Return the demo over a few days, with as many players as make the events."""
    sample = load_scenario("calm", players=10_000, days=DAYS)
    players = sample.players * EVENTS / estimated_events(sample, ends_on=date(2026, 11, 20))
    return load_scenario("calm", players=round(players), days=DAYS)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return a folder of JSON lines."""
    export_raw(scenario(), tmp_path / "export", "raw-json", ends_on=date(2026, 11, 20), file_rows=FILE_ROWS)
    return tmp_path / "export"


def test_two_workers_beside_one(tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both make the lake that DuckDB makes. Seconds and stages are printed."""
    events, here_s = take(export, tmp_path / "here", "duckdb")
    size = sum(path.stat().st_size for path in export.rglob("*.gz"))
    print(
        f"\n{events:,} events in {len(list(export.rglob('*.gz')))} files of {size / 1e6:.0f} MB: DuckDB {here_s:.0f} s"
    )
    (tmp_path / "log").mkdir()
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS.format(folder=tmp_path / "log"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    took = {}
    for workers in (1, 2):
        folder = tmp_path / f"cluster{workers}"
        folder.mkdir()
        with spark_cluster(folder, workers=workers) as address:
            _, took[workers] = take(export, tmp_path / f"spark{workers}", address)
        print(f"{workers} workers: {took[workers]:.0f} s")
        assert different_rows(*(tables(tmp_path / name) for name in (f"spark{workers}", "here"))) == {}
    print(f"two workers are {took[1] / took[2]:.2f} x as fast as one")
    print_stages(next((tmp_path / "log").glob("*-0000")), events)
    assert took[2] < took[1]


def take(folder: Path, state: Path, engine: str) -> tuple[int, float]:
    """Import the files of *folder* into a new *state*, and return the number of events and the seconds."""
    Sandbox(SandboxOptions(state=state, titles=load_scenario("calm").titles)).close()
    began = time.perf_counter()
    result = import_raw_events(state, [str(folder)], ImportOptions(engine=engine))
    return result.events, time.perf_counter() - began


def tables(state: Path) -> dict[str, pa.Table]:
    """Return the tables of the lake of *state*."""
    with closing(open_store(state / "gamelens.db")) as store:
        lake = Lake(state / "lake", store)
        (organisation,) = lake.organisations()
        return lake_tables(lake.snapshot(organisation))


def print_stages(path: Path, events: int) -> None:
    """Print core seconds and bytes of each step, from Spark's own log."""
    steps: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    step_of: dict[int, str] = {}
    for line in path.read_text().splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry["Event"] == "SparkListenerJobStart":
            name = entry["Properties"].get("spark.job.description", "other")
            step_of |= dict.fromkeys(entry["Stage IDs"], name)
        elif entry["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in entry:
            metrics, step = entry["Task Metrics"], steps[step_of.get(entry["Stage ID"], "other")]
            step["core_s"] += metrics["Executor Run Time"] / 1000
            step["shuffled"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            step["written"] += metrics["Output Metrics"]["Bytes Written"]
    total = {name: sum(step[name] for step in steps.values()) for name in ("core_s", "shuffled", "written")}
    print(f"{'step':<34}core s a million events  shuffled bytes an event  written bytes an event")
    largest = sorted(steps.items(), key=lambda item: -item[1]["core_s"])[:LARGEST]
    for name, step in [*largest, ("all", total)]:
        print(
            f"{name:<34}{step['core_s'] * 1e6 / events:23.2f}{step['shuffled'] / events:25.1f}"
            f"{step['written'] / events:24.1f}"
        )
