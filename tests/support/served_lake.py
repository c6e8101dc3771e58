"""A sandbox that serves a large generated lake."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import httpx

from support.sandbox_stage import CONFIG

GENERATOR = Path(__file__).parents[1] / "bench" / "generate_lake.py"
MONTH = "2026-10-01/2026-11-01"


class Served(NamedTuple):
    """A sandbox over a generated lake, its ready file, and DuckDB over its event files for the raw SQL."""

    size: str
    made: dict[str, Any]
    pid: int
    state: Path
    http: httpx.Client
    raw: duckdb.DuckDBPyConnection
    info: dict[str, Any]

    def query(self, metric: str, **body: Any) -> Any:
        """Return the result of a query over HTTP, by default one bucket of a month."""
        answer = self.http.post(f"/metrics/v1/metrics/{metric}", json={"interval": MONTH, "granularity": "all"} | body)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


@contextmanager
def served_lake(folder: Path, events: int) -> Iterator[Served]:
    """Generate a lake of about *events* events below *folder*, unless it is there, and serve it."""
    state, ready, config, measured = (folder / name for name in ("state", "ready.json", "sandbox.toml", "made.json"))
    if not measured.exists():
        (state / "lake").mkdir(parents=True)
        command = [sys.executable, str(GENERATOR), str(state), str(events)]
        measured.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    made = json.loads(measured.read_text())
    ready.unlink(missing_ok=True)
    config.write_text(CONFIG)
    options = ["--state", str(state), "--ready", str(ready), "--config", str(config)]
    options += ["--rate", "100000", "--concurrency", "1000"]
    process = subprocess.Popen([sys.executable, "-m", "gamelens", "sandbox", "up", *options])
    try:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.05)
        info = json.loads(ready.read_text())
        with (
            httpx.Client(base_url=info["metrics_url"], headers={"X-API-Key": "key-of-acme"}, timeout=120) as http,
            duckdb.connect() as raw,
        ):
            raw.execute(f"CREATE VIEW events AS FROM read_parquet('{state}/lake/*/org-acme/events-*.parquet')")
            raw.execute(f"SET temp_directory = '{folder}'")
            yield Served(f"{made['events']:,} events", made, process.pid, state, http, raw, info)
    finally:
        process.terminate()
        process.wait()
