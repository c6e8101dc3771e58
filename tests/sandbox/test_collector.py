"""Collector, POST events and Authentication; contract, Collector beyond the specification."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import statistics
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import NOW, Stage, event
from gamelens.sandbox.arrivals import Look
from gamelens.wire.signing import sign
from sandbox.conftest import GAME_KEY, call, counted

EVENTS = f"/v2/{GAME_KEY}/events"
NOTHING = {"accepted": 0, "rejected": 0, "pending": 0, "processed": 0, "duplicate": 0}
BODY_BYTES = 1_048_576
PATHS = [EVENTS, f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=%ff"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One sandbox for all that is refused, since nothing of it is stored."""
    stage = Stage(tmp_path_factory.mktemp("refused") / "state")
    yield stage
    stage.sandbox.close()


def send_signed(stage: Stage, body: bytes, *, path: str = EVENTS, encoding: str | None = None) -> httpx.Response:
    headers: dict[str, Any] = {"Authorization": sign(body, secret_key=stage.game("1001").secret_key)}
    return stage.post(path, body, headers | ({"Content-Encoding": encoding.encode()} if encoding else {}))


def post_lines(stage: Stage, body: bytes, *lines: tuple[str, str]) -> httpx.Response:
    """Signed, with headers of which some may have the same name."""
    signed = ("Authorization", sign(body, secret_key=stage.game("1001").secret_key))
    return call(stage.sandbox.collector, "POST", EVENTS, content=body, headers=[*lines, signed])


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
def test_nobody_can_tell_by_the_time_what_was_wrong(shared: Stage, route: str):
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


def with_field(name: str, value: bytes) -> bytes:
    """One good event, but for *value*, which JSON may not even have."""
    return json.dumps([event(**{name: "?"})]).encode().replace(b"\\\\", b"\\").replace(b'"?"', value)


PACKED = gzip.compress(json.dumps([event()]).encode())
UNREADABLE = {
    "no gzip": (b"[]", "gzip", "wrong_format"),
    "cut gzip": (PACKED[:-1], "gzip", "wrong_format"),
    "half a gzip": (PACKED[: len(PACKED) // 2], "gzip", "wrong_format"),
    "gzip and garbage": (PACKED + b"\0", "gzip", "wrong_format"),
    "two gzips, two arrays": (PACKED + PACKED, "gzip", "wrong_format"),
    "gzip and half a gzip": (PACKED + PACKED[:20], "gzip", "wrong_format"),
    "wrong length": (PACKED[:-4] + b"\0\0\0\0", "gzip", "wrong_format"),
    "wrong checksum": (PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "gzip", "wrong_format"),
    "empty gzip": (b"", "gzip", "wrong_format"),
    "unsaid gzip": (PACKED, None, "wrong_format"),
    "gzipped twice, said once": (gzip.compress(PACKED), "gzip", "wrong_format"),
    "gzipped twice": (gzip.compress(PACKED), "gzip, gzip", "wrong_format"),
    "gzipped once, said twice": (PACKED, "gzip, gzip", "wrong_format"),
    "gzip and something": (PACKED, "gzip, br", "wrong_format"),
    "deflate": (zlib.compress(b"[]"), "deflate", "wrong_format"),
    "Brotli": (b"[]", "br", "wrong_format"),
    "anything": (b"[]", "*", "wrong_format"),
    "empty": (b"", None, "wrong_format"),
    "no JSON": (b"[{]", None, "wrong_format"),
    "cut JSON": (json.dumps([event()]).encode()[:-1], None, "wrong_format"),
    "JSON and more": (b"[] []", None, "wrong_format"),
    "NaN": (b"[NaN]", None, "wrong_format"),
    "NaN in an event": (with_field("x", b"NaN"), None, "wrong_format"),
    "Infinity": (with_field("x", b"-Infinity"), None, "wrong_format"),
    "leading zero": (with_field("x", b"01"), None, "wrong_format"),
    "hexadecimal": (with_field("x", b"0x1"), None, "wrong_format"),
    "lone surrogate": (with_field("x", b'"\\ud800"'), None, "wrong_format"),
    "lone low surrogate": (with_field("user_id", b'"\\udc00\\ud800"'), None, "wrong_format"),
    "lone surrogate as a name": (with_field("\\ud800", b"1"), None, "wrong_format"),
    "encoded surrogate": (with_field("x", b'"\xed\xa0\x80"'), None, "wrong_format"),
    "overlong encoding": (with_field("x", b'"\xc0\xaf"'), None, "wrong_format"),
    "raw control character": (with_field("x", b'"\x01"'), None, "wrong_format"),
    "comma at the end": (with_field("x", b"1,"), None, "wrong_format"),
    "comment": (b"[] // none", None, "wrong_format"),
    "byte order mark": (b"\xef\xbb\xbf[]", None, "wrong_format"),
    "UTF-16": ("[]".encode("utf-16"), None, "wrong_format"),
    "UTF-16 without a mark": (with_field("x", b"1").decode().encode("utf-16-le"), None, "wrong_format"),
    "UTF-32": ("[]".encode("utf-32"), None, "wrong_format"),
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


ENCODINGS = ["gzip", "GZip", "x-gzip", " gzip ", "gzip,", ",gzip", "identity, gzip"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gzip_is_known_by_all_its_names(stage: Stage, encoding: str):
    """RFC 9110 8.4: names of codings have no case, x-gzip is gzip, empty members of a list count for nothing."""
    assert send_signed(stage, PACKED, encoding=encoding).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "Identity", "", ","])
def test_no_encoding_may_be_said(stage: Stage, encoding: str):
    """RFC 9110 8.4."""
    assert post_lines(stage, b"[]", ("Content-Encoding", encoding)).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "status"), [("gzip", "gzip", 400), ("gzip", "identity", 200), ("", "gzip", 200)]
)
def test_headers_of_one_name_are_one_list(stage: Stage, first: str, second: str, status: int):
    """RFC 9110 5.3: neither line hides the other."""
    answer = post_lines(stage, PACKED, ("Content-Encoding", first), ("Content-Encoding", second))
    assert answer.status_code == status


