"""Immutable Parquet files, and the manifest that lists them.

Each table of an organisation is a list of parts, and a run adds at most one part to each, whatever the days it
touches. Compaction replaces several parts by one with the same sums. A reader takes a `Snapshot` and sees one version,
complete. A writer adds files and retires others in one transaction. Retired files stay on disk for a while, for the
readers of older snapshots. Files that are in no version are left over from a crash and are removed at the next start.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time as real_time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from urllib.parse import quote

import msgspec

from gamelens.sandbox.storage import backlog
from gamelens.sandbox.storage.inbox import edition, scenario
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.wire.intervals import Interval

GRACE_S = 120
"""Seconds for which a replaced file stays on disk."""
_DAY = timedelta(days=1)
_FOLDER_LETTERS = 120  # encrypted file systems take 143 in a name, others 255
WRITTEN = -1
"""The `last_batch` of a run that took in files instead of batches (`bulk_load`)."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (           -- one row for each processing run: the versions of the lake
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    processed_ms INTEGER NOT NULL,
    last_batch INTEGER NOT NULL,            -- batches up to this id are in the lake (see `backlog`)
    duplicates INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS files (          -- the manifest: the parts of each version
    path TEXT PRIMARY KEY,
    organisation TEXT NOT NULL,
    kind TEXT NOT NULL,                     -- the table that it is a part of
    first_day TEXT,                         -- days of event time in it; null where all parts are always read
    last_day TEXT,
    rows INTEGER NOT NULL,
    level INTEGER NOT NULL,                 -- of compaction; 0 is what a run wrote
    added INTEGER NOT NULL,
    removed INTEGER,
    removed_ms INTEGER
);
"""


class LakeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a table.

    Attributes:
        path: relative to the lake's root.
        organisation: name of its organisation.
        kind: the table that it belongs to, one of `lake_schema.COLUMNS` or a keyed run (`keyed_runs`).
        first_day: first day of its rows, None where readers take every part.
        last_day: last day of its rows.
        rows: number of rows.
        level: 0 for a part that a run wrote, more for one that compaction made of several.
    """

    path: str
    organisation: str
    kind: str
    first_day: date | None
    last_day: date | None
    rows: int
    level: int = 0


class ProcessingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake.

    Attributes:
        version: number of the run; 0 before the first.
        processed_ms: epoch milliseconds on the sandbox's clock; None before the first.
        last_batch: id of the last batch that is in the lake, but for organisations that are behind.
    """

    version: int = 0
    processed_ms: int | None = None
    last_batch: int = 0


class TablePart(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a table in a snapshot, with an absolute path (`LakeFile`)."""

    path: Path
    first_day: date | None
    last_day: date | None
    rows: int
    level: int

    def overlaps(self, interval: Interval) -> bool:
        """Return whether rows of the part may lie in *interval*."""
        if self.first_day is None or self.last_day is None:
            return True
        return bool(Interval(_start(self.first_day), _start(self.last_day) + _DAY) & interval)


class Snapshot(msgspec.Struct, frozen=True):
    """Parts of one organisation in one version of the lake, by table.

    They are in the order in which they were added.
    """

    tables: Mapping[str, Sequence[TablePart]]

    def parts(self, table: str) -> Sequence[TablePart]:
        """Return all parts of *table*."""
        return self.tables.get(table, ())

    def files(self, table: str, *intervals: Interval) -> list[Path]:
        """Return the files of *table* that may have rows in one of *intervals*.

        Without intervals these are all files.
        """
        parts = self.parts(table)
        return [part.path for part in parts if not intervals or any(map(part.overlaps, intervals))]

    def rows(self, table: str) -> int:
        """Return the number of rows of *table*."""
        return sum(part.rows for part in self.parts(table))


