"""The cache of answered buckets: a bucket is requested again only while it may change.

One SQLite file has a row for each bucket slice, with its rows as an Arrow stream, and one for each restatement. Every
operation opens the file, runs one transaction and closes it, so that threads, kernels and forks share it. SQLite does
not notice a changed byte in its file, so each row has a checksum; a row with a wrong one counts as missing. A file
that is damaged is set aside with its folder, since its write-ahead log must never meet a new file. A folder that cannot
be used never fails a query: the cache switches itself off and says why.

Written here because diskcache and joblib store values under keys: they know neither the buckets that queries of
different length share, nor when a bucket is settled, nor that its rows changed between two answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec
import platformdirs
import pyarrow as pa
from filelock import FileLock

from gamelens._files import replace_file
from gamelens._forks import without_forks
from gamelens.client.tables.table_differences import Restatement, field_changes, rows_changed
from gamelens.client.tables.table_operations import sort_into_buckets
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.intervals import SETTLE_DAYS, Interval
from gamelens.wire.limits import MIB

T = TypeVar("T")
MAX_BYTES: Final = 512 * MIB
PATIENCE_S: Final = 5.0
_UNSETTLED_MAX_AGE_S: Final = (
    90 * 86_400.0
)  # an unsettled bucket that is not requested again is dropped after this time
_USE_RESOLUTION_S: Final = 60.0  # the time of use is written at most this often, so that reads seldom wait for a writer
_YEAR_S: Final = 366 * 86_400
_MOST_RESTATEMENTS: Final = 100_000
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_FOLDER: Final = "answers-2"  # with the version, or two versions would set each other's file aside
_OLDER: Final = "answers"
_OLDER_FILES: Final = re.compile(r"\.?[0-9a-f]{32}-[0-9a-f]{8}\.parquet.*|(index|damaged)\.sqlite.*|opening\.lock")
_APPLICATION: Final = 0x676C656E  # "glen": distinguishes this file from other SQLite files
_VERSION: Final = 2
_SCHEMA: Final = f"""
PRAGMA auto_vacuum = FULL;            -- the file shrinks when rows are deleted
PRAGMA journal_mode = WAL;
CREATE TABLE query (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,         -- hash of the four columns that follow
    owner TEXT NOT NULL,
    metric TEXT NOT NULL,
    dimensions TEXT NOT NULL,
    text TEXT NOT NULL,
    used_at REAL NOT NULL
);
CREATE INDEX query_by_use ON query (used_at);
CREATE TABLE bucket (
    query INTEGER NOT NULL REFERENCES query ON DELETE CASCADE,
    starts INTEGER NOT NULL,          -- microseconds since 1970, as all times of the service
    ends INTEGER NOT NULL,
    bucket_start INTEGER NOT NULL,
    as_of INTEGER NOT NULL,           -- end of the available interval at the time of the request
    fetched_at REAL NOT NULL,
    rows_checksum INTEGER NOT NULL,
    checksum INTEGER NOT NULL,        -- of the query's key and of the columns before
    rows BLOB NOT NULL,               -- an Arrow stream
    UNIQUE (query, starts, ends) ON CONFLICT REPLACE
);
CREATE TABLE restatement (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    metric TEXT NOT NULL,
    noticed_at REAL NOT NULL,
    checksum INTEGER NOT NULL,
    body BLOB NOT NULL                -- a Restatement as JSON
);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""
# Python raises the second when an error message quotes a damaged name.
_SQLITE_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
# Problems of the folder or of other users of the file; every other SQLite error is damage.
_NOT_DAMAGE: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOLFS,
    }
)


_NOTES: Final = b"notes"
_ONE_THREAD: Final = pa.ipc.IpcReadOptions(use_threads=False)  # a bucket is small


class CacheKey(msgspec.Struct, frozen=True):
    """The key of a query in the cache: everything but its interval.

    Attributes:
        metric: the name of the metric.
        dimensions: the dimensions of each row.
        text: canonical JSON of the rest of the query.
        adds_up: whether the values of rows can be summed.
    """

    metric: str
    dimensions: tuple[str, ...]
    text: str
    adds_up: bool


