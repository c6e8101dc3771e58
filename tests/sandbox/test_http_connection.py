"""HTTP connections of any kind: slow, broken and endless ones (Wire 1.2, Connections)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from gamelens.sandbox.http.http_connection import Deadlines
from support.raw_sockets import SHORT_DEADLINES, Port, RawResponses, raw_request, run_served, send_to_collector
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

Parts = list[bytes | float]
"""Bytes to send, and pauses in seconds between them."""

GOOD = raw_request(b"[]")
CHUNKED = raw_request(b"[]", "Transfer-Encoding: chunked", length=None)[:-2]
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
LARGE_BYTES = 32 << 20
ALLOWED_S = 2.0  # beyond a deadline of 0.3 s, on a busy machine


def in_drops(content: bytes) -> Parts:
    """Return the bytes of *content* one by one, with a pause after each."""
    return [part for byte in content for part in (bytes([byte]), 0.06)]


NOT_HTTP: dict[str, Parts] = {
    "words": [b"hello there\r\n\r\n"],
    "TLS": [bytes.fromhex("1603010200010001fc0303")],
    "HTTP/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "no such method": [GOOD.replace(b"POST", b"FETCH", 1)],
    "CONNECT": [b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"],
    "no path": [b"POST ?game_key=1 HTTP/1.1\r\nHost: x\r\n\r\n"],
    "a path beyond ASCII": [GOOD.replace(b"/events", "/évents".encode(), 1)],
    "negative length": [raw_request(length="-1")],
    "length in words": [raw_request(length="many")],
    "length with a sign": [raw_request(length="+2")],
    "length past every integer": [raw_request(length="9" * 40)],
    "two lengths": [raw_request(b"[]", "Content-Length: 3")],
    "length and chunks": [raw_request(b"[]", "Transfer-Encoding: chunked")],
    "chunk of no size": [CHUNKED + b"zz\r\n[]\r\n"],
    "chunk of negative size": [CHUNKED + b"-2\r\n[]\r\n"],
    "chunk past every integer": [CHUNKED + b"f" * 40 + b"\r\n[]\r\n"],
    "chunk longer than its size": [CHUNKED + b"1\r\n[]\r\n"],
    "NUL in a header": [raw_request(b"[]", "X: a\0b")],
    "a header without a name": [raw_request(b"[]", ": x")],
    "a folded header": [raw_request(b"[]", "X: a\r\n b")],
    "bare line feeds": [GOOD.replace(b"\r\n", b"\n")],
}
TOO_LONG: dict[str, Parts] = {
    "address": [GOOD.replace(b"/events", b"/events?" + b"x" * 70_000, 1)],
    "header": [raw_request(b"[]", "X: " + "y" * 70_000)],
    "headers": [raw_request(b"[]", *["a: b"] * 14_000)],
    "header without end": [GOOD[:-4], *[b"y" * 10_000] * 30],
    "trailer without end": [CHUNKED, b"2\r\n[]\r\n0\r\nX: ", *[b"y" * 10_000] * 30],
    "chunk extension without end": [CHUNKED, b"2;", *[b"y" * 10_000] * 30],
}
LATE: dict[str, tuple[Parts, list[int]]] = {
    "nothing": ([], []),
    "blank lines": (in_drops(b"\r\n" * 10), []),
    "half a head": ([GOOD[:40]], [408]),
    "a head by drops": (in_drops(GOOD[:20]), [408]),
    "half a body": ([GOOD[:-1]], [408]),
    "a body by drops": ([raw_request(b"[" * 40)[:-40], *in_drops(b"[" * 20)], [408]),
    "a body that was announced too long": ([raw_request(length="10")], [408]),
    "a large body that stops": ([raw_request(b"x" * 500_000)[:-1]], [408]),
    "chunks without end": ([CHUNKED, b"2\r\n[]\r\n"], [408]),
    "chunks by drops": ([CHUNKED, *in_drops(b"1\r\n[\r\n" * 4)], [408]),
    "a large body announced and never sent": ([raw_request(b"", length="5000000")], [408]),
    "a continue that is not continued": ([raw_request(b"", "Expect: 100-continue", length="2")], [100, 408]),
    "blank lines after a request": ([GOOD, *in_drops(b"\r\n" * 10)], [200]),
    "half a second request": ([GOOD, 0.1, GOOD[:40]], [200, 408]),
    "a body for an unknown address": ([raw_request(b"[" * 40, path="/x")[:-40], *in_drops(b"[" * 20)], [404]),
}
UNUSUAL: dict[str, tuple[Parts, list[int]]] = {
    "several at once": ([GOOD * 3], [200, 200, 200]),
    "two in four pieces": ([GOOD[:30], 0.02, GOOD[30:] + GOOD[:60], 0.02, GOOD[60:]], [200, 200]),
    "blank lines before and behind": ([b"\r\n\r\n" + GOOD + b"\r\n"], [200]),
    "60 kB of headers": ([raw_request(b"[]", *["X: " + "y" * 997] * 60)], [200]),
    "chunks": ([CHUNKED + b"1\r\n[\r\n1;ext=1\r\n]\r\n0\r\n\r\n"], [200]),
    "a trailer is no header": ([CHUNKED + b"2\r\n[]\r\n0\r\nContent-Encoding: br\r\nAuthorization: x\r\n\r\n"], [200]),
    "neither length nor chunks": ([raw_request(b"", length=None)], [400]),
    "whole address": ([GOOD.replace(b"/v2", b"http://127.0.0.1/v2", 1)], [200]),
    "escapes that are none": ([GOOD.replace(b"/events", b"/%ff%zz%00", 1)], [404]),
    "OPTIONS *": ([b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"], [404]),
    "HEAD": ([raw_request(b"", method="HEAD")], [405]),
    "an unknown expectation": ([raw_request(b"[]", "Expect: 200-maybe")], [200]),
    "continue": ([raw_request(b"[]", "Expect: 100-continue")], [100, 200]),
    "h2c offered": ([raw_request(b"[]", *UPGRADE) * 2], [200, 200]),
    "h2c offered in pieces": ([raw_request(b"[]", *UPGRADE)[:-1], 0.05, b"]"], [200]),
    "h2c offered with chunks": (
        [raw_request(b"", *UPGRADE, "Transfer-Encoding: chunked", length=None), b"0\r\n\r\n", GOOD],
        [400, 200],
    ),
    "WebSocket requested": ([raw_request(b"", "Connection: Upgrade", "Upgrade: websocket", method="GET")], [405]),
    "one byte more than 1 MB": ([raw_request(b" " * 1_048_577), GOOD], [413, 200]),
    "4 MB": ([raw_request(b" " * (4 << 20)), GOOD], [413, 200]),
}
LAST: dict[str, tuple[Parts, list[int]]] = {
    "HTTP/1.0": ([GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")], [200]),
    "close": ([raw_request(b"[]", "Connection: close")], [200]),
    "close and more": ([raw_request(b"[]", "Connection: close") + GOOD], [200]),
    "good and then garbage": ([GOOD + b"garbage\r\n\r\n"], [200]),
    "a body shorter than sent": ([raw_request(b"[]", length="1")], [401]),
    "too much announced, asking first": ([raw_request(b"", "Expect: 100-continue", length="1048577")], [413]),
    "much too much": ([raw_request(b"", length="99999999"), *[b" " * 500_000] * 10], [413]),
}


def send_table(
    app: Any,
    table: Mapping[str, tuple[Parts, list[int]]],
    *,
    settles_s: float | None = None,
    deadlines: Deadlines = SHORT_DEADLINES,
) -> dict[str, RawResponses]:
    """Send every case of *table* at once, and return the responses by case."""

    async def conversation(port: Port) -> dict[str, RawResponses]:
        responses = await asyncio.gather(*(port.send(*parts, settles_s=settles_s) for parts, _ in table.values()))
        return dict(zip(table, responses, strict=True))

    return run_served(app, conversation, deadlines=deadlines)


def send_all_tables(stage: Stage) -> dict[str, RawResponses]:
    """Send the cases of all tables, and return the responses by case."""
    app = stage.sandbox.collector
    refused: dict[str, tuple[Parts, list[int]]] = {name: (parts, []) for name, parts in (NOT_HTTP | TOO_LONG).items()}
    return (
        send_table(app, refused | LATE)
        | send_table(app, UNUSUAL, settles_s=0.5, deadlines=Deadlines())
        | send_table(app, LAST, deadlines=Deadlines())
    )


@pytest.fixture(scope="module")
def responses(shared: Stage) -> dict[str, RawResponses]:
    """Return the responses to the cases of all tables, by case."""
    return send_all_tables(shared)


@pytest.mark.parametrize("case", NOT_HTTP)
def test_a_request_that_is_not_http_is_400_and_closes(responses: dict[str, RawResponses], case: str) -> None:
    """A request whose end cannot be found gets 400, and the connection is closed.

    RFC 9112 2.2 and 6.3.
    """
    assert (responses[case].statuses, responses[case].is_closed) == ([400], True)
    assert json.loads(responses[case].body) == {"message": "this is not HTTP"}


@pytest.mark.parametrize("case", TOO_LONG)
def test_too_long_a_head_is_431_and_closes(responses: dict[str, RawResponses], case: str) -> None:
    """A head, trailer or chunk extension beyond 64 KB gets 431 and closes.

    RFC 6585 5.

    Wire 1.2, Connections.
    """
    assert (responses[case].statuses, responses[case].is_closed) == ([431], True)
    assert set(json.loads(responses[case].body)) == {"message"}


@pytest.mark.parametrize("case", LATE)
def test_a_late_request_is_closed(responses: dict[str, RawResponses], case: str) -> None:
    """A head or body that is late gets 408 and closes, and a silent one just closes.

    Wire 1.2, Connections.
    """
    assert (responses[case].statuses, responses[case].is_closed) == (LATE[case][1], True)
    assert 0.25 < responses[case].seconds < ALLOWED_S


@pytest.mark.parametrize("case", UNUSUAL)
def test_an_unusual_request_keeps_the_connection_open(responses: dict[str, RawResponses], case: str) -> None:
    """A request that is unusual and valid is answered on an open connection.

    RFC 9110 and 9112.
    """
    assert (responses[case].statuses, responses[case].is_closed) == (UNUSUAL[case][1], False)
    assert responses[case].head["connection"] == "keep-alive"


@pytest.mark.parametrize("case", LAST)
def test_the_last_response_says_close(responses: dict[str, RawResponses], case: str) -> None:
    """The last response on a connection has the header `Connection: close`.

    RFC 9112 9.6.
    """
    assert (responses[case].statuses, responses[case].is_closed) == (LAST[case][1], True)
    assert responses[case].head["connection"] == "close"


@pytest.mark.parametrize("case", ["words", "header", "half a head", "half a body"])
def test_early_responses_have_the_headers_of_the_collector(responses: dict[str, RawResponses], case: str) -> None:
    """A response before the application has CORS and the service header.

    Wire 1.5, Response headers.
    """
    head = responses[case].head
    assert (head["access-control-allow-origin"], head["x-svc-service"]) == ("*", "collect")
    assert (head["content-type"], head["connection"]) == ("application/json", "close")


@pytest.mark.slow
def test_bad_requests_are_not_logged(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """Bad requests write nothing to the log, so that they cannot fill it.

    Wire 1.2, Connections.
    """
    send_all_tables(shared)
    assert capfd.readouterr().err == ""


# -- deadlines --------------------------------------------------------------------------------------------------------


def test_a_head_and_a_body_have_a_deadline_each(shared: Stage) -> None:
    """The deadline of a head and the deadline of a body apply one after the other.

    Wire 1.2, Connections.
    """
    deadlines = Deadlines(head_s=0.2, body_s=0.6)
    assert 0.15 < send_to_collector(shared, GOOD[:40], deadlines=deadlines).seconds < 0.55
    assert 0.55 < send_to_collector(shared, GOOD[:-1], deadlines=deadlines).seconds < 0.75 + ALLOWED_S


def test_deadlines_are_for_each_request(shared: Stage) -> None:
    """A connection with a new request every 0.15 s stays open (Wire 1.2, Connections)."""
    parts: Parts = [GOOD, 0.15] * 4
    responses = send_to_collector(shared, *parts, settles_s=0.1)
    assert (responses.statuses, responses.is_closed) == ([200] * 4, False)


def test_a_slow_body_in_time_is_taken(shared: Stage) -> None:
    """A body in several pieces before its deadline is accepted (Wire 1.2, Connections)."""
    assert send_to_collector(shared, GOOD[:-2], 0.1, b"[", 0.1, b"]", settles_s=0.2).statuses == [200]


async def slow_or_large(scope: Any, receive: Any, send: Any) -> None:
    """Take 0.8 s for /slow, and answer /large with more than the system's buffers hold."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.8 if scope["path"] == "/slow" else 0)
    content = bytes(LARGE_BYTES) if scope["path"] == "/large" else b"{}"
    length = (b"content-length", b"%d" % len(content))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": content})


