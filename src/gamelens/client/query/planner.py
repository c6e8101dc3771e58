"""Requests that a query takes: their kinds, the fan-out, and the runs of time.

One request carries at most two dimensions, or the game and one more for a metric that exists per game (Wire 2.6, Query
kinds). Further dimensions are fanned out: one request for each value, over the dimensions with the fewest values. A
metric that exists per game is requested by game in any case; its games are pooled where the query does not name them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product
from math import prod
from typing import Any, Final

import msgspec

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, Alias, Metric, check_query, find_metric
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, FixedValue, MetricPlan, QuerySpec, RequestTemplate
from gamelens.client.tables.table_schema import TIMESTAMP
from gamelens.client.tables.time_ranges import (
    BucketSlice,
    ResolvedRange,
    bucket_slices,
    enclosing_interval,
    has_split_buckets,
    request_runs,
)
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import Filter, Match, Not, dimensions_in, flat_filter
from gamelens.wire.intervals import Interval, bucket_start
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import Group, MetricQuery, Query, Split, Timeseries

_TYPICAL_UNKNOWN: Final = 20
_DAY: Final = timedelta(days=1)


class FanOutValues(msgspec.Struct, frozen=True, kw_only=True):
    """Values that a fan-out covers.

    Attributes:
        games, studios: ids within the query.
        values: those of other dimensions, by name.
    """

    games: tuple[str, ...] = ()
    studios: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = {}

    def request_count(self, dimension: str) -> int:
        """Return how many requests a fan-out over *dimension* takes.

        Every event has a game and a studio; of other dimensions one request is for events without a value.
        """
        if dimension == GAME_ID:
            return len(self.games)
        return len(self.studios) if dimension == STUDIO_ID else len(self.values[dimension]) + 1


def fan_out_dimensions(spec: QuerySpec) -> tuple[str, ...]:
    """Return the dimensions whose values must be listed before *spec* can be planned."""
    are_per_game = [_is_per_game(METRICS.get(name)) for name in spec.metrics]
    dimensions = _row_dimensions(spec, is_per_game=any(are_per_game))
    others = [name for name in dimensions if name != STUDIO_ID]
    lists_studios = STUDIO_ID in dimensions and GAME_ID not in spec.dimensions and not all(are_per_game)
    return (*(others if len(others) > 2 else ()), *((STUDIO_ID,) if lists_studios else ()))


def typical_values(dimension: str) -> tuple[str, ...]:
    """Return as many placeholders as *dimension* usually has values."""
    entry = DIMENSIONS.get(dimension)
    number = entry.typical if entry is not None else _TYPICAL_UNKNOWN
    return tuple(f"<{dimension} {place}>" for place in range(1, number + 1))


def placeholder_values(dimensions: Iterable[str]) -> FanOutValues:
    """Return one placeholder for each of *dimensions*.

    That is enough to find out whether a query can be sent at all.
    """
    one = ("…",)
    return FanOutValues(games=one, studios=one, values=dict.fromkeys(dimensions, one))


def fan_out_interval(spec: QuerySpec, times: ResolvedRange) -> Interval:
    """Return the interval whose values a fan-out covers.

    For a retention metric it begins with the first install day.
    """
    is_retention = any(name in METRICS and METRICS[name].kinds == "retention" for name in spec.metrics)
    if not is_retention:
        return times.covered
    first_install_day = bucket_start(times.covered.start - (spec.since_days_ago or 0) * _DAY, "day")
    return Interval(max(times.available.start, first_install_day), times.covered.end)


def plan_requests(
    spec: QuerySpec,
    interval: Interval,
    *,
    max_days: int | None,
    unknown: Collection[str] = (),
    values: FanOutValues | None = None,
) -> list[MetricPlan]:
    """Return the plan of each metric of *spec*.

    A metric that only exists per game is requested by game; if the query does not name the game, the rows of all games
    are pooled afterwards.

    Args:
        spec: the query.
        interval: the covered interval.
        max_days: most days of one request; None for the limit of the service.
        unknown: dimensions that the service knows and the catalog does not.
        values: those of the dimensions that `fan_out_dimensions` names.

    Raises:
        BadQuery: nearest names for an unknown one; a kind the metric does not have.
        NotAdditive: two slices lie in one bucket, games are pooled, or a total is needed, and the metric cannot be
            added up.
    """
    metrics = [METRICS.get(name) for name in spec.metrics]
    if spec.since_days_ago is not None and not any(metric and metric.takes_since_days_ago for metric in metrics):
        raise BadQuery("since_days_ago", spec.since_days_ago, f"does not apply to {', '.join(spec.metrics)}")
    plans = _MetricPlans(interval, max_days=max_days, unknown=unknown, values=values or FanOutValues())
    return [plans.plan(msgspec.structs.replace(spec, metrics=(name,))) for name in spec.metrics]


class _MetricPlans:
    """The plans of one query.

    Metrics that need the same rows of the service share the plan of them. Its arguments are those of `plan_requests`.
    """

    def __init__(
        self, interval: Interval, *, max_days: int | None, unknown: Collection[str], values: FanOutValues
    ) -> None:
        self._interval = interval
        self._max_days = max_days
        self._unknown = unknown
        self._values = values
        self._plans: dict[QuerySpec, MetricPlan] = {}

    def plan(self, spec: QuerySpec) -> MetricPlan:
        """Return the plan of the one metric of *spec*, with its total where one is needed."""
        if spec not in self._plans:
            plan = self._without_total(spec)
            _check(plan, spec, self._unknown)
            if spec.needs_total:
                bare = msgspec.structs.replace(spec, by=(), top=None, other=False, check=False)
                total = self._without_total(bare)
                plan = msgspec.structs.replace(plan, total=total)
            self._plans[spec] = plan
        return self._plans[spec]

    def _without_total(self, spec: QuerySpec) -> MetricPlan:
        (name,) = spec.metrics
        slices = tuple(bucket_slices(self._interval, spec.every, self._max_days))
        if name not in ALIASES:
            adds_up = has_split_buckets(slices, spec.every)
            return _metric_plan(name, spec, slices, self._max_days, self._values, adds_up=adds_up)
        return MetricPlan(
            metric=name,
            templates=(),
            slices=slices,
            every=spec.every,
            max_days=self._max_days,
            dimensions=spec.dimensions,
            labels=_labels(spec.dimensions),
            top=spec.top,
            parts=tuple(self.plan(part) for part in _part_specs(ALIASES[name], spec)),
        )


def _part_specs(alias: Alias, spec: QuerySpec) -> Iterator[QuerySpec]:
    """Yield the query for each source of *alias*.

    The service can choose the largest rows only if the alias is one of its metrics under another name.
    """
    largest = alias.parts.get(alias.sorts_by)
    for name, every in alias.sources:
        is_renamed = len(alias.sources) == 1 and largest is not None and METRICS[name].sorts_by == largest.field
        yield msgspec.structs.replace(
            spec,
            metrics=(name,),
            every=every or spec.every,
            top=spec.top if is_renamed else None,
            other=False,
            check=False,
        )


def _row_dimensions(spec: QuerySpec, *, is_per_game: bool) -> tuple[str, ...]:
    """Return the dimensions of the requested rows, with the game of a metric per game."""
    return (*spec.dimensions, GAME_ID) if is_per_game and GAME_ID not in spec.dimensions else spec.dimensions


def _metric_plan(
    name: str,
    spec: QuerySpec,
    slices: tuple[BucketSlice, ...],
    max_days: int | None,
    values: FanOutValues,
    *,
    adds_up: bool,
) -> MetricPlan:
    metric = METRICS.get(name)
    dimensions = _row_dimensions(spec, is_per_game=_is_per_game(metric))
    labels = _labels(dimensions)
    own_dimensions = [dimension for dimension in dimensions if dimension not in labels]
    first = enclosing_interval(request_runs(slices, spec.every, max_days)[0])
    takes_since = metric is None or metric.takes_since_days_ago
    templates = tuple(
        RequestTemplate(
            metric=name,
            query=MetricQuery(
                interval=first,
                granularity=spec.every,
                since_days_ago=spec.since_days_ago if takes_since else None,
                **kind,
            ),
            carried=carried,
            fixed=fixed,
        )
        for kind, carried, fixed in _requests(metric, spec, own_dimensions, values, is_cut=adds_up)
    )
    limits = [template.query.query.limit for template in templates if isinstance(template.query.query, Group)]
    return MetricPlan(
        metric=name,
        templates=templates,
        slices=slices,
        every=spec.every,
        max_days=max_days,
        dimensions=spec.dimensions,
        labels=labels,
        pools_games=dimensions != spec.dimensions,
        adds_up=adds_up,
        limit=limits[0] if limits else None,
        top=spec.top,
    )


def _labels(dimensions: Collection[str]) -> tuple[str, ...]:
    """Return the dimensions whose values follow from the game."""
    return (STUDIO_ID,) if STUDIO_ID in dimensions and GAME_ID in dimensions else ()


def _requests(
    metric: Metric | None, spec: QuerySpec, dimensions: Sequence[str], values: FanOutValues, *, is_cut: bool
) -> Iterator[tuple[dict[str, Any], tuple[str, ...], tuple[FixedValue, ...]]]:
    """Yield the variable parts of each request of a fan-out.

    These are the fields of its query that depend on the fan-out, the dimensions its rows carry, and the fixed values.
    """
    carried, fanned, names_game = _carried(metric, dimensions, values)
    is_per_game = _is_per_game(metric)
    kind: dict[str, Any] = {}
    if is_per_game and not names_game:
        kind["split_by"] = next((name for name in carried if name != GAME_ID), GAME_ID)
    else:
        is_alone = spec.top is not None and not fanned and not is_cut
        kind["query"] = _query(carried, spec.top if is_alone and spec.top is not None else MAX_LIMIT)
    for fixed in product(*(_fixed_values(name, values) for name in fanned)):
        where, narrowed = spec.where, {"games": spec.games, "studios": spec.studios}
        game = {}
        for name, value in fixed:
            if name == GAME_ID and names_game:
                game = {"game": value}
            elif name in (GAME_ID, STUDIO_ID):
                narrowed["games" if name == GAME_ID else "studios"] = (value or "",)
            else:
                where = _and(where, Match(name, (value,)) if value is not None else _without(name, values))
        sent = flat_filter(where) if where is not None else None
        yield {**kind, **game, **narrowed, "filter": sent}, carried, fixed


def _carried(
    metric: Metric | None, dimensions: Sequence[str], values: FanOutValues
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Choose the dimensions that a request carries and those that are fanned out.

    The choice takes the fewest requests. The third value is whether each request names its one game.
    """
    if not _is_per_game(metric):
        studios = [name for name in dimensions if name == STUDIO_ID]
        others = [name for name in dimensions if name != STUDIO_ID]
        carried, fanned = _largest(others, 2, values)
        return carried, (*studios, *fanned), False
    others = [name for name in dimensions if name != GAME_ID]
    carried, fanned = _largest(others, 1, values)
    if not fanned or metric is None or metric.kinds == "retention":
        return (*carried, GAME_ID), fanned, False
    two, rest = _largest(others, 2, values)
    count = values.request_count
    if count(GAME_ID) * prod(map(count, rest)) < prod(map(count, fanned)):
        return two, (GAME_ID, *rest), True
    return (*carried, GAME_ID), fanned, False


