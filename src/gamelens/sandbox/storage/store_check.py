"""The check of a store that every start makes: a damaged one is refused, and lost batches are recorded.

A store is not repaired: what can be read of a damaged database is not all of it, and a person knows better whether
there is a copy. SQLite reads a write-ahead log up to the first damaged frame without an error. So batches that were
acknowledged and are missing afterwards are recorded as damaged, a copy of the log is kept, and the collection of events
gets a new edition: answers that a client has cached may count events that are gone.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from itertools import count
from pathlib import Path
from typing import Final

from gamelens.errors import Refused
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches, acknowledged_file
from gamelens.sandbox.storage.inbox import mark_unreadable, open_store, renew_edition, set_scenario
from gamelens.sandbox.storage.manifest import read_record

_log = logging.getLogger(__name__)

_SUFFIXES: Final = ("-wal", "-shm", "")  # the store itself last: while it is there, a start repeats the work
_QUARANTINED: Final = (".db", ".unread-wal")  # in quarantine, under one number
_CORRUPT, _NO_DATABASE = 11, 26  # result codes of SQLite; after any other the disk may work at the next start


def check_store(store: Path, *, accept_loss: bool = False) -> None:
    """Check *store*, which is made if it is missing, and record the acknowledged batches that it has lost.

    With *accept_loss* a damaged store is moved to quarantine, and an empty one takes its place.

    Raises:
        Refused: the store is damaged, or belongs to another state directory. It stays where it is.
        sqlite3.Error: the disk fails in a way that damages nothing.
    """
    _refuse_foreign(store)
    log, damaged = _copy_log(store), None
    if store.exists() and (reason := _find_damage(store)):
        if not accept_loss:
            if log is not None:  # SQLite empties the log itself
                log.rename(_quarantine_path(store).with_suffix(".unread-wal"))
            raise Refused(
                f"the store {store} is damaged: {reason}. It stays there. Put back a copy of the state directory, "
                "import the events again into a new one, or continue without them: `gamelens sandbox rebuild "
                f"--accept-loss --state {store.parent}` moves the store to quarantine/"
            )
        kept = _quarantine_path(store)
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                store.with_name(store.name + suffix).rename(kept.with_name(kept.name + suffix))
        damaged = str(kept.relative_to(store.parent))
        _log.warning("the damaged store is kept: %s", kept)
    _record_missing(store, log, damaged)


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


def _record_missing(store: Path, log: Path | None, damaged: str | None) -> None:
    """Record as damaged every batch that was acknowledged and is not in *store*.

    The copy of its *log* is kept if batches or a version of the lake are missing, and deleted if not. *damaged* is the
    damaged store in quarantine that this one takes the place of.
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
        expected, missing = range(acknowledged.deleted + 1, acknowledged.last + 1), list[int]()
        bounds = (acknowledged.deleted, acknowledged.last)
        ((stored,),) = connection.execute("SELECT count(*) FROM batches WHERE id > ? AND id <= ?", bounds)
        if stored != len(expected):
            ids = connection.execute("SELECT id FROM batches UNION SELECT batch FROM damaged")
            known = {number for (number,) in ids}
            missing = [number for number in expected if number not in known]
        if log is not None and (missing or _lacks_version(store, connection)):
            kept = log.rename(_quarantine_path(store).with_suffix(".unread-wal"))
            damaged = damaged or str(kept.relative_to(store.parent))
            _log.warning("the write-ahead log lacked committed data; it is kept: %s", kept)
        elif log is not None:
            log.unlink()
        if missing or damaged:
            connection.execute("BEGIN IMMEDIATE")
            mark_unreadable(connection, missing or [None], file=damaged)
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


def _continue_after(connection: sqlite3.Connection, last: int) -> None:
    """Let ids go on after *last*, the highest ever given.

    With a lower id the next batch would count as processed already.
    """
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'batches'")
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('batches', ?)", (last,))


def _last_number(connection: sqlite3.Connection) -> int:
    """Return the highest id of a batch that the store knows of."""
    statements = "SELECT max(last_batch) FROM runs", "SELECT max(id) FROM batches"
    given = "SELECT seq FROM sqlite_sequence WHERE name = 'batches'"
    return max(_read_number(connection, statement) for statement in (*statements, given))


def _read_number(connection: sqlite3.Connection, statement: str) -> int:
    """Return the single number that *statement* selects, 0 if it cannot be read."""
    try:
        row = connection.execute(statement).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(row[0] or 0) if row else 0


def _quarantine_path(store: Path) -> Path:
    """Return the path in quarantine for the next damaged store, whose log goes beside it."""
    folder = store.parent / "quarantine"
    folder.mkdir(exist_ok=True, mode=0o700)
    paths = (folder / f"{store.stem}-{number}{store.suffix}" for number in count(1))
    return next(path for path in paths if not any(path.with_suffix(kind).exists() for kind in _QUARANTINED))
