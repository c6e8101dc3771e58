"""Builder of the parts that new events add to an organisation.

Nothing that exists is rewritten: each table gets at most one new part, whatever the days of the events, and what must
be known of earlier events is looked up in the keyed runs. So the cost is that of the new events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.processing.first_events import DAY_US, MOMENT, STATED, number_players, write_stated_installs
from gamelens.sandbox.processing.memberships import EPOCH_DAY, write_impressions, write_players, write_sessions
from gamelens.sandbox.processing.part_writer import GROUP_ROWS, PartWriter
from gamelens.sandbox.storage.keyed_runs import (
    LAST_DAY,
    SETTLED_KEYS,
    Ints,
    Keys,
    day_of,
    player_day,
    repeated_rows,
    text_keys,
)
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import (
    BIG,
    CUBE_DIMENSIONS,
    EVENT_COLUMNS,
    MEASURES,
    PLAYER_DIMENSIONS,
    PURCHASE_CURRENCY,
    RETURN_DIMENSIONS,
    SECONDS,
    SLIM_DIMENSIONS,
)
from gamelens.sandbox.storage.manifest import LakeFile

NewNames = tuple[Keys, Ints, Ints]
"""Sorted keys that no run has, the numbers of their events, and those of others."""

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_EVENTS: Final = 2_000_000
"""Events that are taken at once. More are split, but for those of an empty lake."""

_NAMES_AT_ONCE: Final = 1_000_000
_THREADS: Final = 2
_COLUMNS: Final = ", ".join(EVENT_COLUMNS)
_DIMENSIONS: Final = ", ".join(PLAYER_DIMENSIONS)
_SAME: Final = " AND ".join(f"{{0}}.{name} IS NOT DISTINCT FROM combined.{name}" for name in PLAYER_DIMENSIONS)
_SAME_WITHOUT_MONEY: Final = f"{_SAME} AND combined.currency IS NULL"


def build_parts(
    organisation: str,
    staged: Sequence[Path],
    lake: Lake,
    scratch: Path,
    *,
    folder: str,
    is_anew: bool = False,
    stated: Sequence[Path] = (),
) -> tuple[list[LakeFile], list[Path], int]:
    """Write the parts that the *staged* events add.

    Returns the parts, the files that they replace, and the number of repeated events, which are dropped (Wire 4.8,
    Repeated events). Nothing of the last version is changed.

    Args:
        organisation: name of the organisation.
        staged: files of new events, with the columns `EVENT_COLUMNS`.
        lake: the lake to extend.
        scratch: folder for temporary files of the engine.
        folder: name of a new folder of the lake.
        is_anew: whether the events are all there are, and the parts replace those of the last version.
        stated: files of installs that an import names, with the columns of `stated_installs`.
    """
    sql = DuckDBWriter(scratch)
    try:
        writer = PartWriter(organisation, lake, sql, folder, is_anew=is_anew)
        sql.view_files("staged", staged, EVENT_COLUMNS)
        repeated = _drop_repeated(writer, scratch)
        ((fresh,),) = sql.run("SELECT count(*) FROM fresh")
        if fresh:
            _group(writer)
            _combine(writer)
            write_stated_installs(writer, stated)
            number_players(writer, has_stated=bool(stated), same=_SAME_WITHOUT_MONEY.format("users"))
            _join_numbers(writer)
            write_players(writer)
            write_sessions(writer)
            write_impressions(writer)
            _write_returns(writer)
            _write_events(writer, staged, fresh, is_whole=not repeated)
        writer.sync()
        return writer.files, writer.retired, repeated
    finally:
        sql.close()


def _drop_repeated(writer: PartWriter, scratch: Path) -> int:
    """Create the relation `fresh` of events that are not repeated, and count the others.

    The first copy to arrive counts, whether the others arrive with it or years later (Wire 4.8, Repeated events).
    Writes the runs of the names.
    """
    sql, runs = writer.sql, writer.runs("names")
    numbers = [np.empty(0, dtype=np.int64)]
    added: list[tuple[Path, Path]] = []

    def sorted_names(batch: pa.RecordBatch) -> NewNames:
        keys = text_keys(batch.column("game_id"), batch.column("event_uuid"))
        seq = batch.column("seq").to_numpy()
        is_known = np.zeros(len(batch), dtype=np.bool_)
        is_known[runs.find(keys).places] = True
        order = np.argsort(keys.high)
        order = order[~is_known[order]]
        return Keys(keys.high[order], keys.low[order]), seq[order], seq[is_known]

    named = "SELECT seq, game_id, event_uuid FROM staged WHERE event_uuid IS NOT NULL"
    for chunks in _grouped(_in_threads(sorted_names, sql.batches(named, _NAMES_AT_ONCE)), SETTLED_KEYS):
        numbers += [known for _, _, known in chunks]
        high, low = (np.concatenate(halves) for halves in zip(*(keys for keys, _, _ in chunks), strict=True))
        order = np.argsort(high, kind="stable")  # merges the chunks, which are sorted, in linear time
        path = writer.add_keys("names", Keys(high[order], low[order]), {})
        if path:
            added.append((path, scratch / f"{path.stem}.npy"))
            np.save(added[-1][1], np.concatenate([seq for _, seq, _ in chunks])[order])
    sql.view("repeated_names", pa.table({"seq": np.concatenate([*numbers, *repeated_rows(added)])}))
    sql.run("CREATE TEMP TABLE repeated AS FROM repeated_names")
    ((repeated,),) = sql.run("SELECT count(*) FROM repeated")
    ((events,),) = sql.run("SELECT count(*) FROM staged")
    rows = f"SELECT {_COLUMNS} FROM staged" + (" ANTI JOIN repeated USING (seq)" if repeated else "")  # noqa: S608
    sql.run(f"CREATE TEMP {'TABLE' if events <= MOST_EVENTS else 'VIEW'} fresh AS {rows}")
    return int(repeated)


def _grouped(chunks: Iterable[NewNames], most: int) -> Iterator[list[NewNames]]:
    """Yield *chunks* in groups of at least *most* names.

    Every run is searched, so that few large ones are better.
    """
    group: list[NewNames] = []
    for chunk in chunks:
        group.append(chunk)
        if sum(len(seq) for _, seq, _ in group) >= most:
            yield group
            group = []
    if group:
        yield group


def _in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield *function* of each item in order, a few of them computed ahead."""
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


