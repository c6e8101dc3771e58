"""Where accepted events lie until they are processed, and after: SQLite, synced before anything is acknowledged.

One writer thread commits whatever has queued up since its last commit as one transaction (group commit). A commit that
fails fails every request in it. Batches are kept after processing: they are the truth the lake is made from, and each
has a checksum, because SQLite does not notice when a byte of what it holds is another one than was written.
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
from pathlib import Path
from typing import Any, Final, Literal
from zlib import crc32

import msgspec

from gamelens.errors import Refused

QUEUED_BYTES: Final = 64 << 20
"""What may wait for the disk; a sender that comes later is told to come again."""
RESERVED_BYTES: Final = 256 << 20
"""What is left free on the disk: processing needs room, and a full disk stops more than the inbox."""
_GROUP: Final = 256
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order of arrival
    organisation TEXT NOT NULL,
    game_id TEXT NOT NULL,
    arrival_ms INTEGER NOT NULL,
    country TEXT,                           -- of the request's address; the address itself is not kept
    events INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    is_gzipped INTEGER NOT NULL,
    body BLOB NOT NULL,                     -- a JSON array of the good events
    checksum INTEGER                        -- of everything above but the id
);
CREATE TABLE IF NOT EXISTS damaged (        -- what can no longer be read
    batch INTEGER UNIQUE,                   -- NULL where not even the number is known
    kept_in TEXT                            -- the file set aside that still has what there is of it
);
CREATE TABLE IF NOT EXISTS edition (        -- which collection of events this is: one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS population (     -- the scenario that the events are of, if any: at most one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    scenario TEXT NOT NULL
);
"""
_COLUMNS: Final = "organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, checksum"
_VALUES: Final = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"


class InboxBatch(msgspec.Struct, frozen=True, kw_only=True):
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
    written_checksum: int | None = None

    @property
    def checksum(self) -> int:
        """CRC-32 of all that is stored with it."""
        told = (self.organisation, self.game_id, self.arrival_ms, self.country, self.events, self.rejected)
        return crc32(self.body, crc32(repr((*told, self.is_gzipped)).encode()))

    @property
    def is_sound(self) -> bool:
        """Whether it is as it was written."""
        return isinstance(self.body, bytes) and self.written_checksum in (None, self.checksum)


class StoreUnavailable(Refused):
    """The disk did not take a batch, or cannot take more for now; the request may be sent again."""


def open_store(path: Path) -> sqlite3.Connection:
    """A connection to the one SQLite file of a state directory, every commit of which is synced."""
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 16384")  # 64 MB: a checkpoint makes everybody wait
    connection.executescript(_SCHEMA)
    if "checksum" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(batches)")}:
        connection.execute("ALTER TABLE batches ADD COLUMN checksum INTEGER")
    if connection.execute("SELECT 1 FROM edition").fetchone() is None:
        renew_edition(connection, otherwise="IGNORE")  # of two who open it first, one makes it
    return connection


def edition(connection: sqlite3.Connection) -> str:
    """A random id of the collection of events in a store: the same whatever is added, another when any are gone."""
    ((found,),) = connection.execute("SELECT id FROM edition")
    return str(found)


def renew_edition(connection: sqlite3.Connection, *, otherwise: Literal["IGNORE", "REPLACE"] = "REPLACE") -> None:
    """Give a store another id, or with `IGNORE` one if it has none."""
    connection.execute(f"INSERT OR {otherwise} INTO edition VALUES (1, lower(hex(randomblob(16))))")  # noqa: S608


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


def delete_batches(connection: sqlite3.Connection) -> None:
    """Remove every batch, inside of a transaction of the caller's; what comes from now on is another edition."""
    connection.execute("DELETE FROM batches")
    connection.execute("DELETE FROM damaged")
    set_scenario(connection, None)
    renew_edition(connection)


def free_bytes(path: Path) -> int:
    """What is left on the disk that holds *path*."""
    return shutil.disk_usage(path.parent).free


_Waiting = tuple[InboxBatch, "asyncio.Future[None]"]


