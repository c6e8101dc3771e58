"""New memberships of a batch: their cells, and the rows of the shared tables.

A membership is a player on a day (or in a week or month), or a session, with one combination of dimensions. What there
was before is looked up in the keyed runs, so the cost is that of the batch (see `lake_schema` for the tables).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from gamelens.sandbox.processing.first_events import DAY_US
from gamelens.sandbox.processing.part_writer import PartWriter
from gamelens.sandbox.storage.keyed_runs import Hits, Keys, day_of, player_day, text_keys
from gamelens.sandbox.storage.lake_schema import MEASURES, PLAYER_DIMENSIONS

PERIODS: Final = {
    "daily": "day",
    "weekly": "CAST(date_trunc('week', day) AS DATE)",
    "monthly": "CAST(date_trunc('month', day) AS DATE)",
}
_TEXTS_AT_ONCE: Final = 1_000_000
_ROWS_AT_ONCE: Final = 2_000_000
EPOCH_DAY: Final = "CAST(DATE '1970-01-01' + CAST({} AS INTEGER) AS DATE)"
"""SQL of the date of a number of days since 1970."""
_DIMENSIONS: Final = ", ".join(PLAYER_DIMENSIONS)
_RETURNERS: Final = f"CAST(day - DATE '1970-01-01' > installed_us // {DAY_US} AS BIGINT) AS returners"
_INSTALLS: Final = "(SELECT player, installed_us FROM numbers)"


def write_players(writer: PartWriter) -> None:
    """Write `active`, and the players of days, weeks and months.

    Reads `active_rows` and `numbers`. Creates `new_days` of the (day, player) that had no event before.
    """
    _view_known_days(writer)
    _find_later_returns(writer)
    for period, first_day in PERIODS.items():
        _write_shared_players(writer, period, first_day)
    _write_active(writer)
    for period in ("weekly", "monthly"):
        cells = f"SELECT day, combination, count(*) AS players FROM new_{period} GROUP BY ALL"  # noqa: S608
        writer.add(
            f"{period}_players",
            f"SELECT day, {_DIMENSIONS}, currency, players FROM ({cells}) JOIN combined USING (combination)",  # noqa: S608
        )
    writer.sql.run("""
        CREATE TEMP TABLE new_days AS
        SELECT DISTINCT day, player FROM new_daily ANTI JOIN old_daily USING (day, player)""")
    new = writer.sql.table("SELECT player, day - DATE '1970-01-01' AS day, combination FROM new_daily")
    player, day, combination = (new.column(name).to_numpy() for name in ("player", "day", "combination"))
    writer.add_run("player_days", player_day(player, day), None, {"combination": combination})


def _write_shared_players(writer: PartWriter, period: str, first_day: str) -> None:
    """Write the new rows of the shared table of *period*.

    Creates `old_...` and `new_...` of the period: earlier memberships, and those that the batch adds.

    Args:
        writer: the writer of the run.
        period: one of `PERIODS`.
        first_day: SQL of the first day of the period.
    """
    sql = writer.sql
    sql.run(f"""
        CREATE TEMP TABLE old_{period} AS
        SELECT DISTINCT {first_day} AS day, player, combination FROM known_days""")  # noqa: S608
    sql.run(f"""
        CREATE TEMP TABLE new_{period} AS
        SELECT DISTINCT {first_day} AS day, player, combination FROM active_rows WHERE player IS NOT NULL
        EXCEPT FROM old_{period}""")  # noqa: S608
    sql.run(f"""
        CREATE TEMP TABLE several_{period} AS
        WITH new AS (SELECT day, player, count(*) AS added FROM new_{period} GROUP BY ALL),
        old AS (
            SELECT day, player, count(*) AS had FROM old_{period} SEMI JOIN new USING (day, player) GROUP BY ALL
        )
        SELECT day, player, coalesce(had, 0) AS had FROM new LEFT JOIN old USING (day, player)
        WHERE added + coalesce(had, 0) >= 2""")  # noqa: S608
    shared = f"""
        SELECT day, player, combination, 1 AS counts FROM new_{period}
        SEMI JOIN several_{period} USING (day, player)
        UNION ALL
        SELECT day, player, combination, 1 FROM old_{period}
        SEMI JOIN (FROM several_{period} WHERE had = 1) USING (day, player)"""  # noqa: S608
    columns = "player, counts"
    if period == "daily":
        columns += ", returners"
        shared = f"""
            SELECT day, player, combination, counts, {_RETURNERS} FROM ({shared}) JOIN {_INSTALLS} USING (player)
            UNION ALL
            SELECT day, player, combination, 0, 1 FROM later_returns WHERE is_shared"""  # noqa: S608
    writer.add(
        f"{period}_players_shared",
        f"SELECT day, {_DIMENSIONS}, currency, {columns} FROM ({shared}) JOIN combined USING (combination)",  # noqa: S608
    )


def _write_active(writer: PartWriter) -> None:
    """Write `active` and the cells of days, from `active_rows` and `new_daily`."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in (*MEASURES, "seconds", "money"))
    members = f"new_daily JOIN {_INSTALLS} USING (player)"
    counted = f"SELECT day, player, combination, 1 AS counts, {_RETURNERS} FROM {members}"  # noqa: S608
    rows = f"active_rows LEFT JOIN ({counted}) USING (day, player, combination)"
    writer.add(
        "active",
        f"SELECT * EXCLUDE (combination, counts, returners), coalesce(counts, 0) AS counts FROM {rows}",  # noqa: S608
    )
    later = f"SELECT day, {_DIMENSIONS}, currency, 1 AS returners FROM later_returns JOIN combined USING (combination)"  # noqa: S608
    writer.add(
        "daily_players",
        f"SELECT day, {_DIMENSIONS}, currency, {sums}, coalesce(sum(counts), 0) AS players, "  # noqa: S608
        f"coalesce(sum(returners), 0) AS returners FROM (FROM {rows} UNION ALL BY NAME {later}) GROUP BY ALL",
    )


