"""Keyed runs of a version that has none, made of its tables.

A cluster writes none, and a run of processing on this machine needs them.
"""

from __future__ import annotations

from pathlib import Path

from gamelens.sandbox.building.event_facts import RunFacts, TableFacts
from gamelens.sandbox.building.part_writer import PartWriter
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