class Lake:
    """Parquet files below *root* and their manifest in *store*."""

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self.store = store
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._create_manifest()

    def _create_manifest(self) -> None:
        """Create the manifest's tables, and drop a lake of another format.

        Nothing is lost by that: the inbox still has all events.
        """
        self.store.executescript(backlog.SCHEMA)
        (stored_format,) = self.store.execute("PRAGMA user_version").fetchone()
        if stored_format == FORMAT:
            return
        self.store.executescript(
            f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS behind; "
            f"{_SCHEMA} {backlog.SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;"
        )

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run."""
        row = self.store.execute(
            "SELECT version, processed_ms, last_batch FROM runs ORDER BY version DESC LIMIT 1"
        ).fetchone()
        return ProcessingRun(version=row[0], processed_ms=row[1], last_batch=row[2]) if row else ProcessingRun()

    def last_run_of(self, organisation: str) -> ProcessingRun:
        """Return the newest version as far as it goes for *organisation*, which may be behind."""
        behind = backlog.backlogs(self.store).get(organisation)
        last = self.last_run()
        if behind is None:
            return last
        return ProcessingRun(version=last.version, processed_ms=behind.processed_ms, last_batch=behind.last_batch)

    def is_written(self) -> bool:
        """Return whether the lake has events that were loaded as files and never received."""
        return self.store.execute("SELECT 1 FROM runs WHERE last_batch = ?", (WRITTEN,)).fetchone() is not None

    def organisations(self) -> list[str]:
        """Return the names of the organisations with files in the newest version, sorted."""
        rows = self.store.execute("SELECT DISTINCT organisation FROM files WHERE removed IS NULL ORDER BY 1")
        return [name for (name,) in rows]

    def snapshot(self, organisation: str) -> Snapshot:
        """Return the newest version of an organisation's files, cached until the next run."""
        version = self.last_run().version
        cached_version, snapshot = self._snapshots.get(organisation, (None, None))
        if snapshot is None or cached_version != version:
            snapshot = self._read_snapshot(organisation)
            self._snapshots[organisation] = version, snapshot
        return snapshot

    def _read_snapshot(self, organisation: str) -> Snapshot:
        rows = self.store.execute(
            "SELECT kind, path, first_day, last_day, rows, level FROM files "
            "WHERE organisation = ? AND removed IS NULL ORDER BY added, path",
            (organisation,),
        )
        tables: dict[str, list[TablePart]] = {}
        for kind, path, first, last, count, level in rows:
            part = TablePart(path=self.root / path, first_day=_day(first), last_day=_day(last), rows=count, level=level)
            tables.setdefault(kind, []).append(part)
        return Snapshot(tables)

    def available(self, organisation: str, *, now: datetime) -> Interval:
        """Return the available interval: first day of an event to hour of the last run.

        A run of the organisation that failed does not count.

        Before the first run it ends at the hour of *now* (Wire 2.4, Available interval).
        """
        processed_ms = self.last_run_of(organisation).processed_ms
        end = now if processed_ms is None else datetime.fromtimestamp(processed_ms / 1000, UTC)
        end = end.replace(minute=0, second=0, microsecond=0)
        days = [part.first_day for part in self.snapshot(organisation).parts("events")]
        first = min((_start(day) for day in days if day), default=end)
        return Interval(min(first, end), end)

    def commit(
        self,
        *,
        processed_ms: int,
        last_batch: int,
        duplicates: int = 0,
        files: Iterable[LakeFile] = (),
        retired: Iterable[Path] = (),
        reached: tuple[str, int] | None = None,
    ) -> int:
        """Add a version in one transaction and return its number.

        Args:
            processed_ms: time of the run, epoch milliseconds on the sandbox's clock.
            last_batch: id of the last batch that is in the lake, but for organisations that are behind.
            duplicates: repeated events that the run left out.
            files: the new parts, relative to the root.
            retired: parts that *files* replace.
            reached: an organisation that was behind, and the id of its last batch that is now in the lake.
        """
        with self.store:
            self.store.execute("BEGIN IMMEDIATE")
            version = self.store.execute(
                "INSERT INTO runs (processed_ms, last_batch, duplicates) VALUES (?, ?, ?)",
                (processed_ms, last_batch, duplicates),
            ).lastrowid
            if reached is not None:
                organisation, up_to = reached
                backlog.note_committed(self.store, organisation, up_to=up_to, last_batch=last_batch)
            self._replace(files, retired, version or 0)
        return version or 0

    def compact(self, files: Iterable[LakeFile], retired: Iterable[Path]) -> None:
        """Replace parts by others with the same rows or sums.

        This is one more version, made in one transaction.
        """
        with self.store:
            self.store.execute("BEGIN IMMEDIATE")
            version = self.store.execute(
                "INSERT INTO runs (processed_ms, last_batch, duplicates) "
                "SELECT processed_ms, last_batch, 0 FROM runs ORDER BY version DESC LIMIT 1"
            ).lastrowid
            self._replace(files, retired, version or 0)

    def _replace(self, files: Iterable[LakeFile], retired: Iterable[Path], version: int) -> None:
        now_ms = _real_ms()
        self.store.executemany(
            "UPDATE files SET removed = ?, removed_ms = ? WHERE path = ? AND removed IS NULL",
            [(version, now_ms, str(path.relative_to(self.root))) for path in retired],
        )
        self.store.executemany(
            "INSERT INTO files (path, organisation, kind, first_day, last_day, rows, level, added) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    file.path,
                    file.organisation,
                    file.kind,
                    file.first_day and file.first_day.isoformat(),
                    file.last_day and file.last_day.isoformat(),
                    file.rows,
                    file.level,
                    version,
                )
                for file in files
            ],
        )

    @property
    def edition(self) -> str:
        """Random id of the collection of events that the lake is built from (`inbox.edition`)."""
        return edition(self.store)

    @property
    def scenario(self) -> str | None:
        """The scenario that the events are of (see `inbox.scenario`)."""
        return scenario(self.store)

    def forget(self) -> None:
        """Delete every version from the manifest, inside the caller's transaction."""
        self.store.execute("DELETE FROM runs")
        self.store.execute("DELETE FROM behind")
        self.store.execute("DELETE FROM files")

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the files that were replaced more than *grace_s* seconds ago."""
        before_ms = _real_ms() - round(grace_s * 1000)
        rows = self.store.execute("SELECT path FROM files WHERE removed_ms <= ?", (before_ms,)).fetchall()
        for (path,) in rows:
            (self.root / path).unlink(missing_ok=True)
            self.store.execute("DELETE FROM files WHERE path = ?", (path,))
            for folder in (self.root / path).parents[:2]:  # of the organisation, and of the version
                with contextlib.suppress(OSError):  # other files are in it
                    folder.rmdir()

    def recover(self) -> None:
        """Delete files that are in no version: a crash left them."""
        named = {path for (path,) in self.store.execute("SELECT path FROM files")}
        for file in self.root.rglob("*.*"):
            if file.is_file() and str(file.relative_to(self.root)) not in named:
                file.unlink()


def folder_of(organisation: str) -> str:
    """Return the name of an organisation's folder: its quoted name, or a digest of a long one.

    Every file system accepts it, whatever the organisation is called, and no other organisation has it.
    """
    quoted = quote(organisation, safe="")
    is_short = len(quoted) <= _FOLDER_LETTERS
    return f"org-{quoted if is_short else hashlib.sha256(organisation.encode()).hexdigest()}"


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _real_ms() -> int:
    """Return real time: readers of retained files do not follow the sandbox's clock."""
    return round(real_time.time() * 1000)
