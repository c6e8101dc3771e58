"""One query under way, step by step: from its arguments to its frame.

`QueryRun.execute` is the only path. Rows and retention differ in their `QuerySteps`; a refresh reads nothing from the
cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS
from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.name_lookup import NameLookup
from gamelens.client.limits.deadline import Deadline
from gamelens.client.plans.metric_plan import FanOutValues, MetricPlan
from gamelens.client.plans.planner import fan_out_dimensions, fan_out_interval, placeholder_values, plan_requests
from gamelens.client.plans.query_spec import (
    GAME_ID,
    STUDIO_ID,
    ExecutionOptions,
    QuerySpec,
    RetentionSpec,
    query_record,
)
from gamelens.client.plans.rest_requests import rest_groups, rest_plan
from gamelens.client.plans.table_builder import TableBuilder, default_limit_warning
from gamelens.client.query.data_frames import add_titles, to_frame, unique_game_titles, unique_studio_names
from gamelens.client.query.fetcher import Fetcher
from gamelens.client.query.progress import Progress
from gamelens.client.tables.metric_join import MetricRows, join_metrics
from gamelens.client.tables.table_operations import concatenate, full_buckets, sort_by_time
from gamelens.client.tables.table_schema import schema
from gamelens.client.tables.time_ranges import ResolvedRange, enclosing_interval, resolve_range
from gamelens.errors import NotYetAvailable, PartialResult, Unreachable
from gamelens.receipts import RECEIPT, Receipt, package_version
from gamelens.wire.filters import dimensions_in
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import DEFAULT_LIMIT

Spec = TypeVar("Spec", QuerySpec, RetentionSpec)


class QueryResult(msgspec.Struct, frozen=True):
    """The result of a query run.

    Attributes:
        frame: the frame, of the kind the options name.
        receipt: its receipt.
        table: the Arrow table the frame was made from.
    """

    frame: Any
    receipt: Receipt
    table: pa.Table

    def with_receipt(self, receipt: Receipt) -> QueryResult:
        """Return the result with another receipt, which its pandas frame then carries."""
        if hasattr(self.frame, "attrs"):
            self.frame.attrs[RECEIPT] = receipt.to_json()
        return msgspec.structs.replace(self, receipt=receipt)


class QuerySteps(Protocol):
    """The steps in which a query for rows and a query for retention differ."""

    @property
    def recorded(self) -> QuerySpec:
        """The query as the receipt records it and titles are looked up for it."""
        ...

    @property
    def sent(self) -> QuerySpec:
        """The query whose names are checked and whose dimensions are fanned out."""
        ...

    @property
    def ages(self) -> tuple[int, ...]:
        """The days since install that the receipt records, empty for rows."""
        ...

    def fan_out_interval(self, times: ResolvedRange) -> Interval:
        """Return the interval whose values a fan-out covers."""
        ...

    def plan(self, times: ResolvedRange, values: FanOutValues, unknown: Collection[str]) -> list[MetricPlan]:
        """Return the requests of each metric.

        *unknown* are dimensions that only the service knows.

        Raises:
            BadQuery, NotAdditive: the query cannot be sent, or its answers not be put together.
        """
        ...

    def assemble(
        self, run: QueryRun, plans: Sequence[MetricPlan], tables: Sequence[pa.Table], times: ResolvedRange
    ) -> pa.Table:
        """Return one table made of *tables*, those of *plans*."""
        ...

    def columns(self, plans: Sequence[MetricPlan]) -> tuple[str, ...]:
        """Return the dimensions among the columns of the assembled table."""
        ...


class RowsSteps:
    """The steps of a query for rows: one plan for each metric, and their tables side by side."""

    ages: tuple[int, ...] = ()

    def __init__(self, spec: QuerySpec, *, max_days: int | None) -> None:
        self.recorded = self.sent = spec
        self._max_days = max_days

    def fan_out_interval(self, times: ResolvedRange) -> Interval:
        """Return the covered interval, for retention metrics from the first install day on."""
        return fan_out_interval(self.sent, times)

    def plan(self, times: ResolvedRange, values: FanOutValues, unknown: Collection[str]) -> list[MetricPlan]:
        """Return the requests of each metric."""
        return plan_requests(self.sent, times.covered, max_days=self._max_days, unknown=unknown, values=values)

    def assemble(
        self, run: QueryRun, plans: Sequence[MetricPlan], tables: Sequence[pa.Table], times: ResolvedRange
    ) -> pa.Table:
        """Return the tables of all metrics joined.

        A field that two metrics have is prefixed with its metric. Counts and money are 0 where the service has no row
        and no request failed. A field that the catalog does not know is kept, with a warning.
        """
        for plan, table in zip(plans, tables, strict=True):
            known = {*plan.dimensions, *schema(plan.metric, ()).names}
            unknown = [name for name in table.column_names if name not in known]
            if plan.metric in METRICS and unknown:
                run.warnings.append(f"{plan.metric} came with fields this version does not know: {', '.join(unknown)}")
        if len(plans) == 1:
            return tables[0]
        rows = []
        for plan, table in zip(plans, tables, strict=True):
            full = full_buckets(table, plan.top, plan.within) if plan.top else set()
            rows.append(MetricRows(metric=plan.metric, table=table, unknown=run.missing_buckets(plan) | full))
        joined, run.filled = join_metrics(plans[0].dimensions, rows, () if self.sent.top else plans[0].starts)
        return joined

    def columns(self, plans: Sequence[MetricPlan]) -> tuple[str, ...]:
        """Return the dimensions of the rows."""
        return plans[0].dimensions


class QueryRun:
    """One query under way.

    Args:
        service: answers the requests.
        cache, fresh_s, reads_cache: as in `Fetcher`.
        options: how the query is executed.
        progress: counts the requests, for the bar.
        now: the wall clock.

    Attributes:
        warnings: texts for the analyst, which the receipt lists.
        studio_of_game: studio ids by game id, where the frame shows the studios of games.
        filled: number of rows of each metric whose counts and money were set to 0.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        cache: AnswerCache | None,
        fresh_s: float,
        reads_cache: bool,
        options: ExecutionOptions,
        progress: Progress,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.warnings: list[str] = []
        self.studio_of_game: Mapping[str, str | None] = {}
        self.filled: dict[str, int] = {}
        self._service = service
        self._options = options
        self._tally = progress.tally
        self._is_truncated = False
        self._values_listed: Sequence[str] = ()
        self._titles: dict[str, Mapping[str, str]] = {}
        self._deadline = Deadline(options.deadline_s)
        self._started_at = datetime.fromtimestamp(now(), UTC)
        self._fetcher = Fetcher(
            service,
            cache=cache,
            fresh_s=fresh_s,
            reads_cache=reads_cache,
            progress=progress,
            deadline=self._deadline,
        )

    async def execute(self, spec: Spec, steps_of: Callable[[Spec], QuerySteps]) -> QueryResult:
        """Return the result of *spec*, by the steps that *steps_of* makes of it.

        Raises:
            NotYetAvailable: part of the time range is not available.
            BadQuery, NotAdditive: the query cannot be sent, or its answers not be put together.
            Truncated: all values were queried, and an answer holds as many as the service gives.
            PartialResult: requests failed, and gaps are not wanted or there is nothing else.
        """
        steps = steps_of(spec)
        given = steps.recorded
        unknown = await self._deadline.run(self._check_names(steps.sent))
        times = (await self._resolve_range()).whole(self._options.whole_buckets)

        # The service takes ids and compares with values: those stand in place of titles and of null from here on.
        interval = steps.fan_out_interval(times)
        lookup = NameLookup(self._service, times.available, self._tally)
        studios = await self._deadline.run(lookup.studios(spec.studios))
        games = await self._deadline.run(lookup.games(spec.games, studios))
        where = await self._deadline.run(lookup.filter(spec.where, interval, studios=studios, games=games))
        steps = steps_of(msgspec.structs.replace(spec, studios=studios, games=games, where=where))

        dimensions = fan_out_dimensions(steps.sent)
        if dimensions:  # a query that cannot be sent is refused before a list is requested
            steps.plan(times, placeholder_values(dimensions), unknown)
        lists = await self._deadline.run(gather(self._list(name, steps.sent, interval) for name in dimensions))
        listed = dict(zip(dimensions, lists, strict=True))
        values = FanOutValues(games=listed.pop(GAME_ID, ()), studios=listed.pop(STUDIO_ID, ()), values=listed)

        plans = steps.plan(times, values, unknown)
        await self._deadline.run(self._look_up_titles(steps.recorded, plans, times))
        tables = await self._fetch(plans, times, values)
        table = await asyncio.to_thread(steps.assemble, self, plans, tables, times)
        await self._check_values(given, table)
        receipt = self._receipt(given, steps.ages, times)
        return await self._finish(table, steps.columns(plans), receipt)

    def missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets of *plan* for which rows are missing."""
        return self._fetcher.missing_buckets(plan)

    def missing_intervals(self, since_days_ago: int | None) -> list[Interval]:
        """Return the intervals whose requests for *since_days_ago* failed."""
        return [
            enclosing_interval(job.run)
            for job in self._fetcher.missing
            if job.template.query.since_days_ago == since_days_ago
        ]

    async def _check_names(self, spec: QuerySpec) -> list[str]:
        """Return the dimensions that only the service knows, and warn of each unknown name.

        Raises:
            BadQuery: the service does not know a name either.
        """
        filtered = list(dimensions_in(spec.where)) if spec.where is not None else []
        columns = {*DIMENSIONS, STUDIO_ID}
        metrics = await self._service.unknown_names("metric", spec.metrics, {**METRICS, **ALIASES})
        dimensions = await self._service.unknown_names("by", spec.dimensions, columns)
        dimensions += await self._service.unknown_names("where", filtered, DIMENSIONS)
        for name in dict.fromkeys([*metrics, *dimensions]):
            self.warnings.append(f"this version does not know {name}, the service does: passed on as it is")
        return dimensions

    async def _resolve_range(self) -> ResolvedRange:
        """Return the requested, available and covered interval.

        Raises:
            NotYetAvailable: part of the time range is not available, or not by the deadline.
        """
        options = self._options
        resolving = self._service.resolve_range(
            options.over, options.when_unavailable, self._deadline.left_s, self._tally
        )
        try:
            return await self._deadline.run(resolving)
        except Unreachable:
            available = self._service.last_available
            if options.when_unavailable != "wait" or self._deadline.left_s != 0 or available is None:
                raise
            # The service answered in time: only its available interval did not grow far enough.
            late = NotYetAvailable(resolve_range(options.over, available), available, tried="wait")
        raise late

    async def _list(self, dimension: str, spec: QuerySpec, interval: Interval) -> tuple[str, ...]:
        """Return the distinct values of *dimension* within the games and studios of *spec*."""
        games, studios = spec.games, spec.studios
        if dimension == GAME_ID:
            listings = await self._service.games(interval, studios, tally=self._tally)
            return tuple(dict.fromkeys(game.id for game in listings if games is None or game.id in games))
        if dimension == STUDIO_ID:
            listed = await self._service.studios(interval, self._tally)
            return tuple(dict.fromkeys(studio.id for studio in listed if studios is None or studio.id in studios))
        values = await self._service.dimension_values(
            dimension, interval, studios=studios or (), games=games or (), tally=self._tally
        )
        self.warnings += [default_limit_warning(f"the list of {dimension}")] if len(values) == DEFAULT_LIMIT else []
        return tuple(values)

    async def _look_up_titles(self, spec: QuerySpec, plans: Sequence[MetricPlan], times: ResolvedRange) -> None:
        """Request the titles that the frame shows, and the studios of games.

        Before the rows: a list that fails later would cost rows that are already there.
        """
        interval = times.covered
        if STUDIO_ID in spec.dimensions and any(plan.labels or GAME_ID in plan.dimensions for plan in plans):
            games = await self._service.games(interval, tally=self._tally)
            self.studio_of_game = self._fetcher.studio_of_game = {game.id: game.studio_id for game in games}
        if GAME_ID in spec.titled:
            games = await self._service.games(interval, spec.studios, self._tally)
            self._titles[GAME_ID] = unique_game_titles(games)
        if STUDIO_ID in spec.titled:
            self._titles[STUDIO_ID] = unique_studio_names(await self._service.studios(interval, self._tally))

    async def _fetch(self, plans: Sequence[MetricPlan], times: ResolvedRange, values: FanOutValues) -> list[pa.Table]:
        """Return the table of each of *plans*."""
        planned = [plan for plan in plans if any(source.templates for source in plan.sources)]
        planned += [plan.total for plan in planned if plan.total is not None]
        requested = list({id(source): source for plan in planned for source in plan.sources}.values())
        fetched = await self._fetcher.fetch(requested, times.available)
        answers = {id(plan): rows for plan, rows in zip(requested, fetched, strict=True)}
        builder = TableBuilder(times, self.studio_of_game, self._fetcher.missing_buckets)
        tables = [await asyncio.to_thread(builder.build, plan, answers) for plan in plans]
        for position, plan in enumerate(plans):
            if plan.rest is not None:
                tables[position] = await self._with_rest(plan, tables[position], times, values, builder)
        self._is_truncated = builder.is_truncated
        self.warnings += builder.warnings
        return tables

    async def _with_rest(
        self, plan: MetricPlan, shown: pa.Table, times: ResolvedRange, values: FanOutValues, builder: TableBuilder
    ) -> pa.Table:
        """Return *shown*, the largest rows of *plan*, and the rows `(other)` of further requests."""
        groups = rest_groups(plan, values)
        unknown = [group for group in groups if self._fetcher.is_missing(plan, group)]
        gaps = rest_plan(plan, unknown, shown, values)
        self._fetcher.leave_gaps(gaps, Unreachable("not asked, since the largest values are not known"))
        rest = rest_plan(plan, [group for group in groups if group not in unknown], shown, values)
        fetched = await self._fetcher.fetch(rest.sources, times.available)
        answers = {id(source): rows for source, rows in zip(rest.sources, fetched, strict=True)}
        rows = await asyncio.to_thread(builder.build, rest, answers)
        return sort_by_time(concatenate([shown, rows], shown.schema))

    async def _check_values(self, spec: QuerySpec, table: pa.Table) -> None:
        """Warn of each value in the filter that the service has never had."""
        if spec.where is not None and not self._fetcher.gaps:
            check = await self._deadline.run(self._service.check_values(spec.where, table, self._tally))
            self.warnings += check.warnings
            self._values_listed = check.listed

    async def _finish(self, table: pa.Table, dimensions: Sequence[str], receipt: Receipt) -> QueryResult:
        """Return the frame of *table* with its titles and its receipt.

        Raises:
            PartialResult: requests failed, and gaps are not wanted or there is nothing else.
        """
        table = add_titles(table, self._titles)
        is_partial = bool(self._fetcher.gaps) and (self._options.on_error == "raise" or not self._fetcher.has_rows)
        kind = "pandas" if is_partial else self._options.to
        # In a thread: a large frame takes long enough to delay the requests of all other queries.
        frame = await asyncio.to_thread(to_frame, table, dimensions, receipt, kind)
        if is_partial:
            gaps = [msgspec.structs.asdict(gap) for gap in self._fetcher.gaps]
            raise PartialResult(frame, gaps) from self._fetcher.failure
        return QueryResult(frame, receipt, table)

    def _receipt(self, spec: QuerySpec, ages: tuple[int, ...], times: ResolvedRange) -> Receipt:
        self.warnings += [self._fetcher.cache_warning] if self._fetcher.cache_warning else []
        record = query_record(spec, self._options.over, interval=str(times.requested), days=ages)
        return Receipt(
            asked=record,
            asked_at=self._started_at.isoformat(timespec="seconds"),
            as_of=times.available.end.isoformat(),
            available=str(times.available),
            requests=self._tally.requests,
            retries=self._tally.retries,
            cached_share=round(self._fetcher.cached_share, 4),
            gaps=tuple(self._fetcher.gaps),
            clipped=str(times.covered) if times.covered != times.requested else None,
            truncated=self._is_truncated,
            warnings=tuple(self.warnings),
            titles=tuple(sorted(self._titles.get(GAME_ID, {}).values())),
            version=package_version(),
            filled=self.filled,
            provenance=self._service.provenance,
            values_listed=tuple(self._values_listed),
        )
