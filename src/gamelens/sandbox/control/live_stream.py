"""The live feed as server-sent events, with one bounded queue per subscriber.

The collector never waits for a slow subscriber (Wire 5.2, Live feed).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from gamelens.sandbox.collector.live_entries import FeedFilter
from gamelens.sandbox.collector.live_feed import FeedSubscriber, LiveFeed

GATHER_S: Final = 0.25
"""Pause between messages: events of a busy collector are decoded and sent together."""
SILENCE_S: Final = 15.0
"""Silence after which a comment shows proxies and clients that the stream is alive."""
RETRY_MS: Final = 2000
"""Pause after which a browser reconnects."""


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
    subscriber = FeedSubscriber(feed_filter)
    live.listen(subscriber)
    try:
        yield b"retry: %d\n\n" % RETRY_MS + _message(live.counts(), kind="counts")
        yield b"".join(map(_message, reversed(live.newest(feed_filter))))
        while not subscriber.is_closed:
            if not await subscriber.wait_for_change(within_s=silence_s):
                yield b": nothing new\n\n"
                continue
            await asyncio.sleep(0 if subscriber.is_closed else gather_s)
            yield _new_messages(subscriber) + _message(live.counts(), kind="counts")
    finally:
        live.leave(subscriber)


def _new_messages(subscriber: FeedSubscriber) -> bytes:
    start = b""
    if subscriber.is_restarted:
        subscriber.is_restarted = False
        start = _message({}, kind="reset")
    feed_events, missed = subscriber.take()
    if missed:
        start += _message({"events": missed}, kind="missed")
    return start + b"".join(map(_message, feed_events))


def _message(content: Any, kind: str = "") -> bytes:
    # A line end in JSON can only be white space between tokens. Here it would end the message.
    data = msgspec.json.encode(content).replace(b"\r", b" ").replace(b"\n", b" ")
    return (b"event: %b\n" % kind.encode() if kind else b"") + b"data: %b\n\n" % data
