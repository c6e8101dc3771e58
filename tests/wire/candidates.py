"""Events to judge: good ones of every category, and good ones with a few fields changed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conftest import event
from gamelens.wire.events import CATEGORIES, optional_fields, required_fields

OF_CATEGORY: dict[str, dict[str, Any]] = {
    "user": {},
    "session_end": {"length": 0},
    "business": {"event_id": "boost:Mega Boost", "amount": 0, "currency": "EUR", "transaction_num": 1},
    "resource": {"event_id": "Sink:gold:shop:hat", "amount": -1.5},
    "progression": {"event_id": "Complete:w1:l2:p3", "attempt_num": 2, "score": -4},
    "design": {"event_id": "a:b (c):d!:e?:f.g", "value": -0.5},
    "error": {"severity": "info", "message": ""},
    "ads": {"ad_sdk_name": "unity", "ad_placement": "home", "ad_type": "banner", "ad_action": "show"},
    "impression": {"ad_network_name": "max", "ad_network_version": "1.2.3", "impression_data": {}},
    "sdk_error": {"error_category": "http", "error_area": "events_http", "error_action": "fail_http_400"},
    "sdk_init": {"is_first_sdk_init": True, "app_boot_time": 12.5},
    "health": {"fps_data_table": [0, 1], "memory_sys_total": 1},
}


def good(kind: str = "user", /, **fields: Any) -> dict[str, Any]:
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
)
FIELDS = sorted(
    {name for category in CATEGORIES for name in {**required_fields(category), **optional_fields(category)}}
)


@st.composite
def near_events(draw: st.DrawFn) -> Any:
    """A good event with a few fields changed, added or taken away."""
    one: dict[str, Any] = good(draw(st.sampled_from(CATEGORIES)))
    for name in draw(st.lists(st.sampled_from(sorted({*one, *FIELDS, "category"})), max_size=4)):
        match draw(st.sampled_from(["change", "change", "drop", "other category"])):
            case "change":
                one[name] = draw(SCALARS)
            case "drop":
                one.pop(name, None)
            case "other category":
                one["category"] = draw(st.sampled_from(CATEGORIES))
    return draw(st.sampled_from([one] * 30 + [[one], None, 5]))
