"""Where events wait until the collector has them (Collector, POST events 3).

Each event is committed before `put` returns. None gets lost silently: each leaves as collected, rejected or dropped
for a reason, and is counted in the same transaction. The counts live as long as the file.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final

import msgspec

from gamelens.client.events.outbox_file import OutboxFile, OutboxUnavailable
from gamelens.wire.limits import BODY_BYTES, KIB, MIB

CAP_BYTES: Final = 5 * MIB  # public-facts 1.10: where the official clients begin to delete
BATCH_EVENTS: Final = 500  # public-facts 1.10
BATCH_BYTES: Final = BODY_BYTES - 4 * KIB  # of plain JSON: under 1 MB as sent, even where gzip gains nothing
CACHE_FULL: Final = "cache full"
DISK: Final = "disk failed"


class BatchKey(msgspec.Struct, frozen=True):
    """Whose events go together in one request: one user, at one address (Collector, Submitting on behalf 2)."""

    user_id: str
    forwarded_for: str | None


class QueuedEvent(msgspec.Struct, frozen=True):
    """An event on its way."""

    id: int
    body: bytes


class OpenSession(msgspec.Struct, frozen=True):
    """A session without an end yet; its times are those of this machine's clock."""

    id: str
    fields: Mapping[str, Any]
    started_s: int
    last_s: int


