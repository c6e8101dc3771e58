"""Collector, POST events and Authentication; contract, Collector beyond the specification."""

from __future__ import annotations

import asyncio
import gzip
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from conftest import NOW, Stage, event
from gamelens.wire.signing import sign
from sandbox.conftest import EVENTS, GAME_KEY, NOTHING, PATHS, call, counted, send_signed


def ways_to_be_nobody(stage: Stage) -> dict[str, httpx.Response]:
    body = json.dumps([event()]).encode()
    right, live = sign(body, secret_key=stage.game("1001").secret_key), stage.game("2002")
    return {
        "unknown key": stage.post(f"/v2/{'f' * 32}/events", body, {"Authorization": right}),
        "upper-case key": stage.post(f"/v2/{GAME_KEY.upper()}/events", body, {"Authorization": right}),
        "wrong signature": stage.post(EVENTS, body, {"Authorization": sign(body, secret_key="0" * 40)}),
        "signature of other bytes": stage.post(EVENTS, body + b" ", {"Authorization": right}),
        "signature before gzip": stage.post(
            EVENTS, gzip.compress(body), {"Authorization": right, "Content-Encoding": "gzip"}
        ),
        "missing header": stage.post(EVENTS, body),
        "no ASCII": stage.post(EVENTS, body, {"Authorization": "Ünterschrift".encode()}),  # type: ignore[dict-item]
        "production key": stage.submit([event()], game_id="2002"),
        "production init": stage.post(
            f"/v2/{live.game_key}/init", b"{}", {"Authorization": sign(b"{}", secret_key=live.secret_key)}
        ),
        "remote init without a key": stage.post("/remote_configs/v1/init", body, {"Authorization": right}),
    }


def test_whoever_is_not_known_hears_one_and_the_same_401(shared: Stage) -> None:
    """contract, Collector: wrong key, wrong signature, missing header, production key. Nobody can tell which."""
    answers = ways_to_be_nobody(shared)
    assert {answer.status_code for answer in answers.values()} == {401}
    assert len({(answer.content, tuple(answer.headers.items())) for answer in answers.values()}) == 1
    assert set(answers["unknown key"].json()) == {"message"}


async def answer_s(stage: Stage, path: str, body: bytes, signature: str) -> float:
    """Seconds of one request to the collector itself, with no client around it."""
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "http_version": "1.1"}
    scope["headers"] = [(b"authorization", signature.encode())]
    statuses = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status"))

    began = time.perf_counter()
    await stage.sandbox.collector(scope, receive, send)
    took = time.perf_counter() - began
    assert statuses[0] == 401
    return took


@pytest.mark.parametrize("route", ["events", "init"])
def test_nobody_can_tell_by_the_time_what_was_wrong(shared: Stage, route: str) -> None:
    """A key that exists costs as much as one that does not: the whole HMAC, of a body that makes it count."""
    body = bytes(1 << 18)
    right, live = sign(body, secret_key=shared.game("1001").secret_key), shared.game("2002")
    wrong = {
        "unknown key": (f"/v2/{'f' * 32}/{route}", right),
        "wrong signature": (f"/v2/{GAME_KEY}/{route}", sign(body, secret_key="0" * 40)),
        "nearly right": (f"/v2/{GAME_KEY}/{route}", right[:-2] + "x="),
        "no signature": (f"/v2/{GAME_KEY}/{route}", ""),
        "production key": (f"/v2/{live.game_key}/{route}", sign(body, secret_key=live.secret_key)),
    }

    async def measured() -> dict[str, list[float]]:
        took: dict[str, list[float]] = {name: [] for name in wrong}
        for _ in range(150):
            for name, (path, signature) in wrong.items():
                took[name].append(await answer_s(shared, path, body, signature))
        return took

    medians = [statistics.median(took) for took in asyncio.run(measured()).values()]
    assert max(medians) < 1.25 * min(medians)


def test_nothing_of_a_401_is_stored(shared: Stage) -> None:
    """Issue 2, Bad input."""
    ways_to_be_nobody(shared)
    assert counted(shared) == NOTHING


