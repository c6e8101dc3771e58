"""Answers of metric plans: rows of the row source, then requests, then gaps.

All requests of a query go to the rate limiter together. A request that fails leaves a gap and stops only those that
would fail as well: all of them where the key is refused or the rate limit is used up, those of the same shape where the
service refuses the query. `TableBuilder` puts the rows of each plan together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from gamelens.catalog import ALIASES, METRICS, find_metric
from gamelens.client.cache.answer_cache import CachedRows
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.limits.deadline import Deadline
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_spec import GAME_ID, MetricPlan
from gamelens.client.query.row_sources import FetchJob, RowSource, template_scope
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.alias_tables import SourceRows, alias_table
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.client.tables.table_schema import TIMESTAMP, schema
from gamelens.client.tables.time_ranges import ResolvedRange, enclosing_interval
from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    NotAdditive,
    RateLimited,
    Retryable,
    Truncated,
    Unreachable,
)
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import DEFAULT_LIMIT
from gamelens.wire.queries import MetricQuery
from gamelens.wire.receipts import Gap

_COMMON: Final = (AuthError, BadQuery, RateLimited)
"""Failures that other requests would meet as well."""
_FANNED_FIELDS: Final = {"filter", "game", "games", "studios"}

TemplateRows = Sequence[Sequence[pa.Table]]
"""Rows of one metric plan: the tables of each of its templates, in their order."""
MissingBuckets = Callable[[MetricPlan], Collection[datetime]]
"""The starts of the buckets of a plan for which rows are missing."""


class Fetcher:
    """The requests of one query, with what they return and what fails.

    Args:
        service: answers the requests.
        source: rows that need no request; it also stores the answers.
        progress: counts the requests, for the bar and the receipt.
        deadline: the time limit.

    Attributes:
        missing: requests without an answer.
        gaps: the same, as the receipt records them.
        failure: the error of the first request that failed; None without gaps.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        source: RowSource,
        progress: Progress,
        deadline: Deadline,
    ) -> None:
        self._service = service
        self._source = source
        self._tally = progress.tally
        self._progress = progress
        self._deadline = deadline
        self._answers: dict[FetchJob, pa.Table] = {}
        self._tasks: dict[FetchJob, asyncio.Task[None]] = {}
        self._failures: dict[FetchJob, GamelensError] = {}
        self._stopped: set[FetchJob] = set()
        self._slices = 0
        self._source_slices = 0
        self.missing: list[FetchJob] = []
        self.gaps: list[Gap] = []
        self.failure: GamelensError | None = None

    @property
    def source_warning(self) -> str | None:
        """The warning of the row source, or None when it works."""
        return self._source.warning

    @property
    def cached_share(self) -> float:
        """The share of the bucket slices that needed no request."""
        return self._source_slices / self._slices if self._slices else 0.0

    @property
    def has_rows(self) -> bool:
        """Whether any request was answered, or rows needed none."""
        return bool(self._answers) or self._source_slices > 0

    def missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets of *plan* whose rows or total are missing."""
        sources = [source for owner in (plan, plan.total) if owner is not None for source in owner.sources]
        return {
            slice_.bucket_start if job.plan.every == plan.every else plan.start_of(slice_.bucket_start)
            for job in self.missing
            for slice_ in job.run
            if any(job.plan is source for source in sources)
        }

    async def fetch(self, plans: Sequence[MetricPlan], available: Interval) -> list[TemplateRows]:
        """Return the rows of each of *plans*, leaving requests that failed in `gaps`.

        Raises:
            GamelensError: nothing came for one reason: the only request failed, or one failure stopped all others.
        """
        source_rows = await asyncio.to_thread(self._read_source, plans, available)
        jobs = list(self._jobs(plans, source_rows))
        self._progress.expect(len(jobs))
        await self._send(jobs, available)
        if self.failure is not None and not self.has_rows and (len(jobs) == 1 or self._has_one_reason):
            raise self.failure
        jobs_of: dict[int, list[FetchJob]] = {}
        for job in jobs:
            jobs_of.setdefault(id(job.template), []).append(job)
        return [
            [
                self._template_rows(plan, rows, jobs_of.get(id(template), ()))
                for template, rows in zip(plan.templates, template_rows, strict=True)
            ]
            for plan, template_rows in zip(plans, source_rows, strict=True)
        ]

    def _read_source(self, plans: Sequence[MetricPlan], available: Interval) -> list[list[CachedRows]]:
        return [[self._source.find(plan, template, available) for template in plan.templates] for plan in plans]

    def _jobs(self, plans: Sequence[MetricPlan], source_rows: Sequence[Sequence[CachedRows]]) -> Iterator[FetchJob]:
        """Yield a request for each run of slices that the row source does not have."""
        for plan, template_rows in zip(plans, source_rows, strict=True):
            for template, rows in zip(plan.templates, template_rows, strict=True):
                self._slices += len(plan.slices)
                self._source_slices += len(rows.slices)
                absent = [slice_ for slice_ in plan.slices if slice_ not in rows.slices]
                yield from (FetchJob(plan, template, run) for run in plan.runs(absent))

    async def _send(self, jobs: Sequence[FetchJob], available: Interval) -> None:
        """Send all *jobs* and wait until the deadline, leaving those that fail in `gaps`."""
        if not jobs:
            return
        self._tasks = {job: asyncio.create_task(self._answer(job, available)) for job in jobs}
        tasks = self._tasks.values()
        try:
            done, _ = await asyncio.wait(tasks, timeout=self._deadline.left_s, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if missing := [job for job in jobs if job not in self._answers]:
            self.missing += missing
            for job in missing:
                if job not in self._failures:
                    self._failures[job] = self._deadline.error
            self.failure = next(iter(self._failures.values()))
            self.gaps += [_gap(job, self._failures[job]) for job in missing]

    async def _answer(self, job: FetchJob, available: Interval) -> None:
        query = job.template.over(enclosing_interval(job.run))
        try:
            body = await self._service.post_query(job.template.metric, query, self._tally)
            # In a thread: a large answer takes long enough to delay the requests of all other queries.
            self._answers[job] = await asyncio.to_thread(self._read, job, query, body, available)
        except (Retryable, BadQuery, AuthError) as error:
            self._failures[job] = error
            self._stop_others(job, error)
        self._progress.done += 1

    def _stop_others(self, failed: FetchJob, error: GamelensError) -> None:
        """Stop the requests under way that would fail with the *error* of one as well."""
        for job, task in self._tasks.items():
            if not task.done() and job is not failed and self._would_fail(job, failed, error):
                self._failures[job] = Unreachable(f"not asked, since another request failed: {error}")
                self._stopped.add(job)
                task.cancel()

    def _would_fail(self, job: FetchJob, failed: FetchJob, error: GamelensError) -> bool:
        """Return whether *job* would fail with the *error* of another request as well.

        A refusal meets all requests of the same shape: those of the metric plan, or of the fanned-out value that it
        names. It is about the one request alone if it names the interval, or another one of the plan was answered.
        """
        if not isinstance(error, BadQuery):
            return isinstance(error, _COMMON)
        if error.field == "interval" or any(other.plan is failed.plan for other in self._answers):
            return False
        return job.template is failed.template if error.field in _FANNED_FIELDS else job.plan is failed.plan

    @property
    def _has_one_reason(self) -> bool:
        """Whether all requests failed for one reason: the deadline, or one that meets them all."""
        own = [error for job, error in self._failures.items() if job not in self._stopped]
        return self._deadline.left_s == 0 or all(isinstance(error, _COMMON) for error in own)

    def _read(self, job: FetchJob, query: MetricQuery, body: bytes, available: Interval) -> pa.Table:
        table = tables.sort_by_time(read_answer(job.template.metric, query, job.template.carried, body))
        self._source.store(job, table, available)
        return table

    def _template_rows(self, plan: MetricPlan, rows: CachedRows, jobs: Sequence[FetchJob]) -> list[pa.Table]:
        """Return the tables of one template: the answers to *jobs*, and *rows* of the source.

        Where the rows of a bucket are summed over several requests and one of them failed, the bucket is left out.
        """
        answers = [self._answers[job] for job in jobs if job in self._answers]
        answers += [rows.table] if rows.table is not None else []
        missing = [slice_ for job in jobs if job not in self._answers for slice_ in job.run]
        if not missing or not plan.adds_up:
            return answers
        if plan.every == "all":  # a part of the only number there is would be a wrong number
            return []
        return [tables.drop_buckets(table, [slice_.bucket_start for slice_ in missing]) for table in answers]


class TableBuilder:
    """Builds the table of each metric plan of one query from its rows.

    Args:
        times: the time range of the query.
        studio_of_game: studio ids by game id, for plans whose rows show the studio of a game.
        missing: returns the starts of the buckets without all rows of a plan.

    Attributes:
        is_truncated: whether `top` left rows out, or may have.
        warnings: differences between rows and their total.
    """

    def __init__(self, times: ResolvedRange, studio_of_game: Mapping[str, str | None], missing: MissingBuckets) -> None:
        self._times = times
        self._studio_of_game = studio_of_game
        self._missing = missing
        self.is_truncated = False
        self.warnings: list[str] = []

    def build(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return the table of *plan*, compared with its total where it has one.

        Args:
            plan: one of the metric plans of the query.
            answers: the rows of each plan with requests, by `id`.

        Raises:
            NotAdditive: games are pooled, and the service sends rows without the parts of the metric.
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        table = self._rows(plan, answers)
        if plan.total is None or not any(source.templates for source in plan.sources):
            return table
        return self._with_total(plan, table, self._rows(plan.total, answers), self._missing(plan))

    def _rows(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return all rows of *plan* in the order of the service, `top` of them in each bucket.

        Raises:
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        own_columns = [name for name in plan.dimensions if name not in plan.labels]
        if plan.parts:
            return self._largest(plan, self._alias_rows(plan, answers))
        carried = [*own_columns, *([GAME_ID] if plan.pools_games else [])]
        table = self._concatenated(plan, answers.get(id(plan), ()), carried)
        if plan.pools_games:
            return self._largest(plan, self._pooled(plan, self._with_labels(plan, table)))
        if plan.adds_up:
            start = self._times.covered.start if plan.every == "all" else None
            table = tables.sum_split_buckets(METRICS[plan.metric], own_columns, table, start)
        elif len(plan.templates) > 1:
            table = tables.sort_as_service(table, plan.metric, own_columns)
        else:
            table = tables.sort_largest_first(table, plan.metric, own_columns)
        return self._with_labels(plan, self._largest(plan, table))

    def _with_labels(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return *table* with the columns that follow from the game."""
        for name in plan.labels:
            position = plan.dimensions.index(name) + 1
            table = tables.add_lookup_column(table, name, GAME_ID, self._studio_of_game, position)
        return table

    def _pooled(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return the rows of all games summed, ratios made from their sums (Wire 4.14, Adding up).

        A bucket that lacks the rows of a game is left out. Without dimensions each other bucket has a row, as in a
        timeseries.

        Raises:
            NotAdditive: a row lacks a part of the metric.
        """
        metric = METRICS[plan.metric]
        parts = tables.summable_fields(metric)
        if absent := [name for name in parts if table[name].null_count]:
            by = [*plan.dimensions, "game"]
            use = f"by={by}, a number for each game: this service sends rows without {', '.join(absent)}"
            raise NotAdditive(plan.metric, use)
        missing = self._missing(plan)
        if plan.fans_out_games:
            table = tables.drop_buckets(table, missing)
        if not plan.dimensions:
            rows = [{TIMESTAMP: start, **dict.fromkeys(parts, 0)} for start in plan.starts if start not in missing]
            table = tables.concatenate([table, tables.from_rows(rows, table.schema)], table.schema)
        return tables.sum_split_buckets(metric, plan.dimensions, table, None)

    def _alias_rows(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return the rows of an alias, from those of its parts."""
        sources = [
            SourceRows(
                table=self._rows(part, answers),
                buckets={start: plan.start_of(start) for start in part.starts} if part.every != plan.every else {},
                missing=self._missing(part),
            )
            for part in plan.parts
        ]
        return alias_table(ALIASES[plan.metric], plan.dimensions, sources)

    def _largest(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return the largest rows of each bucket, or all without `top`."""
        if plan.top is None:
            return table
        self.is_truncated |= tables.largest_bucket_size(table) > plan.top
        return tables.top_per_bucket(table, plan.top)

    def _with_total(
        self, plan: MetricPlan, table: pa.Table, total: pa.Table, missing: Collection[datetime]
    ) -> pa.Table:
        """Return *table*, the rows of *plan*, compared with *total*, the rows without dimensions.

        With `top`, each bucket gets a row `(other)` of the difference; without, a difference is a warning. Buckets that
        start at one of *missing* are left out of the comparison.
        """
        if missing and plan.every == "all":
            return table
        metric = find_metric(plan.metric) or METRICS[plan.metric]
        rest = tables.other_rows(metric, plan.dimensions, total, table)
        rest = tables.drop_buckets(rest, missing)
        if plan.top is not None:
            return tables.sort_by_time(tables.concatenate([table, rest], table.schema))
        fields = tables.summable_fields(metric)
        for row in rest.to_pylist():
            difference = ", ".join(f"{name} {row[name]:,}" for name in fields if row[name])
            day = row[TIMESTAMP].date()
            self.warnings.append(
                f"{plan.metric} by {', '.join(plan.dimensions)} differs from its total on {day}: {difference}"
            )
        return table

    def _concatenated(self, plan: MetricPlan, answers: TemplateRows, columns: Sequence[str]) -> pa.Table:
        """Return the rows of all templates of *plan*, with the fixed values as columns."""
        parts = []
        for template, template_tables in zip(plan.templates, answers, strict=True):
            for table in template_tables:
                self._check_length(plan, table)
            rows = tables.concatenate(template_tables, schema(plan.metric, template.carried))
            if template.fixed and not template.carried:  # a series has all buckets, a group only those with rows
                rows = tables.drop_zero_rows(rows, plan.metric)
            parts.append(tables.add_constant_columns(tables.sort_by_time(rows), template.fixed))
        return tables.order_columns(tables.concatenate(parts, schema(plan.metric, columns)), columns)

    def _check_length(self, plan: MetricPlan, answer: pa.Table) -> None:
        """Refuse an *answer* as long as the limit, unless the analyst set that limit with `top`.

        One as long as the default limit of the service, which was asked for more, is a warning.
        """
        if plan.limit is None:
            return
        size = tables.largest_bucket_size(tables.sort_by_time(answer))
        if size >= plan.limit:
            if plan.limit != plan.top:
                raise Truncated(plan.limit)
            self.is_truncated = True
        elif size == DEFAULT_LIMIT and plan.total is None:
            self.warnings.append(default_limit_warning(f"{plan.metric} by {', '.join(plan.dimensions)}"))


def default_limit_warning(list_name: str) -> str:
    """Return the warning of a list that has as many values as the service gives by default."""
    return (
        f"{list_name} came with exactly {DEFAULT_LIMIT} values, the default limit of the service: it may have left out "
        "others although all were requested; check=True compares with the total"
    )


def _gap(job: FetchJob, error: GamelensError) -> Gap:
    """Return the gap that a failed *job* leaves.

    Where the rows of a bucket are summed over several requests, the gap covers all slices of the bucket.
    """
    plan, interval = job.plan, enclosing_interval(job.run)
    if plan.adds_up:  # rows of the same bucket cannot be summed without it
        starts = {slice_.bucket_start for slice_ in job.run}
        shared = [slice_ for slice_ in plan.slices if plan.every == "all" or slice_.bucket_start in starts]
        interval = enclosing_interval(shared)
    scope = template_scope(job.template)
    return Gap(metric=job.template.metric, interval=str(interval), scope=scope, error=str(error))
