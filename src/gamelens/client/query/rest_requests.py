"""Requests for all values but the largest ones, for the rows `(other)` of metrics that do not add up.

A player with events in two countries counts in both, so what `top` leaves out is not the total less the rows shown. It
is the answer to one more request, for the events with none of the values shown (Wire 2.7, Filters).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS
from gamelens.client.query.planner import FanOutValues, FixedValue, MetricPlan, RequestTemplate
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID
from gamelens.client.tables.table_schema import OTHER
from gamelens.wire.filters import Filter, Match, Not
from gamelens.wire.queries import Timeseries


def rest_plan(plan: MetricPlan, shown: pa.Table, values: FanOutValues) -> MetricPlan:
    """Return the requests for what *plan* leaves out: one, or one for each game or studio.

    Args:
        plan: a plan with a dimension in `rest`.
        shown: its largest rows.
        values: the games, studios and values of the dimension.
    """
    return msgspec.structs.replace(
        plan, templates=tuple(_templates(plan, shown, values)), limit=None, top=None, within=(), rest=None
    )


def _templates(plan: MetricPlan, shown: pa.Table, values: FanOutValues) -> Iterator[RequestTemplate]:
    dimension = plan.rest or ""
    listed = values.games if dimension == GAME_ID else values.values[dimension]
    if plan.top is None or len(listed) < plan.top:  # all of them are shown, null included
        return
    rows = shown.to_pylist()
    for group in _groups(plan, values):
        base = next((template for template in plan.templates if set(template.fixed) <= set(group)), None)
        if base is None:
            continue
        largest = [row[dimension] for row in rows if all(row[name] == value for name, value in group)]
        beyond = _beyond(dimension, largest, listed)
        where = base.query.filter if beyond is None else beyond
        if beyond is not None and base.query.filter is not None:
            where = base.query.filter & beyond
        query = msgspec.structs.replace(base.query, query=Timeseries(), split_by=None, filter=where)
        for name, value in group:
            if name == GAME_ID and value is not None:
                is_plain = METRICS[plan.metric].kinds == "plain"
                narrowed = {"games": (value,)} if is_plain else {"game": value}
                query = msgspec.structs.replace(query, **narrowed)
        yield RequestTemplate(metric=plan.metric, query=query, carried=(), fixed=(*group, (dimension, OTHER)))


def _groups(plan: MetricPlan, values: FanOutValues) -> list[tuple[FixedValue, ...]]:
    """Return the games or studios within which rows are ranked, or one empty group."""
    if GAME_ID in plan.within:
        return [((GAME_ID, game),) for game in values.games]
    return [((STUDIO_ID, studio),) for studio in values.studios] if STUDIO_ID in plan.within else [()]


def _beyond(dimension: str, largest: list[str | None], listed: tuple[str, ...]) -> Filter | None:
    """Return the filter of events with none of the *largest* values, None for all events.

    No filter matches null, so where null is among them the filter lists the other values.
    """
    if None in largest:
        return Match(dimension, tuple(value for value in listed if value not in largest))
    named = tuple(value for value in largest if value is not None)
    return Not(Match(dimension, named)) if named else None
