"""The newest events, good and bad, for whoever looks: kept as they came, decoded only when somebody does.

The collector hands a request over right after its commit; that costs it a few microseconds, whoever is looking. Nothing
here knows where a request came from. `arrivals` says what is kept, `listening` makes a stream of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final

from gamelens.errors import Refused
from gamelens.sandbox.collector.live_entries import (
    STATUSES,
    UNKNOWN,
    FeedEvent,
    FeedFilter,
    FeedRequest,
    Status,
    category_of,
)
from gamelens.sandbox.storage.inbox import InboxBatch
from gamelens.wire.event_schema import CATEGORIES
from gamelens.wire.event_validator import RejectedEvent

KEPT_EVENTS: Final = 1000
"""Of each game and status; a request is kept or forgotten whole, so there may be some more."""
KEPT_BYTES: Final = 4 << 20
RECALLED_BYTES: Final = 32 << 20
MOST_LISTENERS: Final = 64
QUEUED_EVENTS: Final = 1000
QUEUED_BYTES: Final = 8 << 20


class FeedSubscriber:
    """What one listener has not been told yet. Beyond the limits the oldest requests are dropped and counted."""

    def __init__(self, look: FeedFilter) -> None:
        self._look = look
        self._waiting: deque[FeedRequest] = deque()
        self._events = 0
        self._bytes = 0
        self._missed = 0
        self._woken = asyncio.Event()
        self.is_restarted = False
        self.is_closed = False

    def offer(self, arrival: FeedRequest) -> None:
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

    def take(self) -> tuple[list[FeedEvent], int]:
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


class LiveFeed:
    """The record itself: what came in lately, how much of it, and who is told.

    Args:
        titles: of the games, by game key.
        since_ts: when counting began, epoch seconds.
    """

    def __init__(self, titles: Mapping[str, str], *, since_ts: int = 0) -> None:
        self.titles = titles
        self._since_ts = since_ts
        self._number = 0
        self._kept: dict[tuple[str, Status], _Newest] = {}
        self._counts: defaultdict[tuple[str, Status], Counter[str]] = defaultdict(Counter)
        self._refused: Counter[int] = Counter()
        self._listeners: set[FeedSubscriber] = set()

    def took(
        self,
        game_key: str,
        batch: InboxBatch,
        *,
        categories: Mapping[str, int],
        rejected: list[RejectedEvent],
    ) -> None:
        """Note one request: its good events, by category, are on disk; its bad ones are *rejected*."""
        counted = self._counts[game_key, "accepted"]
        for category, events in categories.items():
            counted[category] += events
        for it in rejected:
            said = category_of(it.event)
            self._counts[game_key, "rejected"][said if said in CATEGORIES else UNKNOWN] += 1
        for arrival in self._arrivals(game_key, batch, rejected):
            self._keep(arrival)
            for listener in self._listeners:
                listener.offer(arrival)

    def refused(self, status: int) -> None:
        """Note a request that was refused as a whole."""
        self._refused[status] += 1

    def recall(self, stored: Iterable[tuple[str, InboxBatch]]) -> None:
        """Take back what an earlier start accepted: game keys and batches, the newest first, as far as is worth it."""
        taken: list[tuple[str, InboxBatch]] = []
        taken_bytes = 0
        for game_key, batch in stored:
            taken.append((game_key, batch))
            taken_bytes += len(batch.body)
            if taken_bytes > RECALLED_BYTES:
                break
        for game_key, batch in reversed(taken):
            for arrival in self._arrivals(game_key, batch, []):
                self._keep(arrival)

    def newest(self, look: FeedFilter) -> list[FeedEvent]:
        """The newest events of *look*, the newest first."""
        kept = merge(*self._kept.values(), key=lambda arrival: -arrival.number)
        return list(islice(look.shown(kept), look.limit))

    def counts(self) -> dict[str, Any]:
        """How many events came since the start, in all, by category and by game key, and requests refused by status."""
        totals = _zeros()
        categories: dict[str, dict[str, int]] = {}
        by_game = {game_key: _zeros() for game_key in self.titles}
        for (game_key, status), counts in self._counts.items():
            for category, events in sorted(counts.items()):
                for counted in (totals, by_game[game_key], categories.setdefault(category, _zeros())):
                    counted[status] += events
        games = {game_key: {"title": self.titles[game_key], **counted} for game_key, counted in by_game.items()}
        refused = {str(status): requests for status, requests in sorted(self._refused.items())}
        return {"since_ts": self._since_ts, **totals, "categories": categories, "games": games, "refused": refused}

    def check_listeners(self) -> None:
        """See to it that there is room for one more.

        Raises:
            Refused: too many listen already.
        """
        if len(self._listeners) >= MOST_LISTENERS:
            raise Refused(f"{MOST_LISTENERS} listen already: close a page first")

    def listen(self, listener: FeedSubscriber) -> None:
        """Tell *listener* of every arrival from now on."""
        self._listeners.add(listener)

    def leave(self, listener: FeedSubscriber) -> None:
        """Tell *listener* no more."""
        self._listeners.discard(listener)

    def forget(self, *, since_ts: int) -> None:
        """Forget everything and count from *since_ts*."""
        self._since_ts = since_ts
        self._kept.clear()
        self._counts.clear()
        self._refused.clear()
        for listener in self._listeners:
            listener.restart()

    def close(self) -> None:
        """Send every listener home."""
        for listener in self._listeners:
            listener.close()

    def _arrivals(self, game_key: str, batch: InboxBatch, rejected: list[RejectedEvent]) -> Iterator[FeedRequest]:
        """One for each status that occurs."""
        of: dict[str, Any] = {"arrival_ms": batch.arrival_ms, "game_key": game_key}
        if rejected:
            self._number += 1
            yield FeedRequest(**of, number=self._number, status="rejected", events=len(rejected), rejected=rejected)
        if batch.events:
            self._number += 1
            of |= {"body": batch.body, "is_gzipped": batch.is_gzipped}
            yield FeedRequest(**of, number=self._number, status="accepted", events=batch.events)

    def _keep(self, arrival: FeedRequest) -> None:
        key = arrival.game_key, arrival.status
        if key not in self._kept:
            self._kept[key] = _Newest()
        self._kept[key].add(arrival)


class _Newest:
    """The newest arrivals of one game and status, within the limits; the last one always stays."""

    def __init__(self) -> None:
        self._arrivals: deque[FeedRequest] = deque()
        self._events = 0
        self._bytes = 0

    def __iter__(self) -> Iterator[FeedRequest]:
        """The newest first."""
        return reversed(self._arrivals)

    def add(self, arrival: FeedRequest) -> None:
        self._arrivals.append(arrival)
        self._events += arrival.events
        self._bytes += arrival.size
        while len(self._arrivals) > 1 and (
            self._events - self._arrivals[0].events >= KEPT_EVENTS or self._bytes > KEPT_BYTES
        ):
            oldest = self._arrivals.popleft()
            self._events -= oldest.events
            self._bytes -= oldest.size


def _zeros() -> dict[str, int]:
    return dict.fromkeys(STATUSES, 0)
