"""Validation of events: good ones, and the violations of others (Wire 3.1, Categories)."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.wire.currencies import REPLACED, USD_PER_UNIT
from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_validator import LENIENT, STRICT, EventValidator
from gamelens.wire.rule_checking import Violation
from support.candidate_events import described_events, good, near_events
from support.hypothesis_profiles import examples

GZIP = b"\x1f\x8b"
MODES = pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])


def is_good(*events: Any, rules: EventValidator = LENIENT) -> bool:
    """Return whether the typed decoder of *rules* accepts all *events*."""
    try:
        return len(rules.decode(json.dumps(events).encode())) == len(events)
    except msgspec.DecodeError:
        return False


def errors_of(candidate: Any) -> list[tuple[str, str]]:
    """Return error type and path of every violation of an event in lenient mode."""
    return [(fault.error_type, fault.path) for fault in LENIENT.violations(candidate)]


@MODES
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_good_events(category: str, rules: EventValidator) -> None:
    """A good event of every category passes in both validation modes.

    Wire 3.1, Categories; Wire 3.5, Category fields.
    """
    assert is_good(good(category), rules=rules)
    assert rules.violations(good(category)) == []


@MODES
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_required_field_is_missed_by_its_path(category: str, rules: EventValidator) -> None:
    """A missing required field is reported at `/field`, in both validation modes.

    Wire 1.8, Rejected events.
    """
    for name in rules.rule(category).required:
        candidate = good(category)
        del candidate[name]
        assert Violation("missing_required_property", f"/{name}") in rules.violations(candidate)
        assert not is_good(candidate, rules=rules)


@pytest.mark.parametrize("category", CATEGORIES)
def test_unknown_fields_are_accepted(category: str) -> None:
    """In lenient mode an event may have fields that no category defines.

    Wire 3.3, Common fields.
    """
    assert is_good(good(category, browser_version="1", ios_idfa=None, something=[{"x": 1}]))


@pytest.mark.parametrize(
    ("category", "fields", "error_type", "path"),
    [
        ("user", {"session_id": 5}, "wrong_type", "/session_id"),
        ("user", {"user_id": None}, "wrong_type", "/user_id"),
        ("user", {"v": "2"}, "wrong_type", "/v"),
        ("user", {"v": 2.0}, "wrong_type", "/v"),
        ("user", {"v": True}, "wrong_type", "/v"),
        ("user", {"v": 3}, "not_in_range", "/v"),
        ("user", {"user_id": ""}, "wrong_length", "/user_id"),
        ("user", {"user_id": "x" * 65}, "wrong_length", "/user_id"),
        ("user", {"build": "é" * 33}, "wrong_length", "/build"),
        ("user", {"session_num": 0}, "not_in_range", "/session_num"),
        ("user", {"connection_type": "5g"}, "not_in_enum", "/connection_type"),
        ("user", {"country_code": "USA"}, "no_match", "/country_code"),
        ("user", {"country_code": "U\n"}, "no_match", "/country_code"),
        ("user", {"country_code": "ÄÖ"}, "no_match", "/country_code"),
        ("user", {"custom_fields": []}, "wrong_type", "/custom_fields"),
        ("user", {"configurations_v3": {}}, "wrong_type", "/configurations_v3"),
        ("user", {"install": 1}, "wrong_type", "/install"),
        ("user", {"gender": "f"}, "not_in_enum", "/gender"),
        ("user", {"category": "users"}, "not_in_enum", "/category"),
        ("user", {"category": None}, "wrong_type", "/category"),
        ("user", {"category": ["user"]}, "wrong_type", "/category"),
        ("session_end", {"length": -1}, "not_in_range", "/length"),
        ("session_end", {"length": 2**53}, "not_in_range", "/length"),
        ("session_end", {"length": 1.5}, "wrong_type", "/length"),
        ("business", {"amount": -1}, "not_in_range", "/amount"),
        ("business", {"amount": "99"}, "wrong_type", "/amount"),
        ("business", {"currency": "usd"}, "not_in_enum", "/currency"),
        ("business", {"currency": "XXX"}, "not_in_enum", "/currency"),
        ("business", {"event_id": "boost"}, "no_match", "/event_id"),
        ("business", {"event_id": "a:b:c"}, "no_match", "/event_id"),
        ("business", {"event_id": "a:" + "b" * 65}, "no_match", "/event_id"),
        ("design", {"event_id": "a:b:"}, "no_match", "/event_id"),
        ("business", {"transaction_num": 0}, "not_in_range", "/transaction_num"),
        ("resource", {"event_id": "sink:gold:shop:hat"}, "no_match", "/event_id"),
        ("resource", {"event_id": "Sink:go1d:shop:hat"}, "no_match", "/event_id"),
        ("resource", {"amount": "1"}, "wrong_type", "/amount"),
        ("resource", {"amount": True}, "wrong_type", "/amount"),
        ("progression", {"event_id": "Complete"}, "no_match", "/event_id"),
        ("progression", {"event_id": "Complete:a:b:c:d"}, "no_match", "/event_id"),
        ("progression", {"score": 1.5}, "wrong_type", "/score"),
        ("design", {"event_id": "a:b:c:d:e:f"}, "no_match", "/event_id"),
        ("design", {"event_id": "é"}, "no_match", "/event_id"),
        ("design", {"event_id": ":"}, "no_match", "/event_id"),
        ("design", {"value": "1"}, "wrong_type", "/value"),
        ("error", {"severity": "fatal"}, "not_in_enum", "/severity"),
        ("error", {"message": "x" * 8193}, "wrong_length", "/message"),
        ("ads", {"ad_type": "popup"}, "not_in_enum", "/ad_type"),
        ("ads", {"ad_action": "shown"}, "not_in_enum", "/ad_action"),
        ("ads", {"ad_sdk_name": "x" * 33}, "wrong_length", "/ad_sdk_name"),
        ("impression", {"ad_network_name": "applovin"}, "not_in_enum", "/ad_network_name"),
        ("impression", {"ad_network_version": "v1"}, "no_match", "/ad_network_version"),
        ("impression", {"impression_data": "{}"}, "wrong_type", "/impression_data"),
        ("sdk_error", {"user_id": 5}, "wrong_type", "/user_id"),
        ("sdk_init", {"app_boot_time": "1"}, "wrong_type", "/app_boot_time"),
        ("health", {"fps_data_table": {}}, "wrong_type", "/fps_data_table"),
    ],
)
def test_a_bad_field_is_one_violation(category: str, fields: dict[str, Any], error_type: str, path: str) -> None:
    """A bad value is reported with its error type and path, and the event is rejected.

    Wire 1.9, Error types.
    """
    candidate = good(category, **fields)
    assert (error_type, path) in errors_of(candidate)
    assert not is_good(candidate)


def test_a_wrong_type_is_reported_alone() -> None:
    """A value of a wrong type is `wrong_type` and has no other violation.

    Wire 1.9, Error types.
    """
    assert errors_of(good("business", currency=978)) == [("wrong_type", "/currency")]


def test_a_field_has_one_violation_for_one_mistake() -> None:
    """A text outside its pattern is `no_match`, once, whatever its length.

    Wire 1.9, Error types.
    """
    assert errors_of(good("impression", ad_network_version="x")) == [("no_match", "/ad_network_version")]
    assert errors_of(good(country_code="USA")) == [("no_match", "/country_code")]


def test_all_violations_of_an_event_are_listed() -> None:
    """An event with several bad fields has a violation for each of them.

    Wire 1.8, Rejected events.
    """
    candidate = good("business", amount=-1, currency="XXX", v=1, session_id=5)
    del candidate["device"]
    assert sorted(errors_of(candidate)) == [
        ("missing_required_property", "/device"),
        ("not_in_enum", "/currency"),
        ("not_in_range", "/amount"),
        ("not_in_range", "/v"),
        ("wrong_type", "/session_id"),
    ]


@pytest.mark.parametrize("member", [None, 1, "user", [], [good()], True])
def test_a_member_that_is_no_object_is_wrong_at_the_root(member: Any) -> None:
    """A member of the array that is not an object is `wrong_type` at `/`.

    Wire 1.8, Rejected events.
    """
    assert errors_of(member) == [("wrong_type", "/")]
    assert not is_good(member)


@pytest.mark.parametrize("ts", [0, -1, 10**11, 10**30])
def test_any_integer_is_a_client_ts(ts: int) -> None:
    """An integer `client_ts` is accepted, even outside the range of usable times.

    Wire 3.3, Common fields.
    """
    assert is_good(good(client_ts=ts))


@pytest.mark.parametrize("ts", ["1763600000", "", None, 1763600000.5, True, []])
def test_client_ts_is_an_integer(ts: Any) -> None:
    """A `client_ts` that is a string, float, boolean, array or null is `wrong_type`.

    Wire 3.3, Common fields.
    """
    assert errors_of(good() | {"client_ts": ts}) == [("wrong_type", "/client_ts")]


def test_country_code_may_be_null() -> None:
    """A null `country_code` is accepted: the Roblox client sends it for unknown.

    Wire 1.17, Country.
    """
    assert is_good(good(country_code=None))


def test_sdk_errors_need_no_player() -> None:
    """An `sdk_error` event needs no `user_id`, `session_id` and `session_num`.

    Wire 3.5, Category fields.
    """
    candidate = good("sdk_error")
    for name in ("user_id", "session_id", "session_num"):
        del candidate[name]
    assert is_good(candidate)


@pytest.mark.parametrize("literal", ["one", "OWNER", "null", "tail"])
def test_lengths_count_characters_and_not_bytes(literal: str) -> None:
    """The length limit of a text counts characters: 64 of any script pass.

    Wire 3.2, Text rules.
    """
    assert is_good(good(user_id=(literal + "é李😀" * 40)[:64]))


@MODES
@settings(max_examples=examples(300), deadline=None)
@given(candidate=near_events())
def test_typed_decoding_and_field_rules_agree(candidate: Any, rules: EventValidator) -> None:
    """The typed decoder accepts exactly the events without violations, in both modes."""
    assert is_good(candidate, rules=rules) == (not rules.violations(candidate))


@MODES
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_values_that_satisfy_the_rules_are_good(data: st.DataObject, rules: EventValidator) -> None:
    """Values drawn from the field rules pass the field rules and the typed decoder."""
    candidate = data.draw(described_events(rules))
    assert rules.violations(candidate) == []
    assert is_good(candidate, rules=rules)


@pytest.mark.parametrize(
    ("category", "fields"),
    [
        ("user", {"custom_fields": {"won": True, "level": 7, "coupon": "ÆØÅ"}}),
        ("user", {"limit_ad_tracking": True, "limited_ad_tracking": False, "jailbroken": True}),
        ("user", {"install": True, "google_aid": "0-1", "google_aid_src": "service", "android_app_build": "12"}),
        ("user", {"ios_testflight": True, "ios_att": "authorized", "ios_idfv": "0-1", "logon_gamecenter": True}),
        ("user", {"configurations_v3": [{"key": "difficulty", "id": None, "vsn": 0}], "configurations": {"a": "b"}}),
        ("user", {"current_session_length": 0, "lifetime_session_length": 28, "user_id_ext": ""}),
        ("resource", {"event_id": "Sink:gems:boost:hat", "amount": -3}),
        ("resource", {"event_id": "Source:gems:boost:hat", "amount": 400.0}),
        ("progression", {"event_id": "Fail:world", "attempt_num": 2, "score": 0}),
        ("design", {"value": 0.0}),
        ("business", {"receipt_info": {"store": "google_play", "receipt": "r", "signature": "s"}, "cart_type": "shop"}),
        ("error", {"function_name": "Update", "line_number": 0}),
        ("ads", {"ad_action": "loaded", "ad_type": "app_open", "ad_first": True}),
        (
            "health",
            {"memory_app_used": 1.5, "storage_device_free": 2e10, "resolution": "1080x1920", "cpu_num_cores": 8},
        ),
        ("sdk_init", {"cpu_model": "x86_64", "gpu_model": "unknown", "hardware": "qcom", "memory_sys_total": 24106}),
    ],
)
@MODES
def test_fields_of_official_clients_are_good(category: str, fields: dict[str, Any], rules: EventValidator) -> None:
    """The fields of official clients are accepted in both validation modes.

    Wire 3.3, Common fields; Wire 3.5, Category fields.
    """
    assert rules.violations(good(category, **fields)) == []


@MODES
def test_every_event_of_an_official_client_is_good(rules: EventValidator) -> None:
    """Every event recorded from the official C++ client passes in both modes.

    The recording has three runs and is described in data/README.md.
    """
    recorded = json.loads((Path(__file__).parents[2] / "data" / "official-client-cpp-5.4.0.json").read_text())
    bodies = [
        base64.b64decode(request["body_b64"])
        for request in recorded["requests"]
        if request["raw_url"].endswith("/events")
    ]
    events = [event for body in bodies for event in json.loads(gzip.decompress(body) if body[:2] == GZIP else body)]
    assert {event["category"] for event in events} > {"user", "business", "health", "sdk_error"}
    assert [(event["category"], rules.violations(event)) for event in events if rules.violations(event)] == []


OPTIONAL = [
    (category, name)
    for category in CATEGORIES
    for name, rule in LENIENT.rule(category).members.items()
    if name not in (*LENIENT.rule(category).required, "client_ts") and rule.kind != "any"
]


@pytest.mark.parametrize("blank", [None, ""])
def test_a_blank_optional_field_is_the_same_as_none(blank: str | None) -> None:
    """Null and "" pass in every optional field but `client_ts` of every category (Wire 3.3, Common fields)."""
    refused = [(category, name) for category, name in OPTIONAL if errors_of(good(category, **{name: blank}))]
    assert refused == []
    for category, name in OPTIONAL:
        assert LENIENT.decode(msgspec.json.encode([good(category) | {name: blank}]))


@pytest.mark.parametrize("blank", [None, ""])
def test_a_blank_required_field_is_an_error(blank: str | None) -> None:
    """Null is never a value, and "" only where the field's own rule allows it (Wire 3.3, Common fields)."""
    accepted = {
        name
        for category in CATEGORIES
        for name in LENIENT.rule(category).required
        if not errors_of({**good(category), name: blank})
    }
    assert accepted == ({"message", "ad_network_version"} if blank == "" else set())


def test_the_strict_rules_refuse_blank_fields() -> None:
    """But for a null `country_code`, which is documented (Wire 3.7, Strict validation)."""
    refused = [name for name in ("build", "gender", "country_code") if STRICT.violations({**good(), name: None})]
    assert refused == ["build", "gender"]


def test_a_replaced_currency_leads_to_one_that_has_a_rate() -> None:
    """No code is on both lists, and each one of an older list has a successor (Wire 3.8, Currencies)."""
    assert REPLACED.keys().isdisjoint(USD_PER_UNIT)
    assert {*REPLACED.values()} <= USD_PER_UNIT.keys()
