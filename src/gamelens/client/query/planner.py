"""The requests that a query takes: their kinds, the fan-out, the groups of slices, and the rest beyond `top`.

One request carries at most two dimensions, or the game and one more for a metric that exists per game (Wire 2.6, Query
kinds). Further dimensions are fanned out: one request for each value, over the dimensions with the fewest values. A
metric that exists per game is requested by game in any case; its games are pooled where the query does not name them.

A player with events in two countries counts in both, so the players of all other countries are not the total less the
rows shown. They are the answer to one more request, for the events with none of the values shown (Wire 2.7, Filters).
Such requests are the rest of a plan. Nothing here sends a request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from math import prod
from typing import Any, Final

import msgspec
import pyarrow as pa

from gamelens.catalog import DIMENSIONS, METRICS, Alias, Metric, check_query
from gamelens.client.query.arguments import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.tables.table_operations import OTHER, TIMESTAMP
from gamelens.client.tables.time_ranges import (
    BucketSlice,
    ResolvedRange,
    bucket_slices,
    enclosing_interval,
    grouped_slices,
    has_split_buckets,
)
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import Filter, Match, Not, dimensions_in, flat_filter
from gamelens.wire.intervals import Granularity, Interval, bucket_start
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import Group, MetricQuery, Query, Split, Timeseries, encode_query

FixedValue = tuple[str, str | None]
"""A dimension and the value that a request of a fan-out is narrowed to."""
FanOut = Mapping[str, tuple[str, ...]]
"""The values that a fan-out covers, by dimension; of games and studios the ids."""
RestGroup = tuple[FixedValue, ...]
"""The game or studio within which values are ranked, or nothing."""

_IDS: Final = frozenset({GAME_ID, STUDIO_ID})
_TYPICAL_UNKNOWN: Final = 20
_DAY: Final = timedelta(days=1)


class RequestTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its interval.

    Attributes:
        metric: the metric it is for.
        query: the body, with the interval of the first request.
        carried: dimensions of the rows it returns.
        fixed: values that all its rows have, because the request is narrowed to them.
    """

    metric: str
    query: MetricQuery
    carried: tuple[str, ...]
    fixed: tuple[FixedValue, ...] = ()

    def over(self, interval: Interval) -> MetricQuery:
        """Return the query for *interval*."""
        return msgspec.structs.replace(self.query, interval=interval)

    @property
    def text(self) -> str:
        """The query without its interval, as JSON with sorted keys and ids."""
        body = msgspec.json.decode(encode_query(self.query))
        del body["interval"]
        body |= {name: sorted(set(body[name])) for name in ("games", "studios") if name in body}
        return msgspec.json.encode(body, order="deterministic").decode()

    @property
    def scope(self) -> dict[str, Any] | None:
        """The values that distinguish this request from others of its plan, or None."""
        since = self.query.since_days_ago
        return dict(self.fixed) | ({"since_days_ago": since} if since is not None else {}) or None


class MetricPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests for one metric: each of *templates* over all of *slices*.

    Attributes:
        metric: its name.
        templates: requests without their interval, one for each combination of fanned-out values.
        slices: bucket slices of the time range, ascending.
        every: the granularity.
        max_days: most days of one request; None for the limit of the service.
        dimensions: columns of the rows, in the order of the frame.
        labels: the dimensions that follow from the game.
        pools_games: whether the rows of all games are summed, because the game is not among the dimensions.
        adds_up: whether two slices lie in one bucket, so that their rows are summed.
        limit: most values of one answer; None where the kind of query has no limit.
        top: rows to keep of each bucket; None for all.
        within: dimensions within whose values so many rows are kept.
        total: the plan without the other dimensions, which `other` and `check` need.
        rest: the dimension whose values beyond *top* further requests answer, where there is no total.
        members: of an alias, which has no templates of its own, the plans of the metrics that it is computed from.
    """

    metric: str
    templates: tuple[RequestTemplate, ...]
    slices: tuple[BucketSlice, ...]
    every: Granularity
    max_days: int | None
    dimensions: tuple[str, ...]
    labels: tuple[str, ...] = ()
    pools_games: bool = False
    adds_up: bool = False
    limit: int | None = None
    top: int | None = None
    within: tuple[str, ...] = ()
    total: MetricPlan | None = None
    rest: str | None = None
    members: tuple[MetricPlan, ...] = ()

    @property
    def leaf_plans(self) -> tuple[MetricPlan, ...]:
        """The plans that have requests: its members, or itself."""
        return self.members or (self,)

    @property
    def starts(self) -> tuple[datetime, ...]:
        """The timestamps of its buckets, ascending."""
        slices = self.slices[:1] if self.every == "all" else self.slices
        return tuple(dict.fromkeys(slice_.bucket_start for slice_ in slices))

    def start_of(self, moment: datetime) -> datetime:
        """Return the timestamp of its bucket that holds *moment*."""
        return self.starts[0] if self.every == "all" else bucket_start(moment, self.every)

    def grouped(self, slices: Sequence[BucketSlice]) -> list[tuple[BucketSlice, ...]]:
        """Return *slices* in groups of one request each."""
        return grouped_slices(slices, self.every, self.max_days)


def fan_out_dimensions(spec: QuerySpec) -> tuple[str, ...]:
    """Return the dimensions whose values must be listed before *spec* can be planned."""
    are_per_game = [_is_per_game(METRICS.get(name)) for name in spec.catalog.service_metrics(spec.metrics)]
    dimensions = _row_dimensions(spec, is_per_game=any(are_per_game))
    others = [name for name in dimensions if name != STUDIO_ID]
    lists_studios = STUDIO_ID in dimensions and GAME_ID not in spec.dimensions and not all(are_per_game)
    needed = [*(others if len(others) > 2 else ()), *((STUDIO_ID,) if lists_studios else ())]
    for name in spec.metrics:
        if (rest := _rest_dimension(spec.catalog.find(name), spec)) is not None:
            group = next((id_ for id_ in (GAME_ID, STUDIO_ID) if id_ in spec.within), rest)  # a game has one studio
            needed += [group, rest]
    if spec.needs_total:
        needed += fan_out_dimensions(_total_spec(spec))
    return tuple(dict.fromkeys(needed))


def typical_values(dimension: str) -> tuple[str, ...]:
    """Return as many placeholders as *dimension* usually has values."""
    entry = DIMENSIONS.get(dimension)
    number = entry.typical if entry is not None else _TYPICAL_UNKNOWN
    return tuple(f"<{dimension} {place}>" for place in range(1, number + 1))


def fan_out_interval(spec: QuerySpec, times: ResolvedRange) -> Interval:
    """Return the interval whose values a fan-out covers.

    For a retention metric it begins with the first install day.
    """
    if not any(name in METRICS and METRICS[name].kinds == "retention" for name in spec.metrics):
        return times.covered
    first_install_day = bucket_start(times.covered.start - (spec.since_days_ago or 0) * _DAY, "day")
    return Interval(max(times.available.start, first_install_day), times.covered.end)


def plan_requests(
    spec: QuerySpec,
    interval: Interval,
    *,
    max_days: int | None,
    unknown: Collection[str] = (),
    values: FanOut | None = None,
) -> list[MetricPlan]:
    """Return the plan of each metric of *spec*. Metrics that need the same rows of the service share the plan of them.

    A metric that only exists per game is requested by game; if the query does not name the game, the rows of all games
    are pooled afterwards.

    Args:
        spec: the query.
        interval: the covered interval.
        max_days: most days of one request; None for the limit of the service.
        unknown: dimensions that the service knows and the catalog does not.
        values: the values of the dimensions that `fan_out_dimensions` names.

    Raises:
        BadQuery: nearest names for an unknown one; a kind the metric does not have.
        NotAdditive: two slices lie in one bucket, games are pooled, or a total is needed, and the metric cannot be
            added up.
    """
    metrics = [METRICS.get(name) for name in spec.metrics]
    if spec.since_days_ago is not None and not any(metric and metric.takes_since_days_ago for metric in metrics):
        raise BadQuery("since_days_ago", spec.since_days_ago, f"does not apply to {', '.join(spec.metrics)}")
    plans: dict[QuerySpec, MetricPlan] = {}

    def planned(spec: QuerySpec) -> MetricPlan:
        """Return the plan of the one metric of *spec*, with its total where one is needed."""
        if spec in plans:
            return plans[spec]
        (name,) = spec.metrics
        slices = tuple(bucket_slices(interval, spec.every, max_days))
        if (alias := spec.catalog.aliases.get(name)) is None:
            plan = _metric_plan(name, spec, slices, max_days, values or {})
        else:
            plan = MetricPlan(
                metric=name,
                templates=(),
                slices=slices,
                every=spec.every,
                max_days=max_days,
                dimensions=spec.dimensions,
                labels=_labels(spec.dimensions),
                top=spec.top,
                within=spec.within,
                rest=_rest_dimension(alias, spec),
                members=tuple(map(planned, _member_specs(alias, spec))),
            )
        _check(plan, spec, unknown)
        if spec.needs_total and plan.rest is None:
            total = planned(_total_spec(spec))
            plan = msgspec.structs.replace(plan, total=total)
        plans[spec] = plan
        return plan

    return [planned(spec.with_(metrics=(name,))) for name in spec.metrics]


def _total_spec(spec: QuerySpec) -> QuerySpec:
    """Return the query for the total of each group within which *spec* ranks values."""
    return spec.with_(by=spec.within, top=None, top_of=None, other=False, check=False)


def _member_specs(alias: Alias, spec: QuerySpec) -> Iterator[QuerySpec]:
    """Yield the query for each metric that *alias* needs.

    The service can choose the largest rows only if the alias is one of its metrics under another name, in the same
    buckets: the largest of a week need not be among the largest of each day.
    """
    largest = alias.ingredients.get(alias.sorts_by)
    for name, every in alias.needs:
        is_renamed = len(alias.needs) == 1 and largest is not None and METRICS[name].sorts_by == largest.field
        is_renamed &= every in (None, spec.every)
        top = {} if is_renamed else {"top": None, "top_of": None}
        yield spec.with_(metrics=(name,), every=every or spec.every, other=False, check=False, **top)


def _is_per_game(metric: Metric | None) -> bool:
    return metric is not None and metric.kinds != "plain"


def _row_dimensions(spec: QuerySpec, *, is_per_game: bool) -> tuple[str, ...]:
    """Return the dimensions of the requested rows, with the game of a metric per game."""
    return (*spec.dimensions, GAME_ID) if is_per_game and GAME_ID not in spec.dimensions else spec.dimensions


def _labels(dimensions: Collection[str]) -> tuple[str, ...]:
    """Return the dimensions whose values follow from the game."""
    return (STUDIO_ID,) if STUDIO_ID in dimensions and GAME_ID in dimensions else ()


def _metric_plan(
    name: str, spec: QuerySpec, slices: tuple[BucketSlice, ...], max_days: int | None, values: FanOut
) -> MetricPlan:
    """Return the plan of a metric of the service: a request for each combination of fanned-out values."""
    metric = METRICS.get(name)
    adds_up = has_split_buckets(slices, spec.every)
    dimensions = _row_dimensions(spec, is_per_game=_is_per_game(metric))
    labels = _labels(dimensions)
    carried, fanned, names_game = _carried(metric, [name for name in dimensions if name not in labels], values)
    kind: dict[str, Any] = {}
    limit = None
    if _is_per_game(metric) and not names_game:
        kind["split_by"] = next((name for name in carried if name != GAME_ID), GAME_ID)
    else:
        # The service chooses the largest rows only where one request has all of the values that are ranked.
        # It knows no studios, within which games may be ranked.
        is_alone = not adds_up and (carried == spec.ranked if spec.within else not fanned)
        is_alone &= not {*labels} & {*spec.within}
        most = spec.top if is_alone and spec.top is not None else MAX_LIMIT
        limit = most if len(carried) == 1 else None
        query: Query = Timeseries()
        if carried:
            query = Group(carried[0], most) if len(carried) == 1 else Split((carried[0], carried[1]))
        kind["query"] = query
    first = enclosing_interval(grouped_slices(slices, spec.every, max_days)[0])
    since = spec.since_days_ago if metric is None or metric.takes_since_days_ago else None
    templates = []
    for fixed in product(*([(name, value) for value in _fixed_values(name, values)] for name in fanned)):
        where = spec.where
        narrowed: dict[str, Any] = {"games": spec.games, "studios": spec.studios}
        for dimension, value in fixed:
            if dimension == GAME_ID and names_game:
                narrowed["game"] = value
            elif dimension in _IDS:
                narrowed["games" if dimension == GAME_ID else "studios"] = (value or "",)
            elif value is not None or values[dimension]:  # events without a value match none of the values there are
                narrowed_to = (
                    Match(dimension, (value,)) if value is not None else Not(Match(dimension, values[dimension]))
                )
                where = narrowed_to if where is None else where & narrowed_to
        sent = flat_filter(where) if where is not None else None
        body = MetricQuery(
            interval=first, granularity=spec.every, since_days_ago=since, filter=sent, **kind, **narrowed
        )
        templates.append(RequestTemplate(metric=name, query=body, carried=carried, fixed=fixed))
    return MetricPlan(
        metric=name,
        templates=tuple(templates),
        slices=slices,
        every=spec.every,
        max_days=max_days,
        dimensions=spec.dimensions,
        labels=labels,
        pools_games=dimensions != spec.dimensions,
        adds_up=adds_up,
        limit=limit if templates else None,
        top=spec.top,
        within=spec.within,
        rest=_rest_dimension(metric, spec),
    )


def _carried(
    metric: Metric | None, dimensions: Sequence[str], values: FanOut
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Choose the dimensions that a request carries and those that are fanned out.

    The choice takes the fewest requests. The third value is whether each request names its one game.
    """

    def largest(names: Sequence[str], most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the *most* dimensions with the most values, and the others, each in their order."""
        chosen = set(sorted(names, key=count, reverse=True)[:most]) if len(names) > most else {*names}
        return tuple(name for name in names if name in chosen), tuple(name for name in names if name not in chosen)

    def count(dimension: str) -> int:
        return len(_fixed_values(dimension, values))

    if not _is_per_game(metric):
        carried, fanned = largest([name for name in dimensions if name != STUDIO_ID], 2)
        return carried, (*(name for name in dimensions if name == STUDIO_ID), *fanned), False
    others = [name for name in dimensions if name != GAME_ID]
    carried, fanned = largest(others, 1)
    if fanned and metric is not None and metric.kinds != "retention":
        two, rest = largest(others, 2)
        if count(GAME_ID) * prod(map(count, rest)) < prod(map(count, fanned)):
            return two, (GAME_ID, *rest), True
    return (*carried, GAME_ID), fanned, False


def _fixed_values(dimension: str, values: FanOut) -> tuple[str | None, ...]:
    """Return the values of a fan-out over *dimension*.

    Every event has a game and a studio; of other dimensions one request is for events without a value.
    """
    return values.get(dimension, ()) if dimension in _IDS else (*values[dimension], None)


def _check(plan: MetricPlan, spec: QuerySpec, unknown: Collection[str]) -> None:
    """Refuse a query that cannot be sent or whose rows cannot be summed, before any request."""
    name, metric = plan.metric, spec.catalog.find(plan.metric)
    taken = {TIMESTAMP, *(field.name for field in (metric.fields if metric is not None else ()))}
    for dimension in taken.intersection(plan.dimensions):
        raise BadQuery("by", dimension, f"is also a field of {name}: a row cannot hold both")
    for template in plan.templates[:1]:
        read = {*template.query.dimensions, *(dimension for dimension, _ in template.fixed)}
        read |= set(dimensions_in(template.query.filter) if template.query.filter is not None else ())
        if metric is not None and read.isdisjoint(unknown):
            check_query(metric, template.query)
    if plan.pools_games and metric is not None and metric.adds == "never":
        pooled = f"retention({spec.since_days_ago}{f', by={[*spec.by]}' if spec.by else ''}), pooled by installs"
        raise NotAdditive(name, f'query("{name}", by={[*spec.by, "game"]}), a share for each game, or {pooled}')
    if plan.adds_up and (metric is None or metric.adds != "everywhere"):
        by = f", by={list(spec.by)}" if spec.by else ""
        uncut = f'query("{name}"{by}, every="{spec.every}") with a Client(max_days=...) that does not cut it'
        raise NotAdditive(name, f'{uncut}, or every="day", "week" or "month", one number for each')
    has_rest = plan.rest is not None and len(plan.starts) == 1
    if spec.needs_total and not has_rest and not _has_total(metric, spec.ranked):
        raise NotAdditive(name, _total_refusal(spec, plan.rest))


def _total_refusal(spec: QuerySpec, rest: str | None) -> str:
    """Return the queries that can be sent in place of *spec*, whose rows do not add up to a total.

    *rest* is the dimension whose rest one request answers for one bucket.
    """
    plain = f'query("{spec.metrics[0]}", by={list(spec.by)}) without {"other" if spec.other else "check"}=True'
    others, metric = [name for name in spec.dimensions if name not in _IDS], spec.catalog.find(spec.metrics[0])
    if spec.check or len(others) != 1 or metric is None or metric.kinds == "retention":
        return plain
    if rest is not None:
        return f'{plain}, or every="all": the rest of one bucket takes one more request'
    within = f'top={{"{others[0]}": {spec.top}}}'
    return f'{plain}, or every="all" and {within}: the rest of each game or studio takes one more request'


def _has_total(metric: Metric | None, dimensions: Collection[str]) -> bool:
    """Return whether rows that differ in *dimensions* add up to the answer without them."""
    if metric is None or metric.kinds != "plain" or any(field.combines is None for field in metric.fields):
        return False
    return metric.adds == "everywhere" or _IDS.issuperset(dimensions)


def _rest_dimension(metric: Metric | None, spec: QuerySpec) -> str | None:
    """Return the dimension whose values beyond *top* one more request answers, or None.

    It is the only one that is ranked, and the request is narrowed to one game or studio at most.
    """
    if not spec.other or metric is None or metric.kinds == "retention" or _has_total(metric, spec.ranked):
        return None
    if len(spec.ranked) > 1 or spec.ranked[0] == STUDIO_ID or not _IDS.issuperset(spec.within):
        return None
    return spec.ranked[0] if metric.kinds == "plain" or spec.ranked[0] != GAME_ID else None


def rest_groups(plan: MetricPlan, values: FanOut) -> list[RestGroup]:
    """Return the groups whose rest takes a request each.

    There are none if `top` is more than all values there are: then nothing is left out, null included.
    """
    if plan.rest is None or plan.top is None or len(values[plan.rest]) < plan.top:
        return []
    if not plan.within:
        return [()]
    name = GAME_ID if GAME_ID in plan.within else STUDIO_ID
    return [((name, value),) for value in values[name]]


def rest_plan(plan: MetricPlan, groups: Iterable[RestGroup], shown: pa.Table, values: FanOut) -> MetricPlan:
    """Return the requests for what *plan*, which has a `rest`, leaves out of each of *groups*.

    Args:
        plan: a plan with a dimension in `rest`.
        groups: some of its `rest_groups`.
        shown: its largest rows.
        values: the values of the dimension.
    """
    dimension, rows = plan.rest or "", shown.to_pylist()
    beyond: dict[RestGroup, Filter | None] = {}
    for group in groups:
        largest = [row[dimension] for row in rows if all(row[name] == value for name, value in group)]
        named = tuple(value for value in largest if value is not None)
        if len(named) < len(largest):  # no filter matches null, so the filter lists the other values
            beyond[group] = Match(dimension, tuple(value for value in values[dimension] if value not in named))
        else:
            beyond[group] = Not(Match(dimension, named)) if named else None
    plain: dict[str, Any] = {"top": None, "within": (), "rest": None}
    rest = [
        msgspec.structs.replace(
            leaf_plan,
            templates=tuple(_rest_template(leaf_plan, dimension, group, where) for group, where in beyond.items()),
            labels=leaf_plan.labels if GAME_ID in plan.within else (),
            limit=None,
            **plain,
        )
        for leaf_plan in plan.leaf_plans
    ]
    return msgspec.structs.replace(plan, members=tuple(rest), **plain) if plan.members else rest[0]


def _rest_template(leaf_plan: MetricPlan, dimension: str, group: RestGroup, beyond: Filter | None) -> RequestTemplate:
    """Return the request of *leaf_plan* for the rest of *group*, which *beyond* selects."""
    query = next(template.query for template in leaf_plan.templates if set(template.fixed) <= set(group))
    changes: dict[str, Any] = {"query": Timeseries(), "split_by": None}
    if leaf_plan.pools_games:
        changes = {"query": None, "split_by": GAME_ID}
    if beyond is not None:
        changes["filter"] = flat_filter(beyond if query.filter is None else query.filter & beyond)
    for name, value in group:
        if name == GAME_ID and METRICS[leaf_plan.metric].kinds != "plain":
            changes["game"] = value
        else:
            changes["games" if name == GAME_ID else "studios"] = (value,)
    return RequestTemplate(
        metric=leaf_plan.metric,
        query=msgspec.structs.replace(query, **changes),
        carried=(GAME_ID,) if leaf_plan.pools_games else (),
        fixed=(*group, (dimension, OTHER)),
    )
