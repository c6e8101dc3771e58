"""Export of the lake: a Delta table of each organisation's events, over the same files.

On the lake's own disk the table's files are hard links, which take no space and keep what the lake later drops;
elsewhere they are copies. Another export adds new files and removes replaced ones, as one more version of the table.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time as real_time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

from gamelens._files import disk_trouble
from gamelens.errors import Refused
from gamelens.sandbox.state.state_directory import check_state, link_or_copy
from gamelens.sandbox.storage.lake import Lake, folder_of
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS, FORMAT
from gamelens.sandbox.storage.manifest import LakePart, file_checksum

_TYPES: Final = {
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
}
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_EVENTS: Final = pa.schema([(name, _TYPES[kind]) for name, kind in EVENT_COLUMNS.items()])


class ExportedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The exported Delta table of one organisation's events: its path or URL, its version, its size."""

    table: str
    version: int
    files: int
    rows: int


def export_delta(state: Path, out: str) -> dict[str, ExportedTable]:
    """Write the lake of *state* as Delta tables below *out*, and return them by organisation.

    *out* is a path or a URL. A sandbox may be running on *state*. Nothing in it is changed.

    Raises:
        Refused: there is no lake to read, *out* cannot be written, or the package for Delta is missing.
    """
    try:
        from deltalake.exceptions import DeltaError
    except ModuleNotFoundError:
        raise Refused("Delta needs deltalake: pip install 'gamelens[delta]'") from None
    check_state(state)
    address = f"{(state / 'gamelens.db').resolve().as_uri()}?mode=ro"  # it may be in use
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=30)) as store:
            lake = Lake(state / "lake", store)
            if lake.lost_because:
                raise Refused(f"{lake.lost_because}: `gamelens sandbox rebuild --state {state}` rebuilds the lake")
            parts = {name: lake.snapshot(name).parts("events") for name in lake.organisations()}
            for part in (part for of_events in parts.values() for part in of_events):
                if file_checksum(part.path) != part.content:
                    raise Refused(f"{part.path} is damaged: `gamelens sandbox rebuild --state {state}` rebuilds it")
        return {name: _update_table(out, name, of_events) for name, of_events in parts.items()}
    except FileNotFoundError as error:
        raise Refused(f"{error.filename} was replaced while it was exported: export again") from error
    except (OSError, pa.ArrowException, DeltaError, sqlite3.Error) as error:
        reason = _COLOURS.sub("", disk_trouble(error, out))
        raise Refused(f"the lake in {state} was not exported to {out}: {reason}") from error


def _update_table(out: str, organisation: str, parts: Sequence[LakePart]) -> ExportedTable:
    """Commit a version of the table of *organisation* below *out* that consists of *parts*."""
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction

    events = f"{folder_of(organisation)}/events"
    filesystem, root = FileSystem.from_uri(out if "://" in out else Path(out).resolve().as_uri())
    is_local, folder = isinstance(filesystem, LocalFileSystem), f"{root}/{events}"
    target = folder if is_local else f"{out.rstrip('/')}/{quote(events)}"
    table = DeltaTable(target) if DeltaTable.is_deltatable(target) else DeltaTable.create(target, _EVENTS)
    # Columns that the lake has gained since are a version of their own.
    known = {field.name for field in table.schema().fields}
    if added := [field for field in Schema.from_arrow(_EVENTS).fields if field.name not in known]:
        table.alter.add_columns(added)
    # With the time in its name, no other version of a file has the same one, even after a reset.
    wanted = {f"{part.path.stem}-{part.path.stat().st_mtime_ns:x}.parquet": part for part in parts}
    present = {uri.rpartition("/")[2] for uri in table.file_uris()}
    changes: list[AddAction | RemoveAction] = []
    for name in sorted(wanted.keys() - present):
        part, status = wanted[name], wanted[name].path.stat()
        filesystem.create_dir(folder)
        if is_local:
            Path(folder, name).unlink(missing_ok=True)  # an unfinished copy
            link_or_copy(part.path, Path(folder, name))
        else:
            copy_files(str(part.path), f"{folder}/{name}", destination_filesystem=filesystem)
        # With the days of its rows, readers skip the files that a query does not touch.
        first, last = ({"day": day.isoformat()} if day else {} for day in (part.first_day, part.last_day))
        stats = {"numRecords": part.rows, "minValues": first, "maxValues": last, "nullCount": {"day": 0}}
        changes.append(AddAction(name, status.st_size, {}, status.st_mtime_ns // 1_000_000, True, json.dumps(stats)))
    now_ms = round(real_time.time() * 1000)
    changes += [RemoveAction(name, True, now_ms) for name in sorted(present - wanted.keys())]
    if changes:
        properties = CommitProperties(custom_metadata={"lake_format": str(FORMAT)})
        table.create_write_transaction(changes, "append", _EVENTS, commit_properties=properties)
        table.update_incremental()
    rows = sum(part.rows for part in parts)
    return ExportedTable(table=target, version=table.version(), files=len(wanted), rows=rows)
