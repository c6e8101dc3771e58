"""The OpenAPI 3.1 descriptions of both services (Wire 5.5, Service descriptions)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import assume, given, settings
from starlette.routing import Route

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.wire.event_field_rules import CATEGORIES
from gamelens.wire.event_validator import LENIENT
from support.app_requests import Call, call
from support.candidate_events import good, near_events
from support.described_transport import JSON, check_answer, schema_validator
from support.game_events import event
from support.hypothesis_profiles import examples
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("service", DESCRIPTIONS)
DAY: dict[str, Any] = {"interval": "2026-11-20/P1D", "granularity": "day"}


def document(service: str) -> Any:
    """Return the description of *service* as JSON."""
    return json.loads(DESCRIPTIONS[service]())


EVENTS = schema_validator("collector", "paths", "/v2/{game_key}/events", "post", "requestBody", *JSON)


def objects_in(node: Any) -> Iterator[dict[str, Any]]:
    """Return every JSON object inside *node*."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from objects_in(inner)


def test_the_metrics_service_serves_its_description_without_a_key(stage: Stage) -> None:
    """A program can read the description before it has a key (Wire 5.5, Service descriptions)."""
    answer = call(stage.metrics_app, "GET", "/metrics/v1/openapi.json")
    assert (answer.status_code, answer.content) == (200, DESCRIPTIONS["metrics"]())


@BOTH
def test_the_control_api_serves_both_descriptions(control_api: Call, service: str) -> None:
    """The control API serves the descriptions of both services.

    Wire 5.5, Service descriptions.
    """
    assert control_api("GET", f"/openapi/{service}.json").content == DESCRIPTIONS[service]()


def test_the_collector_has_no_path_for_its_description(stage: Stage) -> None:
    """The collector has no paths beside those of the real service.

    Wire 5.5, Service descriptions.
    """
    assert call(stage.sandbox.collector, "GET", "/openapi.json").status_code == 404


