"""The executor that both clients share: one service, one cache, and their queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS
from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import MetricsApi, unknown_name_error
from gamelens.client.connection.name_lookup import NameLookup
from gamelens.client.limits.deadline import Deadline
from gamelens.client.plans.query_spec import IDS, STUDIO_ID, ExecutionOptions, QuerySpec, RetentionSpec
from gamelens.client.query.data_frames import games_frame, restatements_frame, studios_frame
from gamelens.client.query.plan_estimate import Plan, PlanEstimator
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_run import QueryResult, QueryRun, QuerySteps, RowsSteps, Spec
from gamelens.client.query.refresh import find_restatements, previous_result, restatement_records
from gamelens.client.query.retention_query import RetentionSteps
from gamelens.client.tables.time_ranges import USUAL_RANGE, ResolvedRange, TimeRange
from gamelens.errors import emit_warning
from gamelens.receipts import RestatementRecord, merge_provenance, mixture_warnings
from gamelens.wire.filters import dimensions_in

if TYPE_CHECKING:
    from pandas import DataFrame


class QueryExecutor:
    """The executor of one client, which chooses the steps of each query.

    Its coroutines run on the background loop.

    Args:
        service: answers the requests.
        cache: stores the answers; None for a client without a cache.
        max_days, refresh_s: as in `Client`.
    """

    def __init__(
        self, service: MetricsApi, cache: AnswerCache | None, *, max_days: int | None, refresh_s: float
    ) -> None:
        self.service = service
        self.cache = cache
        self._max_days = max_days
        self._refresh_s = refresh_s
        self._restated: list[RestatementRecord] = []
        self._emitted: set[str] = set()

    async def dimension_values(
        self, dimension: str, over: TimeRange | None, studios: Sequence[str], games: Sequence[str]
    ) -> list[str]:
        """Return the values of *dimension* during *over*."""
        await self.service.unknown_names("by", (dimension,), DIMENSIONS)
        times = await self._list_range(over)
        lookup = NameLookup(self.service, times.available)
        studios = await lookup.studios(studios) or ()
        games = await lookup.games(games, studios or None) or ()
        return await self.service.dimension_values(dimension, times.covered, studios=studios, games=games)

    async def studios(self, over: TimeRange | None) -> DataFrame:
        """Return the studios that sent data during *over*."""
        times = await self._list_range(over)
        return studios_frame(await self.service.studios(times.covered))

    async def games(self, over: TimeRange | None, studios: Sequence[str] | None) -> DataFrame:
        """Return the games that sent data during *over*."""
        times = await self._list_range(over)
        ids = await NameLookup(self.service, times.available).studios(studios)
        return games_frame(await self.service.games(times.covered, ids))

    async def _list_range(self, over: TimeRange | None) -> ResolvedRange:
        """Return the intervals of *over*, for None the available part of the usual range."""
        if over is None:
            return await self.service.resolve_range(USUAL_RANGE, "clip")
        return await self.service.resolve_range(over, "raise")

    async def query(self, spec: QuerySpec, options: ExecutionOptions, progress: Progress) -> QueryResult:
        """Return the result of a query for rows."""
        return await self._execute(spec, self._rows_steps, options, progress)

    async def retention(self, spec: RetentionSpec, options: ExecutionOptions, progress: Progress) -> QueryResult:
        """Return the result of a query for retention."""
        return await self._execute(spec, self._retention_steps, options, progress)

    async def plan(self, spec: QuerySpec, options: ExecutionOptions) -> Plan:
        """Return the cost of *spec*, requesting only the available interval."""
        _check_names(spec)
        resolving = self.service.resolve_range(options.over, "clip" if options.when_unavailable == "clip" else "raise")
        times = (await Deadline(options.deadline_s).run(resolving)).whole(options.whole_buckets)
        estimator = PlanEstimator(self.service, self.cache, fresh_s=self._refresh_s)
        return estimator.plan(spec, times, max_days=self._max_days)

    async def refresh(self, frame: DataFrame, options: ExecutionOptions, progress: Progress) -> QueryResult:
        """Return the query of *frame* answered again, over the interval it covered, with what was restated.

        The receipt names the time range of *frame*, not that interval. It warns where another service answers now.
        """
        previous = previous_result(frame)
        options = msgspec.structs.replace(options, over=previous.interval)
        if previous.ages:
            spec, steps_of = previous.retention_spec, self._retention_steps
            result = await self._execute(spec, steps_of, options, progress, reads_cache=False)
        else:
            result = await self._execute(previous.spec, self._rows_steps, options, progress, reads_cache=False)
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
            await self.service.unknown_names("metric", (metric,), {**METRICS, **ALIASES})
            names += [name for name, _ in ALIASES[metric].sources] if metric in ALIASES else []
        if self.cache is None:
            return restatements_frame([entry for entry in self._restated if metric is None or entry.metric in names])
        recorded = [entry for name in dict.fromkeys(names) for entry in self.cache.restatements(name)]
        return restatements_frame(restatement_records(recorded))

    def emit_warnings(self, result: QueryResult) -> DataFrame:
        """Return the frame of *result*, and emit each warning of its receipt once for this client."""
        for text in result.receipt.warnings:
            if text not in self._emitted:
                self._emitted.add(text)
                emit_warning(text)
        return cast("DataFrame", result.frame)

    async def _execute(
        self,
        spec: Spec,
        steps_of: Callable[[Spec], QuerySteps],
        options: ExecutionOptions,
        progress: Progress,
        *,
        reads_cache: bool = True,
    ) -> QueryResult:
        """Return the result of *spec*."""
        run = QueryRun(
            self.service,
            cache=self.cache,
            fresh_s=self._refresh_s,
            reads_cache=reads_cache,
            options=options,
            progress=progress,
        )
        return await run.execute(spec, steps_of)

    def _rows_steps(self, spec: QuerySpec) -> RowsSteps:
        return RowsSteps(spec, max_days=self._max_days)

    def _retention_steps(self, spec: RetentionSpec) -> RetentionSteps:
        return RetentionSteps(spec, max_days=self._max_days)


def _check_names(spec: QuerySpec) -> None:
    """Refuse names that the catalog does not know.

    Whether the service knows them could only be found out by a request.

    Raises:
        BadQuery: such a name, with the nearest one.
    """
    filtered = dimensions_in(spec.where) if spec.where is not None else ()
    for field, name, names in (
        *(("metric", name, {**METRICS, **ALIASES}) for name in spec.metrics),
        *(("by", name, {*DIMENSIONS, *IDS, STUDIO_ID}) for name in spec.by),
        *(("where", name, DIMENSIONS) for name in filtered),
    ):
        if name not in names:
            rule = "is not known here, so it cannot be planned; query() asks the service"
            raise unknown_name_error(field, name, rule, names)
