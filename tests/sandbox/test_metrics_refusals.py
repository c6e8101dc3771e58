"""Refusals of the metrics service: status, field and suggestion (Wire 2.12, Refusals)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.app_requests import call
from support.game_events import event
from support.hypothesis_profiles import examples
from support.query_bodies import BY_GAME, RETENTION, TIMESERIES, WEEK
from support.sandbox_stage import Stage

ERROR_FIELDS = {"error", "message", "field", "value", "allowed", "did_you_mean"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return one sandbox for all refusals, none of which changes it."""
    stage = Stage(tmp_path_factory.mktemp("refusals") / "state")
    stage.submit([event()])
    stage.submit([event(user_id="theirs", platform="secret")], game_id="9001")
    stage.process()
    yield stage
    stage.sandbox.close()


def nested(depth: int) -> dict[str, Any]:
    """Return a filter of *depth* nested objects."""
    node: dict[str, Any] = {"platform": "ios"}
    for _ in range(depth - 1):
        node = {"and": [node]}
    return node


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return *body* without the fields *names*."""
    return {name: value for name, value in body.items() if name not in names}


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("nonsense", TIMESERIES, 422, "metric"),
    ("event_count", TIMESERIES | {"game": "1001"}, 422, "game"),
    ("event_count", BY_GAME, 422, "split_by"),
    ("event_count", TIMESERIES | {"split_by": "platform"}, 422, "query"),
    ("event_count", WEEK, 422, "query"),
    ("event_count", TIMESERIES | {"since_days_ago": 1}, 422, "since_days_ago"),
    ("event_count", TIMESERIES | {"limit": 10}, 422, "limit"),
    ("event_count", without(TIMESERIES, "interval"), 422, "interval"),
    ("event_count", TIMESERIES | {"interval": 20261115}, 422, "interval"),
    ("event_count", TIMESERIES | {"interval": None}, 422, "interval"),
    ("event_count", TIMESERIES | {"interval": "2026-11-15"}, 400, "interval"),
    ("event_count", TIMESERIES | {"interval": ""}, 400, "interval"),
    ("event_count", TIMESERIES | {"interval": "2026-11-15/2026-11-15"}, 400, "interval"),
    ("event_count", TIMESERIES | {"interval": "0001-01-01/9999-12-31", "granularity": "week"}, 422, "interval"),
    ("event_count", TIMESERIES | {"interval": "1600-01-01/P417Y", "granularity": "month"}, 422, "interval"),
    ("event_count", TIMESERIES | {"interval": "2026-11-15/2026-11-14"}, 400, "interval"),
    ("event_count", TIMESERIES | {"interval": "2026-10-01/P32D"}, 422, "interval"),
    ("event_count", without(TIMESERIES, "granularity"), 422, "granularity"),
    ("event_count", TIMESERIES | {"granularity": "hour"}, 422, "granularity"),
    ("event_count", WEEK | {"query": {"type": "group"}}, 422, "query.dimension"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "plattform"}}, 422, "query.dimension"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "platform", "limit": 0}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "platform", "limit": 30001}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "timeseries", "limit": 0}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "split", "dimensions": ["platform"]}}, 422, "query.dimensions"),
    ("event_count", WEEK | {"query": {"type": "heap"}}, 422, "query.type"),
    ("event_count", TIMESERIES | {"filter": {"plattform": "ios"}}, 422, "filter"),
    ("event_count", TIMESERIES | {"filter": {"and": []}}, 422, "filter"),
    ("event_count", TIMESERIES | {"filter": {"platform": 7}}, 422, "filter.platform"),
    ("event_count", TIMESERIES | {"filter": nested(17)}, 422, "filter"),
    ("event_count", TIMESERIES | {"filter": {"or": [{"platform": "ios"}] * 500}}, 422, "filter"),
    ("event_count", TIMESERIES | {"games": "1001"}, 422, "games"),
    ("event_count", TIMESERIES | {"games": ["1001", "77"]}, 422, "games"),
    ("event_count", TIMESERIES | {"studios": ["s1", "s3"]}, 422, "studios"),
    ("conversion", TIMESERIES, 422, "query"),
    ("conversion", TIMESERIES | {"game": "77"}, 422, "game"),
    ("conversion", TIMESERIES | {"game": "1001", "games": ["77"]}, 422, "games"),
    ("conversion", TIMESERIES | {"game": ["1001"]}, 422, "game"),
    ("conversion", BY_GAME | {"game": "1001"}, 422, "game"),
    ("conversion", BY_GAME | {"since_days_ago": 1}, 422, "since_days_ago"),
    ("conversion", without(BY_GAME, "granularity"), 422, "granularity"),
    ("returning_users", BY_GAME | {"since_days_ago": 0}, 422, "since_days_ago"),
    ("returning_users", TIMESERIES | {"since_days_ago": 1}, 422, "query"),
    ("retention_retro", BY_GAME, 422, "since_days_ago"),
    ("retention_retro", RETENTION | {"granularity": "week"}, 422, "granularity"),
    ("retention_retro", RETENTION | {"split_by": "ad_type"}, 422, "split_by"),
    ("retention_retro", RETENTION | {"filter": {"ilrd_network_name": "x"}}, 422, "filter"),
    ("retention_retro", without(RETENTION, "split_by"), 422, "query"),
    ("retention_retro", RETENTION | {"interval": "2026-10-01/P32D"}, 422, "interval"),
]


@pytest.mark.parametrize(("metric", "body", "status", "field"), REFUSED)
def test_a_refusal_names_field_value_and_rule(stage: Stage, metric: str, body: Any, status: int, field: str) -> None:
    """A refused query gets 422, or 400 if unreadable, and all error fields.

    Wire 2.12, Refusals.
    """
    answer = stage.ask(metric, **body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert set(answer.json()) == ERROR_FIELDS


@pytest.mark.parametrize(("metric", "body", "status", "field"), REFUSED)
def test_a_message_shows_a_sent_value_as_json(stage: Stage, metric: str, body: Any, status: int, field: str) -> None:
    """The message of a refusal never shows Python's words for null, true or false.

    Wire 2.12, Refusals.
    """
    answer = stage.ask(metric, **body)
    assert answer.status_code == status
    assert answer.json()["message"].startswith(field)
    assert not re.search(r"\b(None|True|False)\b", answer.json()["message"])


@pytest.mark.parametrize(
    ("metric", "body", "message"),
    [
        ("event_count", WEEK, "query is missing: send it, or split_by instead"),
        (
            "event_count",
            TIMESERIES | {"split_by": "platform"},
            'query = {"type":"timeseries"} cannot be combined with split_by: send only one.',
        ),
        ("conversion", TIMESERIES, 'query = {"type":"timeseries"} is not enough for conversion, which exists per game'),
        ("event_count", TIMESERIES | {"query": None}, "query is missing"),
        ("event_count", without(TIMESERIES, "interval"), "interval is missing: send a string, an ISO 8601 interval."),
        ("event_count", TIMESERIES | {"interval": None}, "interval is missing: send a string, an ISO 8601 interval."),
        ("event_count", without(TIMESERIES, "granularity"), "granularity is missing: send a string."),
        (
            "event_count",
            TIMESERIES | {"granularity": None},
            "granularity is missing: send a string. Allowed: day, week",
        ),
        ("event_count", TIMESERIES | {"granularity": True}, "granularity = true must be a string."),
        ("event_count", WEEK | {"query": {}}, "query.type is missing. Allowed: group,"),
        ("event_count", WEEK | {"query": {"type": None}}, "query.type is missing. Allowed: group,"),
        (
            "event_count",
            WEEK | {"query": {"type": "group", "dimension": None}},
            "query.dimension is missing: send a string.",
        ),
        (
            "event_count",
            WEEK | {"query": {"type": "split"}},
            "query.dimensions must be a list of two dimensions.",
        ),
        ("event_count", TIMESERIES | {"games": [None]}, "games = [null] must be a list of strings."),
        ("event_count", TIMESERIES | {"filter": {"platform": None}}, "filter.platform = null must be a string or"),
        ("event_count", TIMESERIES | {"nonsense": None}, "nonsense = null is not a field of a metric query."),
        ("retention_retro", BY_GAME, "since_days_ago is missing: retention_retro needs it."),
    ],
)
def test_a_message_tells_a_missing_field_from_a_sent_one(stage: Stage, metric: str, body: Any, message: str) -> None:
    """A field that was not sent, or sent as null, is missing, and any other value is shown as JSON.

    Wire 2.5, Query body; Wire 2.12, Refusals.
    """
    answer = stage.ask(metric, **body)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(message), answer.json()["message"]


@pytest.mark.parametrize(
    ("metric", "body"),
    [
        ("event_count", TIMESERIES | {"filter": nested(16)}),
        ("event_count", TIMESERIES | {"filter": {"or": [{"platform": "ios"}] * 499}}),
        ("event_count", TIMESERIES | {"filter": {"not": {"country_code": [str(number) for number in range(30_000)]}}}),
        ("event_count", TIMESERIES | {"filter": None}),
        ("event_count", TIMESERIES | {"interval": "2026-10-01/P31D"}),
        ("event_count", TIMESERIES | {"interval": "2020-10-01/P5Y", "granularity": "week"}),
        ("event_count", TIMESERIES | {"games": [], "studios": []}),
        ("event_count", TIMESERIES | {"games": ["2002"]}),
        ("event_count", TIMESERIES | {"interval": "9999-12-31/9999-12-31T23:59:59"}),
        ("event_count", TIMESERIES | {"interval": "0001-01-01/P1D"}),
        ("event_count", TIMESERIES | {"filter": {"platform": "\0'\"; DROP TABLE events"}}),
        ("returning_users", TIMESERIES | {"game": "1001"}),
        ("returning_users", TIMESERIES | {"game": "1001", "since_days_ago": 10**60}),
        ("retention_retro", without(RETENTION, "granularity")),
        ("retention_retro", RETENTION | {"granularity": None}),
        ("retention_retro", RETENTION | {"since_days_ago": 10**60}),
        ("retention_retro", RETENTION | {"since_days_ago": 10**6}),
        ("retention_retro", RETENTION | {"interval": "9999-12-31/9999-12-31T23:59:59"}),
        ("retention_retro", RETENTION | {"interval": "0001-01-01/P1D"}),
    ],
)
def test_values_at_the_limits_are_answered(stage: Stage, metric: str, body: Any) -> None:
    """Values at the limits of what is allowed get 200 (Wire 2.5, Query body)."""
    assert stage.ask(metric, **body).status_code == 200


@pytest.mark.parametrize(
    ("metric", "body", "suggestion"),
    [
        ("user_uniqe", TIMESERIES, "user_unique"),
        ("event_count", WEEK | {"query": {"type": "group", "dimension": "plattform"}}, "platform"),
        ("event_count", TIMESERIES | {"filter": {"not": {"contry_code": "US"}}}, "country_code"),
        ("event_count", TIMESERIES | {"granularity": "weeks"}, "week"),
        ("event_count", WEEK | {"query": {"type": "groups"}}, "group"),
        ("event_count", TIMESERIES | {"filters": {"platform": "ios"}}, "filter"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(stage: Stage, metric: str, body: Any, suggestion: str) -> None:
    """An unknown name gets the nearest known one, in a field and in the message.

    Wire 2.12, Refusals.
    """
    answer = stage.ask(metric, **body).json()
    assert answer["did_you_mean"] == suggestion
    assert suggestion in answer["message"]


def post(stage: Stage, body: bytes) -> httpx.Response:
    """Post *body* as a query of event_count."""
    headers = {"X-API-Key": "key-of-acme"}
    return call(stage.metrics_app, "POST", "/metrics/v1/metrics/event_count", content=body, headers=headers)


@pytest.mark.parametrize("body", [b"", b"{", b"{} {}", b"\xff", b"[" * 100_000, b'{"a": 1e999}', b"NaN"])
def test_an_unreadable_body_is_400(stage: Stage, body: bytes) -> None:
    """A body that is not strict JSON is refused with 400, which names the field "body".

    Wire 2.12, Refusals.
    """
    answer = post(stage, body)
    assert (answer.status_code, set(answer.json()), answer.json()["field"]) == (400, ERROR_FIELDS, "body")


@pytest.mark.parametrize("body", [b"[]", b"null", b"7", b'"event_count"', b"true"])
def test_json_that_is_no_object_is_422(stage: Stage, body: bytes) -> None:
    """A JSON body that is not an object gets 422 for the field "body" (Wire 2.12, Refusals)."""
    answer = post(stage, body)
    assert (answer.status_code, answer.json()["field"]) == (422, "body")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["day", "platform", "1001"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ["interval", "granularity", "query", "filter", "games", "studios", "game", "split_by", "since_days_ago", "x"]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    change=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=2),
    metric=st.sampled_from(["event_count", "conversion", "retention_retro"]),
)
def test_no_body_is_answered_with_5xx(stage: Stage, change: dict[str, Any], metric: str) -> None:
    """Any value in any field gets 200, 400 or 422 (Wire 2.12, Refusals)."""
    answer = stage.ask(metric, **TIMESERIES | change)
    assert answer.status_code in (200, 400, 422), answer.text


@pytest.mark.parametrize("key", ["", "key-of-acm", "key-of-acme ", "KEY-OF-ACME", "0123456789abcdef0123456789abcdef"])
@pytest.mark.parametrize("path", ["metrics", "interval", "dimensions", "dimensions/platform", "studios", "games"])
def test_an_unknown_key_is_401(stage: Stage, key: str, path: str) -> None:
    """Every path gets 401 for a key that is not exactly an API key (Wire 2.2, API key)."""
    answer = stage.get(path, api_key=key)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorised")


def test_a_missing_key_is_401(stage: Stage) -> None:
    """A request without a key gets 401 (Wire 2.2, API key)."""
    assert call(stage.metrics_app, "POST", "/metrics/v1/metrics/revenue").status_code == 401


def test_without_a_key_every_error_looks_the_same(stage: Stage) -> None:
    """The key is checked first, so that other mistakes are not revealed (Wire 2.2, API key)."""
    answers = [stage.ask("nonsense", api_key="x"), stage.ask("revenue", api_key="x", interval=7)]
    assert {answer.status_code for answer in answers} == {401}
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("path", "query", "status", "field"),
    [
        ("dimensions/platform", {}, 422, "interval"),
        ("studios", {}, 422, "interval"),
        ("games", {}, 422, "interval"),
        ("dimensions/platform", {"interval": "soon"}, 400, "interval"),
        ("studios", {"interval": ""}, 400, "interval"),
        ("games", {"interval": "2026-11-15/2026-11-15"}, 400, "interval"),
        ("dimensions/plattform", {"interval": "2026-11-15/P7D"}, 422, "dimension"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "0"}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "30001"}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "1e2"}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "-5"}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": ""}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "9" * 30}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": "٣"}, 422, "limit"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "limit": ["5", "5"]}, 422, "limit"),
        ("games", {"interval": ["2026-11-15/P7D", "2026-11-01/P7D"]}, 422, "interval"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "games": "77"}, 422, "games"),
        ("dimensions/platform", {"interval": "2026-11-15/P7D", "studios": ["s1", "s3"]}, 422, "studios"),
        ("games", {"interval": "2026-11-15/P7D", "studios": "s3"}, 422, "studios"),
    ],
)
def test_a_list_refuses_as_a_query_does(stage: Stage, path: str, query: Any, status: int, field: str) -> None:
    """A list is refused with the status and field of the same mistake in a query.

    Wire 2.11, Lists; Wire 2.12, Refusals.
    """
    answer = stage.get(path, **query)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


@pytest.mark.parametrize(
    "interval", ["2026-11-15T00:00:00+01:00/P7D", "P7D/2026-11-22", "2026-11-15/2026-11-22", "2026-11-15/P1W"]
)
def test_a_list_reads_an_interval_as_a_query_does(stage: Stage, interval: str) -> None:
    """A list reads every form of an interval, with the plus sign quoted or not.

    Wire 2.8, Intervals and buckets; Wire 2.11, Lists.
    """
    unquoted = call(
        stage.metrics_app, "GET", f"/metrics/v1/games?interval={interval}", headers={"X-API-Key": "key-of-acme"}
    )
    assert stage.get("games", interval=interval).json() == unquoted.json() == [{"id": "1001", "title": "Tile Saga"}]


def test_events_of_another_organisation_are_in_no_answer(stage: Stage) -> None:
    """Answers contain the events of the caller's organisation alone (Wire 2.13, Scope)."""
    series = TIMESERIES | {"interval": "2026-11-20/P1D"}
    of_acme, of_rival = (
        stage.ask("event_count", api_key=f"key-of-{name}", **series).json() for name in ("acme", "rival")
    )
    assert [answer["result"][0]["result"]["event_count"] for answer in (of_acme, of_rival)] == [1, 1]
    assert "secret" not in stage.get("dimensions/platform", interval=WEEK["interval"]).text


