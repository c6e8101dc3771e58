"""The lake as other tools want it: the events of each organisation as a Delta table over the same Parquet files.

A file that never changes may have several names: on the lake's own disk the table's files are links, which cost
nothing and keep what the lake later drops; anywhere else they are copies. Exporting again adds what is new and removes
what was replaced, as one more version of the table.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time as real_time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

from gamelens.errors import Refused
from gamelens.sandbox.state_directory import check_state
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS, FORMAT

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

_TYPES: Final = {
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
}
_EVENTS: Final = pa.schema([(name, _TYPES[kind]) for name, kind in EVENT_COLUMNS.items()])


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one organisation's events: where it is, its version, and what it has now."""

    table: str
    version: int
    files: int
    rows: int


def export_delta(state: Path, out: str) -> dict[str, Exported]:
    """Write Delta tables of the newest version of the lake in *state* below *out*, a path or URL, by organisation.

    A sandbox may be running on *state*; nothing of it is changed.

    Raises:
        Refused: there is no lake to read, *out* cannot be written, or the package for Delta is missing.
    """
    try:
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        raise Refused("Delta needs deltalake: pip install 'gamelens[delta]'") from None
    try:
        with _lake(state) as lake:
            snapshots = {name: lake.snapshot(name).days for name in lake.organisations()}
        days = {name: {day: path for day, path in files.items() if day} for name, files in snapshots.items()}
        return {name: _table(_Out(out, name), files) for name, files in days.items()}
    except FileNotFoundError as error:
        raise Refused(f"{error.filename} was replaced while it was exported: export again") from error
    except (OSError, pa.ArrowException, DeltaError, sqlite3.Error) as error:
        raise Refused(f"the lake in {state} was not exported to {out}: {error}") from error


class _Out:
    """The folder of one table, on this machine's disks or anywhere a URL can name."""

    def __init__(self, out: str, organisation: str) -> None:
        folder = f"org-{quote(organisation, safe='')}/events"
        self._filesystem, root = FileSystem.from_uri(out if "://" in out else Path(out).resolve().as_uri())
        self._is_local = isinstance(self._filesystem, LocalFileSystem)
        self._folder = f"{root}/{folder}"
        self.table = self._folder if self._is_local else f"{out.rstrip('/')}/{quote(folder)}"

    def take(self, path: Path, name: str) -> None:
        """Have the lake's file *path* under *name*."""
        self._filesystem.create_dir(self._folder)
        target = f"{self._folder}/{name}"
        if not self._is_local:
            copy_files(str(path), target, destination_filesystem=self._filesystem)
            return
        Path(target).unlink(missing_ok=True)  # a copy that was not finished
        try:
            os.link(path, target)
        except OSError:  # another disk, or one that knows no links
            shutil.copyfile(path, target)


def _table(out: _Out, days: dict[date, Path]) -> Exported:
    """Bring the table in *out* to the files of *days*."""
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import RemoveAction

    table = DeltaTable(out.table) if DeltaTable.is_deltatable(out.table) else DeltaTable.create(out.table, _EVENTS)
    wanted = {_name(path): (day, path) for day, path in days.items()}
    had = {uri.rpartition("/")[2] for uri in table.file_uris()}
    for name in wanted.keys() - had:
        out.take(wanted[name][1], name)
    adds = [_added(name, *wanted[name]) for name in sorted(wanted.keys() - had)]
    now_ms = round(real_time.time() * 1000)
    removes = [RemoveAction(name, True, now_ms) for name in sorted(had - wanted.keys())]
    if adds or removes:
        properties = CommitProperties(custom_metadata={"lake_format": str(FORMAT)})
        table.create_write_transaction([*adds, *removes], "append", _EVENTS, commit_properties=properties)
        table.update_incremental()
    rows = sum(pq.read_metadata(path).num_rows for path in days.values())
    return Exported(table=out.table, version=table.version(), files=len(wanted), rows=rows)


def _name(path: Path) -> str:
    """A name that this file alone has, whatever was processed, reset or processed again."""
    return f"{path.stem}-{path.stat().st_mtime_ns:x}.parquet"


def _added(name: str, day: date, path: Path) -> AddAction:
    from deltalake.transaction import AddAction

    found = path.stat()
    # With the day of its rows a reader skips the files that a question does not touch.
    bounds = {"day": day.isoformat()}
    rows = pq.read_metadata(path).num_rows
    stats = {"numRecords": rows, "minValues": bounds, "maxValues": bounds, "nullCount": {"day": 0}}
    return AddAction(name, found.st_size, {}, found.st_mtime_ns // 1_000_000, True, json.dumps(stats))


@contextmanager
def _lake(state: Path) -> Iterator[Lake]:
    """The lake in *state*, which may be in use, to read."""
    check_state(state)
    store = sqlite3.connect(f"{(state / 'gamelens.db').resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        if store.execute("PRAGMA user_version").fetchone() != (FORMAT,):
            raise Refused(f"the lake in {state} is of another format: `gamelens sandbox process` makes it anew")
        yield Lake(state / "lake", store)
    finally:
        store.close()
