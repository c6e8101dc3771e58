"""Both services against their OpenAPI descriptions, tested by schemathesis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.wire.signing import sign
from support.described_transport import JSON, schema_validator
from support.game_events import event
from support.hypothesis_profiles import tries
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

KEY = {"X-API-Key": "key-of-acme"}
MANY = settings(
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
TRIES = 8
"""How often a test of good requests may begin anew, until one of them is answered 200."""
EXAMPLES = {
    "positive": settings(MANY, max_examples=tries(in_test=6, in_bench=50)),
    "negative": settings(MANY, max_examples=tries(in_test=3, in_bench=50)),
}
STARTS = st.sampled_from(
    ["2026-11-15", "2026-11-20T10:00:00Z", "2026-10-31T23:30:00+01:00", "0001-01-01", "9999-11-01"]
)
SPANS = st.sampled_from(["P1D", "P1W", "P1M", "PT1H", "P31D", "P1Y"])


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with a few events, whose answers always have a body."""
    stage = Stage(tmp_path_factory.mktemp("described") / "state", reply="json")
    stage.submit([event(), event(platform="android"), event(category="session_end", length=60)])
    stage.process()
    yield stage
    stage.sandbox.close()
    vars(stage.sandbox.reader).clear()  # schemathesis keeps the app, and DuckDB warns of open connections


@pytest.fixture(scope="module")
def operations() -> Mapping[str, Any]:
    """Return the operations of both services by method and path."""
    import schemathesis  # takes a second, which workers without these tests save
    from schemathesis.config import SchemathesisConfig

    # Without texts that stand in the code of the app, which are none of a request's values and take most of the time.
    plain = SchemathesisConfig.from_dict({"analysis": {"constants": {"enabled": False}}})
    schemathesis.openapi.format("interval", st.builds("{}/{}".format, STARTS, SPANS))
    schemas = [
        schemathesis.openapi.from_dict(json.loads(describe()), config=plain) for describe in DESCRIPTIONS.values()
    ]
    results: list[Any] = [result for schema in schemas for result in schema.get_all_operations()]
    return {operation.label: operation for operation in (result.ok() for result in results)}


def every_operation(service: str) -> pytest.MarkDecorator:
    """Try each operation of *service*, with requests as described and, where it takes something, with others."""
    labels = [
        (f"{method.upper()} {path}", mode)
        for path, methods in json.loads(DESCRIPTIONS[service]())["paths"].items()
        for method, operation in methods.items()
        for mode in ("positive", "negative")
        if mode == "positive"
        or "requestBody" in operation
        or any(it["in"] == "query" for it in operation.get("parameters", ()))
    ]
    return pytest.mark.parametrize(("label", "mode"), labels, ids=map(" ".join, labels))


# A schema cannot say which ids exist and how long an interval may be, so a request that satisfies it may be refused.
# Requests that break it are checked here, because unknown query parameters are ignored and null is an absent field.
BEYOND_A_SCHEMA = ["positive_data_acceptance", "negative_data_rejection"]
NO_SIGNATURES = ["ignored_auth"]


def checks_named(names: list[str]) -> list[Any]:
    """Return the checks of schemathesis with these *names*."""
    from schemathesis.checks import CHECKS

    return [check for check in CHECKS.get_all() if check.__name__ in names]


def without_nulls(case: Any) -> Any:
    """Return the body of *case* without the fields that are null."""
    body = case.body
    if not isinstance(body, dict):
        return body if body is None or isinstance(body, str | int | float | list) else None
    fields = {name: value for name, value in body.items() if value is not None}
    query = fields.get("query")
    inner = {name: value for name, value in query.items() if value is not None} if isinstance(query, dict) else query
    return fields | ({"query": inner} if "query" in fields else {})


@pytest.mark.shown_by(8)
@every_operation("metrics")
def test_the_metrics_service_answers_as_described(
    stage: Stage, operations: Mapping[str, Any], label: str, mode: str
) -> None:
    """Every request gets a described response, and 4xx if its body breaks the schema.

    Wire 2.1, Metrics addresses; Wire 5.5, Service descriptions.
    """
    from schemathesis import GenerationMode

    operation = operations[label]
    operation.schema.app = stage.metrics_app
    statuses: set[int] = set()

    @EXAMPLES[mode]
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def check(case: Any) -> None:
        if mode == "positive" and isinstance(case.body, dict) and case.body.get("game") == "":
            case.body["game"] = "1001"  # a schema cannot say which ids exist
        arguments = {"app": stage.metrics_app, "excluded_checks": checks_named(BEYOND_A_SCHEMA)}
        status = case.call_and_validate(headers=KEY, **arguments).status_code
        statuses.add(status)
        if operation.body and not schema_validator(
            "metrics", "paths", case.path, "post", "requestBody", *JSON
        ).is_valid(without_nulls(case)):
            assert status >= 400

    for _ in range(1 if mode == "negative" else TRIES):
        check()
        if 200 in statuses:
            break
    assert mode == "negative" or 200 in statuses


@pytest.mark.shown_by(2)
@every_operation("collector")
def test_the_collector_answers_as_described(stage: Stage, operations: Mapping[str, Any], label: str, mode: str) -> None:
    """Every signed request gets a described response.

    Wire 1.1, Collector addresses; Wire 5.5, Service descriptions.
    """
    from requests import Request
    from schemathesis import GenerationMode

    operation = operations[label]
    app = operation.schema.app = stage.sandbox.collector
    game = stage.game("1001")
    statuses: set[int] = set()

    @EXAMPLES[mode]
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def check(case: Any) -> None:
        parameters = case.path_parameters if "{game_key}" in case.path else case.query
        parameters["game_key"] = game.game_key
        prepared = Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare().body or b""
        assert isinstance(prepared, bytes | str)
        body = prepared if isinstance(prepared, bytes) else prepared.encode()
        signed = {"Authorization": sign(body, secret_key=game.secret_key)}
        checks = checks_named(BEYOND_A_SCHEMA + NO_SIGNATURES)
        statuses.add(case.call_and_validate(headers=signed, app=app, excluded_checks=checks).status_code)

    for _ in range(1 if mode == "negative" else TRIES):
        check()
        if statuses & {200, 201}:
            break
    assert mode == "negative" or statuses & {200, 201}
