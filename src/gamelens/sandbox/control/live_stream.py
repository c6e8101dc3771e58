"""The live record as server-sent events: one bounded queue for each listener, nobody ever waits for a slow one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from gamelens.sandbox.collector.live_entries import FeedFilter
from gamelens.sandbox.collector.live_feed import FeedSubscriber, LiveFeed

GATHER_S: Final = 0.25  # what comes within it is sent together: a busy collector is not decoded one by one
SILENCE_S: Final = 15.0
RETRY_MS: Final = 2000


async def server_sent_events(
    live: LiveFeed, look: FeedFilter, *, gather_s: float = GATHER_S, silence_s: float = SILENCE_S
) -> AsyncIterator[bytes]:
    """The stream of *look*: first its newest events, as many as it asks for, then every one that comes.

    An event of the collector is a message; beside them go `counts` (as `LiveFeed.counts`), `missed` ({"events"}: so many
    came faster than they were read), `reset` (forget what you have seen), and a comment when nothing happens.
    """
    listener = FeedSubscriber(look)
    live.listen(listener)
    try:
        yield b"retry: %d\n\n" % RETRY_MS + _message(live.counts(), kind="counts")
        yield b"".join(map(_message, reversed(live.newest(look))))
        while not listener.is_closed:
            if not await listener.news(within_s=silence_s):
                yield b": nothing new\n\n"
                continue
            await asyncio.sleep(0 if listener.is_closed else gather_s)
            yield _told(listener) + _message(live.counts(), kind="counts")
    finally:
        live.leave(listener)


def _told(listener: FeedSubscriber) -> bytes:
    start = b""
    if listener.is_restarted:
        listener.is_restarted = False
        start = _message({}, kind="reset")
    entries, missed = listener.take()
    if missed:
        start += _message({"events": missed}, kind="missed")
    return start + b"".join(map(_message, entries))


def _message(content: Any, kind: str = "") -> bytes:
    # A line end inside JSON is only ever space between its tokens, and here it would end the message.
    data = msgspec.json.encode(content).replace(b"\r", b" ").replace(b"\n", b" ")
    return (b"event: %b\n" % kind.encode() if kind else b"") + b"data: %b\n\n" % data
