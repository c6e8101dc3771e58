"""The client for asynchronous code: `AsyncClient`, on one event loop or several.

`Client` has the same methods with the same arguments. The docstrings are taken from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gamelens.client.base_client import BaseClient, RunQuery
from gamelens.client.query.arguments import (
    Names,
    QueryArguments,
    as_names,
    execution_options,
    optional_names,
    query_arguments,
    retention_arguments,
)
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.query.progress import Bar, Progress
from gamelens.client.query.signatures import OnError, accepts, with_plain_types
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

Method = TypeVar("Method", bound=Callable[..., Any])


def _documented(method: Method) -> Method:
    """Give a method of `AsyncClient` the docstring of the same method of `Client`."""
    method.__doc__ = getattr(Client, method.__name__).__doc__
    return method


class AsyncClient(BaseClient):
    """A client of one metrics service whose methods are awaited.

    Its arguments are those of `Client`.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, after which every call raises `Refused`."""
        if self._closing.detach():
            await self._loop.run_async(self._executor.service.aclose())

    @_documented
    async def available(self) -> Interval:
        """Return the same as `Client.available`."""
        return await self._loop.run_async(self._executor.service.available())

    @_documented
    async def metrics(self) -> list[str]:
        """Return the same as `Client.metrics`."""
        return await self._loop.run_async(self._executor.service.metrics())

    @_documented
    async def dimensions(self) -> list[str]:
        """Return the same as `Client.dimensions`."""
        return await self._loop.run_async(self._executor.service.dimensions())

    @_documented
    @with_plain_types
    async def dimension_values(
        self, dimension: str, *, over: TimeRange | None = None, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """Return the same as `Client.dimension_values`."""
        return await self._loop.run_async(
            self._executor.dimension_values(dimension, over, as_names("studios", studios), as_names("games", games))
        )

    @_documented
    @with_plain_types
    async def studios(self, *, over: TimeRange | None = None) -> DataFrame:
        """Return the same as `Client.studios`."""
        return await self._loop.run_async(self._executor.studios(over))

    @_documented
    @with_plain_types
    async def games(self, *, over: TimeRange | None = None, studios: Names | None = None) -> DataFrame:
        """Return the same as `Client.games`."""
        return await self._loop.run_async(self._executor.games(over, optional_names("studios", studios)))

    @_documented
    @accepts(query_arguments)
    async def query(self, arguments: QueryArguments) -> DataFrame:
        """Return the same as `Client.query`."""
        spec, options = arguments.spec, arguments.options
        return await self._run_async(lambda counter: self._executor.query(spec, options, counter), arguments.progress)

    @_documented
    @accepts(query_arguments)
    async def plan(self, arguments: QueryArguments) -> Plan:
        """Return the same as `Client.plan`."""
        return await self._loop.run_async(self._executor.plan(arguments.spec, arguments.options))

    @_documented
    @accepts(retention_arguments)
    async def retention(self, arguments: QueryArguments) -> DataFrame:
        """Return the same as `Client.retention`."""
        spec, options = arguments.spec, arguments.options
        return await self._run_async(lambda counter: self._executor.query(spec, options, counter), arguments.progress)

    @_documented
    async def refresh(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """Return the same as `Client.refresh`."""
        options = execution_options("", deadline_s=deadline_s, on_error=on_error)
        return await self._run_async(lambda counter: self._executor.refresh(frame, options, counter), progress)

    @_documented
    async def restatements(self, metric: str | None = None) -> DataFrame:
        """Return the same as `Client.restatements`."""
        return await self._loop.run_async(self._executor.restatements(metric))

    async def _run_async(self, run: RunQuery, progress: bool | None) -> DataFrame:
        """Run a query on the background loop, draw its bar and emit its warnings."""
        counter = Progress()
        bar = Bar(counter, wanted=self._progress if progress is None else progress)
        try:
            result = await self._loop.run_async(run(counter), on_tick=bar.draw)
        finally:
            bar.close()
        return self._executor.emit_warnings(result)
