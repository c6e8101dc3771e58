"""Program that writes millions of events of the demo's players to a lake, as columns.

    python generate_lake.py STATE EVENTS

STATE is the state directory of a sandbox that does not run. Prints JSON: events, rows by kind, the seconds of making
and of processing them, and the peak memory in MiB.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.manifest import WRITTEN
from gamelens.simulator import Scenario, expect, load_scenario, play_columns

ORGANISATION = "acme"
GAMES = ("1001", "1002", "2001")
DAYS = 61
ENDS_AT = datetime(2026, 11, 20, tzinfo=UTC)


def scenario_for(events: int) -> Scenario:
    """Return the demo with as many players as make about *events* events."""
    sample = load_scenario("demo", players=100_000, days=DAYS)
    players = sample.players * events / expect(sample, ends_on=ENDS_AT.date()).events
    return load_scenario("demo", players=round(players), days=DAYS)


def generate(state: Path, events: int) -> dict[str, Any]:
    """Play the scenario into the lake of *state* and return the measurements."""
    scratch = state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    store = open_store(state / "gamelens.db")
    lake, scenario = Lake(state / "lake", store), scenario_for(events)
    began = time.perf_counter()
    days = play_columns(scenario, scratch, ends_on=ENDS_AT.date(), game_ids=GAMES)
    made = time.perf_counter()
    processed_ms = round(ENDS_AT.timestamp() * 1000)
    staged = {ORGANISATION: [path for day in sorted(days) for path in days[day]]}
    commit_staged(staged, lake, scratch, processed_ms=processed_ms, last_batch=WRITTEN)
    done = time.perf_counter()
    rows = dict(store.execute("SELECT kind, sum(rows) FROM files GROUP BY kind"))
    store.close()
    shutil.rmtree(scratch)
    return {
        "events": rows["events"],
        "rows": rows,
        "make_s": made - began,
        "process_s": done - made,
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """Return the peak memory of this process.

    Unlike `ru_maxrss`, which starts at that of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    print(json.dumps(generate(Path(sys.argv[1]), int(sys.argv[2]))))
