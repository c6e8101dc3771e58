"""Over a real socket: broken answers become our errors, and the key shows nowhere (promise 12)."""

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
    """The address of a server that gives the *answers* in turn, the last for ever, each to a new connection."""
    left = list(answers)
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0) if len(left) > 1 else left[0])
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
    async def main() -> bytes:
        transport = Transport(address, key=Secret(KEY), random=lambda: 0.0)
        try:
            return (await transport.send(HttpRequest(method="GET", path="/"), tally)).body
        finally:
            await transport.aclose()

    return asyncio.run(main())


def test_an_answer_cut_short_is_a_service_error() -> None:
    with server(CUT) as address, pytest.raises(ServiceError, match="cut short"):
        send(address)


def test_an_answer_cut_short_is_asked_for_again() -> None:
    with server(CUT, GOOD) as address:
        assert send(address) == INTERVAL


def test_a_connection_that_breaks_is_unreachable_after_six_attempts() -> None:
    tally = RequestStats()
    with server(b"") as address, pytest.raises(Unreachable, match="broke"):
        send(address, tally)
    assert tally.requests == 6


def test_what_is_no_http_is_unreachable() -> None:
    with server(b"SSH-2.0-OpenSSH_9.6\r\n") as address, pytest.raises(GamelensError):
        send(address)


def ask(address: str) -> None:
    with Client(api_key=KEY, metrics_url=address) as lens:
        lens.available()


def refusal(address: str) -> AuthError:
    with pytest.raises(AuthError) as refused:
        ask(address)
    return refused.value


def test_no_log_line_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with server(GOOD) as address:
        ask(address)
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize("show", [str, repr, lambda error: "".join(traceback.format_exception(error))])
def test_no_error_holds_the_key(show: Callable[[object], str]) -> None:
    with server(REFUSED) as address:
        error = refusal(address)
    assert KEY not in show(error)


def test_not_even_a_traceback_with_locals_holds_the_key() -> None:
    with server(REFUSED) as address:
        error = refusal(address)
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in told.stack if frame.filename.startswith(_room())]
    assert ours
    assert KEY not in str([frame.locals for frame in ours])


def test_the_client_keeps_the_key_in_no_plain_attribute() -> None:
    lens = Client(api_key=KEY, metrics_url="https://a.example")
    assert KEY not in repr(vars(lens)) + repr(vars(lens._executor)) + repr(vars(lens._executor.service._transport))


def _room() -> str:
    import gamelens.client

    return str(gamelens.client.__path__[0])
