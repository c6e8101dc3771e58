"""Collector, POST events and Authentication; contract, Collector beyond the specification."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import NOW, Stage, event
from gamelens.wire.signing import sign
from sandbox.conftest import GAME_KEY, call, counted

EVENTS = f"/v2/{GAME_KEY}/events"
NOTHING = {"accepted": 0, "rejected": 0, "pending": 0, "processed": 0, "duplicate": 0}
BODY_BYTES = 1_048_576


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One sandbox for all that is refused, since nothing of it is stored."""
    stage = Stage(tmp_path_factory.mktemp("refused") / "state")
    yield stage
    stage.sandbox.close()


def send_signed(stage: Stage, body: bytes, *, path: str = EVENTS, encoding: str | None = None) -> httpx.Response:
    headers = {"Authorization": sign(body, secret_key=stage.game("1001").secret_key)}
    return stage.post(path, body, headers | ({"Content-Encoding": encoding} if encoding else {}))


def undecodable(error_type: str) -> list[Any]:
    return [{"errors": [{"error_type": error_type, "path": "/"}]}]


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


def test_whoever_is_not_known_hears_one_and_the_same_401(shared: Stage):
    """contract, Collector: wrong key, wrong signature, missing header, production key. Nobody can tell which."""
    answers = ways_to_be_nobody(shared)
    assert {answer.status_code for answer in answers.values()} == {401}
    assert len({(answer.content, tuple(answer.headers.items())) for answer in answers.values()}) == 1
    assert set(answers["unknown key"].json()) == {"message"}


def test_nothing_of_a_401_is_stored(shared: Stage):
    """Issue 2, Bad input."""
    ways_to_be_nobody(shared)
    assert counted(shared) == NOTHING


def test_the_largest_body_is_taken(stage: Stage):
    """Collector, Limits: POST size."""
    assert send_signed(stage, json.dumps([event()]).encode().ljust(BODY_BYTES)).status_code == 200


def test_one_byte_more_is_413(shared: Stage):
    """contract, Collector: 1,048,576 bytes as sent."""
    answer = send_signed(shared, json.dumps([event()]).encode().ljust(BODY_BYTES + 1))
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert counted(shared) == NOTHING


def test_bytes_count_as_sent(stage: Stage):
    """Public facts 1.10: the gzipped size."""
    body = gzip.compress(json.dumps([event()]).encode().ljust(3 * BODY_BYTES))
    assert send_signed(stage, body, encoding="gzip").status_code == 200


def test_more_than_16_mb_unpacked_is_413(shared: Stage):
    """contract, Collector: over 16 MB when unpacked."""
    body = gzip.compress(json.dumps([event()]).encode().ljust(16 * BODY_BYTES + 1), 1)
    answer = send_signed(shared, body, encoding="gzip")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert counted(shared) == NOTHING


