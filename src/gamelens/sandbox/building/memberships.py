"""New memberships of a batch: their cells, and the rows of the shared tables.

A membership is a player on a day (or in a week or month), or a session, with one combination of dimensions. What there
was before is looked up in the keyed runs, so the cost is that of the batch (see `lake_schema` for the tables).
"""

from __future__ import annotations

from typing import Final

from gamelens.sandbox.building.fact_source import DAY_NUMBER, FactSource
from gamelens.sandbox.building.first_events import DAY_US, USERS_WITH_STATED
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS, PLAYER_DIMENSIONS, SUMS

PERIODS: Final = {
    "daily": "day",
    "weekly": "CAST(date_trunc('week', day) AS DATE)",
    "monthly": "CAST(date_trunc('month', day) AS DATE)",
}
_DIMENSIONS: Final = ", ".join(PLAYER_DIMENSIONS)
_RETURNERS: Final = f"CAST({DAY_NUMBER.format('day')} > installed_us // {DAY_US} AS BIGINT) AS returners"
_INSTALLS: Final = "(SELECT player, installed_us FROM numbers)"


def create_combined(writer: PartWriter, *, has_stated: bool) -> None:
    """Create `combined`, with a number for each combination of dimensions and currency.

    `added_combinations` are those of them that the events of `users` add, and with *has_stated* the installs of
    `stated`.
    """
    sql = writer.sql
    writer.view("known_combinations", "combinations")
    known = writer.snapshot.rows("combinations")
    cell = f"{_DIMENSIONS}, currency"
    without_money = f"SELECT {_DIMENSIONS}, CAST(NULL AS VARCHAR) AS currency FROM"
    of_installs = f"UNION {without_money} {USERS_WITH_STATED}" if has_stated else ""
    sql.create(
        "added_combinations",
        f"""
        SELECT {known} + row_number() OVER (ORDER BY {cell}) AS combination, {cell} FROM (
            SELECT {cell} FROM users UNION {without_money} users {of_installs}
            EXCEPT SELECT {cell} FROM known_combinations
        ) AS added""",  # noqa: S608
    )
    both = (f"SELECT combination, {cell} FROM {table}" for table in ("known_combinations", "added_combinations"))  # noqa: S608
    sql.create("combined", " UNION ALL ".join(both))


def write_players(writer: PartWriter, facts: FactSource) -> None:
    """Write `active`, and the players of days, weeks and months.

    Reads `active_rows` and `numbers`. Creates `new_days` of the (day, player) that had no event before.
    """
    _create_known_days(writer, facts)
    _create_later_returns(writer, facts)
    for period, first_day in PERIODS.items():
        _write_shared_players(writer, period, first_day)
    _write_active(writer)
    for period in ("weekly", "monthly"):
        cells = f"SELECT day, combination, count(*) AS players FROM new_{period} GROUP BY day, combination"  # noqa: S608
        writer.add(
            f"{period}_players",
            f"SELECT day, {_DIMENSIONS}, currency, players FROM ({cells}) AS cells JOIN combined USING (combination)",  # noqa: S608
        )
    writer.sql.create("new_days", "SELECT DISTINCT day, player FROM new_daily ANTI JOIN old_daily USING (day, player)")
    facts.note_days()


