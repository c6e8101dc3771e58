"""What the tests of the sandbox share: one request to any of its three apps, and its console."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import Stage
from gamelens.sandbox.control.control_app import console_app
from gamelens.wire.signing import sign
from support.described_transport import DescribedTransport

GAME_KEY = "0123456789abcdef0123456789abcdef"
EVENTS = f"/v2/{GAME_KEY}/events"
PATHS = [EVENTS, f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=%ff"]
"""One of each route of the collector."""
NOTHING = {"accepted": 0, "rejected": 0, "pending": 0, "processed": 0, "duplicate": 0}
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


def send_signed(stage: Stage, body: bytes, *, path: str = EVENTS, encoding: str | None = None) -> httpx.Response:
    """A signed body to the collector, which hears that it is encoded so."""
    headers: dict[str, Any] = {"Authorization": sign(body, secret_key=stage.game("1001").secret_key)}
    return stage.post(path, body, headers | ({"Content-Encoding": encoding.encode()} if encoding else {}))


def post_lines(stage: Stage, body: bytes, *lines: tuple[str, str]) -> httpx.Response:
    """Signed, with headers of which some may have the same name."""
    signed = ("Authorization", sign(body, secret_key=stage.game("1001").secret_key))
    return call(stage.sandbox.collector, "POST", EVENTS, content=body, headers=[*lines, signed])


@contextmanager
def full_disk(*, at_bytes: int) -> Iterator[None]:
    """No file of this process may grow past *at_bytes*."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def undecodable(error_type: str) -> list[Any]:
    """The answer to a body in which no event can be told from another."""
    return [{"errors": [{"error_type": error_type, "path": "/"}]}]


def number(stage: Stage, metric: str = "event_count", **body: Any) -> Any:
    """The one number of *metric* over all the time that tests play in."""
    asked = {"interval": "2020-01-01/2030-01-01", "granularity": "all", "query": {"type": "timeseries"}} | body
    return stage.ask(metric, **asked).json()["result"][0]["result"][metric]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One sandbox for all tests of a module in which nothing is stored."""
    stage = Stage(tmp_path_factory.mktemp("refused") / "state")
    yield stage
    stage.sandbox.close()


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
