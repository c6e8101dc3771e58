"""Import of the service's exports of raw events into the lake.

Files are decoded in groups, and each group is one version of the lake, made by the pipeline of received events. The
files that a version takes are written in its own transaction (`TakenFile`), so an import that is killed has taken a
group as a whole or not at all, and the next one goes on with the rest. A file is recognised by its size and SHA-256:
under another name it is still the same file.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.spark_engine import SparkWriter
from gamelens.sandbox.imports.cluster_import import ClusterImport
from gamelens.sandbox.imports.decoded_group import DecodedGroup, GameIds, table_columns
from gamelens.sandbox.imports.event_data import missing_columns, unknown_columns
from gamelens.sandbox.imports.import_counts import ImportCounts, ReadFile, Report, file_content
from gamelens.sandbox.imports.json_lines import JsonLinesFile
from gamelens.sandbox.imports.source_files import DamagedFileError, SourceFile, find_files, local_path
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.server import Sandbox, SandboxOptions, available_intervals
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.lake_health import EVERY_ORGANISATION

FIRST_SEQ: Final = -(1 << 61)
"""Number of the first event of all imports, before those that are received."""
GROUP_EVENTS: Final = 16_000_000
"""Events after which a group is committed.

Large groups cost less, and more is done again after a crash.
"""

CHUNK_ROWS: Final = 1 << 19
"""Lines that are decoded at once, and those after them up to the end of a file."""
_MOST_PLACES: Final = 20


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        organisation: name of the organisation that has the events.
        taken_before: number of files that an import had taken already.
        damaged: reasons of the files that were not taken, by name.
        events: number of events in the files taken.
        repeated: number of those that the lake had already, by their `event_uuid`.
        refused: number of rows that are not events, by reason.
        refused_at: where the first of them are.
        tables: number of the files taken that are Event Data, which does not know everything (Wire 5.7, Event Data).
        undisclosed: impressions without a network, because the service had no permission to show it.
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
    """

    organisation: str | None = None
    games: Mapping[str, str] = {}
    config: Path | None = None
    engine: str = "duckdb"
    lake_url: str | None = None
    group_events: int = GROUP_EVENTS
    chunk_rows: int = CHUNK_ROWS


