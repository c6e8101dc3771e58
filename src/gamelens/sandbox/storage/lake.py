"""Immutable Parquet files, and the manifest that lists them.

An organisation has its events by UTC day, each aggregate by month, and one table of players. A reader takes a
`Snapshot` and sees one version, complete. A writer adds files and retires others in one transaction. Retired files
stay on disk for a while, for the readers of older snapshots. Files that are in no version are left over from a crash
and are removed at the next start.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time as real_time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from urllib.parse import quote

import msgspec

from gamelens.sandbox.storage.inbox import edition, scenario
from gamelens.sandbox.storage.lake_schema import COLUMNS, FORMAT
from gamelens.wire.intervals import Interval, bucket_start

GRACE_S = 120
"""Seconds for which a replaced file stays on disk."""
_FOLDER_LETTERS = 120  # encrypted file systems take 143 in a name, others 255
WRITTEN = -1
"""The `last_batch` of a run that took in files instead of batches (`bulk_load`)."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (           -- one row for each processing run: the versions of the lake
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    processed_ms INTEGER NOT NULL,
    last_batch INTEGER NOT NULL,            -- batches up to this id are in the lake
    duplicates INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS files (          -- the manifest: the files of each version
    path TEXT PRIMARY KEY,
    organisation TEXT NOT NULL,
    kind TEXT NOT NULL,                     -- the table that it is a part of
    period TEXT NOT NULL,                   -- first day of event time in it; empty for players
    rows INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER,
    removed_ms INTEGER
);
"""


class LakeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of a table.

    Attributes:
        path: relative to the lake's root.
        organisation: name of its organisation.
        kind: the table that it belongs to, one of `lake_schema.COLUMNS`.
        period: the day of its events, the first day of the month of an aggregate; None for players.
        rows: number of rows.
    """

    path: str
    organisation: str
    kind: str
    period: date | None
    rows: int


class ProcessingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake.

    Attributes:
        version: number of the run; 0 before the first.
        processed_ms: epoch milliseconds on the sandbox's clock; None before the first.
        last_batch: id of the last batch that is in the lake.
    """

    version: int = 0
    processed_ms: int | None = None
    last_batch: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """Files of one organisation in one version of the lake, by table and first day."""

    tables: Mapping[str, Mapping[date | None, Path]]

    @property
    def days(self) -> Mapping[date | None, Path]:
        """Files of events, by day."""
        return self.tables["events"]

    @property
    def players(self) -> Path | None:
        """File of all players, None before the first event."""
        return self.tables["players"].get(None)

    def files(self, table: str, *intervals: Interval) -> list[Path]:
        """Return the files of *table* that overlap at least one of *intervals*, in time order."""
        dated = sorted(((day, path) for day, path in self.tables[table].items() if day), key=lambda part: part[0])
        undated = [path for day, path in self.tables[table].items() if day is None]
        return undated + [path for day, path in dated if any(_period(table, day) & each for each in intervals)]


class Lake:
    """Parquet files below *root* and their manifest in *store*."""

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self._store = store
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._create_manifest()

    def _create_manifest(self) -> None:
        """Create the manifest's tables, and drop a lake of another format.

        Nothing is lost by that: the inbox still has all events.
        """
        (stored_format,) = self._store.execute("PRAGMA user_version").fetchone()
        if stored_format == FORMAT:
            return
        self._store.executescript(
            f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS files; {_SCHEMA} "
            f"PRAGMA user_version = {FORMAT}; COMMIT;"
        )

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run."""
        row = self._store.execute(
            "SELECT version, processed_ms, last_batch FROM runs ORDER BY version DESC LIMIT 1"
        ).fetchone()
        return ProcessingRun(version=row[0], processed_ms=row[1], last_batch=row[2]) if row else ProcessingRun()

    def is_written(self) -> bool:
        """Return whether the lake has events that were loaded as files and never received."""
        return self._store.execute("SELECT 1 FROM runs WHERE last_batch = ?", (WRITTEN,)).fetchone() is not None

    def organisations(self) -> list[str]:
        """Return the names of the organisations with files in the newest version, sorted."""
        rows = self._store.execute("SELECT DISTINCT organisation FROM files WHERE removed IS NULL ORDER BY 1")
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
        rows = self._store.execute(
            "SELECT kind, period, path FROM files WHERE organisation = ? AND removed IS NULL", (organisation,)
        )
        tables: dict[str, dict[date | None, Path]] = {name: {} for name in COLUMNS}
        for kind, period, path in rows:
            tables[kind][date.fromisoformat(period) if period else None] = self.root / path
        return Snapshot(tables)

    def available(self, organisation: str, *, now: datetime) -> Interval:
        """Return the available interval: first day of an event to hour of the last run.

        Before the first run it ends at the hour of *now* (Wire 2.4, Available interval).
        """
        processed_ms = self.last_run().processed_ms
        end = now if processed_ms is None else datetime.fromtimestamp(processed_ms / 1000, UTC)
        end = end.replace(minute=0, second=0, microsecond=0)
        first = min((_start(day) for day in self.snapshot(organisation).days if day), default=end)
        return Interval(min(first, end), end)

    def commit(self, *, processed_ms: int, last_batch: int, duplicates: int, files: Iterable[LakeFile]) -> int:
        """Add a version in one transaction and return its number.

        Each of *files* replaces the file of its organisation, table and period.

        Args:
            processed_ms: time of the run, epoch milliseconds on the sandbox's clock.
            last_batch: id of the last batch that is in the files.
            duplicates: repeated events that the run left out.
            files: the new files, relative to the root.
        """
        with self._store:
            self._store.execute("BEGIN IMMEDIATE")
            version = self._store.execute(
                "INSERT INTO runs (processed_ms, last_batch, duplicates) VALUES (?, ?, ?)",
                (processed_ms, last_batch, duplicates),
            ).lastrowid
            for file in files:
                period = file.period.isoformat() if file.period else ""
                self._store.execute(
                    "UPDATE files SET removed = ?, removed_ms = ? "
                    "WHERE organisation = ? AND kind = ? AND period = ? AND removed IS NULL",
                    (version, _real_ms(), file.organisation, file.kind, period),
                )
                self._store.execute(
                    "INSERT INTO files (path, organisation, kind, period, rows, added) VALUES (?, ?, ?, ?, ?, ?)",
                    (file.path, file.organisation, file.kind, period, file.rows, version),
                )
        return version or 0

    @property
    def edition(self) -> str:
        """Random id of the collection of events that the lake is built from (`inbox.edition`)."""
        return edition(self._store)

    @property
    def scenario(self) -> str | None:
        """The scenario that the events are of (see `inbox.scenario`)."""
        return scenario(self._store)

    def forget(self) -> None:
        """Delete every version from the manifest, inside the caller's transaction."""
        self._store.execute("DELETE FROM runs")
        self._store.execute("DELETE FROM files")

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the files that were replaced more than *grace_s* seconds ago."""
        before_ms = _real_ms() - round(grace_s * 1000)
        rows = self._store.execute("SELECT path FROM files WHERE removed_ms <= ?", (before_ms,)).fetchall()
        for (path,) in rows:
            (self.root / path).unlink(missing_ok=True)
            self._store.execute("DELETE FROM files WHERE path = ?", (path,))

    def recover(self) -> None:
        """Delete files that are in no version: a crash left them."""
        named = {path for (path,) in self._store.execute("SELECT path FROM files")}
        for file in self.root.rglob("*.parquet"):
            if str(file.relative_to(self.root)) not in named:
                file.unlink()


def folder_of(organisation: str) -> str:
    """Return the name of an organisation's folder, its quoted name or a digest where that is long.

    Whatever the organisation is called, every file system takes the name, and no other organisation has it.
    """
    quoted = quote(organisation, safe="")
    is_short = len(quoted) <= _FOLDER_LETTERS
    return f"org-{quoted if is_short else hashlib.sha256(organisation.encode()).hexdigest()}"


def month_of(day: date) -> date:
    """Return the first day of the month of *day*."""
    return day.replace(day=1)


def _period(table: str, first: date) -> Interval:
    """Return the interval of a file of *table*: a day of events, a month of any other."""
    start = _start(first)
    if table == "events":
        return Interval(start, start + timedelta(days=1))
    return Interval(start, bucket_start(start + timedelta(days=32), "month"))


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _real_ms() -> int:
    """Return real time: readers of retained files do not follow the sandbox's clock."""
    return round(real_time.time() * 1000)