@suggests_names
class CachedRows(msgspec.Struct, frozen=True):
    """Rows of the fresh *slices*, in the order requested.

    *table* is None if there are none. *notes* are what was said when they were answered.
    """

    table: pa.Table | None
    slices: frozenset[BucketSlice]
    notes: tuple[str, ...] = ()


@suggests_names
class CacheInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The contents and state of a cache.

    Attributes:
        folder: the folder of the cache.
        queries, buckets: counts for this key at this address.
        bytes: size of the file, which has the answers of other keys too.
        max_bytes: the limit of that size.
        hits, misses: buckets looked up since the cache was opened.
        off: the reason why the cache has switched itself off; None while it works.
        store_error: the reason why the last answer that could not be stored was not.
        damaged: the folder with the last damaged file, or None.
    """

    folder: str
    queries: int = 0
    buckets: int = 0
    bytes: int = 0
    max_bytes: int = 0
    hits: int = 0
    misses: int = 0
    off: str | None = None
    store_error: str | None = None
    damaged: str | None = None

    def __repr__(self) -> str:
        if self.off is not None:
            return f"Cache in {self.folder}: off, {self.off}"
        contents = f"{self.queries} queries, {self.buckets} buckets"
        size = f"{self.bytes / MIB:.1f} of {self.max_bytes / MIB:.0f} MiB"
        lookups = f"{self.hits} of {self.hits + self.misses} buckets found"
        store_error = f"; the last answer was not stored: {self.store_error}" if self.store_error else ""
        damaged = f"; a damaged file was set aside in {self.damaged}" if self.damaged else ""
        return f"Cache in {self.folder}: {contents}, {size}; {lookups}{store_error}{damaged}"


class _Bucket(msgspec.Struct, frozen=True):
    """A row of the table `bucket`, with the bytes of its rows where they were read."""

    starts: int
    ends: int
    bucket_start: int
    as_of: int
    fetched_at: float
    rows_checksum: int
    body: bytes | None

    def rows(self) -> pa.Table | None:
        """Return the rows, or None if they are damaged."""
        if self.body is None or crc32(self.body) != self.rows_checksum:
            return None
        try:
            return pa.ipc.open_stream(self.body, options=_ONE_THREAD).read_all()
        except (pa.ArrowException, OSError):  # written by a version of pyarrow that this one cannot read
            return None


@suggests_names
class AnswerCache:
    """The answered buckets of one *owner*, safe in threads, processes and forks.

    Rows of other owners are never returned.

    Args:
        folder: created if missing; the file is in its folder `answers-2`, readable by the user only.
        owner: a hash of address and key.
        max_bytes: limit for the answers of all owners in the folder; the queries that were used least recently are
            removed first.
        settle_days: a bucket is settled if it ended this long before the end of the available interval when requested.
        patience_s: longest wait for another process that is writing.
        now: a clock, seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        *,
        owner: str,
        max_bytes: int = MAX_BYTES,
        settle_days: int = SETTLE_DAYS,
        patience_s: float = PATIENCE_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._path = folder / _FOLDER / "answers.sqlite"
        self._damaged = folder / f"{_FOLDER}-damaged"
        self._owner = owner
        self._max_bytes = max_bytes
        self._settle = timedelta(days=settle_days) // _MICROSECOND
        self._patience_s = patience_s
        self._now = now
        self._hits = self._misses = 0
        self._counting = threading.Lock()
        self._off: str | None = None
        self._store_error: str | None = None

    @property
    def off(self) -> str | None:
        """The reason why the cache has switched itself off.

        None while it works.
        """
        return self._off

    def fresh_slices(
        self, key: CacheKey, slices: Iterable[BucketSlice], *, available: Interval, fresh_s: float
    ) -> frozenset[BucketSlice]:
        """Return the slices that are cached and fresh. Reads none of their rows."""
        requested = tuple(slices)
        return frozenset(self._fresh(key, requested, available, fresh_s, column="NULL"))

    def find(self, key: CacheKey, slices: Iterable[BucketSlice], *, available: Interval, fresh_s: float) -> CachedRows:
        """Return the rows of the slices that are cached and fresh.

        A cached slice may have no rows. Where the types of two answers cannot be combined, the rows that do not fit the
        newest ones count as missing.
        """
        requested = tuple(dict.fromkeys(slices))
        fresh = self._fresh(key, requested, available, fresh_s, column="rows")
        tables = {slice_: table for slice_, bucket in fresh.items() if (table := bucket.rows()) is not None}
        if damaged := [fresh[slice_].starts for slice_ in fresh.keys() - tables.keys()]:
            self._try(lambda db: _delete_buckets(db, self._identity(key)[0], damaged), None, writing=True)
        said = [_notes(table) for table in tables.values()]
        tables = {slice_: table.replace_schema_metadata(None) for slice_, table in tables.items()}
        newest_first = sorted(tables, key=lambda slice_: -fresh[slice_].fetched_at)
        try:
            table = _combined(tables.values())
        except pa.ArrowException:
            fitting: list[BucketSlice] = []
            for slice_ in newest_first:
                with contextlib.suppress(pa.ArrowException):
                    _combined([tables[slice_], *(tables[other] for other in fitting)])
                    fitting.append(slice_)
            tables = {slice_: table for slice_, table in tables.items() if slice_ in fitting}
            table = _combined(tables.values())
        if table is None and tables:  # a service that has no rows tells its columns nevertheless
            table = tables[newest_first[0]]
        if tables:
            self._note_use(key)
        with self._counting:
            self._hits += len(tables)
            self._misses += len(requested) - len(tables)
        return CachedRows(table, frozenset(tables), tuple(dict.fromkeys(chain.from_iterable(said))))

    def keep(
        self,
        key: CacheKey,
        slices: Sequence[BucketSlice],
        table: pa.Table,
        *,
        available: Interval,
        notes: Iterable[str] = (),
    ) -> list[Restatement]:
        """Store *table*, the rows of exactly these *slices*, with *notes*, and return the restatements found.

        A restatement is a slice that was stored before with other rows.

        Raises:
            ValueError: two slices have the same bucket start, or a row has the timestamp of no slice.
        """
        said = {_NOTES: msgspec.json.encode(texts)} if (texts := [*notes]) else None
        rows, ranges = sort_into_buckets(
            table.replace_schema_metadata(said), [_micros(slice_.bucket_start) for slice_ in slices]
        )
        parts = [rows.slice(*row_range) for row_range in ranges]
        bodies = [_encode(part) for part in parts]
        size = sum(map(len, bodies))
        if is_too_large := size > self._max_bytes:
            self._store_error = f"its {size} bytes exceed max_bytes"
        as_of, now = _micros(available.end), self._now()

        def store(db: sqlite3.Connection) -> list[Restatement]:
            query_key, *identity = self._identity(key)
            db.execute(
                "INSERT INTO query (key, owner, metric, dimensions, text, used_at) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET used_at = excluded.used_at",
                (query_key, *identity, now),
            )
            ((query,),) = db.execute("SELECT id FROM query WHERE key = ?", (query_key,))
            before = {(old.starts, old.ends): old for old in _buckets(db, query_key, slices, "rows")}
            restated = []
            for slice_, part, body in zip(slices, parts, bodies, strict=True):
                old = before.get(_bounds(slice_))
                if old is None or old.body == body or (old_rows := old.rows()) is None:
                    continue
                if changed := rows_changed(old_rows, part, key.dimensions):
                    restated.append(
                        Restatement(
                            metric=key.metric,
                            dimensions=key.dimensions,
                            text=key.text,
                            interval=slice_.interval,
                            bucket_start=slice_.bucket_start,
                            before_as_of=_EPOCH + old.as_of * _MICROSECOND,
                            as_of=available.end,
                            rows_changed=changed,
                            fields=field_changes(key.metric, old_rows, part, key.dimensions, adds_up=key.adds_up),
                            noticed_at=datetime.fromtimestamp(now, UTC),
                        )
                    )
            if is_too_large:
                db.executemany(
                    "DELETE FROM bucket WHERE query = ? AND starts = ? AND ends = ?",
                    [(query, *_bounds(slice_)) for slice_ in slices],
                )
            else:
                values = (
                    (*_bounds(slice_), _micros(slice_.bucket_start), as_of, now, crc32(body))
                    for slice_, body in zip(slices, bodies, strict=True)
                )
                db.executemany(
                    "INSERT INTO bucket VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [(query, *row, _checksum(query_key, *row), body) for row, body in zip(values, bodies, strict=True)],
                )
                # A damaged B-tree can lose rows silently.
                written = {(bucket.starts, bucket.ends) for bucket in _buckets(db, query_key, slices, "NULL")}
                if not written.issuperset(map(_bounds, slices)):
                    raise sqlite3.DatabaseError("rows that were just written cannot be found")
            self._note_restatements(db, restated)
            self._remove_unused(db, query)
            return restated

        return self._try(store, [], writing=True) if slices else []

    def restatements(self, metric: str | None = None) -> list[Restatement]:
        """Return the restatements noticed, oldest first, of all metrics or of *metric*."""

        def read(db: sqlite3.Connection) -> list[bytes]:
            found = db.execute(
                "SELECT metric, body, checksum FROM restatement "
                "WHERE owner = :owner AND (:metric IS NULL OR metric = :metric) ORDER BY id",
                {"owner": self._owner, "metric": metric},
            )
            return [body for name, body, checksum in found if checksum == _checksum(self._owner, name, body)]

        none: list[bytes] = []
        return [msgspec.json.decode(body, type=Restatement) for body in self._try(read, none)]

    def info(self) -> CacheInfo:
        """Return the contents and the state of the cache."""

        def count(db: sqlite3.Connection) -> tuple[int, int, int, bool]:
            ((queries,),) = db.execute("SELECT count(*) FROM query WHERE owner = ?", (self._owner,))
            ((buckets,),) = db.execute(
                "SELECT count(*) FROM bucket JOIN query ON id = bucket.query WHERE owner = ?", (self._owner,)
            )
            return queries, buckets, _used_bytes(db), self._damaged.exists()

        queries, buckets, used_bytes, is_damaged = self._try(count, (0, 0, 0, False))
        return CacheInfo(
            folder=str(self.folder),
            queries=queries,
            buckets=buckets,
            bytes=used_bytes,
            max_bytes=self._max_bytes,
            hits=self._hits,
            misses=self._misses,
            off=self._off,
            store_error=self._store_error,
            damaged=str(self._damaged) if is_damaged else None,
        )

    def clear(self, *, everything: bool = False) -> None:
        """Remove the rows and restatements of this owner and switch the cache on again.

        Args:
            everything: remove the rows of all owners, the copy of a damaged file, and the files of earlier versions.

        Raises:
            BadQuery: the folder cannot be used.
        """

        def delete(db: sqlite3.Connection) -> None:
            for table in ("query", "restatement"):
                db.execute(f"DELETE FROM {table} WHERE ? OR owner = ?", (everything, self._owner))  # noqa: S608  two constant names

        was_closed = self._off == "closed"
        self._off = self._store_error = None
        self._try(delete, None, writing=True)
        if self._off is not None:
            raise BadQuery("cache", str(self.folder), f"cannot be cleared: {self._off}")
        if everything:
            shutil.rmtree(self._damaged, ignore_errors=True)
            for path in (self.folder / _OLDER).glob("*"):
                if _OLDER_FILES.fullmatch(path.name):
                    with contextlib.suppress(PermissionError):  # on Windows while an earlier version uses it
                        path.unlink(missing_ok=True)
        if was_closed:
            self.close()

    def close(self) -> None:
        """From now on nothing is found and nothing is stored."""
        self._off = self._off or "closed"

    def _try(self, work: Callable[[sqlite3.Connection], T], default: T, *, writing: bool = False) -> T:
        """Return the result of *work* in one transaction, or *default* if the folder fails.

        A damaged file is set aside, and *work* is done with a new one. After a failure the cache is off.
        """
        if self._off is not None:
            return default
        try:
            opened = _inode(self._path)
            try:
                return self._transact(work, writing)
            except _SQLITE_ERRORS as error:
                code: int | None = getattr(error, "sqlite_errorcode", None)
                # A changed byte of its header makes a file read-only that may be written.
                is_header = code == sqlite3.SQLITE_READONLY and os.access(self._path, os.W_OK)
                is_known = code is not None and code & 0xFF in _NOT_DAMAGE and not is_header
                if isinstance(error, sqlite3.ProgrammingError) or is_known:
                    raise
            with self._exclusively():
                if _inode(self._path) == opened:  # or another process has set it aside
                    shutil.rmtree(self._damaged, ignore_errors=True)
                    self._path.parent.rename(self._damaged)
            return self._transact(work, writing)
        except (OSError, *_SQLITE_ERRORS) as error:
            named, words = getattr(error, "filename", None), getattr(error, "strerror", None)
            why = f"{named} cannot be used ({words})" if named and words else f"{type(error).__name__}: {error}"
            self._off = self._off or why
            return default

    def _transact(self, work: Callable[[sqlite3.Connection], T], writing: bool) -> T:
        """Open the file, which is created if it is missing, and return the result of *work* in one transaction."""
        if not self._path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._path.parent.chmod(0o700)
            with self._exclusively():
                if not self._path.exists():
                    with (
                        without_forks(),
                        replace_file(self._path, is_private=True) as draft,
                        contextlib.closing(sqlite3.connect(draft)) as db,
                    ):
                        db.executescript(_SCHEMA)
        with (
            without_forks(),
            contextlib.closing(sqlite3.connect(self._path, timeout=self._patience_s, isolation_level=None)) as db,
        ):
            marks = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
            if marks != (_APPLICATION, _VERSION):
                raise sqlite3.DatabaseError("the file belongs to another program or another version")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = NORMAL")  # what a power cut loses is requested again
            with db:
                db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                return work(db)

    def _exclusively(self) -> contextlib.AbstractContextManager[Any]:
        """Return the lock for creating the file and for setting it aside."""
        return FileLock(self.folder / f"{_FOLDER}.lock", timeout=self._patience_s, mode=0o600)

    def _identity(self, key: CacheKey) -> tuple[str, str, str, str, str]:
        """Return the columns of a query. The first is a hash of the others."""
        columns = (self._owner, key.metric, msgspec.json.encode(key.dimensions).decode(), key.text)
        return hashlib.sha256(msgspec.json.encode(columns)).hexdigest(), *columns

    def _fresh(
        self, key: CacheKey, slices: Sequence[BucketSlice], available: Interval, fresh_s: float, *, column: str
    ) -> dict[BucketSlice, _Bucket]:
        """Return the buckets of the fresh slices, in the order of *slices*, with *column* as the body."""
        if not slices:
            return {}
        none: list[_Bucket] = []
        found = self._try(lambda db: [*_buckets(db, self._identity(key)[0], slices, column)], none)
        cached = {(bucket.starts, bucket.ends): bucket for bucket in found}
        as_of, now = _micros(available.end), self._now()

        def is_fresh(slice_: BucketSlice, bucket: _Bucket) -> bool:
            is_settled = bucket.ends + self._settle <= bucket.as_of
            is_young = bucket.as_of == as_of and 0 <= now - bucket.fetched_at < fresh_s
            return bucket.bucket_start == _micros(slice_.bucket_start) and (is_settled or is_young)

        return {
            slice_: bucket
            for slice_ in slices
            if (bucket := cached.get(_bounds(slice_))) is not None and is_fresh(slice_, bucket)
        }

    def _note_use(self, key: CacheKey) -> None:
        """Write the time of use, by which queries are removed, unless it was written a moment ago."""
        query_key, now = self._identity(key)[0], self._now()
        idle = "FROM query WHERE key = ? AND used_at < ?"
        values = (query_key, now - _USE_RESOLUTION_S)
        if self._try(lambda db: db.execute(f"SELECT 1 {idle}", values).fetchone(), None):
            use = "UPDATE query SET used_at = ? WHERE key = ?"
            self._try(lambda db: db.execute(use, (now, query_key)).close(), None, writing=True)

    def _note_restatements(self, db: sqlite3.Connection, restated: Sequence[Restatement]) -> None:
        """Insert restatements. Those older than a year and the oldest beyond 100,000 go."""
        if not restated:
            return
        now = self._now()
        for restatement in restated:
            body = msgspec.json.encode(restatement)
            row = (self._owner, restatement.metric, now, _checksum(self._owner, restatement.metric, body), body)
            db.execute(
                "INSERT INTO restatement (owner, metric, noticed_at, checksum, body) VALUES (?, ?, ?, ?, ?)", row
            )
        db.execute("DELETE FROM restatement WHERE noticed_at < ?", (now - _YEAR_S,))
        ((last,),) = db.execute("SELECT max(id) FROM restatement")
        db.execute("DELETE FROM restatement WHERE id <= ?", (last - _MOST_RESTATEMENTS,))

    def _remove_unused(self, db: sqlite3.Connection, query: int) -> None:
        """Remove old unsettled buckets of *query*, and beyond `max_bytes` the queries that were used least recently.

        If *query* alone is larger, its earlier answers go.
        """
        now = self._now()
        db.execute(
            "DELETE FROM bucket WHERE query = ? AND ends + ? > as_of AND fetched_at < ?",
            (query, self._settle, now - _UNSETTLED_MAX_AGE_S),
        )
        by_use = db.execute("SELECT id FROM query WHERE id <> ? ORDER BY used_at", (query,)).fetchall()
        for (unused,) in by_use:
            if _used_bytes(db) <= self._max_bytes:
                break
            db.execute("DELETE FROM query WHERE id = ?", (unused,))
        if _used_bytes(db) > self._max_bytes:
            db.execute("DELETE FROM bucket WHERE query = ? AND fetched_at < ?", (query, now))
        db.execute("DELETE FROM query WHERE id = ? AND NOT EXISTS (SELECT 1 FROM bucket WHERE query = id)", (query,))


