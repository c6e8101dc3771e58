"""Import on a cluster: each file is a task, and all files are one version of the lake.

Files are read twice: first for their checksums and numbers of rows, by which each row gets the number that it has in an
import on one machine, then to decode them, with the statements of that import. A day of events is so written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.sandbox.building.batch_builder import join_parts
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.engines.spark_engine import SparkWriter
from gamelens.sandbox.imports.event_data import (
    check_readable,
    missing_columns,
    table_columns,
    table_rows_sql,
    unknown_columns,
)
from gamelens.sandbox.imports.import_counts import (
    EXAMPLES,
    STAGED_COLUMNS,
    STATED_SQL,
    EventCounts,
    GameIds,
    ImportCounts,
    ReadFile,
    file_content,
    file_marks_of,
)
from gamelens.sandbox.imports.json_lines import LINES_SCHEMA, JsonLinesFile, line_rows_sql
from gamelens.sandbox.imports.source_files import DamagedFileError, SourceFile, local_path
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS

_ROWS_AT_ONCE: Final = 100_000
_DECODED: Final = {
    **EVENT_COLUMNS,
    **{"installed": "BIGINT", "first_build": "VARCHAR", "arrived": "DATE", "dated_by": "VARCHAR"},
    **{"install_fault": "VARCHAR", "valued_in": "VARCHAR", "remark": "VARCHAR", "fault": "VARCHAR", "file": "BIGINT"},
}


class ExaminedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of a task that has read a file: its rows before any damage, its SHA-256, the damage, its fields.

    `JsonLinesFile` describes *within_lines*.
    """

    rows: int = 0
    content: str = ""
    damage: str | None = None
    unknown: list[str] = []
    missing: list[str] = []
    within_lines: list[int] = []


def examine(file: SourceFile) -> ExaminedFile:
    """Read *file* to its end."""
    lines = damage = None
    with TemporaryDirectory() as scratch:
        try:
            with local_path(file, Path(scratch)) as path:
                if file.kind == "event-parquet":
                    columns = table_columns(path)
                    # Other tables are refused when their statement is made.
                    table_rows_sql(str(path), columns, first_seq=0, game_sql="NULL", oldest_days=0)
                    check_readable(path)
                    return ExaminedFile(
                        rows=pq.read_metadata(path).num_rows,
                        content=file_content(path),
                        unknown=unknown_columns(columns),
                        missing=missing_columns(columns),
                    )
                lines = JsonLinesFile(path, first_seq=0)
                for _ in lines.batches():
                    pass
        except DamagedFileError as error:
            damage = str(error)
    if lines is None:
        return ExaminedFile(damage=damage)
    return ExaminedFile(
        rows=lines.rows,
        content=lines.content,
        damage=damage,
        unknown=lines.fields.unknown,
        missing=lines.fields.missing,
        within_lines=lines.within_lines,
    )


