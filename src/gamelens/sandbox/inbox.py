"""Where accepted events lie until they are processed, and after: SQLite, synced before anything is acknowledged.

One writer thread commits whatever has queued up since its last commit as one transaction (group commit). A commit that
fails fails every request in it. Batches are kept after processing: they are the truth the lake is made from.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from gamelens.errors import Refused

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order of arrival
    organisation TEXT NOT NULL,
    game_id TEXT NOT NULL,
    arrival_ms INTEGER NOT NULL,
    country TEXT,                           -- of the request's address; the address itself is not kept
    events INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    is_gzipped INTEGER NOT NULL,
    body BLOB NOT NULL                      -- a JSON array of the good events
);
"""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The good events of one request."""

    organisation: str
    game_id: str
    arrival_ms: int
    country: str | None
    events: int
    rejected: int
    is_gzipped: bool
    body: bytes
    id: int = 0


class StoreFailed(Refused):
    """The disk did not take a commit; the request may be sent again."""


def open_store(path: Path) -> sqlite3.Connection:
    """A connection to the one SQLite file of a state directory, every commit of which is synced."""
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 16384")  # 64 MB: a checkpoint makes everybody wait
    connection.executescript(_SCHEMA)
    return connection


class Inbox:
    """Commits batches from one thread, for callers on an event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_committing = True
        self._queue: queue.SimpleQueue[tuple[Batch, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="inbox", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> None:
        """Return once *batch* is on disk.

        Raises:
            StoreFailed: it is not.
        """
        done = asyncio.get_running_loop().create_future()
        self._queue.put((batch, done))
        await done

    def close(self) -> None:
        """Commit what is queued and stop."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        connection = open_store(self._path)
        try:
            is_open = True
            while is_open:
                waiting = list(self._waiting())
                is_open = None not in waiting
                group = [entry for entry in waiting if entry is not None]
                error = _insert(connection, [batch for batch, _ in group])
                self.is_committing = error is None
                _tell([done for _, done in group], error)
        finally:
            connection.close()

    def _waiting(self) -> Iterator[tuple[Batch, asyncio.Future[None]] | None]:
        """At least one entry, and everything that has queued up behind it."""
        yield self._queue.get()
        while not self._queue.empty():
            yield self._queue.get()


def pending(connection: sqlite3.Connection, *, after: int, up_to: int) -> Iterator[Batch]:
    """Batches in the order of arrival."""
    rows = connection.execute(
        "SELECT organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, id "
        "FROM batches WHERE id > ? AND id <= ? ORDER BY id",
        (after, up_to),
    )
    return _batches(rows)


def newest(connection: sqlite3.Connection, *, most: int = 2000) -> Iterator[Batch]:
    """The last batches to arrive, the very last first."""
    rows = connection.execute(
        "SELECT organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, id "
        "FROM batches ORDER BY id DESC LIMIT ?",
        (most,),
    )
    return _batches(rows)


def _batches(rows: Iterable[Any]) -> Iterator[Batch]:
    for organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, id_ in rows:
        yield Batch(
            organisation=organisation,
            game_id=game_id,
            arrival_ms=arrival_ms,
            country=country,
            events=events,
            rejected=rejected,
            is_gzipped=bool(is_gzipped),
            body=body,
            id=id_,
        )


def _insert(connection: sqlite3.Connection, group: list[Batch]) -> StoreFailed | None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO batches (organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (b.organisation, b.game_id, b.arrival_ms, b.country, b.events, b.rejected, b.is_gzipped, b.body)
                for b in group
            ],
        )
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return StoreFailed(f"the store did not commit: {error}")
    return None


def _tell(waiting: list[asyncio.Future[None]], error: StoreFailed | None) -> None:
    """Wake each loop once for all of its requests: a wake-up costs a system call and a turn of both threads."""
    by_loop = defaultdict(list)
    for done in waiting:
        by_loop[done.get_loop()].append(done)
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, settled, error)


def _settle(settled: list[asyncio.Future[None]], error: StoreFailed | None) -> None:
    for done in settled:
        if done.cancelled():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
