"""The requests of a query as values: what runs it, what the cache has, what is sent, and what came of it.

`Call` is how one query is run. A plan with requests is a leaf plan: `leaves_of` finds the rows that the cache has for
it and groups the others into requests. `Fetched` is the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Final

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.answer_cache import AnswerCache, CachedRows, CacheKey
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.limits.deadline import Deadline
from gamelens.client.query.arguments import ExecutionOptions
from gamelens.client.query.planner import MetricPlan, RequestTemplate, RestGroup
from gamelens.client.query.progress import Progress
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.time_ranges import BucketSlice, enclosing_interval
from gamelens.errors import GamelensError
from gamelens.receipts import Gap
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery

NO_ROWS: Final = CachedRows(None, frozenset())


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What one query is run with.

    Attributes:
        service: answers the requests.
        cache: has rows that need no request, and stores the answers; None for a client without a cache.
        reads_cache: whether rows are taken from the cache, which stores answers in any case.
        fresh_s: how long cached buckets that may still change count as fresh.
        max_days: most days of one request; None for the limit of the service.
        options: how the query is executed.
        progress: counts the requests, for the bar.
        deadline: ends the query.
        started_at: when it was asked.
    """

    service: MetricsApi
    cache: AnswerCache | None
    reads_cache: bool
    fresh_s: float
    max_days: int | None
    options: ExecutionOptions
    progress: Progress
    deadline: Deadline
    started_at: datetime


