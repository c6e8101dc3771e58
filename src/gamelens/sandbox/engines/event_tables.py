"""Tables of events of a user, where they lie: Arrow and Parquet, a relation of DuckDB, or a DataFrame of Spark.

Each is read by its own engine, which gets one SELECT at a time in its own words (`plain_sql`); only results come back.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.duckdb_engine import TimeLimit, fills_spill_folder, literal
from gamelens.sandbox.engines.engine import QueryBounds, QueryStopped, filesystem_of
from gamelens.sandbox.engines.read_files import ReadFiles
from gamelens.sandbox.engines.sql_process import first_line, memory_limit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Files: TypeAlias = str | os.PathLike[str]
    Table: TypeAlias = DataFrame | ds.Dataset | pa.Table | duckdb.DuckDBPyRelation | Files | Sequence[Files]

atexit.register(globals().pop, "duckdb")  # see `duckdb_engine`

ColumnContent = Literal["text", "whole", "number", "time", "instant", "date", "other"]
"""What a column has. A time has no zone; an instant has one, or is stored as UTC and shown in the zone of a session."""

_KINDS: Final[dict[str, ColumnContent]] = {
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM", "STRING", "CHAR"), "text"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "INT", "INT64", "BIGINT", "HUGEINT"), "whole"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "whole"),
    **dict.fromkeys(("DECIMAL", "FLOAT", "DOUBLE", "FLOAT64", "NUMERIC", "BIGNUMERIC"), "number"),
    "DATETIME": "time",
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_NTZ"), "time"),
    "TIMESTAMP WITH TIME ZONE": "instant",
    "DATE": "date",
}
"""Kinds of the types of all engines. TIMESTAMP is an instant in Spark and BigQuery, and has no zone in DuckDB."""

_NO_VIEWS: Final[Mapping[str, str]] = {}


class EventTables(Protocol):
    """The tables of a user, read by one engine.

    Attributes:
        dialect: the words of the engine (`plain_sql.DIALECTS`).
        name: the place of the events, for receipts.
        views: the tables that statements must state, each as a SELECT in plain SQL.
        bytes_billed: the bytes that were billed for all statements so far; 0 where no bytes are.
    """

    dialect: str
    name: str
    views: Mapping[str, str]
    bytes_billed: int

    @property
    def columns(self) -> Mapping[str, Mapping[str, str]]:
        """The type of each column, in the engine's words, by table."""
        ...

    def rows(self, sql: str, bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT.

        Raises:
            BadQuery: it has more rows than *bounds* allow.
            Refused: it cannot be run, or takes more time or memory.
        """
        ...

    def close(self) -> None:
        """Release what was made for these tables."""
        ...


def kind_of(dialect: str, name: str) -> ColumnContent:
    """Return what a column of a type has."""
    plain = name.upper().partition("(")[0].strip()
    if plain == "TIMESTAMP":
        return "time" if dialect == "duckdb" else "instant"
    return "other" if name.endswith("[]") else _KINDS.get(plain, "other")


def open_tables(tables: Mapping[str, Any], bounds: QueryBounds) -> EventTables:
    """Return *tables* by name, each a DataFrame of Spark, a relation of DuckDB, a dataset of Arrow, or Parquet.

    Raises:
        BadQuery: one is none of these, or they are of several engines.
        Refused: a path cannot be read.
    """
    engines = {name: _engine_of(name, table) for name, table in tables.items()}
    if len(set(engines.values())) > 1:
        raise BadQuery(
            "players", [*tables][-1], "must be of the same kind as the events: one engine reads both", name=""
        )
    match next(iter(engines.values())):
        case "spark":
            return SparkTables(tables)
        case "relation":
            return DuckDBRelations(tables)
    return DuckDBTables(tables, bounds)


def _engine_of(name: str, table: Any) -> str:
    module = type(table).__module__
    if module.startswith("pyspark.") and type(table).__name__ == "DataFrame" and hasattr(table, "sparkSession"):
        return "spark"
    if isinstance(table, duckdb.DuckDBPyRelation):
        return "relation"
    if isinstance(table, (ds.Dataset, pa.Table)) or _is_path(table):
        return "duckdb"
    if isinstance(table, (list, tuple)) and table and all(map(_is_path, table)):
        return "duckdb"
    raise BadQuery(
        name.removeprefix("gamelens_"),
        f"{module}.{type(table).__name__}",
        "is no place of events: pass a DataFrame of Spark, a dataset or table of Arrow, a relation of DuckDB, the path "
        "of Parquet files, or a client of BigQuery with the name of a table. A DataFrame of pandas: "
        "pyarrow.Table.from_pandas(frame)",
        name="",
    )


def _is_path(table: object) -> bool:
    return isinstance(table, (str, os.PathLike))


class DuckDBTables:
    """Arrow and Parquet, in a DuckDB of our own (`EventTables`)."""

    dialect = "duckdb"
    views, bytes_billed = _NO_VIEWS, 0

    def __init__(self, tables: Mapping[str, Any], bounds: QueryBounds) -> None:
        self._lock, self._time_limit = Lock(), TimeLimit(bounds.seconds)
        self._connection = duckdb.connect()
        self.name = next(iter(_place(table) for table in tables.values()))
        for setting in (memory_limit(bounds.memory), *(bounds.spill.settings("events") if bounds.spill else ())):
            self._connection.execute(setting)
        try:
            for name, table in tables.items():
                if isinstance(table, (ds.Dataset, pa.Table)):
                    self._connection.register(name, table)
                else:
                    paths = [table] if _is_path(table) else list(table)
                    files = ", ".join(literal(self._readable(os.fspath(path))) for path in paths)
                    rows = f"read_parquet([{files}], union_by_name = true)"
                    self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {rows}")  # noqa: S608
            self.columns = {name: _described(self._connection.table(name)) for name in tables}
        except (duckdb.Error, OSError) as error:
            self.close()
            raise Refused(f"{self.name} cannot be read: {first_line(error)}") from None

    def _readable(self, path: str) -> str:
        """Return *path* as DuckDB reads it. Files at a URL are read by fsspec."""
        if "://" not in path:
            local = Path(path).expanduser()
            return str(local / "**" / "*.parquet") if local.is_dir() else str(local)
        filesystem, place = filesystem_of(path, called=path)
        protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
        if not self._connection.filesystem_is_registered(protocol):
            self._connection.register_filesystem(ReadFiles(filesystem))
        return str(filesystem.unstrip_protocol(place))

    def rows(self, sql: str, bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT (`EventTables`)."""
        with self._lock, _refused(bounds), self._time_limit.over(self._connection.interrupt):
            return _rows(self._connection.sql(sql), bounds)

    def close(self) -> None:
        """Release the memory."""
        self._time_limit.close()
        self._connection.close()


class DuckDBRelations:
    """Relations of a user's connection, with its memory and its settings (`EventTables`)."""

    dialect = "duckdb"
    views, bytes_billed = _NO_VIEWS, 0

    def __init__(self, tables: Mapping[str, Any]) -> None:
        events, *others = tables.values()
        for other in others:
            try:
                events.cross(other)  # which DuckDB refuses for relations of different connections
            except duckdb.Error:
                rule = "must be of the connection of the events, which has views of its own under the same names"
                raise BadQuery("players", f"a relation of another connection, {other.alias},", rule, name="") from None
        self._tables = tables
        self.columns = {name: _described(table) for name, table in tables.items()}
        self.name = f"the relation {events.alias}"

    def rows(self, sql: str, bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT (`EventTables`)."""
        (first, events), *others = self._tables.items()
        named = "".join(f"{name} AS ({table.sql_query()}), " for name, table in others)
        if named:
            sql = f"WITH {named}{sql.removeprefix('WITH ')}"
        with _refused(bounds):
            return _rows(events.query(first, sql), bounds)

    def close(self) -> None:
        """Leave the connection, which is the user's."""


class SparkTables:
    """DataFrames of a user's session, classic or of Spark Connect, whose settings and views stay (`EventTables`).

    Statements depend on no setting but one, which is checked.
    """

    dialect = "spark"
    views, bytes_billed = _NO_VIEWS, 0

    def __init__(self, tables: Mapping[str, DataFrame]) -> None:
        self._tables = tables
        self._session = next(iter(tables.values())).sparkSession
        self.columns = {name: dict(table.dtypes) for name, table in tables.items()}
        self.name = "a DataFrame of Spark"

    def rows(self, sql: str, bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT (`EventTables`)."""
        from gamelens.sandbox.engines.spark_engine import spark_errors, stopped_in_time

        if "\\" in sql and self._session.conf.get("spark.sql.parser.escapedStringLiterals", "false") == "true":
            raise Refused("spark.sql.parser.escapedStringLiterals reads a backslash as no other engine does: unset it")
        escaped = sql.replace("{", "{{").replace("}", "}}")
        for name in self._tables:
            escaped = escaped.replace(f"FROM {name}", f"FROM {{{name}}}")
        used: dict[str, Any] = {name: table for name, table in self._tables.items() if f"{{{name}}}" in escaped}
        try:
            with stopped_in_time(self._session, bounds):
                found = self._session.sql(escaped, **used).limit(bounds.rows + 1).toArrow()
        except spark_errors() as error:
            raise Refused(f"Spark cannot run the statement: {first_line(error)}") from error
        _check_rows(found.num_rows, bounds)
        return found

    def close(self) -> None:
        """Leave the session, which is the user's."""


def _place(table: Any) -> str:
    """Return where a table lies, for receipts."""
    if isinstance(table, (list, tuple)):
        return f"{table[0]} and {len(table) - 1} more" if len(table) > 1 else str(table[0])
    return str(table) if _is_path(table) else f"a {type(table).__name__} of Arrow"


def _described(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


@contextlib.contextmanager
def _refused(bounds: QueryBounds) -> Iterator[None]:
    """Refuse what DuckDB does not do, with what it says."""
    try:
        yield
    except duckdb.InterruptException:
        raise bounds.too_slow from None
    except duckdb.OutOfMemoryException as error:
        more = bounds.spill.advice(bounds.memory, is_full=fills_spill_folder(error)) if bounds.spill else "more memory"
        raise QueryStopped(f"the statement takes {more}") from None
    except duckdb.Error as error:
        raise Refused(f"DuckDB cannot run the statement: {first_line(error)}") from error


def _rows(relation: duckdb.DuckDBPyRelation, bounds: QueryBounds) -> pa.Table:
    reader = relation.to_arrow_reader(100_000)
    batches, count = [], 0
    for batch in reader:
        count += batch.num_rows
        _check_rows(count, bounds)
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _check_rows(count: int, bounds: QueryBounds) -> None:
    if count > bounds.rows:
        raise BadQuery("over", count, f"gives more than {bounds.rows:,} rows: ask for less", name="")
