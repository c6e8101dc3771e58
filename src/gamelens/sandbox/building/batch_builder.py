"""Builder of the parts that new events add to an organisation.

Nothing that exists is rewritten: each table gets at most one new part, whatever the days of the events, and what must
be known of earlier events is looked up in the keyed runs. So only new events cost time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gamelens.sandbox.building.batch import MOVED, NEW, Batch, sums_sql
from gamelens.sandbox.building.event_facts import (
    DAY_NUMBER,
    DAY_US,
    EPOCH_DAY,
    RunFacts,
    TableFacts,
)
from gamelens.sandbox.building.part_writer import GROUP_ROWS, PartWriter
from gamelens.sandbox.building.repeated_events import FreshEvents, make_fresh
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter, literal
from gamelens.sandbox.engines.engine import BuildEngine
from gamelens.sandbox.storage.dating import dated_because
from gamelens.sandbox.storage.keyed_runs import BY_EVENT, PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import (
    COLUMNS,
    CUBE_DIMENSIONS,
    EVENT_COLUMNS,
    OF_EVENT,
    PLAYER_DIMENSIONS,
    RETURN_DIMENSIONS,
    SLIM_DIMENSIONS,
    SUMS,
)
from gamelens.sandbox.storage.manifest import LakePart
from gamelens.wire.intervals import interval_of_days

_MANY_EVENTS: Final = 500_000  # so many are not sorted: in the order of arrival a row group has few days
_EVENT: Final = ", ".join(EVENT_COLUMNS)
_MEMBER: Final = ", ".join(PLAYER_DIMENSIONS)
_RETURN: Final = ", ".join(RETURN_DIMENSIONS)
_SUMS: Final = ", ".join(SUMS)


class BuiltParts(NamedTuple):
    """The parts that events add to a lake, and the files of the last version that they replace.

    *repeated* counts the repeated events, which were dropped (Wire 4.8, Repeated events), *dated* the events that are
    dated by their arrival, by reason (Wire 4.1, Event time).
    """

    files: list[LakePart]
    retired: list[Path]
    repeated: int
    dated: dict[str, int]


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

    *staged* are files with the columns `EVENT_COLUMNS`, whose folder may tell why they are dated by arrival (`dating`),
    *stated* files of installs that an import names, with the columns of `stated_installs`. The parts go into a new
    *folder* of the lake. With *is_anew* the events are all there are, and the parts replace the last version.
    """
    sql = DuckDBWriter(scratch)
    try:
        writer = PartWriter(organisation, lake, sql, folder, is_anew=is_anew)
        sql.view_files("staged", staged, EVENT_COLUMNS)
        sql.view_files("stated_rows", stated, COLUMNS["stated_installs"])
        facts, installs = RunFacts(writer, sql, scratch), "stated_rows" if stated else None
        fresh = make_fresh(sql, facts, counts_repeats=lake.counts_repeats)
        by_reason: dict[str, list[str]] = {}
        for path in staged:
            if (reason := dated_because(path)) is not None:
                by_reason.setdefault(reason, []).append(literal(str(path)))
        dated = " UNION ALL ".join(
            f"SELECT {literal(reason)} AS dated_by, seq FROM read_parquet([{', '.join(names)}])"
            for reason, names in by_reason.items()
        )
        return _write(Batch(writer, facts, installs), fresh, writer, dated, adopted=staged)
    finally:
        sql.close()


def join_parts(
    organisation: str,
    staged: str,
    lake: Lake,
    engine: BuildEngine,
    *,
    folder: str,
    stated: str | None = None,
    dated: str = "",
) -> BuiltParts:
    """Write the parts that events add, joined with the tables of the last version.

    The keyed runs of the last version are among the files that are replaced: the new one has none. *staged* is a query
    for the new events, *stated* one for the installs that an import names (`build_parts`), *dated* one for the `seq` of
    events that are dated by their arrival, with the reason `dated_by`.
    """
    writer = PartWriter(organisation, lake, engine, folder)
    for kind in writer.snapshot.tables:
        if kind.startswith(PREFIX):
            writer.retire(writer.snapshot.files(kind))
    engine.create_view("staged", staged)
    if stated:
        engine.create_view("stated_rows", stated)
    installs = "stated_rows" if stated else None
    facts = TableFacts(writer)
    fresh = make_fresh(engine, facts, counts_repeats=lake.counts_repeats)
    return _write(Batch(writer, facts, installs), fresh, writer, dated)


