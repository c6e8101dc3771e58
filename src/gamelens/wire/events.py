"""The event categories and their fields: one table of rules, read in two ways (Collector, Event object).

*decode_events* is the fast way: msgspec types made from the table, for a batch that is all good. *faults* is the slow
way: the same table walked field by field, for an event that is not, listing everything that is wrong with it.
A test holds the two together. The rules themselves are those of public-facts 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union

import msgspec

from gamelens.wire.currencies import USD_PER_UNIT

_PART = r"(?a:[A-Za-z0-9\s\-_\.\(\)\!\?]{1,64})"
_MAX_SAFE_INTEGER = 2**53 - 1  # Our choice: what every JSON reader keeps exact

JsonKind = Literal["string", "integer", "number", "boolean", "object", "array"]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What one field may hold; lengths count characters."""

    kind: JsonKind = "string"
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    least: int | None = None
    most: int | None = None
    enum: tuple[str, ...] = ()
    nullable: bool = False


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with an event, as the collector names it (public-facts 1.7)."""

    error_type: str
    path: str


def _text(shortest: int = 1, longest: int = 64) -> Rule:
    return Rule(shortest=shortest, longest=longest)


def _whole(least: int | None = None, most: int | None = None) -> Rule:
    return Rule(kind="integer", least=least, most=most)


def _one_of(*values: str) -> Rule:
    return Rule(enum=values)


def _like(pattern: str) -> Rule:
    return Rule(pattern=rf"^{pattern}\Z")


_ANY_TEXT: Final = Rule()
_FLAG: Final = Rule(kind="boolean")
_NUMBER: Final = Rule(kind="number")
_OBJECT: Final = Rule(kind="object")
_ARRAY: Final = Rule(kind="array")

_DEVICE_FIELDS: Final = {
    "v": _whole(2, 2),
    "sdk_version": _text(),
    "os_version": _text(),
    "manufacturer": _text(longest=32),
    "device": _text(longest=32),
    "platform": _text(longest=32),
}
_PLAYER_FIELDS: Final = {"user_id": _text(), "session_id": _text(), "session_num": _whole(1)}
_OPTIONAL_FIELDS: Final = {
    "client_ts": _whole(),
    "event_uuid": _text(),
    "connection_type": _one_of("wwan", "wifi", "lan", "offline"),
    "build": _text(longest=32),
    "engine_version": _text(),
    "custom_01": _text(longest=32),
    "custom_02": _text(longest=32),
    "custom_03": _text(longest=32),
    "custom_fields": _OBJECT,
    "ab_id": _text(),
    "ab_variant_id": _text(),
    "configurations": _OBJECT,
    "configurations_v3": _ARRAY,
    "progression": _ANY_TEXT,
    "user_id_ext": _ANY_TEXT,
    "country_code": Rule(pattern=r"^[A-Za-z]{2}\Z", nullable=True),
    "install_publisher": _text(),
    "install": _FLAG,
    "limit_ad_tracking": _FLAG,
    "limited_ad_tracking": _FLAG,
    "jailbroken": _FLAG,
    "birth_year": _whole(),
    "gender": _one_of("male", "female"),
}

_REQUIRED: Final[dict[str, dict[str, Rule]]] = {
    "user": {},
    "session_end": {"length": _whole(0, _MAX_SAFE_INTEGER)},
    "business": {
        "event_id": _like(f"{_PART}:{_PART}"),
        "amount": _whole(0, _MAX_SAFE_INTEGER),
        "currency": _one_of(*USD_PER_UNIT),
        "transaction_num": _whole(1),
    },
    "resource": {"event_id": _like(f"(Sink|Source):[A-Za-z]{{1,64}}:{_PART}:{_PART}"), "amount": _NUMBER},
    "progression": {"event_id": _like(f"(Start|Fail|Complete)(:{_PART}){{1,3}}")},
    "design": {"event_id": _like(f"{_PART}(:{_PART}){{0,4}}")},
    "error": {
        "severity": _one_of("debug", "info", "warning", "error", "critical"),
        "message": _text(0, 8192),
    },
    "ads": {
        "ad_sdk_name": _text(longest=32),
        "ad_placement": _text(),
        "ad_type": _one_of("video", "rewarded_video", "playable", "interstitial", "offer_wall", "banner", "app_open"),
        "ad_action": _one_of("clicked", "show", "failed_show", "reward_received", "request", "loaded"),
    },
    "impression": {
        "ad_network_name": _one_of("mopub", "fyber", "ironsource", "topon", "hyperbid", "max", "aequus", "admob"),
        "ad_network_version": _like(r"[0-9]{0,5}(\.[0-9]{0,5}){0,3}"),
        "impression_data": _OBJECT,
    },
    "sdk_error": {"error_category": _text(), "error_area": _text(), "error_action": _text()},
    "sdk_init": {},
    "health": {},
}
_OPTIONAL: Final[dict[str, dict[str, Rule]]] = {
    "business": {"cart_type": _text(longest=32), "receipt_info": _OBJECT},
    "progression": {"attempt_num": _whole(), "score": _whole()},
    "design": {"value": _NUMBER},
    "error": {"function_name": _text(0, 256), "line_number": _whole(0)},
    "ads": {
        "ad_fail_show_reason": _one_of(
            "unknown", "offline", "no_fill", "internal_error", "invalid_request", "unable_to_precache"
        ),
        "ad_duration": _whole(0),
        "ad_first": _FLAG,
    },
    "sdk_error": {"error_parameter": _ANY_TEXT, "reason": _text(0, 8192)},
    "sdk_init": {"is_first_sdk_init": _FLAG, "app_boot_time": _NUMBER},
    "health": {"fps_data_table": _ARRAY, "memory_sys_data_table": _ARRAY, "memory_app_data_table": _ARRAY},
}

CATEGORIES: Final = tuple(_REQUIRED)
"""Every category, those the SDKs send about themselves last (public-facts 2.1)."""


def required_fields(category: str) -> dict[str, Rule]:
    """Rules of the fields an event of *category* must have, `category` itself left out."""
    player = {} if category == "sdk_error" else _PLAYER_FIELDS
    return {**_DEVICE_FIELDS, **player, **_REQUIRED.get(category, {})}


def optional_fields(category: str) -> dict[str, Rule]:
    """Rules of the fields an event of *category* may have; any other field is kept unread."""
    player = _PLAYER_FIELDS if category == "sdk_error" else {}
    return {**_OPTIONAL_FIELDS, **player, **_OPTIONAL.get(category, {})}


def decode_events(body: bytes) -> list[Any]:
    """The events of *body*, one typed struct each.

    Raises:
        msgspec.DecodeError: not JSON, not an array, or at least one event is bad; ask `faults` what is wrong.
    """
    events: list[Any] = _DECODER.decode(body)
    return events


def faults(event: object) -> list[Fault]:
    """Everything wrong with one decoded *event*; empty when it is good (public-facts 1.7)."""
    if not isinstance(event, Mapping):
        return [Fault("wrong_type", "/")]
    category = event.get("category")
    found = [*_check("category", Rule(enum=CATEGORIES), event)] if "category" in event else []
    if "category" not in event:
        found.append(Fault("missing_required_property", "/category"))
    known = category if isinstance(category, str) else ""
    required = required_fields(known)
    found += [Fault("missing_required_property", f"/{name}") for name in required if name not in event]
    for name, rule in {**required, **optional_fields(known)}.items():
        if name in event:
            found += _check(name, rule, event)
    return found


def _check(name: str, rule: Rule, event: Mapping[str, Any]) -> list[Fault]:
    value, path = event[name], f"/{name}"
    if value is None and rule.nullable:
        return []
    if not isinstance(value, _PYTHON_TYPES[rule.kind]) or (isinstance(value, bool) and rule.kind != "boolean"):
        return [Fault("wrong_type", path)]
    broken = []
    if rule.enum and value not in rule.enum:
        broken.append("not_in_enum")
    if rule.pattern is not None and not re.search(rule.pattern, value):
        broken.append("no_match")
    if _outside(len(value) if isinstance(value, str) else None, rule.shortest, rule.longest):
        broken.append("wrong_length")
    if _outside(value if isinstance(value, int | float) else None, rule.least, rule.most):
        broken.append("not_in_range")
    return [Fault(kind, path) for kind in broken]


def _outside(value: float | None, least: int | None, most: int | None) -> bool:
    return value is not None and ((least is not None and value < least) or (most is not None and value > most))


_PYTHON_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": Mapping,
    "array": list,
}
_MSGSPEC_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": Union[int, float],  # noqa: UP007
    "boolean": bool,
    "object": dict[str, Any],
    "array": list[Any],
}


def _msgspec_type(rule: Rule) -> Any:
    """The type that accepts exactly what *rule* accepts."""
    made: Any = _MSGSPEC_TYPES[rule.kind]
    bounds = {
        "min_length": rule.shortest,
        "max_length": rule.longest,
        "pattern": rule.pattern,
        "ge": rule.least,
        "le": rule.most,
    }
    given: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    if rule.enum:
        made = Literal[rule.enum]
    elif given:
        made = Annotated[made, msgspec.Meta(**given)]
    return Union[made, None] if rule.nullable else made  # noqa: UP007


def _event_type(category: str) -> type[msgspec.Struct]:
    fields: list[Any] = [(name, _msgspec_type(rule)) for name, rule in required_fields(category).items()]
    for name, rule in optional_fields(category).items():
        fields.append((name, Union[_msgspec_type(rule), msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
    return msgspec.defstruct(
        f"{category}_event", fields, frozen=True, kw_only=True, tag_field="category", tag=category, gc=False
    )


EVENT_TYPES: Final = tuple(_event_type(name) for name in CATEGORIES)
_DECODER: Final = msgspec.json.Decoder(list[Union[EVENT_TYPES]])  # type: ignore[valid-type]  # noqa: UP007
