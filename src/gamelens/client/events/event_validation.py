"""What every event says beside its own fields, and the check each passes before it is queued (public-facts 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gamelens.client.events.collector_client import SDK_VERSION
from gamelens.client.events.outbox import BATCH_BYTES
from gamelens.errors import BadQuery
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import LENIENT
from gamelens.wire.field_rules import FieldRule, Violation

BY_THE_SESSION: Final = frozenset({"user", "session_end"})
"""Categories the session records itself."""
_OWN_FIELDS: Final = frozenset(
    {
        "category",
        "v",
        "user_id",
        "session_id",
        "session_num",
        "client_ts",
        "event_uuid",
        "sdk_version",
        "ab_id",
        "ab_variant_id",
    }
)


class PlayerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who plays on what; valid when it exists.

    *also* are further fields of every event, such as `connection_type`, `engine_version` or `custom_01`.

    Raises:
        BadQuery: a field breaks its rule.
    """

    user_id: str
    platform: str
    os_version: str
    device: str = "unknown"
    manufacturer: str = "unknown"
    build: str | None = None
    also: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        refuse_own_fields(self.also)
        session = {"session_id": "0", "session_num": 1, "client_ts": 0, "event_uuid": "0"}
        validated_json({"category": "user", **self.fields(), **session})

    def fields(self) -> dict[str, Any]:
        """The fields that are the same in every event."""
        return {
            "v": 2,
            "user_id": self.user_id,
            "sdk_version": SDK_VERSION,
            "os_version": self.os_version,
            "manufacturer": self.manufacturer,
            "device": self.device,
            "platform": self.platform,
            "build": self.build,
            **self.also,
        }


def refuse_own_fields(fields: Mapping[str, Any]) -> None:
    """See that *fields* leaves alone what the session sets.

    Raises:
        BadQuery: it does not.
    """
    for name in fields:
        if name in _OWN_FIELDS:
            raise BadQuery(name, fields[name], "is set by the session: leave it out")


def validated_json(event: Mapping[str, Any]) -> bytes:
    """*event* as the JSON that is sent, without its fields that are None, and good (public-facts 1.7).

    What is judged is what a reader of that JSON sees: a NaN, for one, has become null.

    Raises:
        BadQuery: it breaks a rule; the first one, with the field.
    """
    category = event.get("category")
    try:
        body = msgspec.json.encode({name: value for name, value in event.items() if value is not None})
        as_read = msgspec.json.decode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadQuery("event", category, f"cannot be written as JSON: {error}") from None
    for fault in LENIENT.violations(as_read):
        raise _refusal(as_read, fault)
    if len(body) > BATCH_BYTES:
        raise BadQuery("event", category, f"is {len(body)} bytes long, and a request takes {BATCH_BYTES}")
    return body


def _refusal(event: Mapping[str, Any], fault: Violation) -> BadQuery:
    name, category = fault.path[1:], event.get("category")
    if name == "category":
        return BadQuery(name, category, "is no category of events", CATEGORIES)
    rule = LENIENT.rule(category).members[name]
    return BadQuery(name, event.get(name), _said(fault, rule), rule.enum)


def _said(fault: Violation, rule: FieldRule) -> str:
    """The rule that is broken, as half a sentence."""
    match fault.error_type:
        case "missing_required_property":
            return "is missing"
        case "wrong_type":
            return f"must be of the JSON type {rule.kind}"
        case "no_match":
            return f"must match {rule.pattern}"
        case "wrong_length":
            return f"must have {rule.shortest} to {rule.longest} characters"
        case "not_in_range" if rule.most is not None:
            return f"must be {rule.least} to {rule.most}"
        case "not_in_range":
            return f"must be at least {rule.least}"
    return "is not one of the values it may have"
