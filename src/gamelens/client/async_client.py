"""The client for asynchronous code: `AsyncClient`, on one event loop or several.

It has the methods of `Client`, awaited.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gamelens.client.base_client import BaseClient, RunQuery
from gamelens.client.query.progress import Bar, Progress
from gamelens.client.query.signatures import awaited
from gamelens.client.sync_client import Client

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


class AsyncClient(BaseClient):
    """A client of one metrics service whose methods are awaited.

    It takes the arguments of `Client`.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, after which every call raises `Refused`."""
        self._loop.process.check()
        if self._closing.detach():
            await self._wait(self._executor.service.aclose())

    available = awaited(Client.available)
    metrics = awaited(Client.metrics)
    dimensions = awaited(Client.dimensions)
    dimension_values = awaited(Client.dimension_values)
    studios = awaited(Client.studios)
    games = awaited(Client.games)
    query = awaited(Client.query)
    plan = awaited(Client.plan)
    retention = awaited(Client.retention)
    refresh = awaited(Client.refresh)
    restatements = awaited(Client.restatements)

    async def _draw(self, run: RunQuery, progress: bool | None) -> DataFrame:
        """Run a query, draw its bar and emit its warnings."""
        counter = Progress()
        bar = Bar(counter, wanted=self._progress if progress is None else progress)
        try:
            result = await self._loop.run_async(run(counter), on_tick=bar.draw)
        finally:
            bar.close()
        return self._frame_of(result)

    async def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* on the background loop, and return its result."""
        result = await self._loop.run_async(work)
        self._emit_notes()
        return result

    _query = Client._query
