"""Requests byte by byte: a sandbox's collector behind a real server, and what a socket to it hears."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

import uvloop

from conftest import Stage
from gamelens.sandbox.collector.collector_app import SERVICE_HEADERS
from gamelens.sandbox.http.http_connection import Deadlines
from gamelens.sandbox.http.http_server import http_server
from gamelens.wire.signing import sign
from sandbox.conftest import EVENTS

SECRET = "0123456789abcdef0123456789abcdef01234567"
SLOW = Deadlines(head_s=0.3, body_s=0.3, answer_s=0.6)
"""Short enough to wait for."""
_PATIENCE_S = 5.0


class Heard:
    """What came back over one connection until it was closed, or nothing more came."""

    def __init__(self, content: bytes, *, seconds: float, is_closed: bool) -> None:
        self.content = content
        self.seconds = seconds
        self.is_closed = is_closed

    @property
    def statuses(self) -> list[int]:
        """Of every answer, in their order."""
        return [int(part[:3]) for part in self.content.split(b"HTTP/1.1 ")[1:]]

    @property
    def head(self) -> dict[str, str]:
        """The headers of the last answer."""
        lines = self.content.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def body(self) -> bytes:
        """Of the last answer."""
        return self.content.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")[2]


class Port:
    """A server's port, and ways to talk to it."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def say(self, *parts: bytes | float, settles_s: float | None = None) -> Heard:
        """Send *parts*, pausing for as many seconds as a number among them says, and listen until it is closed.

        With *settles_s* an open connection is left when all is said and nothing has been heard for so long.
        """
        began = monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
        content = bytearray()
        listening = asyncio.create_task(_listen(reader, content))
        try:
            with suppress(ConnectionError):  # closed before all was said: what was heard until then counts
                for part in parts:
                    if isinstance(part, float):
                        await asyncio.sleep(part)
                    elif not writer.transport.is_closing():
                        writer.write(part)
                        await writer.drain()
            heard_bytes = -1
            while not listening.done() and heard_bytes < len(content) and monotonic() - began < _PATIENCE_S:
                heard_bytes = len(content) if settles_s else -1
                await asyncio.wait([listening], timeout=settles_s or _PATIENCE_S)
            return Heard(bytes(content), seconds=monotonic() - began, is_closed=listening.done())
        finally:
            listening.cancel()
            writer.close()


async def _listen(reader: asyncio.StreamReader, content: bytearray) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            content += piece


@asynccontextmanager
async def served(app: Any, *, deadlines: Deadlines = SLOW) -> AsyncIterator[Port]:
    """*app* on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = http_server(app, headers=SERVICE_HEADERS, deadlines=deadlines)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield Port(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving


def talk(app: Any, conversation: Callable[[Port], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Hold *conversation* with *app* on a port of its own."""

    async def hold() -> Any:
        async with served(app, **options) as port:
            return await conversation(port)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(hold())


def say(stage: Stage, *parts: bytes | float, deadlines: Deadlines = SLOW, **how: Any) -> Heard:
    """One connection to the collector of *stage*."""
    return talk(stage.sandbox.collector, lambda port: port.say(*parts, **how), deadlines=deadlines)


def request(
    body: bytes = b"[]", *headers: str, path: str = EVENTS, method: str = "POST", length: str | None = ""
) -> bytes:
    """A signed request; *length* is announced in place of the true one, None announces nothing."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: {sign(body, secret_key=SECRET)}", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length or len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
