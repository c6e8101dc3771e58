"""Exports of raw events, their import, and lines of such exports written by hand."""

from __future__ import annotations

import contextlib
import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from gamelens.sandbox.imports.import_run import ImportOptions, ImportResult, import_raw_events
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.simulator import ExportFormat, Ledger, export_raw, load_scenario
from gamelens.wire.intervals import Interval
from support.game_events import NOW
from support.reference_lake import lake_tables
from support.sandbox_stage import Stage

ENDS_ON = date(2026, 11, 10)
SCENARIO = load_scenario("dirty", players=40, days=12)
OVER = Interval.parse("2026-10-29/2026-11-18")
IN_GROUPS = ImportOptions(group_events=800, chunk_rows=500)
IN_ONE_GROUP = ImportOptions()


class Exported(NamedTuple):
    """An export of the scenario and the ledger of its events."""

    folder: Path
    ledger: Ledger


def frozen_clock() -> Clock:
    """Return a clock that stands still."""
    clock = Clock()
    clock.freeze(NOW)
    return clock


def export(folder: Path, kind: ExportFormat, *, file_rows: int = 400) -> Exported:
    """Export the scenario, with at most *file_rows* rows in a file."""
    ledger = Ledger()
    export_raw(SCENARIO, folder, kind, ends_on=ENDS_ON, ledger=ledger, file_rows=file_rows)
    return Exported(folder, ledger)


def take(state: Path, *sources: Path | str, options: ImportOptions = IN_GROUPS, **more: Any) -> ImportResult:
    """Import *sources* into *state*, which gets the games of a `Stage`."""
    if not state.exists():
        state.parent.mkdir(exist_ok=True)
        Stage(state).sandbox.close()
    return import_raw_events(state, [str(source) for source in sources], options, clock=frozen_clock(), **more)


def tables(state: Path, *names: str) -> dict[str, pa.Table]:
    """Return the tables of the lake of *state*, or those called *names*."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        return lake_tables(Lake(state / "lake", store).snapshot("acme"), *names)


def table_of(state: Path, name: str) -> pa.Table:
    """Return the table *name* of the lake of *state*."""
    return tables(state, name)[name]


def wrapped(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a line with the event *data*, which arrives a minute after it happened."""
    meta = {"install_ts": data["client_ts"]} | fields.pop("user_meta", {})
    return (
        {"arrival_ts": data["client_ts"] + 60, "game_id": 1001, "ip": "198.51.100.0", "data": data}
        | fields
        | {"user_meta": meta}
    )


def write_lines(path: Path, *lines: Any) -> Path:
    """Write gzipped *lines*: JSON values, or bytes as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(gzip.compress(b"\n".join(texts) + b"\n", mtime=0))
    return path
