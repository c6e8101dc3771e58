"""Fixtures of the client's tests: scripted services, keyrings, populations and games."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import keyring
import pytest
from starlette.types import ASGIApp

from gamelens.client.sync_client import Client
from support.game_network import Game, Time, Wire
from support.memory_keyring import MemoryKeyring
from support.sandbox_stage import Stage
from support.scripted_service import KEY, Script
from support.watched_service import World


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache folder of its own."""
    monkeypatch.setenv("GAMELENS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def use() -> Iterator[Callable[[MemoryKeyring], MemoryKeyring]]:
    """Return a function that installs a keyring until the end of the test."""
    before = keyring.get_keyring()

    def put(ring: MemoryKeyring) -> MemoryKeyring:
        keyring.set_keyring(ring)
        return ring

    yield put
    keyring.set_keyring(before)


@pytest.fixture
def script() -> Script:
    """Return a metrics service whose answers the test chooses."""
    return Script()


_addresses = (f"http://127.0.0.1:{port}" for port in itertools.count(1))


@pytest.fixture
def make_lens(script: Script) -> Iterator[Callable[..., Client]]:
    """Return a factory of clients, each with an address and so a rate limiter of its own."""
    clients: list[Client] = []

    def make(app: ASGIApp | None = None, **options: Any) -> Client:
        pool = httpx.ASGITransport(app or script.app())
        defaults: dict[str, Any] = {"api_key": KEY, "metrics_url": next(_addresses), "transport": pool}
        clients.append(Client(**defaults | options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return one random population, shared by all queries that change nothing."""
    stage = Stage(tmp_path_factory.mktemp("world") / "state")
    yield World.played(stage)
    stage.sandbox.close()


@pytest.fixture
def lens(make_lens: Callable[..., Client]) -> Client:
    """Return a client of the scripted service."""
    return make_lens()


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ASGIApp]:
    """Return the sandbox's collector, shared by all games, each of which has its own wire."""
    stage = Stage(tmp_path_factory.mktemp("games") / "state")
    yield stage.sandbox.collector
    stage.sandbox.close()


@pytest.fixture
def wire(collector: ASGIApp) -> Wire:
    """Return a wire to the collector that a test can cut, script and inspect."""
    return Wire(collector)


@pytest.fixture
def time() -> Time:
    """Return a clock that only the test moves."""
    return Time()


@pytest.fixture
def game(wire: Wire, time: Time) -> Game:
    """Return a game whose sessions use the fixtures `wire` and `time`."""
    return Game(wire, time)