class Request(msgspec.Struct, frozen=True, eq=False):
    """One request: *template* over *slices*, adjacent bucket slices of *plan*. It equals only itself."""

    plan: MetricPlan
    template: RequestTemplate
    slices: tuple[BucketSlice, ...]

    @property
    def query(self) -> MetricQuery:
        """Its body."""
        return self.template.over(enclosing_interval(self.slices))

    def gap(self, error: GamelensError) -> Gap:
        """Return the gap that it leaves without an answer, for *error*.

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
        return Gap(metric=template.metric, interval=str(interval), scope=template.scope, error=str(error))


class Leaf(msgspec.Struct, frozen=True, eq=False):
    """A plan with requests, and what is in the cache already. It equals only itself.

    Attributes:
        plan: the plan of a metric of the service, not of an alias.
        cached: for each template the rows that the cache has.
        requests: for each template the requests for the others.
    """

    plan: MetricPlan
    cached: tuple[CachedRows, ...]
    requests: tuple[tuple[Request, ...], ...]

    @property
    def all_requests(self) -> list[Request]:
        """Its requests, of all templates."""
        return [request for requests in self.requests for request in requests]


class RestRows(msgspec.Struct, frozen=True, kw_only=True):
    """The largest rows of a plan, on which the requests for its rest beyond `top` depended.

    Attributes:
        owner: the plan.
        plan: the plan of its rest.
        largest: the rows of *owner*, put together.
        is_truncated: whether `top` left rows out, or may have.
        warnings: what is to be said of the rows.
    """

    owner: MetricPlan
    plan: MetricPlan
    largest: pa.Table
    is_truncated: bool
    warnings: tuple[str, ...]


class Fetched(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What came of the requests of a query.

    Attributes:
        leaves: all leaves, those for the rest beyond `top` last.
        tables: the rows of each request that was answered.
        failures: why each other request has no rows, in the order of time: the first is the cause.
        stopped: the requests that were not sent, or not waited for, because another one failed.
        unsent: the requests that were not made, because they depend on rows that failed.
        rests: each plan with a rest beyond `top`, with its largest rows and the plan of the rest.
        warnings: what was said beside the rows.
    """

    leaves: tuple[Leaf, ...] = ()
    tables: Mapping[Request, pa.Table] = {}
    failures: Mapping[Request, GamelensError] = {}
    stopped: frozenset[Request] = frozenset()
    unsent: tuple[Request, ...] = ()
    rests: tuple[RestRows, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def missing(self) -> tuple[Request, ...]:
        """The requests that have no rows: they failed, or were not made."""
        sent = [request for leaf in self.leaves for request in leaf.all_requests]
        return (*(request for request in sent if request not in self.tables), *self.unsent)

    def rest_of(self, plan: MetricPlan) -> RestRows | None:
        """Return the largest rows of *plan* if it has a rest beyond `top`, else None."""
        return next((rest for rest in self.rests if rest.owner is plan), None)

    @property
    def has_rows(self) -> bool:
        """Whether any request was answered, or rows needed none."""
        return bool(self.tables) or any(rows.slices for leaf in self.leaves for rows in leaf.cached)

    @property
    def first_failure(self) -> GamelensError | None:
        """The failure that came first."""
        return next(iter(self.failures.values()), None)

    def answers(self, plan: MetricPlan) -> list[list[pa.Table]]:
        """Return the tables of each template of *plan*, in their order.

        Where the rows of a bucket are summed over several requests and one of them failed, the bucket is left out.
        """
        leaf = next((leaf for leaf in self.leaves if leaf.plan is plan), None)
        answers = []
        for rows, requests in zip(leaf.cached, leaf.requests, strict=True) if leaf is not None else ():
            found = [self.tables[request] for request in requests if request in self.tables]
            found += [rows.table] if rows.table is not None else []
            missing = [slice_ for request in requests if request not in self.tables for slice_ in request.slices]
            if missing and plan.adds_up:
                starts = [slice_.bucket_start for slice_ in missing]
                # A part of the only number there is would be a wrong number.
                found = [] if plan.every == "all" else [tables.drop_buckets(table, starts) for table in found]
            answers.append(found)
        return answers

    def missing_buckets(self, plan: MetricPlan) -> set[datetime]:
        """Return the starts of the buckets of *plan* whose rows or total are missing."""
        needed = [leaf_plan for owner in (plan, plan.total) if owner is not None for leaf_plan in owner.leaf_plans]
        return {
            plan.start_of(slice_.bucket_start)
            for request in self.missing
            for slice_ in request.slices
            if any(request.plan is leaf_plan for leaf_plan in needed)
        }

    def lacks(self, plan: MetricPlan, group: RestGroup) -> bool:
        """Return whether a request of *plan* for the rows of *group* failed."""
        return any(
            request.plan is leaf_plan and set(request.template.fixed) <= set(group)
            for request in self.missing
            for leaf_plan in plan.leaf_plans
        )

    def missing_days(self, age: int | None, plans: Sequence[MetricPlan]) -> list[Interval]:
        """Return the intervals whose requests of *plans* for *age* failed; None stands for the installs."""
        leaf_plans = [leaf_plan for plan in plans for leaf_plan in plan.leaf_plans]
        return [
            enclosing_interval(request.slices)
            for request in self.missing
            if request.template.query.since_days_ago == age
            and any(request.plan is leaf_plan for leaf_plan in leaf_plans)
        ]


def leaves_of(
    plans: Sequence[MetricPlan], available: Interval, call: Call, *, with_rows: bool = True
) -> tuple[Leaf, ...]:
    """Return a leaf for each plan that has requests: *plans* or their members, and their totals.

    A plan that several share is one leaf. Without *with_rows* the cache only says which slices it has.
    """
    plans = [plan for plan in plans if any(leaf_plan.templates for leaf_plan in plan.leaf_plans)]
    totals = [plan.total for plan in plans if plan.total is not None]
    leaves: list[Leaf] = []
    for leaf_plan in [leaf_plan for plan in (*plans, *totals) for leaf_plan in plan.leaf_plans]:
        if not any(leaf.plan is leaf_plan for leaf in leaves):
            cached = [
                _cached_rows(leaf_plan, template, available, call, with_rows=with_rows)
                for template in leaf_plan.templates
            ]
            leaves.append(leaf_of(leaf_plan, cached))
    return tuple(leaves)


def leaf_of(plan: MetricPlan, cached: Sequence[CachedRows] | None = None) -> Leaf:
    """Return the leaf of *plan*. The cache has its rows *cached*, or none."""
    cached = tuple(cached) if cached is not None else (NO_ROWS,) * len(plan.templates)
    requests = [
        tuple(
            Request(plan, template, slices)
            for slices in plan.grouped([slice_ for slice_ in plan.slices if slice_ not in rows.slices])
        )
        for template, rows in zip(plan.templates, cached, strict=True)
    ]
    return Leaf(plan, cached, tuple(requests))


def cached_share(leaves: Sequence[Leaf]) -> float:
    """Return the share of the bucket slices of *leaves* that need no request."""
    slices = sum(len(leaf.plan.slices) * len(leaf.cached) for leaf in leaves)
    return sum(len(rows.slices) for leaf in leaves for rows in leaf.cached) / slices if slices else 0.0


def cache_key(template: RequestTemplate, edition: str) -> CacheKey:
    """Return the cache key of *template* for this *edition* of the data."""
    metric = METRICS.get(template.metric)
    adds_up = metric is not None and (metric.adds == "everywhere" or not template.carried)
    text = f"{template.text} {edition}".rstrip()
    return CacheKey(template.metric, template.carried, text, adds_up)


def _cached_rows(
    plan: MetricPlan, template: RequestTemplate, available: Interval, call: Call, *, with_rows: bool
) -> CachedRows:
    """Return the fresh rows of *template* in the cache; without *with_rows* only the slices that it has."""
    if call.cache is None or not call.reads_cache:
        return NO_ROWS
    key, fresh_s = cache_key(template, call.service.edition), call.fresh_s
    if with_rows:
        return call.cache.find(key, plan.slices, available=available, fresh_s=fresh_s)
    return CachedRows(None, call.cache.fresh_slices(key, plan.slices, available=available, fresh_s=fresh_s))
