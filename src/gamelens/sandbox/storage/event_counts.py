"""Counts of received events by game, added up once per batch.

A call of `EventCounter.by_game` reads only the batches that arrived since the last one.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection
from typing import Final

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


_NOBODY: Final = "WITH behind AS (SELECT NULL AS organisation, NULL AS last_batch WHERE false) "


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
            processed_up_to: id of the last processed batch. Events of later batches are pending, and of organisations
                that are behind those after their own last one (`backlog`).
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
        pending = dict(self._pending(processed_up_to, last))
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

    def _pending(self, after: int, up_to: int) -> list[tuple[_Owned, int]]:
        """Return the events that wait for a run, by organisation and game."""
        rows = self._store.execute(
            f"{_NOBODY if self._lacks_backlog() else ''}"  # noqa: S608
            "SELECT organisation, game_id, sum(events) FROM batches LEFT JOIN behind USING (organisation) "
            "WHERE id > min(:after, coalesce((SELECT min(last_batch) FROM behind), :after)) AND id <= :up_to "
            "AND id > coalesce(behind.last_batch, :after) GROUP BY organisation, game_id",
            {"after": after, "up_to": up_to},
        )
        return [((organisation, game_id), events) for organisation, game_id, events in rows]

    def _sums(self, after: int, up_to: int) -> list[tuple[_Owned, int, int]]:
        """Return accepted and rejected events by organisation and game, after batch *after*."""
        rows = self._store.execute(
            "SELECT organisation, game_id, sum(events), sum(rejected) FROM batches WHERE id > ? AND id <= ? "
            "GROUP BY organisation, game_id",
            (after, up_to),
        )
        return [((organisation, game_id), accepted, rejected) for organisation, game_id, accepted, rejected in rows]

    def _lacks_backlog(self) -> bool:
        """Return whether the store has lost the list of organisations that are behind (`Lake.lost_because`)."""
        return self._store.execute("SELECT 1 FROM sqlite_master WHERE name = 'behind'").fetchone() is None
