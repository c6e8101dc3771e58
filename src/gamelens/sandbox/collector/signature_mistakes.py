"""Why a signature is wrong: the known mistake that produces the signature that came (Wire 1.4, Signature).

A mistake has two halves: what was hashed how, and how the digest was written down. All digests are made for every
refused request, of a known game or not, so the time that this takes tells nobody why a request was refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody, unpack
from gamelens.wire.limits import KIB

EXAMINED_BYTES: Final = 64 * KIB
"""Of a larger body only the form of its signature is examined."""
_HEADER_LETTERS: Final = 1000
_LEAST_PREFIX: Final = 6
_HEXADECIMAL: Final = "is hexadecimal, not base64"
_MOST_GAMES: Final = 200
_DIGEST_BYTES: Final = 32
_DIGEST_SIZES: Final = {16: "MD5", 20: "SHA-1", 28: "SHA-224", 48: "SHA-384", 64: "SHA-512"}
_COMPRESSIONS: Final = ((1, 4), (1, 0), (6, 0), (9, 2), (9, 0))  # levels with the flag that libraries write for them
_SYSTEMS: Final = (0, 3, 10, 19, 255)  # the byte of a gzip header for the operating system

_WRAPPINGS: Final = [  # pattern, its replacement, and what it says of the header
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), inner, note)
    for pattern, inner, note in (
        (r"^\s+|\s+\Z", "", "has white space or a line end around it"),
        (r"(?:\\[rn])+\Z", "", "ends in a line end"),
        (r"(?<=\S) (?=\S)", "+", "has spaces in place of +"),
        (r"\s+", "", "has white space or line ends in it"),
        (r"^b(['\"])(.*)\1\Z", r"\2", "is the text of Python bytes, b'...'"),
        (r"^(['\"`])(.*)\1\Z", r"\2", "is in quotes"),
        (r"^[<{\[(](.*)[>})\]]\Z", r"\1", "is in brackets"),
        (r"^0x", "", "begins with 0x"),
        (r"(?<=[0-9a-f]{2})[-: ](?=[0-9a-f]{2})", "", "has separators"),
        (r"^[\w.-]{1,32}\s*[ =:]\s*(?=\S{20})", "", "begins with a scheme or a name, where it stands alone"),
        (r"^.{20,}[,&] ?(?=\S{20})", "", "comes behind another one"),
        (r"(?<=\S{20}), ?.*\Z", "", "comes before another one"),
    )
]


def signature_mistake(
    header: str, body: bytes, *, secret_key: str, game_key: str, other_keys: Mapping[str, str]
) -> str:
    """Return in words why *header* is not the signature of *body*, or an empty string if it is.

    Args:
        header: the header `Authorization` as it came.
        body: the bytes as they came.
        secret_key: the key of the game, or any if the game is unknown.
        game_key: the key in the request.
        other_keys: names of games, with their secret keys.
    """
    digests = _digests(body, secret_key=secret_key, game_key=game_key, other_keys=other_keys)
    if not header.strip():
        return "there is no Authorization header"
    if len(header) > _HEADER_LETTERS:
        return f"the Authorization header has {len(header):,} characters: a signature has 44"
    if secret_key in header:
        return (
            "the Authorization header is the secret key itself: send the signature of the body, which is made with it"
        )
    if game_key and game_key in header:
        return "the Authorization header holds the game key, which belongs into the address: send the signature alone"
    readings = list(_readings(header))
    known = _known_mistake(header, readings, digests)
    return _unknown_mistake(readings, body) if known is None else known


Readings = list[tuple[tuple[str, ...], bytes]]
"""Digests, each with what is wrong with its form."""


def _known_mistake(header: str, readings: Readings, digests: Mapping[bytes, str]) -> str | None:
    """Return the mistake that makes *header* of one of *digests*, an empty string if it is right, or None."""
    for notes, digest in readings:
        if (how := digests.get(digest)) is not None:
            if mistake := " and ".join(filter(None, (*notes, how))):
                return f"the signature {mistake}"
            is_right = header == base64.b64encode(digest).decode()
            return "" if is_right else "the signature ends in other bits than base64 ends in"
    for notes, digest in readings:
        for whole, how in digests.items():
            if len(digest) >= _LEAST_PREFIX and whole.startswith(digest):
                return "the signature " + " and ".join(filter(None, (*notes, "is cut short", how)))
    for whole, how in digests.items():
        if header.strip().casefold() == base64.b64encode(whole).decode().casefold():
            return "the signature " + " and ".join(filter(None, ("has lost its upper and lower case", how)))
    return None


def _unknown_mistake(readings: Readings, body: bytes) -> str:
    """Return what can be said of a signature that no known mistake produces."""
    arrived = f"the body that arrived has {len(body):,} bytes and the SHA-256 {hashlib.sha256(body).hexdigest()}"
    sizes = {len(digest) for notes, digest in readings if notes in ((), (_HEXADECIMAL,))}
    if _DIGEST_BYTES in sizes:
        return f"the signature has the right form, and is of another secret key or of other bytes: {arrived}"
    if names := [name for size, name in _DIGEST_SIZES.items() if size in sizes]:
        return f"the signature has the length of {names[0]}, where HMAC-SHA256 in base64 is wanted: {arrived}"
    return "the Authorization header is no signature: send the base64 of HMAC-SHA256 of the body, 44 characters"


def _digests(body: bytes, *, secret_key: str, game_key: str, other_keys: Mapping[str, str]) -> dict[bytes, str]:
    """Return each digest that a known mistake makes with what it says of the signature; the right one says nothing."""
    texts = list(_texts(body))
    key = secret_key.encode()
    found: dict[bytes, str] = {}
    for what, text in texts:
        covers = f"covers {what}, not the bytes as sent" if what else ""
        found.setdefault(hmac.digest(key, text, "sha256"), covers)
    if len(body) > EXAMINED_BYTES:
        return found
    main = [text for text in texts if not text[0] or text[0] in _MAIN]
    for how, wrong_key in _keys(secret_key, game_key, other_keys):
        for what, text in main:
            also = f" and covers {what}" if what else ""
            found.setdefault(hmac.digest(wrong_key, text, "sha256"), f"is made with {how}{also}")
    for what, text in main:
        also = f" and covers {what}" if what else ""
        for name in ("md5", "sha1", "sha224", "sha384", "sha512", "sha3_256"):
            found.setdefault(hmac.digest(key, text, name), f"is HMAC-{name.upper()}, not HMAC-SHA256{also}")
        for name in ("md5", "sha1", "sha256", "sha512"):
            for hashed, kind in (
                (text, "body alone"),
                (key + text, "key and the body"),
                (text + key, "body and the key"),
            ):
                plain = hashlib.new(name, hashed, usedforsecurity=False).digest()
                found.setdefault(plain, f"is the plain {name.upper()} of the {kind}, without HMAC{also}")
        found.setdefault(hmac.digest(text, key, "sha256"), f"has key and body in each other's place{also}")
    return found


_BEFORE_GZIP: Final = "the body before gzip"
_AND_LINE_END: Final = "the body and a line end"
_MAIN: Final = (_BEFORE_GZIP, _AND_LINE_END)


def _texts(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what may have been signed in place of *body*, after it, each with its name."""
    yield "", body
    if len(body) > EXAMINED_BYTES:
        return
    content = body
    with suppress(UndecodableBody, BodyTooLarge):
        content = unpack(body).content
    if content is not body:
        yield _BEFORE_GZIP, content
    else:
        yield from (("the gzipped body, which came without gzip", packed) for packed in _gzipped(body))
    if len(content) > EXAMINED_BYTES:
        return
    yield _AND_LINE_END, content + b"\n"
    yield _AND_LINE_END, content + b"\r\n"
    yield "the body without its last line end", content.rstrip(b"\r\n")
    yield "no body at all", b""
    yield "the body with other line ends", content.replace(b"\r\n", b"\n")
    yield "the body with other line ends", re.sub(rb"\r?\n", b"\r\n", content)
    yield "the body without its byte order mark", content.removeprefix(b"\xef\xbb\xbf")
    yield "the body with a byte order mark", b"\xef\xbb\xbf" + content
    for hashed in (hashlib.sha256(content), hashlib.sha1(content, usedforsecurity=False)):
        yield "a hash of the body", hashed.digest()
        yield "a hash of the body", hashed.hexdigest().encode()
    for whole in (body, content):
        yield "the base64 of the body", base64.b64encode(whole)
        yield "the hexadecimal digits of the body", binascii.hexlify(whole)
    with suppress(UnicodeDecodeError):
        yield from _rewritten(content.decode("utf-8-sig"))


