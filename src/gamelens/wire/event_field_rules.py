"""The fields of every category of events, and the stricter rules of the strict mode.

The first tables are lenient: types and bounds where they are documented, free text for platforms and versions, and no
rule for identifiers, from which nothing is computed. The strict tables replace single rules and add no field.
Wire 3.3, Common fields; Wire 3.5, Category fields; Wire 3.7, Strict validation.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.limits import MAX_SAFE_INTEGER
from gamelens.wire.rule_checking import FieldRule, RequiredSibling

_PART: Final = r"(?a:[A-Za-z0-9\s\-_\.\(\)\!\?]{1,64})"


def _text(shortest: int = 1, longest: int = 64) -> FieldRule:
    return FieldRule(shortest=shortest, longest=longest)


def _whole(least: int | None = None, most: int | None = None) -> FieldRule:
    return FieldRule(kind="integer", least=least, most=most)


def _one_of(*values: str) -> FieldRule:
    return FieldRule(enum=values)


def _like(pattern: str) -> FieldRule:
    return FieldRule(pattern=rf"^{pattern}\Z")


def _whole_numbers(count: int) -> FieldRule:
    return FieldRule(kind="array", shortest=count, longest=count, items=_whole())


_ANY: Final = FieldRule(kind="any")
_ANY_TEXT: Final = FieldRule()
_FLAG: Final = FieldRule(kind="boolean")
_NUMBER: Final = FieldRule(kind="number")
_OBJECT: Final = FieldRule(kind="object")
_ARRAY: Final = FieldRule(kind="array")
_DEVICE: Final = ("v", "sdk_version", "os_version", "manufacturer", "device", "platform")
_PLAYER: Final = ("user_id", "session_id", "session_num")
_IDENTIFIERS: Final = (
    *("ios_idfa", "ios_idfv", "ios_bundle_id", "ios_app_version", "ios_app_build", "google_aid", "google_aid_src"),
    *("android_id", "android_app_set_id", "android_bundle_id", "android_app_version", "android_app_build"),
    *("android_app_signature", "android_channel_id", "googleplus_id", "facebook_id", "oaid", "uwp_aid", "uwp_id"),
    "tizen_id",
)
# The decoder searches for a field after the last one found, so the most frequent come first, in the order of sending.
_COMMON: Final = {
    "v": _whole(2, 2),
    "sdk_version": _text(),
    "os_version": _text(),
    "manufacturer": _text(longest=32),
    "device": _text(longest=32),
    "platform": _text(longest=32),
    "country_code": FieldRule(pattern=r"^[A-Za-z]{2}\Z", nullable=True),
    "user_id": _text(),
    "session_id": _text(),
    "session_num": _whole(1),
    "build": _text(longest=32),
    "connection_type": _one_of("wwan", "wifi", "lan", "offline"),
    "client_ts": _whole(),
    "event_uuid": _text(),
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
    "current_session_length": _whole(),
    "lifetime_session_length": _whole(),
    "browser_version": _ANY_TEXT,
    "install_publisher": _text(),
    "install": _FLAG,
    "limit_ad_tracking": _FLAG,
    "limited_ad_tracking": _FLAG,
    "jailbroken": _FLAG,
    "logon_gamecenter": _FLAG,
    "logon_googleplay": _FLAG,
    "gender": _one_of("male", "female"),
    "birth_year": _whole(),
    "ios_att": _ANY,
    "ios_testflight": _ANY,
    **dict.fromkeys(_IDENTIFIERS, _ANY),
}
_HARDWARE: Final = {
    "cpu_model": _ANY_TEXT,
    "hardware": _ANY_TEXT,
    "gpu_model": _ANY_TEXT,
    "cpu_num_cores": _NUMBER,
    "memory_sys_total": _NUMBER,
}
_REQUIRED_OF: Final[dict[str, dict[str, FieldRule]]] = {
    "user": {},
    "session_end": {"length": _whole(0, MAX_SAFE_INTEGER)},
    "business": {
        "event_id": _like(f"{_PART}:{_PART}"),
        "amount": _whole(0, MAX_SAFE_INTEGER),
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
_OPTIONAL_OF: Final[dict[str, dict[str, FieldRule]]] = {
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
    "sdk_init": {"is_first_sdk_init": _FLAG, "app_boot_time": _NUMBER, **_HARDWARE},
    "health": {
        "fps_data_table": _ARRAY,
        "memory_sys_data_table": _ARRAY,
        "memory_app_data_table": _ARRAY,
        "memory_app_used": _NUMBER,
        "memory_sys_used": _NUMBER,
        **_HARDWARE,
        "resolution": _ANY_TEXT,
        "storage_device_free": _NUMBER,
        "storage_device_total": _NUMBER,
        "storage_external_free": _NUMBER,
        "storage_external_total": _NUMBER,
    },
}

_VERSION: Final = r"[0-9]{0,5}(\.[0-9]{0,5}){0,2}"
_UUID: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PLATFORMS: Final = (
    *("ios", "android", "windows", "windows_phone", "blackberry", "roku", "tizen", "nacl", "mac_osx", "webplayer"),
    *("linux", "webgl", "tvos", "kai_os", "blackBerry", "unknown", "samsung_tv", "ps3", "ps4", "vita", "psm", "wiiu"),
    *("uwp_mobile", "uwp_desktop", "uwp_iot", "uwp_console", "uwp_surfacehub", "uwp_holographic", "xbox360", "xboxone"),
)
_ENGINES: Final = (
    "unity|unreal|corona|marmalade|cocos2d|xamarin|lumberyard|gamemaker|defold|nativescript|cordova|construct|stencyl"
    "|godot"
)
_SDK_VERSION: Final = (
    rf"(rest api v2|({_ENGINES}|air|flutter) {_VERSION}([a,b]?|-alpha|-beta)|[a-z][a-z0-9_]* [0-9]+(\.[0-9]+)*)"
)

_STRICT: Final[dict[str, FieldRule]] = {
    **dict.fromkeys(_IDENTIFIERS, _ANY_TEXT),
    "sdk_version": replace(_like(_SDK_VERSION), longest=64),
    "os_version": _like(f"({'|'.join(_PLATFORMS)}) {_VERSION}"),
    "platform": _one_of(*_PLATFORMS),
    "session_id": _like(_UUID),
    "event_uuid": _like(f"(?i:{_UUID})"),
    "client_ts": _whole(0, 99_999_999_999),
    "engine_version": _like(f"({_ENGINES}) {_VERSION}"),
    # Our choice: booleans pass, because an official client sends them.
    "custom_fields": FieldRule(
        kind="object",
        longest=50,
        names=r"^[a-zA-Z0-9_]{1,64}\Z",
        items=FieldRule(kind="scalar", shortest=1, longest=256),
    ),
    "configurations_v3": FieldRule(
        kind="array",
        items=FieldRule(
            kind="object",
            members={"key": _ANY_TEXT, "id": FieldRule(nullable=True), "vsn": _whole()},
            required=("key", "id", "vsn"),
            is_closed=True,
        ),
    ),
}
_STRICT_OF: Final[dict[str, dict[str, FieldRule]]] = {
    "business": {
        "receipt_info": FieldRule(
            kind="object",
            members={"store": _one_of("apple", "google_play", "unknown"), "receipt": _ANY_TEXT, "signature": _ANY_TEXT},
            is_closed=True,
        ),
    },
    "progression": {"score": replace(_whole(), sibling=RequiredSibling("event_id", "^(Fail|Complete):"))},
    "error": {"line_number": replace(_whole(0), sibling=RequiredSibling("function_name", ""))},
    "ads": {
        "ad_sdk_name": _like(r"[^\sA-Z_]{1,32}"),
        "ad_fail_show_reason": replace(
            _OPTIONAL_OF["ads"]["ad_fail_show_reason"], sibling=RequiredSibling("ad_action", r"^failed_show\Z")
        ),
        "ad_duration": replace(_whole(0), sibling=RequiredSibling("ad_type", r"^(rewarded_)?video\Z")),
    },
    "impression": {"impression_data": replace(_OBJECT, shortest=1)},
    "sdk_error": {
        "error_category": _one_of("event_validation", "db", "init", "http", "json"),
        "error_area": _one_of(
            *("business", "resource", "progression", "design", "error", "ad", "impression", "health", "init_http"),
            *("events_http", "process_events", "add_events_to_store", "sql", "ensure_persisted_states"),
            *("session_start", "session_end", "add_dimensions", "add_fields", "init_request", "send_events"),
            *("internal_init", "json_string_to_map"),
        ),
        "error_action": _one_of(
            *("invalid_currency", "invalid_short_string", "invalid_string", "invalid_long_string"),
            *("invalid_event_part_length", "invalid_event_part_characters", "invalid_store", "invalid_flow_type"),
            *("string_empty_or_null", "not_found_in_available_currencies", "not_found_in_available_item_types"),
            *("invalid_amount", "wrong_progression_order", "invalid_event_id_length", "invalid_event_id_characters"),
            *("invalid_progression_status", "invalid_severity", "invalid_ad_action", "invalid_ad_type"),
            *("invalid_ad_network", "invalid_ad_network_version", "impression_data_null", "db_too_large"),
            *("db_open_or_create", "sql_begin", "sql_set_column", "sql_raw_query", "sql_commit", "sql_rollback"),
            *("json_error", "fail_http_400", "fail_http_401", "fail_http_500", "fail_http_json_decode"),
            "fail_http_json_encode",
        ),
        "error_parameter": _one_of(
            *("currency", "cart_type", "item_type", "item_id", "store", "flow_type", "amount", "progression01"),
            *("progression02", "progression03", "event_id", "progression_status", "severity", "message", "ad_action"),
            *("ad_type", "ad_sdk_name", "ad_placement", "ad_network", "impression_data", "ad_network_version"),
        ),
    },
    "health": {
        "fps_data_table": _whole_numbers(121),
        "memory_sys_data_table": _whole_numbers(101),
        "memory_app_data_table": _whole_numbers(101),
    },
}

CATEGORIES: Final = tuple(_REQUIRED_OF)
"""Every category, with those that SDKs send about themselves last (Wire 3.1, Categories)."""


def event_rule(category: str, *, is_strict: bool) -> FieldRule:
    """Return the rule of a whole event of *category*, the common fields if it is unknown."""
    category_fields = {**_REQUIRED_OF.get(category, {}), **_OPTIONAL_OF.get(category, {})}
    members = {"category": _one_of(*CATEGORIES), **category_fields, **_COMMON}
    if is_strict:
        members |= {**_STRICT, **_STRICT_OF.get(category, {})}
    player = () if category == "sdk_error" else _PLAYER
    required = ("category", *_DEVICE, *player, *_REQUIRED_OF.get(category, {}))
    if not is_strict:  # Our choice: clients send null and "" in optional fields that they have no value for
        judged = (*required, "client_ts")  # a time that is no number is an error of the client
        members = {name: rule if name in judged else replace(rule, may_be_blank=True) for name, rule in members.items()}
    return FieldRule(
        kind="object",
        members=members,
        required=required,
        is_closed=is_strict and category in CATEGORIES,
    )
