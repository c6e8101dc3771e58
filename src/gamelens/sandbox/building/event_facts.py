"""What a batch must know of earlier events, from two sources with the same answers.

`RunFacts` looks keys up in the keyed runs, so that only the batch costs time, and writes the runs of what is new.
`TableFacts` joins the tables of the last version, as a cluster does; the version that it helps to make has no runs, and
`restore_runs` makes the runs of its tables. Each lookup takes relations of the batch and returns the SQL of its rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.storage.keyed_runs import (
    APART,
    AT_EVENT,
    BY_EVENT,
    LAST_DAY,
    PAYLOADS,
    PREFIX,
    SETTLED_KEYS,
    Columns,
    Ints,
    Keys,
    UInts,
    array_of,
    day_of,
    numbers_of,
    one_array,
    player_day,
    text_keys,
)
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import PLAYER_DIMENSIONS

Item = TypeVar("Item")
Result = TypeVar("Result")

NEVER: Final = (1 << 63) - 1
"""Stands for time and `seq` of a first purchase, of a player who has none."""


DAY_US: Final = 86_400_000_000
EPOCH_DAY: Final = "CAST(DATE '1970-01-01' + CAST({} AS INTEGER) AS DATE)"
"""SQL of the date of a number of days since 1970."""
DAY_NUMBER: Final = "date_diff('day', DATE '1970-01-01', {})"
"""SQL of the number of days from 1970 to a date."""

_MEMBER: Final = ", ".join(PLAYER_DIMENSIONS)
_SAME: Final = " AND ".join(f"{{0}}.{name} IS NOT DISTINCT FROM combined.{name}" for name in PLAYER_DIMENSIONS)
SAME_CELL: Final = f"{_SAME} AND {{0}}.currency IS NOT DISTINCT FROM combined.currency"
"""SQL condition that a row has the dimensions and the currency of a row of `combined`."""
SAME_WITHOUT_MONEY: Final = f"{_SAME} AND combined.currency IS NULL"
"""SQL condition that a row has the dimensions of a row of `combined` without a currency."""

_TEXTS_AT_ONCE: Final = 1_000_000
_ROWS_AT_ONCE: Final = 2_000_000
_THREADS: Final = 2
_SAMPLE_EVERY: Final = 1 << 12
_NO_KEYS: Final = np.empty(0, dtype=np.uint64)


class RunFacts:
    """Earlier events as the keyed runs have them."""

    def __init__(self, writer: PartWriter, sql: DuckDBWriter, scratch: Path) -> None:
        self._writer, self._sql, self._scratch = writer, sql, scratch
        self._sessions = self._impressions = Keys(_NO_KEYS, _NO_KEYS)
        self._lookups = 0

    def repeated(self, staged: str) -> str:
        """Return `seq` of the events of *staged* whose name came before, and write the runs of the names.

        The first copy to arrive counts, whether the others arrive with it or years later (Wire 4.8, Repeated events).
        """
        named = NamedEvents(self._scratch)
        texts = f"SELECT seq, game_id, event_uuid FROM {staged} WHERE event_uuid IS NOT NULL"
        for keys, seq in _in_threads(_sorted_names, self._sql.batches(texts, _TEXTS_AT_ONCE)):
            named.add(keys, seq)
        repeated = [np.empty(0, dtype=np.int64)]
        for keys, seq in named.take_ranges():
            is_new = is_first(keys, seq)
            is_new[self._writer.runs("names").find(keys).places] = False
            repeated.append(seq[~is_new])
            self._writer.add_run("names", keys.high[is_new], keys.low[is_new], {})
        return f"SELECT seq FROM {self._named({'seq': np.concatenate(repeated)})}"

    def known_players(self, found: str, _combined: str) -> str:
        """Return the players of *found* that had events.

        It has game_id, user_id, player; installed_us, stated, install_seq and combination of the install; paid_us and
        paid_seq of the earliest purchase (`NEVER` without one).
        """
        players = self._sql.table(f"SELECT game_id, user_id FROM {found}")
        hits = self._writer.runs("players").find(_keys_of(players))
        known: Columns = {}
        none = np.zeros_like(hits.columns["stated"])
        for time, seq, others, stated in (
            ("installed_us", "install_seq", ("combination", "player", "stated"), hits.columns["stated"]),
            ("paid_us", "paid_seq", (), none),
        ):  # a player is in several runs, with what was known at the time
            order = np.lexsort((hits.columns[seq], -stated, hits.columns[time], stated == BY_EVENT, hits.places))
            places, first = np.unique(hits.places[order], return_index=True)
            known |= {name: hits.columns[name][order][first] for name in (time, seq, *others)}
        rows = players.take(array_of(places))
        return f"SELECT * FROM {self._named({name: rows.column(name) for name in rows.column_names} | known)}"

    def known_days(self, spans: str, _combined: str) -> str:
        """Return day, player and combination of the earlier memberships in *spans*.

        The query *spans* has player, first and last, both days since 1970 and included.
        """
        rows = self._sql.table(spans)
        player, first, last = (numbers_of(rows.column(column)) for column in ("player", "first", "last"))
        runs = self._writer.runs("player_days")
        hits = runs.between(player_day(player, np.maximum(first, 0)), player_day(player, last))
        found = self._named({"player": player[hits.places], "number": day_of(hits.keys), **hits.columns})
        return f"SELECT DISTINCT {EPOCH_DAY.format('number')} AS day, player, combination FROM {found}"

    def key_sql(self, *_: str) -> str:
        """Return the SQL of a key for each row of distinct columns, the game and a text: the place of the row."""
        return "row_number() OVER () - 1"

    def old_sessions(self, ids: str, _combined: str) -> str:
        """Return the earlier memberships of the sessions in *ids*: sid, day, combination, ended.

        The relation *ids* has sid, game_id and session_id.
        """
        self._sessions = self._keys(f"SELECT game_id, session_id FROM {ids} ORDER BY sid")
        hits = self._writer.runs("sessions").find(self._sessions)
        found = self._named({"sid": hits.places, **hits.columns})
        return (
            f"SELECT sid, {EPOCH_DAY.format('found.day')} AS day, combination, max(ended) > 0 AS ended "
            f"FROM {found} AS found GROUP BY ALL"
        )

    def old_impressions(self, ids: str) -> str:
        """Return iid, `had`, the number of earlier impressions of an id, and `day` of the first of them.

        The relation *ids* has iid, game_id and ilrd_id.
        """
        self._impressions = self._keys(f"SELECT game_id, ilrd_id FROM {ids} ORDER BY iid")
        hits = self._writer.runs("impressions").find(self._impressions)
        found = self._named({"iid": hits.places, "number": hits.columns["day"]})
        return f"SELECT iid, count(*) AS had, {EPOCH_DAY.format('min(number)')} AS day FROM {found} GROUP BY iid"

    def note_players(self, numbers: str) -> None:
        """Write the run of the players of *numbers* that are new or whose first event or purchase has moved."""
        names = ", ".join(("game_id", "user_id", *PAYLOADS["players"]))
        rows = self._sql.table(f"SELECT {names} FROM {numbers} WHERE install_change <> 0 OR payment_change <> 0")
        keys = _keys_of(rows)
        self._writer.add_run("players", keys.high, keys.low, _columns(rows, *PAYLOADS["players"]))

    def note_days(self, days: str) -> None:
        """Write the run of the memberships of *days*: day, player, combination."""
        new = _columns(self._sql.table(f"SELECT player, {DAY_NUMBER.format('day')} AS day, combination FROM {days}"))
        self._writer.add_run("player_days", player_day(new.pop("player"), new.pop("day")), None, new)

    def note_sessions(self, changes: str) -> None:
        """Write the runs of *changes* to the sessions that were looked up last: sid, day, combination, ended_counts."""
        day = DAY_NUMBER.format("day")
        rows = f"SELECT sid, {day} AS day, combination, ended_counts AS ended FROM {changes}"
        for batch in self._sql.batches(rows, _ROWS_AT_ONCE):
            new = _columns(batch)
            sid = new.pop("sid")
            self._writer.add_run("sessions", self._sessions.high[sid], self._sessions.low[sid], new)

    def note_impressions(self, days: str) -> None:
        """Write the run of *days*: iid, of those that were looked up last, and day of each impression."""
        new = _columns(self._sql.table(f"SELECT iid, {DAY_NUMBER.format('day')} AS day FROM {days}"))
        iid = new.pop("iid")
        self._writer.add_run("impressions", self._impressions.high[iid], self._impressions.low[iid], new)

    def _keys(self, query: str) -> Keys:
        """Return the keys of the two columns of *query*."""
        keys = [text_keys(*batch.columns) for batch in self._sql.batches(query, _TEXTS_AT_ONCE)]
        high, low = (np.concatenate([_NO_KEYS, *(key[half] for key in keys)]) for half in (0, 1))
        return Keys(high, low)

    def _named(self, columns: dict[str, Any]) -> str:
        """Return the name of rows with *columns*. They are there until the next lookup, because they can be many."""
        if self._lookups:
            self._sql.hide(f"lookup_{self._lookups}")
        self._lookups += 1
        arrays = {name: array_of(rows) if isinstance(rows, np.ndarray) else rows for name, rows in columns.items()}
        self._sql.view(f"lookup_{self._lookups}", pa.table(arrays))
        return f"lookup_{self._lookups}"


class TableFacts:
    """Earlier events as the tables of the last version have them. It answers as `RunFacts` does, and keeps nothing."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer = writer

    def repeated(self, staged: str) -> str:
        """Return `seq` of the events of *staged* whose name came before."""
        return f"""
            SELECT seq FROM (
                SELECT seq, row_number() OVER (PARTITION BY game_id, event_uuid ORDER BY seq) AS nth
                FROM {staged} WHERE event_uuid IS NOT NULL
            ) AS named WHERE nth > 1
            UNION SELECT seq FROM {staged} SEMI JOIN {self._writer.known("events")} USING (game_id, event_uuid)"""

    def known_players(self, found: str, combined: str) -> str:
        """Return the players of *found* that had events. An install is stated if it is at a time that is stated."""
        return f"""
            WITH known AS (SELECT * FROM {self._firsts("installs")} SEMI JOIN {found} USING (game_id, user_id)),
            seen AS (
                SELECT events.seq FROM {self._writer.known("events")} AS events
                JOIN known ON events.seq = known.seq AND events.ts = known.ts
            ),
            stated AS (
                SELECT DISTINCT known.player FROM {self._writer.known("stated_installs")} AS named
                JOIN known ON named.game_id = known.game_id AND named.user_id = known.user_id AND named.ts = known.ts
            ),
            paid AS (SELECT player, epoch_us(ts) AS paid_us, seq AS paid_seq FROM {self._firsts("payments")})
            SELECT known.game_id, known.user_id, known.player, epoch_us(known.ts) AS installed_us,
                CASE WHEN stated.player IS NULL THEN {BY_EVENT} WHEN seen.seq IS NULL THEN {APART} ELSE {AT_EVENT} END
                    AS stated, known.seq AS install_seq, combination,
                coalesce(paid_us, {NEVER}) AS paid_us, coalesce(paid_seq, {NEVER}) AS paid_seq
            FROM known LEFT JOIN seen ON known.seq = seen.seq LEFT JOIN paid ON known.player = paid.player
            LEFT JOIN stated ON known.player = stated.player
            JOIN {combined} AS combined ON {SAME_WITHOUT_MONEY.format("known")}"""

    def known_days(self, spans: str, combined: str) -> str:
        """Return day, player and combination of the earlier memberships in *spans*."""
        return f"""
            WITH members AS (
                SELECT DISTINCT day, {_MEMBER}, currency, active.player FROM {self._writer.known("active")} AS active
                JOIN ({spans}) AS spans ON active.player = spans.player
                AND {DAY_NUMBER.format("active.day")} BETWEEN first AND last
            )
            SELECT day, player, combination FROM members
            JOIN {combined} AS combined ON {SAME_CELL.format("members")}"""

    def key_sql(self, *columns: str) -> str:
        """Return the SQL of a key for each row: its *columns* together."""
        return f"row({', '.join(columns)})"

    def old_sessions(self, ids: str, combined: str) -> str:
        """Return the earlier memberships of the sessions in *ids*."""
        return f"""
            WITH earlier AS (
                SELECT day, {_MEMBER}, session_id, bool_or(category = 'session_end') AS ended
                FROM {self._writer.known("events")} SEMI JOIN {ids} USING (game_id, session_id) GROUP BY ALL
            )
            SELECT {self.key_sql("earlier.game_id", "session_id")} AS sid, day, combination, ended FROM earlier
            JOIN {combined} AS combined ON {SAME_WITHOUT_MONEY.format("earlier")}"""

    def old_impressions(self, ids: str) -> str:
        """Return iid, number and first day of the earlier impressions of *ids*."""
        return f"""
            SELECT {self.key_sql("game_id", "ilrd_id")} AS iid, count(*) AS had, min(day) AS day
            FROM {self._writer.known("events")} SEMI JOIN {ids} USING (game_id, ilrd_id)
            WHERE category = 'impression' GROUP BY game_id, ilrd_id"""

    def note_players(self, _: str) -> None:
        """Keep nothing: the tables have all of it."""

    note_days = note_sessions = note_impressions = note_players

    def _firsts(self, table: str) -> str:
        """Return the rows of a table of first events as they are now."""
        columns = f"player, user_id, ts, seq, {_MEMBER}"
        before, moved = self._writer.known(table), self._writer.known(f"{table}_moved")
        return f"""(
            SELECT {columns} FROM {before} ANTI JOIN {moved} USING (player)
            UNION ALL SELECT {columns} FROM {moved}) AS {table}"""


