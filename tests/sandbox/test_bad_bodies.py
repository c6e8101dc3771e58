"""What a body may be, and what it may not: size, encoding, JSON (issue, Bad input; contract, Collector)."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Stage, event
from gamelens.sandbox.collector.live_entries import FeedFilter
from gamelens.wire.signing import sign
from sandbox.conftest import NOTHING, PATHS, counted, post_lines, send_signed, undecodable

pytestmark = pytest.mark.slow

BODY_BYTES = 1_048_576


def test_the_largest_body_is_taken(stage: Stage) -> None:
    """Collector, Limits: POST size."""
    assert send_signed(stage, json.dumps([event()]).encode().ljust(BODY_BYTES)).status_code == 200


def test_one_byte_more_is_413(shared: Stage) -> None:
    """contract, Collector: 1,048,576 bytes as sent."""
    answer = send_signed(shared, json.dumps([event()]).encode().ljust(BODY_BYTES + 1))
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert counted(shared) == NOTHING


def test_bytes_count_as_sent(stage: Stage) -> None:
    """Public facts 1.10: the gzipped size."""
    body = gzip.compress(json.dumps([event()]).encode().ljust(3 * BODY_BYTES))
    assert send_signed(stage, body, encoding="gzip").status_code == 200


def test_more_than_16_mb_unpacked_is_413(shared: Stage) -> None:
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
def test_what_cannot_be_read_as_an_array_is_400(shared: Stage, what: str) -> None:
    """contract, Collector: undecodable gzip or JSON, or not an array."""
    body, encoding, error_type = UNREADABLE[what]
    answer = send_signed(shared, body, encoding=encoding)
    assert (answer.status_code, answer.json()) == (400, undecodable(error_type))
    assert counted(shared) == NOTHING


ENCODINGS = ["gzip", "GZip", "x-gzip", " gzip ", "gzip,", ",gzip", "identity, gzip"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gzip_is_known_by_all_its_names(stage: Stage, encoding: str) -> None:
    """RFC 9110 8.4: names of codings have no case, x-gzip is gzip, empty members of a list count for nothing."""
    assert send_signed(stage, PACKED, encoding=encoding).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "Identity", "", ","])
def test_no_encoding_may_be_said(stage: Stage, encoding: str) -> None:
    """RFC 9110 8.4."""
    assert post_lines(stage, b"[]", ("Content-Encoding", encoding)).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "status"), [("gzip", "gzip", 400), ("gzip", "identity", 200), ("", "gzip", 200)]
)
def test_headers_of_one_name_are_one_list(stage: Stage, first: str, second: str, status: int) -> None:
    """RFC 9110 5.3: neither line hides the other."""
    answer = post_lines(stage, PACKED, ("Content-Encoding", first), ("Content-Encoding", second))
    assert answer.status_code == status


def test_two_signatures_are_none(stage: Stage) -> None:
    """RFC 9110 5.3: the wrong one does not hide behind the right one."""
    assert post_lines(stage, b"[]", ("Authorization", sign(b"[]", secret_key="0" * 40))).status_code == 401


def test_several_members_are_one_body(stage: Stage) -> None:
    """RFC 1952 2.2; and what was taken is processed and shown whole."""
    events = json.dumps([event(), event(user_id="bob"), event(user_id="cid")]).encode()
    body = b"".join(gzip.compress(events[start : start + 100]) for start in range(0, len(events), 100))
    assert send_signed(stage, body, encoding="gzip").status_code == 200
    stage.process()
    assert counted(stage) == NOTHING | {"accepted": 3, "processed": 3}
    assert len(stage.sandbox.live.newest(FeedFilter())) == 3


def test_more_members_than_anybody_needs_are_413(shared: Stage) -> None:
    """The sandbox package, Our choices."""
    answer = send_signed(shared, gzip.compress(b"") * 600 + PACKED, encoding="gzip")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})


@pytest.mark.parametrize(
    "value",
    [b"9" * 400, b"-" + b"9" * 400, b"1e400", b"0." + b"9" * 400, b"-0", b'"\\ud83d\\ude00"', b'"\\u0000"', b'""'],
)
def test_a_value_nobody_reads_may_be_anything_that_json_has(stage: Stage, value: bytes) -> None:
    """Public facts 2.3: unknown fields are accepted. Processing and the live view get past them too."""
    assert send_signed(stage, with_field("x", value)).status_code == 200
    stage.process()
    assert counted(stage)["processed"] == len(stage.sandbox.live.newest(FeedFilter())) == 1


@pytest.mark.parametrize("value", [b"1e400", b"-1e400", b"1.5", b"9" * 400 + b"e-400"])
def test_a_number_that_is_no_moment_is_no_good_client_ts(stage: Stage, value: bytes) -> None:
    """Public facts 2.3: an integer; and never a 5xx, whatever a float does with it."""
    answer = send_signed(stage, with_field("client_ts", value))
    assert (answer.status_code, len(answer.json())) == (400, 1)


def test_32_levels_are_not_too_deep(stage: Stage) -> None:
    """The sandbox package, Our choices. Brackets inside strings are no levels."""
    body = json.dumps([event(x="?", y="[" * 40, z='\\"[{' * 40)]).encode().replace(b'"?"', b"[" * 30 + b"]" * 30)
    assert send_signed(stage, body).status_code == 200


def test_more_bad_events_than_anybody_reads_are_413(shared: Stage) -> None:
    """The sandbox package, Our choices."""
    answer = send_signed(shared, b"[" + b"{}," * 10_000 + json.dumps(event()).encode() + b",{}]")
    assert (answer.status_code, set(answer.json())) == (413, {"message"})
    assert counted(shared) == NOTHING


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
def test_no_body_is_answered_with_5xx(stage: Stage, body: bytes, path: str, encoding: str | None) -> None:
    """contract, Collector: every answer is one of its table."""
    answer = send_signed(stage, body, path=path, encoding=encoding)
    assert answer.status_code in (200, 201, 400, 413)
    if answer.content:
        answer.json()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), path=st.sampled_from(PATHS), encoding=SAID)
def test_what_is_not_signed_is_never_looked_at(stage: Stage, body: bytes, path: str, encoding: str | None) -> None:
    """Collector, Authentication 1; issue, Bad input."""
    headers: dict[str, Any] = {"Content-Encoding": encoding.encode()} if encoding else {}
    answer = stage.post(path, body, headers)
    assert answer.status_code == 401
