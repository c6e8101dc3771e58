"""The queue of events that the collector has not answered for yet.

Each event is committed before `add` returns. No event is lost silently: each leaves as collected, rejected, or dropped
for a reason, and is counted in the same transaction. The counts live as long as the file.

Wire 1.15, Client queue.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final, Protocol

import msgspec

from gamelens.client.events.outbox_file import OutboxFile, OutboxUnavailable
from gamelens.wire.limits import BODY_BYTES, KIB, MIB

CAP_BYTES: Final = 5 * MIB  # where official clients begin to delete (Wire 1.15, Client queue)
BATCH_EVENTS: Final = 500  # Wire 1.15, Client queue
BATCH_BYTES: Final = BODY_BYTES - 4 * KIB  # of plain JSON: below 1 MB when sent, even if gzip does not shrink it
CACHE_FULL: Final = "cache full"
DISK: Final = "disk failed"
UNSENT: Final = "not sent before the end, and no queue file"


class BatchKey(msgspec.Struct, frozen=True):
    """The events of one request: events of one user from one address.

    Wire 1.16, Submitting for players.
    """

    user_id: str
    forwarded_for: str | None


class EncodedEvent(Protocol):
    """An event as JSON, from the queue or a file."""

    @property
    def body(self) -> bytes:
        """The JSON object."""


class QueuedEvent(msgspec.Struct, frozen=True):
    """An event in the queue, encoded."""

    id: int
    body: bytes


class OpenSession(msgspec.Struct, frozen=True):
    """A session without a session_end yet: the common fields of its events, and times of its start and last event.

    The times are on this machine's clock.
    """

    id: str
    fields: Mapping[str, Any]
    started_s: int
    last_s: int


class Outbox:
    """The queue of one game.

    Beyond *cap_bytes* of waiting events the oldest sessions are deleted whole. No session makes room for an older one.
    """

    def __init__(self, file: OutboxFile, *, cap_bytes: int = CAP_BYTES) -> None:
        self.file = file
        self.cap_bytes = cap_bytes
        self._unwritten = 0
        with file.transaction() as db:
            (self._bytes,) = db.execute("SELECT coalesce(sum(length(body)), 0) FROM events").fetchone()

    def open_session(
        self, session_id: str, user_id: str, fields: Mapping[str, Any], *, now_s: int, forwarded_for: str | None = None
    ) -> int:
        """Start a session and return its number among the sessions of the user."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO players VALUES (?, 0)", (user_id,))
            db.execute("UPDATE players SET sessions = sessions + 1 WHERE user_id = ?", (user_id,))
            (number,) = db.execute("SELECT sessions FROM players WHERE user_id = ?", (user_id,)).fetchone()
            fields_json = msgspec.json.encode({**fields, "session_num": number})
            row = (session_id, user_id, number, forwarded_for, fields_json, now_s, now_s)
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, TRUE)", row)
        return int(number)

    def open_sessions(self) -> list[OpenSession]:
        """Return the sessions without an end, oldest first."""
        with self._transaction() as db:
            rows = db.execute("SELECT id, fields, started_s, last_s FROM sessions WHERE is_open ORDER BY rowid")
            return [OpenSession(id_, msgspec.json.decode(fields), *times) for id_, fields, *times in rows]

    def add(self, session_id: str, body: bytes, *, now_s: int, is_vital: bool = False) -> bool:
        """Queue an event and return whether there was room.

        An event without room is dropped and counted. Room is made by deleting whole sessions that started before
        *session_id*, the oldest first. A vital event is queued in any case.
        """
        try:
            with self._transaction() as db:
                self._make_room(db, len(body), session_id)
                fits = is_vital or self._bytes + len(body) <= self.cap_bytes
                if fits:
                    self._insert(db, session_id, body)
                else:
                    _count(db, {CACHE_FULL: 1})
                db.execute("UPDATE sessions SET last_s = ? WHERE id = ?", (now_s, session_id))
        except OutboxUnavailable:
            self._unwritten += 1
            return False
        return fits

    def end_session(self, session_id: str, body: bytes) -> None:
        """Close the session and queue its session_end.

        Both are one transaction, so that a session has exactly one end.
        """
        try:
            with self._transaction() as db:
                self._make_room(db, len(body), session_id)
                self._insert(db, session_id, body)
                db.execute("UPDATE sessions SET is_open = FALSE WHERE id = ?", (session_id,))
        except OutboxUnavailable:
            self._unwritten += 1

    def batch_keys(self) -> list[BatchKey]:
        """Return the keys that have events waiting, longest waiting first."""
        query = (
            "SELECT user_id, forwarded_for FROM events JOIN sessions ON sessions.id = session_id "
            "GROUP BY user_id, forwarded_for ORDER BY min(events.id)"
        )
        with self._transaction() as db:
            return [BatchKey(user_id, forwarded_for) for user_id, forwarded_for in db.execute(query)]

    def batch(self, key: BatchKey) -> list[QueuedEvent]:
        """Return the oldest events of *key*, as many as fit one request."""
        query = (
            "SELECT events.id, body FROM sessions CROSS JOIN events ON sessions.id = session_id "
            "WHERE user_id = ? AND forwarded_for IS ? ORDER BY events.id LIMIT ?"
        )
        with self._transaction() as db:
            rows = db.execute(query, (key.user_id, key.forwarded_for, BATCH_EVENTS)).fetchall()
        sizes = accumulate(len(body) + 1 for _, body in rows)
        fitting = sum(1 for _ in takewhile(lambda size: size <= BATCH_BYTES, sizes))
        return [QueuedEvent(id_, body) for id_, body in rows[: max(fitting, 1)]]

    def remove_batch(
        self, batch: Sequence[QueuedEvent], *, rejected: int = 0, dropped: Mapping[str, int] | None = None
    ) -> None:
        """Remove *batch* and count its events: collected, but for those *rejected* and *dropped*."""
        dropped_counts = dict(dropped or {})
        with self._transaction() as db:
            removed = [event for event in batch if db.execute("DELETE FROM events WHERE id = ?", (event.id,)).rowcount]
            self._bytes -= sum(len(event.body) for event in removed)
            # Deleted to make room while they were being sent: they are not lost after all.
            missing = len(batch) - len(removed)
            collected = len(batch) - rejected - sum(dropped_counts.values())
            dropped_counts[CACHE_FULL] = dropped_counts.get(CACHE_FULL, 0) - missing
            _count(db, {"collected": collected, "rejected": rejected, **dropped_counts})
            _delete_ended_sessions(db)

    def drop(self, reason: str) -> None:
        """Count an event that is not queued."""
        try:
            with self._transaction() as db:
                _count(db, {reason: 1})
        except OutboxUnavailable:
            self._unwritten += 1

    def drop_waiting(self, reason: str) -> None:
        """Delete all events and count them as dropped."""
        with self._transaction() as db:
            _count(db, {reason: db.execute("DELETE FROM events").rowcount})
            self._bytes = 0

    def waiting(self) -> int:
        """Return the number of events in the queue."""
        with self._transaction() as db:
            return int(db.execute("SELECT count(*) FROM events").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Return the number of events that left: `collected`, `rejected`, or dropped by reason."""
        with self._transaction() as db:
            counts = dict(db.execute("SELECT name, events FROM counts WHERE events <> 0").fetchall())
        return counts | ({DISK: self._unwritten} if self._unwritten else {})

    def _make_room(self, db: sqlite3.Connection, size: int, session_id: str) -> None:
        """Delete sessions that started before *session_id*, the oldest first, until *size* more bytes fit."""
        query = (
            "SELECT id FROM sessions WHERE rowid < (SELECT rowid FROM sessions WHERE id = ?) "
            "AND EXISTS (SELECT 1 FROM events WHERE session_id = sessions.id) ORDER BY rowid LIMIT 1"
        )
        while self._bytes + size > self.cap_bytes:
            oldest = db.execute(query, (session_id,)).fetchone()
            if oldest is None:
                return
            size_and_count = "SELECT sum(length(body)), count(*) FROM events WHERE session_id = ?"
            freed, dropped = db.execute(size_and_count, oldest).fetchone()
            db.execute("DELETE FROM events WHERE session_id = ?", oldest)
            self._bytes -= freed
            _count(db, {CACHE_FULL: dropped})
            _delete_ended_sessions(db)

    def _insert(self, db: sqlite3.Connection, session_id: str, body: bytes) -> None:
        db.execute("INSERT INTO events (session_id, body) VALUES (?, ?)", (session_id, body))
        self._bytes += len(body)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction of the file.

        A failure restores the size in memory.
        """
        with self.file.lock:
            before = self._bytes
            try:
                with self.file.transaction() as db:
                    yield db
            except BaseException:
                self._bytes = before
                raise


def as_array(batch: Collection[EncodedEvent]) -> bytes:
    """Return the events of *batch* as one JSON array."""
    return b"[" + b",".join(event.body for event in batch) + b"]"


def _count(db: sqlite3.Connection, counts: Mapping[str, int]) -> None:
    add = "INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET events = events + excluded.events"
    db.executemany(add, [(name, events) for name, events in counts.items() if events])


def _delete_ended_sessions(db: sqlite3.Connection) -> None:
    db.execute(
        "DELETE FROM sessions WHERE is_open = FALSE "
        "AND NOT EXISTS (SELECT 1 FROM events WHERE session_id = sessions.id)"
    )