class NamedEvents:
    """Keys of the names of a batch's events, with the numbers of these, in files below *scratch*.

    They come back in ranges of keys, and every range becomes a run. So all copies of a name are in one range, the runs
    that a large batch is compared with are few, and memory does not grow with the batch.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._paths: list[Path] = []
        self._samples: list[UInts] = []
        self._events = 0

    def add(self, keys: Keys, seq: Ints) -> None:
        """Add events, the keys of whose names are sorted by their higher half."""
        self._paths.append(self._scratch / f"names-{len(self._paths)}.npy")
        with pa.OSFile(str(self._paths[-1]), "wb") as file:  # its errors have a number, which numpy's lack
            np.save(file, np.stack([keys.high, keys.low, seq.view(np.uint64)]))
        self._samples.append(keys.high[::_SAMPLE_EVERY].copy())
        self._events += len(seq)

    def take_ranges(self, most: int = SETTLED_KEYS) -> Iterator[tuple[Keys, Ints]]:
        """Yield keys and numbers in ranges of about *most* events.

        The keys are sorted by their higher half. The files are deleted at the end.
        """
        ranges = -(-self._events // most)
        samples = np.sort(np.concatenate([_NO_KEYS, *self._samples]))
        marks = np.unique(samples[[len(samples) * place // ranges for place in range(1, ranges)]])
        for place in range(len(marks) + 1 if self._paths else 0):
            rows = np.concatenate([_range_of(path, marks, place) for path in self._paths], axis=1)
            high, low, seq = rows[:, np.argsort(rows[0], kind="stable")]  # merges sorted files in linear time
            yield Keys(high, low), seq.view(np.int64)
        for path in self._paths:
            path.unlink()


def _range_of(path: Path, marks: UInts, place: int) -> UInts:
    """Return the columns of the rows in the range of keys before the mark at *place*."""
    rows: UInts = np.load(path, mmap_mode="r")  # not kept: pages that are mapped count as memory
    cuts = (0, *np.searchsorted(rows[0], marks).tolist(), rows.shape[1])
    return np.array(rows[:, cuts[place] : cuts[place + 1]])


def is_first(keys: Keys, seq: Ints) -> NDArray[np.bool_]:
    """Return for each event whether no other of the same key has a lower number.

    The keys are sorted by their higher half.
    """
    has_neighbour = np.zeros(len(seq), dtype=np.bool_)
    is_same = np.diff(keys.high) == 0
    has_neighbour[:-1] |= is_same
    has_neighbour[1:] |= is_same
    suspects = np.flatnonzero(has_neighbour)
    suspects = suspects[np.lexsort((seq[suspects], keys.low[suspects], keys.high[suspects]))]
    is_again = (np.diff(keys.high[suspects]) == 0) & (np.diff(keys.low[suspects]) == 0)
    found = np.ones(len(seq), dtype=np.bool_)
    found[suspects[1:][is_again]] = False
    return found


def _columns(rows: pa.Table | pa.RecordBatch, *names: str) -> Columns:
    """Return the columns called *names*, by default all."""
    return {name: numbers_of(rows.column(name)) for name in names or rows.schema.names}


def _keys_of(players: pa.Table) -> Keys:
    return text_keys(*(one_array(players.column(name)) for name in ("game_id", "user_id")))


def _sorted_names(batch: pa.RecordBatch) -> tuple[Keys, Ints]:
    """Return the keys of the names of *batch*, sorted, and the numbers of their events."""
    keys = text_keys(batch.column("game_id"), batch.column("event_uuid"))
    order = np.argsort(keys.high)
    return Keys(keys.high[order], keys.low[order]), numbers_of(batch.column("seq"))[order]


def _in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield *function* of each item in order, a few of them computed ahead."""
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


