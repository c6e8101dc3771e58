"""Which events of a body are good, and everything that is wrong with the others (public-facts 1.7)."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

import msgspec

from gamelens.errors import Refused
from gamelens.wire.events import Fault, decode_events, faults
from gamelens.wire.limits import JSON_DEPTH, UNPACKED_BYTES

REST_SDK = "rest api v2"
_STRUCTURE: Final = b'"[]{}'
_REST: Final = bytes(set(range(256)) - set(_STRUCTURE))
_STEP: Final = {ord(mark): step for mark, step in (("[", 1), ("{", 1), ("]", -1), ("}", -1))}


class Undecodable(Refused):
    """A body that holds no events at all: nothing of it is kept."""

    def __init__(self, error_type: str) -> None:
        self.error_type = error_type
        super().__init__(error_type)


class TooLarge(Refused):
    """A body that unpacks to more than the limit."""


class Rejected(msgspec.Struct, frozen=True):
    """One bad event, as it was sent, and its faults."""

    event: msgspec.Raw
    errors: list[Fault]


class Admission(msgspec.Struct, frozen=True):
    """What came of a body: the good events as one JSON array, the bad ones in batch order.

    *is_custom* is true when every event says it comes from a custom integration, `rest api v2`; *categories* counts
    the good events of each.
    """

    events: int
    body: bytes
    rejected: list[Rejected]
    is_custom: bool
    categories: Mapping[str, int] = {}


def admit(body: bytes) -> Admission:
    """Judge every event of *body*, a JSON array.

    Raises:
        Undecodable: not JSON, no array, or nested too deeply.
    """
    if not _is_text(body) or _depth(body) > JSON_DEPTH:
        raise Undecodable("wrong_format")
    try:
        events = decode_events(body)
    except msgspec.DecodeError:
        return _judge(body)
    is_custom = _is_custom([event.sdk_version for event in events])
    return Admission(len(events), body, [], is_custom, _counted(events))


def unpack(body: bytes) -> bytes:
    """Inflate one gzip member, never past the limit.

    Raises:
        Undecodable: not gzip, cut short, or followed by something else.
        TooLarge: more than the limit when unpacked.
    """
    inflater = zlib.decompressobj(wbits=31)
    try:
        unpacked = inflater.decompress(body, UNPACKED_BYTES + 1)
    except zlib.error:
        raise Undecodable("wrong_format") from None
    if len(unpacked) > UNPACKED_BYTES:
        raise TooLarge(f"the body unpacks to more than {UNPACKED_BYTES} bytes: send fewer events at a time")
    if not inflater.eof or inflater.unused_data:
        raise Undecodable("wrong_format")
    return unpacked


def _judge(body: bytes) -> Admission:
    """The slow way, one event at a time, for a body that is not all good."""
    try:
        members = msgspec.json.decode(body, type=list[msgspec.Raw])
        found = [_faults(member) for member in members]
    except msgspec.ValidationError:
        raise Undecodable("wrong_type") from None
    except msgspec.DecodeError:
        raise Undecodable("wrong_format") from None
    good = [bytes(member) for member, wrong in zip(members, found, strict=True) if not wrong]
    kept = b"[" + b",".join(good) + b"]"
    return Admission(
        events=len(good),
        body=kept,
        rejected=[Rejected(member.copy(), wrong) for member, wrong in zip(members, found, strict=True) if wrong],
        is_custom=False,
        categories=_counted(decode_events(kept)),
    )


def _faults(member: msgspec.Raw) -> list[Fault]:
    """What is wrong with one event as sent; what only the typed decoder minds, it minds as a whole.

    That is a field given twice, the first time badly, or a number past every float.
    """
    try:
        decode_events(b"[%b]" % bytes(member))
    except msgspec.DecodeError:
        pass
    else:
        return []
    try:
        return faults(msgspec.json.decode(member)) or [Fault("wrong_format", "/")]
    except msgspec.ValidationError:
        return [Fault("wrong_format", "/")]


def _is_custom(sdk_versions: list[str]) -> bool:
    return bool(sdk_versions) and all(version == REST_SDK for version in sdk_versions)


def _counted(events: list[Any]) -> dict[str, int]:
    """How many there are of each category."""
    kinds: Counter[Any] = Counter(map(type, events))
    return {kind.__struct_config__.tag: count for kind, count in kinds.items()}


def _is_text(body: bytes) -> bool:
    """Whether *body* is UTF-8; the decoder looks only at the fields it knows."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _depth(body: bytes) -> int:
    """How deep the arrays and objects of *body* are nested, where it is JSON."""
    if b"\\" in body:
        body = re.sub(rb"\\.", b"", body, flags=re.DOTALL)  # an escaped quote ends no string
    marks = body.translate(None, delete=_REST).replace(b'""', b"")
    if b'"' in marks:
        marks = re.sub(rb'"[^"]*"', b"", marks)
    return max(accumulate(_STEP.get(mark, 0) for mark in marks), default=0)