def _write_shared_players(writer: PartWriter, period: str, first_day: str) -> None:
    """Write the new rows of the shared table of *period*.

    Creates `old_...` and `new_...` of the period: earlier memberships, and those that the batch adds.

    Args:
        writer: the writer of the run.
        period: one of `PERIODS`.
        first_day: SQL of the first day of the period.
    """
    sql = writer.sql
    sql.create(
        f"old_{period}",
        f"SELECT DISTINCT {first_day} AS day, player, combination FROM known_days",  # noqa: S608
    )
    sql.create(
        f"new_{period}",
        f"""
        SELECT DISTINCT {first_day} AS day, player, combination FROM active_rows WHERE player IS NOT NULL
        EXCEPT SELECT day, player, combination FROM old_{period}""",  # noqa: S608
    )
    sql.create(
        f"several_{period}",
        f"""
        WITH new AS (SELECT day, player, count(*) AS added FROM new_{period} GROUP BY day, player),
        old AS (
            SELECT day, player, count(*) AS had FROM old_{period} SEMI JOIN new USING (day, player)
            GROUP BY day, player
        )
        SELECT day, player, coalesce(had, 0) AS had FROM new LEFT JOIN old USING (day, player)
        WHERE added + coalesce(had, 0) >= 2""",  # noqa: S608
    )
    shared = f"""
        SELECT day, player, combination, 1 AS counts FROM new_{period}
        SEMI JOIN several_{period} USING (day, player)
        UNION ALL
        SELECT day, player, combination, 1 AS counts FROM old_{period}
        SEMI JOIN (SELECT * FROM several_{period} WHERE had = 1) AS single USING (day, player)"""  # noqa: S608
    columns = "player, counts"
    if period == "daily":
        columns += ", returners"
        shared = f"""
            SELECT day, player, combination, counts, {_RETURNERS}
            FROM ({shared}) AS members JOIN {_INSTALLS} USING (player)
            UNION ALL
            SELECT day, player, combination, 0 AS counts, 1 AS returners FROM later_returns WHERE is_shared"""  # noqa: S608
    writer.add(
        f"{period}_players_shared",
        f"SELECT day, {_DIMENSIONS}, currency, {columns} FROM ({shared}) AS shared "  # noqa: S608
        "JOIN combined USING (combination)",
    )


def _write_active(writer: PartWriter) -> None:
    """Write `active` and the cells of days, from `active_rows` and `new_daily`."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    members = f"new_daily JOIN {_INSTALLS} USING (player)"
    counted = f"(SELECT day, player, combination, 1 AS counts, {_RETURNERS} FROM {members}) AS counted"  # noqa: S608
    rows = f"active_rows LEFT JOIN {counted} USING (day, player, combination)"
    cell = f"day, {_DIMENSIONS}, currency"
    writer.add(
        "active",
        f"SELECT {cell}, player, {', '.join(SUMS)}, coalesce(counts, 0) AS counts FROM {rows}",  # noqa: S608
    )
    nulls = ", ".join(f"NULL AS {name}" for name in SUMS)
    writer.add(
        "daily_players",
        f"SELECT {cell}, {sums}, coalesce(sum(counts), 0) AS players, coalesce(sum(returners), 0) AS returners FROM ("  # noqa: S608
        f"SELECT {cell}, {', '.join(SUMS)}, counts, returners FROM {rows} UNION ALL "
        f"SELECT {cell}, {nulls}, NULL AS counts, 1 AS returners FROM later_returns JOIN combined USING (combination)"
        f") AS members GROUP BY {cell}",
    )


def _create_known_days(writer: PartWriter, facts: FactSource) -> None:
    """Create `known_days`: earlier memberships of the batch's players.

    It covers the weeks and months of the batch.
    """
    week, month = (f"CAST(date_trunc('{unit}', day) AS DATE)" for unit in ("week", "month"))
    first, last = f"least({week}, {month})", f"greatest(CAST({week} + INTERVAL 6 DAY AS DATE), last_day(day))"
    writer.sql.create_view(
        "spans",
        f"SELECT DISTINCT player, {DAY_NUMBER.format(first)} AS first, {DAY_NUMBER.format(last)} AS last "  # noqa: S608
        "FROM active_rows WHERE player IS NOT NULL",
    )
    facts.create_known_days("known_days", "spans")


def _create_later_returns(writer: PartWriter, facts: FactSource) -> None:
    """Create `later_returns`: known memberships that a moved install makes returns.

    They lie on the day of the old install. `is_shared` tells those that the shared table has.
    """
    writer.sql.create_view(
        "install_days",
        f"""
        SELECT player, CAST(old_us // {DAY_US} AS BIGINT) AS first, CAST(old_us // {DAY_US} AS BIGINT) AS last
        FROM numbers WHERE install_change = 2 AND installed_us // {DAY_US} < old_us // {DAY_US}""",  # noqa: S608
    )
    facts.create_known_days("returned_days", "install_days")
    writer.sql.create(
        "later_returns", "SELECT *, count(*) OVER (PARTITION BY player) > 1 AS is_shared FROM returned_days"
    )


