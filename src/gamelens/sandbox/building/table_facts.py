"""Earlier events as the tables of the last version have them, for a cluster.

No keyed run is read or written: the version that such an engine writes has none, and a run of processing makes those
of its tables first (`restored_runs`).
"""

from __future__ import annotations

from typing import Final

from gamelens.sandbox.building.fact_source import DAY_NUMBER, NEVER, SAME_CELL, SAME_WITHOUT_MONEY
from gamelens.sandbox.building.first_events import STATED_BY
from gamelens.sandbox.building.part_writer import PartWriter
from gamelens.sandbox.storage.lake_schema import PLAYER_DIMENSIONS

_DIMENSIONS: Final = ", ".join(PLAYER_DIMENSIONS)
_FIRST_COLUMNS: Final = f"player, user_id, ts, seq, {_DIMENSIONS}"


class TableFacts:
    """Facts of the last version, joined from its tables (`FactSource`)."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer, self._sql = writer, writer.sql
        for table in ("events", "active", "stated_installs"):
            writer.view(f"earlier_{table}", table)
        for table in ("installs", "payments"):
            writer.view(f"known_{table}", table)
            writer.view(f"known_{table}_moved", f"{table}_moved")
            self._sql.create_view(
                f"earlier_{table}",
                f"SELECT {_FIRST_COLUMNS} FROM known_{table} ANTI JOIN known_{table}_moved USING (player) "  # noqa: S608
                f"UNION ALL SELECT {_FIRST_COLUMNS} FROM known_{table}_moved",
            )

    def create_repeated(self) -> None:
        """Create `repeated`."""
        self._sql.create(
            "repeated",
            """
            SELECT seq FROM (
                SELECT seq, row_number() OVER (PARTITION BY game_id, event_uuid ORDER BY seq) AS nth
                FROM staged WHERE event_uuid IS NOT NULL
            ) AS named WHERE nth > 1
            UNION SELECT seq FROM staged SEMI JOIN earlier_events USING (game_id, event_uuid)""",
        )

    def create_known_players(self) -> None:
        """Create `known_players`.

        An install is a stated one if the event that it names has another time.
        """
        self._sql.create(
            "known_players",
            f"""
            WITH known AS (SELECT * FROM earlier_installs SEMI JOIN found USING (game_id, user_id)),
            seen AS (
                SELECT earlier_events.seq FROM earlier_events
                JOIN known ON earlier_events.seq = known.seq AND earlier_events.ts = known.ts
            ),
            paid AS (SELECT player, epoch_us(ts) AS paid_us, seq AS paid_seq FROM earlier_payments)
            SELECT known.game_id, known.user_id, known.player, epoch_us(known.ts) AS installed_us,
                CASE WHEN seen.seq IS NULL THEN known.seq + {STATED_BY} ELSE known.seq END AS install_seq, combination,
                coalesce(paid_us, {NEVER}) AS paid_us, coalesce(paid_seq, {NEVER}) AS paid_seq
            FROM known LEFT JOIN seen ON known.seq = seen.seq LEFT JOIN paid ON known.player = paid.player
            JOIN combined ON {SAME_WITHOUT_MONEY.format("known")}""",  # noqa: S608
        )

    def create_known_days(self, name: str, spans: str) -> None:
        """Create *name* of the earlier memberships in the relation *spans*."""
        day = DAY_NUMBER.format("earlier_active.day")
        self._sql.create(
            name,
            f"""
            WITH members AS (
                SELECT DISTINCT day, {_DIMENSIONS}, currency, earlier_active.player FROM earlier_active
                JOIN {spans} AS spans ON earlier_active.player = spans.player AND {day} BETWEEN first AND last
            )
            SELECT player, day, combination FROM members
            JOIN combined ON {SAME_CELL.format("members")}""",  # noqa: S608
        )

    def key_sql(self, *columns: str) -> str:
        """Return the SQL of a key for each row: its *columns* together."""
        return f"row({', '.join(columns)})"

    def create_old_sessions(self) -> None:
        """Create `old_sessions`."""
        self._sql.create(
            "old_sessions",
            f"""
            WITH earlier AS (
                SELECT day, {_DIMENSIONS}, session_id, bool_or(category = 'session_end') AS ended
                FROM earlier_events SEMI JOIN session_ids USING (game_id, session_id) GROUP BY ALL
            )
            SELECT {self.key_sql("earlier.game_id", "session_id")} AS sid, day, combination, ended FROM earlier
            JOIN combined ON {SAME_WITHOUT_MONEY.format("earlier")}""",  # noqa: S608
        )

    def create_old_impressions(self) -> None:
        """Create `old_impressions`."""
        self._sql.create(
            "old_impressions",
            f"""
            SELECT {self.key_sql("game_id", "ilrd_id")} AS iid, count(*) AS had, min(day) AS day
            FROM earlier_events SEMI JOIN impression_ids USING (game_id, ilrd_id)
            WHERE category = 'impression' GROUP BY game_id, ilrd_id""",  # noqa: S608
        )

    def note_players(self) -> None:
        """Keep nothing: the tables have all of it."""

    note_days = note_sessions = note_impressions = note_players