def _group(writer: PartWriter) -> None:
    """Create `users` and `visits`.

    They have the events of each user, and of each session, by day and dimensions. `first` is the earliest of them.
    """
    writer.sql.run(f"""
        CREATE TEMP TABLE users AS
        SELECT day, {_DIMENSIONS}, user_id, {PURCHASE_CURRENCY} AS currency,
            {_sums("CASE WHEN category = 'business' THEN money END")}, min({MOMENT}) AS first, min(seq) AS first_seq
        FROM fresh GROUP BY ALL""")  # noqa: S608
    writer.sql.run(f"""
        CREATE TEMP TABLE visits AS
        SELECT day, {_DIMENSIONS}, session_id, bool_or(category = 'session_end') AS ended
        FROM fresh WHERE session_id IS NOT NULL GROUP BY ALL""")  # noqa: S608


def _combine(writer: PartWriter) -> None:
    """Create `combined` and write the combinations that are new.

    It has a number for each combination of dimensions and currency.
    """
    sql = writer.sql
    writer.view("known_combinations", "combinations")
    known = writer.snapshot.rows("combinations")
    sql.run(f"""
        CREATE TEMP TABLE added_combinations AS
        SELECT {known} + row_number() OVER () AS combination, * FROM (
            SELECT {_DIMENSIONS}, currency FROM users UNION SELECT {_DIMENSIONS}, NULL FROM users
            EXCEPT SELECT {_DIMENSIONS}, currency FROM known_combinations)""")  # noqa: S608
    sql.run("CREATE TEMP TABLE combined AS FROM known_combinations UNION ALL BY NAME FROM added_combinations")
    writer.add("combinations", "FROM added_combinations")


