"""The bounds of an answer: its size as sent and unpacked, and the time it takes to come."""

from __future__ import annotations

import asyncio
import gzip
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.connection.control_api import ControlApi
from gamelens.client.connection.response_body import DamagedBody, UnusableBody, read_body
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, RequestStats, Transport
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, ServiceError, Unreachable
from support.collector_load import gzip_of_zeros
from support.hypothesis_profiles import examples
from support.plain_server import PlainRequest, plain_server
from support.scripted_service import KEY

MIB = 1 << 20
INTERVAL = b'"2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"'
GAME: dict[str, Any] = {
    "game_key": "0123456789abcdef0123456789abcdef",
    "secret_key": "0123456789abcdef0123456789abcdef01234567",
}
Call = Callable[[str], object]


def read(pieces: Iterable[bytes], encoding: str = "gzip", *, max_bytes: int = MIB, is_lenient: bool = False) -> bytes:
    """Return the content of a body that arrives in *pieces*."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    content: list[bytes] = []

    async def run() -> None:
        content.append(await read_body(chunks(), encoding, max_bytes=max_bytes, is_lenient=is_lenient))

    asyncio.run(run())  # which would make the repr of a result
    return content[0]


@contextmanager
def at_most(mib: float) -> Iterator[None]:
    """Fail if Python's own memory grows by more than *mib* inside the context."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mib * MIB
    finally:
        tracemalloc.stop()


# -- unpacking --------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(members=st.lists(st.binary(max_size=400), min_size=1, max_size=4), cut=st.integers(1, 50))
def test_gzip_of_any_members_in_any_pieces_is_read(members: list[bytes], cut: int) -> None:
    """The content is that of all members, wherever the network cuts them (RFC 1952 2.2)."""
    body = b"".join(map(gzip.compress, members))
    assert read(body[start : start + cut] for start in range(0, len(body), cut)) == b"".join(members)


@pytest.mark.parametrize("size", [0, 1, 256 << 10, (256 << 10) + 1, MIB])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_content_up_to_the_bound_is_read(size: int, pack: Callable[[bytes], bytes]) -> None:
    """Content of the size of an unpacking step, one byte more, and of the bound is whole."""
    assert read([pack(bytes(size))]) == bytes(size)


@pytest.mark.parametrize("encoding", ["", "identity", "Identity"])
def test_a_plain_body_is_read_as_it_is(encoding: str) -> None:
    """A body without an encoding is its content."""
    assert read([b"ab", b"", b"c"], encoding) == b"abc"


def test_padding_after_gzip_is_ignored() -> None:
    """Zeros after the last member are not content, as for the gzip tool."""
    assert read([gzip.compress(b"abc") + bytes(512)]) == b"abc"


@pytest.mark.parametrize("keep", [1, 9, 15, -1])
def test_gzip_that_ends_early_is_damaged(keep: int) -> None:
    """A truncated member is damaged, whatever was unpacked before."""
    with pytest.raises(DamagedBody):
        read([gzip.compress(b"first") + gzip.compress(b"second, and longer")[:keep]])


def test_bytes_that_are_no_gzip_are_damaged() -> None:
    """Text under `Content-Encoding: gzip` is damaged."""
    with pytest.raises(DamagedBody):
        read([b"<html>"])


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    """Two layers of gzip among them: one small piece could otherwise fill the memory."""
    with pytest.raises(UnusableBody, match="which was not requested"):
        read([b"x"], encoding)


@pytest.mark.parametrize(("body", "encoding"), [(bytes(MIB + 1), ""), (gzip.compress(bytes(MIB + 1)), "gzip")])
def test_one_byte_more_than_the_bound_is_refused(body: bytes, encoding: str) -> None:
    """The bound counts as sent and as unpacked."""
    with pytest.raises(UnusableBody, match="more than 1 MiB"):
        read([body], encoding)


def test_a_body_that_unpacks_to_nothing_is_bounded_as_sent() -> None:
    """Empty members count with the bytes they take."""
    with pytest.raises(UnusableBody):
        read([gzip.compress(b"") * 1000] * 60, max_bytes=MIB)


