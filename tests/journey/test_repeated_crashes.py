"""A sandbox that is killed many times keeps every acknowledged event, once.

`make test-wide` kills it 3 times, `make bench` 500 times (KILLS=500).
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxGame, SandboxInfo, read_sandbox_info
from gamelens.local.sandbox_process import process_at, running_sandbox
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.wire.signing import sign
from support.game_events import event
from support.sandbox_stage import CONFIG

pytestmark = pytest.mark.wide

KILLS = int(os.environ.get("KILLS", "3"))
EVENTS_EACH = 5
SENDERS = 8


class BatchSenders:
    """Senders of batches of unique events, each sent again until it is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self.waiting: list[list[str]] = []
        self._name_count = 0

    async def send(self, ready: SandboxInfo, game: SandboxGame) -> None:
        """Send batches over several connections until the sandbox is killed."""
        async with httpx.AsyncClient(base_url=ready.collector_url) as http:
            await asyncio.gather(*(self._send_until_the_kill(http, game) for _ in range(SENDERS)))

    async def _send_until_the_kill(self, http: httpx.AsyncClient, game: SandboxGame) -> None:
        while True:
            names = self.waiting.pop() if self.waiting else [self._name() for _ in range(EVENTS_EACH)]
            body = gzip.compress(json.dumps([_event_named(name) for name in names]).encode(), 1)
            headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
            try:
                answer = await http.post(f"/v2/{game.game_key}/events", content=body, headers=headers)
            except httpx.TransportError:
                self.waiting.append(names)
                return
            assert answer.status_code == 200
            self.acknowledged.update(names)

    def _name(self) -> str:
        self._name_count += 1
        return f"b{self._name_count:06d}"


def _event_named(name: str) -> dict[str, Any]:
    """Return a good event with *name* as its unique `build`."""
    uuid = f"00000000-0000-4000-8000-{name[1:]:0>12}"
    return event(build=name, user_id=f"of {name}", event_uuid=uuid, client_ts=None)


def _start_sandbox(state: Path, config: Path) -> tuple[subprocess.Popen[bytes], SandboxInfo]:
    ready = state.parent / "ready.json"
    ready.unlink(missing_ok=True)
    command = ["sandbox", "up", "--state", str(state), "--config", str(config), "--ready", str(ready)]
    process = subprocess.Popen([sys.executable, "-m", "gamelens", *command])
    while not ready.exists():
        assert process.poll() is None, "the sandbox did not start again"
        time.sleep(0.01)
    return process, read_sandbox_info(ready)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder on a disk."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture(scope="module")
def outcome(folder: Path) -> tuple[BatchSenders, list[str], int]:
    """Kill the sandbox under load many times, and return senders, builds and event count."""
    state, config = folder / "state", folder / "sandbox.toml"
    config.write_text(CONFIG)
    random_source, senders = random.Random(11), BatchSenders()
    for _ in range(KILLS):
        process, ready = _start_sandbox(state, config)
        game = ready.organisations[0].games[0]
        asyncio.run(_kill_under_load(process, senders, ready, game, after_s=random_source.uniform(0.0, 0.4)))
    with running_sandbox(state, config=config) as ready:
        httpx.post(f"{ready.console_url}/clock", json={"advance": "PT1H"})
        process_at(state)
        with Client(api_key=ready.organisations[0].api_key, metrics_url=ready.metrics_url) as client:
            event_count = client.query("event_count", over=client.available(), every="all").event_count.sum()
    return senders, _builds(state), int(event_count)


def _builds(state: Path) -> list[str]:
    """Return every build in the lake, of which the service would list only a part."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        files = [str(path) for path in Lake(state / "lake", store).snapshot("acme").files("events")]
    rows = duckdb.execute("SELECT DISTINCT build FROM read_parquet(?)", [files]).fetchall()
    return [build for (build,) in rows]


async def _kill_under_load(
    process: subprocess.Popen[bytes], senders: BatchSenders, ready: SandboxInfo, game: SandboxGame, *, after_s: float
) -> None:
    async def kill() -> None:
        await asyncio.sleep(after_s)
        process.kill()

    await asyncio.gather(senders.send(ready, game), kill())
    process.wait()


def test_nothing_acknowledged_is_lost(outcome: tuple[BatchSenders, list[str], int]) -> None:
    """Every event acknowledged before a kill is in the lake (Wire 1.7, Submitting events)."""
    senders, builds, _ = outcome
    assert len(senders.acknowledged) > 3 * KILLS  # also on a busy machine
    assert senders.acknowledged <= set(builds)


def test_nothing_is_counted_twice(outcome: tuple[BatchSenders, list[str], int]) -> None:
    """An event that was sent again after a kill counts once (Wire 4.8, Repeated events)."""
    _, builds, event_count = outcome
    assert event_count == len(builds)
