"""Sandboxes that run on this machine: found among its processes, and stopped.

The processes themselves are asked, not a file with their ids: after a crash such an id may be another program's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from gamelens.errors import Refused
from gamelens.local.sandbox_info import SandboxInfo, read_sandbox_info

IDLE_OPTION: Final = "--stop-after-idle"
WITH_LAST_USER: Final = "0"
"""The value of that option with which a sandbox stops when its last user has left."""
_STOP_S: Final = 15.0


class SandboxProcess(msgspec.Struct, frozen=True):
    """A process of this user that runs a sandbox over *state*.

    *stops_when_idle* is True if `connect` or `demo` left it running, False if a command runs it. *info* is None while
    it starts or stops. *process* is psutil's, which sends no signal to a later one with the same id.
    """

    state: Path
    pid: int
    since: datetime
    stops_when_idle: bool
    info: SandboxInfo | None
    process: Any


def running_sandboxes() -> list[SandboxProcess]:
    """Return the sandboxes that this user runs on this machine, the oldest first."""
    import psutil

    found: list[SandboxProcess] = []
    for process in psutil.process_iter():
        try:
            found += _sandboxes_of(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue  # another user's, or one that has ended meanwhile
    return sorted(found, key=lambda sandbox: sandbox.since)


def stop_sandbox(state: Path) -> SandboxProcess | None:
    """Stop the sandbox over *state*, wait until its process has ended, and return what it was.

    Returns None if none runs.

    Raises:
        Refused: it does not stop.
    """
    same = (sandbox for sandbox in running_sandboxes() if sandbox.state.exists() and state.exists())
    found = next((sandbox for sandbox in same if sandbox.state.samefile(state)), None)
    if found is None:
        return None
    import psutil

    try:
        found.process.terminate()
        ends_at = time.monotonic() + _STOP_S
        # A zombie has ended too: the process that started it may never ask how.
        while found.process.is_running() and found.process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > ends_at:
                raise Refused(f"the sandbox in {state} does not stop: end process {found.pid}, or use another state")
            time.sleep(0.02)
    except psutil.NoSuchProcess:
        pass  # it has just ended by itself
    return found


def _sandboxes_of(process: Any) -> Iterator[SandboxProcess]:
    """Yield the sandbox of *process*, if it is one.

    That is a `sandbox up` that has the lock of a state directory open. The lock tells it from a shell, a `timeout` or
    another program with the same words.
    """
    words = process.cmdline()
    if ("sandbox", "up") not in pairwise(words) or process.uids().real != os.getuid():
        return
    locks = [Path(file.path) for file in process.open_files() if Path(file.path).name == "lock"]
    for lock in locks[:1]:
        try:
            info = read_sandbox_info(lock.parent / "ready.json")
        except Refused:
            info = None
        yield SandboxProcess(
            state=lock.parent,
            pid=process.pid,
            since=datetime.fromtimestamp(process.create_time(), UTC),
            stops_when_idle=dict(pairwise(words)).get(IDLE_OPTION, WITH_LAST_USER) != WITH_LAST_USER,
            info=info if info is not None and info.pid == process.pid else None,
            process=process,
        )
