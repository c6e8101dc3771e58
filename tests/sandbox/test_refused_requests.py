"""What the owner of a sandbox learns of refused requests, and outsiders do not (Wire 5.2, Live feed)."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import logging
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.collector.live_feed import REFUSED_REQUESTS, FeedFilter
from gamelens.sandbox.collector.refused_requests import NOT_EXAMINED, QUEUED_BYTES
from gamelens.sandbox.collector.request_examiner import why_unreadable
from gamelens.sandbox.collector.signature_mistakes import signature_mistake
from gamelens.sandbox.control.live_event_stream import server_sent_events
from gamelens.wire.limits import MIB
from gamelens.wire.signing import sign
from support.app_requests import Call, call
from support.collector_requests import EVENTS_PATH, GAME_KEY, SECRET_KEY, send_signed
from support.game_events import NOW, event
from support.hypothesis_profiles import examples
from support.sandbox_stage import Stage

BODY = json.dumps([event(user_id="anné")]).encode()
GZIPPED = gzip.compress(BODY)
SECRET = SECRET_KEY.encode()


def last_refused(stage: Stage) -> dict[str, Any]:
    """Return the refused request that came last."""
    fields: dict[str, Any] = msgspec.to_builtins(stage.refused_requests()[-1])
    return fields


def with_value(value: bytes) -> bytes:
    """Return a batch of one event with the JSON *value*, which need not be valid."""
    return b'[{"value": ' + value + b"}]"


UNREADABLE = {
    "media type as encoding": (BODY, "application/json", "Content-Encoding is 'application/json', a media type"),
    "charset as encoding": (BODY, "UTF-8", "Content-Encoding is 'UTF-8', a character encoding"),
    "Brotli": (BODY, "br", "Content-Encoding is 'br'"),
    "deflate": (zlib.compress(BODY), "deflate", "'deflate', which the collector cannot unpack"),
    "transfer encoding": (BODY, "chunked", "'chunked', a transfer encoding"),
    "two encodings": (GZIPPED, "gzip, gzip", "gzipped once"),
    "plain": (BODY, "gzip", "begins with 5b 7b 22 63: plain JSON, though the header Content-Encoding is gzip"),
    "zlib": (zlib.compress(BODY), "gzip", "begins with 78 9c: zlib, not gzip"),
    "zlib of another level": (zlib.compress(BODY, 9), None, "begins with 78 da: zlib, not gzip"),
    "bare deflate": (zlib.compress(BODY)[2:-4], "gzip", "deflate without the header of gzip"),
    "undeclared gzip": (GZIPPED, None, "begins with 1f 8b: gzip, without the header Content-Encoding: gzip"),
    "gzipped twice": (gzip.compress(GZIPPED), "gzip", "gzipped twice"),
    "cut gzip": (GZIPPED[:-5], "gzip", "cut short"),
    "damaged gzip": (GZIPPED[:-8] + bytes(8), "gzip", "damaged"),
    "gzip and more": (GZIPPED + b"\0\0", "gzip", f"2 bytes follow the end of the gzip, from byte {len(GZIPPED)} on"),
    "gzip as text": (GZIPPED.decode(errors="replace").encode(), "gzip", "gzip that was read as text"),
    "base64 of gzip": (base64.b64encode(GZIPPED), "gzip", "base64 of something that begins with 1f 8b: gzip"),
    "base64 of JSON": (base64.b64encode(BODY), None, "base64 of something that begins with 5b 7b"),
    "hexadecimal": (BODY.hex().encode(), None, "hexadecimal digits"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd", "'zstd', which the collector cannot unpack"),
    "empty": (b"", None, "the body is empty"),
    "empty gzip": (b"", "gzip", "the body is empty"),
    "byte order mark": (b"\xef\xbb\xbf" + BODY, None, "begins with ef bb bf: a byte order mark"),
    "byte order mark in gzip": (gzip.compress(b"\xef\xbb\xbf" + BODY), "gzip", "a byte order mark"),
    "UTF-16": (BODY.decode().encode("utf-16"), None, "begins with ff fe: the byte order mark of UTF-16"),
    "UTF-16 without a mark": (BODY.decode().encode("utf-16-be"), None, "UTF-16"),
    "UTF-32": (BODY.decode().encode("utf-32"), None, "the byte order mark of UTF-32"),
    "Latin-1": ('["Zoë"]'.encode("latin-1"), None, "byte 4 is eb, which is not UTF-8 ('ë' in Windows-1252)"),
    "modified UTF-8": (b'["\xc0\x80"]', None, "byte 2 is c0"),
    "surrogate in UTF-8": (b'["\xed\xa0\x80"]', None, "byte 2 begins a surrogate"),
    "cut in a letter": ('["Zoë'.encode()[:-1], None, "ends within a character, at byte 4"),
    "MessagePack": (b"\x91\x81\xa8category\xa4user", None, "begins with 91 81 a8 63: it is not text"),
    "NaN": (with_value(b"NaN"), None, "'NaN' at byte 11"),
    "Infinity": (with_value(b"-Infinity"), None, "'-Infinity' at byte 11"),
    "nan of C": (with_value(b"-nan"), None, "'-nan' at byte 11"),
    "None": (with_value(b"None"), None, "'None' at byte 11"),
    "undefined": (with_value(b"undefined"), None, "'undefined' at byte 11"),
    "decimal comma": (with_value(b"23,9"), None, "a decimal comma at byte 13"),
    "negative decimal comma": (with_value(b"-0,5"), None, "a decimal comma at byte 13"),
    "leading zero": (with_value(b"007"), None, "'007' at byte 11, which is no number"),
    "leading plus": (with_value(b"+7"), None, "'+7' at byte 11"),
    "leading point": (with_value(b".7"), None, "'.7' at byte 11"),
    "hexadecimal number": (with_value(b"0xFF"), None, "'0xFF' at byte 11"),
    "single quotes": (b"[{'value': 1}]", None, "at byte 2, where JSON has double quotes"),
    "typographic quotes": ("[{\u201cvalue\u201d: 1}]".encode(), None, "at byte 2, where JSON has double quotes"),
    "bare name": (b"[{value: 1}]", None, "'value' at byte 2, a word without quotes"),
    "comment": (b"[] // none", None, "'//' at byte 3, the beginning of a comment"),
    "equals sign": (b'[{"value" = 1}]', None, "'=' at byte 10"),
    "line end in a text": (with_value(b'"a\nb"'), None, "a control character, 0a, at byte 13"),
    "escape": (with_value(rb'"\x41"'), None, r"'\x' at byte 12"),
    "comma at the end": (b"[1,]", None, "a comma before the end of an array or object, at byte 2"),
    "JSON lines": (b'{"a": 1}\n{"b": 2}', None, "another JSON value begins at byte 9"),
    "zero byte": (b"[]\0", None, "at byte 2, a zero byte"),
    "cut JSON": (BODY[:-3], None, "cut short"),
    "cut in a text": (with_value(b'"a')[:-2], None, "ends in a string that begins at byte 11"),
    "no comma": (b'[{"a": 1 "b": 2}]', None, "not JSON at byte 9"),
    "too deep": (b"[" * 40 + b"]" * 40, None, "nested deeper than 32 levels"),
    "one event": (json.dumps(event()).encode(), None, "a JSON object: events are sent in an array"),
    "wrapped": (b'{"events": []}', None, "an object that holds an array in 'events'"),
    "encoded twice": (json.dumps(BODY.decode()).encode(), None, "a JSON string"),
    "null": (b"null", None, "the body is 'null'"),
    "form": (b"data=%5B%5D", None, "the fields of a form"),
    "percent-encoded": (b"%5B%7B%7D%5D", None, "percent-encoded text"),
    "multipart": (b"--x\r\nContent-Disposition: form-data\r\n", None, "multipart"),
    "web page": (b"<html></html>", None, "HTML or XML"),
}


@pytest.mark.shown_by(12)
@pytest.mark.parametrize("case", UNREADABLE)
def test_the_cause_of_an_unreadable_body_is_kept(shared: Stage, case: str) -> None:
    """The header, the byte or the encoding to blame is shown to the owner; the answer is the same for all.

    Wire 1.8, Rejected events; Wire 5.2, Live feed.
    """
    body, encoding, cause = UNREADABLE[case]
    answer = send_signed(shared, body, encoding=encoding)
    assert (answer.status_code, set(answer.json()[0])) == (400, {"errors"})
    refused = last_refused(shared)
    assert cause in refused.pop("cause")
    assert refused == {
        "arrival_ts": int(NOW.timestamp()),
        "route": "events",
        "game_key": GAME_KEY,
        "game": "Tile Saga",
        "status": 400,
    }


def test_a_readable_body_has_no_cause(stage: Stage) -> None:
    """A body of good and bad events is not refused, so there is nothing to tell (Wire 1.7, Submitting events)."""
    stage.submit([event(), event(v=1)])
    assert stage.refused_requests() == []


def digest(body: bytes = BODY, key: bytes = SECRET, name: str = "sha256") -> bytes:
    """Return an HMAC."""
    return hmac.digest(key, body, name)


def text(of: bytes) -> str:
    """Return the base64 of bytes."""
    return base64.b64encode(of).decode()


def with_both_letters() -> bytes:
    """Return a batch whose signature has + and / in its base64."""
    return next(body for number in range(1000) if {"+", "/"} < {*text(digest(body := json.dumps([number]).encode()))})


TWO_LETTERS = with_both_letters()
MISTAKES = {
    "hexadecimal": (digest().hex(), BODY, "hexadecimal, not base64"),
    "upper-case hexadecimal": (digest().hex().upper(), BODY, "hexadecimal, not base64"),
    "C# BitConverter": (digest().hex("-").upper(), BODY, "has separators and is hexadecimal"),
    "0x": ("0x" + digest().hex(), BODY, "begins with 0x and is hexadecimal"),
    "base64 of hexadecimal": (text(digest().hex().encode()), BODY, "encoded once more (base64) and is hexadecimal"),
    "base64 twice": (text(text(digest()).encode()), BODY, "encoded once more"),
    "base64 of text": (text(digest().decode("latin-1").encode()), BODY, "turned into text before base64"),
    "base64 of URLs": (base64.urlsafe_b64encode(digest(TWO_LETTERS)).decode(), TWO_LETTERS, "alphabet of addresses"),
    "no padding": (text(digest()).rstrip("="), BODY, "lost the = at the end"),
    "spaces for plus": (text(digest(TWO_LETTERS)).replace("+", " "), TWO_LETTERS, "spaces in place of +"),
    "percent-encoded": (text(digest()).replace("=", "%3D"), BODY, "percent-encoded"),
    "lower case": (text(digest()).lower(), BODY, "lost its upper and lower case"),
    "cut": (text(digest())[:32], BODY, "cut short"),
    "Bearer": ("Bearer " + text(digest()), BODY, "begins with a scheme"),
    "prefix and hexadecimal": (
        "sha256=" + digest().hex(),
        BODY,
        "begins with a scheme or a name, where it stands alone",
    ),
    "scheme of two parts": (f"HMAC-SHA256 Signature={text(digest())}", BODY, "begins with a scheme"),
    "line end": (text(digest()) + r"\n", BODY, "ends in a line end"),
    "encoded line end": (text(digest()) + "%0A", BODY, "line end"),
    "quotes": (f'"{text(digest())}"', BODY, "in quotes"),
    "Python bytes": (repr(text(digest()).encode()), BODY, "text of Python bytes"),
    "numbers of Java": (str([each - 256 if each > 127 else each for each in digest()]), BODY, "a list of numbers"),
    "before gzip": (text(digest()), GZIPPED, "covers the body before gzip"),
    "hexadecimal before gzip": (digest().hex(), GZIPPED, "is hexadecimal, not base64 and covers the body before gzip"),
    "gzip that was not sent": (text(digest(gzip.compress(BODY, mtime=0))), BODY, "covers the gzipped body"),
    "body and line end": (text(digest(BODY + b"\n")), BODY, "covers the body and a line end"),
    "other line ends": (text(digest(b"[\r\n]")), b"[\n]", "covers the body with other line ends"),
    "no body": (text(digest(b"")), BODY, "covers no body at all"),
    "JSON written otherwise": (
        text(digest(json.dumps(json.loads(BODY), separators=(",", ":"), ensure_ascii=False).encode())),
        BODY,
        "covers the JSON written otherwise",
    ),
    "sorted JSON": (text(digest(json.dumps(json.loads(BODY), sort_keys=True).encode())), BODY, "written otherwise"),
    "event without array": (text(digest(BODY[1:-1])), BODY, "the event without its array"),
    "base64 of the body": (text(digest(base64.b64encode(BODY))), BODY, "covers the base64 of the body"),
    "UTF-16": (text(digest(BODY.decode().encode("utf-16-le"))), BODY, "covers the body in UTF-16"),
    "byte order mark": (text(digest(b"\xef\xbb\xbf" + BODY)), BODY, "with a byte order mark"),
    "key and line end": (text(digest(key=SECRET + b"\n")), BODY, "the secret key and a line end"),
    "key and line end before gzip": (text(digest(key=SECRET + b"\n")), GZIPPED, "line end and covers the body before"),
    "key as bytes": (text(digest(key=bytes.fromhex(SECRET_KEY))), BODY, "hexadecimal digits stand for"),
    "key in upper case": (text(digest(key=SECRET.upper())), BODY, "the secret key in upper case"),
    "key in UTF-16": (text(digest(key=SECRET_KEY.encode("utf-16-le"))), BODY, "the secret key in UTF-16"),
    "game key": (text(digest(key=GAME_KEY.encode())), BODY, "the game key in place of the secret key"),
    "SHA-1": (text(digest(name="sha1")), BODY, "is HMAC-SHA1"),
    "SHA-512 in hexadecimal": (digest(name="sha512").hex(), BODY, "is HMAC-SHA512"),
    "MD5": (text(digest(name="md5")), BODY, "is HMAC-MD5"),
    "no HMAC": (text(hashlib.sha256(BODY).digest()), BODY, "is the plain SHA256 of the body alone"),
    "key before body": (hashlib.sha256(SECRET + BODY).hexdigest(), BODY, "plain SHA256 of the key and the body"),
    "swapped": (text(digest(SECRET, BODY)), BODY, "has key and body in each other's place"),
    "secret key itself": (SECRET_KEY, BODY, "is the secret key itself"),
    "game key itself": (f"Bearer {GAME_KEY}", BODY, "holds the game key"),
    "nothing": ("", BODY, "there is no Authorization header"),
    "anything": ("let me in", BODY, "is no signature"),
    "too long": ("x" * 2000, BODY, "2,000 characters"),
    "other bytes": (text(digest(b"[]")), BODY, f"{len(BODY)} bytes and the SHA-256 {hashlib.sha256(BODY).hexdigest()}"),
}


@pytest.mark.shown_by(8)
@pytest.mark.parametrize("case", MISTAKES)
def test_the_mistake_of_a_signature_is_named(shared: Stage, case: str) -> None:
    """What was hashed and how it was written is found out; the answer tells nobody.

    Wire 1.4, Signature; Wire 5.2, Live feed.
    """
    header, body, cause = MISTAKES[case]
    coded = {"Content-Encoding": "gzip"} if body is GZIPPED else {}
    answer = shared.post(EVENTS_PATH, body, {"Authorization": header} | coded)
    unknown = shared.post(f"/v2/{'f' * 32}/events", body, {"Authorization": header} | coded)
    assert (answer.status_code, answer.content, answer.headers) == (401, unknown.content, unknown.headers)
    refused, _ = shared.refused_requests()[-2:]
    assert cause in refused.cause
    assert (refused.route, refused.game, refused.status) == ("events", "Tile Saga", 401)
    assert not any(secret in refused.cause for secret in (SECRET_KEY, text(digest()), digest().hex()))


def test_the_game_whose_key_signed_is_named(shared: Stage) -> None:
    """A signature with the key of another game names that game, for known and unknown game keys."""
    signature = sign(BODY, secret_key=shared.game("1002").secret_key)
    shared.post(EVENTS_PATH, BODY, {"Authorization": signature})
    shared.post(f"/v2/{'f' * 32}/events", BODY, {"Authorization": signature})
    for refused in shared.refused_requests()[-2:]:
        assert "is made with the secret key of Tile Empire (1002)" in refused.cause


@pytest.mark.parametrize(
    ("game_key", "cause"),
    [
        ("f" * 32, "no game of this sandbox has this key"),
        ("", "there is no game key"),
        (GAME_KEY.upper(), "the game key of Tile Saga is 32 lower-case"),
        (f"{GAME_KEY}%20", "the game key of Tile Saga is 32 lower-case"),
        (f"%7B{GAME_KEY}%7D", "the game key of Tile Saga is 32 lower-case"),
        (f"{GAME_KEY[:8]}-{GAME_KEY[8:]}", "the game key of Tile Saga is 32 lower-case"),
        (GAME_KEY[:20], "part of the key of Tile Saga"),
        (SECRET_KEY, "holds a secret key"),
        ("key-of-acme", "or an API key"),
        ("1001", "the id or title of Tile Saga"),
    ],
)
def test_what_is_wrong_with_a_game_key_is_named(shared: Stage, game_key: str, cause: str) -> None:
    """A key that no game has is compared with those that there are, and secrets are not shown."""
    answer = shared.post(f"/v2/{game_key}/events", BODY, {"Authorization": sign(BODY, secret_key=SECRET_KEY)})
    assert answer.status_code == 401
    refused = last_refused(shared)
    assert cause in refused["cause"]
    assert refused["game"] is None
    assert not {SECRET_KEY, "key-of-acme"} & {refused["game_key"], refused["route"]}


def test_a_production_key_is_named(shared: Stage) -> None:
    """A production key is named as such, with the mistake of its signature if there is one."""
    shared.submit([event()], game_id="2002")
    assert last_refused(shared)["cause"] == "the game is of the environment production, whose keys a sandbox refuses"
    shared.submit([event()], game_id="2002", headers={"Authorization": ""})
    assert last_refused(shared)["cause"].endswith("there is no Authorization header")


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "route", "cause"),
    [
        ("POST", "/v2/x/event", {}, b"", 404, "/v2/x/event", "no such address"),
        ("POST", f"/v2/{SECRET_KEY}/event", {}, b"", 404, "/v2/…/event", "no such address"),
        ("GET", EVENTS_PATH, {}, b"", 405, "events", "use POST"),
        ("POST", f"/v2/{GAME_KEY}/init", {}, b'{"platform": 5}', 400, "init", "wrong_type at /platform"),
        ("POST", f"/v2/{GAME_KEY}/init", {}, b"{platform: 5}", 400, "init", "'platform' at byte 1"),
        ("POST", f"/v2/{GAME_KEY}/init?interval_seconds=1.5", {}, b"{}", 400, "init", "interval_seconds is '1.5'"),
        ("POST", f"/remote_configs/v1/init?game_key={GAME_KEY}", {}, b"{\xff}", 400, "remote init", "byte 1 is ff"),
        ("POST", EVENTS_PATH, {}, b" " * (1 << 20) + b"[]", 413, "events", "larger than 1048576 bytes"),
        ("POST", "/%1b[31m%0a/%e2%80%ae", {}, b"", 404, None, "no such address"),
    ],
)
def test_every_kind_of_refusal_is_kept(
    shared: Stage, method: str, path: str, headers: Any, body: bytes, status: int, route: str | None, cause: str
) -> None:
    """Addresses, methods, inits and sizes have their cause, too, and nothing that a terminal would obey."""
    signed = {"Authorization": sign(body, secret_key=SECRET_KEY)} | headers
    assert call(shared.sandbox.collector, method, path, content=body, headers=signed).status_code == status
    refused = last_refused(shared)
    assert (refused["status"], refused["route"] if route else None) == (status, route)
    assert cause in refused["cause"]
    assert all(str(refused[name]).isprintable() for name in ("route", "game_key", "cause"))


def test_the_control_api_lists_refused_requests_newest_first(stage: Stage, control_api: Call) -> None:
    """`GET /refused` has the last 200, and a reset empties it (Wire 5.1, Control API)."""
    for number in range(REFUSED_REQUESTS + 3):
        send_signed(stage, with_value(b"NaN").rjust(20 + number))
    listed = control_api("GET", "/refused").json()
    assert len(listed) == REFUSED_REQUESTS
    assert "byte 11" not in listed[0]["cause"]
    assert set(listed[0]) == {"arrival_ts", "route", "game_key", "game", "status", "cause"}
    assert control_api("GET", "/summary").json()["since_start"]["refused"] == {"400": REFUSED_REQUESTS + 3}
    control_api("POST", "/reset")
    assert control_api("GET", "/refused").json() == []


def test_the_stream_shows_a_refused_request_at_once(stage: Stage) -> None:
    """A stream is woken by a refused request as by an event, and begins with those that there were.

    Wire 5.2, Live feed.
    """

    live = stage.sandbox.live

    async def listen() -> list[bytes]:
        stream = server_sent_events(live, FeedFilter(limit=0), live.listen(), gather_s=0, silence_s=5)
        first = await anext(stream), await anext(stream)
        examination = asyncio.create_task(stage.sandbox.collector.refused.examine_as_they_come())
        await asyncio.to_thread(send_signed, stage, b"[NaN]")
        message = await asyncio.wait_for(anext(stream), 2)
        examination.cancel()
        await stream.aclose()  # type: ignore[attr-defined]
        return [*first, message]

    send_signed(stage, b"[None]")
    stage.refused_requests()
    _, earlier, message = asyncio.run(listen())
    assert b"event: refused" in earlier
    assert b"'None' at byte 1" in earlier
    assert b"event: refused" in message
    assert b"'NaN' at byte 1" in message
    assert b"'None'" not in message
    assert b'"refused":{"400":2}' in message


def test_refused_requests_are_logged_within_bounds(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The log names route, game, status and cause, and a client in a loop does not fill it."""
    with caplog.at_level(logging.WARNING, logger="gamelens"):
        for _ in range(100):
            send_signed(stage, b"[NaN]")
        stage.refused_requests()
    said = [record.getMessage() for record in caplog.records]
    assert (
        said[0]
        == "events of Tile Saga was refused with 400: 'NaN' at byte 1, which JSON does not have: leave the field out"
    )
    assert len(said) == 60


