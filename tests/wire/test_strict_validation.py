"""Strict validation, which rejects everything undocumented (Wire 3.7, Strict validation)."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings

from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_validator import LENIENT, MOST_VIOLATIONS, STRICT, VALIDATORS, Validation
from gamelens.wire.rule_checking import Violation
from support.candidate_events import good, near_events
from support.hypothesis_profiles import examples

UUID = "0a1b2c3d-0000-4000-8000-00000000000f"
REJECTED: list[tuple[str, dict[str, Any], str, str]] = [
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


def is_strictly_good(candidate: Any) -> bool:
    """Return whether the typed decoder of strict mode accepts an event."""
    try:
        return len(STRICT.decode(json.dumps([candidate]).encode())) == 1
    except msgspec.DecodeError:
        return False


@pytest.mark.parametrize(("category", "fields", "error_type", "path"), REJECTED)
def test_strict_mode_rejects_and_lenient_mode_accepts(
    category: str, fields: dict[str, Any], error_type: str, path: str
) -> None:
    """An undocumented value has one violation in strict mode, none in lenient mode.

    Wire 3.7, Strict validation.
    """
    candidate = good(category, **fields)
    assert STRICT.violations(candidate) == [Violation(error_type, path)]
    assert not is_strictly_good(candidate)
    assert LENIENT.violations(candidate) == []


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
def test_strict_mode_accepts_documented_fields(category: str, fields: dict[str, Any]) -> None:
    """Documented values at the edges of their rules pass in strict mode.

    Wire 3.7, Strict validation.
    """
    candidate = good(category, **fields)
    assert STRICT.violations(candidate) == []
    assert is_strictly_good(candidate)


def test_the_cases_above_show_every_error_type() -> None:
    """The cases of this module cover the whole vocabulary of error types.

    Wire 1.9, Error types.
    """
    assert {error_type for _, _, error_type, _ in REJECTED} == {
        *("missing_required_property", "wrong_type", "no_match", "not_in_enum", "not_in_range"),
        *("wrong_length", "wrong_size", "no_extra_properties_allowed"),
    }


@settings(max_examples=examples(300), deadline=None)
@given(candidate=near_events())
def test_strict_mode_rejects_all_that_lenient_mode_rejects(candidate: Any) -> None:
    """An event with violations in lenient mode has violations in strict mode.

    Wire 3.7, Strict validation.
    """
    if LENIENT.violations(candidate):
        assert STRICT.violations(candidate)


@pytest.mark.parametrize("category", [*CATEGORIES, "unknown"])
def test_both_modes_have_rules_for_the_same_fields(category: str) -> None:
    """Strict mode replaces rules of fields and adds no field to a category.

    Wire 3.7, Strict validation.
    """
    assert STRICT.rule(category).members.keys() == LENIENT.rule(category).members.keys()


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_unknown_field_is_rejected_in_every_category(category: str) -> None:
    """A field that no category defines is an extra property in each of them.

    Wire 3.7, Strict validation.
    """
    assert STRICT.violations(good(category, own=1)) == [Violation("no_extra_properties_allowed", "/own")]


def test_an_unknown_category_has_only_common_rules() -> None:
    """An event of unknown category is checked by the common fields alone.

    Wire 3.7, Strict validation.
    """
    assert STRICT.violations(good(category="mine", own=1, platform="x")) == [
        Violation("not_in_enum", "/category"),
        Violation("not_in_enum", "/platform"),
    ]


def test_all_violations_of_an_event_are_listed() -> None:
    """An event with several mistakes has a violation for each of them.

    Wire 1.8, Rejected events.
    """
    candidate = good("ads", ad_type="popup", ad_duration=-1, own=1, custom_fields={"a b": ""})
    del candidate["device"]
    assert {(fault.error_type, fault.path) for fault in STRICT.violations(candidate)} == {
        ("missing_required_property", "/device"),
        ("not_in_enum", "/ad_type"),
        ("not_in_range", "/ad_duration"),
        ("no_extra_properties_allowed", "/ad_duration"),
        ("no_extra_properties_allowed", "/own"),
        ("no_match", "/custom_fields/a b"),
        ("wrong_length", "/custom_fields/a b"),
    }


def test_at_most_a_hundred_violations_are_listed() -> None:
    """At most 100 violations are listed, so that answers stay in proportion.

    Wire 1.8, Rejected events.
    """
    assert len(STRICT.violations(good(**{f"own_{number}": 1 for number in range(1000)}))) == MOST_VIOLATIONS == 100


@pytest.mark.parametrize("category", CATEGORIES)
def test_lenient_mode_never_reaches_the_limit_of_violations(category: str) -> None:
    """An event that is wrong in every field has fewer than 100 violations.

    Wire 1.8, Rejected events.
    """
    everything = {name: object() for name in LENIENT.rule(category).members}
    assert len(LENIENT.violations(everything | {"category": category})) < MOST_VIOLATIONS


def test_each_mode_has_a_validator() -> None:
    """Every validation mode that the options allow has a validator.

    Wire 3.7, Strict validation.
    """
    assert set(VALIDATORS) == set(get_args(Validation))
