"""Counts of received events by game, added up once per batch.

A call of `EventCounter.by_game` reads only the batches that arrived since the last one.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection

import msgspec

_Owned = tuple[str, str]  # an organisation and its game id


class EventCounts(msgspec.Struct):
    """Numbers of events of one game.

    Attributes:
        accepted: stored in the inbox, repeats included.
        rejected: refused by the collector.
        pending: accepted and not processed yet.
    """

    accepted: int = 0
    rejected: int = 0
    pending: int = 0


class EventCounter:
    """Running sums over the batches of a store."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._up_to = 0
        self._by_game: dict[_Owned, EventCounts] = {}

    def by_game(self, *, processed_up_to: int, shared: Collection[str] = ()) -> dict[str, EventCounts]:
        """Return the counts by game id.

        An id is unique only within its organisation. One that several organisations use, now (*shared*) or in the
        stored batches, is written `organisation/id`.

        Args:
            processed_up_to: id of the last processed batch. Events of later batches are pending.
            shared: game ids that several organisations are configured with.
        """
        (last,) = self._store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        for owned, accepted, rejected in self._sums(self._up_to, last):
            received = self._by_game.setdefault(owned, EventCounts())
            received.accepted += accepted
            received.rejected += rejected
        self._up_to = max(self._up_to, last)
        shared_ids = {
            game_id for game_id, owners in Counter(game_id for _, game_id in self._by_game).items() if owners > 1
        }
        pending = {owned: accepted for owned, accepted, _ in self._sums(processed_up_to, last)}
        named = {
            f"{organisation}/{game_id}" if game_id in shared_ids.union(shared) else game_id: EventCounts(
                received.accepted, received.rejected, pending.get((organisation, game_id), 0)
            )
            for (organisation, game_id), received in self._by_game.items()
        }
        return dict(sorted(named.items()))

    def forget(self) -> None:
        """Start from zero after the batches were deleted. Batch ids are never reused."""
        self._by_game.clear()

    def _sums(self, after: int, up_to: int) -> list[tuple[_Owned, int, int]]:
        """Return accepted and rejected events by organisation and game, after batch *after*."""
        rows = self._store.execute(
            "SELECT organisation, game_id, sum(events), sum(rejected) FROM batches WHERE id > ? AND id <= ? "
            "GROUP BY organisation, game_id",
            (after, up_to),
        )
        return [((organisation, game_id), accepted, rejected) for organisation, game_id, accepted, rejected in rows]