@pytest.mark.slow
@pytest.mark.parametrize("more", [GOOD[:40], b"garbage\r\n\r\n", CHUNKED, CHUNKED + b"zz\r\n"])
def test_a_client_that_waits_for_a_response_is_not_late(more: bytes) -> None:
    """A slow response is sent first, then the bytes behind it are late or wrong.

    Wire 1.2, Connections.
    """
    responses = run_served(slow_or_large, lambda port: port.send(raw_request(path="/slow") + more))
    assert (responses.statuses[0], responses.is_closed) == (200, True)
    assert responses.statuses[1:] in ([], [400], [408])
    assert 0.75 < responses.seconds < 0.75 + ALLOWED_S


@pytest.mark.slow
def test_a_response_that_is_not_read_is_dropped() -> None:
    """A large response that the client does not read is dropped after its deadline.

    Wire 1.2, Connections.
    """

    async def conversation(port: Port) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, limit=1024)
        writer.write(raw_request(path="/large"))
        await asyncio.sleep(1.6)  # the server checks every 0.3 s and drops it after 0.6 s
        read_bytes = 0
        try:
            while piece := await reader.read(1 << 16):
                read_bytes += len(piece)
        except ConnectionError:
            return read_bytes
        finally:
            writer.close()
        return read_bytes

    assert run_served(slow_or_large, conversation) < LARGE_BYTES