def _write(
    batch: Batch, fresh: FreshEvents, writer: PartWriter, dated: str, *, adopted: Sequence[Path] = ()
) -> BuiltParts:
    """Write what *batch* adds to each table, one subject after the other.

    The files *adopted* are all of its events. They become parts as they are where they need no sorting: many, and one
    of a single row group. `join_parts` describes *dated*; it is empty if there are no such events.
    """
    counts: dict[str, int] = {}
    if dated:  # before files are adopted, which moves them
        counted = f"({dated}) AS dated {fresh.anti_join_sql}"
        counts = dict(writer.sql.run(f"SELECT dated_by, count(*) FROM {counted} GROUP BY dated_by"))
    if fresh.events or batch.has_stated:
        _write_first_events(batch, writer, has_purchases=fresh.purchases > 0)
        _write_players(batch, writer)
        _write_sessions(batch, writer)
        if fresh.impressions:
            _write_impressions(batch, writer)
        _write_returns(batch, writer)
        for table, dimensions in (("slim", SLIM_DIMENSIONS), ("cube", CUBE_DIMENSIONS)):
            columns = f"day, {', '.join(dimensions)}, currency, {sums_sql('money')}"
            writer.add(table, f"SELECT {columns} FROM fresh GROUP BY ALL")
        needs_no_sorting = (len(adopted) == 1 and fresh.events <= GROUP_ROWS) or fresh.events >= _MANY_EVENTS
        if adopted and not fresh.repeats and needs_no_sorting:
            for path in adopted:
                writer.adopt("events", path)
        else:
            writer.add("events", f"SELECT {_EVENT} FROM fresh")
    writer.sync()
    return BuiltParts(writer.files, writer.retired, fresh.repeats, counts)


def _write_first_events(batch: Batch, writer: PartWriter, *, has_purchases: bool) -> None:
    """Write combinations, and the first event and the first purchase of each new player.

    A player whose event comes late may have an earlier first event than was known, or an import states another install:
    its row in `installs_moved` then replaces the row in `installs` (Wire 4.9, Late events), and so for purchases.
    """
    if batch.has_stated:
        writer.add(
            "stated_installs",
            f"SELECT game_id, user_id, make_timestamp(stated_us) AS ts, first_build FROM {batch.stated} AS stated "
            f"ANTI JOIN {writer.known('stated_installs')} AS known ON stated.game_id = known.game_id "
            "AND stated.user_id = known.user_id AND epoch_us(known.ts) <= stated_us "
            f"SEMI JOIN {batch.numbers} AS numbers "  # of a player without an event nothing is known
            "ON stated.game_id = numbers.game_id AND stated.user_id = numbers.user_id",
        )
    writer.add("combinations", f"SELECT * FROM {batch.added_combinations}")
    of_event = [f"fresh.{name}" for name in ("game_id", "user_id", "seq", *OF_EVENT)]
    # an install has the build of its combination, because an import may state another than the event has
    of_install = [*(name for name in of_event if name != "fresh.build"), "combined.build AS build"]
    combined = f"JOIN {batch.combined} AS combined ON numbers.combination = combined.combination"
    firsts = [("installs", "install_change", "installed_us", "install_seq", of_install, combined)]
    if has_purchases:
        firsts.append(("payments", "payment_change", "paid_us", "paid_seq", of_event, ""))
    for table, change, us, event, columns, joined in firsts:
        rows = f"""
            SELECT player, {", ".join(columns)}, make_timestamp({us}) AS ts
            FROM fresh JOIN {batch.numbers} AS numbers ON fresh.seq = {event} {joined}
            WHERE {change} = {{}}"""
        writer.add(table, rows.format(NEW))
        if batch.moves[table]:
            moved = f"FROM {batch.numbers} WHERE {change} = {MOVED}"
            order = ", ".join(COLUMNS[table])
            before, old = writer.known(table), writer.known(f"{table}_moved")
            now = f"SELECT {order} FROM ({rows.format(MOVED)}) AS moved"
            if batch.has_stated and table == "installs":  # the event whose values a stated install has may be known
                same = ", ".join(f"earlier.{name}" for name in COLUMNS[table] if name not in ("ts", "build"))
                now += f"""
                    UNION ALL SELECT {order} FROM (
                        SELECT {same}, combined.build, make_timestamp(installed_us) AS ts FROM (
                            SELECT * FROM {before} WHERE player NOT IN (SELECT player FROM {old})
                            UNION ALL SELECT * FROM {old}
                        ) AS earlier JOIN {batch.numbers} AS numbers
                        ON earlier.player = numbers.player AND earlier.seq = {event} {joined}
                        WHERE {change} = {MOVED}
                    ) AS stated"""
            writer.retire(writer.snapshot.files(f"{table}_moved"))
            writer.add(
                f"{table}_moved",
                f"{now} UNION ALL SELECT {order} FROM {old} WHERE player NOT IN (SELECT player {moved})",
            )
    batch.facts.note_players(batch.numbers)


