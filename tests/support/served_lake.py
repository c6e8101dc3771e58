"""A sandbox that serves a large generated lake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import httpx

from support.sandbox_stage import CONFIG, Stage

GENERATOR = Path(__file__).parents[1] / "bench" / "generate_lake.py"
MONTH = "2026-10-01/2026-11-01"


class Served:
    """A sandbox over the generated lake below a folder.

    Attributes:
        size: the number of events, in words.
        made: what the generator has measured.
        state: the state directory.
        raw: DuckDB over the event files, for raw SQL.
        pid: of the sandbox.
        info: its ready file.
    """

    def __init__(self, folder: Path, raw: duckdb.DuckDBPyConnection) -> None:
        self._folder, self.raw = folder, raw
        self.state = folder / "state"
        self.made: dict[str, Any] = json.loads((folder / "made.json").read_text())
        self.size = f"{self.made['events']:,} events"
        self.start()

    def start(self) -> None:
        """Start the sandbox and wait until it is ready."""
        ready, config = self._folder / "ready.json", self._folder / "sandbox.toml"
        ready.unlink(missing_ok=True)
        config.write_text(CONFIG)
        options = ["--state", str(self.state), "--ready", str(ready), "--config", str(config)]
        options += ["--rate", "100000", "--concurrency", "1000"]
        self._process = subprocess.Popen([sys.executable, "-m", "gamelens", "sandbox", "up", *options])
        while not ready.exists():
            assert self._process.poll() is None
            time.sleep(0.05)
        self.pid, self.info = self._process.pid, json.loads(ready.read_text())
        headers = {"X-API-Key": "key-of-acme"}
        self._http = httpx.Client(base_url=self.info["metrics_url"], headers=headers, timeout=120)

    def stop(self) -> None:
        """Stop the sandbox."""
        self._http.close()
        self._process.terminate()
        self._process.wait()

    def forget_cached_pages(self) -> None:
        """Have the operating system read the files of the lake from the disk again."""
        for path in (path for path in (self.state / "lake").rglob("*") if path.is_file()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def process(self) -> float:
        """Order a run, and return its seconds."""
        began = time.perf_counter()
        httpx.post(f"{self.info['console_url']}/process", timeout=300).raise_for_status()
        return time.perf_counter() - began

    def query(self, metric: str, **body: Any) -> Any:
        """Return the result of a query over HTTP, by default one bucket of a month."""
        answer = self._http.post(f"/metrics/v1/metrics/{metric}", json={"interval": MONTH, "granularity": "all"} | body)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


@contextmanager
def served_lake(folder: Path, events: int) -> Iterator[Served]:
    """Generate a lake of about *events* events below *folder*, unless it is there, and serve it."""
    state, measured = folder / "state", folder / "made.json"
    if not measured.exists():
        folder.mkdir(parents=True, exist_ok=True)
        Stage(state).sandbox.close()  # so that it has its organisations: a lake without them is refused
        command = [sys.executable, str(GENERATOR), str(state), str(events)]
        measured.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    with duckdb.connect() as raw:
        raw.execute(f"CREATE VIEW events AS FROM read_parquet('{state}/lake/*/org-acme/events-*.parquet')")
        raw.execute(f"SET temp_directory = '{folder}'")
        served = Served(folder, raw)
        try:
            yield served
        finally:
            served.stop()