@pytest.mark.slow
def test_a_response_that_is_read_slowly_is_completed() -> None:
    """A large response is completed as long as the client reads any of it.

    Wire 1.2, Connections.
    """

    async def conversation(port: Port) -> tuple[int, float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, limit=1024)
        writer.write(raw_request(path="/large"))
        loop = asyncio.get_running_loop()
        began_s, read_bytes = loop.time(), 0
        while read_bytes < LARGE_BYTES:
            read_bytes += len(await reader.read(1 << 16))
            if loop.time() - began_s < 1.5:
                await asyncio.sleep(0.01)
        writer.close()
        return read_bytes, loop.time() - began_s

    read_bytes, took_s = run_served(slow_or_large, conversation)
    assert read_bytes >= LARGE_BYTES
    assert took_s > 0.8


# -- disconnects ------------------------------------------------------------------------------------------------------


def test_a_half_closed_connection_gets_its_response() -> None:
    """A client that closes its sending half still gets the response.

    RFC 9112 9.6.
    """

    async def conversation(port: Port) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(raw_request(path="/slow"))
        writer.write_eof()
        try:
            return await reader.read()
        finally:
            writer.close()

    assert run_served(slow_or_large, conversation).startswith(b"HTTP/1.1 200")


def test_a_body_that_is_cut_off_is_not_logged(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """A client that disconnects in a body leaves no log line, and the server goes on.

    Wire 1.2, Connections.
    """

    async def conversation(port: Port) -> RawResponses:
        for part in (GOOD[:40], GOOD[:-1], CHUNKED + b"2\r\n[]\r\n", raw_request(b"x" * 500_000)[:-1]):
            _, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.write(part)
            await writer.drain()
            writer.transport.abort()
        return await port.send(GOOD, settles_s=0.2)

    assert run_served(shared.sandbox.collector, conversation).statuses == [200]
    assert capfd.readouterr().err == ""


def test_a_query_that_stalls_is_408(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """The metrics service answers a stalled body with 408, without a log line.

    Wire 2.12, Refusals.
    """
    query = raw_request(b"{", "X-API-Key: key-of-acme", path="/metrics/v1/metrics/revenue", length="9")
    responses = run_served(shared.metrics_app, lambda port: port.send(query))
    assert (responses.statuses, responses.is_closed) == ([408], True)
    assert capfd.readouterr().err == ""
