"""The state directory of a sandbox: its lock, its age and the ready file."""

from __future__ import annotations

import fcntl
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Final

from gamelens.errors import Refused

READY_FILE = "ready.json"
_PATIENCE_S: Final = 2.0


def lock_state_directory(state: Path) -> IO[str]:
    """Take a state directory for this process; closing the answer lets it go.

    Raises:
        Refused: another process has it.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    lock = (state / "lock").open("w")
    deadline = monotonic() + _PATIENCE_S  # the worker of a killed sandbox is on its way out
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


def check_state(state: Path) -> None:
    """Raise Refused when no sandbox was ever started on *state*."""
    if not (state / "tenants.json").exists():
        raise Refused(f"{state} holds no sandbox: `gamelens sandbox up --state {state}` makes one")
