"""Both validation modes of the collector over HTTP (Wire 3.7, Strict validation)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from gamelens.errors import BadQuery
from gamelens.sandbox.collector.live_feed import JUDGED_A_SECOND, STRICT_ERRORS, FeedFilter
from gamelens.sandbox.storage.inbox import newest
from gamelens.wire.event_validator import strict_parts
from support.app_requests import Call
from support.candidate_events import good
from support.collector_requests import EVENTS_PATH, GAME_KEY, send_signed
from support.game_events import event
from support.sandbox_stage import NO_EVENTS, Stage, event_counts

UNDOCUMENTED = {"platform": "toaster", "os_version": "toast 1", "sdk_version": "Mine", "own_field": {"kept": [1, None]}}


@pytest.fixture
def strict_stage(make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox with strict validation."""
    return make_stage(validation="strict")


OUTSIDE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "Windows": ({"platform": "Windows", "os_version": "Windows"}, {"not_in_enum /platform", "no_match /os_version"}),
    "macOS, own SDK": (
        {"platform": "macos", "os_version": "macos", "sdk_version": "rest api v2 mygame 0.1.0", "session_id": "dead"},
        {"not_in_enum /platform", "no_match /os_version", "no_match /sdk_version", "no_match /session_id"},
    ),
    "server": ({"platform": "server", "os_version": "linux"}, {"not_in_enum /platform", "no_match /os_version"}),
    "own field": ({"own_field": 1}, {"no_extra_properties_allowed /own_field"}),
    "time of a phone": ({"client_ts": -1}, {"not_in_range /client_ts"}),
    "documented": ({}, set()),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_accepted_events_are_marked_with_what_strict_rules_say(stage: Stage, control_api: Call, case: str) -> None:
    """By default such events are accepted, and shown and counted as what the strict rules would refuse.

    Wire 3.7, Strict validation; Wire 5.2, Live feed.
    """
    fields, errors = OUTSIDE[case]
    assert stage.submit([good("design"), event(**fields), good("ads")]).status_code == 200
    marks = [shown.get("strict_errors", []) for shown in control_api("GET", "/events").json()]
    assert [{f"{error['error_type']} {error['path']}" for error in its} for its in marks] == [set(), errors, set()]
    since_start = control_api("GET", "/summary").json()["since_start"]
    refused = bool(errors)
    assert since_start["strict"]["events"] == {"judged": 3, "refused": refused, "errors": dict.fromkeys(errors, 1)}
    assert [counts["strict_refusals"] for counts in since_start["categories"].values()] == [0, 0, refused]
    assert since_start["games"][GAME_KEY]["strict_refusals"] == refused


def test_headers_and_inits_are_marked_separately(stage: Stage, control_api: Call) -> None:
    """What the strict rules say of headers and inits is counted beside the events (Wire 3.7, Strict validation)."""
    send_signed(stage, json.dumps([event()]).encode(), content_type="text/plain")
    send_signed(stage, b'{"platform": "Windows"}', path=f"/v2/{GAME_KEY}/init")
    strict = control_api("GET", "/summary").json()["since_start"]["strict"]
    assert strict["headers"] == {"judged": 2, "refused": 1, "errors": {"no_match /Content-Type": 1}}
    assert (strict["init"]["judged"], strict["init"]["refused"]) == (1, 1)
    assert {"not_in_enum /platform", "missing_required_property /user_id"} <= strict["init"]["errors"].keys()
    assert strict["events"] == {"judged": 1, "refused": 0, "errors": {}}