def _gzipped(body: bytes) -> Iterator[bytes]:
    """Yield *body* as the usual libraries gzip it without a time."""
    for level, flag in _COMPRESSIONS:
        packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        deflated = packer.compress(body) + packer.flush()
        end = struct.pack("<II", zlib.crc32(body), len(body))
        for system in _SYSTEMS:
            yield b"\x1f\x8b\x08\0\0\0\0\0%c%c" % (flag, system) + deflated + end


def _rewritten(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield the JSON *text* in other forms."""
    yield "the body in UTF-16", text.encode("utf-16-le", "surrogatepass")
    yield "the body in UTF-16", text.encode("utf-16", "surrogatepass")
    yield "the body in Latin-1", text.encode("latin-1", "replace")
    yield "the body as ASCII, with ? for other letters", text.encode("ascii", "replace")
    yield "the body in percent-encoding", quote(text, safe="").encode()
    yield "the body in percent-encoding", quote_plus(text).encode()
    yield "the body as a JSON string", json.dumps(text).encode()
    yield "the body without white space", "".join(text.split()).encode()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    for what, signed in (
        ("the JSON written otherwise (white space, escapes or order)", value),
        ("the event without its array", inner),
        ("the event in an array", [value]),
    ):
        for separators in ((",", ":"), (", ", ": ")):
            for is_ascii in (True, False):
                for is_sorted in (False, True):
                    written = json.dumps(signed, separators=separators, ensure_ascii=is_ascii, sort_keys=is_sorted)
                    yield what, written.encode("utf-8", "surrogatepass")
    yield "the event without its array", text.strip().removeprefix("[").removesuffix("]").encode()
    yield "the JSON written otherwise (white space, escapes or order)", json.dumps(value, indent=2).encode()


def _keys(secret_key: str, game_key: str, other_keys: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield what may have been the key in place of *secret_key*, each with its name."""
    key = secret_key.encode()
    yield "the secret key and a line end", key + b"\n"
    yield "the secret key and a line end", key + b"\r\n"
    yield "the secret key and a blank", key + b" "
    yield "a blank before the secret key", b" " + key
    yield "the secret key and a zero byte", key + b"\0"
    yield "the secret key in quotes", b'"%b"' % key
    yield "the secret key in quotes", b"'%b'" % key
    yield "the bytes that the secret key's hexadecimal digits stand for", bytes.fromhex(secret_key)
    yield "the secret key in upper case", key.upper()
    yield "the secret key in base64", base64.b64encode(key)
    yield "the bytes that the secret key is the base64 of", base64.b64decode(key)
    yield "the secret key in UTF-16", secret_key.encode("utf-16-le")
    yield "the secret key in UTF-16", secret_key.encode("utf-16")
    yield "a hash of the secret key", hashlib.sha256(key).digest()
    yield "a hash of the secret key", hashlib.sha256(key).hexdigest().encode()
    yield "the game key in place of the secret key", game_key.encode("utf-8", "replace")
    yield "both keys, one behind the other", game_key.encode("utf-8", "replace") + key
    yield "both keys, one behind the other", key + game_key.encode("utf-8", "replace")
    yield "no key", b""
    for name, other in list(other_keys.items())[:_MOST_GAMES]:
        yield f"the secret key of {name}", other.encode()


def _readings(header: str) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the digests that *header* can be read as, each with what is wrong with its form, the best one first."""
    texts: list[tuple[tuple[str, ...], str]] = [((), header)]
    known = {header}
    for notes, text in texts:  # the list grows
        for note, decode in _DECODERS:
            with suppress(ValueError):
                digest = decode(text)
                yield (*notes, *filter(None, (note,))), digest
                if digest.isascii() and len(digest) > _DIGEST_BYTES:
                    inner = digest.decode()
                    if inner not in known and len(notes) < 3:
                        known.add(inner)
                        texts.append(((*notes, f"is encoded once more ({note or 'base64'})"), inner))
        if len(notes) < 3:
            for note, inner in _unwrapped(text):
                if inner not in known:
                    known.add(inner)
                    texts.append(((*notes, note), inner))


def _unwrapped(text: str) -> Iterator[tuple[str, str]]:
    """Yield *text* without something that does not belong to it, with what that is."""
    for pattern, inner, note in _WRAPPINGS:
        yield note, pattern.sub(inner, text)
    yield "is percent-encoded", unquote(text)


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _from_bare_base64(text: str) -> bytes:
    """Decode base64 without its padding. Raises ValueError if it is there."""
    if text.endswith("=") or len(text) % 4 == 0:
        raise ValueError("it is padded")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _from_url_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _from_numbers(text: str) -> bytes:
    """Decode the numbers that Java, JavaScript and Python write for bytes."""
    return bytes(int(number) % 256 for number in re.split(r"[,\s]+", text.strip("[](){}")))


def _from_text_bytes(text: str) -> bytes:
    """Decode base64 of a digest that was taken for text and written as UTF-8."""
    return base64.b64decode(text, validate=True).decode().encode("latin-1")


_DECODERS: Final[list[tuple[str, Callable[[str], bytes]]]] = [
    ("", _from_base64),
    (_HEXADECIMAL, bytes.fromhex),
    ("has lost the = at the end of its base64", _from_bare_base64),
    ("is base64 in the alphabet of addresses (- and _ for + and /)", _from_url_base64),
    ("is a list of numbers, not base64", _from_numbers),
    ("is of a digest that was turned into text before base64", _from_text_bytes),
    ("is the bare digest, not base64", lambda text: text.encode("latin-1")),
]
