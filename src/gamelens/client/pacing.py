"""The budget of one key at one service: how many requests may start in a second and how many may be under way.

The service promises at least 5 requests a second and 5 at a time to an organisation, and 1000 a second for the list of
metrics (Metrics, Limits). It counts arrivals, which we cannot see: a request arrives after its last byte was sent and
before its answer. So a place is free again a second and a margin after that, and waiting for a connection counts as
not sent yet.
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

MARGIN_S: Final = 0.03
LAG_S: Final = 0.05  # the longest we take a request to be on its way before the service has counted it
COLD_LAG_S: Final = 0.25  # the same for the first ones, which may find a service that is still warming up
PER_SECOND: Final[dict[Route, int]] = {"metric list": METRIC_LISTS_PER_SECOND, "other": REQUESTS_PER_SECOND}


class Place:
    """One request's place in the budget; whoever sends it says when it was `sent`."""

    def __init__(self, clock: Callable[[], float], lag_s: float) -> None:
        self._clock = clock
        self._lag_s = lag_s
        self._is_sent = asyncio.Event()
        self._counted_at = 0.0

    def sent(self) -> None:
        """The last byte is out: the service counts it within the lag."""
        if not self._is_sent.is_set():
            self._counted_at = self._clock() + self._lag_s
            self._is_sent.set()

    def answered(self) -> None:
        """The answer is here, or there will be none: the service has counted it."""
        self.sent()
        self._counted_at = min(self._counted_at, self._clock())

    async def free_at(self) -> float:
        """When another request may take its place."""
        await self._is_sent.wait()
        return self._counted_at + 1.0 + MARGIN_S


class Budget:
    """Hands out places, first come, first served. Lives on one loop."""

    def __init__(
        self,
        *,
        at_once: int = REQUESTS_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._under_way = asyncio.Semaphore(at_once)
        self._queues: dict[Route, asyncio.Lock] = {route: asyncio.Lock() for route in PER_SECOND}
        self._latest: dict[Route, deque[Place]] = {route: deque(maxlen=most) for route, most in PER_SECOND.items()}

    @asynccontextmanager
    async def place(self, route: Route = "other") -> AsyncIterator[Place]:
        """A place for one request, held while it is under way."""
        async with self._queues[route]:
            await self._under_way.acquire()
            try:
                place = await self._next(self._latest[route])
            except BaseException:
                self._under_way.release()
                raise
        try:
            yield place
        finally:
            place.answered()
            self._under_way.release()

    async def _next(self, latest: deque[Place]) -> Place:
        """Wait until one more may start, and count it."""
        is_cold = len(latest) < PER_SECOND["other"]
        if len(latest) == latest.maxlen:
            while (wait_s := await latest[0].free_at() - self._clock()) > 0:
                await self._sleep(wait_s)
        latest.append(Place(self._clock, COLD_LAG_S if is_cold else LAG_S))
        return latest[-1]


_budgets: dict[tuple[int, str, str], Budget] = {}
_making = threading.Lock()


def shared_budget(address: str, fingerprint: str) -> Budget:
    """The budget all clients of this process share for one key at one *address*; a forked child starts its own."""
    with _making:
        return _budgets.setdefault((os.getpid(), address, fingerprint), Budget())
