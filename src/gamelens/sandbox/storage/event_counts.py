"""How many events came in, by game: each request is summed once, so that a look costs only what is new."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection

import msgspec

_Owned = tuple[str, str]  # an organisation and its game id


class EventCounts(msgspec.Struct):
    """Events of one game."""

    accepted: int = 0
    rejected: int = 0
    pending: int = 0


class EventCounter:
    """Sums over the batches of a store, kept between looks."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._up_to = 0
        self._by_game: dict[_Owned, EventCounts] = {}

    def by_game(self, *, processed_up_to: int, shared: Collection[str] = ()) -> dict[str, EventCounts]:
        """Events by game id; pending are those of batches behind *processed_up_to*.

        An id belongs to its organisation only: one that several have, now (*shared*) or in what they sent, is written
        `organisation/id`.
        """
        (last,) = self._store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        for owned, accepted, rejected in self._sums(self._up_to, last):
            received = self._by_game.setdefault(owned, EventCounts())
            received.accepted += accepted
            received.rejected += rejected
        self._up_to = max(self._up_to, last)
        several = {
            game_id for game_id, owners in Counter(game_id for _, game_id in self._by_game).items() if owners > 1
        }
        pending = {owned: accepted for owned, accepted, _ in self._sums(processed_up_to, last)}
        named = {
            f"{organisation}/{game_id}" if game_id in several.union(shared) else game_id: EventCounts(
                received.accepted, received.rejected, pending.get((organisation, game_id), 0)
            )
            for (organisation, game_id), received in self._by_game.items()
        }
        return dict(sorted(named.items()))

    def forget(self) -> None:
        """Start again: the batches are gone. Their numbers do not come back."""
        self._by_game.clear()

    def _sums(self, after: int, up_to: int) -> list[tuple[_Owned, int, int]]:
        """Accepted and rejected events of the batches behind *after*, for each organisation and game id."""
        rows = self._store.execute(
            "SELECT organisation, game_id, sum(events), sum(rejected) FROM batches WHERE id > ? AND id <= ? "
            "GROUP BY organisation, game_id",
            (after, up_to),
        )
        return [((organisation, game_id), accepted, rejected) for organisation, game_id, accepted, rejected in rows]
