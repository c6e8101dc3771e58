"""Which events of a body are good, and everything that is wrong with the others (public-facts 1.7)."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from gamelens.errors import Refused
from gamelens.wire.events import Fault, decode_events, faults
from gamelens.wire.limits import UNPACKED_BYTES

REST_SDK = "rest api v2"


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

    *is_custom* is true when every event says it comes from a custom integration, `rest api v2`.
    """

    events: int
    body: bytes
    rejected: list[Rejected]
    is_custom: bool


def admit(body: bytes) -> Admission:
    """Judge every event of *body*, a JSON array.

    Raises:
        Undecodable: not JSON, or no array.
    """
    try:
        events = decode_events(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _judge(body)
    return Admission(len(events), body, [], _is_custom([event.sdk_version for event in events]))


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
        events: list[Any] = [msgspec.json.decode(member) for member in members]
    except msgspec.ValidationError:
        raise Undecodable("wrong_type") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Undecodable("wrong_format") from None
    found = [faults(event) for event in events]
    good = [bytes(member) for member, wrong in zip(members, found, strict=True) if not wrong]
    return Admission(
        events=len(good),
        body=b"[" + b",".join(good) + b"]",
        rejected=[Rejected(member.copy(), wrong) for member, wrong in zip(members, found, strict=True) if wrong],
        is_custom=_is_custom([event.get("sdk_version") for event in events if isinstance(event, dict)]),
    )


def _is_custom(sdk_versions: list[Any]) -> bool:
    return bool(sdk_versions) and all(version == REST_SDK for version in sdk_versions)
