"""The state directory of a sandbox: its lock and the names of its files."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Final

from gamelens._files import write_private
from gamelens.errors import Refused

READY_FILE = "ready.json"
_PATIENCE_S: Final = 2.0
_SPARE_BYTES: Final = 1 << 20


def lock_state_directory(state: Path) -> IO[str]:
    """Create *state* if necessary and lock it for this process.

    Closing the returned file unlocks it. Waits up to 2 s for another process that is about to exit.

    Raises:
        Refused: another process has locked it.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    lock = (state / "lock").open("w")
    deadline = monotonic() + _PATIENCE_S  # the worker of a killed sandbox may still be exiting
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if monotonic() > deadline:
                lock.close()
                raise Refused(f"{state} belongs to a running sandbox: stop that one, or name another --state") from None
            sleep(0.02)
        else:
            return lock


def keep_spare_room(state: Path) -> None:
    """Keep some of the disk for a start that finds it full, or make that room free now.

    A start needs files of its own, such as SQLite's shared memory and the ready file.
    """
    spare, free = state / "spare", shutil.disk_usage(state).free
    if free < _SPARE_BYTES:
        spare.unlink(missing_ok=True)
    elif free > 4 * _SPARE_BYTES and not spare.exists():
        write_private(spare, bytes(_SPARE_BYTES))


def check_state(state: Path) -> None:
    """Raise `Refused` if no sandbox was ever started on *state*."""
    if not (state / "tenants.json").exists():
        raise Refused(f"{state} holds no sandbox: `gamelens sandbox up --state {state}` makes one")