def test_a_filter_cannot_select_another_organisation_s_game(stage: Stage) -> None:
    """A filter by another organisation's game or value selects no event (Wire 2.13, Scope)."""
    for filter_ in ({"game_id": "9001"}, {"not": {"game_id": "1001"}}, {"platform": "secret"}):
        answer = stage.ask("event_count", **TIMESERIES | {"filter": filter_}).json()
        assert {bucket["result"]["event_count"] for bucket in answer["result"]} == {0}


def test_an_organisation_lists_its_own(stage: Stage) -> None:
    """Studios and games are those of the caller's organisation.

    Wire 2.11, Lists; Wire 2.13, Scope.
    """
    lists = [stage.get(path, api_key="key-of-rival", interval=WEEK["interval"]).json() for path in ("studios", "games")]
    assert lists == [[{"id": "1", "name": "Studio 1"}], [{"id": "9001", "title": "Game 9001"}]]


def test_production_games_are_never_listed(stage: Stage) -> None:
    """A production game is not in the list of games (Wire 2.13, Scope)."""
    listed = stage.get("games", interval="2020-01-01/P20Y", studios="s2").json()
    assert listed == []


def test_games_and_studios_without_events_in_the_interval_are_not_listed(stage: Stage) -> None:
    """Games and studios without events in the interval are not listed (Wire 2.11, Lists)."""
    assert stage.get("games", interval="2026-11-21/P1D").json() == []
    assert stage.get("studios", interval="2026-11-21/P1D").json() == []