class DecodeTask(msgspec.Struct, frozen=True):
    """A file to decode: its number in the import, the number of its first row, and SQL of a row's game in the lake.

    `staging.stage` describes *oldest_days*.
    """

    file: SourceFile
    number: int
    first_seq: int
    game_sql: str
    oldest_days: int

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the file, with the columns of `decoded`."""
        with TemporaryDirectory() as scratch, local_path(self.file, Path(scratch)) as path:
            sql = DuckDBWriter(Path(scratch), threads=1)
            try:
                if self.file.kind == "raw-json":
                    lines = JsonLinesFile(path, first_seq=self.first_seq).batches()
                    sql.view("lines", pa.RecordBatchReader.from_batches(LINES_SCHEMA, lines))
                    decoded = line_rows_sql("lines", self.game_sql, oldest_days=self.oldest_days)
                    arrived = "CAST(NULL AS DATE) AS arrived"
                else:
                    columns = table_columns(path)
                    decoded = table_rows_sql(
                        str(path),
                        columns,
                        first_seq=self.first_seq,
                        game_sql=self.game_sql,
                        oldest_days=self.oldest_days,
                    )
                    arrived = "arrived"
                names = ", ".join(arrived if name == "arrived" else name for name in _DECODED if name != "file")
                query = f"SELECT {names}, CAST({self.number} AS BIGINT) AS file FROM ({decoded})"  # noqa: S608
                yield from sql.batches(query, _ROWS_AT_ONCE)
            finally:
                sql.close()


def take_on_cluster(
    files: Sequence[SourceFile],
    lake: Lake,
    organisation: str,
    games: GameIds,
    engine: SparkWriter,
    counts: ImportCounts,
    *,
    first_seq: int,
    processed_ms: int,
    oldest_days: int,
) -> None:
    """Take *files* into *lake* as one version that *engine* makes, whose first row has the number *first_seq*.

    `staging.stage` describes *oldest_days*.

    Raises:
        Refused: the cluster failed. Nothing is taken then.
    """
    engine.prepare_for(sum(file.bytes for file in files))
    taken = _numbered(files, engine, counts, first_seq=first_seq)
    counts.report()
    if not taken:
        return
    tasks = [
        DecodeTask(entry.file, number, entry.first_seq, games.sql, oldest_days) for number, entry in enumerate(taken)
    ]
    engine.create_rows("rows_read", lambda number: tasks[number].rows(), len(tasks), _DECODED)
    found_games: dict[int, list[str]] = {}
    for file, game_id in engine.run("SELECT DISTINCT file, game_id FROM rows_read WHERE fault IS NULL"):
        found_games.setdefault(file, []).append(game_id)
    unmapped = {file: unknown for file, ids in sorted(found_games.items()) if (unknown := games.unknown(ids))}
    for file, unknown in unmapped.items():
        counts.note_left_out(taken[file], games.how_to_map(unknown))
    left_out = f"WHERE file NOT IN ({', '.join(map(str, unmapped))})" if unmapped else ""
    engine.create_view("decoded", f"SELECT * FROM rows_read {left_out}")  # noqa: S608
    refused = engine.run(f"""
        SELECT file, fault, number, seq FROM (
            SELECT file, fault, seq, count(*) OVER (PARTITION BY file, fault) AS number,
                row_number() OVER (PARTITION BY file, fault ORDER BY seq) AS place
            FROM decoded WHERE fault IS NOT NULL
        ) AS refused WHERE place <= {EXAMPLES} ORDER BY file, seq""")  # noqa: S608
    for file, fault, number, seq in refused:
        taken[file].refuse(seq, fault, count=number if fault not in taken[file].refused else 0)
    with_events = {file for (file,) in engine.run("SELECT DISTINCT file FROM decoded WHERE fault IS NULL")}
    spans = engine.run("""
        SELECT file, game_id, min(arrived), max(arrived) FROM decoded
        WHERE arrived IS NOT NULL GROUP BY file, game_id""")
    for file, game_id, first, last in spans:
        taken[file].arrived[game_id] = (first, last)
    for number, entry in enumerate(taken):
        if entry.refused and number not in with_events and number not in unmapped:
            counts.note_without_events(entry)
    taken = [
        entry
        for number, entry in enumerate(taken)
        if number in with_events or not (entry.refused or number in unmapped)
    ]
    if not taken:
        return
    found = EventCounts()
    found.add(engine.run)
    ((stated,),) = engine.run("SELECT count(installed) FROM decoded WHERE fault IS NULL")
    built = join_parts(
        organisation,
        f"SELECT {STAGED_COLUMNS} FROM decoded WHERE fault IS NULL",  # noqa: S608
        lake,
        engine,
        folder=str(lake.next_version()),
        stated=STATED_SQL if stated else None,
        dated="SELECT seq, dated_by FROM decoded WHERE fault IS NULL AND dated_by IS NOT NULL",
    )
    lake.commit(
        processed_ms=processed_ms,
        last_batch=lake.last_run().last_batch,
        duplicates=built.repeated,
        dated={organisation: built.dated},
        files=built.files,
        retired=built.retired,
        taken=[entry.as_taken(organisation) for entry in taken],
        marks=file_marks_of([entry.file for entry in taken], organisation),
    )
    lake.sweep()
    counts.note_committed(taken, found)


def _numbered(
    files: Sequence[SourceFile], engine: SparkWriter, counts: ImportCounts, *, first_seq: int
) -> list[ReadFile]:
    """Return the files that are to be taken, with the numbers of their first rows."""
    ordered = [file for kind in ("raw-json", "event-parquet") for file in files if file.kind == kind]
    taken = []
    for file, found in zip(ordered, engine.each(examine, ordered), strict=True):
        entry = ReadFile(
            file,
            first_seq,
            rows=found.rows,
            content=found.content,
            within_lines=found.within_lines,
            unknown=found.unknown,
            missing=found.missing,
        )
        if counts.has_content(file, found.content):
            if file.kind == "raw-json" and not counts.has_name(file):
                first_seq += found.rows  # as on one machine, which reads such a file before it knows it
            counts.note_taken_before(file, found.content)
            continue
        first_seq += found.rows
        counts.note_rows(found.rows, file.bytes)
        if found.damage:
            counts.note_damaged(file, DamagedFileError(found.damage))
        else:
            counts.note_taken(entry)
            taken.append(entry)
    return taken
