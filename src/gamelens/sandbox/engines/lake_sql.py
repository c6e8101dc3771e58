"""SQL of a user over views of a lake, in an engine that reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.duckdb_engine import TimeLimit, create_rates, literal, select_sql
from gamelens.sandbox.engines.engine import QueryBounds
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS

Relation = duckdb.DuckDBPyRelation
_TABLES: Final = ("events", "installs", "installs_moved", "payments", "payments_moved", "stated_installs")
_ROWS_AT_ONCE: Final = 100_000
_READS: Final = frozenset({"SELECT", "EXPLAIN"})


class LakeSql:
    """Views over the events and players of one organisation in one version of the lake.

    *views* are statements by name, over `rates`, `games` (those of the organisation) and the tables of the lake, called
    `lake_events` and so on.
    """

    def __init__(self, snapshot: Snapshot, organisation: Organisation, views: Mapping[str, str]) -> None:
        self._organisation, self._views = organisation, views
        self._files = {table: [str(path.resolve()) for path in snapshot.files(table)] for table in _TABLES}
        self._names = ["games", *views]

    def run(self, statement: str, parameters: Mapping[str, Any], bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT.

        Raises:
            BadQuery: it is not one SELECT, is not valid, or has more rows than it may have.
            Refused: it takes more time or memory than it may take, or needs what is locked.
        """
        connection = self._connected()
        limit = TimeLimit(bounds.seconds)
        try:
            self._lock(connection, bounds.memory)
            kinds = [str(each.type).rpartition(".")[2] for each in connection.extract_statements(statement)]
            if len(kinds) != 1 or kinds[0] not in _READS:
                came = ", ".join(kinds) or "nothing"
                raise BadQuery("statement", msgspec.UNSET, f"must be one SELECT, and is {came}")
            batches: list[pa.RecordBatch] = []
            with limit.over(connection.interrupt):
                reader = connection.sql(statement, params=dict(parameters)).to_arrow_reader(_ROWS_AT_ONCE)
                for batch in reader:
                    batches.append(batch)
                    if sum(map(len, batches)) > bounds.rows:
                        rule = f"has more than {bounds.rows:,} rows: aggregate, LIMIT, or pass rows="
                        raise BadQuery("statement", msgspec.UNSET, rule)
            return pa.Table.from_batches(batches, reader.schema)
        except duckdb.InterruptException:
            raise Refused(f"the statement took more than {bounds.seconds:g} s and was stopped: narrow it") from None
        except duckdb.OutOfMemoryException:
            raise Refused(f"the statement takes more than {bounds.memory} of memory: narrow it") from None
        except duckdb.PermissionException as error:
            raise Refused(f"forbidden statement: {_first_line(error)}") from None
        except duckdb.Error as error:
            raise BadQuery("statement", msgspec.UNSET, f"cannot be run: {_first_line(error)}") from None
        finally:
            limit.close()
            connection.close()

    def relation(self, view: str) -> Relation:
        """Return a view as a relation.

        Raises:
            BadQuery: there is no such view.
        """
        if view not in self._names:
            raise BadQuery("view", view, "is not a view of the lake", self._names)
        return self._connected().table(view)

    def columns(self) -> list[tuple[str, str, str]]:
        """Return view, name and type of every column."""
        connection = self._connected()
        try:
            return [
                (view, name, kind)
                for view in self._names
                for name, kind, *_ in connection.execute(f"DESCRIBE {view}").fetchall()
            ]
        finally:
            connection.close()

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """Return a connection with the views."""
        connection = duckdb.connect()
        create_rates(connection)
        connection.execute("CREATE TABLE games (game_id VARCHAR, game VARCHAR, studio_id VARCHAR, studio VARCHAR)")
        for studio in self._organisation.studios:
            for game in studio.games:
                row = [game.id, game.title, studio.id, studio.name]
                connection.execute("INSERT INTO games VALUES (?, ?, ?, ?)", row)
        for table, files in self._files.items():
            connection.execute(f"CREATE VIEW lake_{table} AS {select_sql(files, COLUMNS[table])}")
        for view, body in self._views.items():
            connection.execute(f"CREATE VIEW {view} AS {body}")
        return connection

    def _lock(self, connection: duckdb.DuckDBPyConnection, memory: str) -> None:
        """Let the connection read the files of the views and do nothing else.

        Raises:
            BadQuery: DuckDB cannot read the bound of memory.
        """
        try:
            connection.execute(f"SET memory_limit = {literal(memory)}")
        except duckdb.Error as error:
            raise BadQuery("memory", memory, f"is not an amount of memory: {_first_line(error)}") from None
        files = [literal(path) for paths in self._files.values() for path in paths]
        for setting in (
            "SET temp_directory = ''",
            "SET python_enable_replacements = false",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            f"SET allowed_paths = [{', '.join(files)}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            connection.execute(setting)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
