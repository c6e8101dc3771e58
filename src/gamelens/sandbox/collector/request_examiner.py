"""Why the body of a request cannot be read: the header, the byte or the encoding to blame (Wire 1.6, Body limits).

It runs after the answer, for the owner of the sandbox alone: the answer says no more than that the body is unreadable.
Bytes are counted from 0, in the body as sent or, where that was gzipped, in the unpacked one.
"""

from __future__ import annotations

import base64
import codecs
import re
import zlib
from contextlib import suppress
from typing import Any, Final

import msgspec

from gamelens._text import printable, shortened
from gamelens.sandbox.collector.event_admission import lone_surrogates
from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody, unpack
from gamelens.wire.limits import JSON_DEPTH, MIB

_SHOWN_LETTERS: Final = 40
_BEGINNINGS: Final = [  # first bytes of what clients send in place of gzip or JSON; longer ones before their beginnings
    *((bytes.fromhex("78" + level), "zlib") for level in ("01", "5e", "9c", "da")),
    (b"\x1f\x8b", "gzip"),
    (b"\x1f\xef\xbf\xbd", "gzip that was read as text and is lost"),
    (b"\x1f\xc2\x8b", "gzip that was written as text"),
    (b"\x1f\x9d", "compress"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"\xfd7zXZ", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "a zip file"),
    (b"7z\xbc\xaf", "a 7z file"),
    (b"\xff\x06\0\0sNaPpY", "Snappy"),
    (codecs.BOM_UTF32_LE, "the byte order mark of UTF-32: send UTF-8"),
    (codecs.BOM_UTF32_BE, "the byte order mark of UTF-32: send UTF-8"),
    (codecs.BOM_UTF16_LE, "the byte order mark of UTF-16: send UTF-8"),
    (codecs.BOM_UTF16_BE, "the byte order mark of UTF-16: send UTF-8"),
    (codecs.BOM_UTF8, "a byte order mark: send UTF-8 without it"),
    (b"<", "HTML or XML"),
    (b"--", "a form in parts (multipart): send the JSON alone"),
    *((mark, "percent-encoded text: send the JSON itself") for mark in (b"%5B", b"%5b", b"%7B", b"%7b")),
]
_ENCODING_NAMES: Final = ("deflate", "br", "zstd", "compress", "x-compress", "lz4", "snappy", "xz", "bzip2", "zlib")
_POSITION: Final = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?$")
_FORM: Final = re.compile(rb"[\w.\[\]-]{1,40}=")
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]{8,}\Z")
_LEXICAL: Final = re.compile(  # everything that a JSON text is made of, in any order
    rb'(?:[ \t\r\n{}\[\]:,]++|"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*+"|(?:true|false|null)\b'
    rb"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+(?![0-9A-Za-z.+-]))*+"
)
_STRING_BEGINNING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*+')
_TOKENS: Final = [  # what stands where nothing of JSON does
    (re.compile(pattern, re.IGNORECASE), rule)
    for pattern, rule in (
        (rb"[-+]?(?:nan|inf|infinity)\b", "which JSON does not have: leave the field out"),
        (rb"(?:none|true|false|null|nil|undefined)\b", "where JSON has null, true and false"),
        (b"'|" + "|".join("\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb").encode(), "where JSON has double quotes"),
        (rb"//|/\*|#|<!--", "the beginning of a comment, which JSON does not have"),
        (rb"[-+]?\.?[0-9][0-9a-z.+-]*", "which is no number of JSON"),
        (rb"=>?|;", "where JSON has a colon or a comma"),
        (rb"[a-z_$][\w$]*", "a word without quotes"),
        (rb"\0", "a zero byte, which does not belong to the text"),
    )
]


def why_unreadable(body: bytes, content_encoding: str) -> str:
    """Return in words why *body* with the header `Content-Encoding` is not a readable array of events, or init."""
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    applied = [coding for coding in codings if coding not in ("", "identity")]
    if not applied:
        return _why_not_json(body)
    if applied not in (["gzip"], ["x-gzip"]):
        return f"{_why_not_a_coding(content_encoding, applied)}; {_begins(body)}"
    try:
        content = unpack(body).content
    except UndecodableBody:
        return _why_not_gzip(body)
    except BodyTooLarge as error:
        return str(error)
    return f"{_why_not_json(content, is_unpacked=True)} (after gzip)"


