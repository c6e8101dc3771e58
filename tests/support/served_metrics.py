"""The sandbox's metrics service on a real socket, behind faults that a test chooses.

It serves any number of addresses. Each is a world of its own with its own faults, its own log of arrivals and, since
the rate limiter is shared by address, its own 5 requests a second.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from gamelens.client.sync_client import Client
from gamelens.sandbox.control.fault_injection import App, AsgiMessage, FaultInjector, Receive, Send, read_rule
from gamelens.sandbox.http.http_server import http_server
from support.game_events import NOW, event
from support.sandbox_stage import Stage

KEY = "key-of-acme"
DAYS = 120
METRICS = "/metrics/v1/metrics/*"


class Arrival(msgspec.Struct, frozen=True):
    """One request: when it arrived, and its path."""

    at: float
    path: str


class World:
    """The service at one *address*, which accepts only *key*.

    Faults with a probability are drawn from *seed*.
    """

    def __init__(self, address: str, app: App, *, key: str = KEY, seed: int = 0) -> None:
        self.address = address
        self.arrivals: list[Arrival] = []
        self.answers: dict[str, App] = {}
        self._app = app
        self._key = key
        self._random = random.Random(seed).random
        self._faulted: App = self._answer
        self.heal()

    def fail(self, route: str = "*", **fault: Any) -> None:
        """Add a fault rule, in the words of the control API, behind the earlier ones."""
        self._faults.add(read_rule({"service": "metrics", "route": route, **fault}))

    def mix(self, *faults: dict[str, Any]) -> None:
        """Add faults that are drawn independently of each other and of earlier rules."""
        for fault in faults:
            behind = FaultInjector(random=self._random)
            behind.add(read_rule({"service": "metrics", "route": METRICS, **fault}))
            self._faulted = behind.around("metrics", self._faulted)

    def last(self, good: int, route: str = "*", **fault: Any) -> None:
        """Answer *good* metric requests, and once these are answered fail all of *route*."""
        until = _Until(good, self._faulted)
        ended = FaultInjector(random=self._random)
        ended.add(read_rule({"service": "metrics", "route": route, **fault}))
        until.then = ended.around("metrics", self._faulted)
        self._faulted = until

    def heal(self) -> None:
        """Remove all faults."""
        self.answers.clear()
        self._faults = FaultInjector(random=self._random)
        self._faulted = self._faults.around("metrics", self._answer)

    def client(self, **options: Any) -> Client:
        """Return a client of this world, without a cache unless *options* have one."""
        return Client(**self.settings(**options))

    def settings(self, **options: Any) -> dict[str, Any]:
        """Return the arguments of a sync or async client of this world."""
        return {"api_key": self._key, "metrics_url": self.address, "cache": False, "progress": False} | options

    def arrived(self, part: str = "") -> int:
        """Return how many requests arrived whose path contains *part*."""
        return sum(part in arrival.path for arrival in self.arrivals)

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        self.arrivals.append(Arrival(time.monotonic(), scope["path"]))
        await self._faulted(scope, receive, send)

    async def _answer(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer as the test says for the end of the path, else as the service does."""
        app = next((app for end, app in self.answers.items() if scope["path"].endswith(end)), self._app)
        key_header = (b"x-api-key", self._key.encode())
        headers = [(b"x-api-key", KEY.encode()) if field == key_header else field for field in scope["headers"]]
        await app({**scope, "headers": headers}, receive, send)


class _Until:
    """The app *before*, until it has answered *good* metric requests, then the app *then*."""

    def __init__(self, good: int, before: App) -> None:
        self.then = before
        self._before = before
        self._left = good
        self._under_way = 0
        self._is_over = asyncio.Event()

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if not fnmatchcase(scope["path"], METRICS):
            await (self.then if self._is_over.is_set() else self._before)(scope, receive, send)
        elif self._left:
            self._left -= 1
            self._under_way += 1
            await self._before(scope, receive, send)
            self._under_way -= 1
            if not self._left and not self._under_way:
                await asyncio.sleep(0.1)  # for the answers to be read
                self._is_over.set()
        else:
            await self._is_over.wait()
            await self.then(scope, receive, send)


class Served:
    """The service and its worlds."""

    def __init__(self, app: App, port: int) -> None:
        self._app = app
        self._port = port
        self._worlds: dict[str, World] = {}

    def world(self, **options: Any) -> World:
        """Return a new world."""
        name = f"w{len(self._worlds)}"
        self._worlds[name] = World(f"http://127.0.0.1:{self._port}/{name}", self._app, **options)
        return self._worlds[name]

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        _, name, path = scope["path"].split("/", 2)
        await self._worlds[name]({**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}, receive, send)


@contextmanager
def served(state: Path) -> Iterator[Served]:
    """Serve the metrics service of a populated sandbox on a free port."""
    stage = Stage(state)
    populate(stage)
    with serving(stage) as worlds:
        yield worlds


@contextmanager
def serving(stage: Stage) -> Iterator[Served]:
    """Serve the metrics service of *stage* on a free port, and close *stage* afterwards."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    worlds = Served(stage.metrics_app, listener.getsockname()[1])
    server = http_server(worlds)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=[listener]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worlds
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        listener.close()
        stage.sandbox.close()


def populate(stage: Stage) -> None:
    """Submit events of a few players of three games for each of `DAYS` days, all different."""
    chance = random.Random(7)
    for game_id in ("1001", "1002", "2001"):
        events = [
            event(
                user_id=f"{day + chance.randrange(5)}.{chance.randrange(3)}",  # back on a few days
                session_id=f"11111111-1111-4111-8111-{chance.randrange(10**12):012}",
                client_ts=int((NOW - timedelta(days=day, hours=2)).timestamp()),
                platform=chance.choice(("ios", "android")),
                country_code=chance.choice(("US", "DE", "NA", None)),
                build=chance.choice(("1.0", "1.1", "2.0")),
            )
            for day in range(DAYS)
            for _ in range(chance.randrange(1, 9))
        ]
        assert stage.submit(events, game_id=game_id).status_code == 200
    stage.process()
