"""The events of `play` as Parquet files of one day each, or of a few, in the schema of a lake.

No event is serialised, sent or decoded, so a hundred million events take minutes. The columns of blocks, those that the
ledger has too, are collected until they hold a fixed number of events and sorted by day. Each collection adds one row
group to the file of every day it has events on, so memory does not grow with players, and hardly with days.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens.errors import BadQuery
from gamelens.simulator.events.event_columns import event_columns_of, ledger_rows_of, place_texts
from gamelens.simulator.output.play import (
    BlockTask,
    block_tasks,
    checked_ids,
    first_day,
    in_order,
    map_in_order,
    play_task,
    played_days,
)
from gamelens.simulator.population.behaviour import EventSlot
from gamelens.simulator.population.session_times import DAY_S
from gamelens.wire.dimensions import EVENT_COLUMNS

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger
    from gamelens.simulator.scenarios.scenario import Scenario

FIRST_SEQ: Final = -(1 << 62)
"""Sequence number of the first event.

It is so low that all these events precede the first event received, whose number is above 0.
"""
ROW_GROUP_EVENTS: Final = 1 << 20
_MAX_OPEN_FILES: Final = 512
_THREADS: Final = 2
_PLAIN: Final = ("user_id", "session_id", "event_uuid", "ilrd_id")
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
_TYPES: Final = {"whole": pa.int64(), "text": _TEXT, "time": pa.timestamp("us"), "date": pa.date32()}
SCHEMA: Final = pa.schema(
    {name: pa.string() if name in _PLAIN else _TYPES[kind] for name, kind in EVENT_COLUMNS.items()}
)
"""The columns of a lake, in its order."""
UNFILLED: Final = ("arrived_at", "custom_01", "custom_02", "custom_03")
"""Columns without values: nothing is sent, and the games of scenarios have no fields of their own."""
_FORMAT: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    "store_schema": False,  # readers need not know which columns have a dictionary
    "write_statistics": ["seq", "ts", "day"],
    "use_dictionary": [name for name in SCHEMA.names if name not in ("seq", "ts", "event_uuid", "ilrd_id")],
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
    before_day: int | None = None,
    days_a_file: int = 1,
    on_events: Callable[[int], object] = lambda _: None,
) -> dict[date, list[Path]]:
    """Write every event of `play` to files below *folder* and return the files of each day, by their first day.

    A day has one file, unless there are more than may be open at once.

    Args:
        scenario: the scenario to play.
        folder: the folder of the files.
        ends_on: the day after the last one, today in UTC by default.
        game_ids: ids of the receiving games, as for `play`.
        ledger: records every event.
        workers: number of processes.
        row_group_events: number of events collected before the row groups are written. Twice as many are in memory.
        before_day: leaves out the events of this day and later ones, counted from the first; by default of none.
        days_a_file: number of days that share a file. Each row group is of one day.
        on_events: called with the number of new events after each block.

    Raises:
        BadQuery: as `play` does, or the scenario has delivery or dirt, which only a collector can handle.
    """
    if not scenario.is_clean:
        raise BadQuery(
            "scenario",
            scenario.name,
            "has [delivery] or [dirt], which only a collector can handle: send it (--ready), or remove those tables",
        )
    begins, ids_of_games = first_day(scenario, ends_on), checked_ids(scenario, game_ids)
    before_day = scenario.days if before_day is None else before_day
    work = partial(_block_rows, scenario, begins, ids_of_games, before_day, is_recorded=ledger is not None)
    with _system_memory_pool(), ThreadPoolExecutor(_THREADS) as threads:
        stays_open = scenario.days <= _MAX_OPEN_FILES * days_a_file
        days = _DayFiles(folder, threads, row_group_events, begins, days_a_file, stays_open=stays_open)
        for rows, ledger_rows in map_in_order(work, block_tasks(scenario), workers=workers):
            if ledger is not None and ledger_rows is not None:
                ledger.record(ledger_rows)
            days.add(rows)
            on_events(len(rows))
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


def _block_rows(
    scenario: Scenario, begins: date, game_ids: list[str], before_day: int, task: BlockTask, *, is_recorded: bool
) -> tuple[pa.Table, pa.Table | None]:
    """Return the events of a block by day, in the order sent, and its rows of the ledger if asked."""
    block, ids = played_days(*play_task(scenario, begins, task), begins, (0, before_day))
    game, game_id = scenario.games[task.game], game_ids[task.game]
    ledger_rows = ledger_rows_of(block, ids, game=game, game_id=game_id, scenario=scenario) if is_recorded else None
    order = np.argsort((block.events.ts_s // DAY_S).astype(np.uint16), kind="stable")  # numpy sorts 16 bits by radix
    block, ids = in_order(order, block, ids)  # before they become columns, which are more and larger
    events = event_columns_of(block, ids, game=game, game_id=game_id, scenario=scenario)
    is_shown = block.events.slot == EventSlot.IMPRESSION
    by_vendor = len(ids.impression) > 0
    shown = np.char.add(b"i", ids.impression) if by_vendor else np.char.add(b"u", ids.event[is_shown])
    currencies = pa.chunked_array(events["currency"].chunks + events["ilrd_currency"].chunks)
    bought_in, shown_in = currencies.unify_dictionaries().chunks
    made = {
        "seq": pa.array(order),
        "ts": pc.multiply(events["client_ts"], 1_000_000).cast(pa.timestamp("us")),
        "day": pa.array((block.events.ts_s // DAY_S).astype(np.int32)).view(pa.date32()),
        "ilrd_id": place_texts(shown, is_shown),
        "money": pc.coalesce(events["amount"], events["ilrd_nano"]),
        "currency": pa.DictionaryArray.from_arrays(
            pc.coalesce(bought_in.indices, shown_in.indices), bought_in.dictionary
        ),
        **{name: pa.nulls(len(order), SCHEMA.field(name).type) for name in UNFILLED},
    }
    return pa.table({name: made[name] if name in made else events[name] for name in SCHEMA.names}), ledger_rows


class _DayFiles:
    """The files of all days in *folder*, written by *threads* while the caller simulates.

    So many days from *begins* on have one open file, or, unless it *stays_open*, a file for each collection.
    """

    def __init__(
        self,
        folder: Path,
        threads: ThreadPoolExecutor,
        row_group_events: int,
        begins: date,
        days_a_file: int,
        *,
        stays_open: bool,
    ) -> None:
        self._folder, self._threads, self._stays_open = folder, threads, stays_open
        self._row_group_events = row_group_events
        self._begins, self._days_a_file = begins, days_a_file
        self._seq = self._written_up_to = FIRST_SEQ
        self._waiting: defaultdict[date, list[tuple[pa.Table, int, int]]] = defaultdict(list)
        self._paths: defaultdict[date, list[Path]] = defaultdict(list)
        self._writers: dict[date, pq.ParquetWriter] = {}
        self._writing: list[Future[None]] = []

    def add(self, rows: pa.Table) -> None:
        """Add the *rows* of a block, sorted by day, whose events were sent after all added so far."""
        rows = rows.set_column(0, "seq", pc.add(rows["seq"], self._seq))
        days = rows["day"].to_numpy()
        starts = [0, *(np.flatnonzero(days[1:] != days[:-1]) + 1).tolist(), len(rows)]
        for start, end in pairwise(starts if len(rows) else ()):
            self._waiting[days[start].item()].append((rows, start, end))
        self._seq += len(rows)
        if self._seq - self._written_up_to >= self._row_group_events:
            self._write_waiting()

    def finish(self) -> dict[date, list[Path]]:
        """Write the rest and return the files, by their first day."""
        self._write_waiting()
        self._wait_for_writers()
        for writer in self._writers.values():
            writer.close()
        return {day: self._paths[day] for day in sorted(self._paths)}

    def _write_waiting(self) -> None:
        """Start writing what waits, after the previous row groups are written."""
        self._wait_for_writers()
        in_file: defaultdict[date, list[date]] = defaultdict(list)
        for day in sorted(self._waiting):
            in_file[day - (day - self._begins) % timedelta(days=self._days_a_file)].append(day)
        self._writing = [
            self._threads.submit(self._write, first, [self._waiting[day] for day in days])
            for first, days in in_file.items()
        ]
        self._waiting.clear()
        self._written_up_to = self._seq

    def _wait_for_writers(self) -> None:
        for future in self._writing:
            future.result()
        self._writing = []

    def _write(self, first: date, days: list[list[tuple[pa.Table, int, int]]]) -> None:
        """Write rows of several blocks, from each so many: a row group a day. One thread at a time writes a file."""
        if first not in self._writers:
            path = self._folder / f"{first}-{len(self._paths[first])}.parquet"
            self._paths[first].append(path)
            self._writers[first] = pq.ParquetWriter(path, SCHEMA, **_FORMAT)
        for places in days:
            rows = pa.concat_tables([block.slice(start, end - start) for block, start, end in places])
            # The ids of all blocks are not worth one dictionary: the writer makes one of the ids that occur.
            columns = [
                column.cast(pa.string()) if field.type == pa.string() else column.unify_dictionaries().combine_chunks()
                for field, column in zip(SCHEMA, rows.columns, strict=True)
            ]
            self._writers[first].write_table(pa.table(columns, schema=SCHEMA), row_group_size=len(rows))
        if not self._stays_open:
            self._writers.pop(first).close()