def _view_known_days(writer: PartWriter) -> None:
    """Create `known_days`: earlier memberships of the batch's players.

    It covers the weeks and months of the batch.
    """
    spans = writer.sql.table("""
        SELECT DISTINCT player,
            least(date_trunc('week', day), date_trunc('month', day)) :: DATE - DATE '1970-01-01' AS first,
            greatest(date_trunc('week', day) + INTERVAL 6 DAY, last_day(day)) :: DATE - DATE '1970-01-01' AS last
        FROM active_rows WHERE player IS NOT NULL""")
    player, first, last = (spans.column(name).to_numpy() for name in ("player", "first", "last"))
    hits = writer.runs("player_days").between(player_day(player, np.maximum(first, 0)), player_day(player, last))
    known = {"player": player[hits.places], "number": day_of(hits.keys), "combination": hits.columns["combination"]}
    writer.sql.view("found_days", pa.table(known))
    writer.sql.run(f"""
        CREATE TEMP TABLE known_days AS
        SELECT DISTINCT player, {EPOCH_DAY.format("number")} AS day, combination FROM found_days""")  # noqa: S608


def _find_later_returns(writer: PartWriter) -> None:
    """Create `later_returns`: known memberships that a moved install makes returns.

    They lie on the day of the old install. `is_shared` tells those that the shared table has.
    """
    moved = writer.sql.table(f"""
        SELECT player, old_us // {DAY_US} AS day FROM numbers
        WHERE install = 2 AND installed_us // {DAY_US} < old_us // {DAY_US}""")  # noqa: S608
    player, day = (moved.column(name).to_numpy() for name in ("player", "day"))
    key = player_day(player, day)
    hits = writer.runs("player_days").between(key, key)
    found = {"player": player[hits.places], "number": day[hits.places], "combination": hits.columns["combination"]}
    writer.sql.view("found_returns", pa.table(found))
    writer.sql.run(f"""
        CREATE TEMP TABLE later_returns AS
        SELECT *, count(*) OVER (PARTITION BY player) > 1 AS is_shared FROM (
            SELECT DISTINCT player, {EPOCH_DAY.format("number")} AS day, combination FROM found_returns)""")  # noqa: S608


