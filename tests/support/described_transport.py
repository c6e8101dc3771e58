"""A transport to an app in process that checks responses against the description."""

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
    """A transport that fails requests whose response the description does not allow.

    Apps other than the two services have no description and are not checked.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        service = _service(self.app)
        if service is not None:
            body = await response.aread()
            check_answer(service, request.method, request.url.path, response, body)
            return httpx.Response(response.status_code, headers=response.headers, content=body, request=request)
        return response


def check_answer(service: str, method: str, path: str, response: httpx.Response, body: bytes) -> None:
    """Raise AssertionError unless the description of *service* allows *response*."""
    request = f"{service}: {method} {path} answered {response.status_code}"
    if method in ("HEAD", "OPTIONS") or (service, response.status_code, body) == ("collector", 200, b""):
        return  # an empty body, which a description cannot require
    template = _template(service, path)
    described = _document(service)["paths"].get(template, {}).get(method.lower())
    schema: tuple[str, ...] = ("components", "schemas", REFUSED[service])
    if described is not None:
        answer = described["responses"].get(str(response.status_code))
        assert answer is not None, f"{request}, which its description does not list"
        missing = {name.lower() for name, header in answer.get("headers", {}).items() if header["required"]} - set(
            response.headers
        )
        assert not missing, f"{request} without {missing}"
        schema = ("paths", template, method.lower(), "responses", str(response.status_code), *JSON)
    else:
        assert 400 <= response.status_code < 500, f"{request}, which its description does not list"
    assert response.headers["content-type"] == "application/json", request
    error = next(schema_validator(service, *schema).iter_errors(json.loads(body)), None)
    assert error is None, f"{request}: {error}"


def _service(app: Any) -> str | None:
    if isinstance(app, CollectorApp):
        return "collector"
    is_metrics = isinstance(app, Starlette) and any(
        getattr(route, "path", "") == "/metrics/v1/metrics" for route in app.routes
    )
    return "metrics" if is_metrics else None


@cache
def _document(service: str) -> Any:
    return json.loads(DESCRIPTIONS[service]())


@cache
def schema_validator(service: str, *path: str) -> jsonschema.Draft202012Validator:
    """Return the validator of the schema at *path* of the description of *service*."""
    import jsonschema  # takes 1.1 s, which the process that only distributes tests to workers saves

    resource: Resource[Any] = Resource.from_contents(_document(service), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("description", resource)
    pointer = "".join(f"/{quote(step.replace('~', '~0').replace('/', '~1'), safe='~')}" for step in path)
    return jsonschema.Draft202012Validator({"$ref": f"description#{pointer}"}, registry=registry)


def _template(service: str, path: str) -> str:
    """Return the address template that *path* matches, or *path* itself."""
    templates = _document(service)["paths"]
    matches = (template for template in templates if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path))
    return path if path in templates else next(matches, path)
