"""The live record as server-sent events: one bounded queue for each listener, nobody ever waits for a slow one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from gamelens.sandbox.arrivals import Arrival, Entry, Look
    from gamelens.sandbox.live import Live

QUEUED_EVENTS: Final = 1000
QUEUED_BYTES: Final = 8 << 20
GATHER_S: Final = 0.25  # what comes within it is sent together: a busy collector is not decoded one by one
SILENCE_S: Final = 15.0
RETRY_MS: Final = 2000


class Listener:
    """What one listener has not been told yet. Beyond the limits the oldest requests are dropped and counted."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._waiting: deque[Arrival] = deque()
        self._events = 0
        self._bytes = 0
        self._missed = 0
        self._woken = asyncio.Event()
        self.is_restarted = False
        self.is_closed = False

    def offer(self, arrival: Arrival) -> None:
        """Queue *arrival*; never waits."""
        self._woken.set()
        if not self._look.wants(arrival):
            return
        self._waiting.append(arrival)
        self._events += arrival.events
        self._bytes += arrival.size
        while len(self._waiting) > 1 and (self._events > QUEUED_EVENTS or self._bytes > QUEUED_BYTES):
            oldest = self._waiting.popleft()
            self._events -= oldest.events
            self._bytes -= oldest.size
            self._missed += oldest.events

    def take(self) -> tuple[list[Entry], int]:
        """What has queued up, the oldest first, and how many events were missed before it."""
        missed = self._missed + max(0, self._events - QUEUED_EVENTS)
        newest_first = self._look.shown(reversed(self._waiting))
        entries = list(islice(newest_first, QUEUED_EVENTS))
        self._waiting.clear()
        self._events = self._bytes = self._missed = 0
        return entries[::-1], missed

    def restart(self) -> None:
        """Drop everything: the record was forgotten."""
        self._waiting.clear()
        self._events = self._bytes = self._missed = 0
        self.is_restarted = True
        self._woken.set()

    def close(self) -> None:
        """No more to come."""
        self.is_closed = True
        self._woken.set()

    async def news(self, *, within_s: float) -> bool:
        """True as soon as something came or changed; false when nothing did *within_s*."""
        try:
            async with asyncio.timeout(within_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


async def server_sent_events(
    live: Live, look: Look, *, gather_s: float = GATHER_S, silence_s: float = SILENCE_S
) -> AsyncIterator[bytes]:
    """The stream of *look*: first its newest events, as many as it asks for, then every one that comes.

    An event of the collector is a message; beside them go `counts` (as `Live.counts`), `missed` ({"events"}: so many
    came faster than they were read), `reset` (forget what you have seen), and a comment when nothing happens.
    """
    listener = Listener(look)
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


def _told(listener: Listener) -> bytes:
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
