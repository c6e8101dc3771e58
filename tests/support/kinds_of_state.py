"""State directories of each kind: events that were collected, imported, or both."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any
from zlib import crc32

from gamelens.sandbox.storage.lake_schema import FORMAT
from support.game_events import NOW, event
from support.raw_exports import take, wrapped, write_lines
from support.sandbox_stage import Stage

KINDS = ("collected", "imported", "mixed")
"""The kinds of states, as `make_state` takes them."""
_DAY_S = 86_400


def make_state(state: Path, kind: str) -> Path:
    """Make a state directory of *kind* with events of several days, which nobody uses, and return it.

    The imported events are older than the collected ones.
    """
    state.parent.mkdir(parents=True, exist_ok=True)
    if kind != "collected":
        lines = [wrapped(data) for data in _events("old", days_ago=6)]
        take(state, write_lines(state.parent / f"{kind}-source" / "events.json.gz", *lines))
    if kind != "imported":
        stage = Stage(state)
        with contextlib.closing(stage.sandbox):
            for name in ("first", "second"):
                stage.submit(_events(name, days_ago=0))
                stage.process()
    return state


def lake_files(state: Path) -> set[str]:
    """Return the files in `lake/` of *state*, by their path in it."""
    lake = state / "lake"
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}


def deleted_files(state: Path, before: set[str]) -> set[str]:
    """Return those of the files *before* that are neither in `lake/` nor in `quarantine/` of *state*."""
    quarantined = {str(path) for path in (state / "quarantine").rglob("*") if path.is_file()}
    return {name for name in before - lake_files(state) if not any(path.endswith(f"/{name}") for path in quarantined)}


def raise_layout(path: Path) -> None:
    """Give the lake of the store at *path* the layout of a later version, as that would write it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute(f"PRAGMA user_version = {FORMAT + 1}")
        for number, *values in store.execute("SELECT * FROM runs").fetchall():
            checksum = crc32(repr((number, *values[:-2], FORMAT + 1)).encode())
            store.execute("UPDATE runs SET format = ?, checksum = ? WHERE number = ?", (FORMAT + 1, checksum, number))


def _events(name: str, *, days_ago: int) -> list[dict[str, Any]]:
    now_s = int(NOW.timestamp())
    return [
        event(
            user_id=f"{name}-{number % 7}",
            session_id=f"{name}-{number % 11}",
            event_uuid=f"{name}-{number}",
            client_ts=now_s - _DAY_S * (days_ago + number % 4),
        )
        for number in range(20)
    ]
