"""The executor that both clients share: one service, one cache, and their queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import msgspec

from gamelens.catalog import CATALOG, DIMENSIONS, Catalog
from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.transport import RequestStats
from gamelens.client.limits.deadline import Deadline
from gamelens.client.query.arguments import ExecutionOptions, QuerySpec
from gamelens.client.query.assemble import QueryResult, assemble
from gamelens.client.query.data_frames import games_frame, restatements_frame, studios_frame
from gamelens.client.query.fetch import fetch
from gamelens.client.query.listings import Listings
from gamelens.client.query.plan_estimate import Plan, plan_of
from gamelens.client.query.prepare import prepare
from gamelens.client.query.progress import Progress
from gamelens.client.query.refresh import find_restatements, previous_result, restatement_records
from gamelens.client.query.requests import Call
from gamelens.client.tables.time_ranges import USUAL_RANGE, ResolvedRange, TimeRange, WhenUnavailable
from gamelens.errors import emit_warning
from gamelens.receipts import RestatementRecord, merge_provenance, mixture_warnings

if TYPE_CHECKING:
    from pandas import DataFrame


class QueryExecutor:
    """What both clients run: queries, plans, refreshes and lists of one service.

    Its coroutines run on the background loop.

    Args:
        service: answers the requests.
        cache: stores the answers; None for a client without a cache.
        max_days, refresh_s: as in `Client`.
        when: what a query does about unavailable data that does not say so itself.
        now: the wall clock of receipts.
        catalog: what can be queried, own metrics among them.
    """

    def __init__(
        self,
        service: MetricsApi,
        cache: AnswerCache | None,
        *,
        max_days: int | None,
        refresh_s: float,
        when: WhenUnavailable = "raise",
        now: Callable[[], float] = time.time,
        catalog: Catalog = CATALOG,
    ) -> None:
        self.service = service
        self.catalog = catalog
        self.cache = cache
        self._max_days = max_days
        self._refresh_s = refresh_s
        self._when = when
        self._now = now
        self._restated: list[RestatementRecord] = []
        self._emitted: set[str] = set()
        self._unsaid: list[str] = []

    async def dimension_values(
        self, dimension: str, over: TimeRange | None, studios: Sequence[str], games: Sequence[str]
    ) -> list[str]:
        """Return the values of *dimension* during *over*."""
        await self.service.unknown_names("by", (dimension,), DIMENSIONS)
        times = await self._list_range(over)
        listings = Listings(self.service, RequestStats())
        studios = await listings.ids("studios", studios, times.available) or ()
        games = await listings.ids("games", games, times.available, studios or None) or ()
        notes: list[str] = []
        values = await self.service.dimension_values(
            dimension, times.covered, studios=studios, games=games, notes=notes
        )
        self._unsaid += notes
        return values

    async def studios(self, over: TimeRange | None) -> DataFrame:
        """Return the studios that sent data during *over*."""
        times = await self._list_range(over)
        return studios_frame(await self.service.studios(times.covered))

    async def games(self, over: TimeRange | None, studios: Sequence[str] | None) -> DataFrame:
        """Return the games that sent data during *over*."""
        times = await self._list_range(over)
        ids = await Listings(self.service, RequestStats()).ids("studios", studios, times.available)
        return games_frame(await self.service.games(times.covered, ids))

    async def _list_range(self, over: TimeRange | None) -> ResolvedRange:
        """Return the intervals of *over*, for None the available part of the usual range."""
        if over is None:
            return await self.service.resolve_range(USUAL_RANGE, "clip")
        return await self.service.resolve_range(over, "raise")

    async def query(
        self, spec: QuerySpec, options: ExecutionOptions, progress: Progress, *, reads_cache: bool = True
    ) -> QueryResult:
        """Return the result of a query for rows or for retention: three steps, each from values to a new one.

        Raises:
            NotYetAvailable: part of the time range is not available.
            BadQuery, NotAdditive: the query cannot be sent, or its answers not be put together.
            Truncated: all values were queried, and an answer holds as many as the service gives.
            PartialResult: requests failed, and gaps are not wanted or there is nothing else.
        """
        call = self._call(options, progress, reads_cache=reads_cache)
        prepared = await prepare(spec, call, Listings(self.service, progress.tally))
        fetched = await fetch(prepared, call)
        return await assemble(prepared, fetched, call)

    async def plan(self, spec: QuerySpec, options: ExecutionOptions) -> Plan:
        """Return the cost of *spec*, requesting only the available interval."""
        call = self._call(options, Progress())
        if call.options.when_unavailable == "wait":  # a plan does not
            call = msgspec.structs.replace(call, options=msgspec.structs.replace(options, when_unavailable="raise"))
        listings = Listings(self.service, None)
        return await plan_of(await prepare(spec, call, listings, with_rows=False), listings, call)

    async def refresh(self, frame: DataFrame, options: ExecutionOptions, progress: Progress) -> QueryResult:
        """Return the query of *frame* answered again, over the interval it covered, with what was restated.

        The receipt names the time range of *frame*, not that interval. It warns where another service answers now.
        """
        previous = previous_result(frame)
        options = msgspec.structs.replace(options, over=previous.interval, when_unavailable="raise")
        result = await self.query(previous.spec, options, progress, reads_cache=False)
        before, now = previous.receipt, result.receipt
        restated = find_restatements(frame, result.table, previous, now.as_of)
        if self.cache is None:
            self._restated += restated
        mixture = mixture_warnings(merge_provenance([before.provenance, now.provenance]))
        return result.with_receipt(
            msgspec.structs.replace(
                now,
                asked=msgspec.structs.replace(now.asked, over=before.asked.over, interval=before.asked.interval),
                clipped=before.clipped,
                warnings=(*now.warnings, *mixture),
                restated=tuple(restated),
            )
        )

    async def restatements(self, metric: str | None) -> DataFrame:
        """Return the restatements that the cache, or without one this client, has recorded."""
        names = [metric]
        if metric is not None:
            await self.service.unknown_names("metric", (metric,), self.catalog.metrics)
            names += [name for name in sorted(self.catalog.service_metrics([metric])) if name != metric]
        if self.cache is None:
            return restatements_frame([entry for entry in self._restated if metric is None or entry.metric in names])
        recorded = [entry for name in dict.fromkeys(names) for entry in self.cache.restatements(name)]
        return restatements_frame(restatement_records(recorded, self.catalog))

    def emit_warnings(self, result: QueryResult) -> DataFrame:
        """Return the frame of *result*, and emit each warning of its receipt once for this client."""
        self._emit(result.receipt.warnings)
        return cast("DataFrame", result.frame)

    def emit_notes(self) -> None:
        """Emit what was said beside lists since the last call, each text once for this client."""
        notes, self._unsaid = self._unsaid, []
        self._emit(notes)

    def _emit(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._emitted:
                self._emitted.add(text)
                emit_warning(text)

    def _call(self, options: ExecutionOptions, progress: Progress, *, reads_cache: bool = True) -> Call:
        """Return what a query is run with, whose deadline begins now."""
        return Call(
            service=self.service,
            cache=self.cache,
            reads_cache=reads_cache,
            fresh_s=self._refresh_s,
            max_days=self._max_days,
            options=msgspec.structs.replace(options, when_unavailable=options.when_unavailable or self._when),
            progress=progress,
            deadline=Deadline(options.deadline_s, last_failure=lambda: progress.tally.last_failure),
            started_at=datetime.fromtimestamp(self._now(), UTC),
        )
