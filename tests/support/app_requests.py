"""Requests to an ASGI app in process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from support.described_transport import DescribedTransport

Call = Callable[..., httpx.Response]
"""A function that sends one request and returns its response."""


async def send(
    app: Any, method: str, path: str, *, base_url: str = "http://127.0.0.1", **arguments: Any
) -> httpx.Response:
    """Send one request to *app*, check the response against its description, and return it."""
    transport = DescribedTransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
        return await client.request(method, path, **arguments)


def call(app: Any, method: str, path: str, **arguments: Any) -> httpx.Response:
    """Send one request to *app* in an event loop of its own."""
    return asyncio.run(send(app, method, path, **arguments))
