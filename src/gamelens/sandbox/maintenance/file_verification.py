"""Verification that the files of the lake are as they were written. Nothing of the state directory is changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import lock_descriptor

from gamelens.errors import Refused
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.storage.inbox import lost_events
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth


def verify_files(state: Path) -> tuple[int, list[str]]:
    """Compare size and checksum of each file of the lake with the manifest, and the manifest with what was committed.

    A sandbox may be running on it. Returns the number of files, and a sentence for each kind of damage.

    Raises:
        Refused: there is no sandbox, or its store cannot be read.
    """
    check_state(state)
    try:
        with read_only_store(state) as store:
            ((check,),) = store.execute("PRAGMA quick_check(1)")
            found = [] if check == "ok" else [f"gamelens.db is damaged: {' '.join(str(check).split())}"]
            lake = Lake(state / "lake", store)
            found += lake.damage()
            health, files = LakeHealth(lake), 0
            for name in lake.organisations():
                snapshot = lake.snapshot(name)
                health.check_all(snapshot, pause=0.0)
                files += sum(map(len, snapshot.tables.values()))
            found += [f"{name}: {damage}" for name, damage in health.damage().items()]
            with contextlib.suppress(sqlite3.OperationalError):  # no inbox: the sentences above say so
                found += filter(None, [lost_events(store)])
            return files, found
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"{state} cannot be verified: {error}. Nothing was changed") from error


@contextlib.contextmanager
def read_only_store(state: Path) -> Iterator[sqlite3.Connection]:
    """Open the store of *state* without a change to any file of it.

    Reading the log of a store that no process has open would write beside it, so links are read in a folder of their
    own then.
    """
    store = state / "gamelens.db"
    if not store.exists():
        raise Refused(f"{store} is missing: put it back, or `gamelens sandbox up` says what that means")
    with tempfile.TemporaryDirectory() as folder:
        if not _is_running(state):
            original, store = store, Path(folder, store.name)
            try:
                os.link(original, store)
            except OSError:
                shutil.copyfile(original, store)
            log = original.with_name(f"{original.name}-wal")
            if log.exists():
                shutil.copyfile(log, store.with_name(log.name))
        address = f"{store.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=30, check_same_thread=False)) as opened:
            yield opened


def _is_running(state: Path) -> bool:
    """Return whether a process has locked *state*."""
    try:
        with (state / "lock").open("r+") as lock:
            return not lock_descriptor(lock.fileno(), blocking=False)
    except FileNotFoundError:
        return False
