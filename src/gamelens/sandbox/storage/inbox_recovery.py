"""What to do with a damaged store: keep the damaged file, go on with whatever of it can be read, and say what cannot.

Every start checks the store (`recover_store`). A damaged one is copied row by row into a new file, which takes its place in
steps that a crash may interrupt anywhere: only the complete copy has the name `.mended`, and a start that finds one
goes on from there. SQLite ends its reading of a damaged write-ahead log without a word, so that is looked at as well.
Whatever was damaged is another edition afterwards: an answer that somebody kept may be about events that are gone.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from gamelens.sandbox.storage.inbox import mark_unreadable, open_store, renew_edition

_log = logging.getLogger(__name__)

_SPAN: Final = 512
_SUFFIXES: Final = ("-wal", "-shm", "")  # the store's own file last: with it goes the sign that there is work to do
_CORRUPT, _NO_DATABASE = 11, 26  # SQLite's result codes; a disk that fails otherwise may work at the next start
_LAST_NUMBERS: Final = (
    "SELECT max(last_batch) FROM runs",
    "SELECT max(id) FROM batches",
    "SELECT seq FROM sqlite_sequence WHERE name = 'batches'",
)


def recover_store(store: Path) -> None:
    """Make sure that *store* can be used; a damaged one is set aside, and what can be read of it taken over.

    Raises:
        sqlite3.Error: the disk fails in a way that damages nothing.
    """
    copy = store.with_suffix(".mended")
    if store.exists() and not copy.exists() and (reason := _damage(store)):
        lost = _copy(store, copy)
        _log.warning("the store was damaged, batches that can no longer be read: %d (%s)", lost, reason)
    if copy.exists():
        aside = _aside(store)
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                store.with_name(store.name + suffix).rename(aside.with_name(aside.name + suffix))
        copy.rename(store)
        _log.warning("the damaged file is kept: %s", aside)


def _damage(store: Path) -> str | None:
    """What is wrong with the file *store*, if anything is."""
    log = store.with_name(f"{store.name}-wal")
    committed = _last_commit(log)
    try:
        with contextlib.closing(open_store(store)) as connection:
            ((_, read, _),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            if read < committed:
                _keep_unread(log, connection, store)
            ((found,),) = connection.execute("PRAGMA quick_check(1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (_CORRUPT, _NO_DATABASE):
            raise
        return str(error)
    return None if found == "ok" else " ".join(str(found).split())


def _last_commit(log: Path) -> int:
    """Number of the last frame in a write-ahead log that says it ends a transaction; 0 where there is none.

    The format is SQLite's (fileformat2, The Write-Ahead Log). Frames of an earlier round have another salt.
    """
    last = 0
    with contextlib.suppress(FileNotFoundError), log.open("rb") as file:
        header = file.read(32)
        if len(header) < 32:
            return 0
        (page_size,), salt = struct.unpack_from(">I", header, 8), header[16:24]
        whole = (log.stat().st_size - 32) // (24 + page_size)
        for number in range(1, whole + 1):
            frame = file.read(24)
            if frame[8:16] != salt:
                break
            if frame[4:8] != b"\0\0\0\0":  # the size of the database after the commit
                last = number
            file.seek(page_size, 1)
    return last


def _keep_unread(log: Path, connection: sqlite3.Connection, store: Path) -> None:
    """Set a copy of *log* aside: transactions at its end are damaged, or were never whole."""
    kept = _aside(store).with_suffix(".unread-wal")
    shutil.copy(log, kept)
    mark_unreadable(connection, [None], kept_in=str(kept.relative_to(store.parent)))
    renew_edition(connection)
    _log.warning("the last transactions before the stop cannot be read; the log that holds them is kept: %s", kept)


def _copy(damaged: Path, copy: Path) -> int:
    """Make a complete new store at *copy* of all that can be read of *damaged*; how many batches are not in it."""
    unfinished = copy.with_suffix(".mending")
    for suffix in _SUFFIXES:
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    kept_in = str(_aside(damaged).relative_to(damaged.parent))
    with contextlib.closing(open_store(unfinished)) as new, contextlib.closing(sqlite3.connect(damaged)) as old:
        new.execute("BEGIN")
        lost = _take_over(old, new)
        mark_unreadable(new, lost or [None], kept_in=kept_in)
        new.execute("COMMIT")
        new.execute("PRAGMA journal_mode = DELETE")  # one file, which one rename puts in place
    unfinished.rename(copy)
    return len(lost)


def _take_over(old: sqlite3.Connection, new: sqlite3.Connection) -> list[int]:
    """Copy everything that can be read; the numbers of the batches that cannot."""
    _take_over_manifest(old, new)
    with contextlib.suppress(sqlite3.DatabaseError):  # without it the events are those of a sandbox all the same
        _insert(new, "population", _select(old, "SELECT * FROM population"))
    last = max(_number(old, it) for it in _LAST_NUMBERS)
    first = _number(old, "SELECT min(id) FROM batches") or 1
    for start in range(first, last + 1, _SPAN):
        for rows in _readable(old, start, min(start + _SPAN - 1, last)):
            _insert(new, "batches", rows)
    # The next batch comes behind all that ever were, or it would be taken for one that is processed already.
    new.execute("DELETE FROM sqlite_sequence WHERE name = 'batches'")
    new.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('batches', ?)", (last,))
    kept = {number for (number,) in new.execute("SELECT id FROM batches")}
    return [number for number in range(first, last + 1) if number not in kept]


def _take_over_manifest(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy the lake's tables if all of them can be read; else the next processing makes the lake anew."""
    try:
        (lake_format,) = old.execute("PRAGMA user_version").fetchone()
        tables = old.execute("SELECT name, sql FROM sqlite_master WHERE name IN ('runs', 'files')").fetchall()
        rows = {name: _select(old, f"SELECT * FROM {name}") for name in ("damaged", "runs", "files")}  # noqa: S608
    except sqlite3.DatabaseError:
        return
    for _, sql in tables:
        new.execute(sql)
    for name, copied in rows.items():
        _insert(new, name, copied)
    new.execute(f"PRAGMA user_version = {lake_format}")


def _readable(old: sqlite3.Connection, first: int, last: int) -> Iterator[list[dict[str, Any]]]:
    """The batches from *first* to *last* that can be read: what fails as a whole is tried by halves."""
    try:
        yield _select(old, "SELECT * FROM batches WHERE id BETWEEN ? AND ?", first, last)
    except sqlite3.DatabaseError:
        if first < last:
            middle = (first + last) // 2
            yield from _readable(old, first, middle)
            yield from _readable(old, middle + 1, last)


def _select(old: sqlite3.Connection, statement: str, *values: int) -> list[dict[str, Any]]:
    cursor = old.execute(statement, values)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _insert(new: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    """Insert *rows* but for those that damage has made impossible."""
    if rows:
        names = ", ".join(rows[0])
        values = ", ".join(f":{name}" for name in rows[0])
        new.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({values})", rows)  # noqa: S608


def _number(old: sqlite3.Connection, statement: str) -> int:
    """The one number that *statement* answers; 0 where it cannot be read."""
    try:
        row = old.execute(statement).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(row[0] or 0) if row else 0


def _aside(store: Path) -> Path:
    """Where the next damaged store is kept, with its log beside it."""
    folder = store.parent / "quarantine"
    folder.mkdir(exist_ok=True, mode=0o700)
    names = (folder / f"{store.stem}-{number}{store.suffix}" for number in count(1))
    return next(it for it in names if not it.exists() and not it.with_suffix(".unread-wal").exists())
