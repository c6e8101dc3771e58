"""Body and query parameters of a metrics request, read within bounds of size and time.

Any sequence of bytes ends in a value or in a refusal that names the part to correct (Wire 2.5, Query body;
Wire 2.11, Lists).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec
from starlette.requests import Request

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.http.request_body import BODY_DEADLINE_S, BodyTooLarge, BodyTooSlow, ClientDisconnected, read_body
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import BODY_BYTES, DEFAULT_LIMIT, MAX_BUCKETS, MAX_LIMIT
from gamelens.wire.queries import MetricQuery


class UnreadableBody(Refused):
    """The body of a request is incomplete, too large, too slow or not JSON; the answer has this *status*."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


async def read_json_object(request: Request, *, deadline_s: float = BODY_DEADLINE_S) -> dict[str, Any]:
    """Read the JSON object in the body of *request*.

    Raises:
        UnreadableBody: the body is too large, too slow or not JSON, or the disk has no room for it.
        BadQuery: the body is JSON, but not an object.
    """
    try:
        body = msgspec.json.decode(await _read_bytes(request, deadline_s=deadline_s))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableBody(400, "the body is not JSON: send a metric query as a JSON object") from None
    if not isinstance(body, dict):
        raise BadQuery("body", body, "must be a JSON object, a metric query")
    return body


def show_as_sent(error: BadQuery, body: Mapping[str, Any]) -> None:
    """Give *error* the interval or query of *body* as it was sent, without our defaults and in its own form."""
    if error.field in ("interval", "query") and not error.is_missing and body.get(error.field) is not None:
        error.value = body[error.field]


def interval_parameter(request: Request) -> Interval:
    """Return the query parameter `interval`, which is required.

    Raises:
        BadQuery: it is missing or given twice.
        MalformedInterval: it is not an interval, or an empty one.
    """
    text = _single_parameter(request, "interval")
    if text is None:
        raise BadQuery("interval", msgspec.UNSET, "is missing: send an ISO 8601 interval")
    # A plus sign in a query string arrives as a space, which no interval contains.
    interval = Interval.parse(text.replace(" ", "+"))
    if not interval:
        raise MalformedInterval(text)
    return interval


def check_buckets(query: MetricQuery) -> None:
    """Refuse a query of more buckets than are answered.

    Wire 2.8, Intervals and buckets.

    Raises:
        BadQuery: it asks for more.
    """
    buckets = query.interval.buckets(query.granularity)
    if next(islice(buckets, MAX_BUCKETS, None), None) is not None:
        rule = f"must touch at most {MAX_BUCKETS} buckets: ask for a shorter interval, or for a larger granularity"
        raise BadQuery("interval", str(query.interval), rule)


def limit_parameter(request: Request) -> int:
    """Return the query parameter `limit`, 100 when absent (Wire 2.11, Lists).

    Raises:
        BadQuery: it is given twice or is not a whole number from 1 to 30,000.
    """
    text = _single_parameter(request, "limit")
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise BadQuery("limit", text, f"must be 1 to {MAX_LIMIT}")
    return int(text)


def ids_parameter(request: Request, name: str) -> tuple[str, ...] | None:
    """Return the ids in the query parameter *name*, or None if it is absent.

    It may be repeated, and each value may hold several ids with commas (Wire 2.11, Lists).
    """
    texts = request.query_params.getlist(name)
    return tuple(value for text in texts for value in text.split(",")) if texts else None


def _single_parameter(request: Request, name: str) -> str | None:
    """Return the query parameter *name*, and refuse it if given more than once."""
    texts = request.query_params.getlist(name)
    if len(texts) > 1:
        raise BadQuery(name, texts, "must be given once")
    return texts[0] if texts else None


async def _read_bytes(request: Request, *, deadline_s: float) -> bytes:
    try:
        return await read_body(request.receive, deadline_s=deadline_s)
    except BodyTooLarge:
        raise UnreadableBody(413, f"the body is larger than {BODY_BYTES} bytes: ask for less at a time") from None
    except ClientDisconnected:
        raise UnreadableBody(400, "the body was cut short") from None
    except BodyTooSlow as error:
        raise UnreadableBody(408, str(error)) from None
    except OSError:
        raise UnreadableBody(503, "there is no room for the body on the disk: send it again") from None
