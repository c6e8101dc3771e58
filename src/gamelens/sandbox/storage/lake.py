"""Immutable Parquet files, and the manifest that lists them.

Each table of an organisation is a list of parts, and a run adds at most one part to each, whatever the days it
touches. Compaction replaces several parts by one with the same sums. A reader takes a `Snapshot` and sees one version,
complete. A writer adds files and retires others in one transaction. Retired files stay on disk for a while, for the
readers of older snapshots. Files that are in no version are left over from a crash and are removed at the next start.

The manifest has size and checksum of every file (`lake_health`), and is kept twice itself (`manifest`). If both copies
of a row are damaged, the number of files is not that of the newest run: the lake is then *lost* and answers nothing
until it is made again from the inbox (`processing/rebuild`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from urllib.parse import quote

import msgspec

from gamelens.sandbox.storage import backlog, inbox
from gamelens.sandbox.storage.inbox import edition, scenario
from gamelens.sandbox.storage.manifest import (
    WRITTEN,
    LakeFile,
    LakeUnavailable,
    Manifest,
    ProcessingRun,
    StoredFile,
    TakenFile,
    file_checksum,
    real_ms,
)
from gamelens.wire.intervals import Interval

_log = logging.getLogger(__name__)

GRACE_S = 120
"""Seconds for which a replaced file stays on disk."""
_DAY = timedelta(days=1)
_FOLDER_LETTERS = 120  # encrypted file systems take 143 in a name, others 255


class TablePart(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a table in a snapshot, with an absolute path (`LakeFile`)."""

    path: Path
    first_day: date | None
    last_day: date | None
    rows: int
    level: int
    bytes: int
    content: int

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
    organisation: str = ""

    def parts(self, table: str) -> Sequence[TablePart]:
        """Return all parts of *table*."""
        return self.tables.get(table, ())

    def parts_in(self, table: str, *intervals: Interval) -> list[TablePart]:
        """Return the parts of *table* that may have rows in one of *intervals*.

        Without intervals these are all parts.
        """
        return [part for part in self.parts(table) if not intervals or any(map(part.overlaps, intervals))]

    def files(self, table: str, *intervals: Interval) -> list[Path]:
        """Return the files of *table* that may have rows in one of *intervals* (`parts_in`)."""
        return [part.path for part in self.parts_in(table, *intervals)]

    def rows(self, table: str) -> int:
        """Return the number of rows of *table*."""
        return sum(part.rows for part in self.parts(table))


