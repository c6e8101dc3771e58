"""The cost of a query, counted before anything is sent: `Client.plan`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from gamelens.client.query.build import build_table
from gamelens.client.query.listings import Listings
from gamelens.client.query.planner import rest_groups, rest_plan
from gamelens.client.query.prepare import Prepared
from gamelens.client.query.progress import expected_s
from gamelens.client.query.requests import Call, Fetched, Leaf, cached_share, leaf_of, leaves_of
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


async def plan_of(prepared: Prepared, listings: Listings, call: Call) -> Plan:
    """Return the cost of *prepared*: requests for rows that are not in the cache, and for lists that are missing."""
    times, spec = prepared.times, prepared.spec
    if spec.where is not None:  # lists for the values in the filter that the answer cannot prove
        for dimension, values in unprovable_values(spec.where, spec.dimensions).items():
            listings.count_list(dimension, values, times.available)
    leaves = await asyncio.to_thread(_all_leaves, prepared, call)
    pieces = tuple(
        PlannedPiece(
            metric=request.plan.metric,
            interval=enclosing_interval(request.slices),
            buckets=len(request.slices),
            scope=request.template.scope,
        )
        for leaf in leaves
        for request in leaf.all_requests
    )
    requests = len(listings.missing) + len(pieces)
    return Plan(
        requests=requests,
        seconds=round(expected_s(requests), 1),
        cached_share=cached_share(leaves),
        pieces=pieces,
        clipped=times.covered if times.covered != times.requested else None,
        guessed=listings.guessed,
    )


def _all_leaves(prepared: Prepared, call: Call) -> list[Leaf]:
    """Return the leaves of *prepared*, and those for the rest beyond `top`.

    The rest is exact if the cache has all largest rows, else it is the rest of a table without rows.
    """
    known, unknown = [*prepared.leaves], list[Leaf]()
    with_rest = [
        (plan, subquery.values) for subquery in prepared.subqueries for plan in subquery.plans if plan.rest is not None
    ]
    for plan, values in with_rest:
        groups = rest_groups(plan, values)
        leaves = [leaf for leaf in known if any(leaf.plan is leaf_plan for leaf_plan in plan.leaf_plans)]
        if call.cache is None or any(leaf.all_requests for leaf in leaves):
            empty = schema(plan.metric, plan.dimensions, prepared.spec.catalog).empty_table()
            rest = rest_plan(plan, groups, empty, values)
            unknown += [leaf_of(leaf_plan) for leaf_plan in rest.leaf_plans]
        else:
            cached = Fetched(leaves=leaves_of([plan], prepared.times.available, call))
            shown, _ = build_table(plan, prepared, cached)
            rest = rest_plan(plan, groups, shown, values)
            known += leaves_of([rest], prepared.times.available, call, with_rows=False)
    return [*known, *unknown]
