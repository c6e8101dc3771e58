"""A sandbox process that a test can make fail, kill and start again."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info
from gamelens.wire.signing import sign
from support.game_events import event
from support.sandbox_stage import CONFIG

METRICS = "/metrics/v1/metrics/*"


class Service:
    """A sandbox process that keeps its data and its metrics port over restarts."""

    def __init__(self, folder: Path, *, api_key: str = "key-of-acme") -> None:
        self.api_key = api_key
        self._folder = folder
        self._config = folder / "sandbox.toml"
        self._config.write_text(CONFIG.replace("key-of-acme", api_key))
        self._ports: list[str] = []
        self._http = httpx.Client(verify=False, trust_env=False)  # plain HTTP to this machine
        self.start()
        self._ports = [f"--metrics-port={urlsplit(self.ready.metrics_url).port}"]

    def keep_ports(self) -> None:
        """Keep the port of the collector over restarts as well."""
        self._ports.append(f"--collector-port={urlsplit(self.ready.collector_url).port}")

    def start(self) -> None:
        """Start the process and wait until it serves."""
        path = self._folder / "ready.json"
        path.unlink(missing_ok=True)
        command = ["sandbox", "up", f"--state={self._folder / 'state'}", f"--config={self._config}", f"--ready={path}"]
        self._process = subprocess.Popen([sys.executable, "-m", "gamelens", *command, *self._ports])
        while not path.exists():
            assert self._process.poll() is None, "the sandbox did not start"
            time.sleep(0.01)
        self.ready: SandboxInfo = read_sandbox_info(path)

    def kill(self) -> None:
        """Kill the process without a warning."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Terminate the process and wait for its end."""
        self._http.close()
        self._process.terminate()
        self._process.wait()

    def fail(self, route: str = METRICS, **fault: Any) -> None:
        """Add one fault rule (Wire 5.3, Fault rules)."""
        rule = {"service": "metrics", "route": route, **fault}
        self._http.post(f"{self.ready.console_url}/faults", json=rule).raise_for_status()

    def heal(self) -> None:
        """Delete all fault rules."""
        self._http.delete(f"{self.ready.console_url}/faults").raise_for_status()

    def struck(self) -> int:
        """Return how many requests the fault rules in force have hit."""
        rules = self._http.get(f"{self.ready.console_url}/faults").json()
        return sum(rule["struck"] for rule in rules)

    def request_count(self) -> int:
        """Return how many requests this process has served that no fault rule hit."""
        return int(self._http.get(f"{self.ready.console_url}/summary").json()["asked"])

    def client(self, **options: Any) -> Client:
        """Return a client without a cache that gives up after half a second."""
        settings: dict[str, Any] = {"api_key": self.api_key, "metrics_url": self.ready.metrics_url, "cache": False}
        return Client(**settings | {"progress": False, "max_wait_s": 0.5} | options)

    def populate(self, *, days: int) -> None:
        """Submit and process a few events of each game on each of the last *days* days."""
        self.submit(days=days)
        self.process()

    def process(self) -> None:
        """Process what was submitted."""
        self._http.post(f"{self.ready.console_url}/process", timeout=60).raise_for_status()

    def submit(self, *, days: int) -> None:
        """Submit a few events of each game on each of the last *days* days."""
        chance, now = random.Random(3), datetime.now(UTC)
        for game in self.ready.organisations[0].games:
            if game.title == "Live":  # a production game, whose events the sandbox refuses
                continue
            events = [
                event(
                    user_id=f"{chance.randrange(20)}",
                    platform=chance.choice(("ios", "android")),
                    client_ts=int((now - timedelta(days=day, hours=1)).timestamp()),
                )
                for day in range(days)
                for _ in range(chance.randrange(1, 9))
            ]
            body = gzip.compress(json.dumps(events).encode())
            headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
            address = f"{self.ready.collector_url}/v2/{game.game_key}/events"
            self._http.post(address, content=body, headers=headers).raise_for_status()


def start_process(state: Path, ready: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a sandbox process over *state* and wait until it serves."""
    ready.unlink(missing_ok=True)
    up = ["sandbox", "up", "--state", str(state), "--ready", str(ready), *options]
    process = subprocess.Popen([sys.executable, "-m", "gamelens", *up])
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert process.poll() is None, "the sandbox did not start"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def submit(http: httpx.Client, ready: dict[str, Any], events: list[Any]) -> int:
    """Submit *events* for the first game, and return the status."""
    game = ready["organisations"][0]["studios"][0]["games"][0]
    body = json.dumps(events).encode()
    headers = {"Authorization": sign(body, secret_key=game["secret_key"])}
    return http.post(
        f"{ready['collector_url']}/v2/{game['game_key']}/events", content=body, headers=headers
    ).status_code