def test_two_signatures_are_none(stage: Stage):
    """RFC 9110 5.3: the wrong one does not hide behind the right one."""
    assert post_lines(stage, b"[]", ("Authorization", sign(b"[]", secret_key="0" * 40))).status_code == 401


def test_several_members_are_one_body(stage: Stage):
    """RFC 1952 2.2; and what was taken is processed and shown whole."""
    events = json.dumps([event(), event(user_id="bob"), event(user_id="cid")]).encode()
    body = b"".join(gzip.compress(events[start : start + 100]) for start in range(0, len(events), 100))
    assert send_signed(stage, body, encoding="gzip").status_code == 200
    stage.process()
    assert counted(stage) == NOTHING | {"accepted": 3, "processed": 3}
    assert len(stage.sandbox.live.newest(Look())) == 3


def test_more_members_than_anybody_needs_are_413(shared: Stage):
    """The sandbox package, Our choices."""
    answer = send_signed(shared, gzip.compress(b"") * 600 + PACKED, encoding="gzip")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})


@pytest.mark.parametrize(
    "value",
    [b"9" * 400, b"-" + b"9" * 400, b"1e400", b"0." + b"9" * 400, b"-0", b'"\\ud83d\\ude00"', b'"\\u0000"', b'""'],
)
def test_a_value_nobody_reads_may_be_anything_that_json_has(stage: Stage, value: bytes):
    """Public facts 2.3: unknown fields are accepted. Processing and the live view get past them too."""
    assert send_signed(stage, with_field("x", value)).status_code == 200
    stage.process()
    assert counted(stage)["processed"] == len(stage.sandbox.live.newest(Look())) == 1


@pytest.mark.parametrize("value", [b"1e400", b"-1e400", b"1.5", b"9" * 400 + b"e-400"])
def test_a_number_that_is_no_moment_is_no_good_client_ts(stage: Stage, value: bytes):
    """Public facts 2.3: an integer; and never a 5xx, whatever a float does with it."""
    answer = send_signed(stage, with_field("client_ts", value))
    assert (answer.status_code, len(answer.json())) == (400, 1)


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


def cors(answer: httpx.Response) -> dict[str, str]:
    prefix = "access-control-"
    return {name[len(prefix) :]: value for name, value in answer.headers.items() if name.startswith(prefix)}


@pytest.mark.parametrize("path", PATHS)
def test_options_tells_a_browser_what_it_may_send(shared: Stage, path: str):
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
def test_an_answer_says_no_more_than_the_specification_has(shared: Stage, path: str):
    """Collector, Common request headers, response headers seen; public facts 1.3: keep the list on POST."""
    assert cors(send_signed(shared, b"{}", path=path)) == {
        "allow-origin": "*",
        "allow-headers": "Authorization, X-Requested-With",
    }


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
def test_init_is_an_object_or_an_array_of_one(shared: Stage, body: Any, path: str):
    """Public facts 1.4: accept string or integer random_salt, null build, unknown fields, and both forms."""
    answer = send_signed(shared, json.dumps(body).encode(), path=path)
    assert answer.status_code in (200, 201)
    assert answer.json()["server_ts"] == int(NOW.timestamp())


