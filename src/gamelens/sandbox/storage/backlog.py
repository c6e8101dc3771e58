"""Organisations that are behind: those with batches that wait for a run of their own.

A version of the lake has all batches up to its `last_batch`, but of an organisation that is listed here only those up
to its own. A run that fails leaves its organisation in the list, with the reason and the time of the next attempt.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from typing import Final

import msgspec

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS behind (         -- organisations of which the newest version lacks batches
    organisation TEXT PRIMARY KEY,
    last_batch INTEGER NOT NULL,            -- its batches up to this id are in the lake
    processed_ms INTEGER,                   -- time of its last complete run, null before the first
    failures INTEGER NOT NULL DEFAULT 0,    -- runs in a row that failed
    reason TEXT,                            -- of the last failure
    retry_s REAL NOT NULL DEFAULT 0         -- epoch seconds of real time before which it is not tried again
);
"""
FIRST_PAUSE_S: Final = 60
"""Pause after a first failure. Each further failure doubles it."""
LONGEST_PAUSE_S: Final = 3600


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """The batches that the lake lacks of one organisation.

    Attributes:
        last_batch: its batches up to this id are in the lake.
        processed_ms: time of its last complete run, epoch milliseconds on the sandbox's clock; None before the first.
        failures: runs in a row that failed.
        reason: reason of the last failure.
        retry_s: epoch seconds of real time before which the next attempt does not begin by itself.
    """

    last_batch: int
    processed_ms: int | None
    failures: int = 0
    reason: str | None = None
    retry_s: float = 0.0

    @property
    def has_pause(self) -> bool:
        """Whether the pause after a failure is not over."""
        return time.time() < self.retry_s

    def to_json(self) -> dict[str, object]:
        """Return the failure as `GET /summary` shows it."""
        return {"reason": self.reason, "failures": self.failures, "retry_ts": round(self.retry_s)}


def backlogs(store: sqlite3.Connection) -> dict[str, Backlog]:
    """Return the organisations that are behind, by name."""
    rows = store.execute("SELECT organisation, last_batch, processed_ms, failures, reason, retry_s FROM behind")
    return {
        name: Backlog(last_batch=last, processed_ms=ms, failures=failures, reason=reason, retry_s=retry_s)
        for name, last, ms, failures, reason, retry_s in rows
    }


def waiting_events(store: sqlite3.Connection, *, after: int, up_to: int) -> dict[str, int]:
    """Return the number of events that wait for a run, by organisation.

    Organisations with few events come first.

    Args:
        store: the store of the inbox.
        after: id of the last batch that is in the lake, for organisations that are not behind.
        up_to: id of the last batch that counts.
    """
    counts = dict.fromkeys(backlogs(store), 0)
    rows = store.execute(
        "SELECT organisation, sum(events) FROM batches LEFT JOIN behind USING (organisation) "
        "WHERE id > min(:after, coalesce((SELECT min(last_batch) FROM behind), :after)) AND id <= :up_to "
        "AND id > coalesce(behind.last_batch, :after) GROUP BY organisation",
        {"after": after, "up_to": up_to},
    )
    counts.update(rows)
    return dict(sorted(counts.items(), key=lambda item: (item[1], item[0])))


def forget(store: sqlite3.Connection) -> None:
    """Delete the list, inside the caller's transaction: no organisation is behind."""
    store.execute("DELETE FROM behind")


def note_waiting(
    store: sqlite3.Connection, organisations: Mapping[str, int], *, last_batch: int, processed_ms: int | None
) -> None:
    """List *organisations* as behind, from the last batch on that is in the lake.

    A commit for one of them then says nothing about the others.
    """
    with store:
        store.execute("BEGIN IMMEDIATE")
        store.executemany(
            "INSERT OR IGNORE INTO behind (organisation, last_batch, processed_ms) VALUES (?, ?, ?)",
            [(name, last_batch, processed_ms) for name in organisations],
        )


def note_committed(store: sqlite3.Connection, organisation: str, *, up_to: int, last_batch: int) -> None:
    """Record that the lake has the batches of *organisation* up to *up_to*.

    This is part of the caller's transaction. It is behind no more when that is *last_batch*, which the others have
    reached.
    """
    if up_to == last_batch:
        store.execute("DELETE FROM behind WHERE organisation = ?", (organisation,))
    else:
        store.execute("UPDATE behind SET last_batch = ? WHERE organisation = ?", (up_to, organisation))


def note_failure(store: sqlite3.Connection, organisation: str, reason: str) -> Backlog:
    """Record a failed run of *organisation* and the time of the next attempt."""
    failures = backlogs(store)[organisation].failures + 1
    pause_s = min(FIRST_PAUSE_S * 2 ** min(failures - 1, 30), LONGEST_PAUSE_S)
    store.execute(
        "UPDATE behind SET failures = ?, reason = ?, retry_s = ? WHERE organisation = ?",
        (failures, reason, time.time() + pause_s, organisation),
    )
    return backlogs(store)[organisation]
