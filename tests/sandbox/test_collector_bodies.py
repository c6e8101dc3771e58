"""Bodies sent to the collector: their size, encoding and JSON (Wire 1.6, Body limits)."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamelens.sandbox.collector.live_feed import FeedFilter
from gamelens.wire.signing import sign
from support.collector_requests import COLLECTOR_PATHS, send_signed, send_with_headers, undecodable_answer
from support.game_events import event
from support.hypothesis_profiles import examples
from support.sandbox_stage import NO_EVENTS, Stage, event_counts

pytestmark = pytest.mark.slow

BODY_BYTES = 1_048_576


def test_the_largest_body_is_taken(stage: Stage) -> None:
    """A body of exactly 1 MB is accepted (Wire 1.6, Body limits)."""
    assert send_signed(stage, json.dumps([event()]).encode().ljust(BODY_BYTES)).status_code == 200


def test_one_byte_more_than_the_limit_is_413(shared: Stage) -> None:
    """A body of 1,048,577 bytes is refused with 413, and nothing is stored.

    Wire 1.6, Body limits.
    """
    answer = send_signed(shared, json.dumps([event()]).encode().ljust(BODY_BYTES + 1))
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert event_counts(shared) == NO_EVENTS


def test_bytes_count_as_sent(stage: Stage) -> None:
    """The limit of 1 MB is for the gzipped bytes: 3 MB of JSON are accepted.

    Wire 1.6, Body limits.
    """
    body = gzip.compress(json.dumps([event()]).encode().ljust(3 * BODY_BYTES))
    assert send_signed(stage, body, encoding="gzip").status_code == 200


def test_more_than_16_mb_unpacked_is_413(shared: Stage) -> None:
    """A gzipped body of more than 16 MB unpacked is refused with 413 (Wire 1.6, Body limits)."""
    body = gzip.compress(json.dumps([event()]).encode().ljust(16 * BODY_BYTES + 1), 1)
    answer = send_signed(shared, body, encoding="gzip")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert event_counts(shared) == NO_EVENTS


def event_with(name: str, value: bytes) -> bytes:
    """Return one good event whose field *name* is *value*, which need not be valid JSON."""
    return json.dumps([event(**{name: "?"})]).encode().replace(b"\\\\", b"\\").replace(b'"?"', value)


GZIPPED = gzip.compress(json.dumps([event()]).encode())
UNREADABLE = {
    "no gzip": (b"[]", "gzip", "wrong_format"),
    "cut gzip": (GZIPPED[:-1], "gzip", "wrong_format"),
    "half a gzip": (GZIPPED[: len(GZIPPED) // 2], "gzip", "wrong_format"),
    "gzip and garbage": (GZIPPED + b"\0", "gzip", "wrong_format"),
    "two gzips, two arrays": (GZIPPED + GZIPPED, "gzip", "wrong_format"),
    "gzip and half a gzip": (GZIPPED + GZIPPED[:20], "gzip", "wrong_format"),
    "wrong length": (GZIPPED[:-4] + b"\0\0\0\0", "gzip", "wrong_format"),
    "wrong checksum": (GZIPPED[:-8] + b"\0\0\0\0" + GZIPPED[-4:], "gzip", "wrong_format"),
    "empty gzip": (b"", "gzip", "wrong_format"),
    "undeclared gzip": (GZIPPED, None, "wrong_format"),
    "gzipped twice, declared once": (gzip.compress(GZIPPED), "gzip", "wrong_format"),
    "gzipped twice": (gzip.compress(GZIPPED), "gzip, gzip", "wrong_format"),
    "gzipped once, declared twice": (GZIPPED, "gzip, gzip", "wrong_format"),
    "gzip and something": (GZIPPED, "gzip, br", "wrong_format"),
    "deflate": (zlib.compress(b"[]"), "deflate", "wrong_format"),
    "Brotli": (b"[]", "br", "wrong_format"),
    "anything": (b"[]", "*", "wrong_format"),
    "empty": (b"", None, "wrong_format"),
    "no JSON": (b"[{]", None, "wrong_format"),
    "cut JSON": (json.dumps([event()]).encode()[:-1], None, "wrong_format"),
    "JSON and more": (b"[] []", None, "wrong_format"),
    "NaN": (b"[NaN]", None, "wrong_format"),
    "NaN in an event": (event_with("x", b"NaN"), None, "wrong_format"),
    "Infinity": (event_with("x", b"-Infinity"), None, "wrong_format"),
    "leading zero": (event_with("x", b"01"), None, "wrong_format"),
    "hexadecimal": (event_with("x", b"0x1"), None, "wrong_format"),
    "encoded surrogate": (event_with("x", b'"\xed\xa0\x80"'), None, "wrong_format"),
    "overlong encoding": (event_with("x", b'"\xc0\xaf"'), None, "wrong_format"),
    "raw control character": (event_with("x", b'"\x01"'), None, "wrong_format"),
    "comma at the end": (event_with("x", b"1,"), None, "wrong_format"),
    "comment": (b"[] // none", None, "wrong_format"),
    "byte order mark": (b"\xef\xbb\xbf[]", None, "wrong_format"),
    "UTF-16": ("[]".encode("utf-16"), None, "wrong_format"),
    "UTF-16 without a mark": (event_with("x", b"1").decode().encode("utf-16-le"), None, "wrong_format"),
    "UTF-32": ("[]".encode("utf-32"), None, "wrong_format"),
    "no UTF-8": (json.dumps([event(x="?")]).encode().replace(b"?", b"\xff"), None, "wrong_format"),
    "too deep": (json.dumps([event(x="?")]).encode().replace(b'"?"', b"[" * 31 + b"]" * 31), None, "wrong_format"),
    "much too deep": (b"[" * 500_000 + b"]" * 500_000, None, "wrong_format"),
    "an object": (json.dumps(event()).encode(), None, "wrong_type"),
    "null": (b"null", None, "wrong_type"),
    "a string": (b'"[]"', None, "wrong_type"),
    "a number": (b"7", None, "wrong_type"),
}


@pytest.mark.shown_by(12)
@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_body_is_400(shared: Stage, case: str) -> None:
    """A body that is not a JSON array, after at most one gzip, is refused with 400.

    Wire 1.8, Rejected events.
    """
    body, encoding, error_type = UNREADABLE[case]
    answer = send_signed(shared, body, encoding=encoding)
    assert (answer.status_code, answer.json()) == (400, undecodable_answer(error_type))
    assert event_counts(shared) == NO_EVENTS


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("x", b'"\\ud800"', "/x"),
        ("user_id", b'"\\udc00\\ud800"', "/user_id"),
        ("message", b'"cut \\uD83D"', "/message"),
        ("x", b'[{"deep": "\\\\\\udfff"}]', "/x"),
        ("\\ud800", b"1", "/"),
    ],
)
def test_a_lone_surrogate_costs_its_event_alone(stage: Stage, field: str, value: bytes, path: str) -> None:
    """Half of a surrogate pair is `wrong_format` of its field, the event comes back as sent, its neighbours are stored.

    The escapes of a whole pair, and of a backslash before a u, are no such halves. Wire 1.8, Rejected events.
    """
    bad = event_with(field, value)[1:-1]
    good = [event_with("x", b'"\\ud83d\\ude00"')[1:-1], event_with("x", b'"\\\\ud800"')[1:-1]]
    answer = send_signed(stage, b"[ " + good[0] + b" ,\n" + bad + b", " + good[1] + b"]")
    assert answer.status_code == 400
    assert bad in answer.content
    assert answer.content.count(b'"event"') == 1
    assert answer.json()[0]["errors"] == [{"error_type": "wrong_format", "path": path}]
    assert event_counts(stage) == NO_EVENTS | {"accepted": 2, "rejected": 1, "pending": 2}
    stage.process()
    assert event_counts(stage)["processed"] == 2


def test_other_faults_beside_a_lone_surrogate_are_named(stage: Stage) -> None:
    """An event with a lone surrogate has its other errors, too, and bad neighbours have theirs."""
    body = b"[" + event_with("x", b'"\\udead"')[1:-1].replace(b'"v": 2', b'"v": 3') + b"," + b"7]"
    errors = [rejected["errors"] for rejected in send_signed(stage, body).json()]
    assert [[(error["error_type"], error["path"]) for error in its] for its in errors] == [
        [("wrong_format", "/x"), ("not_in_range", "/v")],
        [("wrong_type", "/")],
    ]


ENCODINGS = ["gzip", "GZip", "x-gzip", " gzip ", "gzip,", ",gzip", "identity, gzip"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gzip_is_recognised_in_every_spelling(stage: Stage, encoding: str) -> None:
    """Encodings are compared without case, x-gzip is gzip, empty members are ignored.

    RFC 9110 8.4.

    Wire 1.3, Request headers.
    """
    assert send_signed(stage, GZIPPED, encoding=encoding).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "Identity", "", ","])
def test_identity_and_empty_encodings_are_no_encoding(stage: Stage, encoding: str) -> None:
    """The encodings `identity` and empty leave the body as it is.

    RFC 9110 8.4.

    Wire 1.3, Request headers.
    """
    assert send_with_headers(stage, b"[]", ("Content-Encoding", encoding)).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "status"), [("gzip", "gzip", 400), ("gzip", "identity", 200), ("", "gzip", 200)]
)
def test_headers_of_one_name_are_read_as_one_list(stage: Stage, first: str, second: str, status: int) -> None:
    """Two `Content-Encoding` headers are one list, of which every member counts.

    RFC 9110 5.3.

    Wire 1.3, Request headers.
    """
    answer = send_with_headers(stage, GZIPPED, ("Content-Encoding", first), ("Content-Encoding", second))
    assert answer.status_code == status


def test_a_second_signature_makes_both_invalid(stage: Stage) -> None:
    """A right signature beside a wrong one is refused with 401.

    RFC 9110 5.3.

    Wire 1.3, Request headers.
    """
    assert send_with_headers(stage, b"[]", ("Authorization", sign(b"[]", secret_key="0" * 40))).status_code == 401


def test_several_gzip_members_are_one_body(stage: Stage) -> None:
    """Gzip members are joined, and the events are processed and shown in the live feed.

    RFC 1952 2.2.

    Wire 1.6, Body limits.
    """
    events = json.dumps([event(), event(user_id="bob"), event(user_id="cid")]).encode()
    body = b"".join(gzip.compress(events[start : start + 100]) for start in range(0, len(events), 100))
    assert send_signed(stage, body, encoding="gzip").status_code == 200
    stage.process()
    assert event_counts(stage) == NO_EVENTS | {"accepted": 3, "processed": 3}
    assert len(stage.sandbox.live.newest(FeedFilter())) == 3


def test_too_many_gzip_members_are_413(shared: Stage) -> None:
    """A body of 601 gzip members is refused with 413 (Wire 1.6, Body limits)."""
    answer = send_signed(shared, gzip.compress(b"") * 600 + GZIPPED, encoding="gzip")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})


def test_an_unknown_field_may_have_any_json_value(stage: Stage) -> None:
    """Numbers beyond any float and NUL are accepted, processed and shown.

    Wire 3.3, Common fields.
    """
    nines = b"9" * 400
    values = (nines, b"-" + nines, b"1e400", b"0." + nines, b"-0", b'"\\ud83d\\ude00"', b'"\\u0000"', b'""')
    for number, value in enumerate(values, 1):
        assert send_signed(stage, event_with("x", value)).status_code == 200, value
        assert len(stage.sandbox.live.newest(FeedFilter())) == number, value
    stage.process()
    assert event_counts(stage)["processed"] == len(values)


@pytest.mark.parametrize("value", [b"1e400", b"-1e400", b"1.5", b"9" * 400 + b"e-400"])
def test_a_number_that_is_no_integer_is_no_client_ts(stage: Stage, value: bytes) -> None:
    """A `client_ts` that is not an integer is a violation, even beyond any float.

    Wire 3.3, Common fields.
    """
    answer = send_signed(stage, event_with("client_ts", value))
    assert (answer.status_code, len(answer.json())) == (400, 1)


def test_32_levels_are_not_too_deep(stage: Stage) -> None:
    """An event may nest 32 levels, and brackets inside strings are not levels.

    Wire 1.6, Body limits.
    """
    body = json.dumps([event(x="?", y="[" * 40, z='\\"[{' * 40)]).encode().replace(b'"?"', b"[" * 30 + b"]" * 30)
    assert send_signed(stage, body).status_code == 200


def test_too_many_bad_events_are_413(shared: Stage) -> None:
    """A body of more than 10,000 bad events is refused with 413 (Wire 1.6, Body limits)."""
    answer = send_signed(shared, b"[" + b"{}," * 10_000 + json.dumps(event()).encode() + b",{}]")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert event_counts(shared) == NO_EVENTS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value).encode())
HOSTILE = st.sampled_from(
    [
        *(b"[NaN]", b"[1e400]", b"[" + b"9" * 4000 + b"]", b'["\\ud800"]', b"\xef\xbb\xbf[]", "[]".encode("utf-16")),
        *(b"[" * 5000 + b"]" * 5000, b'[{"user_id": 1, "user_id": "a"}]', b'{"user_id": "a", "user_id": []}', b'[""'),
    ]
)
EVENT_PAIR = json.dumps([event(), event()]).encode()
MANGLED = st.randoms(use_true_random=False).map(lambda source: _mangled(source, EVENT_PAIR))
CONTENTS = st.one_of(st.binary(max_size=60), JSON, HOSTILE, MANGLED, st.just(EVENT_PAIR))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Draw any body, raw or gzipped: once, twice, in two members, cut, extended or damaged."""
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
    """Return *body* with a few of its bytes changed."""
    changed = bytearray(body)
    for _ in range(source.randrange(1, 5)):
        changed[source.randrange(len(changed))] = source.randrange(256)
    return bytes(changed)


ENCODING_HEADERS = st.sampled_from([None, "gzip", "gzip", "x-gzip", "gzip, gzip", "identity", "deflate", "br", "ü", ""])


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), path=st.sampled_from(COLLECTOR_PATHS), encoding=ENCODING_HEADERS)
def test_no_body_is_answered_with_5xx(stage: Stage, body: bytes, path: str, encoding: str | None) -> None:
    """Every signed body gets 200, 201, 400 or 413, with JSON or nothing as its body.

    Wire 1.10, Collector statuses.
    """
    answer = send_signed(stage, body, path=path, encoding=encoding)
    assert answer.status_code in (200, 201, 400, 413)
    if answer.content:
        answer.json()


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), path=st.sampled_from(COLLECTOR_PATHS), encoding=ENCODING_HEADERS)
def test_an_unsigned_body_is_never_read(stage: Stage, body: bytes, path: str, encoding: str | None) -> None:
    """Every unsigned body gets 401, whatever it contains (Wire 1.4, Signature)."""
    headers: dict[str, Any] = {"Content-Encoding": encoding.encode()} if encoding else {}
    answer = stage.post(path, body, headers)
    assert answer.status_code == 401
