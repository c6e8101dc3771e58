"""The lake's tables made from scratch, in the plainest SQL, for comparison with those that processing adds up.

`rebuild` makes every table of `lake_schema.COLUMNS` but `combinations` from all events. `comparable` sums the rows of
any tables up, so that those of two lakes with the same events are equal, whatever their parts and player numbers.
`write_parts` writes a lake whose parts add up, from batches of events in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.sandbox.storage.lake import Snapshot, folder_of
from gamelens.sandbox.storage.lake_schema import (
    COLUMNS,
    CUBE_DIMENSIONS,
    EVENT_COLUMNS,
    EVENT_DIMENSIONS,
    MEASURES,
    PLAYER_DIMENSIONS,
    PURCHASE_CURRENCY,
    RETURN_DIMENSIONS,
    SLIM_DIMENSIONS,
    UNDATED,
)
from gamelens.sandbox.storage.manifest import LakePart

TABLES: Final = tuple(name for name in COLUMNS if name != "combinations")
"""Names of the tables that are rebuilt."""
ARROW_TYPES: Final = {
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "DECIMAL(38, 0)": pa.decimal128(38, 0),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
}
"""Types of columns, by those of the lake's schema."""

_CELL: Final = ", ".join(PLAYER_DIMENSIONS)
_PERIODS: Final = {"weekly": "week", "monthly": "month"}
_SUMMED: Final = (
    *(*MEASURES, "money", "players", "sessions", "ended_sessions"),
    *("counts", "ended_counts", "returners"),
)
_SCOPES: Final = {  # what has several memberships, in each shared table
    "daily_players_shared": "day, game_id, user_id",
    "weekly_players_shared": "day, game_id, user_id",
    "monthly_players_shared": "day, game_id, user_id",
    "sessions_shared": "game_id, session_id",
}
_FIRST: Final = "SELECT *, row_number() OVER (PARTITION BY game_id, user_id ORDER BY ts, seq) AS nth FROM"
_NUMBERS: Final = """
    CREATE OR REPLACE TEMP TABLE numbers AS
    SELECT game_id, user_id, row_number() OVER (ORDER BY ts, seq) AS player
    FROM ({first} events WHERE user_id IS NOT NULL) WHERE nth = 1"""


