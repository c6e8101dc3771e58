"""What the sandbox's connections rely on in uvicorn that uvicorn does not document.

`pyproject.toml` bounds uvicorn to versions in which this holds. Before the bound moves, this runs on the new version: a
failure here names what changed, where the tests of connections would only hang or answer strangely.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

REQUEST = b"GET /path HTTP/1.1\r\nhost: here\r\n\r\n"
CALLBACKS = {
    *("connection_made", "connection_lost", "eof_received", "data_received", "pause_writing", "resume_writing"),
    *("on_message_begin", "on_headers_complete", "on_body", "on_message_complete"),
}
"""Methods that connections extend, called by the event loop and by the parser."""


class Wire(asyncio.Transport):
    """A transport that remembers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_reading_paused = False
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer every request with nothing."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def connected(test: Callable[[HttpToolsProtocol, Wire], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Give a test a protocol of `answer`, made as a server makes it, and its transport."""

    async def run() -> None:
        protocol = HttpToolsProtocol(
            config=uvicorn.Config(answer, ws="none", lifespan="off", log_config=None, proxy_headers=False),
            server_state=ServerState(),
            app_state={},
            _loop=asyncio.get_running_loop(),
        )
        wire = Wire()
        protocol.connection_made(wire)
        await test(protocol, wire)
        protocol.connection_lost(None)

    def call() -> None:
        asyncio.run(run())

    call.__name__, call.__doc__ = test.__name__, test.__doc__
    return call


@connected
async def test_a_connection_has_what_we_read_and_set(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """Transport, loop, scheme and flow of a connection; headers, URL, scope and cycle of a request."""
    protocol.data_received(REQUEST)
    assert protocol.transport is wire
    assert protocol.loop is asyncio.get_running_loop()
    assert protocol.scheme == "http"
    assert protocol.flow.read_paused is False
    assert protocol.url == b"/path"
    assert protocol.headers == [(b"host", b"here")]
    assert protocol.cycle.scope is protocol.scope
    assert protocol.server_state.connections == {protocol}
    assert isinstance(protocol.parser, httptools.HttpRequestParser)


@connected
async def test_the_application_starts_after_the_headers_are_complete(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """So extensions can still be added to its scope, and headers of a trailer kept from it."""
    protocol.data_received(REQUEST)
    assert wire.written == b""
    assert (protocol.cycle.keep_alive, protocol.cycle.response_started) == (True, False)
    protocol.headers = []
    assert protocol.cycle.scope["headers"] == [(b"host", b"here")]
    await asyncio.sleep(0)
    assert wire.written.startswith(b"HTTP/1.1 204 ")
    assert protocol.cycle.response_complete


@connected
async def test_a_second_request_waits_in_the_pipeline(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """And reading stops until its turn comes."""
    protocol.data_received(REQUEST * 2)
    assert len(protocol.pipeline) == 1
    assert wire.is_reading_paused
    assert protocol.flow.read_paused
    for _ in range(2):
        await asyncio.sleep(0)
    assert wire.written.count(b"HTTP/1.1 204 ") == 2
    assert not wire.is_reading_paused


@connected
async def test_reading_can_be_paused_by_us(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """For a request that is refused while others are still answered."""
    protocol.flow.pause_reading()
    assert wire.is_reading_paused


@connected
async def test_without_keep_alive_the_answer_says_so(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """A flag of the cycle, which may be set until the answer starts (since 0.53)."""
    protocol.data_received(REQUEST)
    protocol.cycle.keep_alive = False
    await asyncio.sleep(0)
    assert b"connection: close" in wire.written
    assert wire.is_closed


@connected
async def test_the_timer_of_an_idle_connection_can_be_stopped(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """By a private method, which our `data_received` calls as theirs does."""
    protocol.data_received(REQUEST)
    await asyncio.sleep(0)
    assert protocol.timeout_keep_alive_task is not None
    protocol._unset_keepalive_if_required()
    assert protocol.timeout_keep_alive_task is None


@connected
async def test_a_body_may_come_as_a_view_of_a_buffer(protocol: HttpToolsProtocol, wire: Wire) -> None:
    """Portions are read into one buffer for all connections, so nothing may hold on to it."""
    buffer = bytearray(b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody")
    protocol.data_received(memoryview(buffer))  # type: ignore[arg-type]
    buffer[:] = b"x" * len(buffer)
    assert protocol.cycle.body == b"body"
    assert protocol.cycle.more_body is False


def test_the_methods_that_we_extend_are_there() -> None:
    """A renamed one would never be called."""
    assert {name for name in CALLBACKS if name in vars(HttpToolsProtocol)} == CALLBACKS


def test_a_server_makes_protocols_with_keywords() -> None:
    """These four; ours passes them on."""
    assert [*inspect.signature(HttpToolsProtocol).parameters] == ["config", "server_state", "app_state", "_loop"]
    source = inspect.getsource(uvicorn.Server)
    assert all(f"{name}=" in source for name in ("config", "server_state", "app_state", "_loop"))


def test_a_server_takes_a_factory_as_its_protocol() -> None:
    """In place of a class or a name."""

    def factory(**given: Any) -> asyncio.Protocol:
        return HttpToolsProtocol(**given)

    config = uvicorn.Config(answer, http=factory, ws="none", log_config=None)  # type: ignore[arg-type]
    config.load()
    assert config.http_protocol_class is factory


def test_a_server_handles_signals_where_we_can_turn_that_off() -> None:
    """A context manager around all that it does."""
    server = uvicorn.Server(uvicorn.Config(answer, log_config=None))
    assert isinstance(server.capture_signals(), AbstractContextManager)
    assert "self.capture_signals()" in inspect.getsource(uvicorn.Server.serve)


def test_a_server_says_when_it_has_started() -> None:
    """And stops when told, by attributes."""
    server = uvicorn.Server(uvicorn.Config(answer, log_config=None))
    assert (server.started, server.should_exit) == (False, False)


@pytest.mark.parametrize("name", ["ssl_certfile", "server_header", "proxy_headers", "timeout_graceful_shutdown"])
def test_a_server_has_the_options_that_we_set(name: str) -> None:
    """By these names."""
    assert name in inspect.signature(uvicorn.Config).parameters
