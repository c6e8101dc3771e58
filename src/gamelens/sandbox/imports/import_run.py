"""Import of the service's exports of raw events into the lake.

Files are decoded in groups, and each group is one version of the lake, made by the pipeline of received events. The
files that a version takes are written in its own transaction (`TakenFile`), so an import that is killed has taken a
group as a whole or not at all, and the next one goes on with the rest. A file is recognised by its size and SHA-256:
under another name it is still the same file. One whose address, size and mark (its ETag, its checksum, or the time of
its last change) are as an import found them is not even opened (`FileMark`).
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelens._files import disk_trouble
from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.spark_engine import SparkWriter
from gamelens.sandbox.imports.cluster_import import take_on_cluster
from gamelens.sandbox.imports.event_data import (
    check_readable,
    missing_columns,
    table_columns,
    table_rows_sql,
    unknown_columns,
)
from gamelens.sandbox.imports.import_counts import (
    STAGED_COLUMNS,
    STATED_SQL,
    EventCounts,
    GameIds,
    ImportCounts,
    ReadFile,
    ReportImport,
    file_content,
    file_marks_of,
)
from gamelens.sandbox.imports.json_lines import LINES_SCHEMA, JsonLinesFile, line_rows_sql
from gamelens.sandbox.imports.source_files import (
    DamagedFileError,
    SourceFile,
    list_files,
    local_path,
    recognise_files,
)
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.server import Sandbox, available_intervals
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.storage.dating import dated_folder
from gamelens.sandbox.storage.lake_health import EVERY_ORGANISATION
from gamelens.sandbox.storage.lake_schema import COLUMNS

FIRST_SEQ: Final = -(1 << 61)
"""Number of the first event of all imports, before those that are received."""
GROUP_EVENTS: Final = 16_000_000
"""Events after which a group is committed.