class Inbox:
    """Commits batches from one thread, for callers on an event loop.

    At most *queued_bytes* wait for the disk, and the disk is never filled to its last *reserved_bytes*. While *trouble*
    says why nothing can be committed, every batch that comes is another try, and so is every *probe_s* without one.
    """

    def __init__(
        self,
        path: Path,
        *,
        queued_bytes: int = QUEUED_BYTES,
        reserved_bytes: int = RESERVED_BYTES,
        free: Callable[[Path], int] = free_bytes,
        probe_s: float = 1,
    ) -> None:
        self._path = path
        self._most_bytes = queued_bytes
        self._reserved_bytes = reserved_bytes
        self._free = free
        self._probe_s = probe_s
        self.trouble: str | None = None
        self._taken_bytes = 0  # written by callers only
        self._done_bytes = 0  # written by the thread only
        self._gathered: list[_Waiting] = []
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="inbox", daemon=True)
        self._thread.start()

    async def commit(self, batch: InboxBatch) -> None:
        """Return once *batch* is on disk.

        Raises:
            StoreFailed: it is not.
        """
        if self._taken_bytes - self._done_bytes + len(batch.body) > self._most_bytes:
            raise StoreUnavailable("more is waiting for the disk than may wait")
        self._taken_bytes += len(batch.body)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._gathered.append((batch, done))
        loop.call_soon(self._hand_over)  # once everybody who is ready has come: a transaction costs more than a batch
        await done

    def close(self) -> None:
        """Commit what is queued and stop."""
        self._hand_over()
        self._queue.put(None)
        self._thread.join()

    def _hand_over(self) -> None:
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    def _write(self) -> None:
        connection = open_store(self._path)
        try:
            while (waiting := self._waiting()) is not None:
                for start in range(0, len(waiting) or 1, _GROUP):
                    self._commit(connection, waiting[start : start + _GROUP])
        finally:
            connection.close()

    def _waiting(self) -> list[_Waiting] | None:
        """Everything that has queued up; nothing when it is time for another try; None at the end."""
        try:
            waiting = self._queue.get(timeout=self._probe_s if self.trouble else None)
        except queue.Empty:
            return []
        while waiting is not None and not self._queue.empty():
            more = self._queue.get()
            if more is None:
                self._queue.put(None)
                break
            waiting = waiting + more
        return waiting

    def _commit(self, connection: sqlite3.Connection, group: list[_Waiting]) -> None:
        self.trouble = self._insert(connection, [batch for batch, _ in group])
        self._done_bytes += sum(len(batch.body) for batch, _ in group)
        _tell([done for _, done in group], StoreUnavailable(self.trouble) if self.trouble else None)

    def _insert(self, connection: sqlite3.Connection, group: list[InboxBatch]) -> str | None:
        """Commit *group*, or nothing of it; why not."""
        try:
            if self._free(self._path) - sum(len(batch.body) for batch in group) < self._reserved_bytes:
                return f"less than {self._reserved_bytes >> 20} MB would be left free on the state directory's disk"
            if group:
                # One statement, because each one lets go of the interpreter and has to wait for it.
                statement = f"INSERT INTO batches ({_COLUMNS}) VALUES {', '.join([_VALUES] * len(group))}"  # noqa: S608
                connection.execute(statement, [value for batch in group for value in _row(batch)])
            elif self.trouble:
                connection.execute("PRAGMA application_id = 0")  # writes, whatever it was
        except (OSError, sqlite3.Error) as error:
            return f"the store does not commit: {error}"
        return None


def pending(
    connection: sqlite3.Connection, *, after: int, up_to: int, organisation: str | None = None
) -> Iterator[InboxBatch]:
    """Batches in the order of arrival, of one *organisation* or of all.

    What is not as it was written is put down as damaged and left out.
    """
    which = "WHERE id > ? AND id <= ? AND organisation = coalesce(?, organisation) ORDER BY id"
    for batch in _read(connection, which, after, up_to, organisation):
        if batch.is_sound:
            yield batch
        else:
            mark_unreadable(connection, [batch.id], kept_in=None)


def newest(connection: sqlite3.Connection, *, most: int = 2000) -> Iterator[InboxBatch]:
    """The last batches to arrive, the very last first."""
    return (batch for batch in _read(connection, "ORDER BY id DESC LIMIT ?", most) if batch.is_sound)


def mark_unreadable(connection: sqlite3.Connection, batches: Iterable[int | None], *, kept_in: str | None) -> None:
    """Remember that *batches* can no longer be read; None is a batch whose number is not known."""
    rows = [(batch, kept_in) for batch in batches]
    connection.executemany("INSERT OR IGNORE INTO damaged (batch, kept_in) VALUES (?, ?)", rows)


def _read(connection: sqlite3.Connection, which: str, *values: int | str | None) -> Iterator[InboxBatch]:
    for row in connection.execute(f"SELECT {_COLUMNS}, id FROM batches {which}", values):  # noqa: S608
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


def _row(batch: InboxBatch) -> tuple[Any, ...]:
    return (
        batch.organisation,
        batch.game_id,
        batch.arrival_ms,
        batch.country,
        batch.events,
        batch.rejected,
        batch.is_gzipped,
        batch.body,
        batch.checksum,
    )


def _tell(waiting: list[asyncio.Future[None]], error: StoreUnavailable | None) -> None:
    """Wake each loop once for all of its requests: a wake-up costs a system call and a turn of both threads."""
    by_loop = defaultdict(list)
    for done in waiting:
        by_loop[done.get_loop()].append(done)
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, settled, error)


def _settle(settled: list[asyncio.Future[None]], error: StoreUnavailable | None) -> None:
    for done in settled:
        if done.cancelled():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
