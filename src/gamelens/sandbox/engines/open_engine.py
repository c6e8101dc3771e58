"""The query engines by name, and one that answers only from files that are whole."""

from __future__ import annotations

from typing import Any

from gamelens.errors import GamelensError
from gamelens.sandbox.engines.duckdb_engine import DuckDBReader
from gamelens.sandbox.engines.engine import Engine, LakeLocation, QueryBounds, SqlQuery
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_health import LakeHealth


def open_engine(name: str, location: LakeLocation, bounds: QueryBounds = QueryBounds()) -> Engine:  # noqa: B008
    """Open the engine called *name* over the lake at *location*.

    *name* is `duckdb`, `spark`, or the address of a Spark master. Each query may take what *bounds* allow.

    Raises:
        Refused: there is no such engine, or it does not start.
    """
    if name == "duckdb":
        return DuckDBReader(location, bounds)
    from gamelens.sandbox.engines.spark_engine import SparkReader  # with sqlglot, which takes long to import

    return SparkReader(location, bounds, master=name)


class CheckedEngine:
    """The engine *reader* over files that *health* has checked."""

    def __init__(self, reader: Engine, health: LakeHealth) -> None:
        self._reader, self._health = reader, health
        self.bounds = reader.bounds

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return all rows of *query* over *snapshot*, in the order of its statement.

        Safe to call from several threads at once.

        Raises:
            LakeUnavailable: a file that it reads is damaged or missing, before or while it is read.
        """
        parts = [part for table, intervals in query.reads.items() for part in snapshot.parts_in(table, *intervals)]
        self._health.require(snapshot.organisation, parts)
        try:
            return self._reader.rows(query, snapshot)
        except GamelensError:
            raise
        except Exception:
            self._health.recheck(snapshot.organisation, parts)
            raise

    def close(self) -> None:
        """Release the engine's memory."""
        self._reader.close()