Large groups cost less, and more is done again after a crash.
"""

CHUNK_ROWS: Final = 1 << 19
"""Lines that are decoded at once, and those after them up to the end of a file."""
_MOST_PLACES: Final = 20
_ROW_GROUP: Final = 122_880


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        organisation: name of the organisation that has the events.
        files: number of files taken.
        taken_before: number of files that an import had taken already.
        damaged: reasons of the files that were not taken, by name.
        events: number of events in the files taken.
        repeated: number of those that the lake had already, by their `event_uuid`.
        refused: number of rows that are not events, by reason.
        refused_at: where the first of them are.
        tables: number of the files taken that are Event Data, which does not know everything (Wire 5.7, Event Data).
        undisclosed: impressions without a network, because the service had no permission to show it.
        dated_by_arrival: number of the events that have no usable time of their device, by reason (Wire 4.1, Event
            time).
        unusable_installs: number of the events whose stated install is not used, by reason.
        valued_by_service: number of the purchases whose `amount_usd` counts, by their currency, which has no rate here.
        remarks: number of the events that are unlikely, and taken, by what is unlikely about them.
        unknown: fields that are not documented and were not read, with the number of files that have them.
        missing: documented fields that files lack, with the number of these files.
        available: available interval of the organisation.
    """

    organisation: str
    files: int
    taken_before: int
    damaged: dict[str, str]
    events: int
    repeated: int
    refused: dict[str, int]
    refused_at: list[str]
    tables: int
    undisclosed: int
    dated_by_arrival: dict[str, int]
    unusable_installs: dict[str, int]
    valued_by_service: dict[str, int]
    remarks: dict[str, int]
    unknown: dict[str, int]
    missing: dict[str, int]
    available: str
    seconds: float


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an import.

    Attributes:
        organisation: name of the organisation that gets the events, None for the first.
        games: ids of games in the lake, by their ids in the export; the same where not named.
        config: configuration file of a new state directory.
        engine: what makes the tables: `duckdb`, `spark`, or the address of a Spark master.
        lake_url: folder in which the cluster finds the lake's files, None for its path here.
        group_events: events after which a version is committed. On a cluster all files are one version.
        chunk_rows: lines that are decoded at once, and those after them up to the end of a file.
        verify: whether files are read that an import had taken, and whose place, size and mark are as they were.
    """

    organisation: str | None = None
    games: Mapping[str, str] = {}
    config: Path | None = None
    engine: str = "duckdb"
    lake_url: str | None = None
    group_events: int = GROUP_EVENTS
    chunk_rows: int = CHUNK_ROWS
    verify: bool = False


def import_raw_events(
    state: Path,
    sources: Sequence[str],
    options: ImportOptions = ImportOptions(),  # noqa: B008
    *,
    report: ReportImport | None = None,
    clock: Clock | None = None,
) -> ImportResult:
    """Take the files of *sources* (`list_files`) into the lake of *state*, but for those that it has.

    No sandbox runs on *state*; a new one gets its games from the options.

    Raises:
        Refused: a source cannot be read, or another process has locked *state*. What was committed before stays, and
            the next import goes on after it.
        BadQuery: there is no such organisation.
    """
    listed = list_files(sources)
    sandbox = Sandbox(SandboxOptions(state=state, config=options.config), clock=clock)
    scratch = state / "scratch"
    try:
        known = {organisation.name: organisation for organisation in sandbox.tenants.organisations}
        name = next(iter(known)) if options.organisation is None else options.organisation
        if name not in known:
            raise BadQuery("--organisation", name, "is not in the sandbox", known, name=name)
        asyncio.run(sandbox.runs.check())  # an import builds on the tables and keyed runs of earlier ones
        reasons = sandbox.cannot_answer()
        if reason := reasons.get(EVERY_ORGANISATION) or reasons.get(name):
            raise Refused(f"nothing was imported: {reason}")
        if sandbox.lake.store.execute("SELECT count(*) FROM batches").fetchone() != (0,):
            asyncio.run(sandbox.process())
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        lake, taken = sandbox.lake, sandbox.lake.taken_files()
        marks = set() if options.verify else {file.key for file in lake.file_marks(name)}
        to_open = [file for file in listed if not file.mark or file.key not in marks]
        files = recognise_files(to_open)
        counts = ImportCounts(
            files,
            (entry for entry in taken if entry.organisation == name),
            report,
            unopened=len(listed) - len(to_open),
        )
        games = GameIds([game.id for game in known[name].games], options.games)
        first_seq = max((entry.first_seq + entry.rows for entry in taken), default=FIRST_SEQ)
        duplicates = lake.last_run().duplicates
        for file in files:
            if file.kind is None:
                counts.note_damaged(file, DamagedFileError(file.reason))
        if options.engine == "duckdb":
            _take(sandbox, name, games, options, counts, files, first_seq=first_seq)
            compact(state)
        else:
            location = LakeLocation(lake.root, options.lake_url)
            with contextlib.closing(SparkWriter(location, master=options.engine)) as engine:
                processed_ms = round(sandbox.clock.now_s() * 1000)
                take_on_cluster(
                    files,
                    lake,
                    name,
                    games,
                    engine,
                    counts,
                    first_seq=first_seq,
                    processed_ms=processed_ms,
                    oldest_days=sandbox.tenants.rules.oldest_days,
                )
        lake.add_file_marks(counts.new_marks(name))
        sandbox.health.note_written()
        refused: Counter[str] = Counter()
        places = []
        for entry in counts.committed:
            refused += entry.refused
            places += [f"{entry.file.name}, {entry.places(reason)}: {reason}" for reason in entry.refused]
        return ImportResult(
            organisation=name,
            files=len(counts.committed),
            taken_before=counts.taken_before,
            damaged=counts.damaged,
            events=counts.taken.events,
            repeated=lake.last_run().duplicates - duplicates,
            refused=dict(sorted(refused.items())),
            refused_at=places[:_MOST_PLACES],
            tables=sum(entry.file.kind == "event-parquet" for entry in counts.committed),
            undisclosed=counts.taken.undisclosed,
            dated_by_arrival=dict(sorted(counts.taken.dated_by_arrival.items())),
            unusable_installs=dict(sorted(counts.taken.unusable_installs.items())),
            valued_by_service=dict(sorted(counts.taken.valued_by_service.items())),
            remarks=dict(sorted(counts.taken.remarks.items())),
            unknown=dict(sorted(counts.unknown.items())),
            missing=dict(sorted(counts.missing.items())),
            available=available_intervals(sandbox.tenants, lake, sandbox.clock)[name],
            seconds=counts.seconds,
        )
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"the import stopped; what it had committed is kept: {disk_trouble(error, state)}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        sandbox.close()


def _take(
    sandbox: Sandbox,
    organisation: str,
    games: GameIds,
    options: ImportOptions,
    counts: ImportCounts,
    files: Sequence[SourceFile],
    *,
    first_seq: int,
) -> None:
    """Take *files* on this machine: JSON lines first, in groups that are one version each."""
    seq = first_seq
    lines = deque(file for file in files if file.kind == "raw-json")
    tables = deque(file for file in files if file.kind == "event-parquet")
    while lines or tables:
        folder = sandbox.options.state / "scratch" / str(seq)
        with contextlib.closing(
            DecodedGroup(folder, games, counts, oldest_days=sandbox.tenants.rules.oldest_days)
        ) as group:
            while (lines or tables) and group.counts.events < options.group_events:
                if lines:
                    most = min(options.chunk_rows, options.group_events - group.counts.events)
                    seq += group.add_lines(lines, first_seq=seq, most=most)
                else:
                    seq += group.add_table(tables.popleft(), first_seq=seq)
            stated = group.stated()
        if group.files:
            commit_staged(
                {organisation: group.staged},
                sandbox.lake,
                folder,
                processed_ms=round(sandbox.clock.now_s() * 1000),
                stated={organisation: stated},
                taken=[entry.as_taken(organisation) for entry in group.files],
                marks=file_marks_of([entry.file for entry in group.files], organisation),
            )
            counts.note_committed(group.files, group.counts)
        shutil.rmtree(folder)
    counts.report()


class DecodedGroup:
    """Events of the source files that one version of the lake takes, *staged* in Parquet files below *folder*.

    Whole files are decoded into a table of the engine, which spills to the disk, and only then their rows are written.
    So a file that proves damaged at its end has left nothing.
    """

    def __init__(self, folder: Path, games: GameIds, counts: ImportCounts, *, oldest_days: int) -> None:
        folder.mkdir(parents=True)
        self.files: list[ReadFile] = []
        self.counts = EventCounts()
        self.staged: list[Path] = []
        self._folder, self._games, self._counts, self._oldest_days = folder, games, counts, oldest_days
        self._sql = DuckDBWriter(folder)
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS["stated_installs"].items())
        self._sql.run(f"CREATE TEMP TABLE stated ({columns})")

    def add_lines(self, rest: deque[SourceFile], *, first_seq: int, most: int) -> int:
        """Take files of JSON lines from *rest* until they have *most* lines or more, and return the number of lines.

        Many files are decoded by one statement, because planning it takes as long as decoding thousands of lines.
        """
        read: list[ReadFile] = []
        batches = self._read_lines(rest, read, first_seq=first_seq, most=most)
        self._sql.view("lines", pa.RecordBatchReader.from_batches(LINES_SCHEMA, batches))
        self._sql.create("decoded", line_rows_sql("lines", self._games.sql, oldest_days=self._oldest_days))
        for entry in read:
            if entry.rows and not entry.is_taken:
                self._sql.run(f"DELETE FROM decoded WHERE {_rows_of(entry)}")  # noqa: S608
        self._take([entry for entry in read if entry.is_taken])
        return sum(entry.rows for entry in read)

    def _read_lines(
        self, rest: deque[SourceFile], read: list[ReadFile], *, first_seq: int, most: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the lines of whole files, numbered from *first_seq* on.

        The files go from *rest* to *read*, which lists each file that gave lines, also if it is not taken.
        """
        seq, counts = first_seq, self._counts
        while rest and seq - first_seq < most:
            entry = ReadFile(rest.popleft(), seq)
            try:
                with local_path(entry.file, self._folder) as path:
                    # A file that was taken under another name is only found when it is read.
                    content = file_content(path) if counts.has_name(entry.file) else ""
                    if counts.has_content(entry.file, content):
                        counts.note_taken_before(entry.file, content)
                        continue
                    read.append(entry)
                    reader = JsonLinesFile(path, first_seq=seq)
                    for batch in reader.batches():
                        entry.rows = reader.rows
                        counts.note_rows(len(batch), reader.take_read_bytes())
                        yield batch
                entry.content, entry.within_lines = reader.content, reader.within_lines
                entry.unknown, entry.missing = reader.fields.unknown, reader.fields.missing
                entry.is_taken = counts.note_taken(entry)
            except DamagedFileError as error:
                counts.note_damaged(entry.file, error)
            seq += entry.rows

    def add_table(self, file: SourceFile, *, first_seq: int) -> int:
        """Take a Parquet file, unless it is damaged or was taken, and return the number of its rows."""
        entry, counts = ReadFile(file, first_seq), self._counts
        try:
            with local_path(file, self._folder) as path:
                entry.content = file_content(path)
                if counts.has_content(file, entry.content):
                    counts.note_taken_before(file, entry.content)
                    return 0
                columns = table_columns(path)
                entry.rows = pq.read_metadata(path).num_rows
                rows = table_rows_sql(
                    str(path),
                    columns,
                    first_seq=first_seq,
                    game_sql=self._games.sql,
                    oldest_days=self._oldest_days,
                )
                try:
                    self._sql.create("decoded", rows)
                except Refused:
                    check_readable(path)
                    raise
        except DamagedFileError as error:
            counts.note_damaged(file, error)
            return 0
        arrived = self._sql.run("SELECT game_id, min(arrived), max(arrived) FROM decoded GROUP BY ALL")
        entry.arrived = {game: (first, last) for game, first, last in arrived if first}
        entry.unknown, entry.missing = unknown_columns(columns), missing_columns(columns)
        counts.note_taken(entry)
        self._take([entry])
        counts.note_rows(entry.rows, file.bytes)
        return entry.rows

    def stated(self) -> list[Path]:
        """Write the installs that the files state, if they do, and return the file."""
        path = self._folder / "stated.parquet"
        self._sql.run(f"COPY (FROM stated) TO {literal(str(path))} (FORMAT parquet)")
        return [path] if pq.read_metadata(path).num_rows else []

    def close(self) -> None:
        """Release the engine's memory."""
        self._sql.close()

    def _take(self, files: Sequence[ReadFile]) -> None:
        """Write the events of `decoded`, the rows of *files*, and count the rows that are not events.

        A file that has rows, and no event among them, is not taken, and neither is one with events of unknown games.
        Events that are dated by their arrival for one reason are a file of their own (`dating`).
        """
        files = self._without_unknown_games(files)
        for seq, fault in self._sql.run("SELECT seq, fault FROM decoded WHERE fault IS NOT NULL ORDER BY seq"):
            next(entry for entry in reversed(files) if entry.first_seq <= seq).refuse(seq, fault)
        without = [entry for entry in files if entry.refused and not self._has_events(entry)]
        for entry in without:
            self._counts.note_without_events(entry)
        for (reason,) in self._sql.run("SELECT DISTINCT dated_by FROM decoded WHERE fault IS NULL ORDER BY 1"):
            path = self._folder / dated_folder(reason) / f"events-{len(self.staged)}.parquet"
            path.parent.mkdir(exist_ok=True)
            options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {_ROW_GROUP}"
            is_dated = "IS NULL" if reason is None else f"= {literal(reason)}"
            rows = f"SELECT {STAGED_COLUMNS} FROM decoded WHERE fault IS NULL AND dated_by {is_dated}"  # noqa: S608
            self._sql.run(f"COPY ({rows}) TO {literal(str(path))} ({options})")
            self.staged.append(path)
        self._sql.run(f"INSERT INTO stated BY NAME {STATED_SQL}")
        self.counts.add(self._sql.run)
        self._sql.run("DROP TABLE decoded")
        self.files += [entry for entry in files if entry not in without]

    def _without_unknown_games(self, files: Sequence[ReadFile]) -> list[ReadFile]:
        """Return the *files* whose games are all known, and delete the rows of the others."""
        games = "SELECT DISTINCT game_id FROM decoded WHERE fault IS NULL"
        if not self._games.unknown(game for (game,) in self._sql.run(games)):
            return list(files)
        known = []
        for entry in files:
            if unknown := self._games.unknown(game for (game,) in self._sql.run(f"{games} AND {_rows_of(entry)}")):
                self._sql.run(f"DELETE FROM decoded WHERE {_rows_of(entry)}")  # noqa: S608
                self._counts.note_left_out(entry, self._games.how_to_map(unknown))
            else:
                known.append(entry)
        return known

    def _has_events(self, entry: ReadFile) -> bool:
        return bool(
            self._sql.run(f"SELECT seq FROM decoded WHERE fault IS NULL AND {_rows_of(entry)} LIMIT 1")  # noqa: S608
        )


def _rows_of(entry: ReadFile) -> str:
    """Return the SQL condition that a row of `decoded` is one of the file."""
    return f"seq BETWEEN {entry.first_seq} AND {entry.first_seq + entry.rows - 1}"
