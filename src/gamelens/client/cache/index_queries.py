"""The tables of the cache index and every SQL statement that reads or writes them.

SQLite does not notice a changed byte in its file, so each row that leads to numbers has a checksum. A row with a
wrong checksum is ignored. Stored names do not change: the table `questions` holds queries, `units`
holds entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final
from zlib import crc32

import msgspec

APPLICATION: Final = 0x676C656E  # "glen": distinguishes this file from other SQLite files
VERSION: Final = 1
BIGGEST: Final = 2**63 - 1
_YEAR_S: Final = 366 * 86_400
_MOST_RESTATEMENTS: Final = 100_000
SCHEMA: Final = f"""
CREATE TABLE questions (
    key TEXT PRIMARY KEY,             -- hash of the rest
    owner TEXT NOT NULL,
    metric TEXT NOT NULL,
    dimensions TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX questions_of_owner ON questions (owner);
CREATE TABLE files (
    name TEXT PRIMARY KEY,
    question TEXT NOT NULL REFERENCES questions ON DELETE CASCADE,
    shape TEXT NOT NULL,
    bytes INTEGER NOT NULL,           -- of the file and of its share of this index
    used_at REAL NOT NULL
);
CREATE INDEX files_of_question ON files (question);
CREATE INDEX files_by_use ON files (used_at);
CREATE TABLE units (
    question TEXT NOT NULL,
    starts INTEGER NOT NULL,          -- microseconds since 1970, as all times of the service
    ends INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    file TEXT NOT NULL REFERENCES files ON DELETE CASCADE,
    first_row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    as_of INTEGER NOT NULL,           -- end of the available interval at the time of the request
    fetched_at REAL NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (question, starts, ends)
) WITHOUT ROWID;
CREATE INDEX units_of_file ON units (file);
CREATE TABLE restatements (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    metric TEXT NOT NULL,
    noticed_at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Restatement as JSON
    checksum INTEGER NOT NULL
);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


class IndexEntry(msgspec.Struct, frozen=True):
    """The place of one bucket slice of a query in a file.

    Attributes:
        starts, ends, bucket_start: of the slice, microseconds since 1970.
        file: the name of the file.
        first_row, rows: the place of the rows in the file.
        as_of: end of the available interval when it was requested, microseconds since 1970.
        fetched_at: time of the request, seconds since 1970.
    """

    starts: int
    ends: int
    bucket_start: int
    file: str
    first_row: int
    rows: int
    as_of: int
    fetched_at: float

    @property
    def bounds(self) -> tuple[int, int]:
        """The start and end that identify the entry within its query."""
        return self.starts, self.ends

    def moved(self, file: str, first_row: int) -> IndexEntry:
        """Return the same entry at another place."""
        return msgspec.structs.replace(self, file=file, first_row=first_row)


def entries(db: sqlite3.Connection, query_key: str, starts: int = -BIGGEST, until: int = BIGGEST) -> list[IndexEntry]:
    """Return the entries of a query that start between *starts* and *until*, by time."""
    query = (
        "SELECT starts, ends, stamp, file, first_row, rows, as_of, fetched_at, checksum FROM units "
        "WHERE question = ? AND starts BETWEEN ? AND ? ORDER BY starts, ends"
    )
    rows = db.execute(query, (query_key, starts, until))
    return [IndexEntry(*row) for *row, checksum in rows if checksum == _checksum(query_key, *row)]


def shapes(db: sqlite3.Connection, query_key: str) -> dict[str, str]:
    """Return the schema digest of each file of a query."""
    return dict(db.execute("SELECT name, shape FROM files WHERE question = ?", (query_key,)).fetchall())


def add_file(
    db: sqlite3.Connection, name: str, query_row: tuple[str, ...], *, shape: str, size: int, used_at: float
) -> None:
    """Insert a file, and its query if that is new."""
    db.execute("INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?, ?)", query_row)
    db.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", (name, query_row[0], shape, size, used_at))


def insert_entry(db: sqlite3.Connection, query_key: str, entry: IndexEntry) -> None:
    """Insert *entry*, in place of an older one with the same bounds."""
    row = msgspec.structs.astuple(entry)
    query = "INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute(query, (query_key, *row, _checksum(query_key, *row)))


def verify_entries(db: sqlite3.Connection, query_key: str, bounds: set[tuple[int, int]], file: str) -> None:
    """Verify that entries just written can be read back.

    A damaged B-tree can lose rows silently.

    Raises:
        sqlite3.DatabaseError: an entry is not found.
    """
    starts = [start for start, _ in bounds]
    if bounds - {entry.bounds for entry in entries(db, query_key, min(starts), max(starts)) if entry.file == file}:
        raise sqlite3.DatabaseError("what was just written is not found")


def is_current(db: sqlite3.Connection, query_key: str, entry: IndexEntry) -> bool:
    """Return whether the index still holds *entry* at this place."""
    query = "SELECT file, first_row FROM units WHERE question = ? AND starts = ? AND ends = ?"
    return bool(db.execute(query, (query_key, *entry.bounds)).fetchone() == (entry.file, entry.first_row))


def delete_entries(db: sqlite3.Connection, query_key: str, bounds: Iterable[tuple[int, int]]) -> None:
    """Delete the entries of a query with these *bounds*."""
    db.executemany(
        "DELETE FROM units WHERE question = ? AND starts = ? AND ends = ?", [(query_key, *pair) for pair in bounds]
    )


def delete_files(db: sqlite3.Connection, names: Iterable[str]) -> list[str]:
    """Delete files, their entries, and queries left without a file. Return *names* as a list."""
    removed = list(names)
    db.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in removed])
    if removed:
        db.execute("DELETE FROM questions WHERE NOT EXISTS (SELECT 1 FROM files WHERE question = key)")
    return removed


