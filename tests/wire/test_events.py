"""Collector, Event object; public facts 1.7 and 2: which events are good, and what is wrong with the others."""

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

from conftest import examples
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import LENIENT, STRICT, EventValidator
from gamelens.wire.field_rules import Violation
from support.candidate_events import described_events, good, near_events

GZIP = b"\x1f\x8b"
MODES = pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])


def is_good(*events: Any, rules: EventValidator = LENIENT) -> bool:
    try:
        return len(rules.decode(json.dumps(events).encode())) == len(events)
    except msgspec.DecodeError:
        return False


def found(one: Any) -> list[tuple[str, str]]:
    return [(fault.error_type, fault.path) for fault in LENIENT.faults(one)]


@MODES
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_good_events(category: str, rules: EventValidator) -> None:
    """Public facts 2.1 and 2.5."""
    assert is_good(good(category), rules=rules)
    assert rules.faults(good(category)) == []


@MODES
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_required_field_is_missed_by_its_path(category: str, rules: EventValidator) -> None:
    """contract, Collector: `path` is `/field`, also for a missing one."""
    for name in rules.rule(category).required:
        one = good(category)
        del one[name]
        assert Violation("missing_required_property", f"/{name}") in rules.faults(one)
        assert not is_good(one, rules=rules)


@pytest.mark.parametrize("category", CATEGORIES)
def test_fields_nobody_knows_are_unread(category: str) -> None:
    """Public facts 2.3: accept and keep them."""
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
def test_one_bad_field_is_one_fault(category: str, fields: dict[str, Any], error_type: str, path: str) -> None:
    """contract, Collector: the vocabulary of public facts 1.7."""
    one = good(category, **fields)
    assert (error_type, path) in found(one)
    assert not is_good(one)


def test_a_wrong_type_is_named_alone() -> None:
    """contract, Collector: a wrong type gives `wrong_type` alone."""
    assert found(good("business", currency=978)) == [("wrong_type", "/currency")]


def test_all_faults_of_one_field_are_listed() -> None:
    """contract, Collector: every error listed."""
    assert found(good("impression", ad_network_version="x")) == [("no_match", "/ad_network_version")]
    assert found(good(country_code="")) == [("no_match", "/country_code")]


def test_all_faults_of_an_event_are_listed() -> None:
    """contract, Collector: every error listed."""
    one = good("business", amount=-1, currency="XXX", v=1, session_id=5)
    del one["device"]
    assert sorted(found(one)) == [
        ("missing_required_property", "/device"),
        ("not_in_enum", "/currency"),
        ("not_in_range", "/amount"),
        ("not_in_range", "/v"),
        ("wrong_type", "/session_id"),
    ]


@pytest.mark.parametrize("member", [None, 1, "user", [], [good()], True])
def test_a_member_that_is_no_object_is_wrong_at_the_root(member: Any) -> None:
    """contract, Collector: `wrong_type` at `/`."""
    assert found(member) == [("wrong_type", "/")]
    assert not is_good(member)


@pytest.mark.parametrize("ts", [0, -1, 10**11, 10**30])
def test_any_integer_is_a_client_ts(ts: int) -> None:
    """design/metrics, Words: absent or out of range is accepted."""
    assert is_good(good(client_ts=ts))


@pytest.mark.parametrize("ts", ["1763600000", 1763600000.5, True, None])
def test_nothing_else_is_a_client_ts(ts: Any) -> None:
    """design/metrics, Words: a string, float, boolean or null is `wrong_type`."""
    assert found(good(client_ts=ts)) == [("wrong_type", "/client_ts")]


def test_country_code_may_be_null() -> None:
    """Public facts 1.11: the Roblox client says null for unknown."""
    assert is_good(good(country_code=None))


def test_sdk_errors_need_no_player() -> None:
    """Public facts 2.5, sdk_error."""
    one = good("sdk_error")
    for name in ("user_id", "session_id", "session_num"):
        del one[name]
    assert is_good(one)


@pytest.mark.parametrize("literal", ["one", "OWNER", "null", "tail"])
def test_lengths_count_characters_and_not_bytes(literal: str) -> None:
    """Public facts 2.2."""
    assert is_good(good(user_id=(literal + "é李😀" * 40)[:64]))


@MODES
@settings(max_examples=examples(300), deadline=None)
@given(one=near_events())
def test_the_fast_way_and_the_slow_way_agree(one: Any, rules: EventValidator) -> None:
    """One table of rules, read in two ways."""
    assert is_good(one, rules=rules) == (not rules.faults(one))


@MODES
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_whatever_a_rule_describes_is_good_either_way(data: st.DataObject, rules: EventValidator) -> None:
    """No rule asks for what the types made from it refuse."""
    one = data.draw(described_events(rules))
    assert rules.faults(one) == []
    assert is_good(one, rules=rules)


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
def test_what_official_clients_send_is_good(category: str, fields: dict[str, Any], rules: EventValidator) -> None:
    """Public facts 2.3 and 2.5."""
    assert rules.faults(good(category, **fields)) == []


@MODES
def test_every_event_of_an_official_client_is_good(rules: EventValidator) -> None:
    """What one really sent, over three runs (data/README.md)."""
    recorded = json.loads((Path(__file__).parents[2] / "data" / "official-client-cpp-5.4.0.json").read_text())
    bodies = [base64.b64decode(it["body_b64"]) for it in recorded["requests"] if it["raw_url"].endswith("/events")]
    events = [one for body in bodies for one in json.loads(gzip.decompress(body) if body[:2] == GZIP else body)]
    assert {one["category"] for one in events} > {"user", "business", "health", "sdk_error"}
    assert [(one["category"], rules.faults(one)) for one in events if rules.faults(one)] == []
