"""Sources of rows that need no request: the cache, or none.

`refresh` has a third, an earlier frame.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.cache.answer_cache import AnswerCache, CachedRows, CacheKey
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.query.query_spec import MetricPlan, RequestTemplate
from gamelens.client.tables.table_operations import bucket_starts
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
