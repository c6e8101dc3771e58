"""Which events of a body are good, and everything that is wrong with the others (public-facts 1.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody
from gamelens.wire.event_validator import LENIENT, EventValidator, RejectedEvent
from gamelens.wire.field_rules import Violation
from gamelens.wire.limits import JSON_DEPTH

REST_SDK = "rest api v2"
VALUES: Final = 1 << 20
"""Our choice: what is bad or nested may hold so many values; 16 MB of the shortest events have three quarters of it."""
BAD_EVENTS: Final = 10_000
"""Our choice: so many of one body are told; the answer is longer than the body, and nobody reads it to its end."""
_STRUCTURE: Final = b'"[]{}'
_REST: Final = bytes(set(range(256)) - set(_STRUCTURE))
_STEP: Final = {ord(mark): step for mark, step in (("[", 1), ("{", 1), ("]", -1), ("}", -1))}


class AdmissionResult(msgspec.Struct, frozen=True):
    """What came of a body: the good events as one JSON array, the bad ones in batch order.

    *is_custom* is true when every event says it comes from a custom integration, `rest api v2`; *categories* counts
    the good events of each.
    """

    events: int
    body: bytes
    rejected: list[RejectedEvent]
    is_custom: bool
    categories: Mapping[str, int] = {}


def admit(body: bytes, rules: EventValidator = LENIENT) -> AdmissionResult:
    """Judge every event of *body*, a JSON array, by *rules*.

    Raises:
        Undecodable: not JSON, no array, or nested too deeply.
        TooLarge: more than `BAD_EVENTS` events are bad, or there are more than `VALUES` values to look at.
    """
    if not _is_text(body):
        raise UndecodableBody("wrong_format")
    try:
        events = rules.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _judge(body, rules)
    if _may_be_deep(body, len(events)) and _depth(body) > JSON_DEPTH:
        raise UndecodableBody("wrong_format")
    is_custom = {event.sdk_version for event in events} == {REST_SDK}
    return AdmissionResult(len(events), body, [], is_custom, _counted(events))


def _judge(body: bytes, rules: EventValidator) -> AdmissionResult:
    """The slow way, one event at a time, for a body that is not all good."""
    if _depth(body) > JSON_DEPTH:
        raise UndecodableBody("wrong_format")
    try:
        members = msgspec.json.decode(body, type=list[msgspec.Raw])
        found = _found(members, rules)
    except msgspec.ValidationError:
        raise UndecodableBody("wrong_type") from None
    except msgspec.DecodeError:
        raise UndecodableBody("wrong_format") from None
    good = [bytes(member) for member, wrong in zip(members, found, strict=True) if not wrong]
    kept = b"[" + b",".join(good) + b"]"
    return AdmissionResult(
        events=len(good),
        body=kept,
        rejected=[
            RejectedEvent(event=member.copy(), errors=wrong)
            for member, wrong in zip(members, found, strict=True)
            if wrong
        ],
        is_custom=False,
        categories=_counted(rules.decode(kept)),
    )


def _found(members: list[msgspec.Raw], rules: EventValidator) -> list[list[Violation]]:
    """The faults of each event."""
    found, bad = [], 0
    for member in members:
        found.append(_faults(member, rules))
        bad += bool(found[-1])
        if bad > BAD_EVENTS:
            raise BodyTooLarge(f"more than {BAD_EVENTS} events of the body are bad")
    return found


def _faults(member: msgspec.Raw, rules: EventValidator) -> list[Violation]:
    """What is wrong with one event as sent; what only the typed decoder minds, it minds as a whole.

    That is a field given twice, the first time badly, or a number past every float.
    """
    try:
        rules.decode(b"[%b]" % bytes(member))
    except msgspec.DecodeError:
        pass
    else:
        return []
    try:
        return rules.violations(msgspec.json.decode(member)) or [Violation("wrong_format", "/")]
    except msgspec.ValidationError:
        return [Violation("wrong_format", "/")]


def _counted(events: list[Any]) -> dict[str, int]:
    """How many there are of each category."""
    kinds = list(map(type, events))
    return {_category(kind): kinds.count(kind) for kind in set(kinds)}


@cache
def _category(kind: Any) -> str:
    """The category whose events are of the type *kind*."""
    category: str = kind.__struct_config__.tag
    return category


def _is_text(body: bytes) -> bool:
    """Whether *body* is UTF-8; the decoder looks only at the fields it knows."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _may_be_deep(body: bytes, events: int) -> bool:
    """Whether *body*, an array of so many objects, has openings enough to be nested too deeply."""
    opened_within = body.count(b"[") + body.count(b"{") - 1 - events
    return 2 + opened_within > JSON_DEPTH


def _depth(body: bytes) -> int:
    """How deep the arrays and objects of *body* are nested, where it is JSON.

    Raises:
        TooLarge: there is more to look at than `VALUES`.
    """
    values = body.count(b",")
    if b"\\" in body:
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # an escaped quote ends no string
    marks = body.translate(None, delete=_REST).replace(b'""', b"")
    if b'"' in marks:
        marks = re.sub(rb'"[^"]*"', b"", marks)
    depth = max(accumulate(_STEP.get(mark, 0) for mark in marks[: 2 * VALUES]), default=0)
    if depth <= JSON_DEPTH and max(values, len(marks) // 2) > VALUES:
        raise BodyTooLarge(f"the body holds more than {VALUES} values")
    return depth
