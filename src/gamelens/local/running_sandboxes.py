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
    """A process of this user that runs a sandbox.

    Attributes:
        state: its state directory.
        pid: of the process.
        since: the start of the process, in UTC.
        stops_when_idle: True if `connect` or `demo` left it running, False if a command runs it.
        info: its addresses and organisations, None while it starts or stops.
        process: the process as psutil has it, which sends no signal to a later one with the same id.
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
    found = next((each for each in running_sandboxes() if _is_same(each.state, state)), None)
    if found is None:
        return None
    import psutil

    try:
        found.process.terminate()
        ends_at = time.monotonic() + _STOP_S
        # A zombie has ended too: the process that started it may never ask how.
        while found.process.is_running() and found.process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > ends_at:
                raise Refused(f"the sandbox over {state} does not stop: end process {found.pid}, or name another state")
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
        yield SandboxProcess(
            state=lock.parent,
            pid=process.pid,
            since=datetime.fromtimestamp(process.create_time(), UTC),
            stops_when_idle=dict(pairwise(words)).get(IDLE_OPTION, WITH_LAST_USER) != WITH_LAST_USER,
            info=_info_of(lock.parent, process.pid),
            process=process,
        )


def _info_of(state: Path, pid: int) -> SandboxInfo | None:
    """Return the ready file in *state* if the process *pid* wrote it."""
    try:
        info = read_sandbox_info(state / "ready.json")
    except Refused:
        return None
    return info if info.pid == pid else None


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
