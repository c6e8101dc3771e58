"""Both services against their own descriptions, by somebody else's reading of OpenAPI (schemathesis).

Requests of every kind the descriptions allow, and of kinds they do not: no answer is a failure of ours, and each is one
that the description has for its address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests import Request
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from conftest import Stage, event
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.wire.signing import sign
from support.described_transport import JSON, judge

pytestmark = pytest.mark.slow

KEY = {"X-API-Key": "key-of-acme"}
MANY = settings(
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
STARTS = st.sampled_from(
    ["2026-11-15", "2026-11-20T10:00:00Z", "2026-10-31T23:30:00+01:00", "0001-01-01", "9999-11-01"]
)
SPANS = st.sampled_from(["P1D", "P1W", "P1M", "PT1H", "P31D", "P1Y"])
schemathesis.openapi.format("interval", st.builds("{}/{}".format, STARTS, SPANS))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A sandbox with a few events, whose answers always have a body."""
    stage = Stage(tmp_path_factory.mktemp("described") / "state", reply="json")
    stage.submit([event(), event(platform="android"), event(category="session_end", length=60)])
    stage.process()
    yield stage
    stage.sandbox.close()
    vars(stage.sandbox.reader).clear()  # schemathesis keeps the app, and DuckDB complains of connections that are kept


def operations(service: str) -> list[Any]:
    """What *service* is described to do, each by the way its requests are made: as described, or not."""
    found = [it.ok() for it in schemathesis.openapi.from_dict(json.loads(DESCRIPTIONS[service]())).get_all_operations()]
    return [
        pytest.param(operation, mode, id=f"{operation.label} {mode.value}")
        for operation in found
        for mode in (GenerationMode if operation.query or operation.body else [GenerationMode.POSITIVE])
    ]


# Whose ids exist, and how long an interval may be, no schema can say: what fits it may be refused. What breaks it is
# judged here, because query parameters that nobody knows are ignored, and null is as good as leaving a field out.
BEYOND_A_SCHEMA = ["positive_data_acceptance", "negative_data_rejection"]
NO_SIGNATURES = ["ignored_auth"]


def excluded(names: list[str]) -> list[Any]:
    """The checks of these names."""
    return [check for check in CHECKS.get_all() if check.__name__ in names]


def meant(case: Any) -> Any:
    """The body of *case*, without the fields that are null."""
    body = case.body
    if not isinstance(body, dict):
        return body if body is None or isinstance(body, str | int | float | list) else None
    given = {name: value for name, value in body.items() if value is not None}
    query = given.get("query")
    inner = {name: value for name, value in query.items() if value is not None} if isinstance(query, dict) else query
    return given | ({"query": inner} if "query" in given else {})


@pytest.mark.parametrize(("operation", "mode"), operations("metrics"))
def test_the_metrics_service_answers_as_described(stage: Stage, operation: Any, mode: GenerationMode) -> None:
    """Metrics, Endpoints and Result shapes; Authentication 1: with no key or another nothing is answered."""
    operation.schema.app = stage.metrics_app
    statuses = set()

    @MANY
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        checked = {"app": stage.metrics_app, "excluded_checks": excluded(BEYOND_A_SCHEMA)}
        status = case.call_and_validate(headers=KEY, **checked).status_code
        statuses.add(status)
        if operation.body and not judge("metrics", "paths", case.path, "post", "requestBody", *JSON).is_valid(
            meant(case)
        ):
            assert status >= 400

    holds()
    assert mode == GenerationMode.NEGATIVE or 200 in statuses


@pytest.mark.parametrize(("operation", "mode"), operations("collector"))
def test_the_collector_answers_as_described(stage: Stage, operation: Any, mode: GenerationMode) -> None:
    """Collector, Endpoints. Every request is signed for a game of the sandbox, or none would be read."""
    app = operation.schema.app = stage.sandbox.collector
    game = stage.game("1001")
    statuses = set()

    @MANY
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        place = case.path_parameters if "{game_key}" in case.path else case.query
        place["game_key"] = game.game_key
        sent = Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare().body or b""
        body = sent if isinstance(sent, bytes) else sent.encode()
        signed = {"Authorization": sign(body, secret_key=game.secret_key)}
        checks = excluded(BEYOND_A_SCHEMA + NO_SIGNATURES)
        statuses.add(case.call_and_validate(headers=signed, app=app, excluded_checks=checks).status_code)

    holds()
    assert mode == GenerationMode.NEGATIVE or statuses & {200, 201}