class Outbox:
    """The queue of one game.

    Args:
        file: where it is kept.
        cap_bytes: of waiting events; beyond it the oldest sessions are deleted whole.
    """

    def __init__(self, file: OutboxFile, *, cap_bytes: int = CAP_BYTES) -> None:
        self.file = file
        self.cap_bytes = cap_bytes
        self._unwritten = 0
        with file.using() as db:
            (self._bytes,) = db.execute("SELECT coalesce(sum(length(body)), 0) FROM events").fetchone()

    def open_session(
        self, session_id: str, user_id: str, fields: Mapping[str, Any], *, now_s: int, forwarded_for: str | None = None
    ) -> int:
        """Begin a session; the answer is its number, counting the sessions of the user."""
        with self._using() as db:
            db.execute("INSERT OR IGNORE INTO players VALUES (?, 0)", (user_id,))
            db.execute("UPDATE players SET sessions = sessions + 1 WHERE user_id = ?", (user_id,))
            (number,) = db.execute("SELECT sessions FROM players WHERE user_id = ?", (user_id,)).fetchone()
            said = msgspec.json.encode({**fields, "session_num": number})
            row = (session_id, user_id, number, forwarded_for, said, now_s, now_s)
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, TRUE)", row)
        return int(number)

    def unfinished(self) -> list[OpenSession]:
        """Sessions without an end, oldest first."""
        with self._using() as db:
            rows = db.execute("SELECT id, fields, started_s, last_s FROM sessions WHERE is_open ORDER BY rowid")
            return [OpenSession(key, msgspec.json.decode(fields), *times) for key, fields, *times in rows]

    def put(self, session_id: str, body: bytes, *, now_s: int, is_vital: bool = False) -> bool:
        """Queue an event; True when it is committed, False when there was no room and it was dropped and counted.

        Room is made by deleting the oldest other sessions whole; a vital event needs none (public-facts 1.10).
        """
        try:
            with self._using() as db:
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
        """Close the session and queue its end, in one step, so that it has exactly one."""
        try:
            with self._using() as db:
                self._make_room(db, len(body), session_id)
                self._insert(db, session_id, body)
                db.execute("UPDATE sessions SET is_open = FALSE WHERE id = ?", (session_id,))
        except OutboxUnavailable:
            self._unwritten += 1

    def buckets(self) -> list[BatchKey]:
        """Who has events waiting, longest waiting first."""
        query = (
            "SELECT user_id, forwarded_for FROM events JOIN sessions ON sessions.id = session_id "
            "GROUP BY user_id, forwarded_for ORDER BY min(events.id)"
        )
        with self._using() as db:
            return [BatchKey(user_id, forwarded_for) for user_id, forwarded_for in db.execute(query)]

    def batch(self, bucket: BatchKey) -> list[QueuedEvent]:
        """The oldest events of *bucket*, as many as one request takes."""
        query = (
            "SELECT events.id, body FROM sessions CROSS JOIN events ON sessions.id = session_id "
            "WHERE user_id = ? AND forwarded_for IS ? ORDER BY events.id LIMIT ?"
        )
        with self._using() as db:
            rows = db.execute(query, (bucket.user_id, bucket.forwarded_for, BATCH_EVENTS)).fetchall()
        sizes = accumulate(len(body) + 1 for _, body in rows)
        fitting = sum(1 for _ in takewhile(lambda size: size <= BATCH_BYTES, sizes))
        return [QueuedEvent(key, body) for key, body in rows[: max(fitting, 1)]]

    def settle(
        self, batch: Sequence[QueuedEvent], *, rejected: int = 0, dropped: Mapping[str, int] | None = None
    ) -> None:
        """Remove *batch*, and count it as collected but for those *rejected* and *dropped*, by reason."""
        gone = dict(dropped or {})
        with self._using() as db:
            found = [event for event in batch if db.execute("DELETE FROM events WHERE id = ?", (event.id,)).rowcount]
            self._bytes -= sum(len(event.body) for event in found)
            # Deleted to make room while they were under way: they were not lost after all.
            missing = len(batch) - len(found)
            collected = len(batch) - rejected - sum(gone.values())
            gone[CACHE_FULL] = gone.get(CACHE_FULL, 0) - missing
            _count(db, {"collected": collected, "rejected": rejected, **gone})
            _forget_ended(db)

    def drop(self, reason: str) -> None:
        """Count an event that is not queued at all."""
        try:
            with self._using() as db:
                _count(db, {reason: 1})
        except OutboxUnavailable:
            self._unwritten += 1

    def waiting(self) -> int:
        """Events that wait."""
        with self._using() as db:
            return int(db.execute("SELECT count(*) FROM events").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Events that left, by how: `collected`, `rejected`, or the reason they were dropped for."""
        with self._using() as db:
            counts = dict(db.execute("SELECT name, events FROM counts WHERE events <> 0").fetchall())
        return counts | ({DISK: self._unwritten} if self._unwritten else {})

    def _make_room(self, db: sqlite3.Connection, size: int, session_id: str) -> None:
        """Delete the oldest sessions but *session_id*, whole, until *size* bytes more fit or no other is left."""
        oldest = "SELECT session_id FROM events WHERE session_id <> ? ORDER BY id LIMIT 1"
        while self._bytes + size > self.cap_bytes:
            found = db.execute(oldest, (session_id,)).fetchone()
            if found is None:
                return
            size_and_count = "SELECT sum(length(body)), count(*) FROM events WHERE session_id = ?"
            freed, dropped = db.execute(size_and_count, found).fetchone()
            db.execute("DELETE FROM events WHERE session_id = ?", found)
            self._bytes -= freed
            _count(db, {CACHE_FULL: dropped})
            _forget_ended(db)

    def _insert(self, db: sqlite3.Connection, session_id: str, body: bytes) -> None:
        db.execute("INSERT INTO events (session_id, body) VALUES (?, ?)", (session_id, body))
        self._bytes += len(body)

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """One transaction of the file; where it fails, the size is what it was."""
        with self.file.lock:
            before = self._bytes
            try:
                with self.file.using() as db:
                    yield db
            except BaseException:
                self._bytes = before
                raise


def as_array(batch: Collection[QueuedEvent]) -> bytes:
    """The events of *batch* as one JSON array."""
    return b"[" + b",".join(event.body for event in batch) + b"]"


def _count(db: sqlite3.Connection, counts: Mapping[str, int]) -> None:
    add = "INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET events = events + excluded.events"
    db.executemany(add, [(name, events) for name, events in counts.items() if events])


def _forget_ended(db: sqlite3.Connection) -> None:
    db.execute(
        "DELETE FROM sessions WHERE is_open = FALSE "
        "AND NOT EXISTS (SELECT 1 FROM events WHERE session_id = sessions.id)"
    )
