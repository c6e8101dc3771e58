"""The SQLite file that says where what lies in the cache: opened by each process for itself, begun anew when damaged.

Write-ahead mode, for several kernels at once; synchronous=NORMAL, since what a power cut takes is only asked again. A
file that is damaged or another program's is set aside, one copy at most.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from gamelens.client.cache.index_queries import APPLICATION, SCHEMA, VERSION

T = TypeVar("T")

_TAILS: Final = ("", "-wal", "-shm")
# The second is what Python makes of a message that quotes a damaged name.
_SAID: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
# What is wrong with the folder or with who else uses it; everything else that SQLite says is damage.
_ELSEWHERE: Final = frozenset(
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


class _Held:
    """The connection of one process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.identity: tuple[int, int] | None = None


class SqliteIndex:
    """The index in *folder*, which is made when missing; opened at first use, by each process for itself.

    Whoever else is writing is waited for *patience_s* at most.
    """

    def __init__(self, folder: Path, *, patience_s: float) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._path = folder / "index.sqlite"
        # A forked child must neither use nor close what its parent holds, and its parent's lock may never be released.
        self._held: dict[int, _Held] = {}
        self.is_closed = False

    @property
    def lock(self) -> threading.RLock:
        """One thread of this process at a time."""
        return self._mine.lock

    def run(self, work: Callable[[sqlite3.Connection], T], *, writing: bool = False) -> T:
        """What *work* answers, in one transaction; where the index turns out damaged, on a new one.

        Raises:
            OSError, sqlite3.Error: the folder cannot be used.
        """
        with self.lock:
            try:
                return _transact(self._open(), work, writing)
            except _SAID as error:
                if not _is_damage(error):
                    raise
            self._give_up()
            return _transact(self._open(), work, writing)

    def close(self) -> None:
        """Let the file go; it is opened again when needed, unless `is_closed`."""
        mine = self._mine
        with mine.lock:
            if mine.db is not None:
                mine.db.close()
            mine.db = mine.identity = None

    def remove_damaged(self) -> None:
        """Remove what was set aside."""
        for tail in _TAILS:
            self._aside(tail).unlink(missing_ok=True)

    @property
    def _mine(self) -> _Held:
        return self._held.setdefault(os.getpid(), _Held())

    def _open(self) -> sqlite3.Connection:
        if self.is_closed:
            raise sqlite3.ProgrammingError("the cache is closed")
        mine = self._mine
        # Another kernel may have set the file aside, or somebody removed the folder: what we write would be lost.
        if mine.db is not None and mine.identity == _identity(self._path):
            return mine.db
        self.close()
        _make_private(self._folder)
        with self._only_one():
            try:
                mine.db = _connect(self._path, self._patience_s)
            except _SAID as error:
                if not _is_damage(error):
                    raise
                self._set_aside()
                mine.db = _connect(self._path, self._patience_s)
            mine.identity = _identity(self._path)
        return mine.db

    def _give_up(self) -> None:
        """Set the index aside, unless somebody else has done so since it was opened."""
        was = self._mine.identity
        self.close()
        with self._only_one():
            if was == _identity(self._path):
                self._set_aside()

    def _set_aside(self) -> None:
        self.remove_damaged()
        for tail in _TAILS:
            with contextlib.suppress(FileNotFoundError):  # only the first of the three need be there
                self._path.with_name(self._path.name + tail).replace(self._aside(tail))

    def _only_one(self) -> contextlib.AbstractContextManager[Any]:
        """Held while the index is opened, made or set aside: two kernels would set each other's new one aside."""
        from filelock import FileLock

        return FileLock(self._folder / "opening.lock", timeout=self._patience_s, mode=0o600)

    def _aside(self, tail: str) -> Path:
        return self._path.with_name(f"damaged.sqlite{tail}")


def _transact(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], writing: bool) -> T:
    db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        answer = work(db)
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back already; the first error is the news
            db.execute("ROLLBACK")
        raise
    return answer


def _connect(path: Path, patience_s: float) -> sqlite3.Connection:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA auto_vacuum = FULL")  # heard by a new file only: it shrinks when rows go
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
    return not isinstance(error, sqlite3.ProgrammingError) and (code is None or code & 0xFF not in _ELSEWHERE)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _make_private(folder: Path) -> None:
    """Make *folder* if it is missing, and see to it that nobody else can look into it."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