def test_a_request_is_examined_after_it_is_answered(stage: Stage) -> None:
    """What is wrong with a signature is found out apart from the request, whose time then tells nothing of it.

    Wire 1.4, Signature.
    """
    stage.post(EVENTS_PATH, BODY, {"Authorization": digest().hex()})
    assert stage.sandbox.live.refused_after(0) == []
    assert "is hexadecimal" in stage.refused_requests()[-1].cause


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("requests", "letters"), [(REFUSED_REQUESTS + 1, 0), (QUEUED_BYTES // MIB + 1, MIB - 2)])
def test_what_is_too_much_for_the_queue_is_listed_without_a_cause(stage: Stage, requests: int, letters: int) -> None:
    """Refused requests fill no memory, however many there are at once, and all are counted in their order."""
    for _ in range(requests):
        stage.post(EVENTS_PATH, b"[%b]" % (b" " * letters))
    causes = [refused.cause for refused in stage.refused_requests()]
    assert stage.sandbox.live.refused_total == requests
    assert causes[-1] == causes[-2] == "there is no Authorization header"
    assert (causes[0] == NOT_EXAMINED) == (requests <= REFUSED_REQUESTS)


@given(st.sampled_from([BODY, GZIPPED]), st.binary(max_size=6), st.integers(0), st.sampled_from(["", "gzip", "x"]))
@settings(max_examples=examples(100), deadline=None)
def test_any_damage_has_a_cause(body: bytes, piece: bytes, place: int, encoding: str) -> None:
    """A body with any bytes anywhere gets a sentence of one line, and so does its signature."""
    place %= len(body)
    damaged = body[:place] + piece + body[place + 1 :]
    assert why_unreadable(damaged, encoding)
    header = (text(digest())[:place] + piece.decode("latin-1"))[:60]
    mistake = signature_mistake(header, damaged, secret_key=SECRET_KEY, game_key=GAME_KEY, other_keys={})
    assert mistake or header == text(digest(damaged))
    assert "\n" not in why_unreadable(damaged, encoding) + mistake
