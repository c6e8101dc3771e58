"""One query under way: names, range, ids, values, requests, rows, frame.

`QueryRun.execute` reads downwards and is the only path. Rows and retention are two ways to plan requests and to put
their rows together. `plan_cost` prepares the same run and sends nothing.

All requests of a query go to the rate limiter together. A request that fails leaves a gap and stops only those that
would fail as well: all of them where the key is refused or the rate limit is used up, those of the same shape where the
service refuses the query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS
from gamelens.client.answer_cache import AnswerCache, CachedRows, CacheKey
from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.metrics_api import MetricsApi, UnlistedError
from gamelens.client.limits.deadline import Deadline
from gamelens.client.query import retention
from gamelens.client.query.arguments import (
    COUNTRY_CODE,
    GAME_ID,
    STUDIO_ID,
    ExecutionOptions,
    QuerySpec,
    one_of,
    query_record,
)
from gamelens.client.query.build import (
    MetricRows,
    TableBuilder,
    default_limit_warning,
    join_metrics,
    long_session_warnings,
)
from gamelens.client.query.data_frames import add_titles, to_frame, unique_game_titles, unique_studio_names
from gamelens.client.query.planner import (
    MetricPlan,
    RequestTemplate,
    RestGroup,
    Values,
    fan_out_dimensions,
    fan_out_interval,
    plan_requests,
    rest_groups,
    rest_plan,
    typical_values,
)
from gamelens.client.query.progress import Progress
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.answer_reading import read_answer
from gamelens.client.tables.countries import COUNTRY_NAMES
from gamelens.client.tables.table_operations import schema
from gamelens.client.tables.time_ranges import BucketSlice, ResolvedRange, enclosing_interval, resolve_range
from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    NotYetAvailable,
    PartialResult,
    RateLimited,
    Retryable,
    Unreachable,
)
from gamelens.receipts import RECEIPT, Gap, Receipt, package_version
from gamelens.wire.filters import dimensions_in, nullable_in, with_values_of
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import DEFAULT_LIMIT
from gamelens.wire.queries import MetricQuery

_COMMON: Final = (AuthError, BadQuery, RateLimited)
"""Failures that other requests would meet as well."""
_FANNED_FIELDS: Final = {"filter", "game", "games", "studios"}
NO_ROWS: Final = CachedRows(None, frozenset())


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


class QueryPart(msgspec.Struct, frozen=True):
    """A part of a query: rows of metrics, or retention.

    Attributes:
        spec: its content.
        sent: its content as it is sent.
        plans: the plan of each of its metrics.
        installs: the plan of the installs that rows of `retention_retro` are compared with, if they are.
    """

    spec: QuerySpec
    sent: QuerySpec
    plans: list[MetricPlan]
    installs: MetricPlan | None = None

    @property
    def all_plans(self) -> list[MetricPlan]:
        """All plans to answer."""
        return [*self.plans, *([self.installs] if self.installs is not None else [])]


class Request:
    """One request: *template* over *slices*, adjacent bucket slices of *plan*.

    Attributes:
        table: its rows, once it is answered.
        error: the failure, once it has failed.
        is_stopped: whether it was not sent, because another one failed.
    """

    def __init__(self, plan: MetricPlan, template: RequestTemplate, slices: tuple[BucketSlice, ...]) -> None:
        self.plan = plan
        self.template = template
        self.slices = slices
        self.table: pa.Table | None = None
        self.error: GamelensError | None = None
        self.is_stopped = False

    @property
    def gap(self) -> Gap:
        """The gap that it leaves without an answer.

        Where the rows of a bucket are summed over several requests, the gap covers all slices of the bucket.
        """
        interval = enclosing_interval(self.slices)
        if self.plan.adds_up:
            starts = {slice_.bucket_start for slice_ in self.slices}
            is_all = self.plan.every == "all"
            interval = enclosing_interval(
                [slice_ for slice_ in self.plan.slices if is_all or slice_.bucket_start in starts]
            )
        template = self.template
        return Gap(metric=template.metric, interval=str(interval), scope=template.scope, error=str(self.error))


class Source:
    """What answers one plan.

    Attributes:
        plan: the plan, which is not that of an alias.
        cached: for each template the rows that the cache has.
        requests: for each template the requests for the others.
    """

    def __init__(self, plan: MetricPlan, cached: Sequence[CachedRows]) -> None:
        self.plan = plan
        self.cached = cached
        self.requests = [
            [Request(plan, template, run) for run in plan.runs([one for one in plan.slices if one not in rows.slices])]
            for template, rows in zip(plan.templates, cached, strict=True)
        ]

    @property
    def all_requests(self) -> list[Request]:
        """Its requests, of all templates."""
        return [request for requests in self.requests for request in requests]

    def answers(self) -> list[list[pa.Table]]:
        """Return the tables of each template.

        Where the rows of a bucket are summed over several requests and one of them failed, the bucket is left out.
        """
        answers = []
        for rows, requests in zip(self.cached, self.requests, strict=True):
            found = [request.table for request in requests if request.table is not None]
            found += [rows.table] if rows.table is not None else []
            missing = [slice_ for request in requests if request.table is None for slice_ in request.slices]
            if missing and self.plan.adds_up:
                starts = [slice_.bucket_start for slice_ in missing]
                # A part of the only number there is would be a wrong number.
                is_all = self.plan.every == "all"
                found = [] if is_all else [tables.drop_buckets(table, starts) for table in found]
            answers.append(found)
        return answers


class QueryRun:
    """One query under way.

    Args:
        service: answers the requests.
        cache: has rows that need no request, and stores the answers; None for a client without a cache.
        fresh_s: how long cached buckets that may still change count as fresh.
        max_days: most days of one request; None for the limit of the service.
        options: how the query is executed.
        progress: counts the requests, for the bar.
        reads_cache: whether rows are taken from the cache, which stores answers in any case.
        now: the wall clock.

    Attributes:
        warnings: texts for the analyst, which the receipt lists.
        sources: all sources of rows so far.
        times: the requested, available and covered interval.
        values: those that a fan-out covers.
        studio_of_game: studio ids by game id, where the frame shows the studios of games.
        guessed: dimensions whose number of values was guessed, in a run that only counts requests.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        cache: AnswerCache | None,
        fresh_s: float,
        max_days: int | None,
        options: ExecutionOptions,
        progress: Progress,
        reads_cache: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.service = service
        self.cache = cache
        self.fresh_s = fresh_s
        self.max_days = max_days
        self.options = options
        self.progress = progress
        self.reads_cache = reads_cache and cache is not None
        self.deadline = Deadline(options.deadline_s, last_failure=lambda: progress.tally.last_failure)
        self._started_at = datetime.fromtimestamp(now(), UTC)
        self.warnings: list[str] = []
        self.sources: list[Source] = []
        self._unsent: list[Request] = []
        self._compared: list[MetricPlan] = []
        self.guessed: dict[str, None] = {}
        self.times: ResolvedRange
        self.values: Values = {}
        self.studio_of_game: Mapping[str, str | None] = {}
        self._tasks: dict[Request, asyncio.Task[None]] = {}
        self._failure: GamelensError | None = None
        self._titles: dict[str, Mapping[str, str]] = {}
        self._filled: dict[str, int] = {}
        self._is_truncated = False

    async def execute(self, spec: QuerySpec) -> QueryResult:
        """Return the result of *spec*.

        Raises:
            NotYetAvailable: part of the time range is not available.
            BadQuery, NotAdditive: the query cannot be sent, or its answers not be put together.
            Truncated: all values were queried, and an answer holds as many as the service gives.
            PartialResult: requests failed, and gaps are not wanted or there is nothing else.
        """
        parts = await self.prepare(spec)
        self._compared = [part.installs for part in parts if part.installs is not None]
        tables_of = iter(await self._fetch([plan for part in parts for plan in part.all_plans]))
        built = [[next(tables_of) for _ in part.all_plans] for part in parts]
        cohorts = [await self._retention(part, own) for part, own in zip(parts, built, strict=True) if part.spec.ages]
        if spec.ages:
            return await self._finish(spec, cohorts[0], spec.dimensions)
        is_of_rows = not parts[-1].spec.ages
        plans, rows = (parts[-1].plans, built[-1][: len(parts[-1].plans)]) if is_of_rows else ([], [])
        if is_of_rows and parts[-1].installs is not None:
            self._warn_of_groups(parts[-1], built[-1])
        lost = self._missing_days(None, parts[0].plans) if cohorts else ()
        unknown = retention.buckets_of(lost, spec.every, self.times)
        shares = [retention.rows_of_age(alias, table, unknown) for table in cohorts for alias in spec.cohort_shares]
        is_all = spec.fields == "all"
        table = await asyncio.to_thread(self._side_by_side, plans, rows, spec.dimensions, shares, all_fields=is_all)
        table = table.select([*table.column_names[: 1 + len(spec.dimensions)], *_in_order(spec, table)])
        if spec.sort is not None:
            one_of("sort", spec.sort, tuple(table.column_names))  # of a metric that the catalog does not know
            table = table.take(pc.sort_indices(table, [(spec.sort, "descending")]))
        return await self._finish(spec, table, spec.dimensions)

    async def _retention(self, part: QueryPart, built: Sequence[pa.Table]) -> pa.Table:
        """Return the rows of a part for retention."""
        self.warnings += retention.left_out(part.spec.ages, part.spec.every, self.times)
        missing = {age: self._missing_days(age, part.plans) for age in (None, *part.spec.ages)}
        return await asyncio.to_thread(
            retention.table, part.spec, part.sent, built, self.times, missing, self.studio_of_game
        )

    def _warn_of_groups(self, part: QueryPart, built: Sequence[pa.Table]) -> None:
        """Warn of the groups without rows in the answer of `retention_retro`."""
        place = part.sent.metrics.index(retention.BY_ACTIVITY)
        is_known = not any(request.plan is plan for plan in self._compared for request in self._unanswered)
        self.warnings += retention.groups_left_out(
            part.spec, built[place], built[-1] if is_known else None, self._missing_buckets(part.plans[place])
        )

    async def prepare(self, spec: QuerySpec) -> list[QueryPart]:
        """Return the parts of *spec* with the plan of each metric: everything but the rows.

        Raises:
            NotYetAvailable, BadQuery, NotAdditive: as in `execute`.
        """
        return [await self._prepare(part) for part in spec.parts]

    async def _prepare(self, spec: QuerySpec) -> QueryPart:
        sent = retention.sent_query(spec) if spec.ages else spec
        unknown = await self.deadline.run(self._check_names(sent))
        self.times = times = (await self._resolve_range()).whole(self.options.whole_buckets)
        interval = retention.fan_out_interval(spec.ages, times) if spec.ages else fan_out_interval(sent, times)

        def plans_for(values: Values) -> list[MetricPlan]:
            if spec.ages:
                return retention.plans(spec.ages, sent, times, values, max_days=self.max_days)
            return plan_requests(sent, times.covered, max_days=self.max_days, unknown=unknown, values=values)

        # The service takes ids and compares with values: those stand in place of titles and of null from here on.
        sent = await self.deadline.run(self._with_ids(sent, interval))
        dimensions = fan_out_dimensions(sent)
        if dimensions:  # a query that cannot be sent is refused before a list is requested
            plans_for(dict.fromkeys(dimensions, ("…",)))
        lists = await self.deadline.run(gather(self._list(name, sent, interval) for name in dimensions))
        self.values = dict(zip(dimensions, lists, strict=True))
        plans = plans_for(self.values)
        await self.deadline.run(self._look_up_titles(spec, sent, plans))
        if (installed := retention.install_days_behind(spec, times)) is None:
            return QueryPart(spec, sent, plans)
        counted = sent.with_(metrics=("new_users",), since_days_ago=None, fields=None)
        (installs,) = plan_requests(counted, installed, max_days=self.max_days, unknown=unknown, values=self.values)
        return QueryPart(spec, sent, plans, installs)

    async def _check_names(self, spec: QuerySpec) -> list[str]:
        """Return the dimensions that only the service knows, and warn of each unknown name.

        Raises:
            BadQuery: the service does not know a name either.
        """
        filtered = list(dimensions_in(spec.where)) if spec.where is not None else []
        columns = {*DIMENSIONS, STUDIO_ID}
        metrics = await self.service.unknown_names("metric", spec.metrics, {**METRICS, **ALIASES})
        dimensions = await self.service.unknown_names("by", spec.dimensions, columns)
        dimensions += await self.service.unknown_names("where", filtered, DIMENSIONS)
        for name in dict.fromkeys([*metrics, *dimensions]):
            self.warnings.append(f"this version does not know {name}, but the service does: it is passed on unchanged")
        return dimensions

    async def _resolve_range(self) -> ResolvedRange:
        """Return the requested, available and covered interval.

        Raises:
            NotYetAvailable: part of the time range is not available, or not by the deadline.
        """
        over, when, deadline = self.options.over, self.options.when_unavailable or "raise", self.deadline
        try:
            return await deadline.run(self.service.resolve_range(over, when, deadline.left_s, self.progress.tally))
        except Unreachable:
            available = self.service.last_available
            if when != "wait" or deadline.left_s != 0 or available is None:
                raise
            # The service answered in time: only its available interval did not grow far enough.
            late = NotYetAvailable(resolve_range(over, available), available, tried="wait")
        raise late

    async def _with_ids(self, spec: QuerySpec, interval: Interval) -> QuerySpec:
        """Return *spec* with ids in place of titles, and values in place of null."""
        available, tally, where = self.times.available, self.progress.tally, spec.where
        with suppress(UnlistedError):
            spec = spec.with_(studios=await self.service.ids("studios", spec.studios, available, tally=tally))
        with suppress(UnlistedError):
            spec = spec.with_(games=await self.service.ids("games", spec.games, available, spec.studios, tally))
        if where is None or not (names := nullable_in(where)):
            return spec
        lists = await gather(self._list(name, spec, interval, warns=False) for name in names)
        return spec.with_(where=with_values_of(where, dict(zip(names, lists, strict=True))))

    async def _list(self, name: str, spec: QuerySpec, interval: Interval, *, warns: bool = True) -> tuple[str, ...]:
        """Return the distinct values of the dimension *name* within the games and studios of *spec*.

        Where a run that only counts requests does not know them, they are as many as usual.
        """
        games, studios, tally = spec.games, spec.studios, self.progress.tally
        try:
            if name == GAME_ID:
                ids = [game.id for game in await self.service.games(interval, studios, tally)]
                return tuple(dict.fromkeys(id_ for id_ in ids if games is None or id_ in games))
            if name == STUDIO_ID:
                ids = [studio.id for studio in await self.service.studios(interval, tally)]
                return tuple(dict.fromkeys(id_ for id_ in ids if studios is None or id_ in studios))
            listed = await self.service.dimension_values(
                name, interval, studios=studios or (), games=games or (), tally=tally, notes=self.warnings
            )
        except UnlistedError:
            self.guessed[name] = None
            own = {GAME_ID: games, STUDIO_ID: studios or ("…",)}.get(name)
            return own or typical_values(name)
        if warns and len(listed) == DEFAULT_LIMIT:
            self.warnings.append(default_limit_warning(f"the list of {name}"))
        return tuple(listed)

    async def _look_up_titles(self, spec: QuerySpec, sent: QuerySpec, plans: Sequence[MetricPlan]) -> None:
        """Request the titles that the frame shows, and the studios of games.

        Before the rows: a list that fails later would cost rows that are already there.
        """
        service, interval, tally = self.service, self.times.covered, self.progress.tally
        if STUDIO_ID in spec.dimensions and any(plan.labels or GAME_ID in plan.dimensions for plan in plans):
            with suppress(UnlistedError):
                self.studio_of_game = {game.id: game.studio_id for game in await service.games(interval, tally=tally)}
        if GAME_ID in spec.titled:
            with suppress(UnlistedError):
                self._titles[GAME_ID] = unique_game_titles(await service.games(interval, sent.studios, tally))
        if STUDIO_ID in spec.titled:
            with suppress(UnlistedError):
                self._titles[STUDIO_ID] = unique_studio_names(await service.studios(interval, tally))
        if COUNTRY_CODE in spec.titled:
            self._titles[COUNTRY_CODE] = COUNTRY_NAMES

    async def _fetch(self, plans: Sequence[MetricPlan]) -> list[pa.Table]:
        """Return the table of each of *plans*, with gaps where requests failed.

        Raises:
            GamelensError: nothing came for one reason: the only request failed, or one failure stopped all others.
        """
        await self._send(await asyncio.to_thread(self.find_cached, plans))
        builder = self.builder()
        built = [await asyncio.to_thread(builder.build, plan) for plan in plans]
        for position, plan in enumerate(plans):
            if plan.rest is not None:
                built[position] = await self._with_rest(plan, built[position], builder)
        self._is_truncated = builder.is_truncated
        self.warnings += builder.warnings
        return built

    def builder(self) -> TableBuilder:
        """Return what builds the tables of plans from the sources."""
        return TableBuilder(self.times.covered.start, self.studio_of_game, self._answers, self._missing_buckets)

    async def _with_rest(self, plan: MetricPlan, shown: pa.Table, builder: TableBuilder) -> pa.Table:
        """Return *shown*, the largest rows of *plan*, and the rows `(other)` of further requests."""
        groups = rest_groups(plan, self.values)
        unknown = [group for group in groups if self._is_missing(plan, group)]
        for source in rest_plan(plan, unknown, shown, self.values).leaf_plans:
            unsent = Source(source, [NO_ROWS] * len(source.templates)).all_requests
            for request in unsent:
                request.error = Unreachable("not requested, since the largest values are not known")
            self._unsent += unsent
        rest = rest_plan(plan, [group for group in groups if group not in unknown], shown, self.values)
        await self._send(await asyncio.to_thread(self.find_cached, [rest]))
        rows = await asyncio.to_thread(builder.build, rest)
        return tables.sort_by_time(tables.concatenate([shown, rows], shown.schema))

    def find_cached(self, plans: Sequence[MetricPlan], *, with_rows: bool = True) -> list[Source]:
        """Return a new source for each plan that has requests: *plans* or their parts, and their totals.

        A plan that several share is one source.
        """
        plans = [plan for plan in plans if any(part.templates for part in plan.leaf_plans)]
        totals = [plan.total for plan in plans if plan.total is not None]
        new = []
        for part in [part for plan in (*plans, *totals) for part in plan.leaf_plans]:
            if not any(source.plan is part for source in self.sources):
                cached = [self.cached_rows(part, template, with_rows=with_rows) for template in part.templates]
                new.append(Source(part, cached))
                self.sources.append(new[-1])
        return new

    def cached_rows(self, plan: MetricPlan, template: RequestTemplate, *, with_rows: bool = True) -> CachedRows:
        """Return the fresh rows of *template* in the cache; without *with_rows* only the slices that it has."""
        if self.cache is None or not self.reads_cache:
            return NO_ROWS
        key, available = _cache_key(template, self.service.edition), self.times.available
        if with_rows:
            rows = self.cache.find(key, plan.slices, available=available, fresh_s=self.fresh_s)
            self.warnings.extend(rows.notes)
            return rows
        return CachedRows(None, self.cache.fresh_slices(key, plan.slices, available=available, fresh_s=self.fresh_s))

    async def _send(self, sources: Sequence[Source]) -> None:
        """Send the requests of *sources* and wait for them until the deadline.

        Raises:
            GamelensError: as in `_fetch`.
        """
        requests = [request for source in sources for request in source.all_requests]
        self.progress.expect(len(requests))
        self._tasks = {request: asyncio.create_task(self._answer(request)) for request in requests}
        tasks = self._tasks.values()
        if requests:
            try:
                done, _ = await asyncio.wait(tasks, timeout=self.deadline.left_s, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            for task in done:
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error
        missing = [request for request in requests if request.table is None]
        for request in missing:
            request.error = request.error or self.deadline.error
            self._failure = self._failure or request.error
        if self._failure is not None and not self._has_rows:
            own = [request.error for request in self._missing if not request.is_stopped]
            is_one = self.deadline.left_s == 0 or all(isinstance(error, _COMMON) for error in own)
            if len(requests) == 1 or is_one:
                raise self._failure

    async def _answer(self, request: Request) -> None:
        """Send *request*. If it fails, stop the requests that would fail for the same reason."""
        template = request.template
        query = template.over(enclosing_interval(request.slices))
        try:
            body = await self.service.post_query(template.metric, query, self.progress.tally)
            # In a thread: a large answer takes long enough to delay the requests of all other queries.
            request.table = await asyncio.to_thread(self._read, request, query, body)
        except (Retryable, BadQuery, AuthError) as error:
            request.error = error
            self._failure = self._failure or error
            for other, task in self._tasks.items():
                if not task.done() and other is not request and self._would_fail(other, request, error):
                    other.error = Unreachable(f"not requested, since another request failed: {error}")
                    other.is_stopped = True
                    task.cancel()
        self.progress.done += 1

    def _would_fail(self, other: Request, failed: Request, error: GamelensError) -> bool:
        """Return whether *other* would fail with the *error* of the request *failed* as well.

        A refusal meets all requests of the same shape: those of the metric plan, or of the fanned-out value that it
        names. It is about the one request alone if it names the interval, or another one of the plan was answered.
        """
        if not isinstance(error, BadQuery):
            return isinstance(error, _COMMON)
        answered = (request for request in self._tasks if request.table is not None)
        if error.field == "interval" or any(request.plan is failed.plan for request in answered):
            return False
        return other.template is failed.template if error.field in _FANNED_FIELDS else other.plan is failed.plan

    def _read(self, request: Request, query: MetricQuery, body: bytes) -> pa.Table:
        """Return the rows of an answer, which the cache keeps."""
        template, slices = request.template, request.slices
        notes: list[str] = []
        answer = read_answer(template.metric, query, template.carried, body, self.studio_of_game, notes)
        self.warnings.extend(notes)
        table = tables.sort_by_time(answer)
        # A service whose buckets begin elsewhere is not cached: its rows belong to no slice of ours.
        if self.cache is not None and tables.bucket_starts(table) <= {slice_.bucket_start for slice_ in slices}:
            key = _cache_key(template, self.service.edition)
            self.cache.keep(key, slices, table, available=self.times.available, notes=notes)
        return table

    def _answers(self, plan: MetricPlan) -> list[list[pa.Table]]:
        """Return the tables of each template of *plan*, in their order."""
        return next((source.answers() for source in self.sources if source.plan is plan), [])

    @property
    def _missing(self) -> list[Request]:
        """The requests without an answer that the frame lacks."""
        return [request for request in self._unanswered if not any(request.plan is plan for plan in self._compared)]

    @property
    def _unanswered(self) -> list[Request]:
        sent = [request for source in self.sources for request in source.all_requests]
        return [request for request in sent if request.table is None] + self._unsent

    @property
    def _has_rows(self) -> bool:
        """Whether any request was answered, or rows needed none."""
        return any(
            any(rows.slices for rows in source.cached)
            or any(request.table is not None for request in source.all_requests)
            for source in self.sources
        )

    def _missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets of *plan* whose rows or total are missing."""
        own = [source for owner in (plan, plan.total) if owner is not None for source in owner.leaf_plans]
        return {
            plan.start_of(slice_.bucket_start)
            for request in self._missing
            for slice_ in request.slices
            if any(request.plan is source for source in own)
        }

    def _is_missing(self, plan: MetricPlan, group: RestGroup) -> bool:
        """Return whether a request of *plan* for the rows of *group* failed."""
        return any(
            request.plan is source and set(request.template.fixed) <= set(group)
            for request in self._missing
            for source in plan.leaf_plans
        )

    def _missing_days(self, age: int | None, plans: Sequence[MetricPlan]) -> list[Interval]:
        """Return the intervals whose requests of *plans* for *age* failed; None stands for the installs."""
        own = [
            request
            for request in self._missing
            if any(request.plan is source for it in plans for source in it.leaf_plans)
        ]
        failed = [request for request in own if request.template.query.since_days_ago == age]
        return [enclosing_interval(request.slices) for request in failed]

    def _side_by_side(
        self,
        plans: Sequence[MetricPlan],
        built: Sequence[pa.Table],
        dimensions: Sequence[str],
        shares: Sequence[MetricRows],
        *,
        all_fields: bool,
    ) -> pa.Table:
        """Return the tables of all metrics and the *shares* of cohorts joined, under the names of frames.

        Counts and money are 0 where the service has no row and no request failed. A field that the catalog does not
        know is kept, with a warning.
        """
        for plan, table in zip(plans, built, strict=True):
            known = {*plan.dimensions, *schema(plan.metric, ()).names}
            unknown = [name for name in table.column_names if name not in known]
            if plan.metric in METRICS and unknown:
                text = f"{plan.metric} came with fields this version does not know: {', '.join(unknown)}"
                self.warnings.append(text)
        rows = []
        for plan, table in zip(plans, built, strict=True):
            full = tables.full_buckets(table, plan.top, plan.within) if plan.top and len(plans) > 1 else set()
            rows.append(MetricRows(metric=plan.metric, table=table, unknown=self._missing_buckets(plan) | full))
        starts = plans[0].starts if plans else ()
        are_usual = all(tables.bucket_starts(table) <= {*starts} for table in built)
        is_whole = are_usual and bool(plans) and not plans[0].top  # buckets that begin elsewhere are not known here
        filled = starts if is_whole else ()
        joined, self._filled = join_metrics(dimensions, [*rows, *shares], filled, all_fields=all_fields)
        return joined

    async def _finish(self, spec: QuerySpec, table: pa.Table, dimensions: Sequence[str]) -> QueryResult:
        """Return the frame of *table* with its titles and its receipt.

        Raises:
            PartialResult: requests failed, and gaps are not wanted or there is nothing else.
        """
        times, tally, listed = self.times, self.progress.tally, list[str]()
        gaps = [request.gap for request in self._missing]
        if spec.where is not None and not gaps:  # a value that the service has never had is a warning
            check = await self.deadline.run(self.service.check_values(spec.where, table, tally))
            self.warnings += check.warnings
            listed = check.listed
        if self.cache is not None and self.cache.off is not None:
            step = f"To cache them, make {self.cache.folder} writable, or name another folder in GAMELENS_CACHE_DIR"
            self.warnings.append(f"answers are not cached on disk: {self.cache.off}. {step}")
        self.warnings += long_session_warnings(table)
        receipt = Receipt(
            asked=query_record(spec, self.options.over, str(times.requested)),
            asked_at=self._started_at.isoformat(timespec="seconds"),
            as_of=times.available.end.isoformat(),
            available=str(times.available),
            requests=tally.requests,
            retries=tally.retries,
            cached_share=round(cached_share(self.sources), 4),
            gaps=tuple(gaps),
            clipped=str(times.covered) if times.covered != times.requested else None,
            truncated=self._is_truncated,
            warnings=tuple(dict.fromkeys(self.warnings)),
            titles=tuple(sorted(self._titles.get(GAME_ID, {}).values())),
            version=package_version(),
            filled=self._filled,
            provenance=self.service.provenance,
            values_listed=tuple(listed),
            dated_by_arrival=self.service.dated_by_arrival,
        )
        is_partial = bool(gaps) and (self.options.on_error == "raise" or not self._has_rows)
        kind = "pandas" if is_partial else self.options.to
        table = add_titles(table, self._titles)
        # In a thread: a large frame takes long enough to delay the requests of all other queries.
        frame = await asyncio.to_thread(to_frame, table, dimensions, receipt, kind)
        if is_partial:
            raise PartialResult(frame, [msgspec.structs.asdict(gap) for gap in gaps]) from self._failure
        return QueryResult(frame, receipt, table)


def _in_order(spec: QuerySpec, table: pa.Table) -> list[str]:
    """Return the columns of numbers of *table*, those of the metrics in the order of the query."""
    own = table.column_names[1 + len(spec.dimensions) :]
    known = [name for name in spec.columns if name in own]
    return [*known, *(name for name in own if name not in known)] if spec.cohort_shares else own


def cached_share(sources: Iterable[Source]) -> float:
    """Return the share of the bucket slices of *sources* that need no request."""
    slices = cached = 0
    for source in sources:
        slices += len(source.plan.slices) * len(source.cached)
        cached += sum(len(rows.slices) for rows in source.cached)
    return cached / slices if slices else 0.0


def _cache_key(template: RequestTemplate, edition: str) -> CacheKey:
    """Return the cache key of *template* for this *edition* of the data."""
    metric = METRICS.get(template.metric)
    adds_up = metric is not None and (metric.adds == "everywhere" or not template.carried)
    text = f"{template.text} {edition}".rstrip()
    return CacheKey(template.metric, template.carried, text, adds_up)
