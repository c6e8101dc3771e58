"""Answers as both services write them: JSON, one shape for every refusal, nothing of a framework's own."""

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
    """*content* as JSON; bytes are taken to be JSON already."""
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return Response(body, status, headers=headers, media_type="application/json")


def refuse(status: int, message: str, headers: Mapping[str, str] | None = None, **details: Any) -> Response:
    """A refusal: `error` for programs, `message` for people, and what else helps to mend the request."""
    return answer_json(ErrorBody(error=_ERRORS.get(status, "refused"), message=message, **details), status, headers)


def refuse_query(error: BadQuery, status: int = 422, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal that names the field; 400 for what cannot be read as an interval, whatever *status* says."""
    return refuse(
        400 if isinstance(error, MalformedInterval) else status,
        str(error),
        headers,
        field=error.field,
        value=error.value,
        allowed=list(error.allowed),
        did_you_mean=error.did_you_mean,
    )


async def on_http_error(_: Request, error: Exception) -> Response:
    """Starlette's own 404 and 405 in our shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return refuse(status, "no such address" if status == 404 else "not that way", headers)


def on_wrong_address(addresses: Collection[str]) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The same for a service that has *addresses*: what was asked for, and what could have been."""

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = error.headers if isinstance(error, HTTPException) else None
        if status == 405:
            methods = (headers or {}).get("Allow", "").split(", ")
            return refuse_query(BadQuery("method", request.method, "is not for this address", methods), 405, headers)
        if status == 404:
            path = request.scope["path"]
            return refuse_query(BadQuery("path", path, "is no address of this service", addresses), 404)
        return await on_http_error(request, error)

    return refused


async def on_bad_query(_: Request, error: Exception) -> Response:
    """A query that cannot be asked."""
    return refuse_query(error) if isinstance(error, BadQuery) else refuse(500, "the sandbox failed")


async def on_broken_off(_: Request, __: Exception) -> Response:
    """A body whose sender went away, or was sent away for being slow: nobody hears this, and nothing went wrong."""
    return refuse(408, "the body did not come")


async def on_failure(_: Request, error: Exception) -> Response:
    """A mistake of ours: the answer says no more than its kind; the log has the rest."""
    return refuse(500, f"the sandbox failed with {type(error).__name__}: its log says where")