@pytest.mark.parametrize("query", [{"studios": "s1,s2"}, {"studios": ["s1", "s2"]}, {"studios": "s1"}, {}])
def test_several_values_may_be_repeated_or_come_with_commas(stage: Stage, query: dict[str, Any]) -> None:
    """A parameter with several values is repeated or separated by commas (Wire 2.11, Lists)."""
    assert len(stage.get("games", interval=WEEK["interval"], **query).json()) == 1


@pytest.mark.parametrize("interval", ["2026-11-15/2026-11-15", "2026-10-01/P40D", "P40D/2026-11-10"])
def test_the_interval_of_a_refusal_is_as_it_was_sent(stage: Stage, interval: str) -> None:
    """Whatever other form of it we have (Wire 2.12, Refusals)."""
    answer = stage.ask("event_count", **TIMESERIES | {"interval": interval})
    assert answer.json()["value"] == interval
    assert f"'{interval}'" in answer.json()["message"]


def test_the_query_of_a_refusal_is_as_it_was_sent(stage: Stage) -> None:
    """Without the limit that it has by default."""
    query = {"type": "group", "dimension": "platform"}
    answer = stage.ask("conversion", **TIMESERIES | {"query": query})
    assert (answer.json()["field"], answer.json()["value"]) == ("query", query)
