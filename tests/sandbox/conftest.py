"""What the tests of the sandbox share: one request to any of its three apps, and its console."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import Stage
from described import DescribedTransport
from gamelens.sandbox.console import console_app

GAME_KEY = "0123456789abcdef0123456789abcdef"
Call = Callable[..., httpx.Response]


async def send(app: Any, method: str, path: str, *, base_url: str = "http://127.0.0.1", **arguments: Any) -> Any:
    """One request to an app in process."""
    transport = DescribedTransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
        return await client.request(method, path, **arguments)


def call(app: Any, method: str, path: str, **arguments: Any) -> httpx.Response:
    """The same, to its end."""
    return asyncio.run(send(app, method, path, **arguments))


def counted(stage: Stage) -> dict[str, int]:
    """What the sandbox says it has received."""
    summary = stage.sandbox.summary()
    return {name: summary[name] for name in ("accepted", "rejected", "pending", "processed", "duplicate")}


def number(stage: Stage, metric: str = "event_count", **body: Any) -> Any:
    """The one number of *metric* over all the time that tests play in."""
    asked = {"interval": "2020-01-01/2030-01-01", "granularity": "all", "query": {"type": "timeseries"}} | body
    return stage.ask(metric, **asked).json()["result"][0]["result"][metric]


@pytest.fixture
def console(stage: Stage) -> Call:
    """Requests to the console of *stage*, behind its token."""
    app = console_app(stage.sandbox, token="token")

    def ask(method: str, path: str, **arguments: Any) -> httpx.Response:
        return call(app, method, f"/token{path}", **arguments)

    return ask


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory of a test's own, apart from that of `stage`."""
    path = tmp_path / "own"
    path.mkdir()
    return path
