"""Connections as they come: slow, broken, endless. No 5xx, nobody hangs, every answer is JSON (issue, Bad input)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest

from conftest import Stage
from gamelens.sandbox.http.http_connection import Deadlines
from support.raw_sockets import Heard, Port, request, say, talk

pytestmark = pytest.mark.slow

Parts = list[bytes | float]

GOOD = request(b"[]")
CHUNKED = request(b"[]", "Transfer-Encoding: chunked", length=None)[:-2]
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
LARGE_BYTES = 32 << 20
ALLOWED_S = 2.0  # for a deadline of 0.3 s, on a busy machine


def trickled(content: bytes) -> Parts:
    return list(chain.from_iterable((bytes([byte]), 0.06) for byte in content))


NO_REQUEST: dict[str, Parts] = {
    "words": [b"hello there\r\n\r\n"],
    "TLS": [bytes.fromhex("1603010200010001fc0303")],
    "HTTP/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "no such method": [GOOD.replace(b"POST", b"FETCH", 1)],
    "CONNECT": [b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"],
    "no path": [b"POST ?game_key=1 HTTP/1.1\r\nHost: x\r\n\r\n"],
    "a path beyond ASCII": [GOOD.replace(b"/events", "/évents".encode(), 1)],
    "negative length": [request(length="-1")],
    "length in words": [request(length="many")],
    "length with a sign": [request(length="+2")],
    "length past every integer": [request(length="9" * 40)],
    "two lengths": [request(b"[]", "Content-Length: 3")],
    "length and chunks": [request(b"[]", "Transfer-Encoding: chunked")],
    "chunk of no size": [CHUNKED + b"zz\r\n[]\r\n"],
    "chunk of negative size": [CHUNKED + b"-2\r\n[]\r\n"],
    "chunk past every integer": [CHUNKED + b"f" * 40 + b"\r\n[]\r\n"],
    "chunk longer than its size": [CHUNKED + b"1\r\n[]\r\n"],
    "NUL in a header": [request(b"[]", "X: a\0b")],
    "a header without a name": [request(b"[]", ": x")],
    "a folded header": [request(b"[]", "X: a\r\n b")],
    "bare line feeds": [GOOD.replace(b"\r\n", b"\n")],
}
TOO_LONG: dict[str, Parts] = {
    "address": [GOOD.replace(b"/events", b"/events?" + b"x" * 70_000, 1)],
    "header": [request(b"[]", "X: " + "y" * 70_000)],
    "headers": [request(b"[]", *["a: b"] * 14_000)],
    "header without end": [GOOD[:-4], *[b"y" * 10_000] * 30],
    "trailer without end": [CHUNKED, b"2\r\n[]\r\n0\r\nX: ", *[b"y" * 10_000] * 30],
    "chunk extension without end": [CHUNKED, b"2;", *[b"y" * 10_000] * 30],
}
LATE: dict[str, tuple[Parts, list[int]]] = {
    "nothing": ([], []),
    "blank lines": (trickled(b"\r\n" * 10), []),
    "half a head": ([GOOD[:40]], [408]),
    "a head by drops": (trickled(GOOD[:20]), [408]),
    "half a body": ([GOOD[:-1]], [408]),
    "a body by drops": ([request(b"[" * 40)[:-40], *trickled(b"[" * 20)], [408]),
    "a body that was announced too long": ([request(length="10")], [408]),
    "a large body that stops": ([request(b"x" * 500_000)[:-1]], [408]),
    "chunks without end": ([CHUNKED, b"2\r\n[]\r\n"], [408]),
    "chunks by drops": ([CHUNKED, *trickled(b"1\r\n[\r\n" * 4)], [408]),
    "a large body announced and never sent": ([request(b"", length="5000000")], [408]),
    "a continue that is not continued": ([request(b"", "Expect: 100-continue", length="2")], [100, 408]),
    "blank lines after a request": ([GOOD, *trickled(b"\r\n" * 10)], [200]),
    "half a second request": ([GOOD, 0.1, GOOD[:40]], [200, 408]),
    "a body for nobody": ([request(b"[" * 40, path="/x")[:-40], *trickled(b"[" * 20)], [404]),
}
UNUSUAL: dict[str, tuple[Parts, list[int]]] = {
    "several at once": ([GOOD * 3], [200, 200, 200]),
    "two in four pieces": ([GOOD[:30], 0.02, GOOD[30:] + GOOD[:60], 0.02, GOOD[60:]], [200, 200]),
    "blank lines before and behind": ([b"\r\n\r\n" + GOOD + b"\r\n"], [200]),
    "60 kB of headers": ([request(b"[]", *["X: " + "y" * 997] * 60)], [200]),
    "chunks": ([CHUNKED + b"1\r\n[\r\n1;ext=1\r\n]\r\n0\r\n\r\n"], [200]),
    "a trailer is no header": ([CHUNKED + b"2\r\n[]\r\n0\r\nContent-Encoding: br\r\nAuthorization: x\r\n\r\n"], [200]),
    "neither length nor chunks": ([request(b"", length=None)], [400]),
    "whole address": ([GOOD.replace(b"/v2", b"http://127.0.0.1/v2", 1)], [200]),
    "escapes that are none": ([GOOD.replace(b"/events", b"/%ff%zz%00", 1)], [404]),
    "OPTIONS *": ([b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"], [404]),
    "HEAD": ([request(b"", method="HEAD")], [405]),
    "an unknown expectation": ([request(b"[]", "Expect: 200-maybe")], [200]),
    "continue": ([request(b"[]", "Expect: 100-continue")], [100, 200]),
    "h2c offered": ([request(b"[]", *UPGRADE) * 2], [200, 200]),
    "h2c offered in pieces": ([request(b"[]", *UPGRADE)[:-1], 0.05, b"]"], [200]),
    "h2c offered with chunks": (
        [request(b"", *UPGRADE, "Transfer-Encoding: chunked", length=None), b"0\r\n\r\n", GOOD],
        [400, 200],
    ),
    "WebSocket asked for": ([request(b"", "Connection: Upgrade", "Upgrade: websocket", method="GET")], [405]),
    "one byte more than 1 MB": ([request(b" " * 1_048_577), GOOD], [413, 200]),
    "4 MB": ([request(b" " * (4 << 20)), GOOD], [413, 200]),
}
LAST: dict[str, tuple[Parts, list[int]]] = {
    "HTTP/1.0": ([GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")], [200]),
    "close": ([request(b"[]", "Connection: close")], [200]),
    "close and more": ([request(b"[]", "Connection: close") + GOOD], [200]),
    "good and then garbage": ([GOOD + b"garbage\r\n\r\n"], [200]),
    "a body shorter than sent": ([request(b"[]", length="1")], [401]),
    "too much announced, asking first": ([request(b"", "Expect: 100-continue", length="1048577")], [413]),
    "much too much": ([request(b"", length="99999999"), *[b" " * 500_000] * 10], [413]),
}


def hear(app: Any, table: Mapping[str, tuple[Parts, list[int]]], **how: Any) -> dict[str, Heard]:
    """What each sender of *table* hears, all at once."""

    async def conversation(port: Port) -> dict[str, Heard]:
        settles_s = how.get("settles_s")
        heard = await asyncio.gather(*(port.say(*parts, settles_s=settles_s) for parts, _ in table.values()))
        return dict(zip(table, heard, strict=True))

    return talk(app, conversation, **({"deadlines": how["deadlines"]} if "deadlines" in how else {}))


def hear_all(stage: Stage) -> dict[str, Heard]:
    app = stage.sandbox.collector
    refused = {name: (parts, []) for name, parts in (NO_REQUEST | TOO_LONG).items()}
    return (
        hear(app, refused | LATE)
        | hear(app, UNUSUAL, settles_s=0.5, deadlines=Deadlines())
        | hear(app, LAST, deadlines=Deadlines())
    )


@pytest.fixture(scope="module")
def heard(shared: Stage) -> dict[str, Heard]:
    """By the names of all tables."""
    return hear_all(shared)


@pytest.mark.parametrize("what", NO_REQUEST)
def test_what_is_no_http_is_400_and_the_end(heard: dict[str, Heard], what: str) -> None:
    """RFC 9112 2.2 and 6.3: whoever cannot tell where a request ends cannot go on."""
    assert (heard[what].statuses, heard[what].is_closed) == ([400], True)
    assert json.loads(heard[what].body) == {"message": "this is not HTTP"}


@pytest.mark.parametrize("what", TOO_LONG)
def test_too_long_a_head_is_431_and_the_end(heard: dict[str, Heard], what: str) -> None:
    """The sandbox package, Our choices: 64 KB. RFC 6585 5."""
    assert (heard[what].statuses, heard[what].is_closed) == ([431], True)
    assert set(json.loads(heard[what].body)) == {"message"}


@pytest.mark.parametrize("what", LATE)
def test_what_does_not_come_in_time_is_closed(heard: dict[str, Heard], what: str) -> None:
    """The sandbox package, Our choices: 10 s for a head, 15 s for a body; here 0.3 s for each."""
    assert (heard[what].statuses, heard[what].is_closed) == (LATE[what][1], True)
    assert 0.25 < heard[what].seconds < ALLOWED_S


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_unusual_is_answered_and_the_connection_kept(heard: dict[str, Heard], what: str) -> None:
    """RFC 9110 and 9112: none of these is a reason to hang up."""
    assert (heard[what].statuses, heard[what].is_closed) == (UNUSUAL[what][1], False)
    assert heard[what].head["connection"] == "keep-alive"


@pytest.mark.parametrize("what", LAST)
def test_an_answer_that_is_the_last_says_so(heard: dict[str, Heard], what: str) -> None:
    """RFC 9112 9.6: Connection: close."""
    assert (heard[what].statuses, heard[what].is_closed) == (LAST[what][1], True)
    assert heard[what].head["connection"] == "close"


@pytest.mark.parametrize("what", ["words", "header", "half a head", "half a body"])
def test_what_never_reached_the_collector_is_answered_in_its_name(heard: dict[str, Heard], what: str) -> None:
    """contract, Collector: every answer, errors too, carries Access-Control-Allow-Origin; a page may look why."""
    head = heard[what].head
    assert (head["access-control-allow-origin"], head["x-svc-service"]) == ("*", "collect")
    assert (head["content-type"], head["connection"]) == ("application/json", "close")


@pytest.mark.slow
def test_nothing_of_all_this_is_logged(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """Bad requests are no mistakes of ours, and whoever sends them could fill a log; or read an address there."""
    hear_all(shared)
    assert capfd.readouterr().err == ""


# -- in time or not ---------------------------------------------------------------------------------------------------


def test_a_head_and_a_body_have_a_deadline_each(shared: Stage) -> None:
    """The sandbox package, Our choices."""
    deadlines = Deadlines(head_s=0.2, body_s=0.6)
    assert 0.15 < say(shared, GOOD[:40], deadlines=deadlines).seconds < 0.55
    assert 0.55 < say(shared, GOOD[:-1], deadlines=deadlines).seconds < 0.75 + ALLOWED_S


def test_whoever_goes_on_asking_is_not_late(shared: Stage) -> None:
    """Deadlines are for each request, not for the connection."""
    heard = say(shared, *chain.from_iterable((GOOD, 0.15) for _ in range(4)), settles_s=0.1)
    assert (heard.statuses, heard.is_closed) == ([200] * 4, False)


def test_a_slow_body_in_time_is_taken(shared: Stage) -> None:
    assert say(shared, GOOD[:-2], 0.1, b"[", 0.1, b"]", settles_s=0.2).statuses == [200]


async def slow_or_large(scope: Any, receive: Any, send: Any) -> None:
    """Takes 0.8 s for the path /slow, and answers 32 MiB for /large: more than the system's buffers take."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.8 if scope["path"] == "/slow" else 0)
    content = bytes(LARGE_BYTES) if scope["path"] == "/large" else b"{}"
    length = (b"content-length", b"%d" % len(content))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": content})


