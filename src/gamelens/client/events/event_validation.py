"""The common fields of a player's events, and the check of each event before it is queued.

Wire 3.3, Common fields.
"""

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

SESSION_CATEGORIES: Final = frozenset({"user", "session_end"})
"""Categories that the session records itself."""
_SESSION_FIELDS: Final = frozenset(
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
    """A player on a device, validated when created.

    Attributes:
        user_id: the player.
        platform, os_version, device, manufacturer: the device.
        build: the version of the game.
        also: further fields of every event, such as `connection_type`, `engine_version` or `custom_01`.

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
        check_no_session_fields(self.also)
        session = {"session_id": "0", "session_num": 1, "client_ts": 0, "event_uuid": "0"}
        validated_json({"category": "user", **self.fields(), **session})

    def fields(self) -> dict[str, Any]:
        """Return the fields that are the same in every event."""
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


def check_no_session_fields(fields: Mapping[str, Any]) -> None:
    """Check that *fields* holds no field that the session sets.

    Raises:
        BadQuery: it does.
    """
    for name in fields:
        if name in _SESSION_FIELDS:
            raise BadQuery(name, fields[name], "is set by the session: leave it out")


def validated_json(event: Mapping[str, Any]) -> bytes:
    """Return *event* as the JSON to send, without fields that are None.

    The rules are checked on the decoded JSON, as a collector sees it: NaN, for example, has become null.

    Raises:
        BadQuery: it breaks a rule; names the first one and its field.
    """
    category = event.get("category")
    try:
        body = msgspec.json.encode({name: value for name, value in event.items() if value is not None})
        decoded = msgspec.json.decode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadQuery("event", category, f"cannot be written as JSON: {error}") from None
    for violation in LENIENT.violations(decoded):
        raise _bad_query(decoded, violation)
    if len(body) > BATCH_BYTES:
        raise BadQuery("event", category, f"is {len(body)} bytes long, and a request takes {BATCH_BYTES}")
    return body


def _bad_query(event: Mapping[str, Any], violation: Violation) -> BadQuery:
    """Return the error for one violation."""
    name, category = violation.path[1:], event.get("category")
    if name == "category":
        return BadQuery(name, category, "is no category of events", CATEGORIES)
    rule = LENIENT.rule(category).members[name]
    return BadQuery(name, event.get(name), _rule_text(violation, rule), rule.enum)


def _rule_text(violation: Violation, rule: FieldRule) -> str:
    """Return the broken rule as half a sentence."""
    match violation.error_type:
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