def _buckets(db: sqlite3.Connection, query_key: str, slices: Sequence[BucketSlice], column: str) -> Iterator[_Bucket]:
    """Yield the intact buckets of a query that start where *slices* lie, with *column* as the body."""
    starts = [_micros(slice_.interval.start) for slice_ in slices]
    found = db.execute(
        f"SELECT starts, ends, bucket_start, as_of, fetched_at, rows_checksum, checksum, {column} "  # noqa: S608  a constant
        "FROM bucket JOIN query ON id = bucket.query WHERE key = ? AND starts BETWEEN ? AND ?",
        (query_key, min(starts), max(starts)),
    )
    for starts, ends, bucket_start, as_of, fetched_at, rows_checksum, checksum, body in found:
        if checksum == _checksum(query_key, starts, ends, bucket_start, as_of, fetched_at, rows_checksum):
            yield _Bucket(starts, ends, bucket_start, as_of, fetched_at, rows_checksum, body)


def _notes(table: pa.Table) -> list[str]:
    """Return the notes that were stored with *table*."""
    said = (table.schema.metadata or {}).get(_NOTES)
    return msgspec.json.decode(said, type=list[str]) if said else []


def _delete_buckets(db: sqlite3.Connection, query_key: str, starts: Iterable[int]) -> None:
    """Delete the buckets of a query that begin at one of *starts*."""
    command = "DELETE FROM bucket WHERE query = (SELECT id FROM query WHERE key = ?) AND starts = ?"
    db.executemany(command, [(query_key, start) for start in starts])


