"""Whatever arrives at the metrics service: addresses, methods, bodies of any size and speed, any bytes at all."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Stage, event, examples
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.wire.limits import BODY_BYTES
from sandbox.conftest import call, full_disk, send

KEY = {"X-API-Key": "key-of-acme"}
REVENUE = "/metrics/v1/metrics/revenue"
LISTS = ["metrics", "interval", "dimensions", "dimensions/platform", "studios", "games"]
OVER = {"interval": "2026-11-15/P7D"}
BODY = OVER | {"granularity": "day", "query": {"type": "timeseries"}}
REFUSED = {"error", "message", "field", "value", "allowed", "did_you_mean"}
ANY_BYTES = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One sandbox for all requests: none of them changes it."""
    stage = Stage(tmp_path_factory.mktemp("requests") / "state")
    stage.submit([event()])
    stage.process()
    yield stage
    stage.sandbox.close()


@pytest.mark.parametrize(
    ("path", "nearest"),
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
def test_an_unknown_address_hears_the_nearest(asked: Stage, path: str, nearest: str | None) -> None:
    """contract: 404, JSON object with `message`. A slash at the end is another address, and no redirect follows."""
    answer = call(asked.metrics_app, "GET", path, headers=KEY)
    assert (answer.status_code, set(answer.json())) == (404, REFUSED)
    assert (answer.json()["value"], answer.json()["did_you_mean"]) == (path, nearest)


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
def test_another_method_hears_which_are_allowed(asked: Stage, method: str, path: str, allowed: list[str]) -> None:
    """contract: 405, JSON object with `message`; RFC 9110, 15.5.6: and the header Allow."""
    answer = call(asked.metrics_app, method, path, headers=KEY)
    assert (answer.status_code, set(answer.json())) == (405, REFUSED)
    assert sorted(answer.json()["allowed"]) == sorted(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", LISTS)
def test_head_is_get_without_the_body(asked: Stage, path: str) -> None:
    """RFC 9110, 9.3.2."""
    got, headed = (
        call(asked.metrics_app, it, f"/metrics/v1/{path}", params=OVER, headers=KEY) for it in ("GET", "HEAD")
    )
    assert (headed.status_code, headed.headers["content-length"]) == (200, got.headers["content-length"])


def test_an_address_may_be_percent_encoded(asked: Stage) -> None:
    """RFC 3986, 6.2.2.2: an encoded letter is the letter."""
    plain, encoded = (asked.get(path, **OVER).json() for path in ("dimensions/platform", "%64imensions/pl%61tform"))
    assert plain == encoded == {"dimension": "platform", "values": ["ios"]}


def test_a_body_is_read_up_to_the_limit(asked: Stage) -> None:
    """Our choice: 1 MB."""
    body = json.dumps(BODY).encode().ljust(BODY_BYTES)
    assert call(asked.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200
    answer = call(asked.metrics_app, "POST", REVENUE, content=body + b" ", headers=KEY)
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (413, "too_large", "body")


def test_a_body_without_end_is_not_read_to_its_end(asked: Stage) -> None:
    """Our choice: past 4 MB nobody listens any more."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += BODY_BYTES
            yield b" " * BODY_BYTES

    answer = call(asked.metrics_app, "POST", REVENUE, content=endless(), headers=KEY)
    assert (answer.status_code, sent) == (413, 5 * BODY_BYTES)


def test_a_body_that_does_not_come_is_not_waited_for(asked: Stage) -> None:
    """Our choice: 15 s, here less. The place among the simultaneous requests is free again."""
    parts = asked.sandbox.tenants, asked.sandbox.lake, asked.sandbox.reader, asked.clock
    app = MetricsApp(*parts, body_deadline_s=0.05).app()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = call(app, "POST", REVENUE, content=stalled(), headers=KEY)
    assert (answer.status_code, answer.json()["error"]) == (408, "too_slow")
    assert call(app, "POST", REVENUE, json=BODY, headers=KEY).status_code == 200


def test_a_body_that_the_disk_has_no_room_for_is_503(asked: Stage) -> None:
    """Our choice: the same answer as to events (contract, Collector), and it may be sent again."""
    body = json.dumps(BODY).encode().ljust(BODY_BYTES)
    with full_disk(at_bytes=20_000):
        answer = call(asked.metrics_app, "POST", REVENUE, content=body, headers=KEY)
        assert call(asked.metrics_app, "POST", REVENUE, json=BODY, headers=KEY).status_code == 200
    assert (answer.status_code, set(answer.json())) == (503, REFUSED)
    assert (answer.json()["error"], answer.json()["field"]) == ("unavailable", "body")
    assert "no room" in answer.json()["message"]
    assert call(asked.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200


def test_a_body_that_is_cut_short_is_nobody_s_failure(asked: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A client may go away at any moment."""
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    status, _ = raw(asked, "POST", REVENUE, messages=messages)
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
def test_json_is_read_strictly(asked: Stage, body: bytes) -> None:
    """RFC 8259: lone surrogates, NaN, infinities, numbers past every float, bottomless nesting, a byte order mark."""
    assert call(asked.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 400


@pytest.mark.parametrize(
    "value", [10**30, -(10**30), 1.5, True, ["x"] * 9, {"a": {"b": None}}, "\0", "\N{PILE OF POO}"]
)
@pytest.mark.parametrize("field", ["granularity", "game", "filter", "games", "nonsense"])
def test_a_refused_value_comes_back_as_it_was_sent(asked: Stage, field: str, value: Any) -> None:
    """design/metrics, Query kinds: a body that names the value, or the part of it that breaks the rule."""
    answer = asked.ask("conversion", **OVER | {"granularity": "day", "split_by": "platform"} | {field: value})
    assert answer.status_code == 422
    assert answer.json()["value"] in ([value, *value.values()] if isinstance(value, dict) else [value, "x"])


def test_of_a_field_given_twice_the_last_counts(asked: Stage) -> None:
    """RFC 8259, 4: what a name that is not unique means is left open. Our choice."""
    body = b'{"interval": "?",' + json.dumps(BODY).encode()[1:]
    assert call(asked.metrics_app, "POST", REVENUE, content=body, headers=KEY).status_code == 200


def test_a_question_about_all_of_history_stops_nobody_else(asked: Stage) -> None:
    """Our choice: nothing bounds an interval of months, so what it costs must not be the event loop's time."""
    body = BODY | {"interval": "0001-01-01/9999-12-31", "granularity": "month"}
    gaps = []

    async def ask() -> float:
        async def tick() -> None:
            while True:
                begun = time.perf_counter()
                await asyncio.sleep(0.005)
                gaps.append(time.perf_counter() - begun)

        ticking = asyncio.create_task(tick())
        begun = time.perf_counter()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(asked.metrics_app)) as client:
            answer = await client.post(f"http://127.0.0.1{REVENUE}", json=body, headers=KEY)
        ticking.cancel()
        assert answer.content.count(b"timestamp") == 9999 * 12
        return time.perf_counter() - begun

    took = asyncio.run(ask())
    assert max(gaps) < took / 3


def raw(
    stage: Stage,
    method: str,
    path: str,
    *,
    query: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
    messages: list[dict[str, Any]] | None = None,
) -> tuple[int, bytes]:
    """One request as a server hands it over, with bytes no client library would send."""
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
    return outgoing[0]["status"], b"".join(it.get("body", b"") for it in outgoing[1:])


@ANY_BYTES
@given(body=st.binary(max_size=80) | st.text(max_size=40).map(lambda text: json.dumps({text: text}).encode()))
def test_no_bytes_in_a_body_make_it_fail(asked: Stage, body: bytes) -> None:
    status, answer = raw(asked, "POST", REVENUE, messages=[{"type": "http.request", "body": body}])
    assert (status in (400, 422), set(json.loads(answer))) == (True, REFUSED)


NAMES = st.sampled_from([b"interval", b"limit", b"games", b"studios", b"x"])
VALUES = st.binary(max_size=12) | st.sampled_from([b"2026-11-15/P7D", b"1001", b"s1", b"5", b"9999-12-31/P9D"])


@ANY_BYTES
@given(
    path=st.sampled_from(LISTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    pairs=st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=4),
)
def test_no_bytes_in_an_address_make_it_fail(asked: Stage, path: str, pairs: list[tuple[bytes, bytes, bool]]) -> None:
    written = (
        name + b"=" + (quote_from_bytes(value).encode() if is_quoted else value) for name, value, is_quoted in pairs
    )
    status, answer = raw(asked, "GET", f"/metrics/v1/{path}", query=b"&".join(written))
    assert status in (200, 400, 404, 405, 422), answer
    assert json.loads(answer) is not None


@ANY_BYTES
@given(
    name=st.sampled_from([b"host", b"content-length", b"content-type", b"accept", b"cookie"]),
    value=st.binary(max_size=16),
)
def test_no_bytes_in_a_header_make_it_fail(asked: Stage, name: bytes, value: bytes) -> None:
    for path, expected in (("/metrics/v1/dimensions", 200), ("/nowhere", 404)):
        assert raw(asked, "GET", path, headers=[(name, value)])[0] == expected


@pytest.mark.parametrize("host", ["[", "a b", "[::1", "evil.example:99999"])
def test_no_host_makes_a_refusal_fail(asked: Stage, host: str) -> None:
    assert raw(asked, "GET", "/nowhere", headers=[(b"host", host.encode())])[0] == 404


def test_many_at_once_are_all_answered(asked: Stage) -> None:
    """One question's bytes never end up in another's answer."""

    async def ask_all() -> list[Any]:
        days = [f"2026-11-{day:02}" for day in range(1, 21)]
        bodies = [BODY | {"interval": f"{day}/P1D"} for day in days]
        return await asyncio.gather(*(send(asked.metrics_app, "POST", REVENUE, json=it, headers=KEY) for it in bodies))

    stamps = [answer.json()["result"][0]["timestamp"] for answer in asyncio.run(ask_all())]
    assert stamps == [f"2026-11-{day:02}T00:00:00.000Z" for day in range(1, 21)]
