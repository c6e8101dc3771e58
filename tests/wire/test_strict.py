"""The strict mode: what the documentation does not describe is refused, and named (public facts 1.12, 2.3 to 2.5)."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings

from conftest import examples
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import LENIENT, MOST_FAULTS, STRICT, VALIDATORS, Validation
from gamelens.wire.field_rules import Violation
from support.candidate_events import good, near_events

UUID = "0a1b2c3d-0000-4000-8000-00000000000f"
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("user", {"own_field": 1}, "no_extra_properties_allowed", "/own_field"),
    ("user", {"a/b~": 1}, "no_extra_properties_allowed", "/a~1b~0"),
    ("user", {"length": 5}, "no_extra_properties_allowed", "/length"),
    ("user", {"platform": "IOS"}, "not_in_enum", "/platform"),
    ("user", {"platform": "playstation"}, "not_in_enum", "/platform"),
    ("user", {"os_version": "17.0"}, "no_match", "/os_version"),
    ("user", {"os_version": "ios"}, "no_match", "/os_version"),
    ("user", {"os_version": "ios 1.2.3.4"}, "no_match", "/os_version"),
    ("user", {"os_version": "ios 123456"}, "no_match", "/os_version"),
    ("user", {"os_version": "ios 17\n"}, "no_match", "/os_version"),
    ("user", {"os_version": "beos 5"}, "no_match", "/os_version"),
    ("user", {"sdk_version": "rest api v3"}, "no_match", "/sdk_version"),
    ("user", {"sdk_version": "REST API v2"}, "no_match", "/sdk_version"),
    ("user", {"sdk_version": "1.0"}, "no_match", "/sdk_version"),
    ("user", {"sdk_version": "cpp 5.4.0 beta"}, "no_match", "/sdk_version"),
    ("user", {"engine_version": "unity"}, "no_match", "/engine_version"),
    ("user", {"engine_version": "quake 3"}, "no_match", "/engine_version"),
    ("user", {"session_id": "1"}, "no_match", "/session_id"),
    ("user", {"session_id": UUID.upper()}, "no_match", "/session_id"),
    ("user", {"session_id": UUID.replace("-", "")}, "no_match", "/session_id"),
    ("user", {"event_uuid": "1"}, "no_match", "/event_uuid"),
    ("user", {"client_ts": -1}, "not_in_range", "/client_ts"),
    ("user", {"client_ts": 100_000_000_000}, "not_in_range", "/client_ts"),
    ("user", {"google_aid": 5}, "wrong_type", "/google_aid"),
    ("user", {"custom_fields": {f"k{i}": i for i in range(51)}}, "wrong_size", "/custom_fields"),
    ("user", {"custom_fields": {"a key": 1}}, "no_match", "/custom_fields/a key"),
    ("user", {"custom_fields": {"k" * 65: 1}}, "no_match", "/custom_fields/" + "k" * 65),
    ("user", {"custom_fields": {"k": ""}}, "wrong_length", "/custom_fields/k"),
    ("user", {"custom_fields": {"k": "x" * 257}}, "wrong_length", "/custom_fields/k"),
    ("user", {"custom_fields": {"k": None}}, "wrong_type", "/custom_fields/k"),
    ("user", {"custom_fields": {"k": [1]}}, "wrong_type", "/custom_fields/k"),
    ("user", {"configurations_v3": ["a"]}, "wrong_type", "/configurations_v3/0"),
    ("user", {"configurations_v3": [{"key": "a", "id": "b"}]}, "missing_required_property", "/configurations_v3/0/vsn"),
    ("user", {"configurations_v3": [{"key": "a", "id": "b", "vsn": "1"}]}, "wrong_type", "/configurations_v3/0/vsn"),
    (
        "user",
        {"configurations_v3": [{"key": "a", "id": "b", "vsn": 1, "value": 2}]},
        "no_extra_properties_allowed",
        "/configurations_v3/0/value",
    ),
    ("business", {"receipt_info": {"store": "steam"}}, "not_in_enum", "/receipt_info/store"),
    ("business", {"receipt_info": {"receipt": 5}}, "wrong_type", "/receipt_info/receipt"),
    ("business", {"receipt_info": {"signature": {}}}, "wrong_type", "/receipt_info/signature"),
    ("business", {"receipt_info": {"price": 1}}, "no_extra_properties_allowed", "/receipt_info/price"),
    ("progression", {"event_id": "Start:w1"}, "no_extra_properties_allowed", "/score"),
    ("error", {"line_number": 5}, "no_extra_properties_allowed", "/line_number"),
    ("ads", {"ad_sdk_name": "Unity"}, "no_match", "/ad_sdk_name"),
    ("ads", {"ad_sdk_name": "unity ads"}, "no_match", "/ad_sdk_name"),
    ("ads", {"ad_sdk_name": "unity_ads"}, "no_match", "/ad_sdk_name"),
    ("ads", {"ad_fail_show_reason": "no_fill"}, "no_extra_properties_allowed", "/ad_fail_show_reason"),
    ("ads", {"ad_duration": 100}, "no_extra_properties_allowed", "/ad_duration"),
    ("impression", {"impression_data": {}}, "wrong_size", "/impression_data"),
    ("sdk_error", {"error_category": "other"}, "not_in_enum", "/error_category"),
    ("sdk_error", {"error_area": "other"}, "not_in_enum", "/error_area"),
    ("sdk_error", {"error_action": "other"}, "not_in_enum", "/error_action"),
    ("sdk_error", {"error_parameter": "other"}, "not_in_enum", "/error_parameter"),
    ("health", {"fps_data_table": [0] * 120}, "wrong_size", "/fps_data_table"),
    ("health", {"memory_sys_data_table": [0] * 121}, "wrong_size", "/memory_sys_data_table"),
    ("health", {"memory_app_data_table": [0] * 102}, "wrong_size", "/memory_app_data_table"),
    ("health", {"fps_data_table": [0] * 120 + [0.5]}, "wrong_type", "/fps_data_table/120"),
]


def is_strictly_good(one: Any) -> bool:
    try:
        return len(STRICT.decode(json.dumps([one]).encode())) == 1
    except msgspec.DecodeError:
        return False


@pytest.mark.parametrize(("category", "fields", "error_type", "path"), REFUSED)
def test_strict_refuses_and_lenient_takes(category: str, fields: dict[str, Any], error_type: str, path: str) -> None:
    """Public facts 2.3 to 2.5; one thing wrong is one fault."""
    one = good(category, **fields)
    assert STRICT.faults(one) == [Violation(error_type, path)]
    assert not is_strictly_good(one)
    assert LENIENT.faults(one) == []


@pytest.mark.parametrize(
    ("category", "fields"),
    [
        ("user", {"platform": "uwp_desktop", "os_version": "uwp_desktop 0.0.0"}),
        ("user", {"platform": "webgl", "os_version": "webplayer 1.0"}),
        ("user", {"platform": "blackBerry", "os_version": "unknown 0.0.0"}),
        ("user", {"sdk_version": "rest api v2"}),
        ("user", {"sdk_version": "uwp_cpp 3.2.6"}),
        ("user", {"sdk_version": "javascript 5.0.0", "browser_version": "chrome 120"}),
        ("user", {"sdk_version": "unity 7.10.6-beta"}),
        ("user", {"sdk_version": "unreal 5.1a", "engine_version": "unreal 5.1"}),
        ("user", {"event_uuid": UUID.upper()}),
        ("user", {"client_ts": 0}),
        ("user", {"client_ts": 99_999_999_999}),
        ("user", {"custom_fields": {f"k{i}": "x" * 256 for i in range(50)}}),
        ("user", {"custom_fields": {}}),
        ("progression", {"event_id": "Fail:w1", "score": 5}),
        ("error", {"function_name": "", "line_number": 5}),
        ("error", {"function_name": "Update"}),
        ("ads", {"ad_action": "failed_show", "ad_fail_show_reason": "no_fill"}),
        ("ads", {"ad_type": "video", "ad_duration": 100}),
        ("ads", {"ad_type": "rewarded_video", "ad_duration": 100}),
        ("business", {"receipt_info": {"store": "unknown"}}),
    ],
)
def test_strict_takes_what_is_documented(category: str, fields: dict[str, Any]) -> None:
    """Public facts 1.12, 2.4 and 2.5."""
    one = good(category, **fields)
    assert STRICT.faults(one) == []
    assert is_strictly_good(one)


def test_the_cases_above_show_every_error_type() -> None:
    """Public facts 1.7: names of the collector's own vocabulary."""
    assert {error_type for _, _, error_type, _ in REFUSED} == {
        *("missing_required_property", "wrong_type", "no_match", "not_in_enum", "not_in_range"),
        *("wrong_length", "wrong_size", "no_extra_properties_allowed"),
    }


