"""Work in the background of which only the newest counts."""

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
    """Does the newest of what it is given, once nothing newer has come for *quiet_s*, and shows what came of it.

    Whatever is older is cancelled, or forgotten where it was just done: what is shown last is what was asked last.
    Work is awaited on the loop of all clients; it answers how to show its result, which is called there too.
    """

    def __init__(self, *, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._lock = RLock()
        self._newest = 0
        self._future: Future[None] | None = None

    def start(self, work: Work, *, quiet_s: float | None = None) -> None:
        """Do *work* instead of all that was to be done before."""
        with self._lock:
            self.stop()
            pause_s = self._quiet_s if quiet_s is None else quiet_s
            self._future = shared_loop().submit(self._run(self._newest, work, pause_s))

    def stop(self) -> None:
        """Forget what is under way."""
        with self._lock:
            self._newest += 1
            if self._future is not None:
                self._future.cancel()

    def settled(self, within_s: float) -> bool:
        """True once nothing is under way; false when that takes longer than *within_s*."""
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


def all_settled(each: Iterable[LatestTask], within_s: float) -> bool:
    """True once nothing is under way in any of them; false when that takes longer than *within_s* in all."""
    ends_at = time.monotonic() + within_s
    return all(one.settled(max(0.0, ends_at - time.monotonic())) for one in each)
