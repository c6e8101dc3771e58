"""HTTP servers of the sandbox: several in one process, each reading in small portions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn

from gamelens.sandbox.http.http_connection import Connection, Deadlines, Headers
from gamelens.wire.limits import KIB

_PORTION_BYTES: Final = 32 * KIB


class _PortionReader(asyncio.BufferedProtocol):
    """Reads for a connection in small portions, into one *buffer* that all connections share.

    By default the event loop reads up to 256 kB at once for each connection, which adds up when many clients send.
    """

    def __init__(self, connection: Connection, buffer: memoryview) -> None:
        self._connection = connection
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.data_received(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()


class _QuietServer(uvicorn.Server):
    """A server that leaves signals to the caller: three servers share one process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def http_server(
    app: Any,
    *,
    headers: Headers = (),
    deadlines: Deadlines = Deadlines(),  # noqa: B008
    certificate: Path | None = None,
) -> uvicorn.Server:
    """Build a server for *app* that reads in small portions and keeps deadlines.

    Args:
        app: an ASGI application.
        headers: go with responses to input that never reaches *app*.
        deadlines: how long clients may take.
        certificate: PEM file with chain and key, for HTTPS; None for plain HTTP.
    """
    buffer = memoryview(bytearray(_PORTION_BYTES))

    def connection(**kwargs: Any) -> _PortionReader:
        return _PortionReader(Connection(deadlines=deadlines, headers=headers, **kwargs), buffer)

    return _QuietServer(
        uvicorn.Config(
            app,
            http=connection,  # type: ignore[arg-type]
            ws="none",
            ssl_certfile=certificate,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=10,
            proxy_headers=False,
        )
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop, or None for asyncio's own loop.

    uvloop answers about twice as many small requests and changes nothing else. It is not there on Windows.
    """
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
