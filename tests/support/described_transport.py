"""Requests to an app in process, every answer of which is held to the service's own description."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from starlette.applications import Starlette

from gamelens.sandbox.collector.collector_app import CollectorApp
from gamelens.sandbox.http.openapi import DESCRIPTIONS

if TYPE_CHECKING:
    import jsonschema

JSON = ("content", "application/json", "schema")
REFUSED = {"collector": "Message", "metrics": "ErrorBody"}


class DescribedTransport(httpx.ASGITransport):
    """Fails the request whose answer the description does not allow; other apps than the two services have none."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        service = _service(self.app)
        if service is not None:
            body = await response.aread()
            check_answer(service, request.method, request.url.path, response, body)
            return httpx.Response(response.status_code, headers=response.headers, content=body, request=request)
        return response


def check_answer(service: str, method: str, path: str, response: httpx.Response, body: bytes) -> None:
    """Raise AssertionError when *response* is not one that the description of *service* has for its address."""
    where = f"{service}: {method} {path} answered {response.status_code}"
    if method in ("HEAD", "OPTIONS") or (service, response.status_code, body) == ("collector", 200, b""):
        return  # no body, which a description has no way to ask for
    template = _template(service, path)
    described = _document(service)["paths"].get(template, {}).get(method.lower())
    schema: tuple[str, ...] = ("components", "schemas", REFUSED[service])
    if described is not None:
        answer = described["responses"].get(str(response.status_code))
        assert answer is not None, f"{where}, which its description does not know"
        missing = {name.lower() for name in answer.get("headers", {})} - set(response.headers)
        assert not missing, f"{where} without {missing}"
        schema = ("paths", template, method.lower(), "responses", str(response.status_code), *JSON)
    else:
        assert 400 <= response.status_code < 500, f"{where}, which its description does not know"
    assert response.headers["content-type"] == "application/json", where
    error = next(judge(service, *schema).iter_errors(json.loads(body)), None)
    assert error is None, f"{where}: {error}"


def _service(app: Any) -> str | None:
    if isinstance(app, CollectorApp):
        return "collector"
    is_metrics = isinstance(app, Starlette) and any(
        getattr(it, "path", "") == "/metrics/v1/metrics" for it in app.routes
    )
    return "metrics" if is_metrics else None


@cache
def _document(service: str) -> Any:
    return json.loads(DESCRIPTIONS[service]())


@cache
def judge(service: str, *path: str) -> jsonschema.Draft202012Validator:
    """What judges values by the schema at *path* of a description."""
    import jsonschema  # takes 1.1 s, and who only hands out tests to workers judges nothing

    resource: Resource[Any] = Resource.from_contents(_document(service), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("description", resource)
    pointer = "".join(f"/{quote(step.replace('~', '~0').replace('/', '~1'), safe='~')}" for step in path)
    return jsonschema.Draft202012Validator({"$ref": f"description#{pointer}"}, registry=registry)


def _template(service: str, path: str) -> str:
    """The address of the description that *path* is one of; itself where it is none."""
    templates = _document(service)["paths"]
    fitting = (it for it in templates if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", it), path))
    return path if path in templates else next(fitting, path)