def restore_runs(organisation: str, lake: Lake, scratch: Path) -> None:
    """Give *organisation* keyed runs, as a version of *lake*, if it has events and no run.

    A cluster writes none, and a run of processing on this machine needs them. *scratch* is for files of the engine.

    Raises:
        Refused: the engine failed. The lake is as before.
    """
    tables = lake.snapshot(organisation).tables
    if "events" not in tables or any(kind.startswith(PREFIX) for kind in tables):
        return
    sql = DuckDBWriter(scratch)
    try:
        writer = PartWriter(organisation, lake, sql, str(lake.next_version()))
        earlier, runs = TableFacts(writer), RunFacts(writer, sql, scratch)
        events, installs, combined = (writer.known(table) for table in ("events", "installs", "combinations"))

        runs.repeated(events)  # none is, but this writes the runs of the names
        players = earlier.known_players(installs, combined)
        runs.note_players(f"(SELECT *, 1 AS install_change, 0 AS payment_change FROM ({players}) AS known) AS numbers")
        spans = f"SELECT player, 0 AS first, {LAST_DAY} AS last FROM {installs}"
        runs.note_days(f"({earlier.known_days(spans, combined)}) AS days")

        found = f"SELECT DISTINCT game_id, session_id FROM {events} WHERE session_id IS NOT NULL"
        sql.create("session_ids", f"SELECT {runs.key_sql()} AS sid, game_id, session_id FROM ({found})")
        runs.old_sessions("session_ids", combined)
        sessions = earlier.old_sessions("session_ids", combined)
        runs.note_sessions(f"""(
            SELECT session_ids.sid, day, combination, CAST(ended AS INTEGER) AS ended_counts FROM ({sessions}) AS old
            JOIN session_ids ON old.sid = {earlier.key_sql("game_id", "session_id")}) AS changes""")

        impressions = f"{events} WHERE category = 'impression' AND starts_with(ilrd_id, 'i')"
        found = f"SELECT DISTINCT game_id, ilrd_id FROM {impressions}"
        sql.create("impression_ids", f"SELECT {runs.key_sql()} AS iid, game_id, ilrd_id FROM ({found})")
        runs.old_impressions("impression_ids")
        runs.note_impressions(f"""(
            SELECT iid, day FROM {events} JOIN impression_ids USING (game_id, ilrd_id)
            WHERE category = 'impression') AS impressions""")
        writer.sync()
        lake.compact(writer.files, [])
    finally:
        sql.close()