PACKED = gzip.compress(json.dumps([event()]).encode())
UNREADABLE = {
    "no gzip": (b"[]", "gzip", "wrong_format"),
    "cut gzip": (PACKED[:-1], "gzip", "wrong_format"),
    "half a gzip": (PACKED[: len(PACKED) // 2], "gzip", "wrong_format"),
    "gzip and garbage": (PACKED + b"\0", "gzip", "wrong_format"),
    "two gzips": (PACKED + PACKED, "gzip", "wrong_format"),
    "wrong checksum": (PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "gzip", "wrong_format"),
    "empty gzip": (b"", "gzip", "wrong_format"),
    "unsaid gzip": (PACKED, None, "wrong_format"),
    "unknown encoding": (b"[]", "br", "wrong_format"),
    "empty": (b"", None, "wrong_format"),
    "no JSON": (b"[{]", None, "wrong_format"),
    "cut JSON": (json.dumps([event()]).encode()[:-1], None, "wrong_format"),
    "JSON and more": (b"[] []", None, "wrong_format"),
    "NaN": (b"[NaN]", None, "wrong_format"),
    "no UTF-8": (json.dumps([event(x="?")]).encode().replace(b"?", b"\xff"), None, "wrong_format"),
    "too deep": (json.dumps([event(x="?")]).encode().replace(b'"?"', b"[" * 31 + b"]" * 31), None, "wrong_format"),
    "much too deep": (b"[" * 500_000 + b"]" * 500_000, None, "wrong_format"),
    "an object": (json.dumps(event()).encode(), None, "wrong_type"),
    "null": (b"null", None, "wrong_type"),
    "a string": (b'"[]"', None, "wrong_type"),
    "a number": (b"7", None, "wrong_type"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_as_an_array_is_400(shared: Stage, what: str):
    """contract, Collector: undecodable gzip or JSON, or not an array."""
    body, encoding, error_type = UNREADABLE[what]
    answer = send_signed(shared, body, encoding=encoding)
    assert (answer.status_code, answer.json()) == (400, undecodable(error_type))
    assert counted(shared) == NOTHING


def test_32_levels_are_not_too_deep(stage: Stage):
    """The sandbox package, Our choices. Brackets inside strings are no levels."""
    body = json.dumps([event(x="?", y="[" * 40, z='\\"[{' * 40)]).encode().replace(b'"?"', b"[" * 30 + b"]" * 30)
    assert send_signed(stage, body).status_code == 200


def test_good_events_of_a_batch_are_collected_and_the_others_named_in_order(stage: Stage):
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


def test_the_good_events_of_a_bad_batch_are_processed(stage: Stage):
    """Public facts 1.7: partial acceptance."""
    stage.submit([event(session_id=5), event(), event(v=7)])
    stage.process()
    assert counted(stage) == NOTHING | {"accepted": 1, "rejected": 2, "processed": 1}


def test_a_rejected_event_is_echoed_to_the_letter(stage: Stage):
    """contract, Collector: `event` as sent."""
    sent = b'{ "category" : "user",  "big": 12345678901234567890123, "exact": 1.10, "u": "\\u00e9" }'
    answer = send_signed(stage, b"[" + sent + b"]")
    assert sent in answer.content


@pytest.mark.parametrize("field", [b'"user_id": 5', b'"x": 1e999, "v": 3', b'"category": "ads"'])
def test_a_field_given_twice_is_not_good_by_its_last_value_alone(stage: Stage, field: bytes):
    """What is admitted can be processed: the typed reader looks at every value."""
    sent = json.dumps(event()).encode()
    answer = send_signed(stage, b"[{" + field + b", " + sent[1:] + b"]")
    assert answer.status_code == 400
    assert counted(stage)["accepted"] == 0


def test_a_number_past_every_float_is_its_event_s_own_fault(stage: Stage):
    """contract, Collector: the good events of the batch are collected."""
    body = json.dumps([event(x="?"), event(v=3), event()]).encode().replace(b'"?"', b"1e999")
    answer = send_signed(stage, body)
    assert [it["errors"][0]["path"] for it in answer.json()] == ["/v"]
    assert counted(stage)["accepted"] == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405(shared: Stage, method: str):
    """contract, Collector: unknown route / method."""
    answer = call(shared.sandbox.collector, method, EVENTS)
    assert (answer.status_code, set(answer.json()), answer.headers["allow"]) == (405, {"message"}, "POST, OPTIONS")


@pytest.mark.parametrize(
    "path", ["/", "/v2", f"/v2/{GAME_KEY}", f"/v2/{GAME_KEY}/event", f"{EVENTS}/", f"/v1/{GAME_KEY}/events", "//"]
)
def test_another_address_is_404(shared: Stage, path: str):
    """contract, Collector: unknown route / method."""
    answer = send_signed(shared, b"[]", path=path)
    assert (answer.status_code, set(answer.json())) == (404, {"message"})


def test_options_tells_a_browser_what_it_may_send(shared: Stage):
    """contract, Collector: 204 with the CORS headers a browser needs."""
    answer = call(shared.sandbox.collector, "OPTIONS", EVENTS)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert {"Authorization", "Content-Type", "Content-Encoding"} <= set(
        answer.headers["access-control-allow-headers"].split(", ")
    )


def test_every_answer_may_be_read_by_a_browser(shared: Stage):
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
def test_the_body_of_a_200_is_by_choice(make_stage: Callable[..., Stage], reply: str, events: Any, body: bytes):
    """contract, Collector: events, all good."""
    answer = make_stage(reply=reply).submit(events)
    assert (answer.status_code, answer.content) == (200, body)


INIT = {"user_id": "ann", "platform": "ios", "os_version": "ios 17", "sdk_version": "rest api v2", "random_salt": "x"}


@pytest.mark.parametrize(
    "body", [INIT, [INIT], INIT | {"random_salt": 7}, INIT | {"build": None, "session_num": 3, "x": []}]
)
@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
def test_init_is_an_object_or_an_array_of_one(shared: Stage, body: Any, path: str):
    """Public facts 1.4: accept string or integer random_salt, null build, unknown fields, and both forms."""
    answer = send_signed(shared, json.dumps(body).encode(), path=path)
    assert answer.status_code in (200, 201)
    assert answer.json()["server_ts"] == int(NOW.timestamp())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"[{}, {}]", b"[[]]", b'{"a": 1e999}', b"\xff"])
@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
def test_anything_else_is_no_init(shared: Stage, body: bytes, path: str):
    """contract, Collector: undecodable. Clients parse before they look at the status (public facts 1.9)."""
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()[0]["errors"][0]["path"]) == (400, "/")


def test_a_stale_hash_hears_everything_again(shared: Stage):
    """Collector, POST remote_configs init 4."""
    path = f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=stale"
    assert send_signed(shared, json.dumps(INIT).encode(), path=path).status_code == 201


def test_the_clock_of_the_server_is_the_sandbox_s(stage: Stage):
    """Collector, POST init 3."""
    stage.clock.freeze(NOW.replace(year=2027))
    answer = send_signed(stage, json.dumps(INIT).encode(), path=f"/v2/{GAME_KEY}/init")
    assert answer.json()["server_ts"] == int(NOW.replace(year=2027).timestamp())


BYTES = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(gzip.compress),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
    st.randoms(use_true_random=False).map(lambda source: _mangled(source, json.dumps([event(), event()]).encode())),
)
PATHS = [EVENTS, f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=%ff"]


def _mangled(source: random.Random, body: bytes) -> bytes:
    """*body* with a few of its bytes changed."""
    changed = bytearray(body)
    for _ in range(source.randrange(1, 5)):
        changed[source.randrange(len(changed))] = source.randrange(256)
    return bytes(changed)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BYTES, path=st.sampled_from(PATHS), encoding=st.sampled_from([None, None, "gzip", "identity", "x"]))
def test_no_body_is_answered_with_5xx(stage: Stage, body: bytes, path: str, encoding: str | None):
    """contract, Collector: every answer is one of its table."""
    answer = send_signed(stage, body, path=path, encoding=encoding)
    assert answer.status_code in (200, 201, 400, 413)
    if answer.content:
        answer.json()