def test_a_lenient_reader_returns_what_it_read() -> None:
    """Of a body that is too large or damaged the beginning is returned."""
    assert read([b"ab", b"cd"], "", max_bytes=3, is_lenient=True) == b"abc"
    assert read([b"x"], "br", is_lenient=True) == b""


def test_a_bomb_takes_no_more_memory_than_the_bound() -> None:
    """1 MB that unpacks to 1 GB takes the bound, some room to grow, and one step."""
    bomb = gzip_of_zeros(1000)
    with at_most(8 + 4), pytest.raises(UnusableBody, match="more than 8 MiB when unpacked"):
        read([bomb], max_bytes=8 * MIB)


def test_reading_in_pieces_does_not_double_the_memory() -> None:
    """16 MiB in pieces of 64 KiB take little more than 16 MiB."""
    with at_most(20):
        assert len(read((bytes(1 << 16) for _ in range(256)), "", max_bytes=16 * MIB)) == 16 * MIB


# -- over sockets -----------------------------------------------------------------------------------------------------


def endless(request: PlainRequest) -> None:
    """Send an answer that never ends, as fast as it is read."""
    request.begin(200)
    while True:
        request.wfile.write(bytes(MIB))


def bomb(request: PlainRequest) -> None:
    """Send a small answer that unpacks to 1 GB."""
    request.answer(200, gzip_of_zeros(1000), content_encoding="gzip")


def drip_body(request: PlainRequest) -> None:
    """Send the head of an answer at once, and its body one byte at a time."""
    request.begin(200, content_length="1000000")
    drip(request)


