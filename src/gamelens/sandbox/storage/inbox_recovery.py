"""Recovery of a damaged store: quarantine, copy of readable rows, list of the others.

Every start checks the store (`recover_store`). A damaged one is copied row by row into a new file, which takes its
place in steps that a crash may interrupt anywhere: only a complete copy is named `.mended`, and a start that finds
one goes on from there. SQLite reads a write-ahead log up to the first damaged frame without an error, so that a copy of
the log is kept where anything is missing afterwards. Whatever was damaged, batches that were acknowledged and are
missing are recorded. A store that was damaged gets a new edition: answers
that a client has cached may count events that are gone.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from gamelens.errors import Refused
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches, acknowledged_file
from gamelens.sandbox.storage.inbox import give_identity, mark_unreadable, open_store, renew_edition, set_scenario
from gamelens.sandbox.storage.manifest import (
    BEHIND,
    MANIFEST_TABLES,
    ORGANISATIONS,
    file_checksum,
    has_table,
    read_record,
)

_log = logging.getLogger(__name__)

_IDS_AT_ONCE: Final = 512
_SUFFIXES: Final = ("-wal", "-shm", "")  # the store itself last: while it is there, a start repeats the work
_QUARANTINED: Final = (".db", ".unread-wal", ".mended")  # in quarantine, under one number
_CORRUPT, _NO_DATABASE = 11, 26  # result codes of SQLite; after any other the disk may work at the next start
_LAST_NUMBERS: Final = (
    "SELECT max(last_batch) FROM runs",
    "SELECT max(id) FROM batches",
    "SELECT seq FROM sqlite_sequence WHERE name = 'batches'",
)


def recover_store(store: Path) -> None:
    """Make *store* usable: move a damaged one to quarantine and copy what can be read of it.

    Raises:
        Refused: the store belongs to another state directory, or is missing while a copy is there that may be
            another store's.
        sqlite3.Error: the disk fails in a way that damages nothing.
    """
    _refuse_foreign(store)
    copy = store.with_suffix(".mended")
    kept_in = _quarantined_store(store, copy) if copy.exists() else None
    if copy.exists() and kept_in is None:
        if not store.exists():
            raise Refused(
                f"{store} is missing, and {copy} may not be its copy: if it is, rename it to {store.name}, "
                "else move it away; then start again"
            )
        foreign = _quarantine_path(store).with_suffix(".mended")
        copy.rename(foreign)
        _log.warning("a copy made from another store is kept: %s", foreign)
    log = _copy_log(store)
    if store.exists() and not copy.exists() and (reason := _find_damage(store)):
        missing = _copy_readable(store, copy)
        _log.warning("the store was damaged; batches that can no longer be read: %d (%s)", missing, reason)
    if copy.exists():
        quarantined = kept_in or _quarantine_path(store)
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                store.with_name(store.name + suffix).rename(quarantined.with_name(quarantined.name + suffix))
        copy.rename(store)
        _log.warning("the damaged file is kept: %s", quarantined)
    _record_missing(store, log)


def _quarantined_store(store: Path, copy: Path) -> Path | None:
    """Return the path in quarantine of the damaged store that *copy* was made of, None if it was made of another.

    That store is at its own place still, or in quarantine already. A copy that 0.1 made has no checksum: it is taken
    in place of a missing store if it names a damaged file that is in quarantine.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{copy.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'mended'").fetchone():
                mark = "SELECT kept_in, checksum FROM mended"
            else:
                mark = "SELECT kept_in, NULL FROM damaged WHERE kept_in LIKE '%.db' ORDER BY rowid DESC LIMIT 1"
            ((kept_in, checksum),) = connection.execute(mark)
            quarantined = store.parent / "quarantine" / Path(str(kept_in)).name
    except (sqlite3.DatabaseError, ValueError):
        return None
    if checksum is None:
        return quarantined if quarantined.exists() and not store.exists() else None
    damaged = store if store.exists() else quarantined
    return quarantined if damaged.exists() and file_checksum(damaged) == checksum else None


def _refuse_foreign(store: Path) -> None:
    """Raise `Refused` if *store* belongs to another state directory. It is read without its log, and not changed."""
    record = read_record(store)
    if not store.exists() or record is None or not record.identity:
        return
    try:
        address = f"{store.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            ((found,),) = connection.execute("SELECT id FROM identity")
    except (sqlite3.DatabaseError, ValueError):  # damaged, or the table is in the log still
        return
    if found != record.identity:
        raise Refused(
            f"{store} is the store of another state directory: put back the one that belongs beside "
            f"{store.parent}/lake. Nothing was changed"
        )


def _find_damage(store: Path) -> str | None:
    """Return a description of the damage to *store*, None without any."""
    try:
        with contextlib.closing(open_store(store)) as connection:
            ((check_result,),) = connection.execute("PRAGMA quick_check(1)")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (_CORRUPT, _NO_DATABASE):
            raise
        return str(error)
    return None if check_result == "ok" else " ".join(str(check_result).split())


def _copy_log(store: Path) -> Path | None:
    """Return a copy of the log of a store that was not closed, None without one or where the disk has no room."""
    log, copy = store.with_name(f"{store.name}-wal"), store.with_suffix(".unread-wal")
    if not log.exists() or not log.stat().st_size:
        copy.unlink(missing_ok=True)
        return None
    try:
        return Path(shutil.copyfile(log, copy))
    except OSError as error:
        copy.unlink(missing_ok=True)
        _log.warning("the write-ahead log is read without a copy: %s", error)
        return None


def _record_missing(store: Path, log: Path | None) -> None:
    """Record as damaged every batch that was acknowledged and is not in *store*.

    The copy of its *log* is kept if batches or a version of the lake are missing, and deleted if not.
    """
    is_damaged = acknowledged_file(store).exists()
    with (
        contextlib.closing(AcknowledgedBatches(store)) as acknowledged,
        contextlib.closing(open_store(store)) as connection,
    ):
        first, last = _read_number(connection, "SELECT min(id) FROM batches"), _last_number(connection)
        if acknowledged.is_new:
            acknowledged.delete(first - 1 if first else last)
            if is_damaged:
                _log.warning("the record of acknowledged batches was damaged and starts over: %s", store)
        elif 0 < first <= acknowledged.deleted:
            _settle_reset(store, connection, acknowledged, first)
        # Acknowledged batches that are neither stored nor recorded as damaged.
        expected, missing, kept_log = range(acknowledged.deleted + 1, acknowledged.last + 1), list[int](), None
        bounds = (acknowledged.deleted, acknowledged.last)
        ((stored,),) = connection.execute("SELECT count(*) FROM batches WHERE id > ? AND id <= ?", bounds)
        if stored != len(expected):
            ids = connection.execute("SELECT id FROM batches UNION SELECT batch FROM damaged")
            known = {number for (number,) in ids}
            missing = [number for number in expected if number not in known]
        if log is not None and (missing or _lacks_version(store, connection)):
            kept = log.rename(_quarantine_path(store).with_suffix(".unread-wal"))
            kept_log = str(kept.relative_to(store.parent))
            _log.warning("the write-ahead log lacked committed data; it is kept: %s", kept)
        elif log is not None:
            log.unlink()
        if missing or kept_log:
            connection.execute("BEGIN IMMEDIATE")
            mark_unreadable(connection, missing or [None], file=kept_log)
            renew_edition(connection)
            _continue_after(connection, max(last, acknowledged.last))
            connection.execute("COMMIT")
            _log.warning("acknowledged batches that are missing: %d", len(missing))
        if last > acknowledged.last:
            acknowledged.acknowledge(last)


def _settle_reset(store: Path, connection: sqlite3.Connection, acknowledged: AcknowledgedBatches, first: int) -> None:
    """Finish or undo a reset that noted its batches as deleted, while the batches from *first* on are stored still."""
    if not _lacks_version(store, connection):
        acknowledged.delete(first - 1)  # it was killed before its commit
        return
    connection.execute("BEGIN IMMEDIATE")  # it was committed, and the log that had it is gone
    connection.execute("DELETE FROM batches WHERE id <= ?", (acknowledged.deleted,))
    connection.execute("DELETE FROM damaged WHERE batch <= ?", (acknowledged.deleted,))
    set_scenario(connection, None)
    renew_edition(connection)
    connection.execute("COMMIT")
    _log.warning("the store had lost a reset, so its batches were deleted again, up to %d", acknowledged.deleted)


def _lacks_version(store: Path, connection: sqlite3.Connection) -> bool:
    """Return whether a version of the lake was committed that the manifest in *store* lacks."""
    record = read_record(store)
    return record is not None and record.version > _read_number(connection, "SELECT max(number) FROM runs")


def _copy_readable(damaged: Path, copy: Path) -> int:
    """Build a complete store at *copy* from *damaged*. Return how many batches are missing."""
    unfinished = copy.with_suffix(".mending")
    for suffix in _SUFFIXES:
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    quarantine_file = str(_quarantine_path(damaged).relative_to(damaged.parent))
    with contextlib.closing(open_store(unfinished)) as new:
        with contextlib.closing(sqlite3.connect(damaged)) as old:
            new.execute("BEGIN")
            missing = _copy_rows(old, new)
            mark_unreadable(new, missing or [None], file=quarantine_file)
            new.execute("COMMIT")
        record = read_record(damaged)
        if record and record.identity:  # the store is its own, or the damage would not be that of this directory
            give_identity(new, record.identity)
        new.execute("CREATE TABLE mended (kept_in TEXT NOT NULL, checksum INTEGER NOT NULL)")  # what it is a copy of
        new.execute("INSERT INTO mended VALUES (?, ?)", (quarantine_file, file_checksum(damaged)))
        new.execute("PRAGMA journal_mode = DELETE")  # a single file, so that one rename puts it in place
    unfinished.rename(copy)
    return len(missing)


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection) -> list[int]:
    """Copy every readable row and return the ids of the missing batches."""
    for name in ("damaged", "population"):  # of these the readable rows are better than none
        with contextlib.suppress(sqlite3.DatabaseError):
            _insert(new, name, _select(old, f"SELECT * FROM {name}"))  # noqa: S608
    for name in ("identity", BEHIND, *(table.name for table in MANIFEST_TABLES)):
        with contextlib.suppress(sqlite3.DatabaseError, TypeError):  # a table that is missing here makes the lake lost
            rows = _select(old, f"SELECT * FROM {name}")  # noqa: S608
            new.execute(*old.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone())
            _insert(new, name, rows)
    with contextlib.suppress(sqlite3.DatabaseError):
        (lake_format,) = old.execute("PRAGMA user_version").fetchone()
        new.execute(f"PRAGMA user_version = {lake_format}")
    last = _last_number(old)
    if not (last or has_table(new, BEHIND) or has_table(new, ORGANISATIONS.name)):
        ORGANISATIONS.create(new)  # without batches it would tell nothing that answers need
    first = _read_number(old, "SELECT min(id) FROM batches") or 1
    for start in range(first, last + 1, _IDS_AT_ONCE):
        for rows in _readable_batches(old, start, min(start + _IDS_AT_ONCE - 1, last)):
            _insert(new, "batches", rows)
    _continue_after(new, last)
    copied = {number for (number,) in new.execute("SELECT id FROM batches")}
    return [number for number in range(first, last + 1) if number not in copied]


