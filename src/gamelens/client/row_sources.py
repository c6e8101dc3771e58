"""Rows that need no request: the cache, or none at all. `resuming` has a third source, an earlier frame."""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.cache import Asked, Cache, Found
from gamelens.client.planning import Part, Template
from gamelens.client.service import MetricsService
from gamelens.client.spans import Unit
from gamelens.client.tables import stamps_of
from gamelens.wire.intervals import Interval

Gap = dict[str, Any]
"""A part of a query whose request failed: `{"metric", "interval", "scope", "error"}`."""

NOTHING: Final = Found(None, frozenset())
"""No rows."""


class Known(Protocol):
    """A source of rows that needs no request: the cache or an earlier frame."""

    def find(self, part: Part, template: Template, available: Interval) -> Found:
        """Return the rows of *template* over the units of *part* that the source has."""
        ...

    def keep(self, job: Job, table: pa.Table, available: Interval) -> None:
        """Store *table*, which has just been answered to *job*."""
        ...

    @property
    def trouble(self) -> str | None:
        """A warning for the analyst; None when the source works."""
        ...


class Job(msgspec.Struct, frozen=True, eq=False):
    """One request: *template* over the adjacent units *run*."""

    part: Part
    template: Template
    run: tuple[Unit, ...]


class Cached:
    """The cache as a source; it stores every answer. With *reads* false it only stores."""

    def __init__(self, cache: Cache, service: MetricsService, *, fresh_s: float, reads: bool = True) -> None:
        self._cache = cache
        self._service = service
        self._fresh_s = fresh_s
        self._reads = reads

    def find(self, part: Part, template: Template, available: Interval) -> Found:
        """Return the cached rows that are fresh."""
        if not self._reads:
            return NOTHING
        return self._cache.find(
            asked_of(template, self._service.edition), part.asked, available=available, fresh_s=self._fresh_s
        )

    def keep(self, job: Job, table: pa.Table, available: Interval) -> None:
        """Store *table* by bucket, unless the buckets of the service differ from those of *job*."""
        if stamps_of(table) <= {unit.stamp for unit in job.run}:
            self._cache.keep(asked_of(job.template, self._service.edition), job.run, table, available=available)

    @property
    def trouble(self) -> str | None:
        """A warning when the cache cannot store answers."""
        off = self._cache.off
        return f"answers are not kept on disk: {off}" if off is not None else None


class Nowhere:
    """The source of a client without a cache: finds nothing, stores nothing."""

    def find(self, part: Part, template: Template, available: Interval) -> Found:
        """Return no rows."""
        return NOTHING

    def keep(self, job: Job, table: pa.Table, available: Interval) -> None:
        """Store nothing."""

    trouble: None = None


def scope_of(template: Template) -> dict[str, Any] | None:
    """Return the fixed values that tell *template* from the other requests of its part, or None without any."""
    since = template.query.since_days_ago
    return dict(template.fixed) | ({"since_days_ago": since} if since is not None else {}) or None


def asked_of(template: Template, edition: str) -> Asked:
    """Return the cache key of *template* for this *edition* of the data."""
    metric = METRICS.get(template.metric)
    adds_up = metric is not None and (metric.adds == "everywhere" or not template.carried)
    text = f"{template.text} {edition}".rstrip()
    return Asked(template.metric, template.carried, text, adds_up)
