"""SQL of a user over views of a lake, in an engine that reads nothing else and writes nothing."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from gamelens.errors import BadQuery
from gamelens.sandbox.engines.duckdb_engine import literal, rates_sql, select_sql
from gamelens.sandbox.engines.engine import QueryBounds
from gamelens.sandbox.engines.read_files import SCHEME
from gamelens.sandbox.engines.spill_folder import SpillFolder
from gamelens.sandbox.engines.sql_process import SqlProcess, memory_limit
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS

if TYPE_CHECKING:
    Relation = duckdb.DuckDBPyRelation

atexit.register(globals().pop, "duckdb")  # see `duckdb_engine`

_TABLES: Final = ("events", "installs", "installs_moved", "payments", "payments_moved", "stated_installs")


class LakeSql:
    """Views over the events and players of one organisation in one version of the lake.

    *views* are statements by name, over `rates`, `games` (of this organisation) and the tables of the lake, called
    `lake_events` and so on.
    """

    def __init__(self, snapshot: Snapshot, organisation: Organisation, views: Mapping[str, str]) -> None:
        self._organisation, self._views = organisation, views
        self._files = {table: [str(path.resolve()) for path in snapshot.files(table)] for table in _TABLES}
        self._names = ["games", *views]

    def run(self, process: SqlProcess, statement: str, parameters: Mapping[str, Any], bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT, which runs in *process*.

        Raises:
            BadQuery: it is not one SELECT, is not valid, or has more rows than it may have.
            Refused: it takes more time or memory than it may take, or needs what is locked.
        """
        files = [path for paths in self._files.values() for path in paths]
        return process.run(statement, parameters, bounds, setup=self._setup(SCHEME), files=files)

    def relation(self, view: str, *, memory: str, spill: SpillFolder) -> Relation:
        """Return a view as a relation that takes so much *memory*, and spills to *spill*.

        Raises:
            BadQuery: there is no such view.
        """
        if view not in self._names:
            raise BadQuery("view", view, "is not a view of the lake", self._names)
        return self._connected(memory_limit(memory), *spill.settings("relations")).table(view)

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

    def _connected(self, *settings: str) -> duckdb.DuckDBPyConnection:
        """Return a connection with *settings* and the views."""
        connection = duckdb.connect()
        for statement in (*settings, *self._setup()):
            connection.execute(statement)
        return connection

    def _setup(self, scheme: str = "") -> list[str]:
        """Return the statements that make the views of files whose addresses begin with *scheme*."""
        games = [
            f"INSERT INTO games VALUES ({', '.join(map(literal, (game.id, game.title, studio.id, studio.name)))})"  # noqa: S608
            for studio in self._organisation.studios
            for game in studio.games
        ]
        return [
            rates_sql(),
            "CREATE TABLE games (game_id VARCHAR, game VARCHAR, studio_id VARCHAR, studio VARCHAR)",
            *games,
            *(
                f"CREATE VIEW lake_{table} AS {select_sql([scheme + path for path in files], COLUMNS[table])}"
                for table, files in self._files.items()
            ),
            *(f"CREATE VIEW {view} AS {body}" for view, body in self._views.items()),
        ]
