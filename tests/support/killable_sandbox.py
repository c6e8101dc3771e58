"""A sandbox process that a test may fail, kill and start again."""

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

from conftest import CONFIG, event
from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info
from gamelens.wire.signing import sign

METRICS = "/metrics/v1/metrics/*"


class Service:
    """A sandbox process that can be killed and started again, on the same ports and with the same data."""

    def __init__(self, folder: Path, *, api_key: str = "key-of-acme") -> None:
        self.api_key = api_key
        self._folder = folder
        self._config = folder / "sandbox.toml"
        self._config.write_text(CONFIG.replace("key-of-acme", api_key))
        self._ports: list[str] = []
        self.start()
        self._ports = [f"--metrics-port={urlsplit(self.ready.metrics_url).port}"]

    def keep_ports(self) -> None:
        """Have the collector, too, come back where it was."""
        self._ports.append(f"--collector-port={urlsplit(self.ready.collector_url).port}")

    def start(self) -> None:
        """Start, again if need be."""
        path = self._folder / "ready.json"
        path.unlink(missing_ok=True)
        command = ["sandbox", "up", f"--state={self._folder / 'state'}", f"--config={self._config}", f"--ready={path}"]
        self._process = subprocess.Popen([sys.executable, "-m", "gamelens", *command, *self._ports])
        while not path.exists():
            assert self._process.poll() is None, "the sandbox did not start"
            time.sleep(0.01)
        self.ready: SandboxInfo = read_sandbox_info(path)

    def kill(self) -> None:
        """End it as it stands."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Let it end."""
        self._process.terminate()
        self._process.wait()

    def fail(self, route: str = METRICS, **fault: Any) -> None:
        """One more fault rule (contract, POST /faults)."""
        rule = {"service": "metrics", "route": route, **fault}
        httpx.post(f"{self.ready.console_url}/faults", json=rule).raise_for_status()

    def heal(self) -> None:
        """No faults any more."""
        httpx.delete(f"{self.ready.console_url}/faults").raise_for_status()

    def struck(self) -> int:
        """How often the rules in force have struck."""
        rules = httpx.get(f"{self.ready.console_url}/faults").json()
        return sum(rule["struck"] for rule in rules)

    def asked(self) -> int:
        """Requests that came past the faults since this process started."""
        return int(httpx.get(f"{self.ready.console_url}/summary").json()["asked"])

    def client(self, **options: Any) -> Client:
        """A client that keeps nothing and gives up soon."""
        settings = {"api_key": self.api_key, "metrics_url": self.ready.metrics_url, "cache": False}
        return Client(**settings | {"progress": False, "max_wait_s": 0.5} | options)

    def populate(self, *, days: int) -> None:
        """A few events of each game on each of so many days, processed."""
        chance, now = random.Random(3), datetime.now(UTC)
        for game in [it for it in self.ready.organisations[0].games if it.title != "Live"]:
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
            httpx.post(address, content=body, headers=headers).raise_for_status()
        httpx.post(f"{self.ready.console_url}/process", timeout=60).raise_for_status()
