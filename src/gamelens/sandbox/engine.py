"""The door to the query engine: DuckDB, in memory, over the files of the lake; `spark` is the other one.

Two connections with different rights. A `Reader` answers questions: once made it sees the lake's folder and nothing
else, loads no extension, and cannot be reconfigured. A `Workshop` writes files for processing; no request text ever
reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

import duckdb
import msgspec
from pyarrow import RecordBatchReader

from gamelens.errors import Refused
from gamelens.sandbox.lake import Snapshot
from gamelens.sandbox.tables import COLUMNS
from gamelens.wire.currencies import SCALED_RATES

if TYPE_CHECKING:
    from gamelens.sandbox.sql_query import SqlQuery

MEMORY_LIMIT = "1GB"
_LOCAL = "file://"


class Place(msgspec.Struct, frozen=True):
    """Where an engine finds the files of the lake at *root*: there, or in the folder *url*, which has the same files.

    The second is for who sees the lake's storage under another name, as a cluster does. A path will do as well.
    """

    root: Path
    url: str | None = None

    @property
    def folder(self) -> str:
        """The folder as a URL. Of local ones the path is written as it is, without percent signs of its own."""
        if self.url is None or "://" not in self.url:
            return f"{_LOCAL}{Path(self.url or self.root).resolve()}"
        if self.url.startswith(_LOCAL):
            return _LOCAL + unquote(urlsplit(self.url).path).rstrip("/")
        return self.url.rstrip("/")

    def urls_of(self, paths: Sequence[Path]) -> list[str]:
        """The URLs of *paths*, which are files of the lake."""
        folder = self.folder
        return [f"{folder}/{path.relative_to(self.root).as_posix()}" for path in paths]


class Engine(Protocol):
    """What answers plans. Every engine answers the same plan with the same rows."""

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """All rows of *plan*, in its order, over *snapshot*. Safe to call from several threads at once."""
        ...

    def close(self) -> None:
        """Release the engine's memory."""
        ...


class Reader:
    """Answers plans over the tables of a snapshot, and over `rates`, which is ours.

    Raises:
        Refused: *place* is at a URL that nothing installed can read.
    """

    def __init__(self, place: Place) -> None:
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
                files = [url.removeprefix(_LOCAL) for url in urls]
                cursor.execute(f"CREATE TEMP VIEW {table} AS {_files(files, COLUMNS[table])}")
            cursor.execute(plan.statement.sql("duckdb"), plan.parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()

    def _attach(self, place: Place) -> str:
        """The folder to allow; what is not local is read through fsspec, which must come before the lock."""
        if place.folder.startswith(_LOCAL):
            return place.folder.removeprefix(_LOCAL)
        try:
            from fsspec.core import url_to_fs

            filesystem, folder = url_to_fs(place.folder)
        except (ImportError, ValueError) as error:
            hint = "URLs need pip install 'gamelens[remote]', and a package for their kind of store"
            raise Refused(f"the lake at {place.url} cannot be read: {error}. {hint}") from None
        self._connection.register_filesystem(filesystem)
        self._place = Place(place.root, filesystem.unstrip_protocol(folder))  # as the engine compares it
        return self._place.folder


class Workshop:
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
