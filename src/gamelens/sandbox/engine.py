"""The only door to the query engine: DuckDB, in memory, over the files of the lake.

Two connections with different rights. A `Reader` answers questions: once made it sees the lake's folder and nothing
else, loads no extension, and cannot be reconfigured. A `Workshop` writes files for processing; no request text ever
reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb

from gamelens.errors import Refused
from gamelens.wire.currencies import SCALED_RATES

MEMORY_LIMIT = "1GB"

_TEXTS = (
    *("category", "user_id", "session_id", "event_uuid", "country_code", "platform", "build"),
    *("ad_sdk_name", "ad_type", "ad_action"),
    *("ilrd_sdk_vendor", "ilrd_adunit_name", "ilrd_network_name", "ilrd_adunit_format", "ilrd_id"),
    *("install_publisher", "ab_id", "ab_variant_id", "severity"),
)
EVENT_COLUMNS: Final = {
    "seq": "BIGINT",  # the order of arrival
    "game_id": "VARCHAR",
    "ts": "TIMESTAMP",  # event time, UTC
    "day": "DATE",
    **dict.fromkeys(_TEXTS, "VARCHAR"),
    "length": "BIGINT",  # seconds, of a session that ended
    "money": "BIGINT",  # hundredths of a purchase, billionths of an impression, in `currency`
    "currency": "VARCHAR",
}
PLAYER_COLUMNS: Final = {
    "game_id": "VARCHAR",
    "user_id": "VARCHAR",
    "installed_at": "TIMESTAMP",
    "install_seq": "BIGINT",
    "install_day": "DATE",
    "first_build": "VARCHAR",
    "paid_at": "TIMESTAMP",  # the first purchase; null for who never paid
    "paid_seq": "BIGINT",
}


class Statement(Protocol):
    """What the planner hands over: something that can be written in a dialect."""

    def sql(self, dialect: str) -> str:
        """The statement as text."""
        ...


class Reader:
    """Answers statements over `events`, `players` and `rates`, where the first two are the files of one snapshot."""

    def __init__(self, lake: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE rates (currency VARCHAR PRIMARY KEY, scaled BIGINT)")
        rates = [list(SCALED_RATES), list(SCALED_RATES.values())]
        self._connection.execute("INSERT INTO rates SELECT unnest(?), unnest(?)", rates)
        for setting in (
            f"SET memory_limit = '{MEMORY_LIMIT}'",
            f"SET allowed_directories = [{_literal(str(lake.resolve()))}]",
            "SET autoinstall_known_extensions = false",
            "SET autoload_known_extensions = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)

    def rows(
        self,
        statement: Statement,
        parameters: Mapping[str, Any],
        *,
        events: Sequence[Path],
        players: Path | None,
    ) -> list[dict[str, Any]]:
        """All rows of *statement*, in its order. Safe to call from several threads at once."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP VIEW events AS {_files(events, EVENT_COLUMNS)}")
            cursor.execute(f"CREATE TEMP VIEW players AS {_files([players] if players else [], PLAYER_COLUMNS)}")
            cursor.execute(statement.sql("duckdb"), dict(parameters))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()


class Workshop:
    """Runs the statements of processing; spills into *scratch* rather than outgrow its memory."""

    def __init__(self, scratch: Path) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        self._connection.execute(f"SET temp_directory = {_literal(str(scratch))}")
        self._connection.execute("SET preserve_insertion_order = false")

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and answer its rows."""
        try:
            return self._connection.execute(sql, list(parameters)).fetchall()
        except duckdb.Error as error:
            raise Refused(f"processing stopped, nothing was changed: {error}") from error

    def files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make *paths* readable as *name*; no paths at all are an empty table of *columns*."""
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {_files(paths, columns)}")

    def close(self) -> None:
        """Release the engine's memory."""
        self._connection.close()


def _files(paths: Sequence[Path], columns: Mapping[str, str]) -> str:
    if not paths:
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items())
        return f"SELECT {empty} LIMIT 0"
    names = ", ".join(_literal(str(path.resolve())) for path in paths)
    return f"FROM read_parquet([{names}])"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
