"""The common fields of a player's events, and the check of each event before it is queued.

Wire 3.3, Common fields.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gamelens.client.events.collector_client import SDK_VERSION
from gamelens.client.events.outbox import BATCH_BYTES
from gamelens.errors import BadQuery
from gamelens.wire.currencies import REPLACED, why_no_currency
from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_validator import LENIENT, STRICT
from gamelens.wire.rule_checking import FieldRule, Violation

SESSION_CATEGORIES: Final = frozenset({"user", "session_end"})
"""Categories that the session records itself."""
_LISTED_VALUES: Final = 12
_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_GENERAL_TEXTS: Final = {
    "missing_required_property": "is missing",
    "wrong_type": "is of the wrong JSON type",
    "not_in_enum": "is not one of the allowed values",
    "no_match": "has a form, or a name, that is not allowed",
    "wrong_length": "is too short or too long",
    "not_in_range": "is too small or too large",
    "wrong_size": "has too few or too many entries",
    "no_extra_properties_allowed": "is not a documented field of such an event",
    "wrong_format": "cannot be read",
}
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

    *build* is the version of the game, and *also* has further fields of every event, such as `connection_type`,
    `engine_version` or `custom_01`.

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

    The rules are checked on the decoded JSON, as a collector sees it. A number that has become null there is refused.

    Raises:
        BadQuery: it breaks a rule; names the first one and its field.
    """
    category = event.get("category")
    try:
        body = msgspec.json.encode({name: value for name, value in event.items() if value is not None})
        decoded = msgspec.json.decode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadQuery("event", category, f"cannot be written as JSON: {error}") from None
    for name, value in decoded.items():
        if value is None:
            raise BadQuery(name, event[name], "is not a number that JSON has: leave the field out")
    for violation in LENIENT.violations(decoded):
        name = violation.path[1:]
        if name == "category":
            raise BadQuery(name, category, "is not an event category", CATEGORIES)
        rule = LENIENT.rule(category).members[name]
        raise BadQuery(name, decoded.get(name), _rule_text(violation, rule), rule.enum)
    if len(body) > BATCH_BYTES:
        raise BadQuery("event", category, f"is {len(body)} bytes long, but a request takes at most {BATCH_BYTES}")
    return body


def violation_text(event: object, violation: Violation) -> str:
    """Return one broken rule of a decoded *event* in words, with value and allowed ones.

    A rule that is not ours, of a collector that knows more, is told by its name.
    """
    names = [name.replace("~1", "/").replace("~0", "~") for name in violation.path.split("/")[1:] if name]
    if not names:
        return "is not an event (a JSON object)" if violation.error_type == "wrong_type" else "cannot be read"
    if violation.error_type == "missing_required_property":
        return f"{'/'.join(names)} is missing"
    value, rule = _at(event, names), None
    for validator in (LENIENT, STRICT):  # the lenient rule that the violation is about, else the strict one
        if violation in validator.violations(event):
            rule = validator.rule(_at(event, ["category"]))
            for name in names:
                rule = rule and (rule.members.get(name) or rule.items)
            break
    allowed = rule.enum if rule is not None and len(rule.enum) <= _LISTED_VALUES else ()
    if names == ["currency"] and violation.error_type == "not_in_enum" and value in REPLACED:
        return f"currency = {_SHORT.repr(value)} is not one of the allowed values: {why_no_currency(value)}"
    hint = _nearest(value, rule.enum if rule is not None else ())
    more = f". Did you mean `{hint}`?" if hint else f": {', '.join(allowed)}" if allowed else ""
    return f"{'/'.join(names)} = {_SHORT.repr(value)} {_rule_text(violation, rule)}{more}"


def _nearest(value: object, allowed: Sequence[str]) -> str | None:
    """Return the allowed value that equals *value* but for case, else the most similar."""
    same = (name for name in allowed if isinstance(value, str) and name.casefold() == value.casefold())
    return next(same, None) or BadQuery("", value, "", allowed).did_you_mean


def _at(value: Any, names: Sequence[str]) -> Any:
    """Return the value at a path, or None."""
    for name in names:
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _rule_text(violation: Violation, rule: FieldRule | None) -> str:
    """Return the broken rule as half a sentence."""
    text = _GENERAL_TEXTS.get(violation.error_type, f"breaks the rule {violation.error_type}")
    if rule is None:
        return text
    match violation.error_type:
        case "wrong_type":
            return f"must be of the JSON type {rule.kind}"
        case "no_match" if rule.pattern is not None:
            return f"must match {rule.pattern}"
        case "wrong_length":
            return f"must have {rule.shortest} to {rule.longest} characters"
        case "wrong_size":
            return f"must have {_bounds_text(rule.shortest, rule.longest)} entries"
        case "not_in_range":
            return f"must be {_bounds_text(rule.least, rule.most)}"
        case "no_extra_properties_allowed" if rule.sibling is not None:
            condition = f" that matches {rule.sibling.pattern}" if rule.sibling.pattern else ""
            return f"is allowed only with a {rule.sibling.field}{condition}"
    return text


def _bounds_text(least: int | None, most: int | None) -> str:
    if least == most:
        return f"{least}"
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least}"
    return f"{least} to {most}"
