"""DuckDB as the engine that reads the lake, locked down, and the one that writes it."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyarrow import RecordBatchReader

from gamelens._files import disk_trouble, is_full
from gamelens._forks import keep_for_ever
from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import (
    LOCAL_SCHEME,
    LakeLocation,
    QueryBounds,
    QueryStopped,
    SqlQuery,
    filesystem_of,
)
from gamelens.sandbox.engines.read_files import ReadFiles
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import ADDED_COLUMNS, COLUMNS
from gamelens.wire.currencies import SCALED_RATES

# pandas never ends, with its accessors all that they reach, and DuckDB calls what is left of it a leak. So modules that
# import it let go of it when Python ends.
atexit.register(globals().pop, "duckdb")

MEMORY_LIMIT = "1GB"
"""Memory limit of each connection of processing."""
_ROWS_AT_ONCE = 10_000


class DuckDBReader:
    """A locked-down DuckDB connection over the tables of a snapshot and the table `rates`.

    A query may take what *bounds* allow. The connection is made for the first one: a sandbox may only collect.

    Raises:
        Refused: *location* is at a URL that no installed package can read.
    """

    def __init__(self, location: LakeLocation, bounds: QueryBounds = QueryBounds()) -> None:  # noqa: B008
        self.bounds = bounds
        self._time_limit = TimeLimit(bounds.seconds)
        self._filesystem: Any = None
        if not location.folder.startswith(LOCAL_SCHEME):
            self._filesystem, folder = filesystem_of(location.folder, called=f"the lake at {location.url}")
            location = LakeLocation(location.root, self._filesystem.unstrip_protocol(folder))  # as DuckDB compares it
        self._location = location
        self._connecting = Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of *query* over *snapshot* (`Engine`)."""
        try:
            with self._cursor() as cursor, self._time_limit.over(cursor.interrupt):
                for table, intervals in query.reads.items():
                    urls = self._location.urls_of(snapshot.files(table, *intervals))
                    files = [url.removeprefix(LOCAL_SCHEME) for url in urls]
                    cursor.execute(f"CREATE TEMP VIEW {table} AS {select_sql(files, COLUMNS[table])}")
                cursor.execute(query.sql, query.parameters)
                names = [column[0] for column in cursor.description or ()]
                rows: list[dict[str, Any]] = []
                while more := cursor.fetchmany(min(_ROWS_AT_ONCE, self.bounds.rows + 1 - len(rows))):
                    rows += (dict(zip(names, row, strict=True)) for row in more)
                return rows
        except duckdb.InterruptException:
            raise self.bounds.too_slow from None
        except duckdb.OutOfMemoryException as error:
            if spill := self.bounds.spill:
                advice = spill.advice(self.bounds.memory, is_full=fills_spill_folder(error))
                raise QueryStopped(f"this query and those running beside it need {advice}") from None
            raise QueryStopped(
                f"this query and those running beside it need more than the {self.bounds.memory} of memory for all: "
                "ask for a shorter interval, fewer dimensions, or one query at a time"
            ) from None

    def close(self) -> None:
        """Release the engine's memory."""
        self._time_limit.close()
        if self._connection is not None:
            self._connection.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor of the connection, which is made and locked down at the first call."""
        with self._connecting:
            if self._connection is None:
                connection = duckdb.connect()
                connection.execute(rates_sql())
                if self._filesystem is not None:  # which must be known before the lock
                    connection.register_filesystem(ReadFiles(self._filesystem))
                for setting in (
                    f"SET memory_limit = '{self.bounds.memory}'",
                    *(self.bounds.spill.settings("metrics") if self.bounds.spill else ()),
                    "SET GLOBAL parquet_metadata_cache = true",  # files never change under one name
                    f"SET allowed_directories = [{literal(self._location.folder.removeprefix(LOCAL_SCHEME))}]",
                    "SET autoinstall_known_extensions = false",
                    "SET autoload_known_extensions = false",
                    "SET enable_external_access = false",
                    "SET lock_configuration = true",
                ):
                    connection.execute(setting)
                self._connection = connection
        return self._connection.cursor()


class TimeLimit:
    """A limit of *seconds* for each query: one thread stops those that take longer.

    A `threading.Timer` would start a thread for each query, which takes longer than many a query.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = Condition()
        self._running: dict[object, tuple[float, Callable[[], None]]] = {}  # in the order of their ends
        self._is_idle = self._is_closed = False
        self._thread: Thread | None = None

    @contextlib.contextmanager
    def over(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call *stop* if the block takes too long, and never after it has ended."""
        query = object()
        with self._changed:
            self._running[query] = monotonic() + self._seconds, stop
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="query-time-limit", daemon=True)
                self._thread.start()
            elif self._is_idle:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running.pop(query, None)

    def close(self) -> None:
        """End the thread. No block may be running."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed:
                query, (ends_at, stop) = next(iter(self._running.items()), (None, (float("inf"), None)))
                if stop is None or ends_at > monotonic():
                    self._is_idle = stop is None
                    self._changed.wait(None if stop is None else ends_at - monotonic())
                else:
                    del self._running[query]
                    stop()


class DuckDBWriter:
    """The DuckDB connection of processing, which spills to the folder *scratch*.

    It uses so many *threads*, by default one for each processor.
    """

    def __init__(self, scratch: Path, *, threads: int | None = None) -> None:
        self._instance = _instance(str(scratch), threads)
        self._is_reusable = threads is None
        self._connection = self._instance.cursor()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement, which need not be a query, and return its rows (`BuildEngine`)."""
        try:
            return self._connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise _stopped(error) from error

    def create(self, name: str, sql: str) -> None:
        """Make the rows of a query a table (`BuildEngine`)."""
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    def create_view(self, name: str, sql: str) -> None:
        """Make a query a view (`BuildEngine`)."""
        self.run(f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}")

    def write(self, sql: str, path: Path, *, group_rows: int) -> list[Path]:
        """Write the rows of a query as Parquet at *path* (`BuildEngine`)."""
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group_rows}"
        self.run(f"COPY ({sql}) TO {literal(str(path))} ({options})")
        return [path]

    def table(self, sql: str) -> pa.Table:
        """Return the rows of one statement.

        Raises:
            Refused: the statement failed.
        """
        try:
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise _stopped(error) from error

    def batches(self, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one statement, about *rows* at a time.

        Only one such statement may be under way.
        """
        yield from self._connection.sql(sql).to_arrow_reader(rows)

    def view(self, name: str, rows: pa.Table | RecordBatchReader) -> None:
        """Make *rows* readable as *name*: a table, or batches that can be read once."""
        self._connection.register(name, rows)

    def hide(self, name: str) -> None:
        """Release the rows that `view` made readable as *name*."""
        self._connection.unregister(name)

    def view_files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make files a view (`BuildEngine`)."""
        names = [str(path.resolve()) for path in paths]
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {select_sql(names, columns)}")

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()
        if not self._is_reusable or _idle:
            self._instance.close()
            return
        try:
            self._instance.execute("SET enable_external_file_cache = false")  # what it has read would stay in memory
        except duckdb.Error:  # of an error that it does not survive
            self._instance.close()
        else:
            _idle.append(self._instance)


_idle: Final[list[duckdb.DuckDBPyConnection]] = []
"""At most one instance of DuckDB that no writer uses: making one takes longer than most runs of statements."""
atexit.register(_idle.clear)  # or the engine would complain of leaks when Python ends


def _leave_to_parent() -> None:
    while _idle:
        keep_for_ever(_idle.pop())  # its threads are not in this process, and closing it would wait for them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _instance(scratch: str, threads: int | None) -> duckdb.DuckDBPyConnection:
    """Return an instance of DuckDB that is empty and spills to *scratch*: the idle one, or another."""
    settings = (
        f"SET memory_limit = '{MEMORY_LIMIT}'",
        f"SET temp_directory = {literal(scratch)}",
        "SET GLOBAL preserve_insertion_order = false",
        "SET enable_external_file_cache = true",
    )
    if threads is None:
        with contextlib.suppress(IndexError, duckdb.Error):  # there is none, or it has spilled to its folder
            instance = _idle.pop()
            for setting in settings:
                instance.execute(setting)
            return instance
    instance = duckdb.connect(config={} if threads is None else {"threads": threads})
    for setting in settings:
        instance.execute(setting)
    return instance


def fills_spill_folder(error: duckdb.Error) -> bool:
    """Return whether a statement failed because there is no more room for what does not fit into its memory."""
    return "max_temp_directory_size" in str(error) or is_full(error)


def _stopped(error: duckdb.Error) -> Refused:
    return Refused(f"processing stopped; nothing was changed: {disk_trouble(error, 'a file')}")


def rates_sql() -> str:
    """Return the statements that create the table `rates`: scaled US dollars for one unit of each currency."""
    rates = ", ".join(f"({literal(currency)}, {scaled})" for currency, scaled in SCALED_RATES.items())
    return f"CREATE TABLE rates (currency VARCHAR PRIMARY KEY, scaled BIGINT); INSERT INTO rates VALUES {rates}"  # noqa: S608


def select_sql(names: Sequence[str], columns: Mapping[str, str]) -> str:
    """Return the SQL of the rows of the Parquet files *names*, or of no rows if there are none."""
    nulls = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
    empty = f"SELECT {nulls} LIMIT 0"
    if not names:
        return empty
    files = f"[{', '.join(map(literal, names))}]"
    if ADDED_COLUMNS.isdisjoint(columns):
        return f"FROM read_parquet({files})"
    return f"FROM ({empty}) UNION ALL BY NAME FROM read_parquet({files}, union_by_name = true)"


def literal(text: str) -> str:
    """Return *text* as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"
