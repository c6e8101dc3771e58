"""The same events as `play` sends, as columns: Parquet files of one day each, for a lake that takes them as its own.

Nothing is serialised, sent or decoded on the way, so that a hundred million events take minutes. Blocks of players are
cut by day as they come and gathered into chapters of a fixed number of events, each of which adds one row group to the
file of every day it has events on: memory does not grow with players, and hardly with days.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelens.errors import BadQuery
from gamelens.simulator.columns import DAY_S, EPOCH
from gamelens.simulator.facts import facts_of, spread
from gamelens.simulator.traffic import Part, checked_ids, draw_part, first_day, parts
from gamelens.simulator.workers import in_order

if TYPE_CHECKING:
    from gamelens.simulator.ledger import Ledger
    from gamelens.simulator.scenario import Scenario

_TEXT: Final = pa.string()
_NAME: Final = pa.dictionary(pa.int32(), _TEXT)

SCHEMA: Final = pa.schema(
    {
        "seq": pa.int64(),  # the order sent, see FIRST_SEQ
        "ts": pa.timestamp("us"),  # UTC
        "day": pa.date32(),
        **dict.fromkeys(("game_id", "country_code", "platform", "build", "category"), _NAME),
        **dict.fromkeys(("ad_sdk_name", "ad_type", "ad_action", "severity"), _NAME),
        **dict.fromkeys(("ilrd_sdk_vendor", "ilrd_adunit_name", "ilrd_network_name", "ilrd_adunit_format"), _NAME),
        **dict.fromkeys(("install_publisher", "ab_id", "ab_variant_id"), _NAME),
        **dict.fromkeys(("user_id", "session_id", "event_uuid"), _TEXT),
        "ilrd_id": _TEXT,  # of an impression: i and the vendor's id, else u and event_uuid
        "length": pa.int64(),  # seconds, of a session that ended
        "money": pa.int64(),  # hundredths of a purchase, billionths of an impression, in `currency`
        "currency": _NAME,
    }
)
"""What a lake holds about an event, in its order: the ledger's columns, with what an event earns in one of them."""

FIRST_SEQ: Final = -(1 << 62)
"""Of the first event: all of them came before the first that is ever received, whose number is above 0."""

_IMPRESSION_IDS: Final = (("i", "ilrd_id"), ("u", "event_uuid"))
CHAPTER_EVENTS: Final = 1 << 21
_MOST_OPEN: Final = 512
_THREADS: Final = 2
_FORMAT: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    "store_schema": False,  # which columns have a dictionary is this room's own business
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
    chapter_events: int = CHAPTER_EVENTS,
    on_events: Callable[[int], object] = lambda _: None,
) -> dict[date, list[Path]]:
    """Write every event that `play` would send to files below *folder*; answer those of each day.

    It is one file a day, unless there are more days than may be open files. Arguments are those of `play`. Of about
    *chapter_events* events at a time, each day's are one row group; twice as many are held. *on_events* is told how
    many more there are now and then.

    Raises:
        BadQuery: as `play` does, or the scenario has delivery or dirt, which only a collector can judge.
    """
    if not scenario.is_clean:
        raise BadQuery("scenario", scenario.name, "has delivery or dirt, which only a collector can judge: send it")
    begins = first_day(scenario, ends_on)
    work = partial(_draw_facts, scenario, begins, checked_ids(scenario, game_ids))
    with _memory_kept(), ThreadPoolExecutor(_THREADS) as threads:
        days = _Days(folder, threads, chapter_events, is_kept_open=scenario.days <= _MOST_OPEN)
        for facts in in_order(work, parts(scenario), workers=workers):
            if ledger is not None:
                ledger.record(facts)
            days.add(facts)
            on_events(facts.num_rows)
        return days.finish()


