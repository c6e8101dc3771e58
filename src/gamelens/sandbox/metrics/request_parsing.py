"""What a request to the metrics service asks: its body and its query parameters, read within bounds.

Bytes of any kind end in a value or in a refusal that says what to mend.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from starlette.requests import Request

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.http.request_body import BodyTooLarge, ClientDisconnected, read_body
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import BODY_BYTES, DEFAULT_LIMIT, MAX_LIMIT

BODY_DEADLINE_S: Final = 15.0


class UnreadableBody(Refused):
    """A body that is not had to its end, or is no JSON: the request ends with *status*."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


async def read_object(request: Request, *, deadline_s: float = BODY_DEADLINE_S) -> dict[str, Any]:
    """The JSON object in the body.

    Raises:
        BadBody: too large, too slow, no JSON, or the disk has no room for it.
        BadQuery: JSON, and no object.
    """
    try:
        body = msgspec.json.decode(await _read(request, deadline_s=deadline_s))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableBody(400, "the body is not JSON: send a metric query as a JSON object") from None
    if not isinstance(body, dict):
        raise BadQuery("body", body, "must be a JSON object, a metric query")
    return body


def asked_interval(request: Request) -> Interval:
    """The query parameter `interval`, which must be there."""
    text = _once(request, "interval")
    if text is None:
        raise BadQuery("interval", None, "is missing: send an ISO 8601 interval")
    # A plus sign in a query string arrives as a space, and none is ever meant there.
    interval = Interval.parse(text.replace(" ", "+"))
    if not interval:
        raise MalformedInterval(text)
    return interval


def asked_limit(request: Request) -> int:
    """The query parameter `limit`."""
    text = _once(request, "limit")
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise BadQuery("limit", text, f"must be 1 to {MAX_LIMIT}")
    return int(text)


def asked_ids(request: Request, name: str) -> tuple[str, ...] | None:
    """Values of a query parameter, given several times or with commas; None where it is not given."""
    given = request.query_params.getlist(name)
    return tuple(value for text in given for value in text.split(",")) if given else None


def _once(request: Request, name: str) -> str | None:
    """The one value of a query parameter: of two, neither is more meant than the other."""
    given = request.query_params.getlist(name)
    if len(given) > 1:
        raise BadQuery(name, given, "must be given once")
    return given[0] if given else None


async def _read(request: Request, *, deadline_s: float) -> bytes:
    try:
        async with asyncio.timeout(deadline_s):
            return await read_body(request.receive)
    except BodyTooLarge:
        raise UnreadableBody(413, f"the body is larger than {BODY_BYTES} bytes: ask for less at a time") from None
    except ClientDisconnected:
        raise UnreadableBody(400, "the body was cut short") from None
    except TimeoutError:
        raise UnreadableBody(408, f"the body did not come within {deadline_s:g} s") from None
    except OSError:
        raise UnreadableBody(503, "there is no room for the body on the disk: send it again") from None