def write_sessions(writer: PartWriter) -> None:
    """Write the cells of sessions and the shared ones, from `session_rows`.

    `session_rows` has sid, day, combination, ended (boolean); `session_ids` has sid (from 0 on), game_id, session_id.
    """
    sql = writer.sql
    keys, old = _known_texts(writer, "sessions", "SELECT game_id, session_id FROM session_ids ORDER BY sid")
    sql.view("found_sessions", pa.table({"sid": old.places, **old.columns}))
    sql.run(f"""
        CREATE TEMP TABLE old_sessions AS
        SELECT sid, {EPOCH_DAY.format("found.day")} AS day, combination, max(ended) > 0 AS ended
        FROM found_sessions found GROUP BY ALL""")  # noqa: S608
    sql.run("""
        CREATE TEMP TABLE session_changes AS
        SELECT sid, day, combination, CAST(old.ended IS NULL AS INTEGER) AS counts,
            CAST(new.ended AND NOT coalesce(old.ended, FALSE) AS INTEGER) AS ended_counts
        FROM session_rows new LEFT JOIN old_sessions old USING (sid, day, combination)
        WHERE old.ended IS NULL OR (new.ended AND NOT old.ended)""")
    sql.run("""
        CREATE TEMP TABLE several_sessions AS
        WITH new AS (SELECT sid, sum(counts) AS added FROM session_changes GROUP BY sid),
        old AS (SELECT sid, count(*) AS had FROM old_sessions GROUP BY sid)
        SELECT sid, added, coalesce(had, 0) AS had FROM new LEFT JOIN old USING (sid)
        WHERE added + coalesce(had, 0) >= 2""")
    writer.add(
        "sessions",
        f"SELECT day, {_DIMENSIONS}, sessions, ended_sessions FROM ("  # noqa: S608
        "SELECT day, combination, sum(counts) AS sessions, sum(ended_counts) AS ended_sessions "
        "FROM session_changes GROUP BY ALL) JOIN combined USING (combination)",
    )
    writer.add(
        "sessions_shared",
        f"SELECT day, {_DIMENSIONS}, session_id, counts, ended_counts FROM ("  # noqa: S608
        "SELECT sid, day, combination, counts, ended_counts FROM session_changes "
        "SEMI JOIN several_sessions USING (sid) "
        "UNION ALL SELECT sid, day, combination, 1, CAST(ended AS INTEGER) FROM old_sessions "
        "SEMI JOIN (FROM several_sessions WHERE had = 1 AND added > 0) USING (sid)"
        ") JOIN combined USING (combination) JOIN (SELECT sid, session_id FROM session_ids) USING (sid)",
    )
    changes = "SELECT sid, day - DATE '1970-01-01' AS day, combination, ended_counts AS ended FROM session_changes"
    for batch in sql.batches(changes, _ROWS_AT_ONCE):
        columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
        place = columns.pop("sid")
        writer.add_keys("sessions", Keys(keys.high[place], keys.low[place]), columns)


def write_impressions(writer: PartWriter) -> None:
    """Write the impressions of the batch whose vendor's id is repeated.

    If exactly one earlier impression has the id, it is written too, because the table does not have it yet. Ids that
    the vendor did not give are unique (`lake_schema.EVENT_COLUMNS`).
    """
    sql = writer.sql
    sql.run("""
        CREATE TEMP TABLE impression_ids AS
        SELECT row_number() OVER () - 1 AS iid, * FROM (
            SELECT game_id, ilrd_id, count(*) AS added FROM fresh
            WHERE category = 'impression' AND starts_with(ilrd_id, 'i') GROUP BY ALL)""")
    keys, old = _known_texts(writer, "impressions", "SELECT game_id, ilrd_id FROM impression_ids ORDER BY iid")
    sql.view("found_impressions", pa.table({"iid": old.places, "number": old.columns["day"]}))
    sql.run(f"""
        CREATE TEMP TABLE repeated_impressions AS
        SELECT game_id, ilrd_id, coalesce(had, 0) AS had, day FROM impression_ids
        LEFT JOIN (
            SELECT iid, count(*) AS had, {EPOCH_DAY.format("min(number)")} AS day FROM found_impressions GROUP BY iid
        ) USING (iid) WHERE added + coalesce(had, 0) >= 2""")  # noqa: S608
    ((repeated, single),) = sql.run("SELECT count(*), count(*) FILTER (WHERE had = 1) FROM repeated_impressions")
    if repeated:
        rows = "FROM fresh SEMI JOIN repeated_impressions USING (game_id, ilrd_id) WHERE category = 'impression'"
        if single:
            writer.view("known_events", "events")
            rows += """ UNION ALL BY NAME FROM known_events
                SEMI JOIN (FROM repeated_impressions WHERE had = 1) USING (game_id, ilrd_id, day)
                WHERE category = 'impression' AND day IN (SELECT day FROM repeated_impressions WHERE had = 1)"""
        writer.add("impressions_shared", rows)
    days = sql.table("""
        SELECT iid, fresh.day - DATE '1970-01-01' AS day FROM fresh JOIN impression_ids USING (game_id, ilrd_id)
        WHERE category = 'impression'""")
    place = days.column("iid").to_numpy()
    writer.add_keys("impressions", Keys(keys.high[place], keys.low[place]), {"day": days.column("day").to_numpy()})


def _known_texts(writer: PartWriter, kind: str, query: str) -> tuple[Keys, Hits]:
    """Return the keys of the two columns of *query*, and their rows in the runs of *kind*."""
    keys = [text_keys(*batch.columns) for batch in writer.sql.batches(query, _TEXTS_AT_ONCE)]
    nothing = np.empty(0, dtype=np.uint64)
    high, low = (
        (np.concatenate([nothing, *halves]) for halves in zip(*keys, strict=True)) if keys else (nothing, nothing)
    )
    return Keys(high, low), writer.runs(kind).find(Keys(high, low))
