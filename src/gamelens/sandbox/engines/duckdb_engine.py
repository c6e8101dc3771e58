"""DuckDB as the engine that reads and writes the lake, locked down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from pyarrow import RecordBatchReader

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LOCAL_SCHEME, LakeLocation
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.wire.currencies import SCALED_RATES

if TYPE_CHECKING:
    from gamelens.sandbox.engines.sql_query import SqlQuery

MEMORY_LIMIT = "1GB"


class DuckDBReader:
    """Answers plans over the tables of a snapshot, and over `rates`, which is ours.

    Raises:
        Refused: *place* is at a URL that nothing installed can read.
    """

    def __init__(self, place: LakeLocation) -> None:
        self._place = place
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE rates (currency VARCHAR PRIMARY KEY, scaled BIGINT)")
        rates = [list(SCALED_RATES), list(SCALED_RATES.values())]
        self._connection.execute("INSERT INTO rates SELECT unnest(?), unnest(?)", rates)
        for setting in (
            f"SET memory_limit = '{MEMORY_LIMIT}'",
            f"SET allowed_directories = [{literal(self._attach(place))}]",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """All rows of *plan*, in its order, over *snapshot*. Safe to call from several threads at once."""
        with self._connection.cursor() as cursor:
            for table, spans in plan.reads.items():
                urls = self._place.urls_of(snapshot.files(table, *spans))
                files = [url.removeprefix(LOCAL_SCHEME) for url in urls]
                cursor.execute(f"CREATE TEMP VIEW {table} AS {_files(files, COLUMNS[table])}")
            cursor.execute(plan.statement.sql("duckdb"), plan.parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()

    def _attach(self, place: LakeLocation) -> str:
        """The folder to allow; what is not local is read through fsspec, which must come before the lock."""
        if place.folder.startswith(LOCAL_SCHEME):
            return place.folder.removeprefix(LOCAL_SCHEME)
        try:
            from fsspec.core import url_to_fs

            filesystem, folder = url_to_fs(place.folder)
        except (ImportError, ValueError) as error:
            hint = "URLs need pip install 'gamelens[remote]', and a package for their kind of store"
            raise Refused(f"the lake at {place.url} cannot be read: {error}. {hint}") from None
        self._connection.register_filesystem(filesystem)
        self._place = LakeLocation(place.root, filesystem.unstrip_protocol(folder))  # as the engine compares it
        return self._place.folder


class DuckDBWriter:
    """Runs the statements of processing; spills into *scratch* rather than outgrow its memory."""

    def __init__(self, scratch: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        self._connection.execute(f"SET temp_directory = {literal(str(scratch))}")
        self._connection.execute("SET preserve_insertion_order = false")
        # Late events touch many days, and a file that is closed and opened again is two files.
        self._connection.execute("SET partitioned_write_max_open_files = 1000")

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and answer its rows."""
        try:
            return self._connection.execute(sql, list(parameters)).fetchall()
        except duckdb.Error as error:
            raise Refused(f"processing stopped, nothing was changed: {error}") from error

    def stream(self, name: str, batches: RecordBatchReader) -> None:
        """Make *batches* readable as *name*, once."""
        self._connection.register(name, batches)

    def files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make *paths* readable as *name*; no paths at all are an empty table of *columns*."""
        names = [str(path.resolve()) for path in paths]
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {_files(names, columns)}")

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()


def _files(names: Sequence[str], columns: Mapping[str, str]) -> str:
    if not names:
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
        return f"SELECT {empty} LIMIT 0"
    return f"FROM read_parquet([{', '.join(map(literal, names))}])"


def literal(text: str) -> str:
    """*text* as a statement has it, quoted."""
    return "'" + text.replace("'", "''") + "'"