def _largest(dimensions: Sequence[str], most: int, values: FanOutValues) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the *most* dimensions with the most values, and the others, each in their order."""
    if len(dimensions) <= most:
        return tuple(dimensions), ()
    chosen = set(sorted(dimensions, key=values.request_count, reverse=True)[:most])
    return tuple(name for name in dimensions if name in chosen), tuple(
        name for name in dimensions if name not in chosen
    )


def _fixed_values(dimension: str, values: FanOutValues) -> list[FixedValue]:
    """Return the values of a fan-out over *dimension*, with None for events without one."""
    if dimension in (GAME_ID, STUDIO_ID):
        return [(dimension, value) for value in (values.games if dimension == GAME_ID else values.studios)]
    return [(dimension, value) for value in (*values.values[dimension], None)]


def _query(carried: Sequence[str], limit: int) -> Query:
    match carried:
        case ():
            return Timeseries()
        case (one,):
            return Group(one, limit)
    return Split((carried[0], carried[1]))


def _without(dimension: str, values: FanOutValues) -> Filter | None:
    """Return the filter of events without a value of *dimension*.

    They are the events that match none of its values.
    """
    names = values.values[dimension]
    return Not(Match(dimension, names)) if names else None


def _and(where: Filter | None, more: Filter | None) -> Filter | None:
    return where & more if where is not None and more is not None else more if where is None else where


def _check(plan: MetricPlan, spec: QuerySpec, unknown: Collection[str]) -> None:
    """Refuse a query that cannot be sent or whose rows cannot be summed, before any request."""
    metric = find_metric(plan.metric)
    taken = {TIMESTAMP, *(field.name for field in (metric.fields if metric is not None else ()))}
    for name in taken.intersection(plan.dimensions):
        raise BadQuery("by", name, f"is also the name of a field of {plan.metric}: a row has no place for both")
    for template in plan.templates[:1]:
        read = {*template.query.dimensions, *(name for name, _ in template.fixed)}
        read |= set(dimensions_in(template.query.filter) if template.query.filter is not None else ())
        if metric is not None and read.isdisjoint(unknown):
            check_query(metric, template.query)
    if plan.pools_games and metric is not None and metric.adds == "never":
        raise NotAdditive(plan.metric, _query_by_game(plan.metric, spec))
    if plan.adds_up and (metric is None or metric.adds != "everywhere"):
        raise NotAdditive(plan.metric, _additive_query(plan.metric, spec))
    if spec.needs_total and not _has_total(metric, plan.dimensions):
        word = "other" if spec.other else "check"
        raise NotAdditive(plan.metric, f'query("{plan.metric}", by={list(spec.by)}) without {word}=True')


def _has_total(metric: Metric | None, dimensions: Sequence[str]) -> bool:
    """Return whether the rows by *dimensions* add up to the answer without them."""
    if metric is None or metric.kinds != "plain" or any(field.combines is None for field in metric.fields):
        return False
    return metric.adds == "everywhere" or {GAME_ID, STUDIO_ID}.issuperset(dimensions)


def _is_per_game(metric: Metric | None) -> bool:
    return metric is not None and metric.kinds != "plain"


def _query_by_game(name: str, spec: QuerySpec) -> str:
    """Return the queries that answer in place of retention without its game, for the error."""
    pooled = f"retention({spec.since_days_ago}{f', by={[*spec.by]}' if spec.by else ''}), pooled by installs"
    return f'query("{name}", by={[*spec.by, "game"]}), a share for each game, or {pooled}'


def _additive_query(name: str, spec: QuerySpec) -> str:
    """Return the query that answers the same without summing, for the error."""
    by = f", by={list(spec.by)}" if spec.by else ""
    return (
        f'query("{name}"{by}, every="{spec.every}") with a Client(max_days=...) that does not cut it, '
        'or every="day", "week" or "month", one number for each'
    )