def _write_players(batch: Batch, writer: PartWriter) -> None:
    """Write the shared players of days, weeks and months, then `active` and the cells."""
    cell = f"day, {_MEMBER}, currency"
    installs = f"(SELECT player, installed_us FROM {batch.numbers})"
    returners = f"CAST({DAY_NUMBER.format('day')} > installed_us // {DAY_US} AS BIGINT) AS returners"
    periods = (
        ("daily", batch.new_daily, batch.known_days),
        ("weekly", batch.new_weekly, batch.old_weekly),
        ("monthly", batch.new_monthly, batch.old_monthly),
    )
    for period, new, old in periods if batch.has_several else ():
        columns = "player, counts"
        members = "SELECT day, player, combination, 1 AS counts FROM {}"
        shared = _shared(members.format(new), members.format(old), "day, player")
        if period == "daily":
            columns += ", returners"
            shared = f"""
                SELECT day, player, combination, counts, {returners} FROM ({shared}) AS members
                JOIN {installs} AS installs USING (player)
                UNION ALL SELECT day, player, combination, 0 AS counts, returners
                FROM {batch.changed_returns} WHERE is_shared AND returners > 0"""
        writer.add(
            f"{period}_players_shared",
            f"SELECT {cell}, {columns} FROM ({shared}) AS shared JOIN {batch.combined} USING (combination)",
        )
    counted = f"""(
        SELECT day, player, combination, 1 AS counts, {returners} FROM {batch.new_daily}
        JOIN {installs} AS installs USING (player)) AS counted"""
    rows = f"{batch.active_rows} LEFT JOIN {counted} USING (day, player, combination)"
    writer.add("active", f"SELECT {cell}, player, {_SUMS}, coalesce(counts, 0) AS counts FROM {rows}")
    sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    members = f"SELECT {cell}, {_SUMS}, counts, returners FROM {rows}"
    if batch.moves["installs"]:
        nulls = ", ".join(f"NULL AS {name}" for name in SUMS)
        members += f"""
            UNION ALL SELECT {cell}, {nulls}, NULL AS counts, returners
            FROM {batch.changed_returns} JOIN {batch.combined} USING (combination)"""
    writer.add(
        "daily_players",
        f"""
        SELECT {cell}, {sums}, coalesce(sum(counts), 0) AS players, coalesce(sum(returners), 0) AS returners
        FROM ({members}) AS members GROUP BY {cell}""",
    )
    if batch.moves["installs"]:
        _take_returns_back(batch, writer)
    for period, new in (("weekly", batch.new_weekly), ("monthly", batch.new_monthly)):
        cells = f"SELECT day, combination, count(*) AS players FROM {new} GROUP BY day, combination"
        writer.add(
            f"{period}_players",
            f"SELECT {cell}, players FROM ({cells}) AS cells JOIN {batch.combined} USING (combination)",
        )
    batch.facts.note_days(batch.new_daily)


def _take_returns_back(batch: Batch, writer: PartWriter) -> None:
    """Write the parts of shared players again that have returns before a stated install that is later than was known.

    A key that was counted once cannot be taken back by another row, as the number of a cell can.
    """
    gone = f"FROM {batch.changed_returns} WHERE is_shared AND returners < 0"
    ((first, last),) = writer.sql.run(f"SELECT min(day), max(day) {gone}")
    if first is None:
        return
    table = "daily_players_shared"
    paths = writer.snapshot.files(table, interval_of_days(first, last))
    writer.sql.view_files("shared_before", paths, COLUMNS[table])
    others = ", ".join(f"shared.{name}" for name in COLUMNS[table] if name != "returners")
    writer.retire(paths)
    writer.add(
        table,
        f"""
        SELECT {others}, CASE WHEN gone.player IS NULL THEN returners ELSE 0 END AS returners
        FROM shared_before AS shared LEFT JOIN (SELECT DISTINCT day, player {gone}) AS gone
        ON shared.day = gone.day AND shared.player = gone.player""",
    )


def _write_sessions(batch: Batch, writer: PartWriter) -> None:
    """Write the cells of sessions, and the sessions of several cells."""
    writer.add(
        "sessions",
        f"""
        SELECT day, {_MEMBER}, sessions, ended_sessions FROM (
            SELECT day, combination, sum(counts) AS sessions, sum(ended_counts) AS ended_sessions
            FROM {batch.session_changes} GROUP BY day, combination
        ) AS cells JOIN {batch.combined} USING (combination)""",
    )
    shared = _shared(
        f"SELECT sid, day, combination, counts, ended_counts FROM {batch.session_changes}",
        f"SELECT sid, day, combination, 1 AS counts, CAST(ended AS INTEGER) AS ended_counts FROM {batch.old_sessions}",
        "sid",
    )
    writer.add(
        "sessions_shared",
        f"""
        SELECT day, {_MEMBER}, session_id, counts, ended_counts FROM ({shared}) AS shared
        JOIN {batch.combined} USING (combination)
        JOIN (SELECT sid, session_id FROM {batch.session_ids}) AS ids USING (sid)""",
    )
    batch.facts.note_sessions(batch.session_changes)