@pytest.mark.slow
@pytest.mark.parametrize("more", [GOOD[:40], b"garbage\r\n\r\n", CHUNKED, CHUNKED + b"zz\r\n"])
def test_whoever_waits_for_an_answer_is_not_late(more: bytes) -> None:
    """Whatever has come behind a request: that one is answered first. Then the rest is late, or wrong."""
    heard = talk(slow_or_large, lambda port: port.say(request(path="/slow") + more))
    assert (heard.statuses[0], heard.is_closed) == (200, True)
    assert heard.statuses[1:] in ([], [400], [408])
    assert 0.75 < heard.seconds < 0.75 + ALLOWED_S


@pytest.mark.slow
def test_an_answer_that_nobody_reads_is_dropped() -> None:
    """The sandbox package, Our choices: or it would lie in memory for ever."""

    async def conversation(port: Port) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, limit=1024)
        writer.write(request(path="/large"))
        await asyncio.sleep(1.6)  # looked at every 0.3 s, dropped after 0.6 s
        read_bytes = 0
        try:
            while piece := await reader.read(1 << 16):
                read_bytes += len(piece)
        except ConnectionError:
            return read_bytes
        finally:
            writer.close()
        return read_bytes

    assert talk(slow_or_large, conversation) < LARGE_BYTES


