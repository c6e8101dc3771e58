"""The inbox: accepted events in SQLite, synced before their request is answered.

One writer thread commits everything that has queued up since its last commit as one transaction (group commit). A
commit that fails fails every request in it. Batches stay after processing, because the lake is built from them. Each
has a checksum: SQLite does not notice when a stored byte changes. `acknowledged_batches` tells how many there were.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import shutil
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal
from zlib import crc32

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches

QUEUED_BYTES: Final = 64 << 20
"""Bytes that may wait to be written. Beyond it a request is answered 503."""
"""Bytes left free on the disk: processing needs room."""
_GROUP: Final = 256  # batches in one transaction
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order of arrival
    organisation TEXT NOT NULL,
    game_id TEXT NOT NULL,
    arrival_ms INTEGER NOT NULL,
    country TEXT,                           -- of the request's address, which is not stored itself
    events INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    is_gzipped INTEGER NOT NULL,
    body BLOB NOT NULL,                     -- a JSON array of the good events
    checksum INTEGER                        -- CRC-32 of the columns above, without the id
);
CREATE TABLE IF NOT EXISTS damaged (        -- batches that can no longer be read
    batch INTEGER UNIQUE,                   -- NULL where not even the number is known
    kept_in TEXT,                           -- the damaged file in quarantine, relative to the state directory
    is_lost INTEGER NOT NULL DEFAULT 0      -- whether its events are not in the lake either, and nobody accepted that
);
CREATE TABLE IF NOT EXISTS edition (        -- random id of this collection of events: one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS population (     -- the scenario that the events are of, if any: at most one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    scenario TEXT NOT NULL
);
"""
_STORED: Final = (
    *("organisation", "game_id", "arrival_ms", "country", "events", "rejected", "is_gzipped", "body", "checksum"),
)
_COLUMNS: Final = ", ".join(_STORED)
_VALUES: Final = f"({', '.join('?' * len(_STORED))})"


class InboxBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Good events of one request: *body* is a JSON array, as sent where all of them are good.

    It arrived in epoch milliseconds on the sandbox's clock, from an address in *country* (two letters); *rejected*
    events of the request were refused. Before it is stored its *id*, the order of arrival, is 0, and its stored
    checksum None.
    """

    organisation: str
    game_id: str
    arrival_ms: int
    country: str | None
    events: int
    rejected: int
    is_gzipped: bool
    body: bytes
    id: int = 0
    written_checksum: int | None = None

    @property
    def checksum(self) -> int:
        """CRC-32 of all stored fields."""
        stored_fields = (self.organisation, self.game_id, self.arrival_ms, self.country, self.events, self.rejected)
        return crc32(self.body, crc32(repr((*stored_fields, self.is_gzipped)).encode()))

    @property
    def is_sound(self) -> bool:
        """Whether the batch is as it was written."""
        return isinstance(self.body, bytes) and self.written_checksum in (None, self.checksum)


class StoreUnavailable(Refused):
    """A batch was not stored. The request may be sent again."""


def open_store(path: Path) -> sqlite3.Connection:
    """Connect to the SQLite file of a state directory, and create missing tables.

    Every commit is synced (WAL, `synchronous = FULL`).
    """
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 16384")  # pages, 64 MB: every commit waits for a checkpoint
    connection.executescript(_SCHEMA)
    if "is_lost" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(damaged)")}:
        connection.execute("ALTER TABLE damaged ADD COLUMN is_lost INTEGER NOT NULL DEFAULT 0")
    if connection.execute("SELECT 1 FROM edition").fetchone() is None:
        renew_edition(connection, on_conflict="IGNORE")  # two connections may open a new store at once
    return connection


def edition(connection: sqlite3.Connection) -> str:
    """Return the random id of the collection of events in a store.

    It stays while events are added and changes when any are deleted or lost (Wire 2.4, Available interval).
    """
    ((edition_id,),) = connection.execute("SELECT id FROM edition")
    return str(edition_id)


def identity(connection: sqlite3.Connection) -> str:
    """Return the random id of the state directory that a store belongs to, empty before it has one."""
    try:
        row = connection.execute("SELECT id FROM identity").fetchone()
    except sqlite3.OperationalError:  # no such table
        return ""
    return str(row[0]) if row else ""


def give_identity(connection: sqlite3.Connection, new: str) -> str:
    """Give a store that has no identity the one called *new*, on disk without its log, and return what it has."""
    if not identity(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS identity (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT)")
        connection.execute("INSERT OR IGNORE INTO identity VALUES (1, ?)", (new,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return identity(connection)


def renew_edition(connection: sqlite3.Connection, *, on_conflict: Literal["IGNORE", "REPLACE"] = "REPLACE") -> None:
    """Give a store another id, or with `IGNORE` one only if it has none."""
    connection.execute(f"INSERT OR {on_conflict} INTO edition VALUES (1, lower(hex(randomblob(16))))")  # noqa: S608


def scenario(connection: sqlite3.Connection) -> str | None:
    """Return the name of the scenario that the events are of, or None where it was not set."""
    row = connection.execute("SELECT scenario FROM population").fetchone()
    return None if row is None else str(row[0])


def set_scenario(connection: sqlite3.Connection, name: str | None) -> None:
    """Store the name of the scenario that the events are of, or remove it with None."""
    if name is None:
        connection.execute("DELETE FROM population")
    else:
        connection.execute("INSERT OR REPLACE INTO population VALUES (1, ?)", (name,))


def delete_batches(connection: sqlite3.Connection) -> int:
    """Delete every batch, inside the caller's transaction, and renew the edition.

    Returns:
        The highest id that a batch ever had.
    """
    connection.execute("DELETE FROM batches")
    connection.execute("DELETE FROM damaged")
    set_scenario(connection, None)
    renew_edition(connection)
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'batches'").fetchone()
    return int(row[0]) if row else 0


def free_bytes(path: Path) -> int:
    """Return the free bytes of the disk that holds *path*."""
    return shutil.disk_usage(path.parent).free


_QueuedBatch = tuple[InboxBatch, "asyncio.Future[None]"]


class Inbox:
    """Commits batches from one thread, for callers on event loops.

    While *trouble*, the reason why nothing can be committed, is set, every batch that arrives is another attempt, and
    so is every *retry_s* without one. Bodies beyond *queued_bytes* are refused, and *reserved_bytes* of the disk, of
    which *free* returns the free bytes, are never filled.
    """

    def __init__(
        self,
        path: Path,
        *,
        queued_bytes: int = QUEUED_BYTES,
        reserved_bytes: int = 0,
        free: Callable[[Path], int] = free_bytes,
        retry_s: float = 1,
    ) -> None:
        self._path = path
        self._max_queued_bytes = queued_bytes
        self._reserved_bytes = reserved_bytes
        self._free = free
        self._retry_s = retry_s
        self._acknowledged = AcknowledgedBatches(path)
        self.trouble: str | None = None
        self._accepted_bytes = 0  # changed by callers only
        self._finished_bytes = 0  # changed by the thread only
        self._gathered: list[_QueuedBatch] = []
        self._queue: queue.SimpleQueue[list[_QueuedBatch] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_writer, name="inbox", daemon=True)
        self._thread.start()

    async def commit(self, batch: InboxBatch) -> None:
        """Return once *batch* is on disk (Wire 1.7, Submitting events).

        Raises:
            StoreUnavailable: it is not stored.
        """
        if self._accepted_bytes - self._finished_bytes + len(batch.body) > self._max_queued_bytes:
            raise StoreUnavailable("too much is waiting to be written to the disk")
        self._accepted_bytes += len(batch.body)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._gathered.append((batch, done))
        loop.call_soon(self._enqueue)  # after the other ready requests: a transaction costs more than a batch
        await done

    def close(self) -> None:
        """Commit the queued batches and stop the thread."""
        self._enqueue()
        self._queue.put(None)
        self._thread.join()
        self._acknowledged.close()

    def forget(self, last: int) -> None:
        """Expect no batch with an id up to *last* any more.

        Called within the transaction that deletes them, so that no commit is between.
        """
        self._acknowledged.delete(last)

    def _enqueue(self) -> None:
        """Hand all gathered batches to the writer thread at once."""
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    def _run_writer(self) -> None:
        connection = open_store(self._path)
        try:
            while (waiting := self._take_queued()) is not None:
                for start in range(0, len(waiting) or 1, _GROUP):
                    group = waiting[start : start + _GROUP]
                    self.trouble = self._insert(connection, [batch for batch, _ in group])
                    self._finished_bytes += sum(len(batch.body) for batch, _ in group)
                    _resolve([done for _, done in group], StoreUnavailable(self.trouble) if self.trouble else None)
                    with contextlib.suppress(OSError):  # the next commit fails too and says why
                        self._acknowledged.sync_if_due()
        finally:
            connection.close()

    def _take_queued(self) -> list[_QueuedBatch] | None:
        """Return everything queued: an empty list when an attempt is due, None at the end."""
        try:
            waiting = self._queue.get(timeout=self._retry_s if self.trouble else None)
        except queue.Empty:
            return []
        while waiting is not None and not self._queue.empty():
            more = self._queue.get()
            if more is None:
                self._queue.put(None)
                break
            waiting = waiting + more
        return waiting

    def _insert(self, connection: sqlite3.Connection, group: list[InboxBatch]) -> str | None:
        """Commit all of *group* or none of it, and return the reason of a failure."""
        try:
            if self._free(self._path) - sum(len(batch.body) for batch in group) < self._reserved_bytes:
                return f"less than {self._reserved_bytes >> 20} MB would be left free on the state directory's disk"
            if group:
                # One statement for all, because each statement releases the GIL and has to get it back.
                statement = f"INSERT INTO batches ({_COLUMNS}) VALUES {', '.join([_VALUES] * len(group))}"  # noqa: S608
                cursor = connection.execute(statement, [getattr(batch, name) for batch in group for name in _STORED])
                self._acknowledged.acknowledge(cursor.lastrowid or 0)
            elif self.trouble:
                connection.execute("PRAGMA application_id = 0")  # a write that changes nothing
        except (OSError, sqlite3.Error) as error:
            return f"the store cannot commit: {error}"
        return None


def stored(
    connection: sqlite3.Connection, *, after: int, up_to: int, organisation: str | None = None
) -> Iterator[InboxBatch]:
    """Yield batches in order of arrival, of one *organisation* or of all, damaged ones as well (`is_sound`)."""
    clause = "WHERE id > ? AND id <= ? AND organisation = coalesce(?, organisation) ORDER BY id"
    return _read(connection, clause, after, up_to, organisation)


def pending(
    connection: sqlite3.Connection, *, after: int, up_to: int, organisation: str | None = None
) -> Iterator[InboxBatch]:
    """Yield batches as `stored` does, but for those that fail their checksum, which are recorded as damaged."""
    for batch in stored(connection, after=after, up_to=up_to, organisation=organisation):
        if batch.is_sound:
            yield batch
        else:
            mark_unreadable(connection, [batch.id], file=None)


def newest(connection: sqlite3.Connection, *, most: int = 2000) -> Iterator[InboxBatch]:
    """Yield the last *most* batches to arrive, newest first, without damaged ones."""
    return (batch for batch in _read(connection, "ORDER BY id DESC LIMIT ?", most) if batch.is_sound)


def first_arrival_ms(connection: sqlite3.Connection, *, after: int, organisation: str) -> int | None:
    """Return when the first batch of *organisation* after the one with id *after* arrived, None if there is none."""
    first = "SELECT arrival_ms FROM batches WHERE id > ? AND organisation = ? ORDER BY id LIMIT 1"
    row = connection.execute(first, (after, organisation)).fetchone()
    return None if row is None else int(row[0])


def mark_unreadable(connection: sqlite3.Connection, batches: Iterable[int | None], *, file: str | None) -> None:
    """Record that *batches* can no longer be read: their ids, or None where that is not known either.

    *file* is the damaged file in quarantine, relative to the state directory, if there is one.
    """
    in_lake = 0  # the id up to which all batches are in the lake, if that can be told
    for organisations in ("behind", "organisations"):  # `behind` is of 0.1
        with contextlib.suppress(sqlite3.DatabaseError):
            ((in_lake,),) = connection.execute(
                "SELECT min(coalesce((SELECT last_batch FROM runs ORDER BY number DESC LIMIT 1), 0),"  # noqa: S608
                f" coalesce((SELECT min(last_batch) FROM {organisations}), 9e18))"
            )
    rows = [(batch, file, batch is not None and batch > in_lake) for batch in batches]
    connection.executemany("INSERT OR IGNORE INTO damaged (batch, kept_in, is_lost) VALUES (?, ?, ?)", rows)


def lost_events(connection: sqlite3.Connection) -> str | None:
    """Return a sentence about batches that were lost before they were processed, None without any.

    It names the days on which they can have arrived, by the batches around them.
    """
    try:
        count, first, last = connection.execute(
            "SELECT count(*), min(batch), max(batch) FROM damaged WHERE is_lost"
        ).fetchone()
    except sqlite3.OperationalError:  # a store of an earlier version, which is only read
        return None
    if not count:
        return None
    around = [
        "SELECT max(arrival_ms) FROM (SELECT arrival_ms FROM batches WHERE id < ? ORDER BY id DESC LIMIT 1)",
        "SELECT max(arrival_ms) FROM (SELECT arrival_ms FROM batches WHERE id > ? ORDER BY id LIMIT 1)",
    ]
    bounds = [connection.execute(query, (id_,)).fetchone()[0] for query, id_ in zip(around, (first, last), strict=True)]
    when = " and ".join(
        f"{side} {datetime.fromtimestamp(ms / 1000, UTC).date()}"
        for side, ms in zip(("on or after", "on or before"), bounds, strict=True)
        if ms is not None
    )
    return (
        f"{count} acknowledged batches of events are damaged and were not processed; they arrived "
        f"{when or 'on unknown days'}, and their events are lost. `gamelens sandbox rebuild --accept-loss` "
        "on the stopped sandbox continues without them"
    )


def accept_loss(connection: sqlite3.Connection) -> None:
    """Note that a person goes on without the batches that are lost."""
    connection.execute("UPDATE damaged SET is_lost = 0")


def _read(connection: sqlite3.Connection, clause: str, *values: int | str | None) -> Iterator[InboxBatch]:
    for row in connection.execute(f"SELECT {_COLUMNS}, id FROM batches {clause}", values):  # noqa: S608
        organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, checksum, id_ = row
        yield InboxBatch(
            organisation=organisation,
            game_id=game_id,
            arrival_ms=arrival_ms,
            country=country,
            events=events,
            rejected=rejected,
            is_gzipped=bool(is_gzipped),
            body=body,
            id=id_,
            written_checksum=checksum,
        )


def _resolve(waiting: list[asyncio.Future[None]], error: StoreUnavailable | None) -> None:
    """Resolve the futures with one wake-up per event loop.

    A wake-up costs a system call and a switch between both threads.
    """
    by_loop = defaultdict(list)
    for done in waiting:
        by_loop[done.get_loop()].append(done)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits for it
            loop.call_soon_threadsafe(_resolve_futures, futures, error)


def _resolve_futures(futures: list[asyncio.Future[None]], error: StoreUnavailable | None) -> None:
    for done in futures:
        if done.cancelled():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