def test_good_events_of_a_batch_are_collected_and_the_others_named_in_order(stage: Stage) -> None:
    """contract, Collector: some fail validation; public facts 1.7: partial acceptance."""
    bad, worse = event(session_id=5), event(category="business", v=1, x=[1, {"é": None}])
    answer = stage.submit([event(), bad, event(user_id="bob"), worse, None])
    assert answer.status_code == 400
    first, second, third = answer.json()
    assert first == {"event": bad, "errors": [{"error_type": "wrong_type", "path": "/session_id"}]}
    assert second["event"] == worse
    assert {(it["error_type"], it["path"]) for it in second["errors"]} == {
        ("not_in_range", "/v"),
        ("missing_required_property", "/event_id"),
        ("missing_required_property", "/amount"),
        ("missing_required_property", "/currency"),
        ("missing_required_property", "/transaction_num"),
    }
    assert third == {"event": None, "errors": [{"error_type": "wrong_type", "path": "/"}]}
    assert counted(stage) == NOTHING | {"accepted": 2, "rejected": 3, "pending": 2}


def test_the_good_events_of_a_bad_batch_are_processed(stage: Stage) -> None:
    """Public facts 1.7: partial acceptance."""
    stage.submit([event(session_id=5), event(), event(v=7)])
    stage.process()
    assert counted(stage) == NOTHING | {"accepted": 1, "rejected": 2, "processed": 1}


def test_a_rejected_event_is_echoed_to_the_letter(stage: Stage) -> None:
    """contract, Collector: `event` as sent."""
    sent = b'{ "category" : "user",  "big": 12345678901234567890123, "exact": 1.10, "u": "\\u00e9" }'
    answer = send_signed(stage, b"[" + sent + b"]")
    assert sent in answer.content


@pytest.mark.parametrize("field", [b'"user_id": 5', b'"x": 1e999, "v": 3', b'"category": "ads"'])
def test_a_field_given_twice_is_not_good_by_its_last_value_alone(stage: Stage, field: bytes) -> None:
    """What is admitted can be processed: the typed reader looks at every value."""
    sent = json.dumps(event()).encode()
    answer = send_signed(stage, b"[{" + field + b", " + sent[1:] + b"]")
    assert answer.status_code == 400
    assert counted(stage)["accepted"] == 0


def test_a_number_past_every_float_is_its_event_s_own_fault(stage: Stage) -> None:
    """contract, Collector: the good events of the batch are collected."""
    body = json.dumps([event(x="?"), event(v=3), event()]).encode().replace(b'"?"', b"1e999")
    answer = send_signed(stage, body)
    assert [it["errors"][0]["path"] for it in answer.json()] == ["/v"]
    assert counted(stage)["accepted"] == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405(shared: Stage, method: str) -> None:
    """contract, Collector: unknown route / method."""
    answer = call(shared.sandbox.collector, method, EVENTS)
    assert (answer.status_code, set(answer.json()), answer.headers["allow"]) == (405, {"message"}, "POST, OPTIONS")


@pytest.mark.parametrize(
    "path", ["/", "/v2", f"/v2/{GAME_KEY}", f"/v2/{GAME_KEY}/event", f"{EVENTS}/", f"/v1/{GAME_KEY}/events", "//"]
)
def test_another_address_is_404(shared: Stage, path: str) -> None:
    """contract, Collector: unknown route / method."""
    answer = send_signed(shared, b"[]", path=path)
    assert (answer.status_code, set(answer.json())) == (404, {"message"})


def cors(answer: httpx.Response) -> dict[str, str]:
    prefix = "access-control-"
    return {name[len(prefix) :]: value for name, value in answer.headers.items() if name.startswith(prefix)}


@pytest.mark.parametrize("path", PATHS)
def test_options_tells_a_browser_what_it_may_send(shared: Stage, path: str) -> None:
    """contract, Collector: 204 with the CORS headers a browser needs; public facts 1.3: more on the preflight."""
    answer = call(shared.sandbox.collector, "OPTIONS", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert cors(answer) == {
        "allow-origin": "*",
        "allow-methods": "POST, OPTIONS",
        "allow-headers": "Authorization, X-Requested-With, Content-Type, Content-Encoding",
        "max-age": "7200",
    }


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_says_no_more_than_the_specification_has(shared: Stage, path: str) -> None:
    """Collector, Common request headers, response headers seen; public facts 1.3: keep the list on POST."""
    assert cors(send_signed(shared, b"{}", path=path)) == {
        "allow-origin": "*",
        "allow-headers": "Authorization, X-Requested-With",
    }


def test_every_answer_may_be_read_by_a_browser(shared: Stage) -> None:
    """contract, Collector: errors too."""
    answers = [*ways_to_be_nobody(shared).values(), send_signed(shared, b"x"), shared.submit([None]), shared.submit([])]
    answers += [call(shared.sandbox.collector, "GET", EVENTS), shared.post("/", b"")]
    assert {answer.headers["access-control-allow-origin"] for answer in answers} == {"*"}
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}


