"""The stream of live events of the control API, as server-sent events (Wire 5.2, Live feed)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gamelens.sandbox.collector.live_feed import FeedFilter, LiveFeed, RefusedRequest

GATHER_S: Final = 0.25
"""Pause between messages: events of a busy collector are decoded and sent together."""
SILENCE_S: Final = 15.0
"""Silence after which a comment shows proxies and clients that the stream is alive."""
RETRY_MS: Final = 2000
"""Pause after which a browser reconnects."""


class LiveEventStream(StreamingResponse):
    """The stream of *live*, which has its place among the listeners from the start until it ends or the client is gone.

    Raises:
        Refused: all places are taken.
    """

    def __init__(self, live: LiveFeed, feed_filter: FeedFilter, headers: Mapping[str, str]) -> None:
        self._live, self._woken = live, live.listen()
        events = server_sent_events(live, feed_filter, self._woken)
        super().__init__(events, headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, and leave the listeners at its end."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.listeners.discard(self._woken)


async def server_sent_events(
    live: LiveFeed,
    feed_filter: FeedFilter,
    woken: asyncio.Event,
    *,
    gather_s: float = GATHER_S,
    silence_s: float = SILENCE_S,
) -> AsyncIterator[bytes]:
    """Yield the stream: the newest events that pass *feed_filter*, then every new one, whenever *woken* by `listen`.

    An event of the collector is a plain message. Besides there are `counts` (as `LiveFeed.counts`), `refused` (one
    refused request, whatever the filter: those that are stored, and every new one), `missed`
    ({"events"}: dropped because they arrived faster than they were read), `reset` (the feed was cleared), and a comment
    after *silence_s*. The limit of the filter counts the first events; new ones are collected for *gather_s*.
    """
    seen, resets, newest = live.seen(), live.resets, live.newest(feed_filter)
    refused = live.refused_after(0)
    refused_seen = live.refused_total
    yield b"retry: %d\n\n" % RETRY_MS + _message(live.counts(), kind="counts")
    yield b"".join(map(_refused_message, refused)) + b"".join(map(_message, reversed(newest)))
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
            seen, refused_seen, resets, new = {}, 0, live.resets, _message({}, kind="reset")
        feed_events, missed = live.after(seen, feed_filter)
        seen = live.seen()
        new += b"".join(map(_refused_message, live.refused_after(refused_seen)))
        refused_seen = live.refused_total
        if missed:
            new += _message({"events": missed}, kind="missed")
        yield new + b"".join(map(_message, feed_events)) + _message(live.counts(), kind="counts")


def _refused_message(refused: RefusedRequest) -> bytes:
    return _message(refused, kind="refused")


def _message(content: Any, kind: str = "") -> bytes:
    # A line end in JSON can only be white space between tokens. Here it would end the message.
    data = msgspec.json.encode(content).replace(b"\r", b" ").replace(b"\n", b" ")
    return (b"event: %b\n" % kind.encode() if kind else b"") + b"data: %b\n\n" % data