@pytest.mark.slow
def test_an_answer_that_is_read_slowly_is_not() -> None:
    """As long as anything of it is read at all."""

    async def conversation(port: Port) -> tuple[int, float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, limit=1024)
        writer.write(request(path="/large"))
        loop = asyncio.get_running_loop()
        began_s, read_bytes = loop.time(), 0
        while read_bytes < LARGE_BYTES:
            read_bytes += len(await reader.read(1 << 16))
            if loop.time() - began_s < 1.5:
                await asyncio.sleep(0.01)
        writer.close()
        return read_bytes, loop.time() - began_s

    read_bytes, took_s = talk(slow_or_large, conversation)
    assert read_bytes >= LARGE_BYTES
    assert took_s > 0.8


# -- who goes away ----------------------------------------------------------------------------------------------------


def test_whoever_has_said_all_still_hears_the_answer() -> None:
    """RFC 9112 9.6: a sender may close its half of the connection."""

    async def conversation(port: Port) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(request(path="/slow"))
        writer.write_eof()
        try:
            return await reader.read()
        finally:
            writer.close()

    assert talk(slow_or_large, conversation).startswith(b"HTTP/1.1 200")


def test_a_body_that_breaks_off_is_nobody_s_mistake(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is logged, and the server goes on."""

    async def conversation(port: Port) -> Heard:
        for sent in (GOOD[:40], GOOD[:-1], CHUNKED + b"2\r\n[]\r\n", request(b"x" * 500_000)[:-1]):
            _, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.write(sent)
            await writer.drain()
            writer.transport.abort()
        return await port.say(GOOD, settles_s=0.2)

    assert talk(shared.sandbox.collector, conversation).statuses == [200]
    assert capfd.readouterr().err == ""


def test_a_question_that_stalls_is_served_alike(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """The metrics service has the same connections."""
    question = request(b"{", "X-API-Key: key-of-acme", path="/metrics/v1/metrics/revenue", length="9")
    heard = talk(shared.metrics_app, lambda port: port.say(question))
    assert (heard.statuses, heard.is_closed) == ([408], True)
    assert capfd.readouterr().err == ""
