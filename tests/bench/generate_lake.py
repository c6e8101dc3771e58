"""Program that writes millions of events of the demo's players to a lake, as columns.

    python generate_lake.py STATE EVENTS

STATE is the state directory of a sandbox that does not run. Prints JSON: events, rows by kind, the seconds of making
and of processing them, and the peak memory in MiB. Up to a hundred million events are committed at once, more in
slices of days, as a lake grows.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.simulator import Scenario, load_scenario, play_columns
from gamelens.simulator.output.play import estimated_events

ORGANISATION = "acme"
GAMES = ("1001", "1002", "2001")
DAYS = 61
AT_ONCE = 100_000_000
SLICE = 50_000_000
ENDS_AT = datetime(2026, 11, 20, tzinfo=UTC)


def scenario_for(events: int) -> Scenario:
    """Return the demo with as many players as make about *events* events."""
    sample = load_scenario("calm", players=100_000, days=DAYS)
    players = sample.players * events / estimated_events(sample, ends_on=ENDS_AT.date())
    return load_scenario("calm", players=round(players), days=DAYS)


def generate(state: Path, events: int) -> dict[str, Any]:
    """Play the scenario into the lake of *state* and return the measurements."""
    scratch = state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    store = open_store(state / "gamelens.db")
    lake, scenario = Lake(state / "lake", store), scenario_for(events)
    lake.create_if_new()
    began = time.perf_counter()
    days = play_columns(scenario, scratch, ends_on=ENDS_AT.date(), game_ids=GAMES)
    made = time.perf_counter()
    processed_ms = round(ENDS_AT.timestamp() * 1000)
    slices = []
    for some in _slices(sorted(days), events):
        paths = [path for day in some for path in days[day]]
        slice_began = time.perf_counter()
        commit_staged({ORGANISATION: paths}, lake, scratch, processed_ms=processed_ms, is_written=True)
        for path in paths:
            path.unlink(missing_ok=True)
        slices.append(round(time.perf_counter() - slice_began, 1))
        print(f"slice {len(slices)}: {slices[-1]} s, peak {peak_mib():.0f} MiB", file=sys.stderr, flush=True)
    done = time.perf_counter()
    rows = dict(store.execute("SELECT kind, sum(rows) FROM files GROUP BY kind"))
    store.close()
    shutil.rmtree(scratch)
    return {
        "events": rows["events"],
        "rows": rows,
        "make_s": made - began,
        "process_s": done - made,
        "slices_s": slices,
        "peak_mib": peak_mib(),
    }


def _slices(days: list[date], events: int) -> list[list[date]]:
    """Return *days* in as many runs as there are slices, one for a lake that is committed at once."""
    number = 1 if events <= AT_ONCE else -(-events // SLICE)
    step = -(-len(days) // number)
    return [days[place : place + step] for place in range(0, len(days), step)]


def peak_mib() -> float:
    """Return the peak memory of this process.

    Unlike `ru_maxrss`, which starts at that of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    print(json.dumps(generate(Path(sys.argv[1]), int(sys.argv[2]))))
