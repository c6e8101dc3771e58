"""Clients in front of a scripted metrics service."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from client.scripted import KEY, Script
from gamelens.client.metrics import Client


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


@pytest.fixture
def lens(make_lens: Callable[..., Client]) -> Client:
    return make_lens()
