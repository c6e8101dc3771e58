"""Files of events: read, checked by the rules of events, and submitted.

A file is a JSON array of events, one event, or JSON lines, gzipped or not. It is read whole before anything is sent,
and each event is sent as it is written. Every fault has the line and the number of its event.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_address
from itertools import islice
from typing import Any, Final

import msgspec

from gamelens.client.connection.transport import ATTEMPTS
from gamelens.client.events.batch_sender import submit_in_parts
from gamelens.client.events.collector_client import CollectorClient, SubmitResult
from gamelens.client.events.event_validation import violation_text
from gamelens.client.events.outbox import BATCH_BYTES, BATCH_EVENTS
from gamelens.errors import BadQuery, GamelensError, ServiceError
from gamelens.wire.event_validator import VALIDATORS, Validation
from gamelens.wire.limits import MIB
from gamelens.wire.rule_checking import Violation

MOST_BYTES: Final = 256 * MIB
"""Bytes that a file may have, packed and unpacked."""
_MOST_EVENTS: Final = 1_000_000
_MOST_FIELDS: Final = 10_000_000  # whatever they are of: JSON takes up to 70 bytes of memory for a comma
_SPLIT: Final = "split it into several files"
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = re.compile(rb"[ \t\r\n,]*")
_POSITION: Final = re.compile(r"\(byte (\d+)\)")
_JSON_TYPES: Final = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


class FileEvent(msgspec.Struct, frozen=True):
    """One event of a file: its number, the line it begins on, both from 1, and its JSON as it is written.

    *forwarded_for* is the address of its player, if the file has one.
    """

    number: int
    line: int
    body: bytes
    forwarded_for: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The decoded event."""
        return msgspec.json.decode(self.body, type=dict[str, Any])


class EventFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of one event, or of the whole file if the file cannot be read.

    Line and event are counted from 1. *error_type* and *path* are named as a collector names them (Wire 1.9, Error
    types).
    """

    line: int | None = None
    event: int | None = None
    error_type: str = "wrong_format"
    path: str = "/"
    text: str


class EventFile(msgspec.Struct, frozen=True):
    """The content of a file: its events, and the faults of those that cannot be read."""

    events: list[FileEvent]
    faults: list[EventFault] = []


class SubmissionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of submitting events.

    *not_sent* events have no answer, because of *error* or because their init said that they are not to be sent, and
    *first_not_sent* is the first of them in the file. Those of the failed request may have been collected.
    """

    collected: int = 0
    rejected: int = 0
    not_sent: int = 0
    first_not_sent: FileEvent | None = None
    faults: list[EventFault] = []
    error: GamelensError | None = None