CUSTOM, OFFICIAL = event(), event(sdk_version="unity 7.10.6")


@pytest.mark.parametrize(
    ("reply", "events", "body"),
    [
        ("auto", [CUSTOM], b""),
        ("auto", [OFFICIAL], b"{}"),
        ("auto", [CUSTOM, OFFICIAL], b"{}"),
        ("auto", [], b"{}"),
        ("empty", [OFFICIAL], b""),
        ("empty", [], b""),
        ("json", [CUSTOM], b"{}"),
        ("json", [], b"{}"),
    ],
)
def test_the_body_of_a_200_is_by_choice(make_stage: Callable[..., Stage], reply: str, events: Any, body: bytes) -> None:
    """contract, Collector: events, all good."""
    answer = make_stage(reply=reply).submit(events)
    assert (answer.status_code, answer.content) == (200, body)


NO_INIT = [
    *(b"", b"{", b"[]", b"7", b"null", b'"x"', b"[{}, {}]", b"[[]]", b"\xff", b"\xef\xbb\xbf{}"),
    *('{"user_id": "a"}'.encode("utf-16"), b'{"user_id": "a", "x": "\xff"}', b'{"user_id": "a"} {}'),
    *(b'{"user_id": "\\ud800"}', b'{"user_id": "a", "x": "\\ud800"}', b'{"user_id": "a", "x": NaN}'),
    *(b'{"user_id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"user_id": "a", "x": [}'),
]
INIT = {"user_id": "ann", "platform": "ios", "os_version": "ios 17", "sdk_version": "rest api v2", "random_salt": "x"}


@pytest.mark.parametrize(
    "body", [INIT, [INIT], INIT | {"random_salt": 7}, INIT | {"build": None, "session_num": 3, "x": []}]
)
@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
def test_init_is_an_object_or_an_array_of_one(shared: Stage, body: Any, path: str) -> None:
    """Public facts 1.4: accept string or integer random_salt, null build, unknown fields, and both forms."""
    answer = send_signed(shared, json.dumps(body).encode(), path=path)
    assert answer.status_code in (200, 201)
    assert answer.json()["server_ts"] == int(NOW.timestamp())


@pytest.mark.parametrize("body", NO_INIT)
@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
def test_anything_else_is_no_init(shared: Stage, body: bytes, path: str) -> None:
    """contract, Collector: undecodable. Clients parse before they look at the status (public facts 1.9)."""
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()[0]["errors"][0]["path"]) == (400, "/")


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        (b"{}", "missing_required_property"),
        (b'[{"x": 1e999}]', "missing_required_property"),
        (b'{"user_id": null}', "wrong_type"),
        (b'{"user_id": 5}', "wrong_type"),
        (b'{"user_id": "a", "user_id": [[]]}', "wrong_type"),
    ],
)
@pytest.mark.parametrize("path", PATHS[1:])
def test_an_init_of_nobody_is_400(shared: Stage, path: str, body: bytes, error_type: str) -> None:
    """Collector, Init request body: user_id decides on enrolment."""
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()) == (400, [{"errors": [{"error_type": error_type, "path": "/user_id"}]}])


@pytest.mark.parametrize("path", PATHS[1:])
def test_an_init_request_takes_no_more_memory_than_its_size(shared: Stage, path: str) -> None:
    """16 MB of small things in a field that nobody reads would be half a GB of objects."""
    body = gzip.compress(b'{"user_id": "ann", "x": [' + b"[]," * 5_000_000 + b"[]]}", 1)
    tracemalloc.start()
    try:
        assert send_signed(shared, body, path=path, encoding="gzip").status_code < 300
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_a_stale_hash_hears_everything_again(shared: Stage) -> None:
    """Collector, POST remote_configs init 4."""
    path = f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=stale"
    assert send_signed(shared, json.dumps(INIT).encode(), path=path).status_code == 201


def test_the_clock_of_the_server_is_the_sandbox_s(stage: Stage) -> None:
    """Collector, POST init 3."""
    stage.clock.freeze(NOW.replace(year=2027))
    answer = send_signed(stage, json.dumps(INIT).encode(), path=f"/v2/{GAME_KEY}/init")
    assert answer.json()["server_ts"] == int(NOW.replace(year=2027).timestamp())
