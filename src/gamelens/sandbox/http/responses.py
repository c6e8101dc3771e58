"""JSON responses of metrics service and control API, with one shape for all errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gamelens.errors import BadQuery
from gamelens.wire.intervals import MalformedInterval
from gamelens.wire.results import ErrorBody, ErrorName

_ERRORS: dict[int, ErrorName] = {
    400: "bad_request",
    401: "unauthorised",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "unprocessable",
    429: "too_many_requests",
    500: "failed",
    503: "unavailable",
}


def answer_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return *content* as a JSON response. Bytes are taken to be JSON already."""
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return Response(body, status, headers=headers, media_type="application/json")


def refuse(status: int, message: str, headers: Mapping[str, str] | None = None, **details: Any) -> Response:
    """Return an error response (Wire 2.12, Refusals).

    `error` is for programs, `message` for people. *details* are further fields of the error body.
    """
    return answer_json(ErrorBody(error=_ERRORS.get(status, "refused"), message=message, **details), status, headers)


def refuse_query(error: BadQuery, status: int = 422, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response that names the field: 400 for an unreadable interval."""
    return refuse(
        400 if isinstance(error, MalformedInterval) else status,
        error.sentence(_shown),
        headers,
        field=error.field,
        value=error.value,
        allowed=list(error.allowed),
        did_you_mean=error.did_you_mean,
    )


def _shown(value: object) -> str:
    """Return *value* as JSON, the language of its sender.

    A text is in single quotes, which need no escapes inside the body.
    """
    return repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


async def on_http_error(_: Request, error: Exception) -> Response:
    """Answer Starlette's own errors, 404 and 405 among them, in the common shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return refuse(
        status, "there is no such address" if status == 404 else "the address does not take this method", headers
    )


def on_wrong_address(addresses: Collection[str]) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Build a handler that answers 404 and 405 with the nearest allowed alternatives."""

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = error.headers if isinstance(error, HTTPException) else None
        if status == 405:
            methods = (headers or {}).get("Allow", "").split(", ")
            return refuse_query(BadQuery("method", request.method, "is not for this address", methods), 405, headers)
        if status == 404:
            path = request.scope["path"]
            return refuse_query(BadQuery("path", path, "is not an address of this service", addresses), 404)
        return await on_http_error(request, error)

    return refused


async def on_bad_query(_: Request, error: Exception) -> Response:
    """Answer a query that breaks a rule."""
    return refuse_query(error) if isinstance(error, BadQuery) else refuse(500, "the sandbox failed")


async def on_disconnect(_: Request, __: Exception) -> Response:
    """Answer 408 when a client disconnects or stalls before its body is complete."""
    return refuse(408, "the body was not complete in time")


async def on_failure(_: Request, error: Exception) -> Response:
    """Answer 500 with the type of an unexpected error. The log has the rest."""
    return refuse(500, f"the sandbox failed with {type(error).__name__}: see its log")