@settings(max_examples=examples(300), deadline=None)
@given(one=near_events())
def test_what_lenient_refuses_strict_refuses(one: Any) -> None:
    """The overlay only adds."""
    if LENIENT.faults(one):
        assert STRICT.faults(one)


@pytest.mark.parametrize("category", [*CATEGORIES, "unknown"])
def test_strict_has_a_rule_for_every_field_of_every_category_and_for_no_other(category: str) -> None:
    """One table: the overlay replaces rules of fields and adds none."""
    assert STRICT.rule(category).members.keys() == LENIENT.rule(category).members.keys()


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_category_is_open(category: str) -> None:
    assert STRICT.faults(good(category, own=1)) == [Violation("no_extra_properties_allowed", "/own")]


def test_of_an_unknown_category_only_the_common_fields_are_judged() -> None:
    """Nobody can tell which fields it should have."""
    assert STRICT.faults(good(category="mine", own=1, platform="x")) == [
        Violation("not_in_enum", "/category"),
        Violation("not_in_enum", "/platform"),
    ]


def test_all_faults_of_an_event_are_listed() -> None:
    """contract, Collector: every error listed."""
    one = good("ads", ad_type="popup", ad_duration=-1, own=1, custom_fields={"a b": ""})
    del one["device"]
    assert {(fault.error_type, fault.path) for fault in STRICT.faults(one)} == {
        ("missing_required_property", "/device"),
        ("not_in_enum", "/ad_type"),
        ("not_in_range", "/ad_duration"),
        ("no_extra_properties_allowed", "/ad_duration"),
        ("no_extra_properties_allowed", "/own"),
        ("no_match", "/custom_fields/a b"),
        ("wrong_length", "/custom_fields/a b"),
    }


def test_but_no_more_than_a_hundred() -> None:
    """The sandbox package, Our choices: an answer stays in proportion to what was sent."""
    assert len(STRICT.faults(good(**{f"own_{number}": 1 for number in range(1000)}))) == MOST_FAULTS == 100


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_lenient_event_has_more_faults_than_are_told(category: str) -> None:
    """contract, Collector: every error listed."""
    everything = {name: object() for name in LENIENT.rule(category).members}
    assert len(LENIENT.faults(everything | {"category": category})) < MOST_FAULTS


def test_each_mode_has_its_rulebook() -> None:
    assert set(VALIDATORS) == set(get_args(Validation))
