"""Admission: the good and the bad events of a body, and the violations of an init.

Wire 1.8, Rejected events; Wire 1.11, Version 2 init.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.http.request_body import BodyTooLarge, UndecodableBody
from gamelens.wire.event_validator import LENIENT, EventValidator, RejectedEvent
from gamelens.wire.limits import JSON_DEPTH
from gamelens.wire.remote_config import InitValidator
from gamelens.wire.rule_checking import Violation

REST_SDK = "rest api v2"
VALUES: Final = 1 << 20
"""Most values of a bad or nested body (Wire 1.6, Body limits).

16 MB of the shortest events have three quarters of it.
"""
BAD_EVENTS: Final = 10_000
"""Most bad events of one body (Wire 1.6, Body limits). The answer repeats each of them."""
_ESCAPE: Final = re.compile(  # of a JSON string; the group is half of a surrogate pair
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_REPLACEMENT: Final = rb"\ufffd"  # as long as the escape that it replaces
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANK: Final = b" \t\r\n,"
_STRUCTURE: Final = b'"[]{}'
_REST: Final = bytes(set(range(256)) - set(_STRUCTURE))
_STEP: Final = {ord(mark): step for mark, step in (("[", 1), ("{", 1), ("]", -1), ("}", -1))}


class AdmissionResult(msgspec.Struct, frozen=True):
    """The good events of a body as one JSON array, and the bad ones in batch order.

    The array is the body as sent where all are good. *is_custom* tells whether every event is from a custom
    integration, `rest api v2`; *categories* counts the good events by category; *times* has the `client_ts` of each.
    """

    events: int
    body: bytes
    rejected: list[RejectedEvent]
    is_custom: bool
    categories: Mapping[str, int] = {}
    times: Sequence[int | None] = ()


class BadInit(Refused):
    """An init body that breaks rules, with its violations."""

    def __init__(self, errors: list[Violation]) -> None:
        self.errors = errors
        super().__init__(errors)


def admit(body: bytes, rules: EventValidator = LENIENT) -> AdmissionResult:
    """Judge every event of *body*, a JSON array, by *rules*.

    Raises:
        UndecodableBody: not JSON, not an array, or nested too deeply.
        BodyTooLarge: more than `BAD_EVENTS` events are bad, or there are more than `VALUES` values.
    """
    if not _is_text(body):
        raise UndecodableBody("wrong_format")
    try:
        events = rules.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _judge(body, rules)
    opened_within = body.count(b"[") + body.count(b"{") - 1 - len(events)  # the events are objects in one array
    if 2 + opened_within > JSON_DEPTH and _depth(body) > JSON_DEPTH:
        raise UndecodableBody("wrong_format")
    is_custom = {event.sdk_version for event in events} == {REST_SDK}
    return AdmissionResult(len(events), body, [], is_custom, _count_by_category(events), _times(events))


def admit_init(body: bytes, rules: InitValidator) -> str | None:
    """Return the `user_id` in the *body* of an init, or None without one.

    Raises:
        UndecodableBody: not JSON, or nested too deeply.
        BodyTooLarge: a bad body has more than `VALUES` values.
        BadInit: the body breaks *rules*.
    """
    if not _is_text(body):
        raise UndecodableBody("wrong_format")
    try:
        return rules.user_id(body)
    except (msgspec.DecodeError, RecursionError):
        if _depth(body) > JSON_DEPTH or next(lone_surrogates(body), None) is not None:
            raise UndecodableBody("wrong_format") from None
    try:
        errors = broken_rules(body, rules)
    except msgspec.DecodeError:
        raise UndecodableBody("wrong_format") from None
    raise BadInit(errors)


def lone_surrogates(text: bytes) -> Iterator[int]:
    """Yield the position of each escape in the JSON *text* that is half of a surrogate pair, as `\\ud800` alone.

    RFC 8259 allows it (8.2), but no Unicode text can hold it.
    """
    return (escape.start() for escape in _ESCAPE.finditer(text) if escape[1])


def _judge(body: bytes, rules: EventValidator) -> AdmissionResult:
    """Judge one event at a time: the slow path, for a body that is not all good."""
    if _depth(body) > JSON_DEPTH:
        raise UndecodableBody("wrong_format")
    violations: list[list[Violation]] = []
    bad = 0
    try:
        members = _members(body)
        for member in members:
            try:
                rules.decode(b"[%b]" % bytes(member))
                violations.append([])
            except msgspec.DecodeError:
                violations.append(broken_rules(member, rules))
                bad += 1
            if bad > BAD_EVENTS:
                raise BodyTooLarge(f"more than {BAD_EVENTS} events of the body are bad")
    except msgspec.ValidationError:
        raise UndecodableBody("wrong_type") from None
    except msgspec.DecodeError:
        raise UndecodableBody("wrong_format") from None
    judged = list(zip(members, violations, strict=True))
    good_body = b"[%b]" % b",".join(bytes(member) for member, broken in judged if not broken)
    good = rules.decode(good_body)
    return AdmissionResult(
        events=len(members) - bad,
        body=good_body,
        rejected=[RejectedEvent(event=member.copy(), errors=broken) for member, broken in judged if broken],
        is_custom=False,
        categories=_count_by_category(good),
        times=_times(good),
    )


def _members(body: bytes) -> list[msgspec.Raw]:
    """Return the members of *body*, a JSON array, byte for byte. A lone surrogate costs the others nothing.

    The decoder takes it for a fault of the whole. It is found again in the member where it is.
    """
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        whole = _without_lone_surrogates(body)
        if whole == body:
            raise
    members: list[msgspec.Raw] = []
    end = body.index(b"[") + 1
    for member in msgspec.json.decode(whole, type=list[msgspec.Raw]):
        begin = end
        while body[begin] in _BLANK:
            begin += 1
        end = begin + len(memoryview(member))
        members.append(msgspec.Raw(body[begin:end]))
    return members


def _without_lone_surrogates(text: bytes) -> bytes:
    """Return the JSON *text* of the same length with replacement characters for lone surrogates."""
    whole = bytearray(text)
    for place in lone_surrogates(text):
        whole[place : place + len(_REPLACEMENT)] = _REPLACEMENT
    return bytes(whole)


def broken_rules(bad: msgspec.Raw | bytes, rules: EventValidator | InitValidator) -> list[Violation]:
    """Return the violations of a bad event or init as sent.

    Some faults are seen by the typed decoder only: a field given twice with a bad first copy, or a number past every
    float. They are `wrong_format` of the whole. A lone surrogate is `wrong_format` of its field.
    """
    text, halves = bytes(bad), []
    if next(lone_surrogates(text), None) is not None:
        halves = _violations_of_halves(json.loads(text))
        text = _without_lone_surrogates(text)
    try:
        return halves + rules.violations(msgspec.json.decode(text)) or [Violation("wrong_format", "/")]
    except msgspec.ValidationError:
        return halves or [Violation("wrong_format", "/")]


def _violations_of_halves(event: Any) -> list[Violation]:
    """Return a violation for each field of *event* with a lone surrogate, or for the whole if a name has one."""
    fields = event.items() if isinstance(event, Mapping) else [("", event)]
    found = [name for name, value in fields if _SURROGATE.search(json.dumps([name, value], ensure_ascii=False))]
    return [Violation("wrong_format", "/" if _SURROGATE.search(name) else f"/{name}") for name in found]


def _count_by_category(events: list[Any]) -> dict[str, int]:
    """Return the number of events of each category."""
    kinds = list(map(type, events))
    return {_category_of_type(kind): kinds.count(kind) for kind in set(kinds)}


def _times(events: list[Any]) -> list[int | None]:
    """Return the `client_ts` of each event, None where there is none."""
    return [event.client_ts if isinstance(event.client_ts, int) else None for event in events]


@cache
def _category_of_type(kind: Any) -> str:
    """Return the category whose events are of type *kind*."""
    category: str = kind.__struct_config__.tag
    return category


def _is_text(body: bytes) -> bool:
    """Return whether *body* is UTF-8. The decoder checks only the fields that it knows."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _depth(body: bytes) -> int:
    """Return how deep arrays and objects of *body* are nested, assuming that it is JSON.

    Raises:
        BodyTooLarge: there are more than `VALUES` values.
    """
    values = body.count(b",")
    if b"\\" in body:
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # an escaped quote does not end a string
    marks = body.translate(None, delete=_REST).replace(b'""', b"")
    if b'"' in marks:
        marks = re.sub(rb'"[^"]*"', b"", marks)
    depth = max(accumulate(_STEP.get(mark, 0) for mark in marks[: 2 * VALUES]), default=0)
    if depth <= JSON_DEPTH and max(values, len(marks) // 2) > VALUES:
        raise BodyTooLarge(f"the body holds more than {VALUES} values")
    return depth
