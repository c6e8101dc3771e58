"""Clients in front of a scripted metrics service, and games in front of the sandbox's collector."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import keyring
import pytest

from conftest import Stage
from gamelens.client.sync_client import Client
from support.game_network import Game, Time, Wire
from support.memory_keyring import Drawer
from support.scripted_service import KEY, Script
from support.watched_service import World


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMELENS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def use() -> Iterator[Callable[[Drawer], Drawer]]:
    """Puts a keyring into use until the end of the test."""
    before = keyring.get_keyring()

    def put(drawer: Drawer) -> Drawer:
        keyring.set_keyring(drawer)
        return drawer

    yield put
    keyring.set_keyring(before)


@pytest.fixture
def script() -> Script:
    return Script()


_addresses = (f"http://127.0.0.1:{port}" for port in itertools.count(1))


@pytest.fixture
def make_lens(script: Script) -> Iterator[Callable[..., Client]]:
    """Clients of the script; each at an address of its own, and so with a budget of its own."""
    clients: list[Client] = []

    def make(app: Any = None, **options: Any) -> Client:
        pool = httpx.ASGITransport(app or script.app())
        options = {"api_key": KEY, "metrics_url": next(_addresses), "transport": pool} | options
        clients.append(Client(**options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One random population for all questions that change nothing."""
    stage = Stage(tmp_path_factory.mktemp("world") / "state")
    yield World.played(stage)
    stage.sandbox.close()


@pytest.fixture
def lens(make_lens: Callable[..., Client]) -> Client:
    return make_lens()


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The real collector, for all games: what each sends is seen on its own wire."""
    stage = Stage(tmp_path_factory.mktemp("games") / "state")
    yield stage.sandbox.collector
    stage.sandbox.close()


@pytest.fixture
def wire(collector: Any) -> Wire:
    return Wire(collector)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def game(wire: Wire, time: Time) -> Game:
    return Game(wire, time)
