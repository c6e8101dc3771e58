"""design/metrics, Query kinds and GET lists: what is refused, with which status, and how it is said."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Stage, event, examples
from sandbox.conftest import call

WEEK = {"interval": "2026-11-15/P7D", "granularity": "day"}
SERIES = WEEK | {"query": {"type": "timeseries"}}
BY_GAME = WEEK | {"split_by": "platform"}
RETENTION = BY_GAME | {"since_days_ago": 1}
DETAILS = {"error", "message", "field", "value", "allowed", "did_you_mean"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One sandbox for all refusals: none of them changes it."""
    stage = Stage(tmp_path_factory.mktemp("refusals") / "state")
    stage.submit([event()])
    stage.submit([event(user_id="theirs", platform="secret")], game_id="9001")
    stage.process()
    yield stage
    stage.sandbox.close()


def nested(depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"platform": "ios"}
    for _ in range(depth - 1):
        node = {"and": [node]}
    return node


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("nonsense", SERIES, 422, "metric"),
    ("event_count", SERIES | {"game": "1001"}, 422, "game"),
    ("event_count", BY_GAME, 422, "split_by"),
    ("event_count", SERIES | {"split_by": "platform"}, 422, "query"),
    ("event_count", WEEK, 422, "query"),
    ("event_count", SERIES | {"since_days_ago": 1}, 422, "since_days_ago"),
    ("event_count", SERIES | {"limit": 10}, 422, "limit"),
    ("event_count", without(SERIES, "interval"), 422, "interval"),
    ("event_count", SERIES | {"interval": 20261115}, 422, "interval"),
    ("event_count", SERIES | {"interval": None}, 422, "interval"),
    ("event_count", SERIES | {"interval": "2026-11-15"}, 400, "interval"),
    ("event_count", SERIES | {"interval": ""}, 400, "interval"),
    ("event_count", SERIES | {"interval": "2026-11-15/2026-11-15"}, 400, "interval"),
    ("event_count", SERIES | {"interval": "2026-11-15/2026-11-14"}, 400, "interval"),
    ("event_count", SERIES | {"interval": "2026-10-01/P32D"}, 422, "interval"),
    ("event_count", without(SERIES, "granularity"), 422, "granularity"),
    ("event_count", SERIES | {"granularity": "hour"}, 422, "granularity"),
    ("event_count", WEEK | {"query": {"type": "group"}}, 422, "query.dimension"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "plattform"}}, 422, "query.dimension"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "platform", "limit": 0}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "group", "dimension": "platform", "limit": 30001}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "timeseries", "limit": 0}}, 422, "query.limit"),
    ("event_count", WEEK | {"query": {"type": "split", "dimensions": ["platform"]}}, 422, "query.dimensions"),
    ("event_count", WEEK | {"query": {"type": "heap"}}, 422, "query.type"),
    ("event_count", SERIES | {"filter": {"plattform": "ios"}}, 422, "filter"),
    ("event_count", SERIES | {"filter": {"and": []}}, 422, "filter"),
    ("event_count", SERIES | {"filter": {"platform": 7}}, 422, "filter.platform"),
    ("event_count", SERIES | {"filter": nested(17)}, 422, "filter"),
    ("event_count", SERIES | {"filter": {"or": [{"platform": "ios"}] * 500}}, 422, "filter"),
    ("event_count", SERIES | {"games": "1001"}, 422, "games"),
    ("event_count", SERIES | {"games": ["1001", "77"]}, 422, "games"),
    ("event_count", SERIES | {"studios": ["s1", "s3"]}, 422, "studios"),
    ("conversion", SERIES, 422, "query"),
    ("conversion", SERIES | {"game": "77"}, 422, "game"),
    ("conversion", SERIES | {"game": "1001", "games": ["77"]}, 422, "games"),
    ("conversion", SERIES | {"game": ["1001"]}, 422, "game"),
    ("conversion", BY_GAME | {"game": "1001"}, 422, "game"),
    ("conversion", BY_GAME | {"since_days_ago": 1}, 422, "since_days_ago"),
    ("conversion", without(BY_GAME, "granularity"), 422, "granularity"),
    ("returning_users", BY_GAME | {"since_days_ago": 0}, 422, "since_days_ago"),
    ("returning_users", SERIES | {"since_days_ago": 1}, 422, "query"),
    ("retention_retro", BY_GAME, 422, "since_days_ago"),
    ("retention_retro", RETENTION | {"granularity": "week"}, 422, "granularity"),
    ("retention_retro", RETENTION | {"split_by": "ad_type"}, 422, "split_by"),
    ("retention_retro", RETENTION | {"filter": {"ilrd_network_name": "x"}}, 422, "filter"),
    ("retention_retro", without(RETENTION, "split_by"), 422, "query"),
    ("retention_retro", RETENTION | {"interval": "2026-10-01/P32D"}, 422, "interval"),
]