def _readable_batches(old: sqlite3.Connection, first: int, last: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the readable batches from *first* to *last*, bisecting every range that fails."""
    try:
        yield _select(old, "SELECT * FROM batches WHERE id BETWEEN ? AND ?", first, last)
    except sqlite3.DatabaseError:
        if first < last:
            middle = (first + last) // 2
            yield from _readable_batches(old, first, middle)
            yield from _readable_batches(old, middle + 1, last)


def _select(old: sqlite3.Connection, statement: str, *values: int) -> list[dict[str, Any]]:
    cursor = old.execute(statement, values)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _insert(new: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    """Insert *rows*, except those that damage has made invalid."""
    if rows:
        names = ", ".join(rows[0])
        values = ", ".join(f":{name}" for name in rows[0])
        new.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({values})", rows)  # noqa: S608


def _continue_after(connection: sqlite3.Connection, last: int) -> None:
    """Let ids go on after *last*, the highest ever given.

    With a lower id the next batch would count as processed already.
    """
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'batches'")
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('batches', ?)", (last,))


def _last_number(old: sqlite3.Connection) -> int:
    """Return the highest id of a batch that *old* knows of."""
    return max(_read_number(old, statement) for statement in _LAST_NUMBERS)


def _read_number(old: sqlite3.Connection, statement: str) -> int:
    """Return the single number that *statement* selects, 0 if it cannot be read."""
    try:
        row = old.execute(statement).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(row[0] or 0) if row else 0


def _quarantine_path(store: Path) -> Path:
    """Return the path in quarantine for the next damaged store, whose log goes beside it."""
    folder = store.parent / "quarantine"
    folder.mkdir(exist_ok=True, mode=0o700)
    paths = (folder / f"{store.stem}-{number}{store.suffix}" for number in count(1))
    return next(path for path in paths if not any(path.with_suffix(kind).exists() for kind in _QUARANTINED))
