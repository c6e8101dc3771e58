"""What every test may ask for: the real sandbox in process, on a clock that stands still."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import settings

from gamelens.sandbox.clock import Clock
from gamelens.sandbox.server import Sandbox, SandboxOptions
from gamelens.sandbox.tenants import TenantGame
from gamelens.wire.signing import sign
from support.described_transport import DescribedTransport

# A busy machine makes nothing wrong that is only slow.
settings.register_profile("whole", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("whole")

_HEAVY = ("journey", "browser", "cli")
"""Folders whose tests start processes of their own."""

# A developer's keyring is nobody's test data; commands started by a test inherit this.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
CONFIG = """
[[organisation]]
name = "acme"
api_key = "key-of-acme"
  [[organisation.studio]]
  id = "s1"
  name = "North"
    [[organisation.studio.game]]
    id = "1001"
    title = "Tile Saga"
    game_key = "0123456789abcdef0123456789abcdef"
    secret_key = "0123456789abcdef0123456789abcdef01234567"
      [[organisation.studio.game.config]]
      key = "difficulty"
      value = "normal"
    [[organisation.studio.game]]
    id = "1002"
    title = "Tile Empire"
  [[organisation.studio]]
  id = "s2"
  name = "South"
    [[organisation.studio.game]]
    id = "2001"
    title = "Ember"
    [[organisation.studio.game]]
    id = "2002"
    title = "Live"
    environment = "production"
[[organisation]]
name = "rival"
api_key = "key-of-rival"
  [[organisation.studio]]
    [[organisation.studio.game]]
    id = "9001"
    [[organisation.studio.game]]
    id = "9002"
    environment = "production"
"""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast loop does not even import files that are slow as a whole, and what they need."""
    if config.option.markexpr == "not slow" and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker waits for another at the end."""
    items.sort(key=_lightness)


def _lightness(item: pytest.Item) -> int:
    if item.path.parent.name in _HEAVY:
        return 0
    return 1 if item.get_closest_marker("slow") else 2


def examples(many: int) -> int:
    """So *many* of those that hypothesis would try, where it tries a hundred by default."""
    return max(many * settings.default.max_examples // 100, 5)


def event(**fields: Any) -> dict[str, Any]:
    """A good event of a custom integration, with what *fields* change; None takes a field away."""
    base = {
        "category": "user",
        "v": 2,
        "user_id": "ann",
        "session_id": "11111111-1111-4111-8111-111111111111",
        "session_num": 1,
        "client_ts": int(NOW.timestamp()) - 3600,
        "sdk_version": "rest api v2",
        "os_version": "ios 17.0",
        "manufacturer": "apple",
        "device": "iPhone15,2",
        "platform": "ios",
        "build": "1.0",
        "country_code": "US",
    }
    return {name: value for name, value in (base | fields).items() if value is not None}


class Stage:
    """The sandbox in process: post to its collector, ask its metrics service."""

    def __init__(self, state: Path, *, tenants: str = CONFIG, **options: Any) -> None:
        self.clock = Clock()
        self.clock.freeze(NOW)
        config = state.parent / "sandbox.toml"
        config.write_text(tenants)
        options = {"refresh_s": 0, "rate": 10_000, "at_once": 10_000} | options
        self.sandbox = Sandbox(SandboxOptions(state=state, config=config, **options), clock=self.clock)
        self.metrics_app = self.sandbox.metrics.app()

    def game(self, game_id: str) -> TenantGame:
        return next(game for org in self.sandbox.tenants.organisations for game in org.games if game.id == game_id)

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        return _run(_request(self.sandbox.collector, "POST", path, content=body, headers=headers))

    def submit(self, events: Any, *, game_id: str = "1001", headers: dict[str, str] | None = None) -> httpx.Response:
        game = self.game(game_id)
        body = gzip.compress(json.dumps(events).encode())
        signed = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
        return self.post(f"/v2/{game.game_key}/events", body, signed | (headers or {}))

    def process(self) -> dict[str, str]:
        return _run(self.sandbox.process())

    def get(self, path: str, *, api_key: str = "key-of-acme", **query: Any) -> httpx.Response:
        headers = {"X-API-Key": api_key}
        return _run(_request(self.metrics_app, "GET", f"/metrics/v1/{path}", params=query, headers=headers))

    def ask(self, metric: str, *, api_key: str = "key-of-acme", **body: Any) -> httpx.Response:
        headers = {"X-API-Key": api_key}
        return _run(_request(self.metrics_app, "POST", f"/metrics/v1/metrics/{metric}", json=body, headers=headers))


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Clients of the tests take no places of a developer's real clients, and find no answers of theirs."""
    for name in ("RUNTIME", "CACHE"):
        os.environ[f"GAMELENS_{name}_DIR"] = str(tmp_path_factory.mktemp(name.lower()))


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(**options: Any) -> Stage:
        stages.append(Stage(tmp_path / "state", **options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.sandbox.close()


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def _request(app: Any, method: str, path: str, **arguments: Any) -> httpx.Response:
    transport = DescribedTransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, **arguments)