def _shared(new: str, old: str, key: str) -> str:
    """Return what is added to a shared table: memberships of keys that have several.

    These are the *new* ones, and the *old* one of a key that had a single one, which the table lacks. Both queries have
    the columns of *key* first, because Spark puts them there, and `counts`: 1, or 0 where a membership only changes.
    """
    return f"""
        WITH members AS (
            SELECT *, 0 AS is_old FROM ({new}) AS new
            UNION ALL SELECT *, 1 AS is_old FROM ({old}) AS old SEMI JOIN ({new}) AS new USING ({key})
        ), several AS (
            SELECT {key}, sum(is_old) AS had FROM members GROUP BY {key} HAVING sum(counts) >= 2
        )
        SELECT members.* FROM members JOIN several USING ({key}) WHERE is_old = 0 OR had = 1"""


def _write_impressions(batch: Batch, writer: PartWriter) -> None:
    """Write the impressions whose vendor's id is repeated.

    If exactly one earlier impression has the id, it is written too, because the table does not have it yet.
    """
    ids = batch.repeated_impressions
    ((repeated, single),) = writer.sql.run(
        f"SELECT count(*), coalesce(sum(CASE WHEN had = 1 THEN 1 END), 0) FROM {ids}"
    )
    if repeated:
        rows = f"""
            SELECT {_EVENT} FROM fresh SEMI JOIN {ids} USING (game_id, ilrd_id)
            WHERE category = 'impression'"""
        if single:
            rows += f"""
                UNION ALL SELECT {_EVENT} FROM {writer.known("events")}
                SEMI JOIN (SELECT * FROM {ids} WHERE had = 1) AS single USING (game_id, ilrd_id, day)
                WHERE category = 'impression' AND day IN (SELECT day FROM {ids} WHERE had = 1)"""
        writer.add("impressions_shared", rows)
    batch.facts.note_impressions(
        f"(SELECT iid, day FROM fresh JOIN {batch.impression_ids} USING (game_id, ilrd_id) "
        "WHERE category = 'impression') AS impressions"
    )


def _write_returns(batch: Batch, writer: PartWriter) -> None:
    """Write the new returns, and move the returns of players whose install has moved.

    A return moves from the age by the old install to that by the new one. The players of age 0 are all installs of the
    day: the day of a stated install counts whether or not it has an event.
    """
    columns = "player, install_number, combination, n, is_stated"
    install_day = EPOCH_DAY.format("install_number")
    seen = f"NOT (is_stated AND {install_day} = day)"
    moved = ""
    if batch.moves["installs"]:
        moved = f"""
            UNION ALL
            SELECT day, install_number, combination, n
            FROM (SELECT DISTINCT player, day FROM {batch.moved_days}) AS moved JOIN changed USING (player)
            WHERE {seen}"""
    writer.add(
        "returns",
        f"""
        WITH new AS (
            SELECT player, CAST(floor(installed_us / {DAY_US}) AS BIGINT) AS install_number, combination, 1 AS n,
                stated > {BY_EVENT} AS is_stated, install_change AS change
            FROM {batch.numbers}
        ), changed AS (
            SELECT player, CAST(floor(old_us / {DAY_US}) AS BIGINT) AS install_number, old_combination AS combination,
                -1 AS n, old_stated > {BY_EVENT} AS is_stated
            FROM {batch.numbers} WHERE install_change = {MOVED}
            UNION ALL SELECT {columns} FROM new WHERE change = {MOVED}
        ), placed AS (
            SELECT day, install_number, combination, n FROM {batch.new_days} JOIN new USING (player) WHERE {seen}{moved}
            UNION ALL
            SELECT {install_day} AS day, install_number, combination, n
            FROM (SELECT {columns} FROM changed UNION ALL SELECT {columns} FROM new WHERE change = {NEW}) AS installed
            WHERE is_stated
        )
        SELECT day, age, {_RETURN}, sum(n) AS players FROM (
            SELECT {DAY_NUMBER.format("day")} - install_number AS age, day, n, {_RETURN}
            FROM placed JOIN {batch.combined} USING (combination)
        ) AS returns GROUP BY day, age, {_RETURN} HAVING sum(n) <> 0""",
    )
