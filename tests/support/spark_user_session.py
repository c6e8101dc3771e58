"""Program of a user whose process runs Spark: lakes are asked and made through that session, which stays as it is.

python spark_user_session.py classic|connect STATE
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pandas.testing import assert_frame_equal
from pyspark.sql import SparkSession

import gamelens as gl
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds, QueryStopped
from gamelens.sandbox.engines.spark_engine import SparkReader
from gamelens.sandbox.imports.import_run import ImportOptions
from gamelens.sandbox.storage.lake import Snapshot
from support.bounded_queries import ENDLESS
from support.game_events import NOW, event
from support.raw_exports import tables, take, wrapped, write_lines
from support.reference_lake import different_rows

AT_S = int(NOW.timestamp()) - 86_400
OVER = "last 28 complete days"
SETTINGS = {"spark.sql.session.timeZone": "America/Sao_Paulo", "spark.sql.ansi.enabled": "false"}


def main(kind: str, state: Path) -> None:
    """Compare metrics with those of DuckDB, stop a long query, and look at the session afterwards."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # tasks of an import run this version, as on any cluster
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")
    session = builder.getOrCreate()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    session.range(3).createTempView("mine")
    of_lake: dict[str, Any] = {"organisation": "acme", "progress": False}
    with (
        gl.open_lake(state, **of_lake) as lake,
        gl.open_lake(state, engine="spark", lake_url=str(state / "lake"), **of_lake) as on_spark,
    ):
        for metric in ("dau", "revenue", "event_count"):
            theirs, ours = (client.query(metric, by="country_code", over=OVER) for client in (on_spark, lake))
            assert_frame_equal(theirs, ours)
    reader = SparkReader(LakeLocation(state / "lake"), QueryBounds(seconds=2))
    with pytest.raises(QueryStopped, match="took more than 2 s"):
        reader.rows(ENDLESS, Snapshot({}))
    reader.close()
    lines = [wrapped(event(user_id=f"u{number % 7}", client_ts=AT_S + 600 * number)) for number in range(40)]
    files = [write_lines(state.parent / f"{number}.gz", *lines[number::3]) for number in range(3)]
    for place, engine in (("here", "duckdb"), ("there", "spark")):
        take(state.parent / place / "state", *files, options=ImportOptions(engine=engine))
    assert different_rows(*(tables(state.parent / place / "state") for place in ("here", "there"))) == {}
    assert {name: session.conf.get(name) for name in SETTINGS} == SETTINGS
    assert [table.name for table in session.catalog.listTables()] == ["mine"]
    assert session.table("mine").count() == 3
    print("equal")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
