"""Games connected to the sandbox's collector by a wire that tests cut, script and inspect."""

from __future__ import annotations

import asyncio
import functools
import gzip
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
from starlette.types import ASGIApp

from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.events.player_session import PlayerSession
from support.game_events import NOW

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef01234567"
KEYS: dict[str, Any] = {"collector_url": "http://127.0.0.1", "game_key": GAME_KEY, "secret_key": SECRET_KEY}
ANN: dict[str, Any] = {"user_id": "ann", "platform": "ios", "os_version": "ios 17.0"}


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the coroutine function *test* on an event loop of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


async def until(is_met: Callable[[], object]) -> None:
    """Wait until *is_met*, however slow the machine is."""
    async with asyncio.timeout(60):
        while not is_met():  # noqa: ASYNC110 - nothing tells when a client has used an answer
            await asyncio.sleep(0.01)


class Sent:
    """A request as it was sent, its decoded content, and the status of its response."""

    def __init__(self, request: httpx.Request) -> None:
        self.route = {"/v2": "events", "/re": "init"}[request.url.path[:3]]
        self.route = "init_v2" if request.url.path.endswith(f"{GAME_KEY}/init") else self.route
        self.path = request.url.path
        self.params = dict(request.url.params)
        self.headers = dict(request.headers)
        self.body = request.content
        zipped = self.headers.get("content-encoding") == "gzip"
        self.content = json.loads(gzip.decompress(self.body) if zipped else self.body)
        self.status = 0


class Wire:
    """A connection to *app* that may be down, held back, or scripted by route.

    Attributes:
        is_down: whether connecting fails.
        gate: an event that responses wait for.
        hanging: routes that never answer.
        gates: events that the answers to requests from now on wait for, by route.
        failing_users: players whose events are answered 500.
        takes_bytes: the largest body that is not answered 413.
        takes_events: the largest batch that is not answered 413.
        retry_after_s: the `Retry-After` header of scripted responses.
        script: statuses and bodies to answer next, by route. Status 0 is not an answer.
        sent: all requests so far.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = httpx.ASGITransport(app)
        self.is_down = False
        self.gate: asyncio.Event | None = None
        self.hanging: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.failing_users: set[str] = set()
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
        if sent.route in self.hanging:
            await asyncio.Event().wait()
        if sent.route in self.gates:
            await self.gates[sent.route].wait()
        response = await self._answer(request, sent)
        sent.status = response.status_code
        return response

    async def aclose(self) -> None:
        """Keep the connection for the next client."""

    async def _answer(self, request: httpx.Request, sent: Sent) -> httpx.Response:
        if self.script[sent.route]:
            status, body = self.script[sent.route].pop(0)
            if not status:
                raise httpx.ReadTimeout("no answer")
            waits = {"retry-after": str(self.retry_after_s)} if self.retry_after_s is not None else {}
            return httpx.Response(status, content=body, headers=waits)
        if sent.route == "events" and self.failing_users & {event.get("user_id") for event in sent.content}:
            return httpx.Response(500, content=b'{"message":"try again"}')
        if _is_over(len(sent.body), self.takes_bytes) or _is_over(len(sent.content), self.takes_events):
            return httpx.Response(413, content=b'{"message":"too large"}')
        return await self._app.handle_async_request(request)

    def of(self, route: str) -> list[Sent]:
        """Return the requests of *route*: events, init or init_v2."""
        return [sent for sent in self.sent if sent.route == route]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events of all requests that were answered 200, in order."""
        return [event for sent in self.of("events") if sent.status == 200 for event in sent.content]

    @property
    def categories(self) -> list[str]:
        """Categories of the collected events, in order."""
        return [event["category"] for event in self.events]

    def collector(self, **options: Any) -> CollectorClient:
        """Return a collector client that sends through this wire."""
        return CollectorClient(transport=self, **(KEYS | options))


def _is_over(size: int, limit: int | None) -> bool:
    return limit is not None and size > limit


class Time:
    """A clock that tests move, which wakes the tasks that sleep on it."""

    def __init__(self) -> None:
        self.now_s = NOW.timestamp()
        self.pauses: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Event()
        self._uuids = (f"00000000-0000-4000-8000-{number:012x}" for number in itertools.count(1))

    def clock(self) -> float:
        """Return the time in seconds since 1970."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Sleep until the clock is moved by *seconds*."""
        self.pauses.append(seconds)
        self._slept.set()
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now_s + seconds, woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Move the clock by *seconds*, and wake the tasks whose time has come."""
        self.now_s += seconds
        for wake_s, woken in self._sleepers:
            if wake_s <= self.now_s and not woken.done():
                woken.set_result(None)

    async def wait_for_pause(self, number: int) -> float:
        """Wait until a task sleeps for the *number*th time, and return how long."""
        async with asyncio.timeout(5):
            while len(self.pauses) < number:
                self._slept.clear()
                await self._slept.wait()
        return self.pauses[number - 1]

    def seams(self, **options: Any) -> dict[str, Any]:
        """Return clock, sleep, chance and ids for a session or a server."""
        seams = {
            "clock": self.clock,
            "sleep": self.sleep,
            "random": lambda: 0.5,
            "make_uuid": lambda: next(self._uuids),
        }
        return seams | options


class Game:
    """A game of the player "ann" at one collector."""

    def __init__(self, wire: Wire, time: Time) -> None:
        self.wire = wire
        self.time = time

    def session(self, **options: Any) -> PlayerSession:
        """Return a new session of ann."""
        return PlayerSession(self.wire.collector(), **(ANN | self.time.seams() | options))
