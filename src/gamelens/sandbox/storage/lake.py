"""Immutable Parquet files, and the manifest that names them.

Of each organisation: its events by UTC day, each kind of aggregate by month, and one table of players. A reader takes a
`Snapshot` and sees one version, whole. A writer adds files and drops others in one transaction; what is dropped stays
on disk for a while, for the readers of older snapshots. Files that no version names are leftovers of a crash and go at
the next start.
"""

from __future__ import annotations

import sqlite3
import time as real_time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import msgspec

from gamelens.sandbox.storage.inbox import edition, scenario
from gamelens.sandbox.storage.lake_schema import COLUMNS, FORMAT
from gamelens.wire.intervals import Interval, bucket_start

GRACE_S = 120
WRITTEN = -1
"""The last batch of a run that took in files instead of batches (`filling`)."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (           -- one row for each processing run: the versions of the lake
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    processed_ms INTEGER NOT NULL,
    last_batch INTEGER NOT NULL,            -- batches up to this id are in the lake
    duplicates INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS files (          -- the manifest: which file belongs to which versions
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
    """One Parquet file of the table *kind*: a day of events, a month of an aggregate (its first day), all players."""

    path: str
    organisation: str
    kind: str
    period: date | None
    rows: int


class ProcessingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake."""

    version: int = 0
    processed_ms: int | None = None
    last_batch: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """What an organisation has in one version: for each table its files, by the first day of what they hold."""

    tables: Mapping[str, Mapping[date | None, Path]]

    @property
    def days(self) -> Mapping[date | None, Path]:
        """The file of each day of events."""
        return self.tables["events"]

    @property
    def players(self) -> Path | None:
        """The file of all players."""
        return self.tables["players"].get(None)

    def files(self, table: str, *spans: Interval) -> list[Path]:
        """Files of *table* that hold something of at least one of *spans*, ascending."""
        parts = sorted(((day, path) for day, path in self.tables[table].items() if day), key=lambda part: part[0])
        whole = [path for day, path in self.tables[table].items() if day is None]
        return whole + [path for day, path in parts if any(_period(table, day) & span for span in spans)]


class Lake:
    """The files below *root* and the manifest in *store*."""

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self._store = store
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._prepare()

    def _prepare(self) -> None:
        """Make the manifest's tables; forget a lake of another format, which the inbox still has all events of."""
        (found,) = self._store.execute("PRAGMA user_version").fetchone()
        if found == FORMAT:
            return
        self._store.executescript(
            f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS files; {_SCHEMA} "
            f"PRAGMA user_version = {FORMAT}; COMMIT;"
        )

    def last_run(self) -> ProcessingRun:
        """The newest version; version 0 before the first run."""
        row = self._store.execute(
            "SELECT version, processed_ms, last_batch FROM runs ORDER BY version DESC LIMIT 1"
        ).fetchone()
        return ProcessingRun(version=row[0], processed_ms=row[1], last_batch=row[2]) if row else ProcessingRun()

    def is_written(self) -> bool:
        """Whether it has events that were never received."""
        return self._store.execute("SELECT 1 FROM runs WHERE last_batch = ?", (WRITTEN,)).fetchone() is not None

    def organisations(self) -> list[str]:
        """Names of those that have something in the newest version."""
        rows = self._store.execute("SELECT DISTINCT organisation FROM files WHERE removed IS NULL ORDER BY 1")
        return [name for (name,) in rows]

    def snapshot(self, organisation: str) -> Snapshot:
        """The newest version of an organisation's files; made once for all who ask."""
        version = self.last_run().version
        known, snapshot = self._snapshots.get(organisation, (None, None))
        if snapshot is None or known != version:
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
        """From the day of the first event to the hour in which processing last ran (Metrics, GET interval)."""
        processed_ms = self.last_run().processed_ms
        end = now if processed_ms is None else datetime.fromtimestamp(processed_ms / 1000, UTC)
        end = end.replace(minute=0, second=0, microsecond=0)
        first = min((_start(day) for day in self.snapshot(organisation).days if day), default=end)
        return Interval(min(first, end), end)

    def commit(self, *, processed_ms: int, last_batch: int, duplicates: int, files: Iterable[LakeFile]) -> int:
        """Make *files* the newest version in one transaction; each replaces the one of its table and period."""
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
        """Which collection of events it is made from (see `inbox.edition`)."""
        return edition(self._store)

    @property
    def scenario(self) -> str | None:
        """The scenario that the events are of (see `inbox.scenario`)."""
        return scenario(self._store)

    def forget(self) -> None:
        """Have no version and no files any more, inside of a transaction of the caller's."""
        self._store.execute("DELETE FROM runs")
        self._store.execute("DELETE FROM files")

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Remove the files that were replaced more than *grace_s* ago."""
        before_ms = _real_ms() - round(grace_s * 1000)
        rows = self._store.execute("SELECT path FROM files WHERE removed_ms <= ?", (before_ms,)).fetchall()
        for (path,) in rows:
            (self.root / path).unlink(missing_ok=True)
            self._store.execute("DELETE FROM files WHERE path = ?", (path,))

    def recover(self) -> None:
        """Remove what a crash left: files that no version names."""
        named = {path for (path,) in self._store.execute("SELECT path FROM files")}
        for file in self.root.rglob("*.parquet"):
            if str(file.relative_to(self.root)) not in named:
                file.unlink()


def month_of(day: date) -> date:
    """The first day of its month."""
    return day.replace(day=1)


def _period(table: str, first: date) -> Interval:
    """What a file of *table* covers: one day of events, a month of anything else."""
    start = _start(first)
    if table == "events":
        return Interval(start, start + timedelta(days=1))
    return Interval(start, bucket_start(start + timedelta(days=32), "month"))


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _real_ms() -> int:
    """Real time, whatever the sandbox's clock says: the readers that a file is kept for are real."""
    return round(real_time.time() * 1000)