@pytest.mark.parametrize(("metric", "body", "status", "field"), REFUSED)
def test_a_refusal_names_field_value_and_rule(asked: Stage, metric: str, body: Any, status: int, field: str) -> None:
    """design/metrics, Query kinds: 422, and 400 for what cannot be read."""
    answer = asked.ask(metric, **body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert set(answer.json()) == DETAILS


@pytest.mark.parametrize(
    ("metric", "body"),
    [
        ("event_count", SERIES | {"filter": nested(16)}),
        ("event_count", SERIES | {"filter": {"or": [{"platform": "ios"}] * 499}}),
        ("event_count", SERIES | {"filter": {"not": {"country_code": [str(number) for number in range(30_000)]}}}),
        ("event_count", SERIES | {"filter": None}),
        ("event_count", SERIES | {"interval": "2026-10-01/P31D"}),
        ("event_count", SERIES | {"interval": "2020-10-01/P5Y", "granularity": "week"}),
        ("event_count", SERIES | {"games": [], "studios": []}),
        ("event_count", SERIES | {"games": ["2002"]}),
        ("event_count", SERIES | {"interval": "9999-12-31/9999-12-31T23:59:59"}),
        ("event_count", SERIES | {"interval": "0001-01-01/P1D"}),
        ("event_count", SERIES | {"filter": {"platform": "\0'\"; DROP TABLE events"}}),
        ("returning_users", SERIES | {"game": "1001"}),
        ("returning_users", SERIES | {"game": "1001", "since_days_ago": 10**60}),
        ("retention_retro", without(RETENTION, "granularity")),
        ("retention_retro", RETENTION | {"since_days_ago": 10**60}),
        ("retention_retro", RETENTION | {"since_days_ago": 10**6}),
        ("retention_retro", RETENTION | {"interval": "9999-12-31/9999-12-31T23:59:59"}),
        ("retention_retro", RETENTION | {"interval": "0001-01-01/P1D"}),
    ],
)
def test_what_no_rule_forbids_is_answered(asked: Stage, metric: str, body: Any) -> None:
    """design/metrics, Query kinds: the edges of what is allowed."""
    assert asked.ask(metric, **body).status_code == 200


@pytest.mark.parametrize(
    ("metric", "body", "nearest"),
    [
        ("user_uniqe", SERIES, "user_unique"),
        ("event_count", WEEK | {"query": {"type": "group", "dimension": "plattform"}}, "platform"),
        ("event_count", SERIES | {"filter": {"not": {"contry_code": "US"}}}, "country_code"),
        ("event_count", SERIES | {"granularity": "weeks"}, "week"),
        ("event_count", WEEK | {"query": {"type": "groups"}}, "group"),
        ("event_count", SERIES | {"filters": {"platform": "ios"}}, "filter"),
    ],
)
def test_a_misspelt_name_hears_the_nearest(asked: Stage, metric: str, body: Any, nearest: str) -> None:
    """design/metrics, Query kinds: for names, the nearest one."""
    answer = asked.ask(metric, **body).json()
    assert answer["did_you_mean"] == nearest
    assert nearest in answer["message"]


def post(stage: Stage, body: bytes) -> httpx.Response:
    headers = {"X-API-Key": "key-of-acme"}
    return call(stage.metrics_app, "POST", "/metrics/v1/metrics/event_count", content=body, headers=headers)


@pytest.mark.parametrize("body", [b"", b"{", b"{} {}", b"\xff", b"[" * 100_000, b'{"a": 1e999}', b"NaN"])
def test_what_is_no_json_is_400(asked: Stage, body: bytes) -> None:
    """design/metrics, Query kinds: unreadable JSON."""
    answer = post(asked, body)
    assert (answer.status_code, set(answer.json()), answer.json()["field"]) == (400, DETAILS, "body")


@pytest.mark.parametrize("body", [b"[]", b"null", b"7", b'"event_count"', b"true"])
def test_json_that_is_no_object_is_422(asked: Stage, body: bytes) -> None:
    answer = post(asked, body)
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
def test_no_body_is_answered_with_5xx(asked: Stage, change: dict[str, Any], metric: str) -> None:
    answer = asked.ask(metric, **SERIES | change)
    assert answer.status_code in (200, 400, 422), answer.text


@pytest.mark.parametrize("key", ["", "key-of-acm", "key-of-acme ", "KEY-OF-ACME", "0123456789abcdef0123456789abcdef"])
@pytest.mark.parametrize("path", ["metrics", "interval", "dimensions", "dimensions/platform", "studios", "games"])
def test_an_unknown_key_is_401(asked: Stage, key: str, path: str) -> None:
    """Metrics, Authentication 1."""
    answer = asked.get(path, api_key=key)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorised")


def test_a_missing_key_is_401(asked: Stage) -> None:
    """Metrics, Authentication 1."""
    assert call(asked.metrics_app, "POST", "/metrics/v1/metrics/revenue").status_code == 401


def test_a_stranger_does_not_learn_what_he_did_wrong(asked: Stage) -> None:
    """The key is looked at before anything else."""
    answers = [asked.ask("nonsense", api_key="x"), asked.ask("revenue", api_key="x", interval=7)]
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
def test_a_list_refuses_as_a_query_does(asked: Stage, path: str, query: Any, status: int, field: str) -> None:
    """design/metrics, GET lists."""
    answer = asked.get(path, **query)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


@pytest.mark.parametrize(
    "interval", ["2026-11-15T00:00:00+01:00/P7D", "P7D/2026-11-22", "2026-11-15/2026-11-22", "2026-11-15/P1W"]
)
def test_a_list_reads_an_interval_as_a_query_does(asked: Stage, interval: str) -> None:
    """Public facts 3.3. A plus sign may arrive as it is: httpx sends %2B, a careless client sends +."""
    careless = call(
        asked.metrics_app, "GET", f"/metrics/v1/games?interval={interval}", headers={"X-API-Key": "key-of-acme"}
    )
    assert asked.get("games", interval=interval).json() == careless.json() == [{"id": "1001", "title": "Tile Saga"}]


def test_events_of_somebody_else_are_in_no_answer(asked: Stage) -> None:
    """architecture: scoped to the caller's organisation at the bottom."""
    series = SERIES | {"interval": "2026-11-20/P1D"}
    ours, theirs = (asked.ask("event_count", api_key=f"key-of-{name}", **series).json() for name in ("acme", "rival"))
    assert [it["result"][0]["result"]["event_count"] for it in (ours, theirs)] == [1, 1]
    assert "secret" not in asked.get("dimensions/platform", interval=WEEK["interval"]).text


def test_a_filter_reaches_nobody_else_s_game(asked: Stage) -> None:
    """architecture: scoped to the caller's organisation at the bottom."""
    for wanted in ({"game_id": "9001"}, {"not": {"game_id": "1001"}}, {"platform": "secret"}):
        answer = asked.ask("event_count", **SERIES | {"filter": wanted}).json()
        assert {it["result"]["event_count"] for it in answer["result"]} == {0}


def test_an_organisation_lists_its_own(asked: Stage) -> None:
    """Metrics, GET studios and games."""
    lists = [asked.get(path, api_key="key-of-rival", interval=WEEK["interval"]).json() for path in ("studios", "games")]
    assert lists == [[{"id": "1", "name": "Studio 1"}], [{"id": "9001", "title": "Game 9001"}]]


def test_production_games_are_never_listed(asked: Stage) -> None:
    """design/metrics, GET lists."""
    listed = asked.get("games", interval="2020-01-01/P20Y", studios="s2").json()
    assert listed == []


def test_games_and_studios_without_events_in_the_interval_are_not_listed(asked: Stage) -> None:
    """design/metrics, GET lists: those with an event in the interval by event time."""
    assert asked.get("games", interval="2026-11-21/P1D").json() == []
    assert asked.get("studios", interval="2026-11-21/P1D").json() == []


@pytest.mark.parametrize("query", [{"studios": "s1,s2"}, {"studios": ["s1", "s2"]}, {"studios": "s1"}, {}])
def test_several_values_may_be_repeated_or_come_with_commas(asked: Stage, query: dict[str, Any]) -> None:
    """Public facts 3.6."""
    assert len(asked.get("games", interval=WEEK["interval"], **query).json()) == 1
