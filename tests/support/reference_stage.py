"""The sandbox in process over a lake that `reference_lake` makes instead of processing."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from gamelens.sandbox.processing.staging import stage
from gamelens.sandbox.server import available_intervals
from gamelens.sandbox.storage.inbox import pending
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.sandbox.storage.manifest import LakePart
from support.reference_lake import write_parts
from support.sandbox_stage import Stage


class ReferenceStage(Stage):
    """A stage whose lake is made anew from everything received, in parts that are cut at random.

    Args:
        state: the state directory.
        seed: seed of the parts.
        options: those of a `Stage`.
    """

    makes_lake_anew = True

    def __init__(self, state: Path, *, seed: int = 0, **options: Any) -> None:
        super().__init__(state, **options)
        self._random = Random(seed)

    def process(self) -> dict[str, str]:
        """Make the next version of the lake of all events, and return the available intervals."""
        lake = self.sandbox.lake
        files: list[LakePart] = []
        duplicates = 0
        version = lake.last_run().version + 1
        ((last,),) = self.sandbox.store.execute("SELECT coalesce(max(id), 0) FROM batches")
        for organisation, (events, repeated) in received_events(self, last_batch=last).items():
            files += write_parts(events, lake.root, organisation, version, random=self._random)
            duplicates += repeated
        tables = [table for name in lake.organisations() for table in lake.snapshot(name).tables.values()]
        lake.commit(
            processed_ms=round(self.clock.now_s() * 1000),
            last_batch=last,
            duplicates=duplicates,
            files=files,
            retired=[part.path for parts in tables for part in parts],
        )
        self.sandbox.metrics.forget_availability()
        return available_intervals(self.sandbox.tenants, lake, self.clock)


def received_events(some: Stage, *, last_batch: int) -> dict[str, tuple[pa.Table, int]]:
    """Return the events of each organisation up to *last_batch*, without repetitions, and the number of these."""
    scratch = some.sandbox.options.state / "reference"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    columns = ", ".join(EVENT_COLUMNS)
    events = {}
    for organisation, paths in stage(pending(some.sandbox.store, after=0, up_to=last_batch), scratch).items():
        with duckdb.connect() as connection:
            connection.read_parquet([str(path) for path in paths]).create_view("staged")
            first = "event_uuid IS NULL OR row_number() OVER (PARTITION BY game_id, event_uuid ORDER BY seq) = 1"
            rows = connection.sql(f"SELECT {columns} FROM staged QUALIFY {first}").to_arrow_table()
            ((count,),) = connection.sql("SELECT count(*) FROM staged").fetchall()
            events[organisation] = rows, count - len(rows)
    shutil.rmtree(scratch)
    return events
