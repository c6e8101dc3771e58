"""The catalogue of defects in events, bodies and requests, with the errors due.

The errors are written down by hand (Wire 1.9, Error types) and never taken from the rules that validate events, so that
a wrong rule shows up as a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gamelens.errors import suggests_names
from gamelens.simulator.events.event_json import Event
from gamelens.wire.limits import BODY_BYTES

Error = tuple[str, str]
"""An error_type and its path (Wire 1.8, Rejected events)."""


class EventDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for an event to be malformed."""

    name: str  # the label in the ledger
    errors: tuple[Error, ...]  # the errors the collector must report, in order
    category: str | None = None  # the only category that can have it, or None for all
    replaced: dict[str, Any] = {}  # fields with a bad value
    removed: tuple[str, ...] = ()  # fields left out
    replacement: Any = msgspec.UNSET  # the JSON value sent in place of the whole event, if set

    def apply(self, event: dict[str, Any]) -> Any:
        """Return *event* with this defect."""
        if self.replacement is not msgspec.UNSET:
            return self.replacement
        return {name: value for name, value in (event | self.replaced).items() if name not in self.removed}


def _bad_value(name: str, error_type: str, field: str, value: Any, category: str | None = None) -> EventDefect:
    """Build the defect of one field with a bad value."""
    return EventDefect(name=name, errors=((error_type, f"/{field}"),), replaced={field: value}, category=category)


def _missing(name: str, field: str, category: str | None = None) -> EventDefect:
    """Build the defect of one missing field."""
    errors = (("missing_required_property", f"/{field}"),)
    return EventDefect(name=name, errors=errors, removed=(field,), category=category)


EVENT_DEFECTS: Final = (
    _missing("no user", "user_id"),
    _missing("no session", "session_id"),
    _missing("no platform", "platform"),
    _missing("no category", "category"),
    _bad_value("session is a number", "wrong_type", "session_id", 1718),
    _bad_value("time is text", "wrong_type", "client_ts", "2026-11-20T10:00:00Z"),
    _bad_value("time has a fraction", "wrong_type", "client_ts", 1795000000.5),
    _bad_value("session is null", "wrong_type", "session_id", None),
    _bad_value("user is null", "wrong_type", "user_id", None),
    _bad_value("user is empty", "wrong_length", "user_id", ""),
    _bad_value("old version", "not_in_range", "v", 1),
    _bad_value("session counted from 0", "not_in_range", "session_num", 0),
    _bad_value("unknown category", "not_in_enum", "category", "purchase"),
    _bad_value("unknown connection", "not_in_enum", "connection_type", "carrier pigeon"),
    _bad_value("device too long", "wrong_length", "device", "x" * 33),
    _bad_value("country of three letters", "no_match", "country_code", "USA"),
    _bad_value("dimension too long", "wrong_length", "custom_01", "y" * 33),
    EventDefect(
        name="two faults",
        replaced={"session_num": "one"},
        removed=("os_version",),
        errors=(("missing_required_property", "/os_version"), ("wrong_type", "/session_num")),
    ),
    EventDefect(name="a number", errors=(("wrong_type", "/"),), replacement=17),
    EventDefect(name="null", errors=(("wrong_type", "/"),), replacement=None),
    EventDefect(name="an array", errors=(("wrong_type", "/"),), replacement=["user"]),
    _bad_value("negative price", "not_in_range", "amount", -99, "business"),
    _bad_value("price in dollars", "wrong_type", "amount", 4.99, "business"),
    _bad_value("unknown currency", "not_in_enum", "currency", "XBT", "business"),
    _bad_value("item without a type", "no_match", "event_id", "gems", "business"),
    _bad_value("purchase number 0", "not_in_range", "transaction_num", 0, "business"),
    _bad_value("six parts", "no_match", "event_id", "a:b:c:d:e:f", "design"),
    _bad_value("value is text", "wrong_type", "value", "many", "design"),
    _bad_value("unknown status", "no_match", "event_id", "Begin:world01", "progression"),
    _bad_value("attempt is text", "wrong_type", "attempt_num", "third", "progression"),
    _bad_value("neither source nor sink", "no_match", "event_id", "Gift:coins:shop:box", "resource"),
    _missing("no amount", "amount", "resource"),
    _bad_value("unknown ad action", "not_in_enum", "ad_action", "watched", "ads"),
    _bad_value("unknown ad type", "not_in_enum", "ad_type", "hologram", "ads"),
    _bad_value("ad network too long", "wrong_length", "ad_sdk_name", "z" * 33, "ads"),
    _bad_value("unknown mediation", "not_in_enum", "ad_network_name", "nobody", "impression"),
    _bad_value("version with letters", "no_match", "ad_network_version", "v12", "impression"),
    _missing("no impression", "impression_data", "impression"),
    _bad_value("unknown severity", "not_in_enum", "severity", "fatal", "error"),
    _bad_value("message too long", "wrong_length", "message", "m" * 8193, "error"),
    _bad_value("negative length", "not_in_range", "length", -5, "session_end"),
    _bad_value("length is text", "wrong_type", "length", "5 minutes", "session_end"),
)
"""Every way for an event to be malformed. The first 21 apply to events of any category."""


