"""Answers of metric plans: rows of the row source, then requests, then gaps.

All requests of a query go to the rate limiter together. A request that fails stops the others, unless gaps are wanted;
the answers received until then stay in the frame. `TableBuilder` puts the rows of each plan together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.cache.answer_cache import CachedRows
from gamelens.client.connection.deadline import Deadline
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.query.planner import MetricPlan
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_spec import GAME_ID, OnError
from gamelens.client.query.row_sources import FetchJob, RowSource, template_scope
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.client.tables.table_schema import TIMESTAMP, schema
from gamelens.client.tables.time_ranges import ResolvedRange, enclosing_interval
from gamelens.errors import GamelensError, RateLimited, Retryable, Truncated, Unreachable
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import DEFAULT_LIMIT
from gamelens.wire.queries import MetricQuery
from gamelens.wire.receipts import Gap

TemplateRows = Sequence[Sequence[pa.Table]]
"""Rows of one metric plan: the tables of each of its templates, in their order."""


class Fetcher:
    """The requests of one query, with what they return and what fails.

    Args:
        service: answers the requests.
        source: rows that need no request; it also stores the answers.
        progress: counts the requests, for the bar and the receipt.
        on_error: whether a request that fails stops the others ("raise") or leaves a gap.
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
        on_error: OnError,
        deadline: Deadline,
    ) -> None:
        self._service = service
        self._source = source
        self._tally = progress.tally
        self._progress = progress
        self._on_error = on_error
        self._deadline = deadline
        self._answers: dict[FetchJob, pa.Table] = {}
        self._failures: dict[FetchJob, GamelensError] = {}
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

    def missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets for which rows of *plan* or of its total are missing."""
        jobs = [job for job in self.missing if job.plan is plan or job.plan is plan.total]
        return {slice_.bucket_start for job in jobs for slice_ in job.run}

    async def fetch(self, plans: Sequence[MetricPlan], available: Interval) -> list[TemplateRows]:
        """Return the rows of each of *plans*, leaving requests that failed in `gaps`.

        Raises:
            GamelensError: a request failed for a reason that repeating cannot change, or there are no rows at all.
        """
        source_rows = await asyncio.to_thread(self._read_source, plans, available)
        jobs = list(self._jobs(plans, source_rows))
        self._progress.expect(len(jobs))
        await self._send(jobs, available)
        if self.failure is not None and not self._answers and not self._source_slices:
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
        """Send all *jobs* and wait until the deadline, or until a failure stops the others."""
        if not jobs:
            return
        tasks = {asyncio.create_task(self._answer(job, available)): job for job in jobs}
        try:
            done, _ = await asyncio.wait(tasks, timeout=self._deadline.left_s, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            error = task.exception()
            if isinstance(error, Retryable):
                self._failures[tasks[task]] = error
            elif error is not None:
                raise error
        if missing := [job for job in jobs if job not in self._answers]:
            self.missing += missing
            others = Unreachable("not asked: another request failed") if self._failures else self._deadline.error
            self.failure = next(iter(self._failures.values()), others)
            self.gaps += [_gap(job, self._failures.get(job, others)) for job in missing]

    async def _answer(self, job: FetchJob, available: Interval) -> None:
        query = job.template.over(enclosing_interval(job.run))
        try:
            body = await self._service.post_query(job.template.metric, query, self._tally)
            # In a thread: a large answer takes long enough to delay the requests of all other queries.
            self._answers[job] = await asyncio.to_thread(self._read, job, query, body, available)
        except Retryable as error:
            if self._on_error == "raise" or isinstance(error, RateLimited):  # the others would be refused as well
                raise
            self._failures[job] = error
        self._progress.done += 1

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

    Attributes:
        is_truncated: whether `top` left rows out, or may have.
        warnings: differences between rows and their total.
    """

    def __init__(self, times: ResolvedRange, studio_of_game: Mapping[str, str | None]) -> None:
        self._times = times
        self._studio_of_game = studio_of_game
        self.is_truncated = False
        self.warnings: list[str] = []

    def build(self, plan: MetricPlan, answers: Mapping[int, TemplateRows], missing: Collection[datetime]) -> pa.Table:
        """Return the table of *plan*, compared with its total where it has one.

        Args:
            plan: one of the metric plans of the query.
            answers: the rows of each plan and total, by `id`.
            missing: starts of the buckets without all their rows.

        Raises:
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        table = self._rows(plan, answers.get(id(plan), ()))
        if plan.total is None or not plan.templates:
            return table
        total = self._rows(plan.total, answers[id(plan.total)])
        return self._with_total(plan, table, total, missing)

    def _rows(self, plan: MetricPlan, answers: TemplateRows) -> pa.Table:
        """Return all rows of *plan* in the order of the service, `top` of them in each bucket.

        Raises:
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        own_columns = [name for name in plan.dimensions if name not in plan.labels]
        table = self._concatenated(plan, answers, own_columns)
        if plan.adds_up:
            start = self._times.covered.start if plan.every == "all" else None
            table = tables.sum_split_buckets(METRICS[plan.metric], own_columns, table, start)
        elif len(plan.templates) > 1:
            table = tables.sort_as_service(table, plan.metric, own_columns)
        else:
            table = tables.sort_largest_first(table, plan.metric, own_columns)
        if plan.top is not None:
            self.is_truncated |= tables.largest_bucket_size(table) > plan.top
            table = tables.top_per_bucket(table, plan.top)
        for name in plan.labels:
            position = plan.dimensions.index(name) + 1
            table = tables.add_lookup_column(table, name, GAME_ID, self._studio_of_game, position)
        return table

    def _with_total(
        self, plan: MetricPlan, table: pa.Table, total: pa.Table, missing: Collection[datetime]
    ) -> pa.Table:
        """Return *table*, the rows of *plan*, compared with *total*, the rows without dimensions.

        With `top`, each bucket gets a row `(other)` of the difference; without, a difference is a warning. Buckets that
        start at one of *missing* are left out of the comparison.
        """
        if missing and plan.every == "all":
            return table
        rest = tables.other_rows(METRICS[plan.metric], plan.dimensions, total, table)
        rest = tables.drop_buckets(rest, missing)
        if plan.top is not None:
            return tables.sort_by_time(tables.concatenate([table, rest], table.schema))
        fields = tables.summable_fields(METRICS[plan.metric])
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