def _why_not_a_coding(header: str, applied: list[str]) -> str:
    """Return what the header `Content-Encoding` holds in place of gzip."""
    (first, *others), shown = applied, _quoted(header)
    if others:
        return f"the header Content-Encoding is {shown}: a body may be gzipped once"
    if "/" in first:
        what = "a media type, which belongs into the header Content-Type"
    elif first in ("chunked", "base64", "quoted-printable", "binary", "7bit", "8bit"):
        what = "a transfer encoding: leave the header out"
    elif first in _ENCODING_NAMES:
        what = "which the collector cannot unpack: send gzip, or the body as it is"
    else:
        what = "which is not gzip: leave the header out, or send gzip"
        with suppress(LookupError, ValueError):
            codecs.lookup(first)
            what = "a character encoding: leave the header out, JSON is UTF-8"
    return f"the header Content-Encoding is {shown}, {what}"


def _why_not_gzip(body: bytes) -> str:
    """Return why *body* is not the gzip that it should be."""
    if not body:
        return "the header Content-Encoding is gzip, and the body is empty"
    if not body.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            deflated = not _known_beginning(body) and not body.isascii()
            if deflated and zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, MIB):
                return f"{_begins(body)}: deflate without the header of gzip"
        return f"{_why_wrapped(body) or _begins(body)}, though the header Content-Encoding is gzip"
    rest = body
    while rest.startswith(b"\x1f\x8b"):
        place = len(body) - len(rest)
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            inflater.decompress(rest)
        except zlib.error as error:
            fault = str(error).rpartition(": ")[2]
            return f"the gzip that begins at byte {place} is damaged ({fault}), as bytes are that went through a text"
        if not inflater.eof:
            return f"the gzip is cut short: it does not end within the {len(body):,} bytes that arrived"
        rest = inflater.unused_data
    return f"{len(rest):,} bytes follow the end of the gzip, from byte {len(body) - len(rest)} on"


def _why_not_json(content: bytes, *, is_unpacked: bool = False) -> str:
    """Return why *content* is not a JSON array."""
    if not content.strip():
        return "the body is empty"
    if content.startswith(b"\x1f\x8b"):
        if is_unpacked:
            return f"{_begins(content)}: it is gzipped twice"
        return f"{_begins(content)}, without the header Content-Encoding: gzip"
    if _known_beginning(content):
        return _begins(content)
    if 0 in content[:2]:
        return f"the body begins with {content[:4].hex(' ')}: UTF-16 or UTF-32, where JSON is UTF-8"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return _why_not_utf8(content, error)
    try:
        value = msgspec.json.decode(content)
    except RecursionError:
        return f"the JSON is nested deeper than {JSON_DEPTH} levels"
    except msgspec.ValidationError:
        value = msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return _why_malformed(content, str(error))
    return _why_not_events(value)


def _why_not_utf8(content: bytes, error: UnicodeDecodeError) -> str:
    """Return why *content* is not UTF-8."""
    place, byte = error.start, content[error.start]
    if place == 0:
        return f"{_begins(content)}: it is not text, but binary such as MessagePack"
    if error.reason == "unexpected end of data":
        return f"the body ends within a character, at byte {place}: it is cut short"
    if byte == 0xED:
        return f"byte {place} begins a surrogate in UTF-8: write the character itself"
    if byte in (0xC0, 0xC1):
        return f"byte {place} is {byte:02x}, which UTF-8 does not have: it is Java's modified UTF-8, or a longer form"
    letter = bytes([byte]).decode("cp1252", "replace")
    return f"byte {place} is {byte:02x}, which is not UTF-8 ({_quoted(letter)} in Windows-1252): send UTF-8"


