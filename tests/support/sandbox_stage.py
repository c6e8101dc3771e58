"""The sandbox in process, with two organisations, on a clock that stands still."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import httpx

from gamelens.sandbox.collector.live_feed import RefusedRequest
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.tenants import TenantGame
from gamelens.wire.signing import sign
from support.app_requests import call
from support.game_events import NOW

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
"""The configuration file of a `Stage`."""
NO_EVENTS = {"accepted": 0, "rejected": 0, "pending": 0, "processed": 0, "duplicate": 0}
"""The `event_counts` of a new sandbox."""


class Stage:
    """A sandbox in process: its collector takes events, its metrics service answers queries."""

    makes_lake_anew = False
    """Whether `process` takes all events, so that a call between two others changes nothing."""

    def __init__(self, state: Path, *, tenants: str | None = CONFIG, **options: Any) -> None:
        self.clock = Clock()
        self.clock.freeze(NOW)
        config = state.parent / "sandbox.toml" if tenants else None
        if config and tenants:
            config.write_text(tenants)
        options = {"refresh_s": 0, "rate": 10_000, "concurrency": 10_000} | options
        self.sandbox = Sandbox(SandboxOptions(state=state, config=config, **options), clock=self.clock)
        self.metrics_app = self.sandbox.metrics.app()

    def game(self, game_id: str) -> TenantGame:
        """Return the game of any organisation that has *game_id*."""
        return next(game for org in self.sandbox.tenants.organisations for game in org.games if game.id == game_id)

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        """Post *body* to the collector as it is, without a signature."""
        return call(self.sandbox.collector, "POST", path, content=body, headers=headers)

    def submit(self, events: Any, *, game_id: str = "1001", headers: dict[str, str] | None = None) -> httpx.Response:
        """Submit *events* to the collector as a signed and gzipped batch."""
        game = self.game(game_id)
        body = gzip.compress(json.dumps(events).encode())
        signed = {"Authorization": sign(body, secret_key=game.secret_key)}
        described = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        return self.post(f"/v2/{game.game_key}/events", body, signed | described | (headers or {}))

    def process(self) -> dict[str, str]:
        """Run the processing of all events, and return the available intervals."""
        return asyncio.run(self.sandbox.process())

    def refused_requests(self) -> list[RefusedRequest]:
        """Return the requests that the collector refused as a whole, oldest first, each with its cause."""
        asyncio.run(self.sandbox.examine_refused())
        return self.sandbox.live.refused_after(0)

    def get(self, path: str, *, api_key: str = "key-of-acme", **query: Any) -> httpx.Response:
        """Get *path* of the metrics service, with *query* as query parameters."""
        headers = {"X-API-Key": api_key}
        return call(self.metrics_app, "GET", f"/metrics/v1/{path}", params=query, headers=headers)

    def ask(self, metric: str, *, api_key: str = "key-of-acme", **body: Any) -> httpx.Response:
        """Post a query of *metric* to the metrics service, with *body* as its fields."""
        headers = {"X-API-Key": api_key}
        return call(self.metrics_app, "POST", f"/metrics/v1/metrics/{metric}", json=body, headers=headers)


def event_counts(stage: Stage) -> dict[str, int]:
    """Return the numbers of events that the sandbox reports, by their state."""
    summary = stage.sandbox.summary()
    return {name: summary[name] for name in NO_EVENTS}


def metric_value(stage: Stage, metric: str = "event_count", **body: Any) -> Any:
    """Return the one value of *metric* over ten years, which include every event of a test."""
    query = {"interval": "2020-01-01/2030-01-01", "granularity": "all", "query": {"type": "timeseries"}} | body
    return stage.ask(metric, **query).json()["result"][0]["result"][metric]
