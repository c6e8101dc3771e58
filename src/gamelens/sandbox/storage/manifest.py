"""The manifest of the lake: the structs of its rows, and the tables of SQLite that keep them.

SQLite does not notice when a stored byte changes, so each row has a checksum. Beside the store lies a small file with
what was committed last, because SQLite goes back to an older state without an error when its log is missing, and a
store that is missing or was put in the place of another looks like any other. It is written after each commit, so it is
never ahead of a sound store.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, get_args
from zlib import crc32

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.sandbox.state.state_directory import read_checked, store_checked
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.wire.intervals import Interval, interval_of_days

_log = logging.getLogger(__name__)

_BYTES_AT_ONCE: Final = 1 << 20
_COPY: Final = "_copy"  # of a table of 0.1, which kept each of them twice
_Row = TypeVar("_Row", bound=msgspec.Struct)


class LakeUnavailable(Refused):
    """The lake cannot answer, because something of it is damaged or not checked yet."""


class LakePart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a table.

    Attributes:
        number: number of its row, 0 before it has one.
        path: absolute; in the manifest relative to the folder of the lake.
        kind: the table that it belongs to, one of `lake_schema.COLUMNS` or a keyed run (`keyed_runs`).
        first_day: first day of its rows, None where readers take every part.
        last_day: last day of its rows.
        level: 0 for a part that a run wrote, more for one that compaction made of several.
        content: CRC-32 of the file.
        added: version that added it.
        removed: version that replaced it, None in the newest one.
        removed_ms: real time of that, epoch milliseconds.
    """

    number: int = 0
    path: Path
    organisation: str
    kind: str
    first_day: date | None = None
    last_day: date | None = None
    rows: int
    level: int = 0
    bytes: int
    content: int
    added: int = 0
    removed: int | None = None
    removed_ms: int | None = None

    @classmethod
    def of_file(cls, path: Path, organisation: str, kind: str, *, rows: int, **others: Any) -> LakePart:
        """Return the part at *path*, which is read for its checksum: just written, it is in memory still."""
        size, content = path.stat().st_size, file_checksum(path)
        return cls(path=path, organisation=organisation, kind=kind, rows=rows, bytes=size, content=content, **others)

    def overlaps(self, interval: Interval) -> bool:
        """Return whether rows of the part may lie in *interval*."""
        if self.first_day is None or self.last_day is None:
            return True
        return bool(interval_of_days(self.first_day, self.last_day) & interval)


class TakenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of raw events that an import has taken, in *version* of the lake.

    Its SHA-256 is *content*, in hexadecimal digits; its rows, damaged ones included, have numbers from *first_seq* on
    among the events of all imports. As JSON there are the number of rows that were not taken, by reason, and the first
    and last day on which its events arrived, by game; the days only of Event Data.
    """

    number: int = 0
    organisation: str
    name: str
    bytes: int
    content: str
    kind: str
    first_seq: int
    rows: int
    refused: str = "{}"
    arrived: str = "{}"
    version: int = 0


class FileMark(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an import need not open again, since its content is in the lake.

    Its address is *source*, as SHA-256 in hexadecimal digits, because an address may have a secret. Its *mark* is what
    its storage says that changes with the content.
    """

    number: int = 0
    organisation: str
    source: str
    bytes: int
    mark: str

    @property
    def key(self) -> tuple[str, int, str]:
        """What it is known by in its organisation."""
        return self.source, self.bytes, self.mark


class DatedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The number of *events* of an organisation that are dated by their arrival for a *reason*.

    Wire 4.1, Event time.
    """

    number: int = 0
    organisation: str
    reason: str
    events: int


class ProcessingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake.

    Attributes:
        version: number of the run; 0 before the first.
        processed_ms: epoch milliseconds on the sandbox's clock; None before the first.
        last_batch: id of the last batch that was taken in, of whatever organisation.
        duplicates: repeated events that all runs together left out.
        is_written: whether the lake has events that were loaded as files or imported, and never received.
        files: number of files of the version.
        format: layout of the lake (`lake_schema.FORMAT`).
    """

    version: int = 0
    processed_ms: int | None = None
    last_batch: int = 0
    duplicates: int = 0
    is_written: bool = False
    files: int = 0
    format: int = FORMAT


class OrganisationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far the lake has the batches of one organisation, and what became of its last runs.

    Attributes:
        number: number of its row, 0 before it has one.
        last_batch: id of the last of its batches that is in the lake, or of any later one that is not its own.
        processed_ms: time of its last complete run, epoch milliseconds on the sandbox's clock; None before the first.
        failures: runs in a row that failed.
        reason: reason of the last failure.
        retry_s: epoch seconds of real time before which no attempt begins by itself; None without a failure.
        is_written: whether events of it were loaded as files (`BulkLoad`).
    """

    number: int = 0
    name: str
    last_batch: int
    processed_ms: int | None
    failures: int = 0
    reason: str | None = None
    retry_s: float | None = None
    is_written: bool = False

    @property
    def has_pause(self) -> bool:
        """Whether the pause after a failure is not over."""
        return self.retry_s is not None and time.time() < self.retry_s

    def completed(self, last_batch: int, processed_ms: int) -> OrganisationStatus:
        """Return the status after a complete run, that has all batches up to *last_batch*."""
        done = {"last_batch": last_batch, "processed_ms": processed_ms, "failures": 0, "reason": None, "retry_s": None}
        return msgspec.structs.replace(self, **done)

    def to_json(self) -> dict[str, object]:
        """Return the failure as `GET /summary` shows it."""
        return {"reason": self.reason, "failures": self.failures, "retry_ts": round(self.retry_s or 0)}


class CheckedTable(Generic[_Row]):
    """A table called *name* of rows of the struct *row*, whose first field is the number of the row.

    Rows are read in full and by number only: a damaged index would hide some.
    """

    def __init__(self, name: str, row: type[_Row]) -> None:
        self.name, self._row = name, row
        self._fields = row.__struct_fields__
        self._columns = {field.name: _column_type(field.type) for field in msgspec.structs.fields(row)[1:]}

    def read(self, store: sqlite3.Connection, *, newest: int | None = None) -> list[_Row]:
        """Return the rows that are sound, by number; only so many of the *newest*.

        Raises:
            sqlite3.DatabaseError: the table cannot be read.
        """
        # As a blob, because text that is not UTF-8 would be an error of the whole statement.
        names = [f"CAST({name} AS BLOB)" if kind == "TEXT" else name for name, kind in self._columns.items()]
        query = f"SELECT number, {', '.join(names)}, checksum FROM {self.name} ORDER BY number DESC"  # noqa: S608
        rows = []
        for *stored, checksum in store.execute(f"{query} LIMIT ?", (-1 if newest is None else newest,)):
            values = tuple([value.decode(errors="replace") if type(value) is bytes else value for value in stored])
            if _checksum(values) == checksum:
                row = dict(zip(self._fields, values, strict=True))
                rows.append(msgspec.convert(row, self._row, strict=False, dec_hook=lambda kind, value: kind(value)))
        return rows[::-1]

    def write(self, store: sqlite3.Connection, rows: Iterable[_Row]) -> None:
        """Add *rows*, or replace the rows of the same numbers, inside the caller's transaction."""
        names = ", ".join(("number", *self._columns, "checksum"))
        places = ", ".join("?" * (len(self._columns) + 2))
        built_in = (msgspec.to_builtins(msgspec.structs.astuple(row), enc_hook=str) for row in rows)
        stored = (tuple(int(value) if isinstance(value, bool) else value for value in values) for values in built_in)
        store.executemany(
            f"INSERT OR REPLACE INTO {self.name} ({names}) VALUES ({places})",  # noqa: S608
            [(*values, _checksum(values)) for values in stored],
        )

    def delete(self, store: sqlite3.Connection, numbers: Iterable[int]) -> None:
        """Delete the rows called *numbers*, inside the caller's transaction."""
        store.executemany(f"DELETE FROM {self.name} WHERE number = ?", [(number,) for number in numbers])  # noqa: S608

    def create(self, store: sqlite3.Connection) -> None:
        """Create the table empty, and drop an earlier one with its rows."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self._columns.items())
        self.drop(store)
        store.execute(f"CREATE TABLE {self.name} (number INTEGER PRIMARY KEY, {columns}, checksum INTEGER)")

    def drop(self, store: sqlite3.Connection) -> None:
        """Drop the table, if it exists."""
        for name in (self.name, self.name + _COPY):
            store.execute(f"DROP TABLE IF EXISTS {name}")

    def exists(self, store: sqlite3.Connection) -> bool:
        """Return whether the table was ever created."""
        return has_table(store, self.name) or has_table(store, self.name + _COPY)

    def damaged_rows(self, store: sqlite3.Connection) -> int:
        """Return the number of rows that are not sound."""
        ((count,),) = store.execute(f"SELECT count(*) FROM {self.name}")  # noqa: S608
        return int(count) - len(self.read(store))


def has_table(store: sqlite3.Connection, name: str) -> bool:
    """Return whether *store* has a table called *name*."""
    return store.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _column_type(kind: Any) -> str:
    kinds = {kind, *get_args(kind)}
    return "INTEGER" if kinds & {int, bool} else "REAL" if float in kinds else "TEXT"


def _checksum(values: tuple[Any, ...]) -> int:
    return crc32(repr(values).encode(errors="surrogatepass"))


RUNS: Final = CheckedTable("runs", ProcessingRun)
"""The last versions."""
FILES: Final = CheckedTable("files", LakePart)
"""The parts of the newest version, and those that it has replaced lately."""
TAKEN: Final = CheckedTable("taken_files", TakenFile)
"""The files that imports have taken; a lake that never had an import lacks the table."""
MARKS: Final = CheckedTable("file_marks", FileMark)
"""The files that imports need not open; a lake that had no import since there are marks lacks the table."""
ORGANISATIONS: Final = CheckedTable("organisations", OrganisationStatus)
"""The organisations with batches or files; a lake of 0.1 has the table `BEHIND` instead."""
DATED: Final = CheckedTable("dated_by_arrival", DatedEvents)
"""The organisations with events that are dated by arrival; a lake that never had one lacks the table."""
BEHIND: Final = "behind"
"""Table of 0.1 with the organisations whose batches the newest version lacked, and no others."""
MANIFEST_TABLES: Final = (RUNS, FILES, TAKEN, MARKS, ORGANISATIONS, DATED)


class LakeRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was committed to the lake last, in the file beside the store.

    Attributes:
        identity: random id that the store has as well; empty before it has one.
        is_written: whether the lake has events that were loaded as files or imported, and never received.
        taken: number of files that imports have taken.
        days: first and last day of the events of each organisation, as ISO 8601.
    """

    identity: str = ""
    version: int = 0
    is_written: bool = False
    taken: int = 0
    days: dict[str, tuple[str, str]] = {}


def read_record(store: Path) -> LakeRecord | None:
    """Return the record beside *store*, or None if there is none that can be read."""
    path = store.with_suffix(".lake")
    try:
        return read_checked(path, LakeRecord)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # what cannot be decoded is a `ValueError`
        _log.warning("the record of the lake cannot be read: %s: %s", path, error)
        return None


def write_record(store: Path, record: LakeRecord) -> None:
    """Replace the record beside *store*. A disk that fails leaves the older one, which is right as well."""
    path = store.with_suffix(".lake")
    try:
        store_checked(path, record)
    except OSError as error:
        _log.warning("the record of the lake is not up to date: %s cannot be written: %s", path, error)


def file_checksum(path: Path, *, on_chunk: Callable[[], None] | None = None) -> int:
    """Return the CRC-32 of the file at *path*, and call *on_chunk* before each megabyte.

    Raises:
        OSError: the file cannot be read.
    """
    checksum = 0
    chunk = memoryview(bytearray(_BYTES_AT_ONCE))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            if on_chunk is not None:
                on_chunk()
            checksum = zlib_ng.crc32(chunk[:count], checksum)
    return checksum
