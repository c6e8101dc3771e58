"""Immutable Parquet files, one for each organisation and UTC day, and the manifest that names them.

A reader takes a `Snapshot` and sees one version, whole. A writer adds files and drops others in one transaction; what
is dropped stays on disk for a while, for the readers of older snapshots. Files that no version names are leftovers of
a crash and go at the next start.
"""

from __future__ import annotations

import sqlite3
import time as real_time
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import msgspec

from gamelens.wire.intervals import Interval

GRACE_S = 120


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file; *day* is None for the players of an organisation."""

    path: str
    organisation: str
    day: date | None
    events: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One processing run: a version of the lake."""

    version: int = 0
    processed_ms: int | None = None
    last_batch: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """What an organisation has in one version: a file of events a day, and a file of players."""

    days: dict[date, Path]
    players: Path | None

    def events(self, *spans: Interval) -> list[Path]:
        """Files of the days that at least one of *spans* touches, ascending."""
        return [path for day, path in sorted(self.days.items()) if any(_day(day) & span for span in spans)]


class Lake:
    """The files below *root* and the manifest in *store*."""

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self._store = store

    def last_run(self) -> Run:
        """The newest version; version 0 before the first run."""
        row = self._store.execute(
            "SELECT version, processed_ms, last_batch FROM runs ORDER BY version DESC LIMIT 1"
        ).fetchone()
        return Run(version=row[0], processed_ms=row[1], last_batch=row[2]) if row else Run()

    def snapshot(self, organisation: str) -> Snapshot:
        """The newest version of an organisation's files."""
        rows = self._store.execute(
            "SELECT day, path FROM files WHERE organisation = ? AND removed IS NULL", (organisation,)
        ).fetchall()
        players = next((self.root / path for day, path in rows if day is None), None)
        return Snapshot({date.fromisoformat(day): self.root / path for day, path in rows if day}, players)

    def available(self, organisation: str, *, now: datetime) -> Interval:
        """From the day of the first event to the hour in which processing last ran (Metrics, GET interval)."""
        processed_ms = self.last_run().processed_ms
        end = now if processed_ms is None else datetime.fromtimestamp(processed_ms / 1000, UTC)
        end = end.replace(minute=0, second=0, microsecond=0)
        first = min((_day(day).start for day in self.snapshot(organisation).days), default=end)
        return Interval(min(first, end), end)

    def commit(self, *, processed_ms: int, last_batch: int, duplicates: int, files: Iterable[File]) -> int:
        """Make *files* the newest version in one transaction; each replaces the one of its organisation and day."""
        with self._store:
            self._store.execute("BEGIN IMMEDIATE")
            version = self._store.execute(
                "INSERT INTO runs (processed_ms, last_batch, duplicates) VALUES (?, ?, ?)",
                (processed_ms, last_batch, duplicates),
            ).lastrowid
            for file in files:
                day = file.day.isoformat() if file.day else None
                self._store.execute(
                    "UPDATE files SET removed = ?, removed_ms = ? "
                    "WHERE organisation = ? AND day IS ? AND removed IS NULL",
                    (version, _real_ms(), file.organisation, day),
                )
                self._store.execute(
                    "INSERT INTO files (path, organisation, day, events, added) VALUES (?, ?, ?, ?, ?)",
                    (file.path, file.organisation, day, file.events, version),
                )
        return version or 0

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


def _day(day: date) -> Interval:
    start = datetime.combine(day, time(), tzinfo=UTC)
    return Interval(start, start + timedelta(days=1))


def _real_ms() -> int:
    """Real time, whatever the sandbox's clock says: the readers that a file is kept for are real."""
    return round(real_time.time() * 1000)
