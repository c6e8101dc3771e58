"""Immutable Parquet files, and the manifest that lists them.

Each table of an organisation is a list of parts, and a run adds at most one part to each, whatever the days it
touches. Compaction replaces several parts by one with the same sums. A reader takes a `Snapshot` and sees one version,
complete. A writer adds files and retires others in one transaction. Retired files stay on disk for a while, for the
readers of older snapshots. No other file is ever deleted: files that are in no version are left over from a crash and
are moved to quarantine at the next start.

The manifest has size and checksum of every file (`lake_health`), and a checksum of each of its own rows (`manifest`).
If a row is damaged, the number of files is not that of the newest run; if commits are missing, the record beside the
store is ahead (`lake_record`). The lake is then *lost*: it answers nothing and nothing of it is changed, until it is
made again from the inbox, where that has every event (`processing/rebuild`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from gamelens.sandbox.storage import backlog, inbox
from gamelens.sandbox.storage.backlog import Backlog
from gamelens.sandbox.storage.inbox import edition, give_identity, identity, lost_events, scenario
from gamelens.sandbox.storage.lake_record import LakeRecord, read_record, record_file, write_record
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.sandbox.storage.manifest import (
    WRITTEN,
    LakePart,
    LakeUnavailable,
    Manifest,
    ProcessingRun,
    TakenFile,
    real_ms,
)
from gamelens.wire.intervals import Interval, interval_of_days, start_of_day

_log = logging.getLogger(__name__)

GRACE_S = 120
"""Seconds for which a replaced file stays on disk."""
_UNREADABLE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT)  # no such table, or damaged; others may pass
_FOLDER_LETTERS = 120  # encrypted file systems take 143 in a name, others 255


class Snapshot(msgspec.Struct, frozen=True):
    """Parts of one organisation in one version of the lake, by table.

    They are in the order in which they were added.
    """

    tables: Mapping[str, Sequence[LakePart]]
    organisation: str = ""

    def parts(self, table: str) -> Sequence[LakePart]:
        """Return all parts of *table*."""
        return self.tables.get(table, ())

    def parts_in(self, table: str, *intervals: Interval) -> list[LakePart]:
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
        self._manifest = Manifest(store, root)
        self.explain_loss: Callable[[], str] | None = None
        """Function that returns what becomes of a lake that is lost."""
        self._newest: tuple[int, dict[str, Snapshot], str | None] | None = None
        self._event_data: tuple[int, dict[str, dict[str, tuple[Interval, ...]]]] | None = None

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run and where the manifest cannot be read."""
        try:
            return self._manifest.last_run()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _UNREADABLE:
                raise
            return ProcessingRun()

    def backlogs(self) -> dict[str, Backlog]:
        """Return the organisations that are behind, by name; none if the lake is lost."""
        return {} if self.lost_because else backlog.backlogs(self.store)

    def last_run_of(self, organisation: str) -> ProcessingRun:
        """Return the newest version as far as it goes for *organisation*, which may be behind."""
        behind = self.backlogs().get(organisation)
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

    @property
    def other_layout(self) -> int | None:
        """The layout of a lake that another version wrote, None if it is that of this one."""
        run = self.last_run()
        return run.format if run.version and run.format != FORMAT else None

    def require_events(self) -> None:
        """Return if the lake has every event that was acknowledged and processed.

        Raises:
            LakeUnavailable: it is lost, or batches were damaged before they were processed.
        """
        if lost_because := self.lost_because:
            raise LakeUnavailable(self.explain_loss() if self.explain_loss else lost_because)
        if lost := lost_events(self.store):
            raise LakeUnavailable(lost)

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
            version = self._manifest.last_run().version
            if self._newest is None or self._newest[0] != version:
                record = self.record  # before the manifest: a commit between them is not a loss
                run, files, lost_because = self._manifest.read()
                lost_because = lost_because or self._find_loss(run, record)
                snapshots = {} if lost_because else self._snapshots(files)
                self._newest = run.version, snapshots, lost_because and f"{lost_because}; {self._affected_days()}"
        except sqlite3.DatabaseError as error:
            if self._newest is None or self._newest[0] != -1:
                self._newest = -1, {}, f"the lake's manifest cannot be read ({error}); {self._affected_days()}"
        return self._newest[1:]

    def _find_loss(self, run: ProcessingRun, record: LakeRecord | None) -> str | None:
        """Return what the store lacks by *record* and by the files of the lake, or None."""
        if record is None:
            has_files = not run.version and any(path.is_file() for path in self.root.rglob("*"))
            return "the lake has files, and its manifest lists none" if has_files else None
        if record.version > run.version:
            return f"version {record.version} was committed, and the lake's manifest ends with {run.version}"
        if record.identity and record.identity != identity(self.store):
            return "the store is not the one that the lake belongs to"
        if record.version == run.version and record.taken > len(self._manifest.taken_files()):
            return "the manifest lacks files that imports have taken"
        return None

    def _affected_days(self) -> str:
        """Return a clause about the days of the events that a lost lake has or had."""
        record = self.record
        days = (record.days if record else {}) or days_in_files(self.root)
        spans = ", ".join(f"{name} from {first} to {last}" for name, (first, last) in sorted(days.items()))
        return f"events of these days cannot be answered: {spans or 'the days cannot be told, so of all'}"

    def _snapshots(self, files: Iterable[LakePart]) -> dict[str, Snapshot]:
        tables: dict[str, dict[str, list[LakePart]]] = {}
        for file in sorted(files, key=lambda file: (file.added, file.path)):
            tables.setdefault(file.organisation, {}).setdefault(file.kind, []).append(file)
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
        first = min((start_of_day(day) for day in days if day), default=end)
        return Interval(min(first, end), end)

    def commit(
        self,
        *,
        processed_ms: int,
        last_batch: int,
        duplicates: int = 0,
        files: Iterable[LakePart] = (),
        retired: Iterable[Path] = (),
        reached: tuple[str, int] | None = None,
        taken: Sequence[TakenFile] = (),
    ) -> int:
        """Add a version in one transaction and return its number.

        Args:
            processed_ms: time of the run, epoch milliseconds on the sandbox's clock.
            last_batch: id of the last batch that is in the lake, but for organisations that are behind.
            duplicates: repeated events that the run left out.
            files: the new parts.
            retired: paths of parts that *files* replace.
            reached: an organisation that was behind, and the id of its last batch that is now in the lake.
            taken: files of raw events that are in the lake with this version.
        """
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
            version = self._manifest.add_run(run, files, set(retired))
            if taken:
                self._manifest.add_taken(taken, version=version)
        self._note_committed()
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
                    span = interval_of_days(first, last)
                    days.setdefault(file.organisation, {}).setdefault(game, {})[span] = None
            known = {name: {game: tuple(spans) for game, spans in games.items()} for name, games in days.items()}
            self._event_data = version, known
        return self._event_data[1].get(organisation, {})

    def compact(self, files: Iterable[LakePart], retired: Iterable[Path]) -> None:
        """Replace parts by others with the same rows or sums.

        This is one more version, made in one transaction.
        """
        with self._manifest.transaction():
            self._manifest.add_run(self.last_run(), files, set(retired))
        self._note_committed()

    def restore(self, run: ProcessingRun, files: Iterable[LakePart], *, version: int) -> None:
        """Make *files* the whole lake in place of one that is lost, as *version*. All other files go to quarantine."""
        self._manifest.restore(run, files, version=version)
        self._newest = None
        self._note_committed()
        self._quarantine_unexplained()

    def unused_version(self) -> int:
        """Return the number of a version that no file, row or record names, for a lake whose manifest is lost."""
        folders = (int(path.name) for path in self.root.iterdir() if path.name.isdecimal())
        record = self.record
        known = [record.version if record else 0, *folders]
        with contextlib.suppress(sqlite3.DatabaseError):
            known.append(self._manifest.next_version() - 1)
        return max(known) + 1

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
        """Delete every version from the manifest, inside the caller's transaction: a person asked for it."""
        self._manifest.restore(ProcessingRun(), [], version=self.unused_version())
        self._newest = None

    def delete_files(self) -> None:
        """Delete every file of a lake that was forgotten, and the quarantine."""
        self._note_committed()
        for folder in (*self.root.iterdir(), self.root.parent / "quarantine"):
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the files that were replaced more than *grace_s* seconds ago, unless the lake is lost."""
        if self.lost_because:
            return
        before_ms = real_ms() - round(grace_s * 1000)
        for number, file in self._manifest.files().items():
            if file.removed_ms is None or file.removed_ms > before_ms:
                continue
            file.path.unlink(missing_ok=True)
            self._manifest.delete(number)
            _remove_empty(file.path.parents[:2])

    def recover(self) -> None:
        """Create the manifest of a new lake, and set aside files that an intact one does not explain.

        Of a lake that is lost nothing is changed.
        """
        self.create_if_new()
        if self.lost_because:
            _log.error("the lake is lost, its files stay as they are: %s", self.lost_because)
            return
        self._note_committed()
        self._quarantine_unexplained()

    def create_if_new(self) -> None:
        """Create the manifest if the store has none and no file or record says that there was one."""
        is_new = self._manifest.is_absent() and not any(path.is_file() for path in self.root.rglob("*"))
        if is_new and not (self.record and self.record.version):
            self._manifest.create()
            self._note_committed()

    def damage(self) -> list[str]:
        """Return sentences about the manifest, and about files that it does not list."""
        if self.lost_because:
            return [self.lost_because]
        found = [f"rows of the table {name} are damaged" for name in self._manifest.damaged_tables()]
        if unexplained := self._unexplained():
            names = ", ".join(str(path.relative_to(self.root)) for path in unexplained[:3])
            found.append(f"{len(unexplained)} files are in no version: {names}")
        return found

    @property
    def record(self) -> LakeRecord | None:
        """What was committed last, by the file beside the store."""
        return read_record(record_file(self.root.parent / "gamelens.db"))

    def _note_committed(self) -> None:
        """Write the newest version to the record, unless it is there."""
        if self.store.in_transaction:
            return
        before = self.record
        run, files, _ = self._manifest.read()
        days: dict[str, tuple[str, str]] = {}
        for file in files:
            if file.kind == "events" and file.first_day and file.last_day:
                own = file.first_day.isoformat(), file.last_day.isoformat()
                first, last = days.get(file.organisation, own)
                days[file.organisation] = min(first, own[0]), max(last, own[1])
        now = LakeRecord(
            identity=give_identity(self.store, (before.identity if before else "") or secrets.token_hex(16)),
            version=run.version,
            is_written=run.is_written,
            taken=len(self._manifest.taken_files()),
            days=days,
        )
        if now != before:
            write_record(record_file(self.root.parent / "gamelens.db"), now)

    def _unexplained(self) -> list[Path]:
        """Return the files below the root that no row of the manifest names."""
        named = {file.path for file in self._manifest.files().values()}
        return sorted(path for path in self.root.rglob("*") if path.is_file() and path not in named)

    def _quarantine_unexplained(self) -> None:
        """Move files that are in no version to quarantine, where a person may delete them: a crash left them."""
        unexplained = self._unexplained()
        if not unexplained:
            return
        quarantine = self.root.parent / "quarantine"
        folder = next(path for path in (quarantine / f"lake-{n}" for n in count(1)) if not path.exists())
        try:
            quarantine.mkdir(exist_ok=True, mode=0o700)
            for path in unexplained:
                target = folder / path.relative_to(self.root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, target)
                _remove_empty(path.parents[:2])
        except OSError as error:
            _log.warning("files of the lake that are in no version stay where they are: %s", error)
            return
        _log.warning("%d files of the lake that are in no version were moved to %s", len(unexplained), folder)


def days_in_files(root: Path) -> dict[str, tuple[str, str]]:
    """Return first and last day of the events in the files below *root*, by organisation."""
    days: dict[str, tuple[str, str]] = {}
    for path, range_ in event_ranges(root, "day").items():
        if range_ is not None:
            first, last = map(str, range_)
            name = unquote(path.parent.name.removeprefix("org-"))
            known = days.get(name, (first, last))
            days[name] = min(first, known[0]), max(last, known[1])
    return days


def event_ranges(root: Path, column: str) -> dict[Path, tuple[Any, Any] | None]:
    """Return the least and the greatest value of *column* in each file of events below *root*, by its statistics.

    It is None for a file that is damaged or has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    ranges: dict[Path, tuple[Any, Any] | None] = {}
    for path in root.rglob("events-*.parquet"):
        try:
            metadata = pq.read_metadata(path)
            place = metadata.schema.names.index(column)
            groups = [metadata.row_group(n).column(place).statistics for n in range(metadata.num_row_groups)]
            ranges[path] = min(group.min for group in groups), max(group.max for group in groups)
        except (OSError, ValueError, AttributeError, pa.ArrowException):
            ranges[path] = None
    return ranges


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:  # of the organisation, and of the version
        with contextlib.suppress(OSError):  # other files are in it
            folder.rmdir()


def folder_of(organisation: str) -> str:
    """Return the name of an organisation's folder: its quoted name, or a digest of a long one.

    Every file system accepts it, whatever the organisation is called, and no other organisation has it.
    """
    quoted = quote(organisation, safe="")
    is_short = len(quoted) <= _FOLDER_LETTERS
    return f"org-{quoted if is_short else hashlib.sha256(organisation.encode()).hexdigest()}"
