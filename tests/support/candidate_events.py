"""Events to validate: good ones, changed ones, and events drawn from the field rules."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_validator import LENIENT, EventValidator
from gamelens.wire.rule_checking import FieldRule
from support.game_events import event

OF_CATEGORY: dict[str, dict[str, Any]] = {
    "user": {},
    "session_end": {"length": 0},
    "business": {"event_id": "boost:Mega Boost", "amount": 0, "currency": "EUR", "transaction_num": 1},
    "resource": {"event_id": "Sink:gold:shop:hat", "amount": -1.5},
    "progression": {"event_id": "Complete:w1:l2:p3", "attempt_num": 2, "score": -4},
    "design": {"event_id": "a:b (c):d!:e?:f.g", "value": -0.5},
    "error": {"severity": "info", "message": ""},
    "ads": {"ad_sdk_name": "unity", "ad_placement": "home", "ad_type": "banner", "ad_action": "show"},
    "impression": {"ad_network_name": "max", "ad_network_version": "1.2.3", "impression_data": {"revenue": 0.01}},
    "sdk_error": {"error_category": "http", "error_area": "events_http", "error_action": "fail_http_400"},
    "sdk_init": {"is_first_sdk_init": True, "app_boot_time": 12.5},
    "health": {"fps_data_table": [0] * 121, "memory_sys_total": 1},
}
"""The fields that a good event of each category has beside the common ones, in either validation mode."""


def good(kind: str = "user", /, **fields: Any) -> dict[str, Any]:
    """Return a good event of a category with *fields* added or replaced."""
    return event(category=kind, **OF_CATEGORY[kind]) | fields


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 2, 3, 2**53 - 1, 2**53, 2**63, 2**64, 0.0, 1.0, 1.5, "", " ", "US", "us", "USD", "wifi"]),
    st.sampled_from(["a" * 32, "a" * 33, "a" * 64, "a" * 65, "a:b", "a:b:c", "Sink:a:b:c", "Fail:x", "info", "max"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["key", "id", "vsn", "store", "receipt"]), st.sampled_from([0, "apple", None, ""])),
)
FIELDS = sorted({name for category in CATEGORIES for name in LENIENT.rule(category).members})


@st.composite
def near_events(draw: st.DrawFn) -> Any:
    """Draw a good event with a few fields changed, added or removed.

    One draw in eleven is JSON that is not an event at all.
    """
    candidate: dict[str, Any] = good(draw(st.sampled_from(CATEGORIES)))
    for name in draw(st.lists(st.sampled_from(sorted({*candidate, *FIELDS, "category"})), max_size=4)):
        match draw(st.sampled_from(["change", "change", "drop", "other category"])):
            case "change":
                candidate[name] = draw(SCALARS)
            case "drop":
                candidate.pop(name, None)
            case "other category":
                candidate["category"] = draw(st.sampled_from(CATEGORIES))
    return draw(st.sampled_from([candidate] * 30 + [[candidate], None, 5]))


@st.composite
def described_events(draw: st.DrawFn, rules: EventValidator) -> dict[str, Any]:
    """Draw a good event of any category, with some fields drawn from their rules in *rules*."""
    category = draw(st.sampled_from(CATEGORIES))
    members = rules.rule(category).members
    chosen = draw(st.lists(st.sampled_from(sorted(members)), max_size=5))
    candidate: dict[str, Any] = good(category) | {name: draw(described(members[name])) for name in chosen}
    candidate["category"] = category
    for name, rule in members.items():
        if rule.sibling is not None and not rule.sibling.allows(candidate.get(rule.sibling.field)):
            candidate.pop(name, None)
    return candidate


def described(rule: FieldRule) -> st.SearchStrategy[Any]:
    """Return a strategy for values that satisfy *rule*."""
    values: st.SearchStrategy[Any]
    match rule.kind:
        case "any":
            values = SCALARS
        case "string" if rule.enum:
            values = st.sampled_from(rule.enum)
        case "string" if rule.pattern is not None:
            values = st.from_regex(rule.pattern).filter(lambda text: rule.longest is None or len(text) <= rule.longest)
        case "string":
            values = st.text(min_size=rule.shortest or 0, max_size=rule.longest)
        case "scalar":
            values = st.booleans() | NUMBERS | st.text(min_size=rule.shortest or 0, max_size=rule.longest)
        case "integer":
            values = st.integers(rule.least, rule.most)
        case "number":
            values = NUMBERS
        case "boolean":
            values = st.booleans()
        case "array" if rule.shortest is not None and rule.shortest == rule.longest:
            values = described(rule.items or FieldRule(kind="any")).map(lambda item: [item] * (rule.longest or 0))
        case "array":
            values = st.lists(described(rule.items or FieldRule(kind="any")), max_size=3)
        case "object" if rule.members:
            required = {name: described(member) for name, member in rule.members.items() if name in rule.required}
            optional = {name: described(member) for name, member in rule.members.items() if name not in rule.required}
            values = st.fixed_dictionaries(required, optional=optional)
        case "object":
            names = st.text(max_size=3) if rule.names is None else st.from_regex(rule.names)
            entries = described(rule.items or FieldRule(kind="any"))
            values = st.dictionaries(names, entries, min_size=rule.shortest or 0, max_size=3)
    return values | st.none() if rule.nullable else values


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