def empty_files(db: sqlite3.Connection, query_key: str) -> list[str]:
    """Return the files of a query that have no entries."""
    query = "SELECT name FROM files WHERE question = ? AND NOT EXISTS (SELECT 1 FROM units WHERE file = name)"
    return [name for (name,) in db.execute(query, (query_key,))]


def files_over_limit(db: sqlite3.Connection, most_bytes: int) -> list[str]:
    """Return the least recently used files whose removal brings the cache under *most_bytes*."""
    (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM files").fetchone()
    names = []
    for name, size in db.execute("SELECT name, bytes FROM files ORDER BY used_at, rowid") if total > most_bytes else ():
        if total <= most_bytes:
            break
        names.append(name)
        total -= size
    return names


def unused_since(db: sqlite3.Connection, names: Iterable[str], moment: float) -> list[str]:
    """Return the files among *names* that were last used before *moment*."""
    query = "SELECT name FROM files WHERE name = ? AND used_at < ?"
    return [name for name in names if db.execute(query, (name, moment)).fetchone() is not None]


def mark_used(db: sqlite3.Connection, names: Iterable[str], moment: float) -> None:
    """Set the time of last use of the files *names*."""
    db.executemany("UPDATE files SET used_at = ? WHERE name = ?", [(moment, name) for name in names])


def file_names(db: sqlite3.Connection, owner: str | None = None) -> list[str]:
    """Return the names of all files, or of those of *owner*."""
    query = "SELECT name FROM files JOIN questions ON key = question WHERE ? IS NULL OR owner = ?"
    return [name for (name,) in db.execute(query, (owner, owner))]


def delete_all(db: sqlite3.Connection, owner: str | None = None) -> None:
    """Delete everything, or everything of *owner*."""
    for table in ("questions", "restatements"):
        db.execute(f"DELETE FROM {table} WHERE ? IS NULL OR owner = ?", (owner, owner))  # noqa: S608  two constant names


def usage(db: sqlite3.Connection, owner: str) -> tuple[int, int, int, int]:
    """Return the numbers of queries, entries and files of *owner*, and the bytes of all."""
    query_count = "SELECT count(*) FROM questions WHERE owner = ?"
    file_count = "SELECT count(*) FROM files JOIN questions ON key = question WHERE owner = ?"
    entry_count = "SELECT count(*) FROM units JOIN questions ON key = question WHERE owner = ?"
    total_bytes = "SELECT coalesce(sum(bytes), 0) FROM files"
    query = f"SELECT ({query_count}), ({entry_count}), ({file_count}), ({total_bytes})"
    row: tuple[int, int, int, int] = db.execute(query, (owner, owner, owner)).fetchone()
    return row


def add_restatements(
    db: sqlite3.Connection, owner: str, metric: str, bodies: Iterable[bytes], *, noticed_at: float
) -> None:
    """Insert restatements.

    Delete those older than a year and the oldest beyond 100,000.
    """
    rows = [(owner, metric, noticed_at, body, _checksum(owner, metric, body)) for body in bodies]
    if not rows:
        return
    query = "INSERT INTO restatements (owner, metric, noticed_at, body, checksum) VALUES (?, ?, ?, ?, ?)"
    db.executemany(query, rows)
    db.execute("DELETE FROM restatements WHERE noticed_at < ?", (noticed_at - _YEAR_S,))
    (last,) = db.execute("SELECT max(id) FROM restatements").fetchone()
    db.execute("DELETE FROM restatements WHERE id <= ?", ((last or 0) - _MOST_RESTATEMENTS,))


def restatements(db: sqlite3.Connection, owner: str, metric: str | None) -> list[bytes]:
    """Return the restatements of *owner* as JSON, oldest first, of all metrics or of *metric*."""
    query = "SELECT metric, body, checksum FROM restatements WHERE owner = ? AND (? IS NULL OR metric = ?) ORDER BY id"
    rows = db.execute(query, (owner, metric, metric))
    return [body for metric_name, body, checksum in rows if checksum == _checksum(owner, metric_name, body)]


def _checksum(*values: Any) -> int:
    return crc32(msgspec.json.encode(values))
