"""HTTP servers as this sandbox runs them: several in one process, which reads from everybody in small portions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn

from gamelens.sandbox.http.http_connection import Connection, Deadlines, Headers
from gamelens.wire.limits import KIB

_PORTION_BYTES: Final = 32 * KIB


class _Portions(asyncio.BufferedProtocol):
    """Reads for a connection in small portions, into one *buffer* for all of them.

    Left to itself the event loop reads as much as has come, up to 256 kB: times as many as send at once.
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
    """A server that leaves signals to us: three of them share one process."""

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
    """A server of *app*; *headers* go with the answers to what never reaches it, *certificate* is a file, for HTTPS."""
    buffer = memoryview(bytearray(_PORTION_BYTES))

    def connection(**given: Any) -> _Portions:
        return _Portions(Connection(deadlines=deadlines, headers=headers, **given), buffer)

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