def rebuild(events: pa.Table, stated: pa.Table | None = None) -> dict[str, pa.Table]:
    """Return every table made of all *events*, which have the columns of the events table and no repetition.

    Players are numbered in the order of their first events, by time and arrival. *stated* are the installs that imports
    name, of each player the same.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("events", events)
        if stated is not None:
            connection.register("named", stated)
            connection.execute("CREATE TEMP TABLE stated AS SELECT DISTINCT * FROM named")
        connection.execute(_NUMBERS.format(first=_FIRST))
        return _tables(connection)


def comparable(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the rows of *tables* with equal ones summed up, in a form that has no player numbers.

    Rows of zeros are left out, replaced first events too, and of shared tables those that need not be there.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in TABLES:
            connection.register(f"of_{name}", tables[name])
        return {name: connection.sql(_comparable(name)).to_arrow_table() for name in TABLES}


def lake_tables(snapshot: Snapshot, *names: str) -> dict[str, pa.Table]:
    """Return the rows of all parts of every table of *snapshot*, or of those called *names*, as they are."""
    tables = {}
    for name in names or TABLES:
        schema = pa.schema([(column, ARROW_TYPES[kind]) for column, kind in COLUMNS[name].items()])
        parts = [pq.ParquetFile(path).read() for path in snapshot.files(name)]
        for place, part in enumerate(parts):
            lacking = [column for column in schema.names if column not in part.column_names]
            for column in lacking:  # of a part that an earlier release wrote
                part = part.append_column(column, pa.nulls(len(part), schema.field(column).type))
            parts[place] = part.select(schema.names).cast(schema)
        tables[name] = pa.concat_tables(parts) if parts else schema.empty_table()
    return tables


def differences(one: Mapping[str, pa.Table], other: Mapping[str, pa.Table]) -> dict[str, tuple[int, int]]:
    """Return for each table that differs the rows that only *one* has, and those that only *other* has."""
    if all(_in_order(one[name]).equals(_in_order(other[name])) for name in TABLES):
        return {}
    return different_rows(comparable(one), comparable(other))


def different_rows(one: Mapping[str, pa.Table], other: Mapping[str, pa.Table]) -> dict[str, tuple[int, int]]:
    """Return what `differences` does, of rows as they are."""
    found = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in TABLES:
            if _in_order(one[name]).equals(_in_order(other[name])):
                continue  # which costs a tenth of the statements
            connection.register("one", one[name])
            connection.register("other", other[name])
            sql = "SELECT count(*) FROM (FROM {} EXCEPT ALL FROM {})"
            counts = [
                connection.sql(sql.format(*pair)).fetchall()[0][0] for pair in (("one", "other"), ("other", "one"))
            ]
            if any(counts):
                found[name] = counts[0], counts[1]
    return found


def _in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def write_parts(
    events: pa.Table, root: Path, organisation: str, version: int, *, random: Random | None = None
) -> list[LakePart]:
    """Write a lake of *events* below *root* and return its files.

    With *random*, the events come in batches that are not in sequence, each batch adds parts with what it changes,
    and some parts are cut in two.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        writer = _PartWriter(connection, root, f"{version}/{folder_of(organisation)}", organisation)
        connection.register("all_events", events)
        batches = random.randrange(1, 4) if random else 1
        seed = random.randrange(10**6) if random else 0
        connection.execute(
            f"CREATE TEMP TABLE batched AS SELECT *, hash(seq + {seed}) % {batches} AS batch FROM all_events"
        )
        for name in TABLES:
            connection.execute(f"CREATE TEMP TABLE old_{name} AS {_empty(name)}")
        connection.execute("CREATE TEMP TABLE numbers (game_id VARCHAR, user_id VARCHAR, player BIGINT)")
        for batch in range(batches):
            _add_batch(connection, writer, batch, random)
        for name in ("installs", "payments"):
            writer.write(f"{name}_moved", f"SELECT now.* FROM old_{name}_now now ANTI JOIN old_{name} USING (ts, seq)")
        return writer.files


def _add_batch(connection: duckdb.DuckDBPyConnection, writer: _PartWriter, batch: int, random: Random | None) -> None:
    """Write what the events of *batch* add to those of the batches before it."""
    columns = ", ".join(EVENT_COLUMNS)
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW events AS SELECT {columns} FROM batched WHERE batch <= {int(batch)}"
    )
    connection.execute(f"""
        INSERT INTO numbers SELECT game_id, user_id, row_number() OVER (ORDER BY ts, seq)
            + (SELECT count(*) FROM numbers)
        FROM ({_FIRST} events WHERE user_id IS NOT NULL) ANTI JOIN numbers USING (game_id, user_id) WHERE nth = 1""")
    for name, rows in _tables(connection).items():
        connection.register("new", rows)
        if name in ("installs", "payments"):  # what was written stays, and moves into another table
            connection.execute(f"CREATE OR REPLACE TEMP TABLE old_{name}_now AS FROM new")
            added = f"SELECT new.* FROM new ANTI JOIN old_{name} USING (player)"
        elif name in ("installs_moved", "payments_moved", "stated_installs"):
            continue
        elif name in ("events", "impressions_shared"):
            added = f"FROM new EXCEPT ALL FROM old_{name}"
        else:
            added = _difference(name)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE added AS {added}")
        cut = random is not None and random.random() < 0.3
        for half in ("hash(added) % 2 = 0", "hash(added) % 2 = 1") if cut else ("TRUE",):
            writer.write(name, f"FROM added WHERE {half}")
        kept = f"FROM old_{name} UNION ALL FROM added" if name in ("installs", "payments") else "FROM new"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE old_{name} AS {kept}")