def drip_head(request: PlainRequest) -> None:
    """Send one byte of the head at a time."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    drip(request)


def drip(request: PlainRequest) -> None:
    """Send a byte every 50 ms, for a minute."""
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        request.wfile.write(b"1")
        time.sleep(0.05)


def drip_refusal(request: PlainRequest) -> None:
    """Refuse with 500, and send the reason one byte at a time."""
    request.begin(500, content_length="1000000")
    drip(request)


def available(url: str, **options: Any) -> None:
    """Read the available interval."""
    with Client(api_key=KEY, metrics_url=url, cache=False, **options) as lens:
        lens.available()


def submit(url: str, **options: Any) -> None:
    """Submit an empty batch to the collector."""

    async def run() -> None:
        async with CollectorClient(collector_url=url, **GAME, **options) as collector:
            await collector.submit(b"[]", attempts=2)

    asyncio.run(run())


def summary(url: str) -> None:
    """Read the summary of the control API, within 2.5 s."""

    async def run() -> None:
        async with ControlApi(f"{url}/token", within_s=2.5) as control:
            await control.summary()

    asyncio.run(run())


def failure(respond: Callable[[PlainRequest], None], call: Call) -> tuple[GamelensError, float, int]:
    """Return the error of *call* to a server, the seconds until then, and the number of requests."""
    with plain_server(respond) as server:
        began = time.monotonic()
        with pytest.raises(GamelensError) as failed:
            call(server.url)
        return failed.value, time.monotonic() - began, len(server.paths)


@pytest.mark.parametrize("respond", [endless, bomb])
def test_an_answer_beyond_the_bound_is_refused_after_one_request(respond: Callable[[PlainRequest], None]) -> None:
    """An answer without end and a bomb are a `ServiceError` that names the bound."""
    with at_most(24):
        error, _, requests = failure(respond, lambda url: available(url, max_answer_bytes=8 * MIB))
    assert isinstance(error, ServiceError)
    assert "more than 8 MiB" in str(error)
    assert "raise max_answer_bytes" in str(error)
    assert requests == 1


def test_the_bound_is_512_mib_for_tables_and_less_for_others() -> None:
    """A client reads 512 MiB; collector and control API answer no tables."""

    def bound(transport: Transport) -> int:
        return transport._max_answer_bytes

    lens = Client(api_key=KEY, metrics_url="https://a.example", cache=False)
    sender = lens._executor.service._transport
    assert isinstance(sender, Transport)
    assert bound(sender) == 512 * MIB
    assert bound(CollectorClient(collector_url="https://a.example", **GAME)._transport) == 64 * MIB
    assert bound(ControlApi("http://127.0.0.1:9/token")._transport) == 64 * MIB


def test_an_answer_within_the_bound_is_read() -> None:
    """The bound itself is allowed."""
    with plain_server(lambda request: request.answer(200, INTERVAL)) as server:
        available(server.url, max_answer_bytes=len(INTERVAL))


@pytest.mark.parametrize("max_answer_bytes", [0, -1, 1.5, "512", True])
def test_a_bound_that_is_none_is_refused(max_answer_bytes: Any) -> None:
    """`max_answer_bytes` is a whole number of 1 or more."""
    with pytest.raises(BadQuery, match="max_answer_bytes"):
        Client(api_key=KEY, metrics_url="https://a.example", max_answer_bytes=max_answer_bytes)


def test_gzip_is_asked_for_and_read() -> None:
    """The client asks for gzip alone, and reads it."""
    asked = []

    def respond(request: PlainRequest) -> None:
        asked.append(request.headers["Accept-Encoding"])
        request.answer(200, gzip.compress(INTERVAL), content_encoding="gzip")

    with plain_server(respond) as server:
        available(server.url)
    assert asked == ["gzip"]


def test_gzip_cut_short_is_requested_again() -> None:
    """A truncated gzip under a truthful Content-Length is a transient failure."""
    body = gzip.compress(INTERVAL)
    answers = [body[:-3], body]

    def respond(request: PlainRequest) -> None:
        request.answer(200, answers.pop(0), content_encoding="gzip")

    with plain_server(respond) as server:
        available(server.url)
        assert len(server.paths) == 2


@pytest.mark.parametrize("respond", [drip_head, drip_body, drip_refusal])
def test_a_request_ends_in_time_although_bytes_drip(respond: Callable[[PlainRequest], None]) -> None:
    """An answer that drips is given up after `max_wait_s`, not when it ends."""
    error, seconds, requests = failure(respond, lambda url: available(url, max_wait_s=2.5))
    assert isinstance(error, Unreachable)
    assert "within 2.5 s" in str(error)
    assert 2.4 < seconds < 10
    assert requests == 1


@pytest.mark.slow
@pytest.mark.parametrize("call", [lambda url: submit(url, max_wait_s=2.5), summary], ids=["collector", "control API"])
@pytest.mark.parametrize("respond", [drip_head, drip_body])
def test_other_clients_end_in_time_too(respond: Callable[[PlainRequest], None], call: Call) -> None:
    """The collector client and the control API give up a dripping answer as well."""
    error, seconds, _ = failure(respond, call)
    assert isinstance(error, Unreachable)
    assert "within 2.5 s" in str(error)
    assert 2.4 < seconds < 10


@pytest.mark.slow
def test_attempts_share_the_time() -> None:
    """After an answer that broke off, the next attempt has what is left of the time."""
    began = []

    def respond(request: PlainRequest) -> None:
        began.append(time.monotonic())
        request.begin(200, content_length="1000000")
        if len(began) == 1:
            time.sleep(3)
        else:
            drip(request)

    async def ask(url: str) -> None:
        transport = Transport(url, key=Secret(KEY), max_wait_s=6.0, random=lambda: 0.0)
        await transport.send(HttpRequest(method="GET", path="/"))

    error, _, requests = failure(respond, lambda url: asyncio.run(ask(url)))
    assert isinstance(error, Unreachable)
    assert requests == 2
    assert 1.9 < time.monotonic() - began[1] < 5


@pytest.mark.slow
def test_waiting_for_a_connection_takes_no_time_from_a_request() -> None:
    """Eight requests of 0.5 s over one connection succeed, though the last waits for 3.5 s."""

    def respond(request: PlainRequest) -> None:
        time.sleep(0.5)
        request.answer(200)

    async def ask_all(url: str) -> None:
        transport = Transport(url, key=Secret(KEY), max_wait_s=2.0, at_once=1)
        request = HttpRequest(method="GET", path="/", attempts=1)
        await asyncio.gather(*(transport.send(request, RequestStats()) for _ in range(8)))
        await transport.aclose()

    with plain_server(respond) as server:
        asyncio.run(ask_all(server.url))
        assert len(server.paths) == 8