def read_events(data: bytes) -> EventFile:
    """Read the events of a file with the content *data*, which takes at most a few times `MOST_BYTES` of memory."""
    text, unpacked = data, ""
    if data.startswith(_GZIP):
        unpacked = " unpacked"
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                text = packed.read(MOST_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            return _unreadable(f"is damaged or incomplete: the gzip cannot be unpacked ({error})")
    if len(text) > MOST_BYTES:
        return _unreadable(f"has more than {MOST_BYTES // MIB} MB{unpacked}: {_SPLIT}")
    if text.count(b",") > _MOST_FIELDS:
        return _unreadable(f"has more than {_MOST_FIELDS:,} fields: {_SPLIT}")
    text = text.removeprefix(_BOM)
    if (position := _not_utf8(text)) is not None:
        return _unreadable("is not UTF-8 text: save it as UTF-8", line=text.count(b"\n", 0, position) + 1)
    return _array_events(text) if text.lstrip().startswith(b"[") else _line_events(text)


def check_events(events: Iterable[FileEvent], validation: Validation) -> list[EventFault]:
    """Return the broken rules of *events*.

    Wire 1.8, Rejected events; Wire 3.7, Strict validation.
    """
    validator = VALIDATORS[validation]
    return [
        _fault(event, content, violation)
        for event in events
        for content in [event.content]
        for violation in validator.violations(content)
    ]


def take_addresses(events: Iterable[FileEvent], field: str) -> EventFile:
    """Return *events* without *field*, the address of the player, which each of them may have.

    One that is no IP address is a fault of its event. All other fields are as they are written.
    """
    taken, faults = [], []
    for event in events:
        fields = msgspec.json.decode(event.body, type=dict[str, msgspec.Raw])
        address = msgspec.json.decode(fields.pop(field, msgspec.Raw(b"null")))
        try:
            forwarded_for = None if address in (None, "") else str(ip_address(address.strip()))
        except (AttributeError, ValueError):
            rule = f"{field} = {address!r} is not an IP address: name another field with --forwarded-for"
            faults.append(EventFault(line=event.line, event=event.number, path=f"/{field}", text=rule))
        else:
            taken.append(FileEvent(event.number, event.line, msgspec.json.encode(fields), forwarded_for))
    return EventFile(taken, faults)


async def submit_events(
    collector: CollectorClient, events: Sequence[FileEvent], *, on_batch: Callable[[int], object] = lambda _: None
) -> SubmissionReport:
    """Submit *events* in their order, and return what became of them.

    Where events have the addresses of their players, a request holds the events of one player only (Wire 1.16,
    Submitting for players). The version 2 init is asked first, for the file or for each player: if it says that
    nothing is to be sent, that is a fault. A failed request ends it: the report has its error. *on_batch* is called
    with the number of events that were answered.
    """
    unanswered = {event.number: event for event in events}
    rejected = 0
    faults: list[EventFault] = []
    error: GamelensError | None = None
    try:
        for bucket in _buckets(events):
            if not await _is_enabled(collector, bucket):
                faults.append(_disabled(bucket))
                continue
            for batch in _batches(bucket):
                address = batch[0].forwarded_for
                async for part, outcome in submit_in_parts(collector, batch, forwarded_for=address, attempts=ATTEMPTS):
                    faults += _faults_of(part, outcome)
                    rejected += len(part) if isinstance(outcome, str) else min(len(part), len(outcome.rejected))
                    for event in part:
                        del unanswered[event.number]
                    on_batch(len(part))
    except GamelensError as failure:
        error = failure
    return SubmissionReport(
        collected=len(events) - len(unanswered) - rejected,
        rejected=rejected,
        not_sent=len(unanswered),
        first_not_sent=next(iter(unanswered.values()), None),
        faults=faults,
        error=error,
    )


def _not_utf8(text: bytes) -> int | None:
    """Return the position of the first byte that is not UTF-8. As text, all of it would take four times its memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), MIB):
        begun = len(decoder.getstate()[0])
        try:
            decoder.decode(text[start : start + MIB], final=start + MIB >= len(text))
        except UnicodeDecodeError as error:
            return start - begun + error.start
    return None


def _buckets(events: Sequence[FileEvent]) -> list[list[FileEvent]]:
    """Return *events* by player and address, in the order of their first ones, or all in one without an address."""
    if all(event.forwarded_for is None for event in events):
        return [[*events]] if events else []
    buckets: dict[tuple[object, str | None], list[FileEvent]] = {}
    for event in events:
        buckets.setdefault((str(event.content.get("user_id")), event.forwarded_for), []).append(event)
    return [*buckets.values()]


async def _is_enabled(collector: CollectorClient, bucket: Sequence[FileEvent]) -> bool:
    """Ask the version 2 init whether the events of *bucket* may be sent. Without a usable answer they may.

    Wire 1.15, Client queue.
    """
    texts = {name: said for name, said in bucket[0].content.items() if isinstance(said, str)}
    try:
        status = await collector.init_v2(
            user_id=texts.get("user_id", ""),
            platform=texts.get("platform", ""),
            os_version=texts.get("os_version", ""),
            build=texts.get("build"),
            forwarded_for=bucket[0].forwarded_for,
        )
    except (BadQuery, ServiceError):
        return True
    return status.enabled is not False


def _disabled(bucket: Sequence[FileEvent]) -> EventFault:
    """Return the fault of events that the init keeps from being sent."""
    first = bucket[0]
    others = f", and neither are {len(bucket) - 1:,} others" if len(bucket) > 1 else ""
    return EventFault(
        line=first.line,
        event=first.number,
        error_type="disabled",
        text=f"is not sent{others}: the init answers enabled = false",
    )


def _array_events(text: bytes) -> EventFile:
    """Read the events of a JSON array."""
    try:
        members = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        return _unreadable(*_syntax_error(text, error))
    if len(members) > _MOST_EVENTS:
        return _unreadable(f"has more than {_MOST_EVENTS:,} events: {_SPLIT}")
    place, line = text.index(b"[") + 1, 1 + text.count(b"\n", 0, text.index(b"["))
    found: list[FileEvent] = []
    for number, member in enumerate(members, 1):
        body, begin = bytes(member), place
        place += len(_BLANK.match(text, place)[0])  # type: ignore[index]  # it matches everywhere
        line += text.count(b"\n", begin, place)
        found.append(FileEvent(number, line, body))
        line += body.count(b"\n")
        place += len(body)
    return _readable(found)


def _line_events(text: bytes) -> EventFile:
    """Read the events of JSON lines, or a single event over several lines."""
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        if text.count(b"\n") > _MOST_FIELDS:
            return _unreadable(f"has more than {_MOST_FIELDS:,} lines: {_SPLIT}")
        stripped = enumerate(map(bytes.strip, io.BytesIO(text)), 1)
        lines = list(islice(((line, body) for line, body in stripped if body), _MOST_EVENTS + 1))
        if len(lines) > _MOST_EVENTS:
            return _unreadable(f"has more than {_MOST_EVENTS:,} events: {_SPLIT}")
    else:
        blank = text[: len(text) - len(text.lstrip())]
        lines = [(blank.count(b"\n") + 1, text.strip())]
    return _readable([FileEvent(number, line, body) for number, (line, body) in enumerate(lines, 1)])


def _readable(found: Sequence[FileEvent]) -> EventFile:
    """Return the events of *found* that are JSON objects, and the faults of the others."""
    events, faults = [], []
    for event in found:
        try:
            content = msgspec.json.decode(event.body)
        except (msgspec.DecodeError, RecursionError) as error:
            text, lines_on = _syntax_error(event.body, error)
            faults.append(EventFault(line=event.line + lines_on - 1, event=event.number, text=text))
        else:
            if isinstance(content, dict):
                events.append(event)
            else:
                text = f"is {_JSON_TYPES.get(type(content), 'null')}, but an event is a JSON object"
                faults.append(EventFault(line=event.line, event=event.number, error_type="wrong_type", text=text))
    return EventFile(events, faults)


def _unreadable(text: str, line: int | None = None) -> EventFile:
    return EventFile([], [EventFault(line=line, text=text)])


def _syntax_error(text: bytes, error: Exception) -> tuple[str, int]:
    """Return in words why *text* is not JSON, and on which of its lines."""
    try:
        json.loads(text)
    except json.JSONDecodeError as standard:  # it knows the line, and says more
        return f"is not JSON, at column {standard.colno}: {standard.msg}", standard.lineno
    except RecursionError:
        return "is not an event: nested too deeply", 1
    position = _POSITION.search(str(error))
    line = text.count(b"\n", 0, int(position[1])) + 1 if position else 1
    return f"is not JSON: {error}", line


def _batches(events: Sequence[FileEvent]) -> Iterator[list[FileEvent]]:
    """Yield *events* in their order, as many at a time as fit one request.

    Wire 1.15, Client queue.
    """
    batch: list[FileEvent] = []
    size = 0
    for event in events:
        if batch and (len(batch) == BATCH_EVENTS or size + len(event.body) + 1 > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += len(event.body) + 1
    if batch:
        yield batch


def _faults_of(part: Sequence[FileEvent], outcome: SubmitResult | str) -> Iterator[EventFault]:
    """Yield why events of *part* were not collected."""
    if isinstance(outcome, str):
        for event in part:
            yield EventFault(line=event.line, event=event.number, text=f"is not collected: {outcome}")
        return
    unmatched = iter(part)
    for rejected in outcome.rejected:
        # The next event that equals the rejected one, as rejections have batch order.
        same = (event for events in (unmatched, part) for event in events if event.content == rejected.event)
        match = part[0] if len(part) == 1 else next(same, None)
        for violation in rejected.errors:
            yield _fault(match, rejected.event, violation)


def _fault(event: FileEvent | None, content: object, violation: Violation) -> EventFault:
    return EventFault(
        line=event.line if event is not None else None,
        event=event.number if event is not None else None,
        error_type=violation.error_type,
        path=violation.path,
        text=violation_text(content, violation),
    )
