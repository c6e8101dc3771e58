"""Requests for the rows `(other)` of numbers that do not add up to a total.

A player with events in two countries counts in both, so the players of all other countries are not the total less the
rows shown. They are the answer to one more request, for the events with none of the values shown (Wire 2.7, Filters).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS, Metric
from gamelens.client.plans.metric_plan import FanOutValues, FixedValue, MetricPlan, RequestTemplate
from gamelens.client.plans.query_spec import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.tables.table_schema import OTHER
from gamelens.wire.filters import Filter, Match, Not, flat_filter
from gamelens.wire.queries import Timeseries

RestGroup = tuple[FixedValue, ...]
"""The game or studio within which values are ranked, or nothing."""

_IDS = frozenset({GAME_ID, STUDIO_ID})


def has_total(metric: Metric | None, dimensions: Collection[str]) -> bool:
    """Return whether rows that differ in *dimensions* add up to the answer without them."""
    if metric is None or metric.kinds != "plain" or any(field.combines is None for field in metric.fields):
        return False
    return metric.adds == "everywhere" or _IDS.issuperset(dimensions)


def rest_dimension(metric: Metric | None, spec: QuerySpec) -> str | None:
    """Return the dimension whose values beyond *top* one more request answers, or None.

    It is the only one that is ranked, and the request is narrowed to one game or studio at most.
    """
    if not spec.other or metric is None or metric.kinds == "retention" or has_total(metric, spec.ranked):
        return None
    if len(spec.ranked) > 1 or spec.ranked[0] == STUDIO_ID or not _IDS.issuperset(spec.within):
        return None
    return spec.ranked[0] if metric.kinds == "plain" or spec.ranked[0] != GAME_ID else None


def rest_lists(metric: Metric | None, spec: QuerySpec) -> tuple[str, ...]:
    """Return the dimensions whose values must be listed to plan the requests for the rest."""
    dimension = rest_dimension(metric, spec)
    group = next(((name,) for name in (GAME_ID, STUDIO_ID) if name in spec.within), ())  # a game has one studio
    return () if dimension is None else (*group, dimension)


def rest_refusal(spec: QuerySpec, dimension: str | None) -> str:
    """Return the queries that can be sent in place of *spec*.

    Its rows do not add up to a total. *dimension* is the one whose rest one request answers for one bucket.
    """
    plain = f'query("{spec.metrics[0]}", by={list(spec.by)}) without {"other" if spec.other else "check"}=True'
    others = [name for name in spec.dimensions if name not in _IDS]
    if spec.check or len(others) != 1:
        return plain
    if dimension is not None:
        return f'{plain}, or every="all": the rest of one bucket takes one more request'
    within = f'top={{"{others[0]}": {spec.top}}}'
    return f'{plain}, or every="all" and {within}: the rest of each game or studio takes one more request'


def rest_groups(plan: MetricPlan, values: FanOutValues) -> list[RestGroup]:
    """Return the groups whose rest takes a request each.

    There are none if `top` is more than all values there are: then nothing is left out, null included.
    """
    listed = values.games if plan.rest == GAME_ID else values.values[plan.rest or ""]
    if plan.top is None or len(listed) < plan.top:
        return []
    if not plan.within:
        return [()]
    name, ids = (GAME_ID, values.games) if GAME_ID in plan.within else (STUDIO_ID, values.studios)
    return [((name, value),) for value in ids]


def rest_plan(plan: MetricPlan, groups: Iterable[RestGroup], shown: pa.Table, values: FanOutValues) -> MetricPlan:
    """Return the requests for what *plan* leaves out of each of *groups*.

    Args:
        plan: a plan with a dimension in `rest`.
        groups: some of its `rest_groups`.
        shown: its largest rows.
        values: the values of the dimension.
    """
    dimension = plan.rest or ""
    listed = values.games if dimension == GAME_ID else values.values[dimension]
    rows = shown.to_pylist()
    beyond = {}
    for group in groups:
        largest = [row[dimension] for row in rows if all(row[name] == value for name, value in group)]
        beyond[group] = _beyond(dimension, largest, listed)
    rest = [
        msgspec.structs.replace(
            source,
            templates=tuple(_template(source, dimension, *one) for one in beyond.items()),
            labels=source.labels if GAME_ID in plan.within else (),
            limit=None,
            top=None,
            within=(),
            rest=None,
        )
        for source in plan.sources
    ]
    return msgspec.structs.replace(plan, parts=tuple(rest), top=None, within=(), rest=None) if plan.parts else rest[0]


def _template(source: MetricPlan, dimension: str, group: RestGroup, beyond: Filter | None) -> RequestTemplate:
    """Return the request of *source* for the rest of *group*, which *beyond* selects."""
    query = next(template.query for template in source.templates if set(template.fixed) <= set(group))
    if beyond is not None:
        where = flat_filter(beyond if query.filter is None else query.filter & beyond)
        query = msgspec.structs.replace(query, filter=where)
    kind: dict[str, Any] = {"query": Timeseries(), "split_by": None}
    if source.pools_games:
        kind = {"query": None, "split_by": GAME_ID}
    query = msgspec.structs.replace(query, **kind)
    for name, value in group:
        if name == GAME_ID and METRICS[source.metric].kinds != "plain":
            query = msgspec.structs.replace(query, game=value)
        else:
            query = msgspec.structs.replace(query, **{"games" if name == GAME_ID else "studios": (value,)})
    carried = (GAME_ID,) if source.pools_games else ()
    return RequestTemplate(metric=source.metric, query=query, carried=carried, fixed=(*group, (dimension, OTHER)))


def _beyond(dimension: str, largest: list[str | None], listed: tuple[str, ...]) -> Filter | None:
    """Return the filter of events with none of the *largest* values, None for all events.

    No filter matches null, so where null is among them the filter lists the other values.
    """
    if None in largest:
        return Match(dimension, tuple(value for value in listed if value not in largest))
    named = tuple(value for value in largest if value is not None)
    return Not(Match(dimension, named)) if named else None
