"""Rows of the files that one version of the lake takes, in a scratch folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.errors import Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.imports.event_data import table_rows_sql
from gamelens.sandbox.imports.import_counts import ReadFile
from gamelens.sandbox.imports.json_lines import LINES_SCHEMA, line_rows_sql
from gamelens.sandbox.imports.source_files import DamagedFileError
from gamelens.sandbox.storage.lake_schema import COLUMNS, EVENT_COLUMNS

_GROUP_ROWS: Final = 122_880
UNDISCLOSED: Final = "lower(ilrd_network_name) = 'undisclosed'"
"""SQL condition that the service had no permission to show the network of an impression."""
STAGED_COLUMNS: Final = ", ".join(
    f"CASE WHEN {UNDISCLOSED} THEN NULL ELSE {name} END AS {name}" if name == "ilrd_network_name" else name
    for name in EVENT_COLUMNS
)
"""SQL of the columns of an event, of those of a decoded row."""

STATED_SQL: Final = """
    SELECT game_id, user_id, make_timestamp(installed * 1000000) AS ts, min(first_build) AS first_build FROM decoded
    WHERE fault IS NULL AND installed IS NOT NULL GROUP BY game_id, user_id, installed"""
"""SQL of the installs that the rows of `decoded` state, several of a player where they differ."""


class GameIds:
    """Ids of games in the lake, by their ids in the export, which are the same unless mapped."""

    def __init__(self, own: list[str], mapped: Mapping[str, str]) -> None:
        self._own, self._mapped = own, dict(mapped)

    @property
    def sql(self) -> str:
        """SQL of the id in the lake, of `exported_game`."""
        whens = " ".join(f"WHEN {literal(old)} THEN {literal(new)}" for old, new in self._mapped.items())
        return f"CASE exported_game {whens} ELSE exported_game END" if whens else "exported_game"

    def check(self, found: list[str]) -> None:
        """Refuse the *found* ids in the lake that the organisation does not have.

        Raises:
            Refused: there is one; says how to map it.
        """
        unknown = sorted(set(found) - set(self._own))
        if unknown:
            raise Refused(
                f"game {unknown[0]} of the export is not one of the organisation's ({', '.join(self._own)}): "
                f"--game {unknown[0]}={self._own[0]} maps it to one. Its files were not taken"
            )


class DecodedGroup:
    """Events of the source files that one version of the lake takes, in Parquet files below *folder*.

    Whole files are decoded into a table of the engine, which spills to the disk, and only then their rows are written.
    So a file that proves damaged at its end has left nothing.

    Attributes:
        files: the files that are in the group.
        events: number of events decoded.
        undisclosed: impressions whose network the service did not disclose.
        staged: the Parquet files, with the columns of the events table.
    """

    def __init__(self, folder: Path, games: GameIds) -> None:
        folder.mkdir(parents=True)
        self.files: list[ReadFile] = []
        self.events = self.undisclosed = 0
        self.staged: list[Path] = []
        self._folder, self._games = folder, games
        self._sql = DuckDBWriter(folder)
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS["stated_installs"].items())
        self._sql.run(f"CREATE TEMP TABLE stated ({columns})")

    def add_lines(self, batches: Iterator[pa.RecordBatch], read: Sequence[ReadFile]) -> None:
        """Take the lines of *batches*, which lists the files that it has read in *read*.

        Many files are decoded by one statement, because planning it takes as long as decoding thousands of lines.
        """
        self._sql.view("lines", pa.RecordBatchReader.from_batches(LINES_SCHEMA, batches))
        self._sql.create("decoded", line_rows_sql("lines", self._games.sql))
        for each in read:
            if each.rows and not each.is_taken:
                last_seq = each.first_seq + each.rows - 1
                self._sql.run(f"DELETE FROM decoded WHERE seq BETWEEN {each.first_seq} AND {last_seq}")  # noqa: S608
        self._take([each for each in read if each.is_taken])

    def add_table(self, each: ReadFile, path: Path, columns: Mapping[str, str]) -> None:
        """Take the rows of the Parquet file at *path*, which has *columns* (`table_columns`).

        Raises:
            DamagedFileError: it cannot be read, or is not a table of Event Data.
        """
        each.rows = pq.read_metadata(path).num_rows
        rows = table_rows_sql(str(path), columns, first_seq=each.first_seq, game_sql=self._games.sql)
        try:
            self._sql.create("decoded", rows)
        except Refused:
            check_readable(path)
            raise
        arrived = self._sql.run("SELECT game_id, min(arrived), max(arrived) FROM decoded GROUP BY ALL")
        each.arrived = {game: (first, last) for game, first, last in arrived if first}
        self._take([each])

    def stated(self) -> list[Path]:
        """Write the installs that the files state, if they do, and return the file."""
        path = self._folder / "stated.parquet"
        self._sql.run(f"COPY (FROM stated) TO {literal(str(path))} (FORMAT parquet)")
        return [path] if pq.read_metadata(path).num_rows else []

    def close(self) -> None:
        """Release the engine's memory."""
        self._sql.close()

    def _take(self, files: Sequence[ReadFile]) -> None:
        """Write the events of `decoded`, the rows of *files*, as a file, and count the rows that are not events."""
        found = self._sql.run(f"""
            SELECT game_id, count(*), count(*) FILTER ({UNDISCLOSED}) FROM decoded
            WHERE fault IS NULL GROUP BY game_id""")  # noqa: S608
        self._games.check([game_id for game_id, *_ in found])
        for seq, fault in self._sql.run("SELECT seq, fault FROM decoded WHERE fault IS NOT NULL ORDER BY seq"):
            next(each for each in reversed(files) if each.first_seq <= seq).refuse(seq, fault)
        if found:
            path = self._folder / f"events-{len(self.staged)}.parquet"
            options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {_GROUP_ROWS}"
            rows = f"SELECT {STAGED_COLUMNS} FROM decoded WHERE fault IS NULL"  # noqa: S608
            self._sql.run(f"COPY ({rows}) TO {literal(str(path))} ({options})")
            self.staged.append(path)
        self._sql.run(f"INSERT INTO stated BY NAME {STATED_SQL}")
        self._sql.run("DROP TABLE decoded")
        self.events += sum(events for _, events, _ in found)
        self.undisclosed += sum(undisclosed for *_, undisclosed in found)
        self.files += files


def table_columns(path: Path) -> dict[str, str]:
    """Return the Arrow types of the columns of a Parquet file, by name.

    Raises:
        DamagedFileError: its end cannot be read.
    """
    try:
        return {each.name: str(each.type) for each in pq.read_schema(path)}
    except (OSError, pa.ArrowException) as error:
        raise DamagedFileError(f"its Parquet is damaged: {error}") from error


def check_readable(path: Path) -> None:
    """Read the whole Parquet file at *path*.

    Raises:
        DamagedFileError: it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        raise DamagedFileError(f"its Parquet is damaged: {error}") from error
