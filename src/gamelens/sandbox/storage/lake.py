"""Immutable Parquet files, and the manifest that lists them.

Each table of an organisation is a list of parts, and a run adds at most one part to each, whatever the days it
touches. Compaction replaces several parts by one with the same sums. A reader takes a `Snapshot` and sees one version,
complete. A writer adds files and retires others in one transaction. Retired files stay on disk for a while, for the
readers of older snapshots. No other file is ever deleted: files that are in no version are left over from a crash and
are moved to quarantine at the next start.

The manifest has size and checksum of every file (`lake_health`), and a checksum of each of its own rows (`manifest`).
If a row is damaged, the newest run counts another number of files; if commits are missing, the record beside the
store is ahead. The lake is then *lost*: it answers nothing and nothing of it is changed, until it is made again from
the inbox, where that has every event (`processing/rebuild`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import shutil
import sqlite3
import tempfile
import time as real_time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from gamelens.sandbox.storage import inbox
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.sandbox.storage.manifest import (
    BEHIND,
    DATED,
    FILES,
    MANIFEST_TABLES,
    MARKS,
    ORGANISATIONS,
    RUNS,
    TAKEN,
    DatedEvents,
    FileMark,
    LakePart,
    LakeRecord,
    LakeUnavailable,
    OrganisationStatus,
    ProcessingRun,
    TakenFile,
    has_table,
    read_record,
    write_record,
)
from gamelens.wire.intervals import Interval, interval_of_days, start_of_day

_log = logging.getLogger(__name__)

GRACE_S: Final = 120
"""Seconds of real time for which a replaced file stays on disk: readers do not follow the sandbox's clock."""
FIRST_PAUSE_S: Final = 60
"""Pause after a first failure. Each further failure doubles it."""
LONGEST_PAUSE_S: Final = 3600
_MOST_RUNS: Final = 8
_UNREADABLE: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT)  # no such table, or damaged; others may pass
_FOLDER_LETTERS: Final = 120  # encrypted file systems take 143 in a name, others 255


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

    def all_parts(self) -> Iterator[LakePart]:
        """Yield the parts of all tables."""
        for parts in self.tables.values():
            yield from parts

    def span(self) -> Interval | None:
        """Return the days from the first event to the last, None without events and where a part does not say."""
        days = [(part.first_day, part.last_day) for part in self.parts("events")]
        spans = [interval_of_days(first, last) for first, last in days if first is not None and last is not None]
        if not spans or len(spans) < len(days):
            return None
        return Interval(min(span.start for span in spans), max(span.end for span in spans))

    def rows(self, table: str) -> int:
        """Return the number of rows of *table*."""
        return sum(part.rows for part in self.parts(table))


COUNTS_REPEATS: Final = "repeats.count"
"""The name of an empty file in a state directory whose repeated events count."""


