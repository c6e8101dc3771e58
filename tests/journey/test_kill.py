"""Killed at any moment, the sandbox has everything it acknowledged, once, and starts again without a word.

`make test` kills it 50 times, `make bench` 500 (KILLS=500).
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
import time
from pathlib import Path

import duckdb
import httpx
import pytest

from conftest import CONFIG, event
from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxGame, SandboxInfo, read_sandbox_info
from gamelens.local.sandbox_process import process_at, running_sandbox
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.wire.signing import sign

KILLS = int(os.environ.get("KILLS", "50"))
EVENTS_EACH = 5
AT_ONCE = 8


class Senders:
    """Send batches of events nobody else has, again until each is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self.waiting: list[list[str]] = []
        self._made = 0

    async def send(self, ready: SandboxInfo, game: SandboxGame) -> None:
        async with httpx.AsyncClient(base_url=ready.collector_url) as http:
            await asyncio.gather(*(self._send_until_it_dies(http, game) for _ in range(AT_ONCE)))

    async def _send_until_it_dies(self, http: httpx.AsyncClient, game: SandboxGame) -> None:
        while True:
            names = self.waiting.pop() if self.waiting else [self._name() for _ in range(EVENTS_EACH)]
            body = gzip.compress(json.dumps([_named(name) for name in names]).encode(), 1)
            headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
            try:
                answer = await http.post(f"/v2/{game.game_key}/events", content=body, headers=headers)
            except httpx.TransportError:
                self.waiting.append(names)
                return
            assert answer.status_code == 200
            self.acknowledged.update(names)

    def _name(self) -> str:
        self._made += 1
        return f"b{self._made:06d}"


def _named(name: str) -> dict:
    """A good event that `build` tells from all others."""
    uuid = f"00000000-0000-4000-8000-{name[1:]:0>12}"
    return event(build=name, user_id=f"of {name}", event_uuid=uuid, client_ts=None)


def _start(state: Path, config: Path) -> tuple[subprocess.Popen[bytes], SandboxInfo]:
    ready = state.parent / "ready.json"
    ready.unlink(missing_ok=True)
    command = ["sandbox", "up", "--state", str(state), "--config", str(config), "--ready", str(ready)]
    process = subprocess.Popen([sys.executable, "-m", "gamelens", *command])
    while not ready.exists():
        assert process.poll() is None, "the sandbox did not start again"
        time.sleep(0.01)
    return process, read_sandbox_info(ready)


@pytest.fixture(scope="module")
def survivors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Senders, list[str], int]:
    """After all kills: who sent what, the builds the sandbox knows, and how many events it counts."""
    folder = tmp_path_factory.mktemp("kill")
    state, config = folder / "state", folder / "sandbox.toml"
    config.write_text(CONFIG)
    chance, senders = random.Random(11), Senders()
    for _ in range(KILLS):
        process, ready = _start(state, config)
        game = ready.organisations[0].games[0]
        asyncio.run(_kill_under_load(process, senders, ready, game, after_s=chance.uniform(0.0, 0.4)))
    with running_sandbox(state, config=config) as ready:
        httpx.post(f"{ready.console_url}/clock", json={"advance": "PT1H"})
        process_at(state)
        with Client(api_key=ready.organisations[0].api_key, metrics_url=ready.metrics_url) as client:
            counted = client.query("event_count", over=client.available(), every="all").event_count.sum()
    return senders, _builds(state), int(counted)


def _builds(state: Path) -> list[str]:
    """Every build in the lake: more than the service lists when there were many kills."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        files = [str(path) for path in Lake(state / "lake", store).snapshot("acme").days.values()]
    return [build for (build,) in duckdb.sql(f"SELECT DISTINCT build FROM read_parquet({files})").fetchall()]


async def _kill_under_load(
    process: subprocess.Popen[bytes], senders: Senders, ready: SandboxInfo, game: SandboxGame, *, after_s: float
) -> None:
    async def kill() -> None:
        await asyncio.sleep(after_s)
        process.kill()

    await asyncio.gather(senders.send(ready, game), kill())
    process.wait()


def test_nothing_acknowledged_is_lost(survivors: tuple[Senders, list[str], int]) -> None:
    """contract, Collector: a crash loses nothing acknowledged."""
    senders, builds, _ = survivors
    assert len(senders.acknowledged) > 10 * KILLS
    assert senders.acknowledged <= set(builds)


def test_nothing_is_counted_twice(survivors: tuple[Senders, list[str], int]) -> None:
    """contract, Collector: the same event_uuid of a game is stored once, however often it was sent."""
    _, builds, counted = survivors
    assert counted == len(builds)
