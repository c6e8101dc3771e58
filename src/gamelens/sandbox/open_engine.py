"""The query engines by name. Spark is not imported before it is asked for."""

from __future__ import annotations

from gamelens.errors import Refused
from gamelens.sandbox.engine import Engine, Place, Reader


def open_engine(name: str, place: Place) -> Engine:
    """Open the engine called *name* over the lake at *place*: `duckdb`, `spark`, or the address of a Spark master.

    Raises:
        Refused: there is no such engine, or it does not start.
    """
    if name == "duckdb":
        return Reader(place)
    from gamelens.sandbox.spark import MASTERS, SparkReader

    if name == "spark":
        return SparkReader(place)
    if name.startswith(MASTERS):
        return SparkReader(place, master=name)
    raise Refused(f"{name!r} is no engine: duckdb, spark, or the address of a Spark master: {'…, '.join(MASTERS)}…")