@contextlib.contextmanager
def _memory_kept() -> Iterator[None]:
    """Have the system's allocator serve Arrow for a while.

    Buffers of the same sizes come and go; Arrow's own allocator gives them back to the system in between, which has to
    clear them again: a tenth of all there is to do.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _draw_facts(scenario: Scenario, begins: date, game_ids: list[str], part: Part) -> pa.Table:
    block, ids = draw_part(scenario, begins, part)
    return facts_of(block, ids, game=scenario.games[part.game], game_id=game_ids[part.game], scenario=scenario)


def rows_of(facts: pa.Table, *, seq: int) -> pa.Table:
    """*facts*, rows of the ledger, as rows of `SCHEMA` by day; the first was sent as number *seq*."""
    day = facts["client_ts"].to_numpy() // DAY_S
    order = np.argsort(day, kind="stable")
    facts = facts.take(order)
    made = {
        "seq": pa.array(seq + order),
        "ts": pa.array(facts["client_ts"].to_numpy() * 1_000_000).view(SCHEMA.field("ts").type),
        "day": pa.array(day[order].astype(np.int32)).view(pa.date32()),
        "user_id": facts["user_id"].cast(_TEXT),
        "session_id": facts["session_id"].cast(_TEXT),
        "ilrd_id": _impression_ids(facts),
        "money": pc.coalesce(facts["amount"], facts["ilrd_nano"]),
        "currency": _either(facts["currency"], facts["ilrd_currency"]),
    }
    return pa.table({name: made[name] if name in made else facts[name] for name in SCHEMA.names}, schema=SCHEMA)


class _Days:
    """The files of all days in *folder*; *threads* make rows of facts and write them while the caller draws more.

    What waits is a chapter that is made and one that is written.
    """

    def __init__(self, folder: Path, threads: ThreadPoolExecutor, chapter_events: int, *, is_kept_open: bool) -> None:
        self._folder, self._threads, self._is_kept_open = folder, threads, is_kept_open
        self._chapter_events = chapter_events
        self._files: dict[date, _DayFile] = {}
        self._seq = self._written_up_to = FIRST_SEQ
        self._chapter: list[Future[pa.Table]] = []
        self._writing: list[Future[None]] = []

    def add(self, facts: pa.Table) -> None:
        """Have *facts* too, which were sent after all that are there."""
        self._chapter.append(self._threads.submit(rows_of, facts, seq=self._seq))
        self._seq += facts.num_rows
        if self._seq - self._written_up_to >= self._chapter_events:
            self._write()

    def finish(self) -> dict[date, list[Path]]:
        """Write what is left; answer the files of each day."""
        self._write()
        self._settle()
        for file in self._files.values():
            file.close()
        return {day: self._files[day].paths for day in sorted(self._files)}

    def _write(self) -> None:
        """Begin to write the chapter, once the one before is written."""
        self._settle()
        chapter = [made.result() for made in self._chapter]
        self._chapter, self._written_up_to = [], self._seq
        for day, rows in _by_day(chapter):
            file = self._files.setdefault(day, _DayFile(self._folder, day, is_kept_open=self._is_kept_open))
            self._writing.append(self._threads.submit(file.add, rows))

    def _settle(self) -> None:
        for written in self._writing:
            written.result()
        self._writing = []


class _DayFile:
    """The file of one *day*, or the files where it is not *is_kept_open*; used by one thread at a time."""

    def __init__(self, folder: Path, day: date, *, is_kept_open: bool) -> None:
        self.paths: list[Path] = []
        self._folder, self._day, self._is_kept_open = folder, day, is_kept_open
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> None:
        """Write *rows* as one row group."""
        if self._writer is None:
            path = self._folder / f"{self._day}-{len(self.paths)}.parquet"
            self._writer = pq.ParquetWriter(path, SCHEMA, **_FORMAT)
            self.paths.append(path)
        self._writer.write_table(rows.unify_dictionaries().combine_chunks(), row_group_size=rows.num_rows)
        if not self._is_kept_open:
            self.close()

    def close(self) -> None:
        """Finish the file that is open, if one is."""
        if self._writer:
            self._writer.close()
            self._writer = None


def _by_day(chapter: list[pa.Table]) -> Iterator[tuple[date, pa.Table]]:
    """The rows of each day that *chapter* has any of."""
    parts: dict[int, list[pa.RecordBatch]] = {}
    for batch in chain.from_iterable(table.combine_chunks().to_batches() for table in chapter):
        days, starts, counts = np.unique(batch["day"].view(pa.int32()), return_index=True, return_counts=True)
        for day, start, count in zip(days.tolist(), starts.tolist(), counts.tolist(), strict=True):
            parts.setdefault(day, []).append(batch.slice(start, count))
    for day, batches in sorted(parts.items()):
        yield EPOCH + timedelta(days=day), pa.Table.from_batches(batches)


def _impression_ids(facts: pa.Table) -> pa.Array:
    """What tells impressions apart, and which of two ids it is; null for other events."""
    shown = facts["ilrd_sdk_vendor"].is_valid().to_numpy()
    told = facts.select(["ilrd_id", "event_uuid"]).take(np.flatnonzero(shown))
    by_vendor, by_event = (pc.binary_join_element_wise(prefix, told[name], "") for prefix, name in _IMPRESSION_IDS)
    return spread(pc.coalesce(by_vendor, by_event).combine_chunks(), shown)


def _either(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.DictionaryArray:
    """The value that one of two columns of names has, where not both are null."""
    one, other = first.combine_chunks(), second.combine_chunks()
    names = list(dict.fromkeys([*one.dictionary.to_pylist(), *other.dictionary.to_pylist()]))
    codes = pc.coalesce(*(_recoded(column, names) for column in (one, other)))
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, _TEXT))


def _recoded(column: pa.DictionaryArray, names: list[str]) -> pa.Array:
    """Positions in *names* of the values of *column*."""
    places = pa.array([names.index(name) for name in column.dictionary.to_pylist()], pa.int32())
    return places.take(column.indices)
