"""OpenAPI 3.1, made from what answers requests: that it is served, whole, and holds what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import assume, given, settings
from starlette.routing import Route

from conftest import Stage, event
from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import LENIENT
from sandbox.conftest import Call, call
from support.candidate_events import good, near_events
from support.described_transport import JSON, check_answer, judge

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("service", DESCRIPTIONS)
DAY = {"interval": "2026-11-20/P1D", "granularity": "day"}


def document(service: str) -> Any:
    return json.loads(DESCRIPTIONS[service]())


EVENTS = judge("collector", "paths", "/v2/{game_key}/events", "post", "requestBody", *JSON)


def parts(node: Any) -> Iterator[dict[str, Any]]:
    """Every object inside of *node*."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts(inner)


def test_the_metrics_service_serves_its_own_to_whoever_asks(stage: Stage) -> None:
    """A program reads it before it is given a key."""
    answer = call(stage.metrics_app, "GET", "/metrics/v1/openapi.json")
    assert (answer.status_code, answer.content) == (200, DESCRIPTIONS["metrics"]())


@BOTH
def test_the_console_serves_both(console: Call, service: str) -> None:
    """contract: the collector has no addresses but its own."""
    assert console("GET", f"/openapi/{service}.json").content == DESCRIPTIONS[service]()


def test_the_collector_has_no_address_for_it(stage: Stage) -> None:
    """contract: unknown route, 404."""
    assert call(stage.sandbox.collector, "GET", "/openapi.json").status_code == 404


@BOTH
def test_its_schemas_are_schemas_and_its_references_lead_somewhere(service: str) -> None:
    """OpenAPI 3.1, Schema Object: JSON Schema 2020-12."""
    described = document(service)
    assert described["openapi"] == "3.1.0"
    for schema in described["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    named = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert {part["$ref"] for part in parts(described) if "$ref" in part} <= named


def test_every_address_of_the_metrics_service_is_described_and_no_other(stage: Stage) -> None:
    """Metrics, Endpoints."""
    routes = {route.path for route in stage.metrics_app.routes if isinstance(route, Route)} - {
        "/metrics/v1/metrics/{metric}"
    }
    assert set(document("metrics")["paths"]) == routes | {f"/metrics/v1/metrics/{name}" for name in METRICS}


def test_names_are_those_of_the_catalog() -> None:
    """Metrics, Dimension."""
    assert document("metrics")["components"]["schemas"]["Dimension"] == {"enum": list(DIMENSIONS)}


@pytest.mark.parametrize("name", METRICS)
def test_a_row_has_the_metric_s_fields_and_dimensions(name: str) -> None:
    """Metrics, Metric value fields."""
    row = document("metrics")["components"]["schemas"][f"{name}_row"]
    assert row["required"] == [field.name for field in METRICS[name].fields]
    assert set(row["properties"]) == {*row["required"], *DIMENSIONS}


@settings(max_examples=100, deadline=None)
@given(one=near_events())
def test_what_the_collector_takes_is_what_its_description_allows(one: Any) -> None:
    """Public facts 2: the same rules, read by hand and by JSON Schema, to which 1.0 is an integer."""
    assume(not any(isinstance(it, float) and it.is_integer() for it in (one.values() if isinstance(one, dict) else [])))
    assert EVENTS.is_valid([one]) == (not LENIENT.faults(one))


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_is_described(category: str) -> None:
    """Public facts 2.1 and 2.5."""
    assert EVENTS.is_valid([good(category)])


def response(status: int, content: Any, **headers: str) -> httpx.Response:
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
def test_an_answer_outside_of_it_fails_the_request(method: str, path: str, answer: httpx.Response) -> None:
    """The check that every request of these tests goes through, checked."""
    with pytest.raises(AssertionError):
        check_answer("metrics", method, f"/metrics/v1/{path}", answer, answer.content)


def test_an_answer_inside_of_it_does_not(stage: Stage) -> None:
    """Metrics, Result shapes: each of the shapes, with rows in it."""
    stage.submit([event()])
    stage.process()
    asked = [{"query": {"type": "group", "dimension": "platform"}}, {"query": {"type": "timeseries"}}]
    asked.append({"query": {"type": "split", "dimensions": ["platform", "build"]}})
    answers = [stage.ask("user_unique", **DAY, **it) for it in asked]
    answers.append(stage.ask("installs_ratio", **DAY, split_by="platform"))
    assert [len(answer.json()["result"]) for answer in answers] == [1, 1, 1, 1]
