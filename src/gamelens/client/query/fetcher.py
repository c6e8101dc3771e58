"""What is known already and what has to be asked: the answers to all requests of a question, and the gaps.

All requests of a question go to the budget together. One that fails stops the others, unless gaps are wanted; what came
until then is not lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from gamelens.client.cache.answer_cache import CachedRows
from gamelens.client.connection.deadline import Deadline
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.transport import RequestStats
from gamelens.client.query.planner import MetricPlan
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_spec import OnError
from gamelens.client.query.row_sources import FetchJob, RowSource, template_scope
from gamelens.client.tables.answer_decoding import read_answer
from gamelens.client.tables.table_operations import drop_buckets, sort_by_time
from gamelens.client.tables.time_ranges import enclosing_interval
from gamelens.errors import GamelensError, RateLimited, Retryable, Unreachable
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery
from gamelens.wire.receipts import Gap


class Fetcher:
    """Fetches the parts of one question.

    Args:
        service: who is asked.
        known: what needs no asking.
        tally, progress: count what it costs and how far it is.
        on_error: whether a request that fails stops the others ("raise") or leaves a gap.
        deadline: how much time there is.
    """

    def __init__(
        self,
        service: MetricsApi,
        *,
        known: RowSource,
        tally: RequestStats,
        progress: Progress,
        on_error: OnError,
        deadline: Deadline,
    ) -> None:
        self._service = service
        self._known = known
        self._tally = tally
        self._progress = progress
        self._on_error = on_error
        self._deadline = deadline
        self._answers: dict[FetchJob, pa.Table] = {}
        self._failures: dict[FetchJob, GamelensError] = {}
        self._units = 0
        self._known_units = 0
        self.missing: list[FetchJob] = []
        self.gaps: list[Gap] = []
        self.failure: GamelensError | None = None

    @property
    def trouble(self) -> str | None:
        """What the analyst should hear about what is known."""
        return self._known.trouble

    @property
    def cached_share(self) -> float:
        """The share of the buckets that needed no asking."""
        return self._known_units / self._units if self._units else 0.0

    def lost_stamps(self, part: MetricPlan) -> set[datetime]:
        """The buckets of which rows of *part* or its total did not come."""
        lost = [job for job in self.missing if job.part is part or job.part is part.total]
        return {unit.stamp for job in lost for unit in job.run}

    async def fetch(self, parts: Sequence[MetricPlan], available: Interval) -> list[list[list[pa.Table]]]:
        """For each of *parts*, for each of its templates, the tables that came; what did not come is in `gaps`.

        Raises:
            GamelensError: asking again would not help, or nothing came at all.
        """
        found = await asyncio.to_thread(self._find, parts, available)
        jobs = list(self._jobs(parts, found))
        self._progress.expect(len(jobs))
        await self._ask(jobs, available)
        if self.failure is not None and not self._answers and not self._known_units:
            raise self.failure
        jobs_of: dict[int, list[FetchJob]] = {}
        for job in jobs:
            jobs_of.setdefault(id(job.template), []).append(job)
        return [
            [
                self._came(part, known, jobs_of.get(id(template), ()))
                for template, known in zip(part.templates, knowns, strict=True)
            ]
            for part, knowns in zip(parts, found, strict=True)
        ]

    def _find(self, parts: Sequence[MetricPlan], available: Interval) -> list[list[CachedRows]]:
        return [[self._known.find(part, template, available) for template in part.templates] for part in parts]

    def _jobs(self, parts: Sequence[MetricPlan], found: Sequence[Sequence[CachedRows]]) -> Iterator[FetchJob]:
        for part, knowns in zip(parts, found, strict=True):
            for template, known in zip(part.templates, knowns, strict=True):
                self._units += len(part.asked)
                self._known_units += len(known.units)
                missing = [unit for unit in part.asked if unit not in known.units]
                yield from (FetchJob(part, template, run) for run in part.pieces(missing))

    async def _ask(self, jobs: Sequence[FetchJob], available: Interval) -> None:
        """Ask for all *jobs* until the deadline, or until one fails in a way that stops the others."""
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
            body = await self._service.ask(job.template.metric, query, self._tally)
            # In a thread: a large answer takes long enough to hold up everybody else's requests.
            self._answers[job] = await asyncio.to_thread(self._read, job, query, body, available)
        except Retryable as error:
            if self._on_error == "raise" or isinstance(error, RateLimited):  # all others would be refused as well
                raise
            self._failures[job] = error
        self._progress.done += 1

    def _read(self, job: FetchJob, query: MetricQuery, body: bytes, available: Interval) -> pa.Table:
        table = sort_by_time(read_answer(job.template.metric, query, job.template.carried, body))
        self._known.keep(job, table, available)
        return table

    def _came(self, part: MetricPlan, known: CachedRows, jobs: Sequence[FetchJob]) -> list[pa.Table]:
        """What is there of one template, whose requests are *jobs*."""
        tables = [self._answers[job] for job in jobs if job in self._answers]
        tables += [known.table] if known.table is not None else []
        lost = [unit for job in jobs if job not in self._answers for unit in job.run]
        if not lost or not part.adds_up:
            return tables
        if part.every == "all":  # a part of the only number there is would be a wrong number
            return []
        return [drop_buckets(table, [unit.stamp for unit in lost]) for table in tables]


def _gap(job: FetchJob, error: GamelensError) -> Gap:
    part, interval = job.part, enclosing_interval(job.run)
    if part.adds_up:  # what shares a bucket with it is of no use alone
        stamps = {unit.stamp for unit in job.run}
        shared = [unit for unit in part.asked if part.every == "all" or unit.stamp in stamps]
        interval = enclosing_interval(shared)
    return Gap(
        metric=job.template.metric,
        interval=str(interval),
        scope=template_scope(job.template),
        error=str(error),
    )
