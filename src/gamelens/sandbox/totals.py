"""How many events came in, by game: each request is summed once, so that a look costs only what is new."""

from __future__ import annotations

import sqlite3

import msgspec


class Received(msgspec.Struct):
    """Events of one game."""

    accepted: int = 0
    rejected: int = 0
    pending: int = 0


class Totals:
    """Sums over the batches of a store, kept between looks."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._up_to = 0
        self._by_game: dict[str, Received] = {}

    def by_game(self, *, processed_up_to: int) -> dict[str, Received]:
        """Events by game id; pending are those of batches behind *processed_up_to*."""
        (last,) = self._store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        for game_id, accepted, rejected in self._store.execute(
            "SELECT game_id, sum(events), sum(rejected) FROM batches WHERE id > ? AND id <= ? GROUP BY game_id",
            (self._up_to, last),
        ):
            received = self._by_game.setdefault(game_id, Received())
            received.accepted += accepted
            received.rejected += rejected
        self._up_to = max(self._up_to, last)
        pending = dict(
            self._store.execute(
                "SELECT game_id, sum(events) FROM batches WHERE id > ? AND id <= ? GROUP BY game_id",
                (processed_up_to, last),
            )
        )
        return {
            game_id: Received(received.accepted, received.rejected, pending.get(game_id, 0))
            for game_id, received in sorted(self._by_game.items())
        }

    def forget(self) -> None:
        """Start again: the batches are gone. Their numbers do not come back."""
        self._by_game.clear()
