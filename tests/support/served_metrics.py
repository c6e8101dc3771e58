"""The sandbox's metrics service on a real socket, behind faults that a test chooses, at as many addresses as it likes.

Each address is a world of its own: its faults, its log of arrivals and, since the budget is shared by address, its own
5 requests a second.
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

from conftest import NOW, Stage, event
from gamelens.client.sync_client import Client
from gamelens.sandbox.control.fault_injection import App, FaultInjector, Message, Receive, Send, read_rule
from gamelens.sandbox.http.http_server import http_server

KEY = "key-of-acme"
DAYS = 120
METRICS = "/metrics/v1/metrics/*"


class Arrival(msgspec.Struct, frozen=True):
    """One request as it came in: when, and for what."""

    at: float
    path: str


class World:
    """What a client at one *address* meets; *key* is the only one that is known there, *seed* decides by chance."""

    def __init__(self, address: str, app: App, *, key: str = KEY, seed: int = 0) -> None:
        self.address = address
        self.arrivals: list[Arrival] = []
        self.answers: dict[str, App] = {}
        self._app = app
        self._key = key
        self._random = random.Random(seed).random
        self.heal()

    def fail(self, route: str = "*", **fault: Any) -> None:
        """One more fault rule, in the words of the control surface, behind those that are there."""
        self._faults.add(read_rule({"service": "metrics", "route": route, **fault}))

    def mix(self, *faults: dict[str, Any]) -> None:
        """Several faults that strike independently: of rules for the same route only the first would be asked."""
        for fault in faults:
            behind = FaultInjector(random=self._random)
            behind.add(read_rule({"service": "metrics", "route": METRICS, **fault}))
            self._faulted = behind.around("metrics", self._faulted)

    def last(self, good: int, route: str = "*", **fault: Any) -> None:
        """Answer *good* questions about metrics, and when these are answered none of *route* any more."""
        until = _Until(good, self._faulted)
        ended = FaultInjector(random=self._random)
        ended.add(read_rule({"service": "metrics", "route": route, **fault}))
        until.then = ended.around("metrics", self._faulted)
        self._faulted = until

    def heal(self) -> None:
        """No faults any more."""
        self.answers.clear()
        self._faults = FaultInjector(random=self._random)
        self._faulted = self._faults.around("metrics", self._answer)

    def client(self, **options: Any) -> Client:
        """A client of this world that keeps nothing, unless told otherwise."""
        return Client(**self.settings(**options))

    def settings(self, **options: Any) -> dict[str, Any]:
        """The same for a client of either face."""
        return {"api_key": self._key, "metrics_url": self.address, "cache": False, "progress": False} | options

    def arrived(self, part: str = "") -> int:
        """How many requests came for an address with *part* in it."""
        return sum(part in arrival.path for arrival in self.arrivals)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.arrivals.append(Arrival(time.monotonic(), scope["path"]))
        await self._faulted(scope, receive, send)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        """What a test says about the end of the path; else what the service says."""
        said = next((app for end, app in self.answers.items() if scope["path"].endswith(end)), self._app)
        mine = (b"x-api-key", self._key.encode())
        headers = [(b"x-api-key", KEY.encode()) if field == mine else field for field in scope["headers"]]
        await said({**scope, "headers": headers}, receive, send)


class _Until:
    """*before*, until it has answered so many questions about metrics; *then* from there on."""

    def __init__(self, good: int, before: App) -> None:
        self.then = before
        self._before = before
        self._left = good
        self._under_way = 0
        self._is_over = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
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
        """One more world."""
        name = f"w{len(self._worlds)}"
        self._worlds[name] = World(f"http://127.0.0.1:{self._port}/{name}", self._app, **options)
        return self._worlds[name]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        _, name, path = scope["path"].split("/", 2)
        await self._worlds[name]({**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}, receive, send)


@contextmanager
def served(state: Path) -> Iterator[Served]:
    """A populated sandbox, its metrics service on a free port for as long as this lasts."""
    stage = Stage(state)
    populate(stage)
    with serving(stage) as worlds:
        yield worlds


@contextmanager
def serving(stage: Stage) -> Iterator[Served]:
    """The metrics service of *stage* on a free port, and the end of *stage* afterwards."""
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
    """A few players of three games on each of so many days, no two days alike."""
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
