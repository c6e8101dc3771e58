"""Program of a user whose process runs Spark: events of a DataFrame are analysed in that session, which stays as it is.

python spark_event_tables.py classic|connect STATE FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import gamelens as gl
from gamelens import raw_events
from gamelens.errors import BadQuery, Refused
from gamelens.raw_events.lake_client import open_lake
from support.every_analysis import ANALYSES, OVER, compare_all, with_repeats, with_zone
from support.spark_user_session import SETTINGS

NAMES = {"ts": "sent_at", "user_id": "Player Id"}


def main(kind: str, state: Path, folder: Path) -> None:
    """Compare every analysis with that of the lake, and look at the session afterwards."""
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")
    session = builder.getOrCreate()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    with open_lake(state, organisation="acme", progress=False) as lake:
        events = lake.relation("events").to_arrow_table()
        pq.write_table(with_zone(with_repeats(events), NAMES), folder / "events.parquet")
        pq.write_table(lake.relation("players").to_arrow_table(), folder / "players.parquet")
        frames = {name: session.read.parquet(str(folder / f"{name}.parquet")) for name in ("events", "players")}
        available = str(lake.available())
        with gl.open_events(**frames, columns=NAMES, available=available) as table:
            compare_all("Spark" if kind == "classic" else "Spark Connect", table, lake)
            assert table.provenance.engine == "spark"
            with pytest.raises(BadQuery, match=r"where = .* has LOWER"):
                raw_events.count_events(table, OVER, where="lower(category) = 'ads'")
        times = frames["events"].selectExpr("* EXCEPT (sent_at)", "CAST(sent_at AS STRING) AS sent_at")
        with pytest.raises(BadQuery, match="has the type string, but ts must be a time: cast it"):
            gl.open_events(times, columns=NAMES)
        session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        table = gl.open_events(frames["events"], columns=NAMES, available=available)
        with table, pytest.raises(Refused, match="escapedStringLiterals"):
            ANALYSES["funnel"](table)
        session.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert {name: session.conf.get(name) for name in SETTINGS} == SETTINGS
    assert session.catalog.listTables() == []
    print("equal")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
