"""The query engines by name. Spark is imported only when it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamelens.errors import Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBReader
from gamelens.sandbox.engines.engine import Engine, LakeLocation, QueryBounds

if TYPE_CHECKING:
    from gamelens.sandbox.engines.spark_writer import SparkWriter


def open_engine(name: str, location: LakeLocation, bounds: QueryBounds = QueryBounds()) -> Engine:  # noqa: B008
    """Open the engine called *name* over the lake at *location*.

    *name* is `duckdb`, `spark`, or the address of a Spark master. Each query may take what *bounds* allow.

    Raises:
        Refused: there is no such engine, or it does not start.
    """
    if name == "duckdb":
        return DuckDBReader(location, bounds)
    from gamelens.sandbox.engines.spark_engine import SparkReader

    return SparkReader(location, bounds, master=_master(name))


def open_cluster(name: str, location: LakeLocation) -> SparkWriter:
    """Open the engine called *name* to write the lake at *location*.

    *name* is `spark`, or the address of a Spark master.

    Raises:
        Refused: there is no such engine, or it does not start.
    """
    master = _master(name)
    from gamelens.sandbox.engines.spark_writer import SparkWriter

    return SparkWriter(location, master=master)


def _master(name: str) -> str:
    """Return the address of the Spark master that *name* means."""
    from gamelens.sandbox.engines.spark_engine import MASTERS

    if name == "spark":
        return "local[*]"
    if name.startswith(MASTERS):
        return name
    raise Refused(f"{name!r} is not an engine: duckdb, spark, or the address of a Spark master: {'…, '.join(MASTERS)}…")