def _combined(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Return the rows of *tables*, or None if there are none.

    Raises:
        ArrowException: two types of a column cannot be combined.
    """
    filled = [table for table in tables if len(table)]
    return pa.concat_tables(filled, promote_options="permissive") if filled else None


def _encode(table: pa.Table) -> bytes:
    """Return *table* as an Arrow stream. With lz4 it is half as large again as with zstd, read ten times as fast."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _used_bytes(db: sqlite3.Connection) -> int:
    """Return the size of the pages that hold something."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _checksum(*values: Any) -> int:
    return crc32(msgspec.json.encode(values))


def _inode(path: Path) -> tuple[int, int] | None:
    """Return device and inode of *path*, or None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _bounds(bucket_slice: BucketSlice) -> tuple[int, int]:
    """Return the interval of a slice in microseconds since 1970."""
    return _micros(bucket_slice.interval.start), _micros(bucket_slice.interval.end)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder: `GAMELENS_CACHE_DIR`, else the system's place."""
    named = environ.get("GAMELENS_CACHE_DIR")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("gamelens")


def open_cache(cache: bool | str | os.PathLike[str], *, address: str, fingerprint: str) -> AnswerCache | None:
    """Open the cache of one key at one address.

    Args:
        cache: the folder; True is the user's cache folder, False returns None.
        address: the address of the service, without a port of this machine, where editions of data tell services apart.
        fingerprint: of the key.
    """
    if cache is False:
        return None
    owner = hashlib.sha256(f"{address} {fingerprint}".encode()).hexdigest()[:32]
    return AnswerCache(cache_folder() if cache is True else Path(cache), owner=owner)
