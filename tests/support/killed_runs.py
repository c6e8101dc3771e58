"""Processing and compaction that are killed at a chosen write to the disk."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Final

from gamelens.sandbox.imports.import_run import ImportOptions, import_raw_events
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.scheduler import Scheduler
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import lock_state_directory
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth
from support.game_events import NOW

IMPORT: Final = "import "
"""Beginning of an order to import the files that follow it, in small groups."""
NEVER: Final = 1_000_000_000
_WRITES: Final = ("fsync", "unlink", "rename", "replace", "rmdir")
_STATEMENTS: Final = ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT")
_context = get_context("forkserver")
_context.set_forkserver_preload([compact.__module__, Scheduler.__module__, import_raw_events.__module__])


def writes(order: str, state: Path) -> int:
    """Process, compact or import into *state* in another process, and return the number of its writes to the disk.

    A write is a sync, removal or renaming of a file, or a statement that changes the manifest.
    """
    number = _context.Value("i", 0)
    assert _exit_code(order, state, NEVER, number) == 0
    return int(number.value)


def kill(order: str, state: Path, *, before: int) -> None:
    """Process, compact or import into *state* in another process, and kill that before its write of this number."""
    assert _exit_code(order, state, before, _context.Value("i", 0)) == -signal.SIGKILL


def _exit_code(*arguments: Any) -> int | None:
    child = _context.Process(target=_run, args=arguments)
    child.start()
    child.join()
    return child.exitcode


def _run(order: str, state: Path, before: int, number: Synchronized[int]) -> None:
    def step() -> None:
        number.value += 1
        if number.value == before:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            step()
            return write(*args, **options)

        return call

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(lambda sql: step() if sql.upper().startswith(_STATEMENTS) else None)
        return connection

    for name in _WRITES:
        setattr(os, name, counted(getattr(os, name)))
    connect, sqlite3.connect = sqlite3.connect, traced  # type: ignore[assignment]
    clock = Clock()
    clock.freeze(NOW)
    if order == "process":
        lake = Lake(state / "lake", open_store(state / "gamelens.db"))
        with lock_state_directory(state) as lock:
            asyncio.run(Scheduler(state, lake, clock, lock=lock, health=LakeHealth(lake)).process())
    elif order.startswith(IMPORT):
        import_raw_events(state, [order.removeprefix(IMPORT)], ImportOptions(group_events=800), clock=clock)
    else:
        compact(state)
