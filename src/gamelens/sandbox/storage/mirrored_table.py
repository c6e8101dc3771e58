"""SQLite tables that are kept twice, with a checksum for each row.

SQLite does not notice when a stored byte changes. A row of a `MirroredTable` that fails its checksum, or is missing, is
read from the other copy, so that no single damage loses or changes a row. Rows are read in full and by number only,
because a damaged index would hide some.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from zlib import crc32

Values = tuple[Any, ...]

_COPY: Final = "_copy"


class MirroredTable:
    """A table *name* and its copy, whose rows are numbered by the caller.

    Args:
        name: name of the table. That of the copy ends in `_copy`.
        columns: types of the columns beside the number, by name.

    Attributes:
        names: names of both SQLite tables.
    """

    def __init__(self, name: str, columns: Mapping[str, str]) -> None:
        self.names = (name, name + _COPY)
        self._columns = columns

    def read(self, store: sqlite3.Connection, *, newest: int = -1) -> dict[int, Values]:
        """Return the values of each row that is sound in either copy, by number.

        Only the *newest* rows of each copy are read; a negative number takes all.

        Raises:
            sqlite3.DatabaseError: neither copy can be read.
        """
        first = self._read_copy(store, self.names[0], newest)
        known = first if isinstance(first, dict) else {}
        second = self._read_copy(store, self.names[1], newest, known=known)
        if isinstance(first, sqlite3.DatabaseError) and isinstance(second, sqlite3.DatabaseError):
            raise first
        return dict(sorted((known | (second if isinstance(second, dict) else {})).items()))

    def write(self, store: sqlite3.Connection, rows: Mapping[int, Values]) -> None:
        """Add *rows*, or replace those of the same numbers, inside the caller's transaction."""
        names = ", ".join(("number", *self._columns, "checksum"))
        places = ", ".join("?" * (len(self._columns) + 2))
        for table in self.names:
            store.executemany(
                f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})",  # noqa: S608
                [(number, *values, _checksum(number, values)) for number, values in rows.items()],
            )

    def delete(self, store: sqlite3.Connection, numbers: Iterable[int]) -> None:
        """Delete the rows called *numbers*, inside the caller's transaction."""
        for table in self.names:
            store.executemany(f"DELETE FROM {table} WHERE number = ?", [(number,) for number in numbers])  # noqa: S608

    def create(self, store: sqlite3.Connection) -> None:
        """Create both copies empty, and drop earlier ones with their rows."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self._columns.items())
        self.drop(store)
        for table in self.names:
            store.execute(f"CREATE TABLE {table} (number INTEGER PRIMARY KEY, {columns}, checksum INTEGER)")

    def drop(self, store: sqlite3.Connection) -> None:
        """Drop both copies, if they exist."""
        for table in self.names:
            store.execute(f"DROP TABLE IF EXISTS {table}")

    def is_whole(self, store: sqlite3.Connection) -> bool:
        """Return whether both copies have the same sound rows and no others."""
        known = self.read(store)
        return all(self._has_only(store, table, known) for table in self.names)

    def exists(self, store: sqlite3.Connection) -> bool:
        """Return whether the table was ever created."""
        ((count,),) = store.execute("SELECT count(*) FROM sqlite_master WHERE name IN (?, ?)", self.names)
        return bool(count)

    def repair(self, store: sqlite3.Connection) -> bool:
        """Write both copies anew if one of them is damaged, inside the caller's transaction.

        Returns whether it was.

        Raises:
            sqlite3.DatabaseError: neither copy can be read.
        """
        if self.is_whole(store):
            return False
        known = self.read(store)
        self.create(store)
        self.write(store, known)
        return True

    def _has_only(self, store: sqlite3.Connection, table: str, known: Mapping[int, Values]) -> bool:
        try:
            ((count,),) = store.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
        except sqlite3.DatabaseError:
            return False
        return count == len(known) and self._read_copy(store, table, -1) == known

    def _read_copy(
        self, store: sqlite3.Connection, table: str, newest: int, *, known: Collection[int] = ()
    ) -> dict[int, Values] | sqlite3.DatabaseError:
        """Return the sound rows of one copy without the *known*, or the error."""
        # As a blob, because text that is no UTF-8 would be an error of the whole statement.
        names = [f"CAST({name} AS BLOB)" if "TEXT" in kind else name for name, kind in self._columns.items()]
        query = f"SELECT number, {', '.join(names)}, checksum FROM {table} ORDER BY number DESC LIMIT ?"  # noqa: S608
        rows = {}
        try:
            for number, *stored, checksum in store.execute(query, (newest,)):
                if number in known:
                    continue
                values = tuple([value.decode(errors="replace") if type(value) is bytes else value for value in stored])
                if _checksum(number, values) == checksum:
                    rows[number] = values
        except sqlite3.DatabaseError as error:
            return error
        return rows


def _checksum(number: int, values: Values) -> int:
    return crc32(repr((number, *values)).encode(errors="surrogatepass"))
