"""Program of a user whose events lie in a store: it analyses them there, and imports them twice.

python in_a_store.py URL STATE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fsspec
import pyarrow.parquet as pq

import gamelens as gl
from gamelens import raw_events
from gamelens.raw_events.lake_client import open_lake
from support.every_analysis import ANALYSES, OVER, assert_equal
from support.game_events import event
from support.raw_exports import take, wrapped, write_lines


def main(url: str, state: Path) -> None:
    """Compare an analysis of the store with that of a lake, and print what two imports took."""
    with open_lake(state, organisation="acme", progress=False) as lake:
        events = lake.relation("events").to_arrow_table()
        half = events.num_rows // 2
        for name, part in (("a", events.slice(0, half)), ("b", events.slice(half))):
            with fsspec.open(f"{url}/event-data/{name}.parquet", "wb") as file:
                pq.write_table(part, file)
        available = str(lake.available())
        with gl.open_events(f"{url}/event-data/*.parquet", unique=True, available=available) as table:
            assert_equal(ANALYSES["funnel"](table), ANALYSES["funnel"](lake))
            raw_events.active_players(table, OVER)
    for name in ("a", "b", "c"):
        lines = write_lines(state.parent / "lines.gz", wrapped(event(user_id=f"{name}1")), wrapped(event(user_id=name)))
        with fsspec.open(f"{url}/raw/{name}/1.json.gz", "wb") as file:
            file.write(lines.read_bytes())
    first = take(state.parent / "imported", f"{url}/raw/*/*.gz")
    again = take(state.parent / "imported", f"{url}/raw/*/*.gz")
    print(json.dumps([first.files, first.damaged, again.files, again.taken_before]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
