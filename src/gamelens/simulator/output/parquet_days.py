"""The events of `play` as Parquet files of one day each, in the schema of a lake.

No event is serialised, sent or decoded, so a hundred million events take minutes. Blocks of players are cut by day and
collected until they hold a fixed number of events. Each collection adds one row group to the file of every day it has
events on, so memory does not grow with players, and hardly with days.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.errors import BadQuery
from gamelens.simulator.events.event_columns import event_columns_of
from gamelens.simulator.ledger.ledger_columns import EPOCH
from gamelens.simulator.output.play import BlockTask, block_tasks, checked_ids, first_day, play_task
from gamelens.simulator.output.process_pool import map_in_order
from gamelens.simulator.output.row_groups import SCHEMA, BlockEvents, RowGroup, events_by_day

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

FIRST_SEQ: Final = -(1 << 62)
"""Sequence number of the first event.

It is so low that all these events precede the first event received, whose number is above 0.
"""

ROW_GROUP_EVENTS: Final = 1 << 21
_MAX_OPEN_FILES: Final = 512
_THREADS: Final = 2
_FORMAT: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    "store_schema": False,  # readers need not know which columns have a dictionary
    "write_statistics": ["seq", "ts", "day"],
    "use_dictionary": [field.name for field in SCHEMA if field.name not in ("seq", "ts", "event_uuid", "ilrd_id")],
    "column_encoding": {"seq": "DELTA_BINARY_PACKED", "ts": "DELTA_BINARY_PACKED"},
}


def play_columns(
    scenario: Scenario,
    folder: Path,
    *,
    ends_on: date | None = None,
    game_ids: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    row_group_events: int = ROW_GROUP_EVENTS,
    on_events: Callable[[int], object] = lambda _: None,
) -> dict[date, list[Path]]:
    """Write every event of `play` to files below *folder* and return those of each day.

    A day has one file, unless there are more days than files that may be open.

    Args:
        scenario: the scenario to play.
        folder: the folder of the files.
        ends_on: the day after the last one, today in UTC by default.
        game_ids: ids of the receiving games, as for `play`.
        ledger: records every event.
        workers: number of processes.
        row_group_events: number of events collected before the row groups are written. Twice as many are in memory.
        on_events: called with the number of new events after each block.

    Raises:
        BadQuery: as `play` does, or the scenario has delivery or dirt, which only a collector can judge.
    """
    if not scenario.is_clean:
        raise BadQuery(
            "scenario",
            scenario.name,
            "has delivery or dirt, which only a collector can judge: send it (--ready), "
            "or play it without its tables [delivery] and [dirt]",
        )
    begins = first_day(scenario, ends_on)
    work = partial(
        _play_block_events, scenario, begins, checked_ids(scenario, game_ids), is_recorded=ledger is not None
    )
    with _system_memory_pool(), ThreadPoolExecutor(_THREADS) as threads:
        days = _DayFiles(folder, threads, row_group_events, stays_open=scenario.days <= _MAX_OPEN_FILES)
        for block_events, ledger_rows in map_in_order(work, block_tasks(scenario), workers=workers):
            if ledger is not None and ledger_rows is not None:
                ledger.record(ledger_rows)
            days.add(block_events)
            on_events(block_events.count)
        return days.finish()


@contextlib.contextmanager
def _system_memory_pool() -> Iterator[None]:
    """Make Arrow use the system's allocator for a while.

    Buffers of the same sizes come and go. Arrow's own allocator returns them to the system in between, which has to
    clear them again: a tenth of the whole time.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _play_block_events(
    scenario: Scenario, begins: date, game_ids: list[str], task: BlockTask, *, is_recorded: bool
) -> tuple[BlockEvents, pa.Table | None]:
    """Return the events of a block, and their rows of the ledger if there is one."""
    block, ids = play_task(scenario, begins, task)
    columns = event_columns_of(
        block, ids, game=scenario.games[task.game], game_id=game_ids[task.game], scenario=scenario
    )
    return events_by_day(columns), columns.to_arrow() if is_recorded else None


class _DayFiles:
    """The files of all days in *folder*, written by *threads* while the caller simulates."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor, row_group_events: int, *, stays_open: bool) -> None:
        self._folder, self._threads, self._stays_open = folder, threads, stays_open
        self._row_group_events = row_group_events
        self._files: dict[date, _DayFile] = {}
        self._seq = self._written_up_to = FIRST_SEQ
        self._blocks: list[BlockEvents] = []
        self._writing: list[Future[None]] = []

    def add(self, block_events: BlockEvents) -> None:
        """Add events that were sent after all added so far."""
        self._blocks.append(block_events)
        self._seq += block_events.count
        if self._seq - self._written_up_to >= self._row_group_events:
            self._write()

    def finish(self) -> dict[date, list[Path]]:
        """Write the rest and return the files of each day."""
        if self._blocks:
            self._write()
        self._wait_for_writers()
        for file in self._files.values():
            file.close()
        return {day: self._files[day].paths for day in sorted(self._files)}

    def _write(self) -> None:
        """Start writing the collected events, after the previous ones are written."""
        self._wait_for_writers()
        row_group = RowGroup(self._blocks, seq=self._written_up_to)
        self._blocks, self._written_up_to = [], self._seq
        for number in row_group.days:
            day = EPOCH + timedelta(days=number)
            file = self._files.setdefault(day, _DayFile(self._folder, day, stays_open=self._stays_open))
            self._writing.append(self._threads.submit(file.add, row_group, number))

    def _wait_for_writers(self) -> None:
        for future in self._writing:
            future.result()
        self._writing = []


class _DayFile:
    """The file of one *day*, or several if it is closed after each row group.

    Only one thread at a time may use it.
    """

    def __init__(self, folder: Path, day: date, *, stays_open: bool) -> None:
        self.paths: list[Path] = []
        self._folder, self._day, self._stays_open = folder, day, stays_open
        self._writer: pq.ParquetWriter | None = None

    def add(self, row_group: RowGroup, day: int) -> None:
        """Write the events of *day* as one row group."""
        if self._writer is None:
            path = self._folder / f"{self._day}-{len(self.paths)}.parquet"
            self._writer = pq.ParquetWriter(path, SCHEMA, **_FORMAT)
            self.paths.append(path)
        rows = row_group.rows(day)
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        if not self._stays_open:
            self.close()

    def close(self) -> None:
        """Finish the open file, if there is one."""
        if self._writer:
            self._writer.close()
            self._writer = None
