"""The budget of one key at one service: how many requests may start in a second and how many may be under way.

The service promises at least 5 requests a second and 5 at a time to an organisation, and 1000 a second for the list of
metrics (Metrics, Limits). It counts arrivals, we count starts, hence the margin.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal

from gamelens.wire.limits import METRIC_LISTS_PER_SECOND, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

Route = Literal["metric list", "other"]

MARGIN_S: Final = 0.05
PER_SECOND: Final[dict[Route, int]] = {"metric list": METRIC_LISTS_PER_SECOND, "other": REQUESTS_PER_SECOND}


class Starts:
    """The last starts of one kind; no more than *per_second* in any rolling second and margin."""

    def __init__(self, per_second: int, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._latest: deque[float] = deque(maxlen=per_second)
        self._per_second = per_second
        self._clock = clock
        self._sleep = sleep

    async def next(self) -> None:
        """Wait until one more may start, and count it."""
        while (wait_s := self._wait_s()) > 0:
            await self._sleep(wait_s)
        self._latest.append(self._clock())

    def _wait_s(self) -> float:
        if len(self._latest) < self._per_second:
            return 0.0
        return self._latest[0] + 1.0 + MARGIN_S - self._clock()


class Budget:
    """Hands out places, first come, first served. Lives on one loop."""

    def __init__(
        self,
        *,
        at_once: int = REQUESTS_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._under_way = asyncio.Semaphore(at_once)
        self._queues: dict[Route, asyncio.Lock] = {route: asyncio.Lock() for route in PER_SECOND}
        self._starts = {route: Starts(number, clock, sleep) for route, number in PER_SECOND.items()}

    @asynccontextmanager
    async def place(self, route: Route = "other") -> AsyncIterator[None]:
        """A place for one request, held while it is under way."""
        async with self._queues[route]:
            await self._under_way.acquire()
            try:
                await self._starts[route].next()
            except BaseException:
                self._under_way.release()
                raise
        try:
            yield
        finally:
            self._under_way.release()


_budgets: dict[tuple[int, str, str], Budget] = {}
_making = threading.Lock()


def shared_budget(address: str, fingerprint: str) -> Budget:
    """The budget all clients of this process share for one key at one *address*; a forked child starts its own."""
    with _making:
        return _budgets.setdefault((os.getpid(), address, fingerprint), Budget())