def import_raw_events(
    state: Path,
    sources: Sequence[str],
    options: ImportOptions = ImportOptions(),  # noqa: B008
    *,
    report: Report | None = None,
    clock: Clock | None = None,
) -> ImportResult:
    """Take the files of *sources* (`find_files`) into the lake of *state*, but for those that it has.

    No sandbox runs on *state*; a new one gets its games from the options.

    Raises:
        Refused: a source cannot be read, a game is not known, or another process has locked *state*. What was
            committed before stays, and the next import goes on after it.
        BadQuery: there is no such organisation.
    """
    files = find_files(sources)
    sandbox = Sandbox(SandboxOptions(state=state, config=options.config), clock=clock)
    scratch = state / "scratch"
    try:
        organisation = _find_organisation(sandbox, options.organisation)
        asyncio.run(sandbox.runs.check())  # an import builds on the tables and keyed runs of earlier ones
        reasons = sandbox.cannot_answer()
        if reason := reasons.get(EVERY_ORGANISATION) or reasons.get(organisation.name):
            raise Refused(f"nothing was imported: {reason}")
        if sandbox.lake.store.execute("SELECT count(*) FROM batches").fetchone() != (0,):
            asyncio.run(sandbox.process())
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        lake, taken = sandbox.lake, sandbox.lake.taken_files()
        counts = ImportCounts(files, (each for each in taken if each.organisation == organisation.name), report)
        games = GameIds([game.id for game in organisation.games], options.games)
        first_seq = max((each.first_seq + each.rows for each in taken), default=FIRST_SEQ)
        duplicates = lake.last_run().duplicates
        for file in files:
            if file.kind is None:
                counts.note_damaged(file, DamagedFileError("it is neither JSON lines nor Parquet"))
        if options.engine == "duckdb":
            _take(sandbox, organisation.name, games, options, counts, files, first_seq=first_seq)
            compact(state)
        else:
            location = LakeLocation(lake.root, options.lake_url)
            with contextlib.closing(SparkWriter(location, master=options.engine)) as engine:
                cluster = ClusterImport(lake, organisation.name, games, engine, counts)
                cluster.take(files, first_seq=first_seq, processed_ms=round(sandbox.clock.now_s() * 1000))
        sandbox.health.note_written()
        repeated = lake.last_run().duplicates - duplicates
        available = available_intervals(sandbox.tenants, lake, sandbox.clock)[organisation.name]
        return _result(organisation.name, counts, repeated=repeated, available=available)
    except OSError as error:
        raise Refused(f"the import stopped, what was committed before stays: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        sandbox.close()


def _find_organisation(sandbox: Sandbox, name: str | None) -> Organisation:
    known = {each.name: each for each in sandbox.tenants.organisations}
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise BadQuery("--organisation", name, "is not in the sandbox", known, name=name)
    return known[name]


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
    """Take *files* on this machine: JSON lines first, in groups that are a version each."""
    scratch, seq = sandbox.options.state / "scratch", first_seq
    lines = deque(file for file in files if file.kind == "raw-json")
    tables = deque(file for file in files if file.kind == "event-parquet")
    while lines or tables:
        folder = scratch / str(seq)
        with contextlib.closing(DecodedGroup(folder, games)) as group:
            while (lines or tables) and group.events < options.group_events:
                if lines:
                    read = list[ReadFile]()
                    most = min(options.chunk_rows, options.group_events - group.events)
                    group.add_lines(read_lines(lines, read, counts, first_seq=seq, most=most, scratch=scratch), read)
                    seq += sum(each.rows for each in read)
                else:
                    seq += _take_table(tables.popleft(), group, counts, first_seq=seq, scratch=scratch)
            stated = group.stated()
        if group.files:
            commit_staged(
                {organisation: group.staged},
                sandbox.lake,
                folder,
                processed_ms=round(sandbox.clock.now_s() * 1000),
                stated={organisation: stated},
                taken=[each.as_taken(organisation) for each in group.files],
            )
            counts.note_committed(group.files, events=group.events, undisclosed=group.undisclosed)
        shutil.rmtree(folder)
    counts.report()


def _take_table(file: SourceFile, group: DecodedGroup, counts: ImportCounts, *, first_seq: int, scratch: Path) -> int:
    """Add a file of Parquet to *group*, and return the number of its rows."""
    try:
        with local_path(file, scratch) as path:
            each = ReadFile(file, first_seq, content=file_content(path))
            if counts.has_content(each):
                counts.note_taken_before(file)
                return 0
            columns = table_columns(path)
            group.add_table(each, path, columns)
    except DamagedFileError as error:
        counts.note_damaged(file, error)
        return 0
    counts.note_taken(each, unknown=unknown_columns(columns), missing=missing_columns(columns))
    counts.note_rows(each.rows, file.bytes)
    return each.rows


def read_lines(
    rest: deque[SourceFile],
    read: list[ReadFile],
    counts: ImportCounts,
    *,
    first_seq: int,
    most: int,
    scratch: Path,
) -> Iterator[pa.RecordBatch]:
    """Yield the lines of whole files, numbered from *first_seq* on, until there are *most* or more.

    The files go from *rest* to *read*, which lists those of which lines were yielded, also if they are not taken.
    """
    seq = first_seq
    while rest and seq - first_seq < most:
        each = ReadFile(rest.popleft(), seq)
        try:
            with local_path(each.file, scratch) as path:
                if counts.is_taken(each.file, path):
                    counts.note_taken_before(each.file)
                    continue
                read.append(each)
                reader = JsonLinesFile(path, first_seq=seq)
                for batch in reader.batches():
                    each.rows = reader.rows
                    counts.note_rows(len(batch), reader.take_read_bytes())
                    yield batch
            each.content, fields = reader.content, reader.fields
            each.is_taken = counts.note_taken(each, unknown=fields.unknown, missing=fields.missing)
        except DamagedFileError as error:
            counts.note_damaged(each.file, error)
        seq += each.rows


def _result(organisation: str, counts: ImportCounts, *, repeated: int, available: str) -> ImportResult:
    refused: Counter[str] = Counter()
    places = []
    for each in counts.committed:
        refused += each.refused
        for reason, rows in each.examples.items():
            more = ", ..." if each.refused[reason] > len(rows) else ""
            places.append(f"{each.file.name}, row {', '.join(map(str, rows))}{more}: {reason}")
    return ImportResult(
        organisation=organisation,
        files=len(counts.committed),
        taken_before=counts.taken_before,
        damaged=counts.damaged,
        events=counts.events,
        repeated=repeated,
        refused=dict(sorted(refused.items())),
        refused_at=places[:_MOST_PLACES],
        tables=sum(each.file.kind == "event-parquet" for each in counts.committed),
        undisclosed=counts.undisclosed,
        unknown=dict(sorted(counts.unknown.items())),
        missing=dict(sorted(counts.missing.items())),
        available=available,
        seconds=counts.seconds,
    )