@pytest.mark.parametrize("body", NO_INIT)
@pytest.mark.parametrize("path", [f"/v2/{GAME_KEY}/init", f"/remote_configs/v1/init?game_key={GAME_KEY}"])
def test_anything_else_is_no_init(shared: Stage, body: bytes, path: str):
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
def test_an_init_of_nobody_is_400(shared: Stage, path: str, body: bytes, error_type: str):
    """Collector, Init request body: user_id decides on enrolment."""
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()) == (400, [{"errors": [{"error_type": error_type, "path": "/user_id"}]}])


@pytest.mark.parametrize("path", PATHS[1:])
def test_an_init_request_takes_no_more_memory_than_its_size(shared: Stage, path: str):
    """16 MB of small things in a field that nobody reads would be half a GB of objects."""
    body = gzip.compress(b'{"user_id": "ann", "x": [' + b"[]," * 5_000_000 + b"[]]}", 1)
    tracemalloc.start()
    try:
        assert send_signed(shared, body, path=path, encoding="gzip").status_code < 300
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_a_stale_hash_hears_everything_again(shared: Stage):
    """Collector, POST remote_configs init 4."""
    path = f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=stale"
    assert send_signed(shared, json.dumps(INIT).encode(), path=path).status_code == 201


def test_the_clock_of_the_server_is_the_sandbox_s(stage: Stage):
    """Collector, POST init 3."""
    stage.clock.freeze(NOW.replace(year=2027))
    answer = send_signed(stage, json.dumps(INIT).encode(), path=f"/v2/{GAME_KEY}/init")
    assert answer.json()["server_ts"] == int(NOW.replace(year=2027).timestamp())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value).encode())
HOSTILE = st.sampled_from(
    [
        *(b"[NaN]", b"[1e400]", b"[" + b"9" * 5000 + b"]", b'["\\ud800"]', b"\xef\xbb\xbf[]", "[]".encode("utf-16")),
        *(b"[" * 5000 + b"]" * 5000, b'[{"user_id": 1, "user_id": "a"}]', b'{"user_id": "a", "user_id": []}', b'[""'),
    ]
)
EVENT_PAIR = json.dumps([event(), event()]).encode()
MANGLED = st.randoms(use_true_random=False).map(lambda source: _mangled(source, EVENT_PAIR))
CONTENTS = st.one_of(st.binary(max_size=60), JSON, HOSTILE, MANGLED, st.just(EVENT_PAIR))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Anything, as it is or gzipped: once or twice, in one member or two, whole, cut short or with more behind."""
    content = draw(CONTENTS)
    match draw(st.sampled_from(["raw", "gzip", "twice", "members", "cut", "more", "damaged"])):
        case "raw":
            return content
        case "gzip":
            return gzip.compress(content)
        case "twice":
            return gzip.compress(gzip.compress(content))
        case "members":
            place = draw(st.integers(0, len(content)))
            return gzip.compress(content[:place]) + gzip.compress(content[place:])
        case "cut":
            packed = gzip.compress(content)
            return packed[: draw(st.integers(0, len(packed) - 1))]
        case "more":
            return gzip.compress(content) + draw(st.binary(min_size=1, max_size=20))
        case _:
            return _mangled(draw(st.randoms(use_true_random=False)), gzip.compress(content))


def _mangled(source: random.Random, body: bytes) -> bytes:
    """*body* with a few of its bytes changed."""
    changed = bytearray(body)
    for _ in range(source.randrange(1, 5)):
        changed[source.randrange(len(changed))] = source.randrange(256)
    return bytes(changed)


SAID = st.sampled_from([None, "gzip", "gzip", "x-gzip", "gzip, gzip", "identity", "deflate", "br", "ü", ""])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), path=st.sampled_from(PATHS), encoding=SAID)
def test_no_body_is_answered_with_5xx(stage: Stage, body: bytes, path: str, encoding: str | None):
    """contract, Collector: every answer is one of its table."""
    answer = send_signed(stage, body, path=path, encoding=encoding)
    assert answer.status_code in (200, 201, 400, 413)
    if answer.content:
        answer.json(parse_int=str)  # a rejected event is echoed as sent, and Python bounds its own integers


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), path=st.sampled_from(PATHS), encoding=SAID)
def test_what_is_not_signed_is_never_looked_at(stage: Stage, body: bytes, path: str, encoding: str | None):
    """Collector, Authentication 1; issue, Bad input."""
    headers: dict[str, Any] = {"Content-Encoding": encoding.encode()} if encoding else {}
    answer = stage.post(path, body, headers)
    assert answer.status_code == 401
