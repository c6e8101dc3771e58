"""A game in front of the sandbox: time that stands still, and a wire that can be cut, scripted and listened to."""

from __future__ import annotations

import asyncio
import functools
import gzip
import itertools
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from conftest import NOW
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.player_session import PlayerSession

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef01234567"
KEYS = {"collector_url": "http://127.0.0.1", "game_key": GAME_KEY, "secret_key": SECRET_KEY}
ANN = {"user_id": "ann", "platform": "ios", "os_version": "ios 17.0"}


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """*test* on an event loop of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))  # type: ignore[arg-type]

    return run


class Sent:
    """A request as it went over the wire, and the status that came back."""

    def __init__(self, request: httpx.Request) -> None:
        self.route = {"/v2": "events", "/re": "init"}[request.url.path[:3]]
        self.route = "init_v2" if request.url.path.endswith(f"{GAME_KEY}/init") else self.route
        self.path = request.url.path
        self.params = dict(request.url.params)
        self.headers = dict(request.headers)
        self.body = request.content
        zipped = self.headers.get("content-encoding") == "gzip"
        self.said = json.loads(gzip.decompress(self.body) if zipped else self.body)
        self.status = 0


class Wire:
    """Carries requests to *app*, once the gate is open, unless it is down or a script has an answer for the route."""

    def __init__(self, app: Any) -> None:
        self._app = httpx.ASGITransport(app)
        self.is_down = False
        self.gate: asyncio.Event | None = None
        self.takes_bytes: int | None = None
        self.takes_events: int | None = None
        self.retry_after_s: int | None = None
        self.script: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self.sent: list[Sent] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("down")
        sent = Sent(request)
        self.sent.append(sent)
        if self.gate is not None:
            await self.gate.wait()
        response = await self._answer(request, sent)
        sent.status = response.status_code
        return response

    async def _answer(self, request: httpx.Request, sent: Sent) -> httpx.Response:
        if self.script[sent.route]:
            status, body = self.script[sent.route].pop(0)
            waits = {"retry-after": str(self.retry_after_s)} if self.retry_after_s is not None else {}
            return httpx.Response(status, content=body, headers=waits)
        if _is_over(len(sent.body), self.takes_bytes) or _is_over(len(sent.said), self.takes_events):
            return httpx.Response(413, content=b'{"message":"too large"}')
        return await self._app.handle_async_request(request)

    def of(self, route: str) -> list[Sent]:
        return [sent for sent in self.sent if sent.route == route]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events of requests that were answered 200, in order."""
        return [event for sent in self.of("events") if sent.status == 200 for event in sent.said]

    @property
    def categories(self) -> list[str]:
        return [event["category"] for event in self.events]

    def collector(self, **options: Any) -> CollectorClient:
        return CollectorClient(transport=self, **(KEYS | options))


def _is_over(size: int, limit: int | None) -> bool:
    return limit is not None and size > limit


class Time:
    """A clock that a test moves; whoever sleeps is woken by it."""

    def __init__(self) -> None:
        self.now_s = NOW.timestamp()
        self.pauses: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Event()
        self._uuids = (f"00000000-0000-4000-8000-{number:012x}" for number in itertools.count(1))

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._slept.set()
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now_s + seconds, woken))
        await woken

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds
        for wake_s, woken in self._sleepers:
            if wake_s <= self.now_s and not woken.done():
                woken.set_result(None)

    async def pauses_are(self, number: int) -> float:
        """Wait until somebody sleeps for the *number*th time; how long."""
        async with asyncio.timeout(5):
            while len(self.pauses) < number:
                self._slept.clear()
                await self._slept.wait()
        return self.pauses[number - 1]

    def seams(self, **options: Any) -> dict[str, Any]:
        """Time and chance for a session or a server."""
        seams = {
            "clock": self.clock,
            "sleep": self.sleep,
            "random": lambda: 0.5,
            "make_uuid": lambda: next(self._uuids),
        }
        return seams | options


class Game:
    """Makes sessions of ann at one collector."""

    def __init__(self, wire: Wire, time: Time) -> None:
        self.wire = wire
        self.time = time

    def session(self, **options: Any) -> PlayerSession:
        return PlayerSession(self.wire.collector(), **(ANN | self.time.seams() | options))
