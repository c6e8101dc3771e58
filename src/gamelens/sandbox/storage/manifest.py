"""The manifest of the lake: its last runs and its files, in tables of SQLite whose rows have checksums."""

from __future__ import annotations

import contextlib
import sqlite3
import time as real_time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec
from zlib_ng import zlib_ng

from gamelens.errors import Refused
from gamelens.sandbox.storage import backlog
from gamelens.sandbox.storage.checked_table import CheckedTable, Values
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.wire.intervals import Interval, interval_of_days

WRITTEN = -1
"""The `last_batch` of a run that took in files instead of batches (`bulk_load`)."""
_MOST_RUNS = 8
_BYTES_AT_ONCE: Final = 1 << 20

_RUNS = CheckedTable(  # the last processing runs: the versions of the lake, which are the numbers of the rows
    "runs",
    {
        "processed_ms": "INTEGER",
        "last_batch": "INTEGER",
        "duplicates": "INTEGER",
        "is_written": "INTEGER",
        "files": "INTEGER",
        "format": "INTEGER",
    },
)
_FILES = CheckedTable(  # the parts of the newest version, and those that it has replaced lately
    "files",
    {
        "path": "TEXT",
        "organisation": "TEXT",
        "kind": "TEXT",
        "first_day": "TEXT",
        "last_day": "TEXT",
        "rows": "INTEGER",
        "level": "INTEGER",
        "bytes": "INTEGER",
        "content": "INTEGER",
        "added": "INTEGER",
        "removed": "INTEGER",
        "removed_ms": "INTEGER",
    },
)

_TAKEN = CheckedTable(  # the files that imports have taken; a lake that never had an import lacks the table
    "taken_files",
    {
        "organisation": "TEXT",
        "name": "TEXT",
        "bytes": "INTEGER",
        "content": "TEXT",
        "kind": "TEXT",
        "first_seq": "INTEGER",
        "rows": "INTEGER",
        "refused": "TEXT",
        "arrived": "TEXT",
        "version": "INTEGER",
    },
)

MANIFEST_TABLES = (_RUNS.name, _FILES.name, _TAKEN.name)
"""Names of the SQLite tables of the manifest."""


class LakeUnavailable(Refused):
    """The lake cannot answer, because something of it is damaged or not checked yet."""


