"""Earlier events as the keyed runs have them, and the runs that a batch adds.

Looking up the keys of new events costs as much as there are of them, whatever the size of the lake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from gamelens.sandbox.building.fact_source import DAY_NUMBER, EPOCH_DAY
from gamelens.sandbox.building.named_events import NamedEvents, is_first
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.storage.keyed_runs import (
    PAYLOADS,
    Columns,
    Hits,
    Ints,
    Keys,
    day_of,
    player_day,
    text_keys,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

_TEXTS_AT_ONCE: Final = 1_000_000
_ROWS_AT_ONCE: Final = 2_000_000
_THREADS: Final = 2
_NO_KEYS: Final = np.empty(0, dtype=np.uint64)
_NONE: Final = Keys(_NO_KEYS, _NO_KEYS)


class RunFacts:
    """Facts of the last version, looked up in its keyed runs (`FactSource`).

    Args:
        writer: the writer of the batch's files.
        sql: the engine that has the batch.
        scratch: folder for temporary files.
    """

    def __init__(self, writer: PartWriter, sql: DuckDBWriter, scratch: Path) -> None:
        self._writer, self._sql, self._scratch = writer, sql, scratch
        self._sessions = self._impressions = _NONE

    def create_repeated(self) -> None:
        """Create `repeated`, and write the runs of the names."""
        named = NamedEvents(self._scratch)
        batches = self._sql.batches(
            "SELECT seq, game_id, event_uuid FROM staged WHERE event_uuid IS NOT NULL", _TEXTS_AT_ONCE
        )
        for keys, seq in _in_threads(_sorted_names, batches):
            named.add(keys, seq)
        repeated = [np.empty(0, dtype=np.int64)]
        for keys, seq in named.take_ranges():
            is_new = is_first(keys, seq)
            is_new[self._writer.runs("names").find(keys).places] = False
            repeated.append(seq[~is_new])
            self._writer.add_keys("names", Keys(keys.high[is_new], keys.low[is_new]), {})
        self._sql.view("numbers_of_repeated", pa.table({"seq": np.concatenate(repeated)}))
        self._sql.create("repeated", "SELECT seq FROM numbers_of_repeated")

    def create_known_players(self) -> None:
        """Create `known_players`."""
        players = self._sql.table("SELECT game_id, user_id FROM found")
        places, known = _earliest(self._writer.runs("players").find(_keys_of(players)))
        rows = players.take(pa.array(places))
        for name, values in known.items():
            rows = rows.append_column(name, pa.array(values))
        self._sql.view("known_players", rows)

    def create_known_days(self, name: str, spans: str) -> None:
        """Create *name* of the earlier memberships in the relation *spans*."""
        rows = self._sql.table(f"SELECT player, first, last FROM {spans}")  # noqa: S608
        player, first, last = (rows.column(column).to_numpy() for column in ("player", "first", "last"))
        runs = self._writer.runs("player_days")
        hits = runs.between(player_day(player, np.maximum(first, 0)), player_day(player, last))
        found = {"player": player[hits.places], "number": day_of(hits.keys), "combination": hits.columns["combination"]}
        self._sql.view("days_of_runs", pa.table(found))
        day = EPOCH_DAY.format("number")
        self._sql.create(name, f"SELECT DISTINCT player, {day} AS day, combination FROM days_of_runs")  # noqa: S608

    def key_sql(self, *_: str) -> str:
        """Return the SQL of a number for each row, from 0 on, by which it is found again."""
        return "row_number() OVER () - 1"

    def create_old_sessions(self) -> None:
        """Create `old_sessions`."""
        self._sessions = self._keys("SELECT game_id, session_id FROM session_ids ORDER BY sid")
        hits = self._writer.runs("sessions").find(self._sessions)
        self._sql.view("sessions_of_runs", pa.table({"sid": hits.places, **hits.columns}))
        self._sql.create(
            "old_sessions",
            f"SELECT sid, {EPOCH_DAY.format('runs.day')} AS day, combination, max(ended) > 0 AS ended "  # noqa: S608
            "FROM sessions_of_runs runs GROUP BY ALL",
        )

    def create_old_impressions(self) -> None:
        """Create `old_impressions`."""
        self._impressions = self._keys("SELECT game_id, ilrd_id FROM impression_ids ORDER BY iid")
        hits = self._writer.runs("impressions").find(self._impressions)
        self._sql.view("impressions_of_runs", pa.table({"iid": hits.places, "number": hits.columns["day"]}))
        self._sql.create(
            "old_impressions",
            f"SELECT iid, count(*) AS had, {EPOCH_DAY.format('min(number)')} AS day "  # noqa: S608
            "FROM impressions_of_runs GROUP BY iid",
        )

    def note_players(self) -> None:
        """Write the run of the players that are new or have moved."""
        names = ", ".join(("game_id", "user_id", *PAYLOADS["players"]))
        rows = self._sql.table(f"SELECT {names} FROM numbers WHERE install_change <> 0 OR payment_change <> 0")  # noqa: S608
        columns = {name: rows.column(name).to_numpy() for name in PAYLOADS["players"]}
        self._writer.add_keys("players", _keys_of(rows), columns)

    def note_days(self) -> None:
        """Write the run of the memberships of players."""
        new = self._sql.table(f"SELECT player, {DAY_NUMBER.format('day')} AS day, combination FROM new_daily")  # noqa: S608
        player, day, combination = (new.column(name).to_numpy() for name in ("player", "day", "combination"))
        self._writer.add_run("player_days", player_day(player, day), None, {"combination": combination})

    def note_sessions(self) -> None:
        """Write the runs of the sessions."""
        day = DAY_NUMBER.format("day")
        changes = f"SELECT sid, {day} AS day, combination, ended_counts AS ended FROM session_changes"  # noqa: S608
        for batch in self._sql.batches(changes, _ROWS_AT_ONCE):
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            self._writer.add_keys("sessions", _taken(self._sessions, columns.pop("sid")), columns)

    def note_impressions(self) -> None:
        """Write the run of the impressions."""
        days = self._sql.table(f"SELECT iid, {DAY_NUMBER.format('day')} AS day FROM impression_days")  # noqa: S608
        keys = _taken(self._impressions, days.column("iid").to_numpy())
        self._writer.add_keys("impressions", keys, {"day": days.column("day").to_numpy()})

    def _keys(self, query: str) -> Keys:
        """Return the keys of the two columns of *query*."""
        keys = [text_keys(*batch.columns) for batch in self._sql.batches(query, _TEXTS_AT_ONCE)]
        return Keys(*(np.concatenate([_NO_KEYS, *halves]) for halves in zip(*keys, strict=True))) if keys else _NONE


def _keys_of(players: pa.Table) -> Keys:
    return text_keys(*(players.column(name).combine_chunks() for name in ("game_id", "user_id")))


def _taken(keys: Keys, places: Ints) -> Keys:
    return Keys(keys.high[places], keys.low[places])


def _sorted_names(batch: pa.RecordBatch) -> tuple[Keys, Ints]:
    """Return the keys of the names of *batch*, sorted, and the numbers of their events."""
    keys = text_keys(batch.column("game_id"), batch.column("event_uuid"))
    order = np.argsort(keys.high)
    return _taken(keys, order), batch.column("seq").to_numpy()[order]


def _in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield *function* of each item in order, a few of them computed ahead."""
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


def _earliest(hits: Hits) -> tuple[Ints, Columns]:
    """Return the places of the players that the runs have, and the earliest events of each."""
    known: Columns = {}
    for time, seq, others in (
        ("installed_us", "install_seq", ("combination", "player")),
        ("paid_us", "paid_seq", ()),
    ):
        order = np.lexsort((hits.columns[seq], hits.columns[time], hits.places))
        places, first = np.unique(hits.places[order], return_index=True)
        known |= {name: hits.columns[name][order][first] for name in (time, seq, *others)}
    return places, known
