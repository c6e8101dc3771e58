"""The query engines by name. Spark is imported only when it is opened."""

from __future__ import annotations

from gamelens.errors import Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBReader
from gamelens.sandbox.engines.engine import Engine, LakeLocation, QueryBounds


def open_engine(name: str, location: LakeLocation, bounds: QueryBounds = QueryBounds()) -> Engine:  # noqa: B008
    """Open the engine called *name* over the lake at *location*.

    *name* is `duckdb`, `spark`, or the address of a Spark master. Each query may take what *bounds* allow.

    Raises:
        Refused: there is no such engine, or it does not start.
    """
    if name == "duckdb":
        return DuckDBReader(location, bounds)
    from gamelens.sandbox.engines.spark_engine import MASTERS, SparkReader

    if name == "spark":
        return SparkReader(location, bounds)
    if name.startswith(MASTERS):
        return SparkReader(location, bounds, master=name)
    raise Refused(f"{name!r} is no engine: duckdb, spark, or the address of a Spark master: {'…, '.join(MASTERS)}…")
