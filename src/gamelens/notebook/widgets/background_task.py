"""Background work: only the newest result is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from threading import RLock
from typing import Any, Final

from gamelens.client.connection.event_loop import shared_loop

Showing = Callable[[], None]
Work = Callable[[], Coroutine[Any, Any, Showing]]

QUIET_S: Final = 0.3
_WAKE_S: Final = 0.05


class LatestTask:
    """A task that runs the newest work it was given, and shows its result.

    Work starts after *quiet_s* seconds without newer work. Older work is cancelled, and its result is dropped if it was
    just finished, so the work that started last is shown last. Work is awaited on the event loop of all
    clients. It returns a function that shows its result, which is called on that loop too.
    """

    def __init__(self, *, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._lock = RLock()
        self._newest = 0
        self._future: Future[None] | None = None

    def start(self, work: Work, *, quiet_s: float | None = None) -> None:
        """Run *work* instead of all work started before."""
        with self._lock:
            self.stop()
            pause_s = self._quiet_s if quiet_s is None else quiet_s
            self._future = shared_loop().submit(self._run(self._newest, work, pause_s))

    def stop(self) -> None:
        """Cancel the work under way."""
        with self._lock:
            self._newest += 1
            if self._future is not None:
                self._future.cancel()

    def settled(self, within_s: float) -> bool:
        """Wait until no work is under way. Returns False if that takes longer than *within_s*."""
        ends_at = time.monotonic() + within_s
        while (future := self._future) is not None and not future.done():
            if time.monotonic() >= ends_at:
                return False
            wait((future,), timeout=_WAKE_S)
        return True

    async def _run(self, number: int, work: Work, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        show = await work()
        with self._lock:
            if number == self._newest:
                show()


def all_settled(tasks: Iterable[LatestTask], within_s: float) -> bool:
    """Wait until no task has work under way. Returns False after *within_s* in all."""
    ends_at = time.monotonic() + within_s
    return all(task.settled(max(0.0, ends_at - time.monotonic())) for task in tasks)