class EventQuirk(msgspec.Struct, frozen=True, kw_only=True):
    """A way for an event to be odd and still be accepted."""

    name: str  # the label in the ledger
    apply: Callable[[Event, int, bytes], Event]  # returns the event with the quirk, given its client_ts and event_uuid
    has_time: bool  # whether the event keeps a usable time. If not, it counts at the time of its arrival


def time_fragment(client_ts: int | None, event_uuid: bytes | None) -> bytes:
    """Return the last fragment of an event: its time and its id, where there are any."""
    fragment = b"" if client_ts is None else b',"client_ts":%d' % client_ts
    return fragment + (b"" if event_uuid is None else b',"event_uuid":"%b"' % event_uuid) + b"},"


def _with_time(client_ts: int | None) -> Callable[[Event, int, bytes], Event]:
    """Return a quirk that sets this client_ts."""
    return lambda event, _, event_uuid: (event[0], event[1], time_fragment(client_ts, event_uuid))


def _with_lower_case_country(event: Event, client_ts: int, event_uuid: bytes) -> Event:
    head = re.sub(rb'("country_code":)("[A-Z]{2}")', lambda found: found[1] + found[2].lower(), event[1])
    return event[0], head, time_fragment(client_ts, event_uuid)


def _with_unknown_field(event: Event, client_ts: int, event_uuid: bytes) -> Event:
    return event[0], event[1] + b',"mood":{"of":["the","player"]}', time_fragment(client_ts, event_uuid)


EVENT_QUIRKS: Final = (
    EventQuirk(name="no time", apply=_with_time(None), has_time=False),
    EventQuirk(name="time before 1970", apply=_with_time(-86_400), has_time=False),
    EventQuirk(name="time in milliseconds", apply=_with_time(1_795_000_000_000), has_time=False),
    EventQuirk(name="future time", apply=_with_time(4_102_444_800), has_time=False),
    EventQuirk(name="country in lower case", apply=_with_lower_case_country, has_time=True),
    EventQuirk(name="an undocumented field", apply=_with_unknown_field, has_time=True),
)
"""Every way for an event to be odd.

The collector dates events without a usable time by their arrival (Wire 4.1, Event time).
"""


class BodyDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for a body to be unreadable as a whole.

    The collector stores none of its events and reports *error_type* at `/`.
    """

    name: str
    error_type: str
    apply: Callable[[bytes], bytes]


BODY_DEFECTS: Final = (
    BodyDefect(name="body cut short", error_type="wrong_format", apply=lambda body: body[: len(body) * 2 // 3]),
    BodyDefect(name="body is not an array", error_type="wrong_type", apply=lambda body: b'{"events":%b}' % body),
    BodyDefect(name="body is not UTF-8", error_type="wrong_format", apply=lambda body: body[:-1] + b',"\xff"]'),
    BodyDefect(name="body is too deep", error_type="wrong_format", apply=lambda body: b"[" * 40 + body + b"]" * 40),
    BodyDefect(name="body has two arrays", error_type="wrong_format", apply=lambda body: body + body),
)
"""Every way for a body to be unreadable."""


@suggests_names
class RequestDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for a request to be refused before its events are validated.

    The collector stores none of its events, even if all are good.
    """

    name: str  # the label in the ledger
    status: int  # the status the collector must answer
    error_type: str | None = None  # the error it reports at `/`, with status 400 only
    is_gzipped: bool = True
    is_cut: bool = False
    is_signed: bool = True  # whether the signature covers the body as sent; if not, it covers the body before gzip

    @property
    def errors(self) -> str:
        """The answer of the collector, as the ledger records it."""
        return f"{self.error_type} /" if self.error_type else str(self.status)


REQUEST_DEFECTS: Final = (
    RequestDefect(name="signature of the unpacked body", status=401, is_signed=False),
    RequestDefect(name="body over 1 MB", status=413, is_gzipped=False),
    RequestDefect(name="gzip cut short", status=400, error_type="wrong_format", is_cut=True),
)
"""Every way for a request to be refused as a whole (Wire 1.10, Collector statuses)."""


def enlarge_body(body: bytes) -> bytes:
    """Return a JSON array of the events of *body*, repeated beyond the limit of a request."""
    return b"[%b]" % b",".join([body[1:-1]] * (BODY_BYTES // (len(body) - 1) + 1))


BOT_REPEATS: Final = 20
"""Number of times a bot plays the same session."""
