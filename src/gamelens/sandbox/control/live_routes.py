"""Routes of the live feed: the page, the newest events as JSON, and the stream of server-sent events.

The collector never waits for a slow listener (Wire 5.2, Live feed).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from importlib.resources import files
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from gamelens.sandbox.collector.live_feed import FeedFilter, LiveFeed, parse_feed_filter
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

GATHER_S: Final = 0.25
"""Pause between messages: events of a busy collector are decoded and sent together."""
SILENCE_S: Final = 15.0
"""Silence after which a comment shows proxies and clients that the stream is alive."""
RETRY_MS: Final = 2000
"""Pause after which a browser reconnects."""


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


async def server_sent_events(
    live: LiveFeed, feed_filter: FeedFilter, *, gather_s: float = GATHER_S, silence_s: float = SILENCE_S
) -> AsyncIterator[bytes]:
    """Yield the stream: the newest events that pass *feed_filter*, then every new one.

    An event of the collector is a plain message. Besides there are `counts` (as `LiveFeed.counts`), `missed`
    ({"events"}: dropped because they arrived faster than they were read), `reset` (the feed was cleared), and a comment
    in silence.

    Args:
        live: the feed.
        feed_filter: selects the events; its limit counts the first ones.
        gather_s: seconds in which events are collected into one chunk.
        silence_s: seconds of silence after which a comment is sent.
    """
    woken = asyncio.Event()
    live.listeners.add(woken)
    seen, resets, newest = live.seen(), live.resets, live.newest(feed_filter)
    try:
        yield b"retry: %d\n\n" % RETRY_MS + _message(live.counts(), kind="counts")
        yield b"".join(map(_message, reversed(newest)))
        while not live.is_closed:
            try:
                async with asyncio.timeout(silence_s):
                    await woken.wait()
            except TimeoutError:
                yield b": nothing new\n\n"
                continue
            await asyncio.sleep(0 if live.is_closed else gather_s)
            woken.clear()
            new = b""
            if live.resets != resets:
                seen, resets, new = {}, live.resets, _message({}, kind="reset")
            feed_events, missed = live.after(seen, feed_filter)
            seen = live.seen()
            if missed:
                new += _message({"events": missed}, kind="missed")
            yield new + b"".join(map(_message, feed_events)) + _message(live.counts(), kind="counts")
    finally:
        live.listeners.discard(woken)


def _message(content: Any, kind: str = "") -> bytes:
    # A line end in JSON can only be white space between tokens. Here it would end the message.
    data = msgspec.json.encode(content).replace(b"\r", b" ").replace(b"\n", b" ")
    return (b"event: %b\n" % kind.encode() if kind else b"") + b"data: %b\n\n" % data
