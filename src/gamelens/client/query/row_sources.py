"""Sources of rows that need no request: the cache, memory, or none.

`refresh` has another, an earlier frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.answer_cache import AnswerCache, CachedRows, CacheKey
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.plans.metric_plan import MetricPlan, RequestTemplate
from gamelens.client.tables.table_operations import bucket_starts, concatenate
from gamelens.client.tables.table_schema import schema
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.wire.intervals import Interval

NO_ROWS: Final = CachedRows(None, frozenset())
"""The result of a source that has nothing."""


class RowSource(Protocol):
    """A source of rows that needs no request: the cache or an earlier frame."""

    def find(self, plan: MetricPlan, template: RequestTemplate, available: Interval) -> CachedRows:
        """Return the rows of *template* over the bucket slices of *plan* that the source has."""
        ...

    def store(self, job: FetchJob, table: pa.Table, available: Interval) -> None:
        """Store *table*, the answer to *job*."""
        ...

    @property
    def warning(self) -> str | None:
        """A warning for the analyst, or None when the source works."""
        ...


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


class CacheSource:
    """The cache as a source, which also stores every answer.

    With *reads* false it only stores.
    """

    def __init__(self, cache: AnswerCache, service: MetricsApi, *, fresh_s: float, reads: bool = True) -> None:
        self._cache = cache
        self._service = service
        self._fresh_s = fresh_s
        self._reads = reads

    def find(self, plan: MetricPlan, template: RequestTemplate, available: Interval) -> CachedRows:
        """Return the cached rows that are fresh."""
        if not self._reads:
            return NO_ROWS
        key = cache_key(template, self._service.edition)
        return self._cache.find(key, plan.slices, available=available, fresh_s=self._fresh_s)

    def store(self, job: FetchJob, table: pa.Table, available: Interval) -> None:
        """Store *table* by bucket, unless the buckets of the service differ from those of *job*."""
        if bucket_starts(table) <= {slice_.bucket_start for slice_ in job.run}:
            self._cache.keep(cache_key(job.template, self._service.edition), job.run, table, available=available)

    @property
    def warning(self) -> str | None:
        """A warning when the cache cannot store answers."""
        off = self._cache.off
        return f"answers are not kept on disk: {off}" if off is not None else None


class NoSource:
    """The source of a client without a cache: finds nothing, stores nothing."""

    def find(self, plan: MetricPlan, template: RequestTemplate, available: Interval) -> CachedRows:
        """Return no rows."""
        return NO_ROWS

    def store(self, job: FetchJob, table: pa.Table, available: Interval) -> None:
        """Store nothing."""

    warning: None = None


class MemorySource:
    """The answers of one query, kept in memory, so that `resume` requests nothing twice.

    What it does not have is looked up in *fallback*, which also stores the answers.

    Args:
        fallback: another source.
        answers: requests that were answered before, each with its rows.
    """

    def __init__(self, fallback: RowSource, answers: Sequence[tuple[FetchJob, pa.Table]] = ()) -> None:
        self.answers = list(answers)
        self._fallback = fallback

    def find(self, plan: MetricPlan, template: RequestTemplate, available: Interval) -> CachedRows:
        """Return the rows of *template* in memory, and the others that the fallback has."""
        known = set(plan.slices)
        answers = [
            (job.run, table)
            for job, table in self.answers
            if (job.template.metric, job.template.text) == (template.metric, template.text)
            and known.issuperset(job.run)
        ]
        if not answers:
            return self._fallback.find(plan, template, available)
        table = concatenate([table for _, table in answers], schema(template.metric, template.carried))
        slices = frozenset(slice_ for run, _ in answers for slice_ in run)
        return add_fallback_rows(CachedRows(table, slices), self._fallback, plan, template, available)

    def store(self, job: FetchJob, table: pa.Table, available: Interval) -> None:
        """Store *table* in memory and in the fallback."""
        self.answers.append((job, table))
        self._fallback.store(job, table, available)

    @property
    def warning(self) -> str | None:
        """The warning of the fallback."""
        return self._fallback.warning


def add_fallback_rows(
    rows: CachedRows, fallback: RowSource, plan: MetricPlan, template: RequestTemplate, available: Interval
) -> CachedRows:
    """Return *rows* and those that *fallback* has of the other bucket slices of *plan*."""
    missing = tuple(slice_ for slice_ in plan.slices if slice_ not in rows.slices)
    rest = fallback.find(msgspec.structs.replace(plan, slices=missing), template, available) if missing else NO_ROWS
    if rows.table is None or rest.table is None:
        return rows
    columns = schema(template.metric, template.carried)
    return CachedRows(concatenate([rows.table, rest.table], columns), rows.slices | rest.slices)


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
