"""Builder of the parts that new events add to an organisation.

Nothing that exists is rewritten: each table gets at most one new part, whatever the days of the events, and what must
be known of earlier events is looked up in the keyed runs. So the cost is that of the new events.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gamelens.sandbox.building.fact_source import (
    DAY_NUMBER,
    EPOCH_DAY,
    SAME_CELL,
    SAME_WITHOUT_MONEY,
    FactSource,
)
from gamelens.sandbox.building.first_events import DAY_US, MOMENT, STATED, number_players, write_stated_installs
from gamelens.sandbox.building.memberships import create_combined, write_impressions, write_players, write_sessions
from gamelens.sandbox.building.part_writer import GROUP_ROWS, PartWriter
from gamelens.sandbox.building.run_facts import RunFacts
from gamelens.sandbox.building.table_facts import TableFacts
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.engines.engine import BuildEngine
from gamelens.sandbox.storage.keyed_runs import LAST_DAY, PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import (
    COLUMNS,
    CUBE_DIMENSIONS,
    EVENT_COLUMNS,
    MEASURES,
    PLAYER_DIMENSIONS,
    PURCHASE_CURRENCY,
    RETURN_DIMENSIONS,
    SLIM_DIMENSIONS,
    SUMS,
)
from gamelens.sandbox.storage.manifest import LakePart

MOST_EVENTS: Final = 2_000_000
"""Events that are taken at once. More are split, but for those of an empty lake."""

_MANY_EVENTS: Final = 500_000  # so many are not sorted: in the order of arrival a row group has few days
_COLUMNS: Final = ", ".join(EVENT_COLUMNS)
_DIMENSIONS: Final = ", ".join(PLAYER_DIMENSIONS)


class BuiltParts(NamedTuple):
    """The parts that events add to a lake.

    Attributes:
        files: the parts, for the manifest.
        retired: files of the last version that they replace.
        repeated: number of repeated events, which were dropped (Wire 4.8, Repeated events).
    """

    files: list[LakePart]
    retired: list[Path]
    repeated: int


def build_parts(
    organisation: str,
    staged: Sequence[Path],
    lake: Lake,
    scratch: Path,
    *,
    folder: str,
    is_anew: bool = False,
    stated: Sequence[Path] = (),
) -> BuiltParts:
    """Write the parts that the *staged* events add. Nothing of the last version is changed.

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
        if stated:
            sql.view_files("stated_rows", stated, COLUMNS["stated_installs"])
        return _build(writer, RunFacts(writer, sql, scratch), adopted=staged, has_stated=bool(stated))
    finally:
        sql.close()


def join_parts(
    organisation: str, staged: str, lake: Lake, engine: BuildEngine, *, folder: str, stated: str | None = None
) -> BuiltParts:
    """Write the parts that events add, joined with the tables of the last version.

    The keyed runs of the last version are among the files that are replaced: the new one has none.

    Args:
        organisation: name of the organisation.
        staged: query for the new events, with the columns `EVENT_COLUMNS`.
        lake: the lake to extend.
        engine: the engine that writes.
        folder: name of a new folder of the lake.
        stated: query for the installs that an import names, with the columns of `stated_installs`.
    """
    writer = PartWriter(organisation, lake, engine, folder)
    for kind in writer.snapshot.tables:
        if kind.startswith(PREFIX):
            writer.retire(writer.snapshot.files(kind))
    engine.create_view("staged", staged)
    if stated:
        engine.create_view("stated_rows", stated)
    return _build(writer, TableFacts(writer), has_stated=bool(stated))


def _build(writer: PartWriter, facts: FactSource, *, adopted: Sequence[Path] = (), has_stated: bool) -> BuiltParts:
    """Write the parts that the events of `staged` add.

    With *has_stated*, `stated_rows` has installs that an import names. The files *adopted* become parts as they are
    where they need no sorting: many, and one of a single row group.
    """
    sql = writer.sql
    facts.create_repeated()
    ((events, repeated),) = sql.run(
        "SELECT * FROM (SELECT count(*) AS events FROM staged), (SELECT count(*) AS repeated FROM repeated)"
    )
    rows = f"SELECT {_COLUMNS} FROM staged" + (" ANTI JOIN repeated USING (seq)" if repeated else "")  # noqa: S608
    (sql.create if events <= MOST_EVENTS else sql.create_view)("fresh", rows)
    fresh = events - repeated
    if fresh:
        _group(writer)
        if has_stated:
            write_stated_installs(writer)
        create_combined(writer, has_stated=has_stated)
        writer.add("combinations", "SELECT * FROM added_combinations")
        number_players(writer, facts, has_stated=has_stated)
        _join_numbers(writer, facts)
        write_players(writer, facts)
        write_sessions(writer, facts)
        write_impressions(writer, facts)
        _write_returns(writer, facts)
        _write_sums(writer)
        needs_no_sorting = (len(adopted) == 1 and fresh <= GROUP_ROWS) or fresh >= _MANY_EVENTS
        if adopted and not repeated and needs_no_sorting:
            for path in adopted:
                writer.adopt("events", path)
        else:
            writer.add("events", f"SELECT {_COLUMNS} FROM fresh")  # noqa: S608
    writer.sync()
    return BuiltParts(writer.files, writer.retired, repeated)


