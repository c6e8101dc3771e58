"""Requests to the metrics service: paths, methods, and bodies of any kind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.wire.limits import BODY_BYTES
from support.app_requests import call, send
from support.full_disk import full_disk
from support.game_events import event
from support.hypothesis_profiles import examples
from support.sandbox_stage import Stage

KEY = {"X-API-Key": "key-of-acme"}
REVENUE = "/metrics/v1/metrics/revenue"
LISTS = ["metrics", "interval", "dimensions", "dimensions/platform", "studios", "games"]
INTERVAL = {"interval": "2026-11-15/P7D"}
BODY = INTERVAL | {"granularity": "day", "query": {"type": "timeseries"}}
ERROR_FIELDS = {"error", "message", "field", "value", "allowed", "did_you_mean"}
ANY_BYTES = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return one sandbox for all requests, none of which changes it."""
    stage = Stage(tmp_path_factory.mktemp("requests") / "state")
    stage.submit([event()])
    stage.process()
    yield stage
    stage.sandbox.close()


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("/", None),
        ("/metrics/v1/metric", "/metrics/v1/metrics"),
        ("/metrics/v1/game", "/metrics/v1/games"),
        ("/v1/studios", "/metrics/v1/studios"),
        ("/metrics/v1/dimensions/platform/values", "/metrics/v1/dimensions"),
        ("/metrics/v1/games/", "/metrics/v1/games"),
        ("/metrics/v1/metric/revenue", "/metrics/v1/metrics"),
        ("/metrics/v1//games", "/metrics/v1/games"),
    ],
)
def test_an_unknown_path_gets_a_suggestion(stage: Stage, path: str, suggestion: str | None) -> None:
    """An unknown path gets 404 with the nearest one, without a redirect.

    Wire 2.1, Metrics addresses; Wire 2.12, Refusals.
    """
    answer = call(stage.metrics_app, "GET", path, headers=KEY)
    assert (answer.status_code, set(answer.json())) == (404, ERROR_FIELDS)
    assert (answer.json()["value"], answer.json()["did_you_mean"]) == (path, suggestion)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", REVENUE, ["POST"]),
        ("PUT", REVENUE, ["POST"]),
        ("OPTIONS", REVENUE, ["POST"]),
        *(("POST", f"/metrics/v1/{path}", ["GET", "HEAD"]) for path in LISTS if path != "dimensions/platform"),
        ("DELETE", "/metrics/v1/games", ["GET", "HEAD"]),
        ("OPTIONS", "/metrics/v1/games", ["GET", "HEAD"]),
    ],
)
def test_another_method_gets_the_allowed_ones(stage: Stage, method: str, path: str, allowed: list[str]) -> None:
    """A wrong method gets 405 with the allowed ones, in body and header.

    RFC 9110 15.5.6.

    Wire 2.12, Refusals.
    """
    answer = call(stage.metrics_app, method, path, headers=KEY)
    assert (answer.status_code, set(answer.json())) == (405, ERROR_FIELDS)
    assert sorted(answer.json()["allowed"]) == sorted(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", LISTS)
def test_head_is_get_without_the_body(stage: Stage, path: str) -> None:
    """HEAD has the status and length of GET.

    RFC 9110 9.3.2.

    Wire 2.1, Metrics addresses.
    """
    get, head = (
        call(stage.metrics_app, method, f"/metrics/v1/{path}", params=INTERVAL, headers=KEY)
        for method in ("GET", "HEAD")
    )
    assert (head.status_code, head.headers["content-length"]) == (200, get.headers["content-length"])


def test_an_address_may_be_percent_encoded(stage: Stage) -> None:
    """A percent-encoded letter in a path is the letter.

    RFC 3986 6.2.2.2.
    """
    plain, encoded = (stage.get(path, **INTERVAL).json() for path in ("dimensions/platform", "%64imensions/pl%61tform"))
    assert plain == encoded == {"dimension": "platform", "values": ["ios"]}


def test_a_body_is_read_up_to_the_limit(stage: Stage) -> None:
    """A body of 1 MB is read, and one byte more gets 413 (Wire 2.5, Query body)."""
    body = json.dumps(BODY).encode().ljust(BODY_BYTES)
    assert call(stage.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200
    answer = call(stage.metrics_app, "POST", REVENUE, content=body + b" ", headers=KEY)
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (413, "too_large", "body")


def test_reading_an_endless_body_stops(stage: Stage) -> None:
    """An endless body gets 413 once 4 MB of it are read.

    Wire 1.6, Body limits; Wire 2.5, Query body.
    """
    sent_bytes = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent_bytes
        while True:
            sent_bytes += BODY_BYTES
            yield b" " * BODY_BYTES

    answer = call(stage.metrics_app, "POST", REVENUE, content=endless(), headers=KEY)
    assert (answer.status_code, sent_bytes) == (413, 5 * BODY_BYTES)


def test_a_body_that_stalls_is_408(stage: Stage) -> None:
    """A body that stalls gets 408, and its simultaneous permit is free again.

    Wire 2.5, Query body.
    """
    parts = stage.sandbox.tenants, stage.sandbox.lake, stage.sandbox.reader, stage.clock
    app = MetricsApp(*parts, body_deadline_s=0.3).app()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = call(app, "POST", REVENUE, content=stalled(), headers=KEY)
    assert (answer.status_code, answer.json()["error"]) == (408, "too_slow")
    assert call(app, "POST", REVENUE, json=BODY, headers=KEY).status_code == 200


def test_a_body_that_the_disk_has_no_room_for_is_503(stage: Stage) -> None:
    """A large body gets 503 on a full disk, and 200 when it is sent again.

    Wire 2.12, Refusals.
    """
    body = json.dumps(BODY).encode().ljust(BODY_BYTES)
    with full_disk(at_bytes=20_000):
        answer = call(stage.metrics_app, "POST", REVENUE, content=body, headers=KEY)
        assert call(stage.metrics_app, "POST", REVENUE, json=BODY, headers=KEY).status_code == 200
    assert (answer.status_code, set(answer.json())) == (503, ERROR_FIELDS)
    assert (answer.json()["error"], answer.json()["field"]) == ("unavailable", "body")
    assert "no room" in answer.json()["message"]
    assert call(stage.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200


def test_a_body_that_is_cut_off_is_400_and_not_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A client that disconnects in a body gets 400 and leaves no log line.

    Wire 2.12, Refusals.
    """
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    status, _ = raw_response(stage, "POST", REVENUE, messages=messages)
    assert (status, caplog.text) == (400, "")


@pytest.mark.parametrize(
    "body",
    [
        b'{"interval": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"interval": "\xed\xa0\x80"}',
        b'{"interval": "2026-11-15/P7D", "since_days_ago": NaN}',
        b'{"interval": -Infinity}',
        b'{"a": 1e400}',
        b'{"filter": ' + b'{"not":' * 100_000 + b"1" + b"}" * 100_001,
        b"\xef\xbb\xbf{}",
        b"{'interval': 1}",
        b'{"interval": 1,}',
    ],
)
def test_json_is_read_strictly(stage: Stage, body: bytes) -> None:
    """Lone surrogates, NaN, infinities, deep nesting and a byte order mark get 400.

    RFC 8259.

    Wire 2.12, Refusals.
    """
    assert call(stage.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 400


@pytest.mark.parametrize(
    "value", [10**30, -(10**30), 1.5, True, ["x"] * 9, {"a": {"b": None}}, "\0", "\N{PILE OF POO}"]
)
@pytest.mark.parametrize("field", ["granularity", "game", "filter", "games", "nonsense"])
def test_a_refused_value_is_returned_as_it_was_sent(stage: Stage, field: str, value: Any) -> None:
    """The error has the refused value, or the part that breaks the rule (Wire 2.12, Refusals)."""
    answer = stage.ask("conversion", **INTERVAL | {"granularity": "day", "split_by": "platform"} | {field: value})
    assert answer.status_code == 422
    assert answer.json()["value"] in ([value, *value.values()] if isinstance(value, dict) else [value, "x"])


def test_the_last_of_repeated_fields_counts(stage: Stage) -> None:
    """Of a field given twice the last value counts.

    RFC 8259 4 leaves it open.

    Wire 2.5, Query body.
    """
    body = b'{"interval": "?",' + json.dumps(BODY).encode()[1:]
    assert call(stage.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200


def test_a_very_long_interval_does_not_block_the_event_loop(stage: Stage) -> None:
    """A query over 416 years by month leaves the event loop free for others.

    Wire 2.8, Intervals and buckets.
    """
    body = BODY | {"interval": "1600-01-01/P416Y", "granularity": "month"}

    async def ask() -> float:
        """Return the longest pause of the loop, as a share of the time that the answer took."""
        pauses_s = []

        async def tick() -> None:
            while True:
                began = time.perf_counter()
                await asyncio.sleep(0.005)
                pauses_s.append(time.perf_counter() - began)

        ticking = asyncio.create_task(tick())
        began = time.perf_counter()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(stage.metrics_app)) as client:
            answer = await client.post(f"http://127.0.0.1{REVENUE}", json=body, headers=KEY)
        ticking.cancel()
        assert answer.content.count(b"timestamp") == 416 * 12
        return max(pauses_s) / (time.perf_counter() - began)

    assert min(asyncio.run(ask()) for _ in range(3)) < 1 / 3  # a busy machine pauses too, but not three times


def raw_response(
    stage: Stage,
    method: str,
    path: str,
    *,
    query: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
    messages: list[dict[str, Any]] | None = None,
) -> tuple[int, bytes]:
    """Send one ASGI request with bytes that no client library would send."""
    incoming = iter(messages or [{"type": "http.request", "body": b""}])
    outgoing: list[Any] = []

    async def receive() -> Any:
        return next(incoming)

    async def deliver(message: Any) -> None:
        outgoing.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "root_path": "",
        "scheme": "http",
        "query_string": query,
        "headers": [(b"x-api-key", b"key-of-acme"), *(headers or [])],
        "server": ("127.0.0.1", 80),
    }
    asyncio.run(stage.metrics_app(scope, receive, deliver))
    return outgoing[0]["status"], b"".join(message.get("body", b"") for message in outgoing[1:])


@ANY_BYTES
@given(body=st.binary(max_size=80) | st.text(max_size=40).map(lambda text: json.dumps({text: text}).encode()))
def test_any_bytes_in_a_body_are_refused(stage: Stage, body: bytes) -> None:
    """Any bytes as a body get 400 or 422 with all error fields (Wire 2.12, Refusals)."""
    status, answer = raw_response(stage, "POST", REVENUE, messages=[{"type": "http.request", "body": body}])
    assert (status in (400, 422), set(json.loads(answer))) == (True, ERROR_FIELDS)


NAMES = st.sampled_from([b"interval", b"limit", b"games", b"studios", b"x"])
VALUES = st.binary(max_size=12) | st.sampled_from([b"2026-11-15/P7D", b"1001", b"s1", b"5", b"9999-12-31/P9D"])


@ANY_BYTES
@given(
    path=st.sampled_from(LISTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    pairs=st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=4),
)
def test_any_bytes_in_a_path_or_query_are_answered(
    stage: Stage, path: str, pairs: list[tuple[bytes, bytes, bool]]
) -> None:
    """Any bytes in a path or a query string get a JSON answer without a 5xx.

    Wire 2.12, Refusals.
    """
    written = (
        name + b"=" + (quote_from_bytes(value).encode() if is_quoted else value) for name, value, is_quoted in pairs
    )
    status, answer = raw_response(stage, "GET", f"/metrics/v1/{path}", query=b"&".join(written))
    assert status in (200, 400, 404, 405, 422), answer
    assert json.loads(answer) is not None


@ANY_BYTES
@given(
    name=st.sampled_from([b"host", b"content-length", b"content-type", b"accept", b"cookie"]),
    value=st.binary(max_size=16),
)
def test_any_bytes_in_a_header_are_ignored(stage: Stage, name: bytes, value: bytes) -> None:
    """Any bytes in the common headers do not change the status."""
    for path, expected in (("/metrics/v1/dimensions", 200), ("/nowhere", 404)):
        assert raw_response(stage, "GET", path, headers=[(name, value)])[0] == expected


@pytest.mark.parametrize("host", ["[", "a b", "[::1", "evil.example:99999"])
def test_a_refusal_does_not_depend_on_the_host_header(stage: Stage, host: str) -> None:
    """An invalid `Host` header does not make a 404 fail."""
    assert raw_response(stage, "GET", "/nowhere", headers=[(b"host", host.encode())])[0] == 404


def test_concurrent_queries_get_their_own_answers(stage: Stage) -> None:
    """20 concurrent queries each get the answer of their own interval."""

    async def ask_all() -> list[Any]:
        days = [f"2026-11-{day:02}" for day in range(1, 21)]
        bodies = [BODY | {"interval": f"{day}/P1D"} for day in days]
        return await asyncio.gather(
            *(send(stage.metrics_app, "POST", REVENUE, json=body, headers=KEY) for body in bodies)
        )

    timestamps = [answer.json()["result"][0]["timestamp"] for answer in asyncio.run(ask_all())]
    assert timestamps == [f"2026-11-{day:02}T00:00:00.000Z" for day in range(1, 21)]


def test_session_length_is_the_mean_over_session_end_events(stage: Stage) -> None:
    """A session that ends twice has two lengths in the mean and is one session (Wire 4.11, Metrics)."""
    stage.submit([event(category="session_end", length=length) for length in (60, 90)])
    stage.submit([event(category="session_end", length=30, session_id="22222222-2222-4222-8222-222222222222")])
    stage.process()
    query: dict[str, Any] = {"interval": "2026-11-20/2026-11-21", "granularity": "all", "query": {"type": "timeseries"}}
    assert stage.ask("session_length", **query).json()["result"][0]["result"] == {
        "session_length": 60.0,
        "session_unique": 2,
        "total_session_length": 180,
    }
