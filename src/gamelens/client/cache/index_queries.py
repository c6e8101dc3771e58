"""What the index of the cache holds, and every statement that reads or writes it.

SQLite does not notice when a byte of what it holds is another one than was written, so each row that leads to numbers
has a checksum; a row without a right one is not there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final
from zlib import crc32

import msgspec

APPLICATION: Final = 0x676C656E  # "glen": tells our file from any other
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
    starts INTEGER NOT NULL,          -- microseconds since 1970, as all moments of the service
    ends INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    file TEXT NOT NULL REFERENCES files ON DELETE CASCADE,
    first_row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    as_of INTEGER NOT NULL,           -- the end of what was available when it was asked
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
    """Where one unit of a question lies, and when it was asked for."""

    starts: int
    ends: int
    stamp: int
    file: str
    first_row: int
    rows: int
    as_of: int
    fetched_at: float

    @property
    def span(self) -> tuple[int, int]:
        """What it is known by within its question."""
        return self.starts, self.ends

    def moved(self, file: str, first_row: int) -> IndexEntry:
        """The same unit in another place."""
        return msgspec.structs.replace(self, file=file, first_row=first_row)


def entries(db: sqlite3.Connection, question: str, starts: int = -BIGGEST, until: int = BIGGEST) -> list[IndexEntry]:
    """Units of *question* that start from *starts* to *until*, in time."""
    query = (
        "SELECT starts, ends, stamp, file, first_row, rows, as_of, fetched_at, checksum FROM units "
        "WHERE question = ? AND starts BETWEEN ? AND ? ORDER BY starts, ends"
    )
    rows = db.execute(query, (question, starts, until))
    return [IndexEntry(*row) for *row, checksum in rows if checksum == _checksum(question, *row)]


def shapes(db: sqlite3.Connection, question: str) -> dict[str, str]:
    """The shape of each file of *question*."""
    return dict(db.execute("SELECT name, shape FROM files WHERE question = ?", (question,)).fetchall())


def add_file(
    db: sqlite3.Connection, name: str, question: tuple[str, ...], *, shape: str, size: int, used_at: float
) -> None:
    """Note a file, and its question where that is new."""
    db.execute("INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?, ?)", question)
    db.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", (name, question[0], shape, size, used_at))


def insert_entry(db: sqlite3.Connection, question: str, unit: IndexEntry) -> None:
    """Note where *unit* lies, whatever was noted before."""
    row = msgspec.structs.astuple(unit)
    query = "INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute(query, (question, *row, _checksum(question, *row)))


def verify_entries(db: sqlite3.Connection, question: str, spans: set[tuple[int, int]], file: str) -> None:
    """See that units of *question* just put are found in *file*: where a damaged tree leads astray, nothing else tells.

    Raises:
        sqlite3.DatabaseError: they are not.
    """
    starts = [start for start, _ in spans]
    if spans - {it.span for it in entries(db, question, min(starts), max(starts)) if it.file == file}:
        raise sqlite3.DatabaseError("what was just written is not found")


def is_current(db: sqlite3.Connection, question: str, unit: IndexEntry) -> bool:
    """Whether *unit* is what the index has, and nobody has moved or replaced it since."""
    query = "SELECT file, first_row FROM units WHERE question = ? AND starts = ? AND ends = ?"
    return bool(db.execute(query, (question, *unit.span)).fetchone() == (unit.file, unit.first_row))


def forget_units(db: sqlite3.Connection, question: str, spans: Iterable[tuple[int, int]]) -> None:
    """Remove units of *question*."""
    db.executemany(
        "DELETE FROM units WHERE question = ? AND starts = ? AND ends = ?", [(question, *it) for it in spans]
    )


def forget_files(db: sqlite3.Connection, names: Iterable[str]) -> list[str]:
    """Remove files, and with them the units in them and the questions that have no other; the answer is *names*."""
    gone = list(names)
    db.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in gone])
    if gone:
        db.execute("DELETE FROM questions WHERE NOT EXISTS (SELECT 1 FROM files WHERE question = key)")
    return gone


def empty_files(db: sqlite3.Connection, question: str) -> list[str]:
    """Files of *question* that hold no unit any more."""
    query = "SELECT name FROM files WHERE question = ? AND NOT EXISTS (SELECT 1 FROM units WHERE file = name)"
    return [name for (name,) in db.execute(query, (question,))]


def files_over_limit(db: sqlite3.Connection, most_bytes: int) -> list[str]:
    """The least recently used files, as many as are too many."""
    (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM files").fetchone()
    found = []
    for name, size in db.execute("SELECT name, bytes FROM files ORDER BY used_at, rowid") if total > most_bytes else ():
        if total <= most_bytes:
            break
        found.append(name)
        total -= size
    return found


def unused_since(db: sqlite3.Connection, names: Iterable[str], moment: float) -> list[str]:
    """Those of *names* that were last used before *moment*."""
    query = "SELECT name FROM files WHERE name = ? AND used_at < ?"
    return [name for name in names if db.execute(query, (name, moment)).fetchone() is not None]


def mark_used(db: sqlite3.Connection, names: Iterable[str], moment: float) -> None:
    """Note that files were used."""
    db.executemany("UPDATE files SET used_at = ? WHERE name = ?", [(moment, name) for name in names])


def names_of(db: sqlite3.Connection, owner: str | None = None) -> list[str]:
    """All files; with *owner* those of its questions."""
    query = "SELECT name FROM files JOIN questions ON key = question WHERE ? IS NULL OR owner = ?"
    return [name for (name,) in db.execute(query, (owner, owner))]


def forget_all(db: sqlite3.Connection, owner: str | None = None) -> None:
    """Remove all there is; with *owner* all of its."""
    for table in ("questions", "restatements"):
        db.execute(f"DELETE FROM {table} WHERE ? IS NULL OR owner = ?", (owner, owner))  # noqa: S608  the two names above


def usage(db: sqlite3.Connection, owner: str) -> tuple[int, int, int, int]:
    """Questions, units and files of *owner*, and bytes of all."""
    questions = "SELECT count(*) FROM questions WHERE owner = ?"
    files = "SELECT count(*) FROM files JOIN questions ON key = question WHERE owner = ?"
    units = "SELECT count(*) FROM units JOIN questions ON key = question WHERE owner = ?"
    total = "SELECT coalesce(sum(bytes), 0) FROM files"
    query = f"SELECT ({questions}), ({units}), ({files}), ({total})"
    row: tuple[int, int, int, int] = db.execute(query, (owner, owner, owner)).fetchone()
    return row


def add_restatements(
    db: sqlite3.Connection, owner: str, metric: str, bodies: Iterable[bytes], *, noticed_at: float
) -> None:
    """Note what was restated, and drop what is older than a year or too much."""
    rows = [(owner, metric, noticed_at, body, _checksum(owner, metric, body)) for body in bodies]
    if not rows:
        return
    query = "INSERT INTO restatements (owner, metric, noticed_at, body, checksum) VALUES (?, ?, ?, ?, ?)"
    db.executemany(query, rows)
    db.execute("DELETE FROM restatements WHERE noticed_at < ?", (noticed_at - _YEAR_S,))
    (last,) = db.execute("SELECT max(id) FROM restatements").fetchone()
    db.execute("DELETE FROM restatements WHERE id <= ?", ((last or 0) - _MOST_RESTATEMENTS,))


def restatements(db: sqlite3.Connection, owner: str, metric: str | None) -> list[bytes]:
    """What was restated for *owner*, oldest first; with *metric* only of that."""
    query = "SELECT metric, body, checksum FROM restatements WHERE owner = ? AND (? IS NULL OR metric = ?) ORDER BY id"
    rows = db.execute(query, (owner, metric, metric))
    return [body for named, body, checksum in rows if checksum == _checksum(owner, named, body)]


def _checksum(*values: Any) -> int:
    return crc32(msgspec.json.encode(values))