def _join_numbers(writer: PartWriter) -> None:
    """Create `active_rows`, `session_ids` and `session_rows` (see `memberships`)."""
    sql = writer.sql
    sql.run(f"""
        CREATE TEMP TABLE active_rows AS
        SELECT users.* EXCLUDE (user_id, first, first_seq), player, combination FROM users
        LEFT JOIN (SELECT game_id, user_id, player FROM numbers) USING (game_id, user_id)
        JOIN combined ON {_SAME.format("users")} AND users.currency IS NOT DISTINCT FROM combined.currency""")  # noqa: S608
    sql.run("""
        CREATE TEMP TABLE session_ids AS
        SELECT row_number() OVER () - 1 AS sid, * FROM (SELECT DISTINCT game_id, session_id FROM visits)""")
    sql.run(f"""
        CREATE TEMP TABLE session_rows AS SELECT sid, day, combination, ended FROM visits
        JOIN session_ids USING (game_id, session_id) JOIN combined ON {_SAME_WITHOUT_MONEY.format("visits")}""")  # noqa: S608


def _write_returns(writer: PartWriter) -> None:
    """Write the new returns, and move those of players whose install has moved.

    A return moves from the age by the old install to that by the new one. The players of age 0 are all installs of the
    day: the day of a stated install counts whether or not it has an event.
    """
    sql = writer.sql
    player = sql.table("SELECT player FROM numbers WHERE install = 2").column("player").to_numpy()
    hits = writer.runs("player_days").between(*(player_day(player, np.full(len(player), day)) for day in (0, LAST_DAY)))
    sql.view("moved_days", pa.table({"player": player[hits.places], "number": day_of(hits.keys)}))
    old = f"""
        SELECT player, CAST(floor(old_us / {DAY_US}) AS BIGINT) AS install, old_combination AS combination, -1 AS n,
            old_seq >= {STATED} AS is_stated
        FROM numbers WHERE install = 2"""  # noqa: S608
    new = f"""
        SELECT player, CAST(floor(installed_us / {DAY_US}) AS BIGINT) AS install, combination, 1 AS n,
            install_seq >= {STATED} AS is_stated, install AS change
        FROM numbers"""  # noqa: S608
    seen = f"NOT (is_stated AND {EPOCH_DAY.format('install')} = day)"
    rows = f"""
        WITH new AS ({new}), changed AS ({old} UNION ALL SELECT * EXCLUDE (change) FROM new WHERE change = 2)
        SELECT day, install, combination, n FROM new_days JOIN new USING (player) WHERE {seen}
        UNION ALL
        SELECT day, install, combination, n FROM (
            SELECT DISTINCT player, {EPOCH_DAY.format("number")} AS day FROM moved_days
        ) JOIN changed USING (player) WHERE {seen}
        UNION ALL
        SELECT {EPOCH_DAY.format("install")}, install, combination, n FROM (
            FROM changed UNION ALL SELECT * EXCLUDE (change) FROM new WHERE change = 1
        ) WHERE is_stated"""  # noqa: S608
    dimensions = ", ".join(RETURN_DIMENSIONS)
    writer.add(
        "returns",
        f"SELECT day, day - DATE '1970-01-01' - install AS age, {dimensions}, sum(n) AS players "  # noqa: S608
        f"FROM ({rows}) JOIN combined USING (combination) GROUP BY ALL HAVING sum(n) <> 0",
    )


def _write_events(writer: PartWriter, staged: Sequence[Path], fresh: int, *, is_whole: bool) -> None:
    """Write the events and the tables that are sums of them.

    Files that need no sorting become parts as they are: many files, and one of a single row group.

    Args:
        writer: the writer of the run.
        staged: files of the events.
        fresh: number of new events.
        is_whole: whether all events of the files are new.
    """
    for name, dimensions in (("slim", SLIM_DIMENSIONS), ("cube", CUBE_DIMENSIONS)):
        grouped = f"SELECT day, {', '.join(dimensions)}, currency, {_sums('money')} FROM fresh GROUP BY ALL"  # noqa: S608
        writer.add(name, grouped)
    is_one_group = len(staged) == 1 and fresh <= GROUP_ROWS
    if is_whole and (is_one_group or fresh > MOST_EVENTS):
        for path in staged:
            writer.adopt("events", path)
    else:
        writer.add("events", "FROM fresh")


def _sums(money: str) -> str:
    sums = [f"CAST(sum({sql}) AS BIGINT) AS {measure}" for measure, sql in MEASURES.items()]
    return ", ".join([*sums, f"CAST(sum({SECONDS}) AS {BIG}) AS seconds", f"CAST(sum({money}) AS {BIG}) AS money"])