def test_a_busy_collector_judges_a_part_of_its_events(stage: Stage, control_api: Call) -> None:
    """Only so many events are judged in a second, and how many they were is beside the counts.

    Fields that a sender invents do not fill the memory. Wire 5.2, Live feed.
    """
    for number in range(20):
        stage.submit([event(**{f"own_{number}_{position}": 1}) for position in range(JUDGED_A_SECOND // 5)])
    strict = control_api("GET", "/summary").json()["since_start"]["strict"]["events"]
    assert 0 < strict["judged"] == strict["refused"] < 20 * JUDGED_A_SECOND // 5
    assert len(strict["errors"]) == STRICT_ERRORS


@pytest.mark.parametrize(
    ("validation", "refused"),
    [
        ("lenient", set()),
        ("strict", {"events", "headers", "init"}),
        ("events", {"events"}),
        ("headers", {"headers"}),
        ("init", {"init"}),
        ("events, init", {"events", "init"}),
    ],
)
def test_events_headers_and_init_are_judged_separately(
    make_stage: Callable[..., Stage], validation: str, refused: set[str]
) -> None:
    """`--validation` names the parts to judge strictly, `strict` all of them (Wire 3.7, Strict validation)."""
    stage = make_stage(validation=validation)
    answers = {
        "events": send_signed(stage, json.dumps([event(platform="Windows")]).encode()),
        "headers": send_signed(stage, json.dumps([event()]).encode(), content_type=None),
        "init": send_signed(stage, b'{"platform": "ios"}', path=f"/v2/{GAME_KEY}/init"),
    }
    assert {part for part, answer in answers.items() if answer.status_code == 400} == refused


def test_bad_headers_do_not_hide_bad_events(strict_stage: Stage) -> None:
    """The answer lists the errors of headers, then those of the events; nothing is collected.

    Wire 1.8, Rejected events.
    """
    bad = event(platform="Windows")
    answer = send_signed(strict_stage, json.dumps([event(), bad]).encode(), content_type=None)
    assert answer.status_code == 400
    assert answer.json() == [
        {"errors": [{"error_type": "missing_required_property", "path": "/Content-Type"}]},
        {"event": bad, "errors": [{"error_type": "not_in_enum", "path": "/platform"}]},
    ]
    assert event_counts(strict_stage) == NO_EVENTS
    assert "no header Content-Type" in strict_stage.refused_requests()[-1].cause


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (EVENTS_PATH, b"[NaN]", {"error_type": "wrong_format", "path": "/"}),
        (f"/v2/{GAME_KEY}/init", b"{", {"error_type": "wrong_format", "path": "/"}),
        (f"/v2/{GAME_KEY}/init", b"{}", {"error_type": "missing_required_property", "path": "/user_id"}),
    ],
)
def test_bad_headers_do_not_hide_a_bad_body(strict_stage: Stage, path: str, body: bytes, error: dict[str, str]) -> None:
    """The errors of headers come first, those of the body behind them (Wire 1.8, Rejected events)."""
    header, content = send_signed(strict_stage, body, path=path, content_type="text/plain").json()
    assert header == {"errors": [{"error_type": "no_match", "path": "/Content-Type"}]}
    assert error in content["errors"]


@pytest.mark.parametrize("validation", ["stict", "", "events,body", "strict,events"])
def test_an_unknown_way_to_judge_is_refused(validation: str) -> None:
    """What is neither a way nor a list of parts is refused with those that there are."""
    with pytest.raises(BadQuery, match=r"lenient|strict"):
        strict_parts(validation)


def test_lenient_mode_accepts_undocumented_values(stage: Stage) -> None:
    """By default, undocumented values and fields are accepted.

    Wire 3.3, Common fields; Wire 3.4, Platforms and versions.
    """
    assert stage.submit([event(**UNDOCUMENTED)]).status_code == 200


def test_strict_mode_rejects_undocumented_values_with_every_reason(strict_stage: Stage) -> None:
    """In strict mode each undocumented value and field has an error.

    Wire 3.7, Strict validation.
    """
    submitted = event(**UNDOCUMENTED)
    answer = strict_stage.submit([submitted])
    assert answer.status_code == 400
    assert answer.json() == [
        {
            "event": submitted,
            "errors": [
                {"error_type": "no_match", "path": "/sdk_version"},
                {"error_type": "no_match", "path": "/os_version"},
                {"error_type": "not_in_enum", "path": "/platform"},
                {"error_type": "no_extra_properties_allowed", "path": "/own_field"},
            ],
        }
    ]


def test_strict_mode_stores_the_good_events_of_a_batch(strict_stage: Stage) -> None:
    """In strict mode the good events of a batch with bad ones are stored.

    Wire 3.7, Strict validation.
    """
    assert strict_stage.submit([good("ads"), good("ads", ad_sdk_name="Unity Ads"), good("design")]).status_code == 400
    assert (event_counts(strict_stage)["accepted"], event_counts(strict_stage)["rejected"]) == (2, 1)


def test_strict_mode_accepts_documented_events(strict_stage: Stage) -> None:
    """Documented events of several categories get 200 in strict mode.

    Wire 3.7, Strict validation.
    """
    assert strict_stage.submit([good("progression"), good("health"), good("impression")]).status_code == 200


@pytest.mark.parametrize("others", [[], [{"category": "bad"}]], ids=["all good", "some bad"])
def test_unknown_fields_are_stored_with_their_event(stage: Stage, others: list[dict[str, str]]) -> None:
    """Unknown fields are on disk with their event, beside good events and bad ones.

    Wire 3.3, Common fields.
    """
    submitted = event(**UNDOCUMENTED, ios_idfa="0-1")
    stage.submit([submitted, *others])
    (batch,) = newest(stage.sandbox.store)
    assert json.loads(gzip.decompress(batch.body) if batch.is_gzipped else batch.body) == [submitted]


def test_a_blank_optional_field_has_no_value(stage: Stage) -> None:
    """Events with `""` and null count, group under null, are no repeats of each other, and are marked.

    Wire 3.3, Common fields.
    """
    blank = dict.fromkeys(("build", "event_uuid", "ab_id", "custom_01", "install_publisher", "country_code"), "")
    events = [event() | blank, event() | blank, event() | dict.fromkeys(blank), event(build="1.0")]
    sent = json.dumps(events).encode()
    assert send_signed(stage, sent).status_code == 200
    stage.process()
    assert event_counts(stage) == NO_EVENTS | {"accepted": 4, "processed": 4}
    query = {"interval": "2026-11-20/2026-11-21", "granularity": "all"}
    for dimension, groups in (("build", [(None, 3), ("1.0", 1)]), ("ab_id", [(None, 4)])):
        body: dict[str, Any] = {**query, "query": {"type": "group", "dimension": dimension}}
        (answer,) = stage.ask("event_count", **body).json()["result"]
        assert [(row[dimension], row["event_count"]) for row in answer["result"]] == groups
    assert [len(shown.errors) for shown in stage.sandbox.live.newest(FeedFilter())] == [0] * 4
    assert stage.sandbox.live.counts()["strict"]["events"]["refused"] == 3
