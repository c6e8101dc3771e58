"""The only door to the query engine: DuckDB, in memory, over the files of the lake.

Two connections with different rights. A `Reader` answers questions: once made it sees the lake's folder and nothing
else, loads no extension, and cannot be reconfigured. A `Workshop` writes files for processing; no request text ever
reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb
from pyarrow import RecordBatchReader

from gamelens.errors import Refused
from gamelens.sandbox.lake import Snapshot
from gamelens.sandbox.tables import COLUMNS
from gamelens.wire.currencies import SCALED_RATES
from gamelens.wire.intervals import Interval

MEMORY_LIMIT = "1GB"


class Statement(Protocol):
    """What the planner hands over: something that can be written in a dialect."""

    def sql(self, dialect: str) -> str:
        """The statement as text."""
        ...


class Plan(Protocol):
    """What there is to run: a statement, its bound values, the tables it reads and the spans it needs of each."""

    @property
    def statement(self) -> Statement: ...  # noqa: D102

    @property
    def parameters(self) -> dict[str, Any]: ...  # noqa: D102

    @property
    def reads(self) -> dict[str, tuple[Interval, ...]]: ...  # noqa: D102


class Reader:
    """Answers plans over the tables of a snapshot, and over `rates`, which is ours."""

    def __init__(self, lake: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE rates (currency VARCHAR PRIMARY KEY, scaled BIGINT)")
        rates = [list(SCALED_RATES), list(SCALED_RATES.values())]
        self._connection.execute("INSERT INTO rates SELECT unnest(?), unnest(?)", rates)
        for setting in (
            f"SET memory_limit = '{MEMORY_LIMIT}'",
            f"SET allowed_directories = [{_literal(str(lake.resolve()))}]",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)

    def rows(self, plan: Plan, snapshot: Snapshot) -> list[dict[str, Any]]:
        """All rows of *plan*, in its order, over *snapshot*. Safe to call from several threads at once."""
        with self._connection.cursor() as cursor:
            for table, spans in plan.reads.items():
                cursor.execute(f"CREATE TEMP VIEW {table} AS {_files(snapshot.files(table, *spans), COLUMNS[table])}")
            cursor.execute(plan.statement.sql("duckdb"), plan.parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()


class Workshop:
    """Runs the statements of processing; spills into *scratch* rather than outgrow its memory."""

    def __init__(self, scratch: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        self._connection.execute(f"SET temp_directory = {_literal(str(scratch))}")
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
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {_files(paths, columns)}")

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()


def _files(paths: Sequence[Path], columns: Mapping[str, str]) -> str:
    if not paths:
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
        return f"SELECT {empty} LIMIT 0"
    names = ", ".join(_literal(str(path.resolve())) for path in paths)
    return f"FROM read_parquet([{names}])"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
