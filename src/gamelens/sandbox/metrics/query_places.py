"""Places for the queries that run at the same time, shared fairly by the organisations.

Each query takes a thread and memory. Of the places an organisation takes half at most, so that its long queries leave
room for those of others. A query that gets no place in time is refused, instead of waiting without an end.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from gamelens.sandbox.engines.engine import QueryStopped

PLACES: Final = 6
"""Queries that run at the same time."""

T = TypeVar("T")


class QueryPlaces:
    """Threads for queries.

    Args:
        places: number of queries that run at the same time.
        within_s: time within which a query must get its place.
    """

    def __init__(self, *, within_s: float, places: int = PLACES) -> None:
        self._within_s = within_s
        self._places = asyncio.Semaphore(places)
        half = max(1, places // 2)
        self._of_organisation: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(half))
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="query")

    async def run(self, organisation: str, work: Callable[[], T]) -> T:
        """Run *work* in a thread when *organisation* has a place, and return its result.

        Raises:
            QueryStopped: no place became free in time.
        """
        own = self._of_organisation[organisation]
        await self._acquire(own, self._places)
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)

        def release(_: asyncio.Future[T]) -> None:
            self._places.release()
            own.release()

        running.add_done_callback(release)
        return await asyncio.shield(running)  # a client that leaves does not end the thread

    async def _acquire(self, own: asyncio.Semaphore, shared: asyncio.Semaphore) -> None:
        has_own = False
        try:
            async with asyncio.timeout(self._within_s):
                has_own = await own.acquire()
                await shared.acquire()
        except BaseException as error:
            if has_own:
                own.release()
            if isinstance(error, TimeoutError):
                message = f"other queries took all places for {self._within_s:g} s: ask again, and fewer at a time"
                raise QueryStopped(message) from None
            raise
