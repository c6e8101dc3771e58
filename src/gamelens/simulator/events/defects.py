"""What is wrong with events, bodies and requests on purpose, and what the collector owes each: a typed catalogue.

A flaw says which faults its event has, in the collector's words (public-facts 1.7), a break of a body or a request what
is answered to all of it. That is written down here by hand, never asked of the rules that judge it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gamelens.simulator.events.event_json import Event
from gamelens.wire.limits import BODY_BYTES

Error = tuple[str, str]
"""An error_type and its path."""


class EventDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for an event to be malformed: fields that are *given* badly or left out (*without*); its *errors*.

    Only events of *category* can have it, where there is one; *instead* is what stands there in place of an event.
    """

    name: str
    errors: tuple[Error, ...]
    category: str | None = None
    given: dict[str, Any] = {}
    without: tuple[str, ...] = ()
    instead: Any = msgspec.UNSET

    def spoil(self, event: dict[str, Any]) -> Any:
        """*event* with this flaw."""
        if self.instead is not msgspec.UNSET:
            return self.instead
        return {name: value for name, value in (event | self.given).items() if name not in self.without}


def _bad(name: str, error_type: str, field: str, value: Any, category: str | None = None) -> EventDefect:
    """One field with a bad value."""
    return EventDefect(name=name, errors=((error_type, f"/{field}"),), given={field: value}, category=category)


def _missing(name: str, field: str, category: str | None = None) -> EventDefect:
    errors = (("missing_required_property", f"/{field}"),)
    return EventDefect(name=name, errors=errors, without=(field,), category=category)


FLAWS: Final = (
    _missing("no user", "user_id"),
    _missing("no session", "session_id"),
    _missing("no platform", "platform"),
    _missing("no category", "category"),
    _bad("session is a number", "wrong_type", "session_id", 1718),
    _bad("time is text", "wrong_type", "client_ts", "2026-11-20T10:00:00Z"),
    _bad("time has a fraction", "wrong_type", "client_ts", 1795000000.5),
    _bad("time is null", "wrong_type", "client_ts", None),
    _bad("user is null", "wrong_type", "user_id", None),
    _bad("user is empty", "wrong_length", "user_id", ""),
    _bad("old version", "not_in_range", "v", 1),
    _bad("session counted from 0", "not_in_range", "session_num", 0),
    _bad("unknown category", "not_in_enum", "category", "purchase"),
    _bad("unknown connection", "not_in_enum", "connection_type", "carrier pigeon"),
    _bad("device too long", "wrong_length", "device", "x" * 33),
    _bad("country of three letters", "no_match", "country_code", "USA"),
    _bad("dimension too long", "wrong_length", "custom_01", "y" * 33),
    EventDefect(
        name="two faults",
        given={"session_num": "one"},
        without=("os_version",),
        errors=(("missing_required_property", "/os_version"), ("wrong_type", "/session_num")),
    ),
    EventDefect(name="a number", errors=(("wrong_type", "/"),), instead=17),
    EventDefect(name="null", errors=(("wrong_type", "/"),), instead=None),
    EventDefect(name="an array", errors=(("wrong_type", "/"),), instead=["user"]),
    _bad("negative price", "not_in_range", "amount", -99, "business"),
    _bad("price in dollars", "wrong_type", "amount", 4.99, "business"),
    _bad("unknown currency", "not_in_enum", "currency", "XBT", "business"),
    _bad("item without a type", "no_match", "event_id", "gems", "business"),
    _bad("purchase number 0", "not_in_range", "transaction_num", 0, "business"),
    _bad("six parts", "no_match", "event_id", "a:b:c:d:e:f", "design"),
    _bad("value is text", "wrong_type", "value", "many", "design"),
    _bad("unknown status", "no_match", "event_id", "Begin:world01", "progression"),
    _bad("attempt is text", "wrong_type", "attempt_num", "third", "progression"),
    _bad("neither source nor sink", "no_match", "event_id", "Gift:coins:shop:box", "resource"),
    _missing("no amount", "amount", "resource"),
    _bad("unknown ad action", "not_in_enum", "ad_action", "watched", "ads"),
    _bad("unknown ad type", "not_in_enum", "ad_type", "hologram", "ads"),
    _bad("ad network too long", "wrong_length", "ad_sdk_name", "z" * 33, "ads"),
    _bad("unknown mediation", "not_in_enum", "ad_network_name", "nobody", "impression"),
    _bad("version with letters", "no_match", "ad_network_version", "v12", "impression"),
    _missing("no impression", "impression_data", "impression"),
    _bad("unknown severity", "not_in_enum", "severity", "fatal", "error"),
    _bad("message too long", "wrong_length", "message", "m" * 8193, "error"),
    _bad("negative length", "not_in_range", "length", -5, "session_end"),
    _bad("length is text", "wrong_type", "length", "5 minutes", "session_end"),
)
"""Every way to be malformed; the first 21 are those of any event."""


