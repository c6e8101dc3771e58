"""Routes of the live feed: the page, the newest events as JSON, and the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from gamelens.sandbox.collector.live_entries import parse_feed_filter
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.control.live_stream import server_sent_events
from gamelens.sandbox.http.responses import answer_json

Handler = Callable[[Request], Awaitable[Response]]

_PAGE: Final = {
    "": ("index.html", "text/html"),
    "live.js": ("live.js", "text/javascript"),
    "live.css": ("live.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def live_routes(live: LiveFeed) -> dict[str, Handler]:
    """Return the handlers of `GET` requests, by path (Wire 5.2, Live feed)."""

    async def events(request: Request) -> Response:
        return answer_json(
            live.newest(parse_feed_filter(request.query_params, game_keys=live.titles)), headers=_HEADERS
        )

    async def stream(request: Request) -> Response:
        feed_filter = parse_feed_filter(request.query_params, game_keys=live.titles, limit=0)
        live.check_capacity()
        return _Stream(server_sent_events(live, feed_filter), headers=_HEADERS, media_type="text/event-stream")

    return {"/events": events, "/live": stream, **{f"/{name}": _file(*file) for name, file in _PAGE.items()}}


class _Stream(StreamingResponse):
    """A streaming response that closes its generator as soon as the client is gone."""

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await super().stream_response(send)


def _file(name: str, media_type: str) -> Handler:
    content = (files("gamelens.sandbox.control") / "page" / name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, headers=_HEADERS, media_type=media_type)

    return answer
