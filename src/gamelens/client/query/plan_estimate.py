"""The cost of a query, counted before anything is sent: `Client.plan`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from gamelens.client.connection.metrics_api import DryApi
from gamelens.client.query.arguments import QuerySpec
from gamelens.client.query.planner import rest_groups, rest_plan
from gamelens.client.query.progress import expected_s
from gamelens.client.query.query_run import NO_ROWS, QueryRun, Source, cached_share
from gamelens.client.tables.filter_values import unprovable_values
from gamelens.client.tables.table_operations import schema
from gamelens.client.tables.time_ranges import enclosing_interval
from gamelens.errors import suggests_names
from gamelens.wire.intervals import Interval

_SHOWN: Final = 20


@suggests_names
class PlannedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a plan.

    Attributes:
        metric: the metric it is for.
        interval: its interval.
        buckets: how many bucket slices the interval has.
        scope: the values that a fan-out narrows it to; None without a fan-out.
    """

    metric: str
    interval: Interval
    buckets: int
    scope: dict[str, str | None] | None


@suggests_names
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a query. Printed, it is a small table.

    Attributes:
        requests: all requests, lists included.
        seconds: how long they take at the guaranteed pace.
        cached_share: the share of the buckets that needs no request.
        pieces: the requests for metrics.
        clipped: the covered interval where it is less than the requested one; else None.
        guessed: dimensions whose number of values is not known yet, so that *requests* is the least that it may be.
    """

    requests: int
    seconds: float
    cached_share: float
    pieces: tuple[PlannedPiece, ...]
    clipped: Interval | None = None
    guessed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        if not self.requests:
            why = "everything is in the cache" if self.cached_share else "no studio, game or value matches the query"
            yield f"No request is needed: {why}."
        else:
            least, about = ("at least ", "at least") if self.guessed else ("", "about")
            number = f"{least}{self.requests} request" + ("s" if self.requests > 1 else "")
            yield f"{number}, {about} {self.seconds:.1f} s; {self.cached_share:.0%} of the buckets are in the cache"
        if self.clipped is not None:
            yield f"cut to what is available: {self.clipped}"
        if self.guessed:
            names = ", ".join(self.guessed)
            yield f"how many more depends on the number of values of {names}, which is not known before the query"
        if self.pieces:
            width = max(len(piece.metric) for piece in self.pieces)
            for piece in self.pieces[:_SHOWN]:
                scope = ", ".join(f"{name} = {value}" for name, value in (piece.scope or {}).items())
                yield f"  {piece.metric:<{width}}  {piece.interval}  {piece.buckets:>3} buckets  {scope}".rstrip()
            if len(self.pieces) > _SHOWN:
                yield f"  … and {len(self.pieces) - _SHOWN} more"


async def plan_cost(run: QueryRun, api: DryApi, spec: QuerySpec) -> Plan:
    """Return the cost of *spec*, whose *run* is prepared with *api*: what is neither remembered nor in the cache.

    Raises:
        NotYetAvailable, BadQuery, NotAdditive: as in `QueryRun.execute`.
    """
    plans = [plan for part in await run.prepare(spec) for plan in part.all_plans]
    run.find_cached(plans, with_rows=False)
    unknown = []
    for plan in (plan for plan in plans if plan.rest is not None):
        groups = rest_groups(plan, run.values)
        own = [source for source in run.sources if any(source.plan is part for part in plan.leaf_plans)]
        if run.cache is None or any(source.all_requests for source in own):  # the largest values are not known yet
            rest = rest_plan(plan, groups, schema(plan.metric, plan.dimensions).empty_table(), run.values)
            unknown += [Source(source, [NO_ROWS] * len(source.templates)) for source in rest.leaf_plans]
        else:
            for source in own:
                source.cached = [run.cached_rows(source.plan, template) for template in source.plan.templates]
            run.find_cached([rest_plan(plan, groups, run.builder().build(plan), run.values)], with_rows=False)
    if spec.where is not None:  # lists for the values in the filter that the answer cannot prove
        for dimension, values in unprovable_values(spec.where, spec.dimensions).items():
            api.count_list(dimension, values, run.times.available)
    sources, times = [*run.sources, *unknown], run.times
    pieces = tuple(
        PlannedPiece(
            metric=request.plan.metric,
            interval=enclosing_interval(request.slices),
            buckets=len(request.slices),
            scope=request.template.scope,
        )
        for source in sources
        for request in source.all_requests
    )
    requests = len(api.lists) + len(pieces)
    return Plan(
        requests=requests,
        seconds=round(expected_s(requests), 1),
        cached_share=cached_share(sources),
        pieces=pieces,
        clipped=times.covered if times.covered != times.requested else None,
        guessed=tuple(run.guessed | api.guessed),
    )