def write_sessions(writer: PartWriter, facts: FactSource) -> None:
    """Write the cells of sessions and the shared ones, from `session_rows`.

    `session_rows` has sid, day, combination, ended (boolean); `session_ids` has sid, game_id, session_id.
    """
    sql = writer.sql
    facts.create_old_sessions()
    sql.create(
        "session_changes",
        """
        SELECT sid, day, combination, CAST(old.ended IS NULL AS INTEGER) AS counts,
            CAST(new.ended AND NOT coalesce(old.ended, FALSE) AS INTEGER) AS ended_counts
        FROM session_rows AS new LEFT JOIN old_sessions AS old USING (sid, day, combination)
        WHERE old.ended IS NULL OR (new.ended AND NOT old.ended)""",
    )
    sql.create(
        "several_sessions",
        """
        WITH new AS (SELECT sid, sum(counts) AS added FROM session_changes GROUP BY sid),
        old AS (SELECT sid, count(*) AS had FROM old_sessions GROUP BY sid)
        SELECT sid, added, coalesce(had, 0) AS had FROM new LEFT JOIN old USING (sid)
        WHERE added + coalesce(had, 0) >= 2""",
    )
    writer.add(
        "sessions",
        f"SELECT day, {_DIMENSIONS}, sessions, ended_sessions FROM ("  # noqa: S608
        "SELECT day, combination, sum(counts) AS sessions, sum(ended_counts) AS ended_sessions "
        "FROM session_changes GROUP BY day, combination) AS cells JOIN combined USING (combination)",
    )
    writer.add(
        "sessions_shared",
        f"SELECT day, {_DIMENSIONS}, session_id, counts, ended_counts FROM ("  # noqa: S608
        "SELECT sid, day, combination, counts, ended_counts FROM session_changes "
        "SEMI JOIN several_sessions USING (sid) "
        "UNION ALL SELECT sid, day, combination, 1 AS counts, CAST(ended AS INTEGER) AS ended_counts FROM old_sessions "
        "SEMI JOIN (SELECT * FROM several_sessions WHERE had = 1 AND added > 0) AS single USING (sid)"
        ") AS shared JOIN combined USING (combination) "
        "JOIN (SELECT sid, session_id FROM session_ids) AS ids USING (sid)",
    )
    facts.note_sessions()


def write_impressions(writer: PartWriter, facts: FactSource) -> None:
    """Write the impressions of the batch whose vendor's id is repeated.

    If exactly one earlier impression has the id, it is written too, because the table does not have it yet. Ids that
    the vendor did not give are unique (`lake_schema.EVENT_COLUMNS`).
    """
    sql = writer.sql
    sql.create(
        "impression_ids",
        f"""
        SELECT {facts.key_sql("game_id", "ilrd_id")} AS iid, game_id, ilrd_id, added FROM (
            SELECT game_id, ilrd_id, count(*) AS added FROM fresh
            WHERE category = 'impression' AND starts_with(ilrd_id, 'i') GROUP BY game_id, ilrd_id
        ) AS ids""",  # noqa: S608
    )
    facts.create_old_impressions()
    sql.create(
        "repeated_impressions",
        """
        SELECT game_id, ilrd_id, coalesce(had, 0) AS had, day FROM impression_ids
        LEFT JOIN old_impressions USING (iid) WHERE added + coalesce(had, 0) >= 2""",
    )
    ((repeated, single),) = sql.run(
        "SELECT count(*), coalesce(sum(CASE WHEN had = 1 THEN 1 END), 0) FROM repeated_impressions"
    )
    if repeated:
        columns = ", ".join(EVENT_COLUMNS)
        rows = (
            f"SELECT {columns} FROM fresh SEMI JOIN repeated_impressions USING (game_id, ilrd_id) "  # noqa: S608
            "WHERE category = 'impression'"
        )
        if single:
            writer.view("known_events", "events")
            rows += f"""
                UNION ALL SELECT {columns} FROM known_events
                SEMI JOIN (SELECT * FROM repeated_impressions WHERE had = 1) AS single USING (game_id, ilrd_id, day)
                WHERE category = 'impression' AND day IN (SELECT day FROM repeated_impressions WHERE had = 1)"""  # noqa: S608
        writer.add("impressions_shared", rows)
    sql.create_view(
        "impression_days",
        "SELECT iid, day FROM fresh JOIN impression_ids USING (game_id, ilrd_id) WHERE category = 'impression'",
    )
    facts.note_impressions()
