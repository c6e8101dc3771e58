"""Export of the lake: a Delta table of each organisation's events, over the same files.

On the lake's own disk the table's files are hard links, which take no space and keep what the lake later drops;
elsewhere they are copies. Another export adds new files and removes replaced ones, as one more version of the table.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time as real_time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

from gamelens.errors import Refused
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.storage.lake import Lake, folder_of
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS, FORMAT
from gamelens.sandbox.storage.manifest import LakePart, file_checksum

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

_TYPES: Final = {
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
}
_EVENTS: Final = pa.schema([(name, _TYPES[kind]) for name, kind in EVENT_COLUMNS.items()])


class ExportedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The exported table of one organisation's events.

    Attributes:
        table: path or URL of the table.
        version: version of the Delta table.
        files: number of its Parquet files.
        rows: number of its rows.
    """

    table: str
    version: int
    files: int
    rows: int


def export_delta(state: Path, out: str) -> dict[str, ExportedTable]:
    """Write the lake of *state* as Delta tables below *out*, and return them by organisation.

    *out* is a path or a URL. A sandbox may be running on *state*, of which nothing is changed.

    Raises:
        Refused: there is no lake to read, *out* cannot be written, or the package for Delta is missing.
    """
    try:
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        raise Refused("Delta needs deltalake: pip install 'gamelens[delta]'") from None
    try:
        with _open_lake(state) as lake:
            parts = {name: lake.snapshot(name).parts("events") for name in lake.organisations()}
            for part in (part for of_events in parts.values() for part in of_events):
                if file_checksum(part.path) != part.content:
                    raise Refused(f"{part.path} is damaged: `gamelens sandbox rebuild --state {state}` makes it again")
        return {name: _update_table(_TargetFolder(out, name), of_events) for name, of_events in parts.items()}
    except FileNotFoundError as error:
        raise Refused(f"{error.filename} was replaced while it was exported: export again") from error
    except (OSError, pa.ArrowException, DeltaError, sqlite3.Error) as error:
        raise Refused(f"the lake in {state} was not exported to {out}: {error}") from error


class _TargetFolder:
    """The folder of one table, on a local disk or at a URL."""

    def __init__(self, out: str, organisation: str) -> None:
        folder = f"{folder_of(organisation)}/events"
        self._filesystem, root = FileSystem.from_uri(out if "://" in out else Path(out).resolve().as_uri())
        self._is_local = isinstance(self._filesystem, LocalFileSystem)
        self._folder = f"{root}/{folder}"
        self.table = self._folder if self._is_local else f"{out.rstrip('/')}/{quote(folder)}"

    def add_file(self, path: Path, name: str) -> None:
        """Link or copy the lake's file *path* into the folder as *name*."""
        self._filesystem.create_dir(self._folder)
        target = f"{self._folder}/{name}"
        if not self._is_local:
            copy_files(str(path), target, destination_filesystem=self._filesystem)
            return
        Path(target).unlink(missing_ok=True)  # an unfinished copy
        try:
            os.link(path, target)
        except OSError:  # another disk, or a file system without links
            shutil.copyfile(path, target)


def _update_table(target: _TargetFolder, parts: Sequence[LakePart]) -> ExportedTable:
    """Commit a version of the table in *target* that consists of *parts*."""
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import RemoveAction

    table = (
        DeltaTable(target.table) if DeltaTable.is_deltatable(target.table) else DeltaTable.create(target.table, _EVENTS)
    )
    # Columns that the lake has gained since are a version of their own.
    known = {field.name for field in table.schema().fields}
    if added := [field for field in Schema.from_arrow(_EVENTS).fields if field.name not in known]:
        table.alter.add_columns(added)
    # With the time in its name, no other version of a file has the same one, even after a reset.
    wanted = {f"{part.path.stem}-{part.path.stat().st_mtime_ns:x}.parquet": part for part in parts}
    present = {uri.rpartition("/")[2] for uri in table.file_uris()}
    for name in wanted.keys() - present:
        target.add_file(wanted[name].path, name)
    adds = [_add_action(name, wanted[name]) for name in sorted(wanted.keys() - present)]
    now_ms = round(real_time.time() * 1000)
    removes = [RemoveAction(name, True, now_ms) for name in sorted(present - wanted.keys())]
    if adds or removes:
        properties = CommitProperties(custom_metadata={"lake_format": str(FORMAT)})
        table.create_write_transaction([*adds, *removes], "append", _EVENTS, commit_properties=properties)
        table.update_incremental()
    rows = sum(part.rows for part in parts)
    return ExportedTable(table=target.table, version=table.version(), files=len(wanted), rows=rows)


def _add_action(name: str, part: LakePart) -> AddAction:
    from deltalake.transaction import AddAction

    status = part.path.stat()
    # With the days of its rows, readers skip the files that a query does not touch.
    first, last = ({"day": day.isoformat()} if day else {} for day in (part.first_day, part.last_day))
    stats = {"numRecords": part.rows, "minValues": first, "maxValues": last, "nullCount": {"day": 0}}
    return AddAction(name, status.st_size, {}, status.st_mtime_ns // 1_000_000, True, json.dumps(stats))


@contextmanager
def _open_lake(state: Path) -> Iterator[Lake]:
    """Open the lake in *state* for reading while it may be in use."""
    check_state(state)
    store = sqlite3.connect(f"{(state / 'gamelens.db').resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        lake = Lake(state / "lake", store)
        if lake.lost_because:
            raise Refused(f"{lake.lost_because}: `gamelens sandbox rebuild --state {state}` makes the lake again")
        yield lake
    finally:
        store.close()