@pytest.mark.shown_by(1)
@BOTH
def test_schemas_are_valid_and_references_resolve(service: str) -> None:
    """Every schema is JSON Schema 2020-12, and every reference has a target.

    Wire 5.5, Service descriptions.
    """
    described = document(service)
    assert described["openapi"] == "3.1.0"
    for schema in described["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    definitions = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert {part["$ref"] for part in objects_in(described) if "$ref" in part} <= definitions


def test_exactly_the_paths_of_the_metrics_service_are_described(stage: Stage) -> None:
    """The description has each path of the metrics service and no other.

    Wire 2.1, Metrics addresses.
    """
    routes = {route.path for route in stage.metrics_app.routes if isinstance(route, Route)} - {
        "/metrics/v1/metrics/{metric}"
    }
    assert set(document("metrics")["paths"]) == routes | {f"/metrics/v1/metrics/{name}" for name in METRICS}


def test_names_are_those_of_the_catalog() -> None:
    """The dimensions of the description are those of the catalog (Wire 4.10, Dimensions)."""
    assert document("metrics")["components"]["schemas"]["Dimension"] == {"enum": list(DIMENSIONS)}


@pytest.mark.parametrize("name", METRICS)
def test_a_row_has_the_metric_s_fields_and_dimensions(name: str) -> None:
    """A row requires the metric's fields and may have any dimension (Wire 4.11, Metrics)."""
    row = document("metrics")["components"]["schemas"][f"{name}_row"]
    assert row["required"] == [field.name for field in METRICS[name].fields]
    assert set(row["properties"]) == {*row["required"], *DIMENSIONS}


@pytest.mark.parametrize(
    "change", [{"granularity": None}, {"granularity": "day"}, {"filter": None}, {"games": None}, {"studios": None}]
)
def test_a_null_that_is_described_is_accepted(stage: Stage, change: dict[str, Any]) -> None:
    """A retention query with a null satisfies its description and gets 200.

    Wire 2.5, Query body; Wire 5.5, Service descriptions.
    """
    path = "/metrics/v1/metrics/retention_retro"
    body: dict[str, Any] = {"interval": "2026-11-20/P1D", "split_by": "platform", "since_days_ago": 1} | change
    assert schema_validator("metrics", "paths", path, "post", "requestBody", *JSON).is_valid(body)
    assert stage.ask("retention_retro", **body).status_code == 200


@pytest.mark.parametrize("path", ["/v2/{game_key}/init", "/remote_configs/v1/init"])
def test_the_described_inits_are_the_accepted_ones(path: str) -> None:
    """An object and an array of one are described, with `user_id` and `random_salt` left out too.

    Wire 1.11, Version 2 init; Wire 5.5, Service descriptions.
    """
    older = {"platform": "ios", "os_version": "ios 17", "sdk_version": "rest api v2"}
    body = schema_validator("collector", "paths", path, "post", "requestBody", *JSON)
    assert body.is_valid(older)
    assert body.is_valid([older | {"user_id": "ann", "random_salt": 7, "build": None}])
    assert not body.is_valid([older, older])
    assert not body.is_valid(older | {"user_id": None})
    statuses = document("collector")["paths"][path]["post"]["responses"]
    assert {"200", "201"} <= set(statuses)


@settings(max_examples=examples(100), deadline=None)
@given(candidate=near_events())
def test_the_described_events_are_the_accepted_ones(candidate: Any) -> None:
    """The JSON Schema of events accepts what the validator accepts.

    Floats without a fraction are left out, because JSON Schema takes them for integers.

    Wire 5.5, Service descriptions.
    """
    values = candidate.values() if isinstance(candidate, dict) else []
    assume(not any(isinstance(value, float) and value.is_integer() for value in values))
    assert EVENTS.is_valid([candidate]) == (not LENIENT.violations(candidate))


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_is_described(category: str) -> None:
    """A good event of every category satisfies the description (Wire 3.1, Categories)."""
    assert EVENTS.is_valid([good(category)])


def response(status: int, content: Any, **headers: str) -> httpx.Response:
    """Return a JSON response."""
    return httpx.Response(status, json=content, headers=headers)


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "games", response(200, [{"id": 1, "title": "Tile Saga"}])),
        ("GET", "games", response(200, {"result": []})),
        ("GET", "games", response(418, {"error": "refused", "message": ""})),
        ("GET", "games", response(429, {"error": "too_many_requests", "message": ""})),
        ("GET", "games", response(422, {"error": "unprocessable"})),
        ("GET", "games", response(422, {"error": "wrong", "message": ""})),
        ("GET", "games", httpx.Response(401, content=b"no", headers={"content-type": "text/plain"})),
        ("GET", "metrics", response(200, ["dau"])),
        ("GET", "nowhere", response(200, [])),
        ("GET", "nowhere", response(404, {"detail": "Not Found"})),
        ("POST", "metrics/revenue", response(200, {"result": [{"timestamp": "", "result": {"event_count": 1}}]})),
        ("POST", "metrics/new_users", response(200, {"result": [{"timestamp": "", "result": {"new_users": -1}}]})),
        ("POST", "metrics/new_users", response(200, {"result": [{"result": {"new_users": 1}}]})),
        (
            "POST",
            "metrics/new_users",
            response(200, {"result": [{"timestamp": "", "result": {"new_users": 1, "x": 1}}]}),
        ),
    ],
)
def test_a_response_outside_the_description_fails_the_request(method: str, path: str, answer: httpx.Response) -> None:
    """The check of every test request fails for responses that are not described."""
    with pytest.raises(AssertionError):
        check_answer("metrics", method, f"/metrics/v1/{path}", answer, answer.content)


def test_described_responses_pass(stage: Stage) -> None:
    """Answers of every shape, with rows in them, pass the check of every test request.

    Wire 2.9, Answer shapes.
    """
    stage.submit([event()])
    stage.process()
    queries: list[dict[str, Any]] = [
        {"query": {"type": "group", "dimension": "platform"}},
        {"query": {"type": "timeseries"}},
    ]
    queries.append({"query": {"type": "split", "dimensions": ["platform", "build"]}})
    answers = [stage.ask("user_unique", **DAY, **query) for query in queries]
    answers.append(stage.ask("installs_ratio", **DAY, split_by="platform"))
    assert [len(answer.json()["result"]) for answer in answers] == [1, 1, 1, 1]