def _group(writer: PartWriter) -> None:
    """Create `users` and `visits`.

    They have the events of each user, and of each session, by day and dimensions. `first` is the earliest of them.
    """
    writer.sql.create(
        "users",
        f"""
        SELECT day, {_DIMENSIONS}, user_id, {PURCHASE_CURRENCY} AS currency,
            {_sums("CASE WHEN category = 'business' THEN money END")}, min({MOMENT}) AS first, min(seq) AS first_seq
        FROM fresh GROUP BY ALL""",  # noqa: S608
    )
    writer.sql.create(
        "visits",
        f"""
        SELECT day, {_DIMENSIONS}, session_id, bool_or(category = 'session_end') AS ended
        FROM fresh WHERE session_id IS NOT NULL GROUP BY ALL""",  # noqa: S608
    )


def _join_numbers(writer: PartWriter, facts: FactSource) -> None:
    """Create `active_rows`, `session_ids` and `session_rows` (see `memberships`)."""
    sql = writer.sql
    measures = ", ".join(SUMS)
    cell = ", ".join(f"users.{name}" for name in (*PLAYER_DIMENSIONS, "currency"))
    sql.create(
        "active_rows",
        f"""
        SELECT day, {cell}, {measures}, player, combination FROM users
        LEFT JOIN (SELECT game_id, user_id, player FROM numbers) AS known
        ON users.game_id = known.game_id AND users.user_id = known.user_id
        JOIN combined ON {SAME_CELL.format("users")}""",  # noqa: S608
    )
    sql.create(
        "session_ids",
        f"""
        SELECT {facts.key_sql("game_id", "session_id")} AS sid, game_id, session_id
        FROM (SELECT DISTINCT game_id, session_id FROM visits) AS ids""",  # noqa: S608
    )
    sql.create(
        "session_rows",
        f"""
        SELECT sid, day, combination, ended FROM visits
        JOIN session_ids ON visits.game_id = session_ids.game_id AND visits.session_id = session_ids.session_id
        JOIN combined ON {SAME_WITHOUT_MONEY.format("visits")}""",  # noqa: S608
    )


def _write_returns(writer: PartWriter, facts: FactSource) -> None:
    """Write the new returns, and move those of players whose install has moved.

    A return moves from the age by the old install to that by the new one. The players of age 0 are all installs of the
    day: the day of a stated install counts whether or not it has an event.
    """
    sql = writer.sql
    sql.create_view(
        "moved_spans",
        f"SELECT player, 0 AS first, {LAST_DAY} AS last FROM numbers WHERE install_change = 2",  # noqa: S608
    )
    facts.create_known_days("moved_days", "moved_spans")
    old = f"""
        SELECT player, CAST(floor(old_us / {DAY_US}) AS BIGINT) AS install_number, old_combination AS combination,
            -1 AS n, old_seq >= {STATED} AS is_stated
        FROM numbers WHERE install_change = 2"""  # noqa: S608
    columns = "player, install_number, combination, n, is_stated"
    new = f"""
        SELECT player, CAST(floor(installed_us / {DAY_US}) AS BIGINT) AS install_number, combination, 1 AS n,
            install_seq >= {STATED} AS is_stated, install_change AS change
        FROM numbers"""  # noqa: S608
    install_day = EPOCH_DAY.format("install_number")
    seen = f"NOT (is_stated AND {install_day} = day)"
    rows = f"""
        WITH new AS ({new}),
        changed AS ({old} UNION ALL SELECT {columns} FROM new WHERE change = 2),
        placed AS (
            SELECT day, install_number, combination, n FROM new_days JOIN new USING (player) WHERE {seen}
            UNION ALL
            SELECT day, install_number, combination, n
            FROM (SELECT DISTINCT player, day FROM moved_days) AS moved JOIN changed USING (player) WHERE {seen}
            UNION ALL
            SELECT {install_day} AS day, install_number, combination, n
            FROM (SELECT {columns} FROM changed UNION ALL SELECT {columns} FROM new WHERE change = 1) AS installed
            WHERE is_stated
        )
        SELECT {DAY_NUMBER.format("day")} - install_number AS age, placed.*, {{dimensions}}
        FROM placed JOIN combined USING (combination)"""  # noqa: S608
    dimensions = ", ".join(RETURN_DIMENSIONS)
    sql.create_view("return_rows", rows.format(dimensions=dimensions))
    writer.add(
        "returns",
        f"SELECT day, age, {dimensions}, sum(n) AS players FROM return_rows "  # noqa: S608
        f"GROUP BY day, age, {dimensions} HAVING sum(n) <> 0",
    )


def _write_sums(writer: PartWriter) -> None:
    """Write the tables that are sums of the events."""
    for name, dimensions in (("slim", SLIM_DIMENSIONS), ("cube", CUBE_DIMENSIONS)):
        grouped = f"SELECT day, {', '.join(dimensions)}, currency, {_sums('money')} FROM fresh GROUP BY ALL"  # noqa: S608
        writer.add(name, grouped)


def _sums(money: str) -> str:
    summed = MEASURES | {"money": money}
    return ", ".join(f"CAST(sum({sql}) AS {SUMS[name]}) AS {name}" for name, sql in summed.items())
