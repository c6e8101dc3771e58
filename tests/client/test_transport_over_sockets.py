"""The transport over a real socket: broken connections, and where the key must not show."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, RequestStats, Transport
from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, GamelensError, ServiceError, Unreachable
from support.scripted_service import KEY

CUT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
INTERVAL = b'"2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"'
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(INTERVAL), INTERVAL)


@contextmanager
def server(*answers: bytes) -> Iterator[str]:
    """Yield the address of a server that gives *answers* in turn, the last for ever."""
    remaining = list(answers)
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(remaining.pop(0) if len(remaining) > 1 else remaining[0])
        await writer.drain()
        writer.close()

    listening = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(listening.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def send(address: str, tally: RequestStats | None = None) -> bytes:
    """Return the body of the response from *address*."""

    async def main() -> bytes:
        transport = Transport(address, key=Secret(KEY), random=lambda: 0.0)
        try:
            return (await transport.send(HttpRequest(method="GET", path="/"), tally)).body
        finally:
            await transport.aclose()

    return asyncio.run(main())


def test_an_answer_cut_short_is_a_service_error() -> None:
    """A body shorter than its Content-Length is a `ServiceError`."""
    with server(CUT) as address, pytest.raises(ServiceError, match="cut short"):
        send(address)


def test_an_answer_cut_short_is_requested_again() -> None:
    """A body shorter than its Content-Length is requested again."""
    with server(CUT, GOOD) as address:
        assert send(address) == INTERVAL


def test_a_connection_that_breaks_is_unreachable_after_six_attempts() -> None:
    """Six connections closed without an answer raise `Unreachable`."""
    tally = RequestStats()
    with server(b"") as address, pytest.raises(Unreachable, match="broke"):
        send(address, tally)
    assert tally.requests == 6


def test_a_server_of_another_protocol_is_an_error() -> None:
    """An answer that is not HTTP is a `GamelensError`."""
    with server(b"SSH-2.0-OpenSSH_9.6\r\n") as address, pytest.raises(GamelensError):
        send(address)


def read_interval(address: str) -> None:
    """Read the available interval at *address*."""
    with Client(api_key=KEY, metrics_url=address) as lens:
        lens.available()


def refusal(address: str) -> AuthError:
    """Return the error of a refused key."""
    with pytest.raises(AuthError) as refused:
        read_interval(address)
    return refused.value


def test_no_log_line_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    """No log line at level DEBUG contains the key."""
    caplog.set_level(logging.DEBUG)
    with server(GOOD) as address:
        read_interval(address)
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize("show", [str, repr, lambda error: "".join(traceback.format_exception(error))])
def test_no_error_holds_the_key(show: Callable[[object], str]) -> None:
    """No text, repr or traceback of an error contains the key."""
    with server(REFUSED) as address:
        error = refusal(address)
    assert KEY not in show(error)


def test_no_traceback_with_locals_holds_the_key() -> None:
    """A traceback that prints the locals of our frames does not contain the key."""
    with server(REFUSED) as address:
        error = refusal(address)
    details = traceback.TracebackException.from_exception(error, capture_locals=True)
    own_frames = [frame for frame in details.stack if frame.filename.startswith(_room())]
    assert own_frames
    assert KEY not in str([frame.locals for frame in own_frames])


def test_the_client_keeps_the_key_in_no_plain_attribute() -> None:
    """No attribute of the client or its parts has the key in its repr."""
    lens = Client(api_key=KEY, metrics_url="https://a.example")
    assert KEY not in repr(vars(lens)) + repr(vars(lens._executor)) + repr(vars(lens._executor.service._transport))


def _room() -> str:
    """Return the folder of the client's modules."""
    import gamelens.client

    return str(gamelens.client.__path__[0])
