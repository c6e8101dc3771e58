"""The lock on a state directory: one sandbox at a time, whatever happens to the file `lock`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.processing.worker import CompactionOrder, carry_out_in_worker
from gamelens.sandbox.state.state_directory import lock_state_directory


def test_a_second_lock_is_refused(state: Path) -> None:
    """The refusal names the state directory and what to do."""
    with lock_state_directory(state), pytest.raises(Refused, match=f"^{state} belongs to a running sandbox: stop"):
        lock_state_directory(state)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_deleted_lock_file_lets_nobody_in(state: Path) -> None:
    """The folder itself is locked, so that deleting or replacing the file changes nothing."""
    with lock_state_directory(state):
        (state / "lock").unlink()
        for _ in range(2):
            with pytest.raises(Refused, match=f"^{state} belongs to a running sandbox"):
                lock_state_directory(state)


def test_a_closed_lock_lets_the_next_in(state: Path) -> None:
    """Closing the lock gives the state directory free, after a refusal too."""
    with lock_state_directory(state) as lock:
        with pytest.raises(Refused):
            lock_state_directory(state)
        lock.close()
        lock_state_directory(state).close()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_worker_inherits_the_lock(state: Path) -> None:
    """A worker holds what its server held: every descriptor stays locked while it runs."""
    inherited: list[str] = []

    async def look() -> None:
        with lock_state_directory(state) as lock:
            others = set(psutil.Process().children())
            running = asyncio.create_task(carry_out_in_worker(state, CompactionOrder(), lock=lock))
            while not (workers := set(psutil.Process().children()) - others):  # noqa: ASYNC110 - processes have no event
                await asyncio.sleep(0.01)
            workers.pop().suspend()  # or it may have ended before the lock is tried
            (state / "lock").unlink()
            lock.close()
            try:
                lock_state_directory(state).close()
            except Refused as error:
                inherited.append(str(error))
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(look())
    assert len(inherited) == 1