class LakePart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a table.

    Attributes:
        path: absolute.
        organisation: name of its organisation.
        kind: the table that it belongs to, one of `lake_schema.COLUMNS` or a keyed run (`keyed_runs`).
        first_day: first day of its rows, None where readers take every part.
        last_day: last day of its rows.
        rows: number of rows.
        bytes: size of the file.
        content: checksum of the file.
        level: 0 for a part that a run wrote, more for one that compaction made of several.
        added: version that added it.
        removed: version that replaced it, None in the newest one.
        removed_ms: real time of that, epoch milliseconds.
    """

    path: Path
    organisation: str
    kind: str
    first_day: date | None = None
    last_day: date | None = None
    rows: int
    bytes: int
    content: int
    level: int = 0
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
    """A file of raw events that an import has taken, in the order of the columns.

    Attributes:
        organisation: name of the organisation that has its events.
        name: last part of its path or URL.
        bytes: size of the file.
        content: SHA-256 of the file, in hexadecimal digits.
        kind: its format.
        first_seq: number of its first row among the events of all imports.
        rows: number of its rows, damaged ones included.
        refused: the rows that were not taken, as JSON: number by reason.
        arrived: first and last day on which its events arrived, as JSON by game; only of Event Data.
        version: version of the lake that took it.
    """

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


class ProcessingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake.

    Attributes:
        version: number of the run; 0 before the first.
        processed_ms: epoch milliseconds on the sandbox's clock; None before the first.
        last_batch: id of the last batch that is in the lake, but for organisations that are behind.
        duplicates: repeated events that all runs together left out.
        is_written: whether the lake has events that were loaded as files and never received.
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


class Manifest:
    """The manifest in *store* of the files below *root*.

    Only `create` and `restore` make tables, and only `restore` drops any.
    """

    def __init__(self, store: sqlite3.Connection, root: Path) -> None:
        self._store, self._root = store, root

    def is_absent(self) -> bool:
        """Return whether the store has no table of a manifest."""
        return not (_RUNS.exists(self._store) or _FILES.exists(self._store) or _TAKEN.exists(self._store))

    def create(self) -> None:
        """Create the manifest of a new lake, in a store that has none."""
        with self.transaction():
            self._store.execute(backlog.SCHEMA)
            _RUNS.create(self._store)
            _FILES.create(self._store)
            self._store.execute(f"PRAGMA user_version = {FORMAT}")

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run."""
        runs = _RUNS.read(self._store, newest=2)
        return _run(*list(runs.items())[-1]) if runs else ProcessingRun()

    def files(self) -> dict[int, LakePart]:
        """Return the files by number, replaced ones included."""
        return {number: self._part(values) for number, values in _FILES.read(self._store).items()}

    def read(self) -> tuple[ProcessingRun, list[LakePart], str | None]:
        """Return the newest version, its files, and the reason why they are lost, if they are."""
        with self.transaction("DEFERRED"):
            run, files = self.last_run(), self.files().values()
            backlog.backlogs(self._store)  # without the list, batches might be taken for processed
        return run, [file for file in files if file.removed is None], _find_loss(run, files)

    def _part(self, row: Values) -> LakePart:
        values = dict(zip(_FILES.columns, row, strict=True))
        days = {name: date.fromisoformat(values[name]) if values[name] else None for name in ("first_day", "last_day")}
        return LakePart(**values | days | {"path": self._root / values["path"]})

    def _write_files(self, files: Mapping[int, LakePart]) -> None:
        rows = {}
        for number, file in files.items():
            values = msgspec.structs.asdict(file) | {"path": str(file.path.relative_to(self._root))}
            days = {name: day.isoformat() if (day := values[name]) else None for name in ("first_day", "last_day")}
            rows[number] = tuple((values | days)[name] for name in _FILES.columns)
        _FILES.write(self._store, rows)

    def next_version(self) -> int:
        """Return the number of the next version, which no row of a file names."""
        return self._version_after(self.files().values())

    def add_run(self, run: ProcessingRun, added: Iterable[LakePart], retired: Collection[Path]) -> int:
        """Write the next version inside the caller's transaction, and return its number.

        Args:
            run: the facts of the version. Its number and its number of files are found here.
            added: new files.
            retired: files that they replace.

        Raises:
            LakeUnavailable: one of the *retired* is not in the newest version, or the manifest is damaged.
        """
        known = self.files()
        if loss := _find_loss(self.last_run(), known.values()):
            raise LakeUnavailable(loss)
        gone = {number: file for number, file in known.items() if file.path in retired and file.removed is None}
        if len(gone) != len(retired):
            raise LakeUnavailable("files that are to be replaced are not in the manifest: start the sandbox again")
        version, now_ms = self._version_after(known.values()), real_ms()
        rows = {n: msgspec.structs.replace(file, removed=version, removed_ms=now_ms) for n, file in gone.items()}
        first = max(known, default=0) + 1
        rows |= {n: msgspec.structs.replace(file, added=version) for n, file in enumerate(added, first)}
        self._write_files(rows)
        live = sum(file.removed is None for file in (known | rows).values())
        self._write_run(msgspec.structs.replace(run, version=version, files=live))
        return version

    def restore(self, run: ProcessingRun, files: Iterable[LakePart], *, version: int) -> None:
        """Make *run* with *files* the only version, in place of all others and of a manifest that is damaged.

        Numbers of versions go on, so that no path and no snapshot is taken for an older one.
        """
        with self.transaction():
            self._store.execute("DROP TABLE IF EXISTS behind")
            for table in (_RUNS, _FILES, _TAKEN):
                table.drop(self._store)
            self.create()
            rows = {n: msgspec.structs.replace(file, added=version) for n, file in enumerate(files, 1)}
            self._write_files(rows)
            self._write_run(msgspec.structs.replace(run, version=version, files=len(rows), format=FORMAT))

    def taken_files(self) -> list[TakenFile]:
        """Return the files that imports have taken, in the order taken."""
        if not _TAKEN.exists(self._store):
            return []
        names = TakenFile.__struct_fields__
        return [TakenFile(**dict(zip(names, row, strict=True))) for row in _TAKEN.read(self._store).values()]

    def add_taken(self, taken: Iterable[TakenFile], *, version: int) -> None:
        """Write *taken* as files of *version*, inside the caller's transaction."""
        if not _TAKEN.exists(self._store):
            _TAKEN.create(self._store)
        first = max(_TAKEN.read(self._store), default=0) + 1
        rows = [msgspec.structs.replace(file, version=version) for file in taken]
        _TAKEN.write(self._store, {n: msgspec.structs.astuple(file) for n, file in enumerate(rows, first)})

    def delete(self, number: int) -> None:
        """Delete the row of a replaced file."""
        with self.transaction():
            _FILES.delete(self._store, [number])

    def damaged_tables(self) -> list[str]:
        """Return the names of the tables that have damaged rows."""
        tables = [_RUNS, _FILES, *([_TAKEN] if _TAKEN.exists(self._store) else [])]
        return [table.name for table in tables if table.damaged_rows(self._store)]

    @contextlib.contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Run a block in a transaction, or in that of the caller."""
        if self._store.in_transaction:
            yield
            return
        with self._store:
            self._store.execute(f"BEGIN {kind}")
            yield

    def _version_after(self, files: Iterable[LakePart]) -> int:
        return max([self.last_run().version, *(max(file.added, file.removed or 0) for file in files)]) + 1

    def _write_run(self, run: ProcessingRun) -> None:
        version, *values = (int(value) if isinstance(value, bool) else value for value in msgspec.structs.astuple(run))
        _RUNS.write(self._store, {version: tuple(values)})
        _RUNS.delete(self._store, [number for number in _RUNS.read(self._store) if number <= version - _MOST_RUNS])


def real_ms() -> int:
    """Return real time: readers of retained files do not follow the sandbox's clock."""
    return round(real_time.time() * 1000)


def _run(version: int, values: Values) -> ProcessingRun:
    run = ProcessingRun(**dict(zip(ProcessingRun.__struct_fields__, (version, *values), strict=True)))
    return msgspec.structs.replace(run, is_written=bool(run.is_written))


def _find_loss(run: ProcessingRun, files: Collection[LakePart]) -> str | None:
    """Return the reason why *files* are not those of the version *run*, or None."""
    if run.version and run.format != FORMAT:
        return f"the lake has layout {run.format}, and this version reads {FORMAT}"
    newest_version = max((max(file.added, file.removed or 0) for file in files), default=0)
    if newest_version > run.version or run.files != sum(file.removed is None for file in files):
        return "rows of the lake's manifest are damaged"
    return None


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
