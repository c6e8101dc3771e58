"""HTTP byte by byte: an app behind the sandbox's server, and all that a socket receives."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, TypeVar

import uvloop

from gamelens.sandbox.http.http_server import http_server
from gamelens.wire.signing import sign
from support.collector_requests import EVENTS_PATH, SECRET_KEY

_TIMEOUT_S = 5.0

T = TypeVar("T")


class RawResponses:
    """The bytes of all responses on one connection, until it was closed or silent."""

    def __init__(self, content: bytes, *, seconds: float, is_closed: bool) -> None:
        self.content = content
        self.seconds = seconds
        self.is_closed = is_closed

    @property
    def statuses(self) -> list[int]:
        """The status of every response, in order."""
        return [int(part[:3]) for part in self.content.split(b"HTTP/1.1 ")[1:]]

    @property
    def head(self) -> dict[str, str]:
        """The headers of the last response."""
        lines = self.content.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def body(self) -> bytes:
        """The body of the last response."""
        return self.content.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")[2]


class Port:
    """The port of a server on this machine."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def send(self, *parts: bytes | float, settles_s: float | None = None) -> RawResponses:
        """Send *parts* over a new connection and read until the server closes it.

        A float among *parts* is a pause in seconds. With *settles_s* an open connection is left once all parts are
        sent and nothing has been received for as many seconds.
        """
        began = monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
        content = bytearray()
        reading = asyncio.create_task(_read_all(reader, content))
        try:
            with suppress(ConnectionError):  # the server may close it before all parts are sent
                for part in parts:
                    if isinstance(part, float):
                        await asyncio.sleep(part)
                    elif not writer.transport.is_closing():
                        writer.write(part)
                        await writer.drain()
            received_bytes = -1
            while not reading.done() and received_bytes < len(content) and monotonic() - began < _TIMEOUT_S:
                received_bytes = len(content) if settles_s else -1
                await asyncio.wait([reading], timeout=settles_s or _TIMEOUT_S)
            return RawResponses(bytes(content), seconds=monotonic() - began, is_closed=reading.done())
        finally:
            reading.cancel()
            writer.close()


async def _read_all(reader: asyncio.StreamReader, content: bytearray) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            content += piece


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[Port]:
    """Serve *app* on a free port inside the context."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = http_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield Port(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving


def run_served(app: Any, conversation: Callable[[Port], Coroutine[Any, Any, T]]) -> T:
    """Serve *app* on a free port, run *conversation* with it, and return the result."""

    async def run() -> T:
        async with served(app) as port:
            return await conversation(port)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def raw_request(
    body: bytes = b"[]", *headers: str, path: str = EVENTS_PATH, method: str = "POST", length: str | None = ""
) -> bytes:
    """Return the bytes of a signed request.

    *length* replaces the value of `Content-Length`; None leaves the header out.
    """
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: {sign(body, secret_key=SECRET_KEY)}", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length or len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
