"""Writer of one organisation's new parts and runs, and its view of the last version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from gamelens.sandbox.engines.engine import BuildEngine
from gamelens.sandbox.storage.keyed_runs import PREFIX, Columns, KeyedRuns, UInts, write_run
from gamelens.sandbox.storage.lake import Lake, Snapshot, folder_of
from gamelens.sandbox.storage.lake_schema import COLUMNS, UNDATED
from gamelens.sandbox.storage.manifest import LakePart

GROUP_ROWS: Final = 122_880
"""Most rows in a row group of a part."""
_SMALL_GROUP_ROWS: Final = 8192
_SMALL_GROUPS: Final = frozenset(("returns", "sessions_shared", "daily_players_shared"))
_ORDER: Final = {  # such that a query skips most row groups of a file
    "events": "day, ts",
    "slim": "category, day",
    "cube": "category, day",
    "returns": "age, day",
    "installs": "player",
    "payments": "player",
    "combinations": "combination",
    "stated_installs": "game_id, user_id",
    **dict.fromkeys(("installs_moved", "payments_moved"), "player"),
}


class PartWriter:
    """The files that a run adds to an organisation, and the files of the last version that they replace (`retired`).

    `snapshot` is the last version, which the run does not change, or an empty one for a lake that is made anew.
    """

    def __init__(self, organisation: str, lake: Lake, sql: BuildEngine, folder: str, *, is_anew: bool = False) -> None:
        self.snapshot = Snapshot({}, organisation) if is_anew else lake.snapshot(organisation)
        self.sql = sql
        self.files: list[LakePart] = []
        self.retired: list[Path] = []
        self._organisation = organisation
        self._root = lake.root
        self._folder = lake.root / folder / folder_of(organisation)
        shutil.rmtree(self._folder, ignore_errors=True)  # what a run that was killed has left there
        self._count = 0
        self._known: set[str] = set()

    def known(self, table: str) -> str:
        """Return the name under which the rows of *table* in the last version can be read."""
        if table not in self._known:
            self._known.add(table)
            self.sql.view_files(f"known_{table}", self.snapshot.files(table), COLUMNS[table])
        return f"known_{table}"

    def runs(self, kind: str) -> KeyedRuns:
        """Return the runs of *kind* of the last version."""
        return KeyedRuns(kind, self.snapshot.files(PREFIX + kind))

    def add(self, table: str, select: str, *, level: int = 0) -> None:
        """Write the rows of *select* as a part of *table*, if there are any.

        A cluster writes several parts.
        """
        columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS[table].items())
        rows = f"SELECT {columns} FROM ({select}) AS part ORDER BY {_ORDER.get(table, 'day')}"
        group_rows = _SMALL_GROUP_ROWS if table in _SMALL_GROUPS else GROUP_ROWS
        for path in self.sql.write(rows, self._new_path(table, "parquet"), group_rows=group_rows):
            self._list_part(table, path, level)

    def adopt(self, table: str, path: Path) -> None:
        """Make the file at *path*, which has the columns of *table*, a part of it."""
        adopted = self._new_path(table, "parquet")
        path.rename(adopted)
        self._list_part(table, adopted, 0)

    def add_run(self, kind: str, high: UInts, low: UInts | None, columns: Columns, *, level: int = 0) -> None:
        """Write a keyed run of *kind*, if it has rows. The keys are *high* alone, or 128 bits."""
        if len(high):
            path = self._new_path(PREFIX + kind, "arrow")
            write_run(path, kind, high, low, columns)
            self._list(path, PREFIX + kind, len(high), level)

    def retire(self, paths: Iterable[Path]) -> None:
        """Leave the files *paths* of the last version out of the new one."""
        self.retired += paths

    def sync(self) -> None:
        """Sync the folders, so that the names of the new files survive a crash."""
        if self.files:
            for folder in (self._folder, self._folder.parent, self._root):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _new_path(self, kind: str, ending: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._count += 1
        return self._folder / f"{kind}-{self._count}.{ending}"

    def _list_part(self, table: str, path: Path, level: int) -> None:
        metadata = pq.read_metadata(path)
        days: dict[str, date] = {}
        if not metadata.num_rows:
            path.unlink()
            return
        if table not in UNDATED:
            place = metadata.schema.names.index("day")
            groups = [metadata.row_group(number).column(place).statistics for number in range(metadata.num_row_groups)]
            days = {"first_day": min(group.min for group in groups), "last_day": max(group.max for group in groups)}
        self._list(path, table, metadata.num_rows, level, **days)

    def _list(self, path: Path, kind: str, rows: int, level: int, **days: date) -> None:
        with path.open("rb") as file:
            os.fsync(file.fileno())
        self.files.append(LakePart.of_file(path, self._organisation, kind, rows=rows, level=level, **days))
