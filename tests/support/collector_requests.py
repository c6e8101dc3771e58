"""Signed requests to the collector of a `Stage`, byte by byte."""

from __future__ import annotations

from typing import Any

import httpx

from gamelens.wire.signing import sign
from support.app_requests import call
from support.sandbox_stage import Stage

GAME_KEY = "0123456789abcdef0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef01234567"
EVENTS_PATH = f"/v2/{GAME_KEY}/events"
COLLECTOR_PATHS = [
    EVENTS_PATH,
    f"/v2/{GAME_KEY}/init",
    f"/remote_configs/v1/init?game_key={GAME_KEY}&configs_hash=%ff",
]
"""A path of each route of the collector."""


def send_signed(
    stage: Stage,
    body: bytes,
    *,
    path: str = EVENTS_PATH,
    encoding: str | None = None,
    content_type: str | None = "application/json",
) -> httpx.Response:
    """Post *body* with its signature, with *encoding* as `Content-Encoding`, and with *content_type*."""
    headers: dict[str, Any] = {"Authorization": sign(body, secret_key=SECRET_KEY)}
    headers |= {"Content-Encoding": encoding.encode()} if encoding else {}
    headers |= {"Content-Type": content_type} if content_type else {}
    return stage.post(path, body, headers)


def send_with_headers(stage: Stage, body: bytes, *headers: tuple[str, str]) -> httpx.Response:
    """Post *body* with *headers*, of which several may have one name, and its signature."""
    signed = ("Authorization", sign(body, secret_key=SECRET_KEY))
    return call(stage.sandbox.collector, "POST", EVENTS_PATH, content=body, headers=[*headers, signed])


def undecodable_answer(error_type: str) -> list[Any]:
    """Return the response body for a request body that cannot be read as an array of events."""
    return [{"errors": [{"error_type": error_type, "path": "/"}]}]
