"""HTTP as the sandbox's server reads it from a socket: unusual, broken and slow requests (Wire 1.2, Connections)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from gamelens.sandbox.collector.collector_app import CollectorApp
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from support.raw_sockets import Port, RawResponses, raw_request, run_served
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

Parts = list[bytes | float]
"""Bytes to send, and pauses in seconds between them."""

GOOD = raw_request(b"[]")
CHUNKED = raw_request(b"[]", "Transfer-Encoding: chunked", length=None)[:-2]
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
UPGRADE_CHUNKED = raw_request(b"[]", *UPGRADE, "Transfer-Encoding: chunked", length=None)[:-2]
BODY_DEADLINE_S = 0.3
ALLOWED_S = 10.0  # beyond the deadline, on a busy machine


def in_drops(content: bytes) -> Parts:
    """Return the bytes of *content* one by one, with a pause after each."""
    return [part for byte in content for part in (bytes([byte]), 0.06)]


NOT_HTTP: dict[str, Parts] = {
    "words": [b"hello there\r\n\r\n"],
    "TLS": [bytes.fromhex("1603010200010001fc0303")],
    "HTTP/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "negative length": [raw_request(length="-1")],
    "two lengths": [raw_request(b"[]", "Content-Length: 3")],
    "length and chunks": [raw_request(b"[]", "Transfer-Encoding: chunked")],
    "chunk of no size": [CHUNKED + b"zz\r\n[]\r\n"],
}
UNUSUAL: dict[str, tuple[Parts, list[int]]] = {
    "several at once": ([GOOD * 3], [200, 200, 200]),
    "two in four pieces": ([GOOD[:30], 0.02, GOOD[30:] + GOOD[:60], 0.02, GOOD[60:]], [200, 200]),
    "blank lines before and behind": ([b"\r\n\r\n" + GOOD + b"\r\n"], [200]),
    "60 kB of headers": ([raw_request(b"[]", *["X: " + "y" * 997] * 60)], [200]),
    "chunks": ([CHUNKED + b"1\r\n[\r\n1;ext=1\r\n]\r\n0\r\n\r\n"], [200]),
    "neither length nor chunks": ([raw_request(b"", length=None)], [400]),
    "whole address": ([GOOD.replace(b"/v2", b"http://127.0.0.1/v2", 1)], [200]),
    "HEAD": ([raw_request(b"", method="HEAD")], [405]),
    "continue": ([raw_request(b"[]", "Expect: 100-continue")], [100, 200]),
    "h2c offered": ([raw_request(b"[]", *UPGRADE) * 2], [200, 200]),
    "h2c offered, the body behind the head": ([raw_request(b"[]", *UPGRADE)[:-2], 0.05, b"[]"], [200]),
    "h2c offered, a body in chunks": ([UPGRADE_CHUNKED, 0.05, b"2\r\n[]\r\n0\r\n\r\n", GOOD], [200, 200]),
    "h2c offered, a body that is too large": ([raw_request(b" " * 1_048_577, *UPGRADE), GOOD], [413, 200]),
    "WebSocket requested": ([raw_request(b"", "Connection: Upgrade", "Upgrade: websocket", method="GET")], [405]),
    "a body for an unknown address": ([raw_request(b"[]", path="/x")[:-1], 0.05, b"]" + GOOD], [404, 200]),
    "one byte more than 1 MB": ([raw_request(b" " * 1_048_577), GOOD], [413, 200]),
    "4 MB": ([raw_request(b" " * (4 << 20)), GOOD], [413, 200]),
    "a slow body in time": ([GOOD[:-2], 0.05, b"[", 0.05, b"]"], [200]),
}
LAST: dict[str, tuple[Parts, list[int]]] = {
    "HTTP/1.0": ([GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")], [200]),
    "close": ([raw_request(b"[]", "Connection: close")], [200]),
    "close and more": ([raw_request(b"[]", "Connection: close") + GOOD], [200]),
    "too much announced, asking first": ([raw_request(b"", "Expect: 100-continue", length="1048577")], [413]),
    "much too much": ([raw_request(b"", length="99999999"), *[b" " * 500_000] * 10], [413]),
}
LATE: dict[str, tuple[Parts, list[int]]] = {
    "half a body": ([GOOD[:-1]], [408]),
    "a body by drops": ([raw_request(b"[" * 40)[:-40], *in_drops(b"[" * 20)], [408]),
    "a large body that stops": ([raw_request(b"x" * 500_000)[:-1]], [408]),
    "chunks without end": ([CHUNKED, b"2\r\n[]\r\n"], [408]),
    "a continue that is not continued": ([raw_request(b"", "Expect: 100-continue", length="2")], [100, 408]),
    "half a second body": ([GOOD, 0.1, GOOD[:-1]], [200, 408]),
}


def send_table(
    app: Any, table: Mapping[str, tuple[Parts, list[int]]], *, settles_s: float | None = None
) -> dict[str, RawResponses]:
    """Send every case of *table* at once, and return the responses by case."""

    async def conversation(port: Port) -> dict[str, RawResponses]:
        responses = await asyncio.gather(*(port.send(*parts, settles_s=settles_s) for parts, _ in table.values()))
        return dict(zip(table, responses, strict=True))

    return run_served(app, conversation)


def send_all_tables(stage: Stage) -> dict[str, RawResponses]:
    """Send the cases of all tables to the collector, and return the responses by case."""
    sandbox = stage.sandbox
    impatient = CollectorApp(
        sandbox.tenants, sandbox.inbox, stage.clock, live=sandbox.live, body_deadline_s=BODY_DEADLINE_S
    )
    not_http: dict[str, tuple[Parts, list[int]]] = {name: (parts, [400]) for name, parts in NOT_HTTP.items()}
    return (
        send_table(sandbox.collector, not_http | LAST)
        | send_table(sandbox.collector, UNUSUAL, settles_s=0.5)
        | send_table(impatient, LATE)
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


@pytest.mark.parametrize("case", LATE)
def test_a_late_body_is_408_and_closes(responses: dict[str, RawResponses], case: str) -> None:
    """A body that is not complete at its deadline gets 408, with a message for the client.

    Wire 1.10, Collector statuses.
    """
    assert (responses[case].statuses, responses[case].is_closed) == (LATE[case][1], True)
    assert responses[case].head["connection"] == "close"
    assert json.loads(responses[case].body) == {"message": f"the body was not complete within {BODY_DEADLINE_S} s"}
    assert BODY_DEADLINE_S - 0.05 < responses[case].seconds < BODY_DEADLINE_S + ALLOWED_S


def test_bad_requests_are_not_logged(shared: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    """Bad requests write nothing to the log, so that they cannot fill it.

    Wire 1.2, Connections.
    """
    send_all_tables(shared)
    assert capfd.readouterr().err == ""


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
    """The metrics service answers a stalled body with 408 and closes, without a log line.

    Wire 2.12, Refusals.
    """
    parts = shared.sandbox.tenants, shared.sandbox.lake, shared.sandbox.reader, shared.clock
    app = MetricsApp(*parts, body_deadline_s=BODY_DEADLINE_S).app()
    query = raw_request(b"{", "X-API-Key: key-of-acme", path="/metrics/v1/metrics/revenue", length="9")
    responses = run_served(app, lambda port: port.send(query))
    assert (responses.statuses, responses.is_closed) == ([408], True)
    assert capfd.readouterr().err == ""
