"""Keyed runs of a version that has none: they are made of its tables.

A cluster writes none, and a run of processing on this machine needs them.
"""

from __future__ import annotations

from pathlib import Path

from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.building.run_facts import RunFacts
from gamelens.sandbox.building.table_facts import TableFacts
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.storage.keyed_runs import LAST_DAY, PREFIX
from gamelens.sandbox.storage.lake import Lake


def restore_runs(organisation: str, lake: Lake, scratch: Path) -> None:
    """Give *organisation* keyed runs, as a version of *lake*, if it has events and no run.

    Args:
        organisation: name of the organisation.
        lake: the lake.
        scratch: folder for temporary files of the engine.

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
        writer.view("combined", "combinations")
        _restore_names_and_players(sql, earlier, runs)
        _restore_sessions(sql, earlier, runs)
        _restore_impressions(sql, runs)
        writer.sync()
        lake.compact(writer.files, [])
    finally:
        sql.close()


def _restore_names_and_players(sql: DuckDBWriter, earlier: TableFacts, runs: RunFacts) -> None:
    sql.create_view("staged", "SELECT seq, game_id, event_uuid FROM earlier_events")
    runs.create_repeated()
    sql.create_view("found", "SELECT game_id, user_id FROM earlier_installs")
    earlier.create_known_players()
    sql.create_view("numbers", "SELECT *, 1 AS install_change, 0 AS payment_change FROM known_players")
    runs.note_players()
    sql.create_view("spans", f"SELECT player, 0 AS first, {LAST_DAY} AS last FROM earlier_installs")  # noqa: S608
    earlier.create_known_days("new_daily", "spans")
    runs.note_days()


def _restore_sessions(sql: DuckDBWriter, earlier: TableFacts, runs: RunFacts) -> None:
    found = "SELECT DISTINCT game_id, session_id FROM earlier_events WHERE session_id IS NOT NULL"
    sql.create("session_ids", f"SELECT {runs.key_sql()} AS sid, game_id, session_id FROM ({found})")  # noqa: S608
    runs.create_old_sessions()
    earlier.create_old_sessions()
    sql.create_view(
        "session_changes",
        "SELECT session_ids.sid, day, combination, CAST(ended AS INTEGER) AS ended_counts FROM old_sessions "  # noqa: S608
        f"JOIN session_ids ON old_sessions.sid = {earlier.key_sql('game_id', 'session_id')}",
    )
    runs.note_sessions()


def _restore_impressions(sql: DuckDBWriter, runs: RunFacts) -> None:
    found = """
        SELECT DISTINCT game_id, ilrd_id FROM earlier_events
        WHERE category = 'impression' AND starts_with(ilrd_id, 'i')"""
    sql.create("impression_ids", f"SELECT {runs.key_sql()} AS iid, game_id, ilrd_id FROM ({found})")  # noqa: S608
    runs.create_old_impressions()
    sql.create_view(
        "impression_days",
        "SELECT iid, day FROM earlier_events JOIN impression_ids USING (game_id, ilrd_id) "
        "WHERE category = 'impression'",
    )
    runs.note_impressions()