def _why_malformed(content: bytes, message: str) -> str:
    """Return why *content* is not JSON: by its letters, else by the *message* of the decoder."""
    if wrapped := _why_wrapped(content):
        return wrapped
    found = _LEXICAL.match(content)
    place = found.end() if found else 0
    if place < len(content):
        return _why_not_a_token(content, place)
    if (lone := next(lone_surrogates(content), None)) is not None:
        return f"half of a surrogate pair, {_quoted(content[lone : lone + 6].decode())}, at byte {lone}"
    position = _POSITION.match(message)
    reason, place = (position[1], int(position[2] or 0)) if position else (message, 0)
    if "truncated" in reason:
        return f"the JSON does not end within the {len(content):,} bytes that arrived: it is cut short"
    if re.fullmatch(rb"[0-9],[0-9]", content[max(0, place - 2) : place + 1]):
        return f"a decimal comma at byte {place - 1}: numbers have a point"
    if "trailing characters" in reason:
        return f"another JSON value begins at byte {place - 1}: send all events in one array"
    if "trailing comma" in reason:
        return f"a comma before the end of an array or object, at byte {place - 1}"
    shown = content[place : place + _SHOWN_LETTERS].decode(errors="replace")
    return f"not JSON at byte {place}, {reason}: {_quoted(shown)}"


def _why_not_a_token(content: bytes, place: int) -> str:
    """Return what stands at *place* of *content*, where nothing of JSON does."""
    if string := _STRING_BEGINNING.match(content, place):
        end = string.end()
        if end == len(content):
            return f"the JSON ends in a string that begins at byte {place}: it is cut short, or lacks a quote"
        if content[end : end + 1] == b"\\":
            shown = _quoted(content[end : end + 2].decode(errors="replace"))
            return f"{shown} at byte {end}, which is no escape of a JSON string"
        return f"a control character, {content[end]:02x}, at byte {end}: a string holds it as an escape such as \\n"
    for pattern, rule in _TOKENS:
        if token := pattern.match(content, place):
            return f"{_quoted(token[0].decode(errors='replace'))} at byte {place}, {rule}"
    shown = content[place : place + 1].decode(errors="replace")
    return f"byte {place} is {content[place]:02x} ({_quoted(shown)}), which JSON does not have outside of a string"


def _why_wrapped(content: bytes) -> str:
    """Return in what *content* is wrapped, if it is JSON in another form."""
    if _FORM.match(content):
        return f"{_begins(content)}: the fields of a form; send the JSON alone"
    if _HEXADECIMAL.match(content.strip()):
        return f"{_begins(content)}: hexadecimal digits, where the bytes themselves are wanted"
    with suppress(ValueError):
        inner = base64.b64decode(content.strip(), validate=True)
        if len(content) >= 8:
            return f"{_begins(content)}: base64 of something that {_begins(inner, whole='')}"
    return ""


def _why_not_events(value: Any) -> str:
    """Return what the JSON *value* is in place of an array of events."""
    match value:
        case dict():
            held = [name for name, member in value.items() if isinstance(member, list)]
            if "category" not in value and len(held) == 1:
                return f"the body is an object that holds an array in {_quoted(held[0])}: send the array itself"
            return "the body is a JSON object: events are sent in an array, also one alone"
        case str():
            return "the body is a JSON string, as JSON that is encoded twice: send the array itself"
        case list() | msgspec.Raw():
            return f"the JSON is nested deeper than {JSON_DEPTH} levels"
    return f"the body is {_quoted(msgspec.json.encode(value).decode())}, not an array of events"


def _known_beginning(content: bytes) -> str:
    """Return what begins as *content* does, if that is known."""
    return next((what for mark, what in _BEGINNINGS if content.startswith(mark)), "")


def _begins(content: bytes, *, whole: str = "the body ") -> str:
    """Return how *content* begins, with what that is."""
    if not content:
        return f"{whole}is empty"
    what = _known_beginning(content)
    if what in ("zlib", "compress", "zstd", "LZ4", "xz", "bzip2", "Snappy"):
        what += ", not gzip"
    if not what and content.lstrip()[:1] in (b"[", b"{"):
        what = "plain JSON"
    mark = next((mark for mark, _ in _BEGINNINGS if content.startswith(mark)), content[:4])
    return f"{whole}begins with {mark.hex(' ')}" + (f": {what}" if what else "")


def _quoted(text: str) -> str:
    quote = '"' if "'" in text else "'"
    return f"{quote}{printable(shortened(text, _SHOWN_LETTERS))}{quote}"