class _PartWriter:
    """Writer of Parquet files into a folder of the lake at *root*."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, root: Path, folder: str, organisation: str) -> None:
        self._connection = connection
        self._root = root
        self._folder = folder
        self._organisation = organisation
        self.files: list[LakePart] = []
        (root / folder).mkdir(parents=True)

    def write(self, name: str, rows: str) -> None:
        """Write *rows* as a part of the table *name*, unless there are none."""
        dates = "NULL, NULL" if name in UNDATED else "min(day), max(day)"
        ((count, first, last),) = self._connection.execute(f"SELECT count(*), {dates} FROM ({rows})").fetchall()
        if not count:
            return
        path = f"{self._folder}/{name}-{len(self.files)}.parquet"
        columns = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in COLUMNS[name].items())
        target = str(self._root / path).replace("'", "''")
        self._connection.execute(f"COPY (SELECT {columns} FROM ({rows})) TO '{target}' (FORMAT parquet)")
        days = {"first_day": first, "last_day": last}
        self.files.append(LakePart.of_file(self._root / path, self._organisation, name, rows=count, **days))


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """Return every table made of the rows of `events`, with the players in `numbers`."""
    columns = COLUMNS["stated_installs"].items()
    named = ", ".join(f"{name} {kind}" for name, kind in columns)
    connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS stated ({named})")
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE numbered AS
        SELECT events.*, player, {PURCHASE_CURRENCY} AS bought
        FROM events LEFT JOIN numbers USING (game_id, user_id)""")
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE first_events AS
        SELECT * REPLACE (
            coalesce(stated_at, ts) AS ts, CAST(coalesce(stated_at, ts) AS DATE) AS day,
            CASE WHEN stated_at <> ts THEN coalesce(first_build, build) ELSE build END AS build
        ) FROM (
            SELECT numbered.*, stated.ts AS stated_at, first_build, row_number() OVER (
                PARTITION BY game_id, user_id
                ORDER BY coalesce(numbered.ts <> stated.ts, FALSE), CASE WHEN stated.ts IS NULL THEN numbered.ts END,
                    seq
            ) AS nth
            FROM numbered LEFT JOIN stated USING (game_id, user_id) WHERE player IS NOT NULL
        ) WHERE nth = 1""")
    business = "CASE WHEN category = 'business' THEN money END"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE memberships AS
        SELECT day, {_CELL}, bought AS currency, player, {_sums(business)}, CAST(player IS NOT NULL AS BIGINT) AS counts
        FROM numbered GROUP BY ALL""")
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE visits AS
        SELECT day, {_CELL}, session_id, 1 AS counts, max(CAST(category = 'session_end' AS BIGINT)) AS ended_counts
        FROM events WHERE session_id IS NOT NULL GROUP BY ALL""")
    of_players = "memberships LEFT JOIN (SELECT player, day AS installed FROM first_events) USING (player)"
    selects = {
        "events": "FROM events",
        "slim": f"SELECT day, {', '.join(SLIM_DIMENSIONS)}, currency, {_sums('money')} FROM events GROUP BY ALL",
        "cube": f"SELECT day, {', '.join(CUBE_DIMENSIONS)}, currency, {_sums('money')} FROM events GROUP BY ALL",
        "active": "FROM memberships",
        "daily_players": f"SELECT day, {_CELL}, currency, {_added_up()}, sum(counts) AS players, "
        f"coalesce(sum(counts) FILTER (WHERE day > installed), 0) AS returners FROM {of_players} GROUP BY ALL",
        "daily_players_shared": f"SELECT day, {_CELL}, currency, player, counts, day > installed AS returners "
        f"FROM {of_players} WHERE player IS NOT NULL QUALIFY count(*) OVER (PARTITION BY day, player) > 1",
        "sessions": f"SELECT day, {_CELL}, sum(counts) AS sessions, sum(ended_counts) AS ended_sessions "
        "FROM visits GROUP BY ALL",
        "sessions_shared": "FROM visits QUALIFY count(*) OVER (PARTITION BY game_id, session_id) > 1",
        "impressions_shared": f"SELECT day, {', '.join(EVENT_DIMENSIONS)}, ilrd_id FROM events "
        "WHERE category = 'impression' QUALIFY count(*) OVER (PARTITION BY game_id, ilrd_id) > 1",
        "installs": "FROM first_events",
        "payments": f"FROM ({_FIRST} numbered WHERE player IS NOT NULL AND category = 'business') WHERE nth = 1",
        "stated_installs": _empty("stated_installs"),
        "installs_moved": _empty("installs_moved"),
        "payments_moved": _empty("payments_moved"),
        "returns": f"""
            WITH installs AS (FROM first_events)
            SELECT days.day, days.day - installs.day AS age,
                {", ".join(f"installs.{name}" for name in RETURN_DIMENSIONS)}, count(*) AS players
            FROM (SELECT day, player FROM memberships UNION SELECT day, player FROM installs) days
            JOIN installs USING (player) GROUP BY ALL""",
    }
    for prefix, unit in _PERIODS.items():
        several = f"SELECT DISTINCT CAST(date_trunc('{unit}', day) AS DATE) AS day, {_CELL}, currency, player "
        several += "FROM memberships WHERE player IS NOT NULL"
        selects[f"{prefix}_players"] = (
            f"SELECT day, {_CELL}, currency, count(*) AS players FROM ({several}) GROUP BY ALL"
        )
        selects[f"{prefix}_players_shared"] = (
            f"SELECT *, 1 AS counts FROM ({several}) QUALIFY count(*) OVER (PARTITION BY day, player) > 1"
        )
    tables = {}
    for name in TABLES:
        typed = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in COLUMNS[name].items())
        tables[name] = connection.sql(f"SELECT {typed} FROM ({selects[name]})").to_arrow_table()
    return tables


def _difference(name: str) -> str:
    """Return the rows that added to those of the old table *name* sum up to the new one."""
    keys, sums = _keys_and_sums(COLUMNS[name])
    negative = ", ".join(f"-{column} AS {column}" for column in sums)
    total = ", ".join(f"coalesce(sum({column}), 0) AS {column}" for column in sums)
    return f"""
        SELECT {", ".join(keys)}, {total} FROM (
            SELECT {", ".join((*keys, *sums))} FROM new UNION ALL SELECT {", ".join(keys)}, {negative} FROM old_{name})
        GROUP BY {", ".join(keys)} HAVING {" OR ".join(f"coalesce(sum({column}), 0) <> 0" for column in sums)}"""


def _comparable(name: str) -> str:
    """Return the rows of the relation `of_` *name*, summed up and without player numbers."""
    if name in ("installs_moved", "payments_moved", "stated_installs"):
        return _empty(name)
    if name in ("installs", "payments"):
        columns = ", ".join(column for column in COLUMNS[name] if column != "player")
        return f"""
            SELECT {columns} FROM of_{name} ANTI JOIN of_{name}_moved USING (player)
            UNION ALL SELECT {columns} FROM of_{name}_moved"""
    if name == "events":
        return "FROM of_events"
    if name == "impressions_shared":
        return "FROM of_impressions_shared QUALIFY count(*) OVER (PARTITION BY game_id, ilrd_id) > 1"
    keys, sums = _keys_and_sums(COLUMNS[name])
    rows = f"of_{name}"
    if "player" in keys:
        keys = tuple("user_id" if key == "player" else key for key in keys)
        rows += " LEFT JOIN (SELECT DISTINCT player, user_id FROM of_installs) USING (player)"
    total = ", ".join(f"coalesce(sum({column}), 0) AS {column}" for column in sums)
    is_there = " OR ".join(f"coalesce(sum({column}), 0) <> 0" for column in sums)
    only = f"QUALIFY count(*) OVER (PARTITION BY {_SCOPES[name]}) > 1" if name in _SCOPES else ""
    return f"SELECT {', '.join(keys)}, {total} FROM {rows} GROUP BY {', '.join(keys)} HAVING {is_there} {only}"


def _keys_and_sums(columns: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sums = tuple(name for name in columns if name in _SUMMED)
    return tuple(name for name in columns if name not in sums), sums


def _sums(money: str) -> str:
    """Return the columns of the measures, summed over event rows."""
    return ", ".join(f"sum({sql}) AS {name}" for name, sql in (MEASURES | {"money": money}).items())


def _added_up() -> str:
    return ", ".join(f"sum({name}) AS {name}" for name in (*MEASURES, "money"))


def _empty(name: str) -> str:
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {column}" for column, kind in COLUMNS[name].items())
    return f"SELECT {columns} WHERE FALSE"
