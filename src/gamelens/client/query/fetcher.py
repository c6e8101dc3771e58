"""Answers of metric plans: rows of the cache, then requests, then gaps.

All requests of a query go to the rate limiter together. A request that fails leaves a gap and stops only those that
would fail as well: all of them where the key is refused or the rate limit is used up, those of the same shape where the
service refuses the query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.answer_cache import AnswerCache, CachedRows, CacheKey
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.limits.deadline import Deadline
from gamelens.client.plans.metric_plan import MetricPlan, RequestTemplate
from gamelens.client.plans.rest_requests import RestGroup
from gamelens.client.plans.table_builder import TemplateRows
from gamelens.client.query.progress import Progress
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.client.tables.time_ranges import BucketSlice, enclosing_interval
from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    RateLimited,
    Retryable,
    Unreachable,
)
from gamelens.receipts import Gap
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery

_COMMON: Final = (AuthError, BadQuery, RateLimited)
"""Failures that other requests would meet as well."""
_FANNED_FIELDS: Final = {"filter", "game", "games", "studios"}
_NO_ROWS: Final = CachedRows(None, frozenset())


class FetchJob(msgspec.Struct, frozen=True, eq=False):
    """One request.

    Attributes:
        plan: the metric plan it belongs to.
        template: its content.
        run: adjacent bucket slices that it covers.
    """

    plan: MetricPlan
    template: RequestTemplate
    run: tuple[BucketSlice, ...]


class Fetcher:
    """The requests of one query, with what they return and what fails.

    Args:
        service: answers the requests.
        cache: has rows that need no request, and stores the answers; None for a client without a cache.
        fresh_s: how long cached buckets that may still change count as fresh.
        reads_cache: whether rows are taken from the cache, which stores answers in any case.
        progress: counts the requests, for the bar and the receipt.
        deadline: the time limit.

    Attributes:
        studio_of_game: studio ids by game id, as far as they are known: answers are compared with them.
        missing: requests without an answer.
        gaps: the same, as the receipt records them.
        failure: the error of the first request that failed; None without gaps.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        cache: AnswerCache | None,
        fresh_s: float,
        reads_cache: bool,
        progress: Progress,
        deadline: Deadline,
    ) -> None:
        self._service = service
        self._cache = cache
        self._fresh_s = fresh_s
        self._reads_cache = reads_cache
        self._tally = progress.tally
        self._progress = progress
        self._deadline = deadline
        self._answers: dict[FetchJob, pa.Table] = {}
        self._tasks: dict[FetchJob, asyncio.Task[None]] = {}
        self._failures: dict[FetchJob, GamelensError] = {}
        self._stopped: set[FetchJob] = set()
        self._slices = 0
        self.studio_of_game: Mapping[str, str | None] = {}
        self._cached_slices = 0
        self.missing: list[FetchJob] = []
        self.gaps: list[Gap] = []
        self.failure: GamelensError | None = None

    @property
    def cache_warning(self) -> str | None:
        """A warning when the cache cannot store answers."""
        off = self._cache.off if self._cache is not None else None
        return f"answers are not kept on disk: {off}" if off is not None else None

    @property
    def cached_share(self) -> float:
        """The share of the bucket slices that needed no request."""
        return self._cached_slices / self._slices if self._slices else 0.0

    @property
    def has_rows(self) -> bool:
        """Whether any request was answered, or rows needed none."""
        return bool(self._answers) or self._cached_slices > 0

    def missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets of *plan* whose rows or total are missing."""
        sources = [source for owner in (plan, plan.total) if owner is not None for source in owner.sources]
        return {
            slice_.bucket_start if job.plan.every == plan.every else plan.start_of(slice_.bucket_start)
            for job in self.missing
            for slice_ in job.run
            if any(job.plan is source for source in sources)
        }

    def is_missing(self, plan: MetricPlan, group: RestGroup) -> bool:
        """Return whether a request of *plan* for the rows of *group* failed."""
        return any(
            job.plan is source and set(job.template.fixed) <= set(group)
            for job in self.missing
            for source in plan.sources
        )

    def leave_gaps(self, plan: MetricPlan, error: GamelensError) -> None:
        """Record the requests of *plan* as gaps without sending them, because of *error*."""
        for source in plan.sources:
            runs = source.runs(source.slices)
            jobs = [FetchJob(source, template, run) for template in source.templates for run in runs]
            self.missing += jobs
            self.gaps += [_gap(job, error) for job in jobs]

    async def fetch(self, plans: Sequence[MetricPlan], available: Interval) -> list[TemplateRows]:
        """Return the rows of each of *plans*, leaving requests that failed in `gaps`.

        Raises:
            GamelensError: nothing came for one reason: the only request failed, or one failure stopped all others.
        """
        cached = await asyncio.to_thread(self._read_cache, plans, available)
        jobs = list(self._jobs(plans, cached))
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
            for plan, template_rows in zip(plans, cached, strict=True)
        ]

    def _read_cache(self, plans: Sequence[MetricPlan], available: Interval) -> list[list[CachedRows]]:
        """Return the fresh rows of each template of *plans*."""
        if self._cache is None or not self._reads_cache:
            return [[_NO_ROWS] * len(plan.templates) for plan in plans]
        edition = self._service.edition
        return [
            [
                self._cache.find(cache_key(template, edition), plan.slices, available=available, fresh_s=self._fresh_s)
                for template in plan.templates
            ]
            for plan in plans
        ]

    def _jobs(self, plans: Sequence[MetricPlan], cached: Sequence[Sequence[CachedRows]]) -> Iterator[FetchJob]:
        """Yield a request for each run of slices that the cache does not have."""
        for plan, template_rows in zip(plans, cached, strict=True):
            for template, rows in zip(plan.templates, template_rows, strict=True):
                self._slices += len(plan.slices)
                self._cached_slices += len(rows.slices)
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
        table = tables.sort_by_time(
            read_answer(job.template.metric, query, job.template.carried, body, self.studio_of_game)
        )
        # A service whose buckets begin elsewhere is not cached: its rows belong to no slice of ours.
        if self._cache is not None and tables.bucket_starts(table) <= {slice_.bucket_start for slice_ in job.run}:
            key = cache_key(job.template, self._service.edition)
            self._cache.keep(key, job.run, table, available=available)
        return table

    def _template_rows(self, plan: MetricPlan, rows: CachedRows, jobs: Sequence[FetchJob]) -> list[pa.Table]:
        """Return the tables of one template: the answers to *jobs*, and *rows* of the cache.

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


def template_scope(template: RequestTemplate) -> dict[str, Any] | None:
    """Return the values that distinguish *template* from others of its plan, or None."""
    since = template.query.since_days_ago
    return dict(template.fixed) | ({"since_days_ago": since} if since is not None else {}) or None


def cache_key(template: RequestTemplate, edition: str) -> CacheKey:
    """Return the cache key of *template* for this *edition* of the data."""
    metric = METRICS.get(template.metric)
    adds_up = metric is not None and (metric.adds == "everywhere" or not template.carried)
    text = f"{template.text} {edition}".rstrip()
    return CacheKey(template.metric, template.carried, text, adds_up)