class Lake:
    """Parquet files below *root* and their manifest in *store*.

    Opening and reading it writes nothing. Only `create_if_new` and `restore` make tables, and only `restore` drops any
    that has rows.

    Attributes:
        counts_repeats: whether events with the `event_uuid` of an earlier one count (Wire 4.8, Repeated events), which
            a file beside *root* says.
    """

    def __init__(self, root: Path, store: sqlite3.Connection) -> None:
        self.root = root
        self.store = store
        self.counts_repeats = (root.parent / COUNTS_REPEATS).exists()
        self.explain_loss: Callable[[], str] | None = None
        """Function that returns what becomes of a lake that is lost."""
        self._newest: tuple[int | None, dict[str, Snapshot], str | None] | None = None
        self._event_data: tuple[int, dict[str, dict[str, tuple[Interval, ...]]]] | None = None

    # The versions and their files.

    def last_run(self) -> ProcessingRun:
        """Return the newest version, or version 0 before the first run and where the manifest cannot be read."""
        try:
            return self._last_run()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _UNREADABLE:
                raise
            return ProcessingRun()

    def _last_run(self) -> ProcessingRun:
        return next(iter(RUNS.read(self.store, newest=2)[-1:]), ProcessingRun())

    def _files(self) -> list[LakePart]:
        """Return the files, replaced ones included."""
        return [msgspec.structs.replace(part, path=self.root / part.path) for part in FILES.read(self.store)]

    def next_version(self) -> int:
        """Return the number of the next version, which no row of a file names."""
        return _newest_version(self._last_run(), self._files()) + 1

    def unused_version(self) -> int:
        """Return the number of a version that no file, row or record names, for a lake whose manifest is lost."""
        folders = (int(path.name) for path in self.root.iterdir() if path.name.isdecimal())
        record = self.record
        known = [record.version if record else 0, *folders]
        with contextlib.suppress(sqlite3.DatabaseError):
            known.append(self.next_version() - 1)
        return max(known) + 1

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
            if self._newest is None or self._newest[0] != self._last_run().version:
                record = self.record  # before the manifest: a commit between them is not a loss
                with self._transaction("DEFERRED"):
                    run, files, statuses = self._last_run(), self._files(), self._statuses()
                    lost_because = self._find_loss(run, files, statuses) or self._find_missing(run, record)
                tables: dict[str, dict[str, list[LakePart]]] = {}
                for file in sorted(files, key=lambda file: (file.added, file.path)):
                    if file.removed is None and not lost_because:
                        tables.setdefault(file.organisation, {}).setdefault(file.kind, []).append(file)
                snapshots = {name: Snapshot(parts, name) for name, parts in tables.items()}
                self._newest = run.version, snapshots, lost_because and f"{lost_because}; {self._affected_days()}"
        except sqlite3.DatabaseError as error:
            if self._newest is None or self._newest[0] is not None:
                self._newest = None, {}, f"the lake's manifest cannot be read ({error}); {self._affected_days()}"
        return self._newest[1:]

    @property
    def edition(self) -> str:
        """Random id of the collection of events that the lake is built from (`inbox.edition`)."""
        return inbox.edition(self.store)

    @property
    def scenario(self) -> str | None:
        """The scenario that the events are of (see `inbox.scenario`)."""
        return inbox.scenario(self.store)

    # What is lost.

    @property
    def lost_because(self) -> str | None:
        """The reason why the files of the newest version are not known, None if they are."""
        return self._read_version()[1]

    @property
    def known_loss(self) -> str | None:
        """`lost_because` as it was read last, for threads that have no connection of their own."""
        return self._newest[2] if self._newest else None

    def require_events(self) -> None:
        """Return if the lake has every event that was acknowledged and processed.

        Raises:
            LakeUnavailable: it is lost, or batches were damaged before they were processed.
        """
        if lost_because := self.lost_because:
            raise LakeUnavailable(self.explain_loss() if self.explain_loss else lost_because)
        if lost := inbox.lost_events(self.store):
            raise LakeUnavailable(lost)

    def _find_loss(
        self, run: ProcessingRun, files: Collection[LakePart], statuses: Mapping[str, OrganisationStatus]
    ) -> str | None:
        """Return the reason why *files* and *statuses* do not belong to the version *run*, or None."""
        if run.version and run.format != FORMAT:
            return f"the lake has layout {run.format}, and this version reads {FORMAT}"
        newest = [file for file in files if file.removed is None]
        if _newest_version(run, files) > run.version or run.files != len(newest):
            return "rows of the lake's manifest are damaged"
        has_batches = run.last_batch > 0 and not has_table(self.store, BEHIND)
        if has_batches and (
            ORGANISATIONS.damaged_rows(self.store) or not statuses.keys() >= {file.organisation for file in newest}
        ):
            return "rows of the lake's manifest are damaged"  # batches might be taken in twice
        return None

    def _find_missing(self, run: ProcessingRun, record: LakeRecord | None) -> str | None:
        """Return what the store lacks by *record* and by the files of the lake, or None."""
        if record is None:
            has_files = not run.version and any(path.is_file() for path in self.root.rglob("*"))
            return "the lake has files, and its manifest lists none" if has_files else None
        if record.version > run.version:
            return f"version {record.version} was committed, and the lake's manifest ends with {run.version}"
        if record.identity and record.identity != inbox.identity(self.store):
            return "the store is not the one that the lake belongs to"
        if record.version == run.version and record.taken > len(self.taken_files()):
            return "the manifest lacks files that imports have taken"
        return None

    def _affected_days(self) -> str:
        """Return a clause about the days of the events that a lost lake has or had, by its record or its files."""
        record = self.record
        days = dict(record.days) if record else {}
        if not days:
            for path, range_ in event_ranges(self.root, "day").items():
                if range_ is not None:
                    first, last = map(str, range_)
                    name = unquote(path.parent.name.removeprefix("org-"))
                    known = days.get(name, (first, last))
                    days[name] = min(first, known[0]), max(last, known[1])
        spans = ", ".join(f"{name} from {first} to {last}" for name, (first, last) in sorted(days.items()))
        return f"queries cannot be answered for: {spans or 'any day, since the days are not known'}"

    def damage(self) -> list[str]:
        """Return sentences about the manifest, and about files that it does not list."""
        if self.lost_because:
            return [self.lost_because]
        damaged = [table for table in MANIFEST_TABLES if table.exists(self.store) and table.damaged_rows(self.store)]
        found = [f"rows of the table {table.name} are damaged" for table in damaged]
        if unexplained := self._unexplained():
            names = ", ".join(str(path.relative_to(self.root)) for path in unexplained[:3])
            found.append(f"{len(unexplained)} files belong to no version: {names}")
        return found

    # The organisations.

    def statuses(self) -> dict[str, OrganisationStatus]:
        """Return how far the lake is for each organisation that has a row, by name; for none if the lake is lost."""
        return {} if self.lost_because else self._statuses()

    def _statuses(self) -> dict[str, OrganisationStatus]:
        if not has_table(self.store, BEHIND):
            return {status.name: status for status in ORGANISATIONS.read(self.store)}
        listed = "SELECT organisation, last_batch, processed_ms, failures, reason, retry_s FROM behind"
        names = OrganisationStatus.__struct_fields__[1:]
        return {row[0]: OrganisationStatus(**dict(zip(names, row, strict=False))) for row in self.store.execute(listed)}

    def status(self, organisation: str) -> OrganisationStatus:
        """Return how far the lake is for *organisation*.

        Without a row it has no batch that waits: the newest version has everything of it.
        """
        return self.statuses().get(organisation) or self._up_to_date(organisation, self.last_run())

    def _up_to_date(self, organisation: str, run: ProcessingRun) -> OrganisationStatus:
        """Return the status of an organisation whose events are all in *run*."""
        # In 0.1 a bulk load was a run whose last batch is -1, until the first batch was processed.
        is_written = run.last_batch < 0 or (run.is_written and not self.taken_files(newest=1))
        return OrganisationStatus(
            name=organisation, last_batch=max(run.last_batch, 0), processed_ms=run.processed_ms, is_written=is_written
        )

    def waiting_events(self, *, up_to: int) -> dict[tuple[str, str], int]:
        """Return the number of events that wait for a run in batches up to *up_to*, by organisation and game."""
        statuses, last = self.statuses(), self.last_run().last_batch
        reached = {name: status.last_batch for name, status in statuses.items()}
        bounds = {"first": min([last, *reached.values()]), "last": last, "up_to": up_to}
        rows = self.store.execute(
            "SELECT organisation, game_id, sum(events) FROM batches "
            "LEFT JOIN (SELECT key AS organisation, value AS reached FROM json_each(:reached)) USING (organisation) "
            "WHERE id > :first AND id <= :up_to AND id > coalesce(reached, :last) GROUP BY organisation, game_id",
            bounds | {"reached": msgspec.json.encode(reached).decode()},
        )
        return {(organisation, game_id): events for organisation, game_id, events in rows}

    def begin_runs(self, waiting: Collection[str], *, last_batch: int, processed_ms: int) -> None:
        """Note that the lake has all batches up to *last_batch*, except for the organisations *waiting*.

        The others have nothing to be processed, and are complete as of *processed_ms*.
        """
        with self._transaction():
            last, _, statuses = self._read_intact()
            statuses = {name: self._up_to_date(name, last) for name in waiting} | statuses
            for name in statuses.keys() - set(waiting):
                statuses[name] = statuses[name].completed(last_batch, processed_ms)
            self._write_statuses(statuses)

    def note_failure(self, organisation: str, reason: str) -> OrganisationStatus:
        """Record a failed run of *organisation* and the time of the next attempt."""
        with self._transaction():
            last, _, statuses = self._read_intact()
            before = statuses.get(organisation) or self._up_to_date(organisation, last)
            pause_s = min(FIRST_PAUSE_S * 2 ** min(before.failures, 30), LONGEST_PAUSE_S)
            failure = {"failures": before.failures + 1, "reason": reason, "retry_s": real_time.time() + pause_s}
            statuses[organisation] = msgspec.structs.replace(before, **failure)
            self._write_statuses(statuses)
        return statuses[organisation]

    def _write_statuses(self, statuses: Mapping[str, OrganisationStatus]) -> None:
        """Make *statuses* the rows of all organisations, inside the caller's transaction."""
        if has_table(self.store, BEHIND):
            self.store.execute(f"DROP TABLE {BEHIND}")
            ORGANISATIONS.create(self.store)
        self.store.execute(f"DELETE FROM {ORGANISATIONS.name}")  # noqa: S608
        rows = enumerate(statuses.values(), 1)
        ORGANISATIONS.write(self.store, (msgspec.structs.replace(status, number=number) for number, status in rows))

    def available(self, organisation: str, *, now: datetime) -> Interval:
        """Return the available interval: first day of an event to hour of the organisation's last complete run.

        Before the first run it ends at the hour of *now* (Wire 2.4, Available interval). If the clock was ahead at the
        run, it ends at *now*, or at the arrival of the first event that the run did not take in.
        """
        status = self.status(organisation)
        end = now
        if status.processed_ms is not None:
            arrived_ms = inbox.first_arrival_ms(self.store, after=status.last_batch, organisation=organisation)
            known_ms = status.processed_ms if arrived_ms is None else min(status.processed_ms, arrived_ms)
            end = min(now, datetime.fromtimestamp(known_ms / 1000, UTC))
        end = end.replace(minute=0, second=0, microsecond=0)
        days = [part.first_day for part in self.snapshot(organisation).parts("events")]
        first = min((start_of_day(day) for day in days if day), default=end)
        return Interval(min(first, end), end)

    def taken_files(self, *, newest: int | None = None) -> list[TakenFile]:
        """Return the files of raw events that imports have taken, in the order taken, or only so many of the newest."""
        return TAKEN.read(self.store, newest=newest) if TAKEN.exists(self.store) else []

    def file_marks(self, organisation: str) -> list[FileMark]:
        """Return the files that an import for *organisation* need not open."""
        marks = MARKS.read(self.store) if MARKS.exists(self.store) else []
        return [file for file in marks if file.organisation == organisation]

    def add_file_marks(self, files: Iterable[FileMark]) -> None:
        """Note that *files* need not be opened again: the lake has their contents."""
        files = list(files)
        if not files:
            return
        with contextlib.nullcontext() if self.store.in_transaction else self._transaction():
            if not MARKS.exists(self.store):
                MARKS.create(self.store)
            ((newest,),) = self.store.execute("SELECT coalesce(max(number), 0) FROM file_marks")
            rows = enumerate(files, newest + 1)
            MARKS.write(self.store, (msgspec.structs.replace(file, number=number) for number, file in rows))

    def dated_by_arrival(self) -> dict[str, dict[str, int]]:
        """Return the number of events that are dated by their arrival, by reason, for each organisation that has some.

        Wire 4.1, Event time.
        """
        dated: dict[str, dict[str, int]] = {}
        for row in DATED.read(self.store) if DATED.exists(self.store) else ():
            dated.setdefault(row.organisation, {})[row.reason] = row.events
        return dated

    def _write_dated(self, dated: Mapping[str, Mapping[str, int]]) -> None:
        """Make *dated* the numbers of `dated_by_arrival` for its organisations, inside the caller's transaction."""
        before = self.dated_by_arrival()
        counts = sorted(
            (name, reason, events)
            for name, of_name in {**before, **dated}.items()
            for reason, events in of_name.items()
        )
        if before or counts:
            DATED.create(self.store)
            DATED.write(
                self.store,
                (
                    DatedEvents(number=number, organisation=name, reason=reason, events=events)
                    for number, (name, reason, events) in enumerate(counts, 1)
                ),
            )

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

    # New versions.

    def commit(
        self,
        *,
        processed_ms: int,
        last_batch: int | None = None,
        duplicates: int = 0,
        dated: Mapping[str, Mapping[str, int]] = {},
        files: Iterable[LakePart] = (),
        retired: Iterable[Path] = (),
        reached: tuple[str, int] | None = None,
        taken: Sequence[TakenFile] = (),
        marks: Iterable[FileMark] = (),
        is_written: bool = False,
    ) -> int:
        """Add a version in one transaction and return its number.

        Args:
            processed_ms: time of the run, epoch milliseconds on the sandbox's clock.
            last_batch: id of the last batch that the run takes in, None where it takes in files instead.
            duplicates: repeated events that the run left out.
            dated: numbers of new events that are dated by their arrival, by organisation and reason.
            files: the new parts.
            retired: paths of parts that *files* replace.
            reached: the organisation of the batches, and the id of its last one that is now in the lake.
            taken: files of raw events that are in the lake with this version.
            marks: the marks of the same files, by which an import knows them without opening them.
            is_written: whether the events were written as files and have no raw events (`BulkLoad`).
        """
        files = list(files)
        with self._transaction():
            last, known, statuses = self._read_intact()
            last_batch = max(last.last_batch, 0) if last_batch is None else last_batch
            for name in {file.organisation for file in files} - statuses.keys():
                statuses[name] = self._up_to_date(name, last)
            if reached is not None:
                name, up_to = reached
                before = statuses.get(name) or self._up_to_date(name, last)
                statuses[name] = msgspec.structs.replace(before, last_batch=up_to)
                if up_to == last_batch:
                    statuses[name] = before.completed(up_to, processed_ms)
            elif last_batch <= last.last_batch:  # an import or a bulk load: who has every batch still has
                for name, status in statuses.items():
                    if status.last_batch >= last_batch:
                        statuses[name] = msgspec.structs.replace(status, processed_ms=processed_ms)
            if is_written:
                for name in {file.organisation for file in files}:
                    statuses[name] = msgspec.structs.replace(statuses[name], is_written=True)
            run = msgspec.structs.replace(
                last,
                processed_ms=processed_ms,
                last_batch=last_batch,
                duplicates=last.duplicates + duplicates,
                is_written=last.is_written or is_written or bool(taken),
            )
            version = self._add_version(run, known, files, set(retired))
            self._write_statuses(statuses)
            dated_before = self.dated_by_arrival()
            self._write_dated({name: Counter(dated_before.get(name, {})) + Counter(new) for name, new in dated.items()})
            if taken:
                if not TAKEN.exists(self.store):
                    TAKEN.create(self.store)
                first = max((file.number for file in self.taken_files()), default=0) + 1
                rows = enumerate(taken, first)
                TAKEN.write(self.store, (msgspec.structs.replace(file, number=n, version=version) for n, file in rows))
            self.add_file_marks(marks)
        self._note_committed()
        return version

    def compact(
        self, files: Iterable[LakePart], retired: Iterable[Path], *, dated: Mapping[str, Mapping[str, int]] = {}
    ) -> None:
        """Replace parts by others with the same rows or sums.

        This is one more version, made in one transaction. *dated* has the numbers of events that are dated by their
        arrival where they are counted anew, by organisation and reason.
        """
        with self._transaction():
            last, known, statuses = self._read_intact()
            self._add_version(last, known, list(files), set(retired))
            self._write_statuses(statuses)
            self._write_dated(dated)
        self._note_committed()

    def _read_intact(self) -> tuple[ProcessingRun, list[LakePart], dict[str, OrganisationStatus]]:
        """Return run, files and statuses inside a transaction that will write, a status for each that has files.

        Raises:
            LakeUnavailable: the manifest is damaged.
        """
        run, files, statuses = self._last_run(), self._files(), self._statuses()
        if loss := self._find_loss(run, files, statuses):
            raise LakeUnavailable(loss)
        with_files = {file.organisation for file in files if file.removed is None}
        return run, files, {name: self._up_to_date(name, run) for name in with_files} | statuses

    def _add_version(
        self, run: ProcessingRun, known: Sequence[LakePart], added: Sequence[LakePart], retired: Collection[Path]
    ) -> int:
        """Write the next version inside the caller's transaction, and return its number.

        It has the facts of *run*, but for its number and its number of files. Of the files *known* to the manifest
        those *added* replace those *retired*.

        Raises:
            LakeUnavailable: one of the *retired* is not in the newest version.
        """
        newest = [file for file in known if file.removed is None]
        gone = [file for file in newest if file.path in retired]
        if len(gone) != len(retired):
            raise LakeUnavailable("files that are to be replaced are not in the manifest: start the sandbox again")
        version, now_ms = _newest_version(run, known) + 1, round(real_time.time() * 1000)
        first = max((file.number for file in known), default=0) + 1
        self._write_files(
            [
                *(msgspec.structs.replace(file, removed=version, removed_ms=now_ms) for file in gone),
                *(msgspec.structs.replace(file, number=n, added=version) for n, file in enumerate(added, first)),
            ]
        )
        self._write_run(msgspec.structs.replace(run, version=version, files=len(newest) - len(gone) + len(added)))
        return version

    def _write_files(self, files: Iterable[LakePart]) -> None:
        rows = (msgspec.structs.replace(file, path=file.path.relative_to(self.root)) for file in files)
        FILES.write(self.store, rows)

    def _write_run(self, run: ProcessingRun) -> None:
        RUNS.write(self.store, [run])
        old = (old_run.version for old_run in RUNS.read(self.store) if old_run.version <= run.version - _MOST_RUNS)
        RUNS.delete(self.store, list(old))

    @contextlib.contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Run a block in a transaction, or in the transaction of the caller."""
        if self.store.in_transaction:
            yield
            return
        with self.store:
            self.store.execute(f"BEGIN {kind}")
            yield

    # A lake that begins, or begins again.

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
        is_absent = not any(table.exists(self.store) for table in (RUNS, FILES, TAKEN))
        is_new = is_absent and not any(path.is_file() for path in self.root.rglob("*"))
        if is_new and not (self.record and self.record.version):
            with self._transaction():
                self._create()
            self._note_committed()

    def _create(self) -> None:
        self.store.execute(f"DROP TABLE IF EXISTS {BEHIND}")
        for table in (RUNS, FILES, ORGANISATIONS):
            table.create(self.store)
        self.store.execute(f"PRAGMA user_version = {FORMAT}")

    def restore(
        self,
        run: ProcessingRun,
        files: Sequence[LakePart],
        *,
        version: int,
        dated: Mapping[str, Mapping[str, int]] = {},
    ) -> None:
        """Make *files* the whole lake in place of one that is lost, as *version*. All other files go to quarantine.

        *dated* has the numbers of events that are dated by their arrival, by organisation and reason.
        """
        with self._transaction():
            self._replace(run, files, version=version)
            self._write_dated(dated)
        self._note_committed()
        self._quarantine_unexplained()

    def forget(self) -> None:
        """Delete every version from the manifest, inside the caller's transaction: a person asked for it."""
        self._replace(ProcessingRun(), [], version=self.unused_version())

    def _replace(self, run: ProcessingRun, files: Sequence[LakePart], *, version: int) -> None:
        """Make *run* with *files* the only version, in place of all others and of a manifest that is damaged.

        Numbers of versions go on, so that no path and no snapshot is taken for an older one.
        """
        with self._transaction():
            TAKEN.drop(self.store)
            MARKS.drop(self.store)
            DATED.drop(self.store)
            self._create()
            self._write_files(msgspec.structs.replace(file, number=n, added=version) for n, file in enumerate(files, 1))
            self._write_run(msgspec.structs.replace(run, version=version, files=len(files), format=FORMAT))
            self._write_statuses({name: self._up_to_date(name, run) for name in {file.organisation for file in files}})
        self._newest = None

    def delete_files(self) -> None:
        """Delete every file of a lake that was forgotten, and the quarantine."""
        self._note_committed()
        for folder in (*self.root.iterdir(), self.root.parent / "quarantine"):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def record(self) -> LakeRecord | None:
        """What was committed last, by the file beside the store."""
        return read_record(self.root.parent / "gamelens.db")

    def _note_committed(self) -> None:
        """Write the newest version to the record, unless it is there."""
        if self.store.in_transaction:
            return
        before = self.record
        with self._transaction("DEFERRED"):
            run, files, taken = self._last_run(), self._files(), len(self.taken_files())
        days: dict[str, tuple[str, str]] = {}
        for file in files:
            if file.kind == "events" and file.removed is None and file.first_day and file.last_day:
                span = file.first_day.isoformat(), file.last_day.isoformat()
                first, last = days.get(file.organisation, span)
                days[file.organisation] = min(first, span[0]), max(last, span[1])
        identity = inbox.give_identity(self.store, (before.identity if before else "") or secrets.token_hex(16))
        now = LakeRecord(identity=identity, version=run.version, is_written=run.is_written, taken=taken, days=days)
        if now != before:
            write_record(self.root.parent / "gamelens.db", now)

    # Files on the disk.

    def cannot_be_written(self) -> str | None:
        """Return why no file can be added, None if one can: a file without a name is made and gone again."""
        try:
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            reason = f"{self.root} cannot be written: {error.strerror}. Nothing can be processed"
            return f"{reason}: check its disk and its permissions"
        return None

    def sweep(self, *, grace_s: float = GRACE_S) -> None:
        """Delete the files that were replaced more than *grace_s* seconds ago, unless the lake is lost."""
        if self.lost_because:
            return
        before_ms = round((real_time.time() - grace_s) * 1000)
        for file in self._files():
            if file.removed_ms is None or file.removed_ms > before_ms:
                continue
            file.path.unlink(missing_ok=True)
            with self._transaction():
                FILES.delete(self.store, [file.number])
            _remove_empty(file.path.parents[:2])

    def _unexplained(self) -> list[Path]:
        """Return the files below the root that no row of the manifest names."""
        named = {file.path for file in self._files()}
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
            _log.warning("files of the lake that belong to no version could not be moved: %s", error)
            return
        _log.warning("%d files of the lake that belong to no version were moved to %s", len(unexplained), folder)


def _newest_version(run: ProcessingRun, files: Iterable[LakePart]) -> int:
    """Return the highest number of a version that *run* or a row of *files* names."""
    return max([run.version, *(max(file.added, file.removed or 0) for file in files)])


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
