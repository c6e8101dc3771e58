"""The SQLite file that records the place of each entry: one connection per process.

Write-ahead mode lets several kernels use it at once; synchronous=NORMAL is enough, since rows lost in a power cut are
only requested again. A file that is damaged or belongs to another program is moved away, and a new one is created.
There is at most one such copy.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from gamelens._files import create_private
from gamelens.client.cache.index_queries import APPLICATION, SCHEMA, VERSION

T = TypeVar("T")

_SUFFIXES: Final = ("", "-wal", "-shm")
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


class _ProcessConnection:
    """The connection of one process, closed with it.

    From Python 3.13 on, one that is left open is a warning.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.identity: tuple[int, int] | None = None
        self._process = os.getpid()

    def __del__(self) -> None:
        if self.db is not None and self._process == os.getpid():
            self.db.close()


class SqliteIndex:
    """The index in *folder*, created if missing and opened at first use in each process.

    *patience_s* is the longest wait for another writer.
    """

    def __init__(self, folder: Path, *, patience_s: float) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._path = folder / "index.sqlite"
        # A forked child must not use or close its parent's connection, and the parent's lock may never be released.
        self._connections: dict[int, _ProcessConnection] = {}
        self.is_closed = False

    @property
    def lock(self) -> threading.RLock:
        """The lock that admits one thread of this process at a time."""
        return self._current.lock

    def run(self, work: Callable[[sqlite3.Connection], T], *, writing: bool = False) -> T:
        """Return the result of *work* in one transaction, on a new index if this one is damaged.

        Raises:
            OSError, sqlite3.Error: the folder cannot be used.
        """
        with self.lock:
            try:
                return _transact(self._open(), work, writing)
            except _SQLITE_ERRORS as error:
                if not _is_damage(error):
                    raise
            self._discard_damaged()
            return _transact(self._open(), work, writing)

    def close(self) -> None:
        """Close the file. It is opened again when needed, unless `is_closed`."""
        current = self._current
        with current.lock:
            if current.db is not None:
                current.db.close()
            current.db = current.identity = None

    def remove_damaged(self) -> None:
        """Remove the copy of a damaged index."""
        for suffix in _SUFFIXES:
            self._quarantine_path(suffix).unlink(missing_ok=True)

    @property
    def _current(self) -> _ProcessConnection:
        return self._connections.setdefault(os.getpid(), _ProcessConnection())

    def _open(self) -> sqlite3.Connection:
        """Return the connection of this process.

        Connect again if the file was replaced.
        """
        if self.is_closed:
            raise sqlite3.ProgrammingError("the cache is closed")
        current = self._current
        # Another kernel may have moved the file away, or the folder was removed: writes would be lost.
        if current.db is not None and current.identity == _identity(self._path):
            return current.db
        self.close()
        _make_private(self._folder)
        with self._exclusive_open():
            try:
                current.db = _connect(self._path, self._patience_s)
            except _SQLITE_ERRORS as error:
                if not _is_damage(error):
                    raise
                self._quarantine()
                current.db = _connect(self._path, self._patience_s)
            current.identity = _identity(self._path)
        return current.db

    def _discard_damaged(self) -> None:
        """Move the damaged index away, unless another process has done so since it was opened."""
        opened = self._current.identity
        self.close()
        with self._exclusive_open():
            if opened == _identity(self._path):
                self._quarantine()

    def _quarantine(self) -> None:
        self.remove_damaged()
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):  # only the first of the three must exist
                self._path.with_name(self._path.name + suffix).replace(self._quarantine_path(suffix))

    def _exclusive_open(self) -> contextlib.AbstractContextManager[Any]:
        """Return the lock for opening: two kernels would move each other's new index away."""
        from filelock import FileLock

        return FileLock(self._folder / "opening.lock", timeout=self._patience_s, mode=0o600)

    def _quarantine_path(self, suffix: str) -> Path:
        return self._path.with_name(f"damaged.sqlite{suffix}")


def _transact(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], writing: bool) -> T:
    """Run *work* in one transaction and return its result."""
    db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back already; report the first error
            db.execute("ROLLBACK")
        raise
    return result


def _connect(path: Path, patience_s: float) -> sqlite3.Connection:
    """Open the index, creating the schema in a new file.

    Raises:
        sqlite3.DatabaseError: the file is another program's, or of another version.
    """
    with contextlib.suppress(FileExistsError):
        create_private(path)
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        db.execute(
            "PRAGMA auto_vacuum = FULL"
        )  # takes effect in a new file only: the file shrinks when rows are deleted
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        marks = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if marks != (APPLICATION, VERSION):
            raise sqlite3.DatabaseError("the file is another program's, or another version's")
    except BaseException:
        db.close()
        raise
    return db


def _is_damage(error: Exception) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return not isinstance(error, sqlite3.ProgrammingError) and (code is None or code & 0xFF not in _NOT_DAMAGE)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of *path*, or None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _make_private(folder: Path) -> None:
    """Create *folder* if it is missing, and deny access to other users."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