class EventQuirk(msgspec.Struct, frozen=True, kw_only=True):
    """A way to be odd and yet collected; where not *has_time*, an event is from when it arrives."""

    name: str
    bend: Callable[[Event, int, bytes], Event]
    has_time: bool


def stamp(client_ts: int | None, event_uuid: bytes | None) -> bytes:
    """The end of an event that tells this time and this id."""
    told = b"" if client_ts is None else b',"client_ts":%d' % client_ts
    return told + (b"" if event_uuid is None else b',"event_uuid":"%b"' % event_uuid) + b"},"


def _timed(client_ts: int | None) -> Callable[[Event, int, bytes], Event]:
    """The same event with this client_ts."""
    return lambda event, _, event_uuid: (event[0], event[1], stamp(client_ts, event_uuid))


def _lower_country(event: Event, client_ts: int, event_uuid: bytes) -> Event:
    head = re.sub(rb'("country_code":)("[A-Z]{2}")', lambda found: found[1] + found[2].lower(), event[1])
    return event[0], head, stamp(client_ts, event_uuid)


def _unheard_of(event: Event, client_ts: int, event_uuid: bytes) -> Event:
    return event[0], event[1] + b',"mood":{"of":["the","player"]}', stamp(client_ts, event_uuid)


ODDITIES: Final = (
    EventQuirk(name="no time", bend=_timed(None), has_time=False),
    EventQuirk(name="time before 1970", bend=_timed(-86_400), has_time=False),
    EventQuirk(name="time in milliseconds", bend=_timed(1_795_000_000_000), has_time=False),
    EventQuirk(name="time to come", bend=_timed(4_102_444_800), has_time=False),
    EventQuirk(name="country in lower case", bend=_lower_country, has_time=True),
    EventQuirk(name="a field nobody knows", bend=_unheard_of, has_time=True),
)
"""Every way to be odd: the collector takes what has no usable time as being from now (metrics, event time)."""


class BodyDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for a whole body to be unreadable, of which nothing is kept; *error_type* is said of `/`."""

    name: str
    error_type: str
    spoil: Callable[[bytes], bytes]


BREAKS: Final = (
    BodyDefect(name="body cut short", error_type="wrong_format", spoil=lambda body: body[: len(body) * 2 // 3]),
    BodyDefect(name="body is no array", error_type="wrong_type", spoil=lambda body: b'{"events":%b}' % body),
    BodyDefect(name="body is not UTF-8", error_type="wrong_format", spoil=lambda body: body[:-1] + b',"\xff"]'),
    BodyDefect(name="body is too deep", error_type="wrong_format", spoil=lambda body: b"[" * 40 + body + b"]" * 40),
    BodyDefect(name="body has two arrays", error_type="wrong_format", spoil=lambda body: body + body),
)
"""Every way for a body to be unreadable."""


class RequestDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A way for a request to be refused before anybody looks at its events, all of which may be good; none is kept.

    *status* is what the collector owes it and *error_type* what it says of `/`, where it says that (400). The body
    *is_gzipped* or not, *is_cut* or whole, and *is_signed* as it travels or, by mistake, as it was before gzip.
    """

    name: str
    status: int
    error_type: str | None = None
    is_gzipped: bool = True
    is_cut: bool = False
    is_signed: bool = True

    @property
    def errors(self) -> str:
        """What the collector says, as the ledger has it."""
        return f"{self.error_type} /" if self.error_type else str(self.status)


BAD_REQUESTS: Final = (
    RequestDefect(name="signature of the unpacked body", status=401, is_signed=False),
    RequestDefect(name="body over 1 MB", status=413, is_gzipped=False),
    RequestDefect(name="gzip cut short", status=400, error_type="wrong_format", is_cut=True),
)
"""Every way for a request to be refused (Collector, Authentication 3 and Limits; contract, Collector)."""


def too_large(body: bytes) -> bytes:
    """The events of *body*, a JSON array, over and over until they are more than a request may hold."""
    return b"[%b]" % b",".join([body[1:-1]] * (BODY_BYTES // (len(body) - 1) + 1))


BOT_REPEATS: Final = 20
"""How often a bot plays the same session, one after the other."""
