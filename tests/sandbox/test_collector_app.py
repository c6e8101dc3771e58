"""The collector over HTTP: authentication, events, init and CORS."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
from collections.abc import Callable, MutableMapping
from typing import Any

import httpx
import pytest

from gamelens.wire.signing import sign
from support.app_requests import call
from support.collector_requests import COLLECTOR_PATHS, EVENTS_PATH, GAME_KEY, send_signed
from support.game_events import event
from support.sandbox_stage import NO_EVENTS, Stage, event_counts


def unauthenticated_responses(stage: Stage) -> dict[str, httpx.Response]:
    """Send requests that fail authentication in every way, and return their responses."""
    body = json.dumps([event()]).encode()
    right, production_game = sign(body, secret_key=stage.game("1001").secret_key), stage.game("2002")
    return {
        "unknown key": stage.post(f"/v2/{'f' * 32}/events", body, {"Authorization": right}),
        "upper-case key": stage.post(f"/v2/{GAME_KEY.upper()}/events", body, {"Authorization": right}),
        "wrong signature": stage.post(EVENTS_PATH, body, {"Authorization": sign(body, secret_key="0" * 40)}),
        "signature of other bytes": stage.post(EVENTS_PATH, body + b" ", {"Authorization": right}),
        "signature before gzip": stage.post(
            EVENTS_PATH, gzip.compress(body), {"Authorization": right, "Content-Encoding": "gzip"}
        ),
        "missing header": stage.post(EVENTS_PATH, body),
        "no ASCII": stage.post(EVENTS_PATH, body, {"Authorization": "Ünterschrift".encode()}),  # type: ignore[dict-item]
        "production key": stage.submit([event()], game_id="2002"),
        "production init": stage.post(
            f"/v2/{production_game.game_key}/init",
            b"{}",
            {"Authorization": sign(b"{}", secret_key=production_game.secret_key)},
        ),
        "remote init without a key": stage.post("/remote_configs/v1/init", body, {"Authorization": right}),
    }


def test_every_failed_authentication_gets_the_same_401(shared: Stage) -> None:
    """Every failed authentication gets the same 401, so that none can be told apart.

    Wire 1.4, Signature.
    """
    answers = unauthenticated_responses(shared)
    assert {answer.status_code for answer in answers.values()} == {401}
    assert len({(answer.content, tuple(answer.headers.items())) for answer in answers.values()}) == 1
    assert set(answers["unknown key"].json()) == {"message"}


async def response_time_s(stage: Stage, method: str, path: str, body: bytes, signature: str) -> float:
    """Return the seconds that the collector takes for one request, without a client."""
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "http_version": "1.1"}
    scope["headers"] = [(b"authorization", signature.encode())]
    statuses: list[int | None] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.append(message.get("status"))

    began = time.perf_counter()
    await stage.sandbox.collector(scope, receive, send)
    took_s = time.perf_counter() - began
    assert statuses[0] == (401 if method == "POST" else 405)
    return took_s


async def quickest_times_s(stage: Stage, requests: dict[str, tuple[str, str, bytes, str]]) -> dict[str, float]:
    """Send *requests* in turns, and return the tenth percentile of the seconds that each one takes.

    A busy machine only adds to a time, and to the times of all alike, so the quickest ones are those of the code.
    """
    times_s: dict[str, list[float]] = {name: [] for name in requests}
    for _ in range(60):
        for name, request in requests.items():
            times_s[name].append(await response_time_s(stage, *request))
    return {name: sorted(times)[len(times) // 10] for name, times in times_s.items()}


@pytest.mark.parametrize("route", ["events", "init"])
def test_response_time_does_not_reveal_why_a_401(shared: Stage, route: str) -> None:
    """An unknown key takes as long as a known one, the HMAC of a large body included.

    A request that is refused before its signature is the proof that the measure sees an early answer. Noise is
    measured anew, an early answer stays early. Wire 1.4, Signature.
    """
    body = bytes(1 << 18)
    right, production_game = sign(body, secret_key=shared.game("1001").secret_key), shared.game("2002")
    path = f"/v2/{GAME_KEY}/{route}"
    wrong = {
        "unknown key": ("POST", f"/v2/{'f' * 32}/{route}", body, right),
        "wrong signature": ("POST", path, body, sign(body, secret_key="0" * 40)),
        "signature in hexadecimal": ("POST", path, body, base64.b64decode(right).hex()),
        "nearly right": ("POST", path, body, right[:-2] + "x="),
        "no signature": ("POST", path, body, ""),
        "production key": (
            "POST",
            f"/v2/{production_game.game_key}/{route}",
            body,
            sign(body, secret_key=production_game.secret_key),
        ),
    }
    for _ in range(5):
        times_s = asyncio.run(quickest_times_s(shared, {**wrong, "early answer": ("PUT", path, body, right)}))
        assert 1.25 * times_s.pop("early answer") < min(times_s.values())
        if max(times_s.values()) < 1.25 * min(times_s.values()):
            return
    pytest.fail(f"the time of an answer tells the requests apart: {times_s}")


def test_a_request_with_401_stores_nothing(shared: Stage) -> None:
    """A request that fails authentication counts no event, good or bad (Wire 1.4, Signature)."""
    unauthenticated_responses(shared)
    assert event_counts(shared) == NO_EVENTS


def test_good_events_of_a_batch_are_collected_and_the_others_named_in_order(stage: Stage) -> None:
    """Of a mixed batch, good events are stored and the others listed in order.

    Wire 1.8, Rejected events.
    """
    bad, very_bad = event(session_id=5), event(category="business", v=1, x=[1, {"é": None}])
    answer = stage.submit([event(), bad, event(user_id="bob"), very_bad, None])
    assert answer.status_code == 400
    first, second, third = answer.json()
    assert first == {"event": bad, "errors": [{"error_type": "wrong_type", "path": "/session_id"}]}
    assert second["event"] == very_bad
    assert {(error["error_type"], error["path"]) for error in second["errors"]} == {
        ("not_in_range", "/v"),
        ("missing_required_property", "/event_id"),
        ("missing_required_property", "/amount"),
        ("missing_required_property", "/currency"),
        ("missing_required_property", "/transaction_num"),
    }
    assert third == {"event": None, "errors": [{"error_type": "wrong_type", "path": "/"}]}
    assert event_counts(stage) == NO_EVENTS | {"accepted": 2, "rejected": 3, "pending": 2}


def test_the_good_events_of_a_bad_batch_are_processed(stage: Stage) -> None:
    """The good events of a batch with bad ones are processed like any others.

    Wire 1.8, Rejected events.
    """
    stage.submit([event(session_id=5), event(), event(v=7)])
    stage.process()
    assert event_counts(stage) == NO_EVENTS | {"accepted": 1, "rejected": 2, "processed": 1}


def test_a_rejected_event_is_returned_byte_for_byte(stage: Stage) -> None:
    """A rejected event is returned with the spaces, digits and escapes it was sent with.

    Wire 1.8, Rejected events.
    """
    sent = b'{ "category" : "user",  "big": 12345678901234567890123, "exact": 1.10, "u": "\\u00e9" }'
    answer = send_signed(stage, b"[" + sent + b"]")
    assert sent in answer.content


@pytest.mark.parametrize("field", [b'"user_id": 5', b'"x": 1e999, "v": 3', b'"category": "ads"'])
def test_a_field_given_twice_is_not_good_by_its_last_value_alone(stage: Stage, field: bytes) -> None:
    """A bad first value of a repeated field makes the event bad (Wire 1.8, Rejected events)."""
    sent = json.dumps(event()).encode()
    answer = send_signed(stage, b"[{" + field + b", " + sent[1:] + b"]")
    assert answer.status_code == 400
    assert event_counts(stage)["accepted"] == 0


def test_a_number_beyond_any_float_affects_its_event_alone(stage: Stage) -> None:
    """A number beyond any float in an unknown field makes no event of the batch bad.

    Wire 1.7, Submitting events.
    """
    body = json.dumps([event(x="?"), event(v=3), event()]).encode().replace(b'"?"', b"1e999")
    answer = send_signed(stage, body)
    assert [rejected["errors"][0]["path"] for rejected in answer.json()] == ["/v"]
    assert event_counts(stage)["accepted"] == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405(shared: Stage, method: str) -> None:
    """Any other method gets 405 with a message and the allowed methods.

    Wire 1.10, Collector statuses.
    """
    answer = call(shared.sandbox.collector, method, EVENTS_PATH)
    assert (answer.status_code, set(answer.json()), answer.headers["allow"]) == (405, {"message"}, "POST, OPTIONS")


@pytest.mark.parametrize(
    "path", ["/", "/v2", f"/v2/{GAME_KEY}", f"/v2/{GAME_KEY}/event", f"{EVENTS_PATH}/", f"/v1/{GAME_KEY}/events", "//"]
)
def test_another_address_is_404(shared: Stage, path: str) -> None:
    """Any other path gets 404 with a message, a trailing slash included.

    Wire 1.10, Collector statuses.
    """
    answer = send_signed(shared, b"[]", path=path)
    assert (answer.status_code, set(answer.json())) == (404, {"message"})


def cors(answer: httpx.Response) -> dict[str, str]:
    """Return the CORS headers of a response, without their common prefix."""
    prefix = "access-control-"
    return {name[len(prefix) :]: value for name, value in answer.headers.items() if name.startswith(prefix)}


@pytest.mark.parametrize("path", COLLECTOR_PATHS)
def test_options_has_the_cors_headers_for_a_browser(shared: Stage, path: str) -> None:
    """OPTIONS gets 204 with all CORS headers that a browser needs.

    Wire 1.5, Response headers.
    """
    answer = call(shared.sandbox.collector, "OPTIONS", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert cors(answer) == {
        "allow-origin": "*",
        "allow-methods": "POST, OPTIONS",
        "allow-headers": "Authorization, X-Requested-With, Content-Type, Content-Encoding",
        "max-age": "7200",
    }


@pytest.mark.parametrize("path", COLLECTOR_PATHS)
def test_post_has_the_cors_headers_of_the_real_service(shared: Stage, path: str) -> None:
    """A response to POST has exactly the two CORS headers of the real service.

    Wire 1.5, Response headers.
    """
    assert cors(send_signed(shared, b"{}", path=path)) == {
        "allow-origin": "*",
        "allow-headers": "Authorization, X-Requested-With",
    }


def test_every_answer_may_be_read_by_a_browser(shared: Stage) -> None:
    """Every response, an error too, allows any origin and is JSON.

    Wire 1.5, Response headers.
    """
    answers = [
        *unauthenticated_responses(shared).values(),
        send_signed(shared, b"x"),
        shared.submit([None]),
        shared.submit([]),
    ]
    answers += [call(shared.sandbox.collector, "GET", EVENTS_PATH), shared.post("/", b"")]
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
def test_the_body_of_a_200_follows_the_reply_option(
    make_stage: Callable[..., Stage], reply: str, events: Any, body: bytes
) -> None:
    """The body of a 200 is empty or `{}`, by `--reply` and by `sdk_version`.

    Wire 1.7, Submitting events.
    """
    answer = make_stage(reply=reply).submit(events)
    assert (answer.status_code, answer.content) == (200, body)
