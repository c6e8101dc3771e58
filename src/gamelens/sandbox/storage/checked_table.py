"""SQLite tables with a checksum for each row, because SQLite does not notice when a stored byte changes.

Rows are read in full and by number only: a damaged index would hide some.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final
from zlib import crc32

Values = tuple[Any, ...]

_COPY: Final = "_copy"  # of a table of 0.1, which kept each of them twice


class CheckedTable:
    """A table called *name*, whose rows are numbered by the caller.

    *columns* are the types of the columns beside the number, by name.
    """

    def __init__(self, name: str, columns: Mapping[str, str]) -> None:
        self.name = name
        self.columns = columns

    def read(self, store: sqlite3.Connection, *, newest: int = -1) -> dict[int, Values]:
        """Return the values of each row that is sound, by number.

        Only the *newest* rows are read; a negative number takes all.

        Raises:
            sqlite3.DatabaseError: the table cannot be read.
        """
        # As a blob, because text that is not UTF-8 would be an error of the whole statement.
        names = [f"CAST({name} AS BLOB)" if "TEXT" in kind else name for name, kind in self.columns.items()]
        query = f"SELECT number, {', '.join(names)}, checksum FROM {self.name} ORDER BY number DESC LIMIT ?"  # noqa: S608
        rows = {}
        for number, *stored, checksum in store.execute(query, (newest,)):
            values = tuple([value.decode(errors="replace") if type(value) is bytes else value for value in stored])
            if _checksum(number, values) == checksum:
                rows[number] = values
        return dict(sorted(rows.items()))

    def write(self, store: sqlite3.Connection, rows: Mapping[int, Values]) -> None:
        """Add *rows*, or replace those of the same numbers, inside the caller's transaction."""
        names = ", ".join(("number", *self.columns, "checksum"))
        places = ", ".join("?" * (len(self.columns) + 2))
        store.executemany(
            f"INSERT OR REPLACE INTO {self.name} ({names}) VALUES ({places})",  # noqa: S608
            [(number, *values, _checksum(number, values)) for number, values in rows.items()],
        )

    def delete(self, store: sqlite3.Connection, numbers: Iterable[int]) -> None:
        """Delete the rows called *numbers*, inside the caller's transaction."""
        store.executemany(f"DELETE FROM {self.name} WHERE number = ?", [(number,) for number in numbers])  # noqa: S608

    def create(self, store: sqlite3.Connection) -> None:
        """Create the table empty, and drop an earlier one with its rows."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        self.drop(store)
        store.execute(f"CREATE TABLE {self.name} (number INTEGER PRIMARY KEY, {columns}, checksum INTEGER)")

    def drop(self, store: sqlite3.Connection) -> None:
        """Drop the table, if it exists."""
        for name in (self.name, self.name + _COPY):
            store.execute(f"DROP TABLE IF EXISTS {name}")

    def exists(self, store: sqlite3.Connection) -> bool:
        """Return whether the table was ever created."""
        found = store.execute("SELECT 1 FROM sqlite_master WHERE name IN (?, ?)", (self.name, self.name + _COPY))
        return found.fetchone() is not None

    def damaged_rows(self, store: sqlite3.Connection) -> int:
        """Return the number of rows that are not sound."""
        ((count,),) = store.execute(f"SELECT count(*) FROM {self.name}")  # noqa: S608
        return int(count) - len(self.read(store))


def _checksum(number: int, values: Values) -> int:
    return crc32(repr((number, *values)).encode(errors="surrogatepass"))