class Lake:
    """Parquet files below *root* and their manifest in *store*."""

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self.store = store
        self._manifest = Manifest(store)
        self.explain_loss: Callable[[], str] | None = None
        """Function that returns what becomes of a lake that is lost."""
        self._newest: tuple[int, dict[str, Snapshot], str | None] | None = None
        self._event_data: tuple[int, dict[str, dict[str, tuple[Interval, ...]]]] | None = None

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run."""
        return self._manifest.last_run()

    def last_run_of(self, organisation: str) -> ProcessingRun:
        """Return the newest version as far as it goes for *organisation*, which may be behind."""
        behind = backlog.backlogs(self.store).get(organisation)
        last = self.last_run()
        if behind is None:
            return last
        return msgspec.structs.replace(last, processed_ms=behind.processed_ms, last_batch=behind.last_batch)

    def next_version(self) -> int:
        """Return the number of the next version."""
        return self._manifest.next_version()

    @property
    def lost_because(self) -> str | None:
        """The reason why the files of the newest version are not known, None if they are."""
        return self._read_version()[1]

    @property
    def known_loss(self) -> str | None:
        """`lost_because` as it was read last, for threads that have no connection of their own."""
        return self._newest[2] if self._newest else None

    def organisations(self) -> list[str]:
        """Return the names of the organisations with files in the newest version, sorted."""
        return sorted(self._read_version()[0])

    def snapshot(self, organisation: str) -> Snapshot:
        """Return the newest version of an organisation's files, cached until the next run.

        Raises:
            LakeUnavailable: the lake is lost.
        """
        snapshots, lost_because = self._read_version()
        if lost_because:
            raise LakeUnavailable(self.explain_loss() if self.explain_loss else lost_because)
        return snapshots.get(organisation) or Snapshot({}, organisation)

    def _read_version(self) -> tuple[dict[str, Snapshot], str | None]:
        """Return the newest version by organisation, and the reason why it is lost, if it is."""
        try:
            if self._newest is None or self._newest[0] != self.last_run().version:
                run, files, lost_because = self._manifest.read()
                self._newest = run.version, {} if lost_because else self._snapshots(files), lost_because
        except sqlite3.DatabaseError as error:
            self._newest = -1, {}, f"the lake's manifest cannot be read: {error}"
        return self._newest[1:]

    def _snapshots(self, files: Iterable[StoredFile]) -> dict[str, Snapshot]:
        tables: dict[str, dict[str, list[TablePart]]] = {}
        for file in sorted(files, key=lambda file: (file.added, file.path)):
            part = TablePart(
                path=self.root / file.path,
                first_day=_day(file.first_day),
                last_day=_day(file.last_day),
                rows=file.rows,
                level=file.level,
                bytes=file.bytes,
                content=file.content,
            )
            tables.setdefault(file.organisation, {}).setdefault(file.kind, []).append(part)
        return {organisation: Snapshot(parts, organisation) for organisation, parts in tables.items()}

    def available(self, organisation: str, *, now: datetime) -> Interval:
        """Return the available interval: first day of an event to hour of the last run.

        A run of the organisation that failed does not count.

        Before the first run it ends at the hour of *now* (Wire 2.4, Available interval). A run whose clock was ahead
        knows nothing of what arrives after it: the interval ends at *now* then, or where the first of that arrived.
        """
        last = self.last_run_of(organisation)
        end = now
        if last.processed_ms is not None:
            arrived_ms = inbox.first_arrival_ms(self.store, after=last.last_batch, organisation=organisation)
            known_ms = last.processed_ms if arrived_ms is None else min(last.processed_ms, arrived_ms)
            end = min(now, datetime.fromtimestamp(known_ms / 1000, UTC))
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
        taken: Sequence[TakenFile] = (),
    ) -> int:
        """Add a version in one transaction and return its number.

        Args:
            processed_ms: time of the run, epoch milliseconds on the sandbox's clock.
            last_batch: id of the last batch that is in the lake, but for organisations that are behind.
            duplicates: repeated events that the run left out.
            files: the new parts, relative to the root.
            retired: parts that *files* replace.
            reached: an organisation that was behind, and the id of its last batch that is now in the lake.
            taken: files of raw events that are in the lake with this version.
        """
        added = self._described(files)
        with self._manifest.transaction():
            last = self.last_run()
            run = msgspec.structs.replace(
                last,
                processed_ms=processed_ms,
                last_batch=last_batch,
                duplicates=last.duplicates + duplicates,
                is_written=last.is_written or last_batch == WRITTEN or bool(taken),
            )
            if reached is not None:
                organisation, up_to = reached
                backlog.note_committed(self.store, organisation, up_to=up_to, last_batch=last_batch)
            version = self._manifest.add_run(run, added, self._names(retired))
            if taken:
                self._manifest.add_taken(taken, version=version)
            return version

    def taken_files(self) -> list[TakenFile]:
        """Return the files of raw events that imports have taken."""
        return self._manifest.taken_files()

    def event_data(self, organisation: str) -> Mapping[str, Sequence[Interval]]:
        """Return the days on which Event Data arrived, by game, cached until the next run.

        Wire 5.7, Event Data.
        """
        version = self.last_run().version
        if self._event_data is None or self._event_data[0] != version:
            days: dict[str, dict[str, dict[Interval, None]]] = {}
            for file in self.taken_files():
                arrived = msgspec.json.decode(file.arrived, type=dict[str, tuple[date, date]])
                for game, (first, last) in arrived.items():
                    span = Interval(_start(first), _start(last) + _DAY)
                    days.setdefault(file.organisation, {}).setdefault(game, {})[span] = None
            known = {name: {game: tuple(spans) for game, spans in games.items()} for name, games in days.items()}
            self._event_data = version, known
        return self._event_data[1].get(organisation, {})

    def compact(self, files: Iterable[LakeFile], retired: Iterable[Path]) -> None:
        """Replace parts by others with the same rows or sums.

        This is one more version, made in one transaction.
        """
        added = self._described(files)
        with self._manifest.transaction():
            self._manifest.add_run(self.last_run(), added, self._names(retired))

    def restore(self, run: ProcessingRun, files: Iterable[LakeFile]) -> None:
        """Make *files* the whole lake in place of all others.

        They are the version *run*, made in one transaction.
        """
        added = self._described(files)
        with self._manifest.transaction():
            backlog.forget(self.store)
            live = [file.path for file in self._manifest.files().values() if file.removed is None]
            self._manifest.add_run(run, added, live, is_whole=True)

    def _names(self, paths: Iterable[Path]) -> set[str]:
        return {str(path.relative_to(self.root)) for path in paths}

    def _described(self, files: Iterable[LakeFile]) -> list[StoredFile]:
        """Return the rows of new files.

        They are read for their checksums while they are still in memory.
        """
        return [
            StoredFile(
                path=file.path,
                organisation=file.organisation,
                kind=file.kind,
                first_day=_text(file.first_day),
                last_day=_text(file.last_day),
                rows=file.rows,
                level=file.level,
                bytes=(self.root / file.path).stat().st_size,
                content=file_checksum(self.root / file.path),
            )
            for file in files
        ]

    @property
    def edition(self) -> str:
        """Random id of the collection of events that the lake is built from (`inbox.edition`)."""
        return edition(self.store)

    @property
    def scenario(self) -> str | None:
        """The scenario that the events are of (see `inbox.scenario`)."""
        return scenario(self.store)

    def cannot_be_written(self) -> str | None:
        """Return why no file can be added, None if one can: a file without a name is made and gone again."""
        try:
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            reason = f"{self.root} cannot be written: {error.strerror}. Nothing can be processed"
            return f"{reason}: see that its disk and its permissions allow it"
        return None

    def forget(self) -> None:
        """Delete every version from the manifest, inside the caller's transaction."""
        self._manifest.forget()
        backlog.forget(self.store)

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the files that were replaced more than *grace_s* seconds ago."""
        before_ms = real_ms() - round(grace_s * 1000)
        for number, file in self._manifest.files().items():
            if file.removed_ms is None or file.removed_ms > before_ms:
                continue
            path = self.root / file.path
            path.unlink(missing_ok=True)
            self._manifest.delete(number)
            for folder in path.parents[:2]:  # of the organisation, and of the version
                with contextlib.suppress(OSError):  # other files are in it
                    folder.rmdir()

    def recover(self) -> None:
        """Mend the manifest, and delete files that are in no version: a crash left them.

        Of a written lake that is lost nothing is deleted, because nothing makes it again.
        """
        if self._manifest.repair():
            _log.warning("the lake's manifest was damaged, and mended from its copy where that was whole")
        if self.lost_because and self.last_run().is_written:
            return
        named = {file.path for file in self._manifest.files().values()}
        for path in self.root.rglob("*.*"):
            if path.is_file() and str(path.relative_to(self.root)) not in named:
                path.unlink()


def folder_of(organisation: str) -> str:
    """Return the name of an organisation's folder: its quoted name, or a digest of a long one.

    Every file system accepts it, whatever the organisation is called, and no other organisation has it.
    """
    quoted = quote(organisation, safe="")
    is_short = len(quoted) <= _FOLDER_LETTERS
    return f"org-{quoted if is_short else hashlib.sha256(organisation.encode()).hexdigest()}"


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _text(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
