"""Which requests answer a question: the kind of query, what is fanned out, the pieces of time.

One request carries at most two dimensions, or the game and one more for a metric that exists per game. What is asked
beyond that is fanned out: a request for each value, chosen so that there are as few as possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import msgspec

from gamelens.catalog import DIMENSIONS, METRICS, Metric, check_query
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.tables.table_schema import TIMESTAMP
from gamelens.client.tables.time_ranges import (
    BucketSlice,
    bucket_slices,
    enclosing_interval,
    has_split_buckets,
    request_runs,
)
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import And, Filter, Match, Not, dimensions_in
from gamelens.wire.intervals import Granularity, Interval
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import Group, MetricQuery, Query, Split, Timeseries, encode_query

_TYPICAL_UNKNOWN: Final = 20
FixedValue = tuple[str, str | None]


class FanOutValues(msgspec.Struct, frozen=True, kw_only=True):
    """What a fan-out goes over: ids of the games and studios in question, and values of dimensions."""

    games: tuple[str, ...] = ()
    studios: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = {}

    def sizes(self, dimension: str) -> int:
        """How many requests a fan-out over *dimension* takes: a game always has an id, other values may be missing."""
        if dimension == GAME_ID:
            return len(self.games)
        return len(self.studios) if dimension == STUDIO_ID else len(self.values[dimension]) + 1


class RequestTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A request over whatever interval: *query* is for one of them; its rows all have the values *fixed*."""

    metric: str
    query: MetricQuery
    carried: tuple[str, ...]
    fixed: tuple[FixedValue, ...] = ()

    def over(self, interval: Interval) -> MetricQuery:
        """The query for *interval*."""
        return msgspec.structs.replace(self.query, interval=interval)

    @property
    def text(self) -> str:
        """Everything about the query but its interval, as JSON whose order is always the same."""
        body = {
            name: value for name, value in msgspec.json.decode(encode_query(self.query)).items() if name != "interval"
        }
        for name in ("games", "studios"):
            if name in body:
                body[name] = sorted(set(body[name]))
        return msgspec.json.encode(body, order="deterministic").decode()


class MetricPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests for one metric: each of *templates* over all of *asked*.

    *dimensions* are the columns of the rows, in the order of the frame, *labels* those that follow from the game.
    *adds_up* when answers share a bucket and must be added. Of each bucket *top* rows are kept, by the service where
    *limit* says so. A *total* is the part without dimensions that `other` and `check_query` need.
    """

    metric: str
    templates: tuple[RequestTemplate, ...]
    asked: tuple[BucketSlice, ...]
    every: Granularity
    max_days: int | None
    dimensions: tuple[str, ...]
    labels: tuple[str, ...] = ()
    adds_up: bool = False
    limit: int | None = None
    top: int | None = None
    total: MetricPlan | None = None

    def pieces(self, missing: Sequence[BucketSlice]) -> list[tuple[BucketSlice, ...]]:
        """*missing* in runs, each of which is one request."""
        return request_runs(missing, self.every, self.max_days)


def fan_out_dimensions(question: QuerySpec) -> tuple[str, ...]:
    """Dimensions whose values must be known before *question* can be planned; none when nothing is fanned out."""
    dimensions = _dimensions(question)
    others = [name for name in dimensions if name != STUDIO_ID]
    needed = others if len(others) > 2 else []
    return (*needed, *((STUDIO_ID,) if STUDIO_ID in dimensions and GAME_ID not in dimensions else ()))


def typical_values(dimension: str) -> tuple[str, ...]:
    """As many placeholders as *dimension* usually has values."""
    known = DIMENSIONS.get(dimension)
    number = known.typical if known is not None else _TYPICAL_UNKNOWN
    return tuple(f"<{dimension} {place}>" for place in range(1, number + 1))


def placeholder_values(needed: Iterable[str]) -> FanOutValues:
    """One placeholder for each of *needed*: enough to see whether the question can be asked at all."""
    one = ("…",)
    return FanOutValues(games=one, studios=one, values=dict.fromkeys(needed, one))


def plan_requests(
    question: QuerySpec,
    interval: Interval,
    *,
    max_days: int | None,
    passed: Collection[str] = (),
    lists: FanOutValues | None = None,
) -> list[MetricPlan]:
    """The requests for each metric of *question*.

    A metric that only exists per game is asked by game, and its rows carry `game_id` besides; so do then the rows of
    all metrics asked together with it. *passed* are names the catalog does not know and the service does, *lists* the
    values of what `fan_out_dimensions` names.

    Raises:
        BadQuery: nearest names for an unknown one; a kind the metric does not have.
        NotAdditive: the pieces would share a bucket, or a total is needed, and the metric cannot be added up.
    """
    known = [METRICS.get(name) for name in question.metrics]
    if question.since_days_ago is not None and not any(metric and metric.takes_since_days_ago for metric in known):
        raise BadQuery("since_days_ago", question.since_days_ago, f"does not apply to {', '.join(question.metrics)}")
    dimensions = _dimensions(question)
    asked = tuple(bucket_slices(interval, question.every, max_days))
    adds_up = has_split_buckets(asked, question.every)
    made = []
    for name in question.metrics:
        part = _part(name, question, dimensions, asked, max_days, lists or FanOutValues(), adds_up=adds_up)
        _check(part, question, passed)
        if question.needs_total:
            bare = msgspec.structs.replace(question, by=(), top=None, other=False, check=False)
            total = _part(name, bare, (), asked, max_days, FanOutValues(), adds_up=adds_up)
            part = msgspec.structs.replace(part, total=total)
        made.append(part)
    return made


def _dimensions(question: QuerySpec) -> tuple[str, ...]:
    """The columns of all rows: what was asked for, and the game where a metric exists only per game."""
    per_game = any(_is_per_game(METRICS.get(name)) for name in question.metrics)
    extra = (GAME_ID,) if per_game and GAME_ID not in question.dimensions else ()
    return (*question.dimensions, *extra)


def _part(
    name: str,
    question: QuerySpec,
    dimensions: tuple[str, ...],
    asked: tuple[BucketSlice, ...],
    max_days: int | None,
    lists: FanOutValues,
    *,
    adds_up: bool,
) -> MetricPlan:
    metric = METRICS.get(name)
    labels = (STUDIO_ID,) if STUDIO_ID in dimensions and GAME_ID in dimensions else ()
    asked_for = [dimension for dimension in dimensions if dimension not in labels]
    first = enclosing_interval(request_runs(asked, question.every, max_days)[0])
    takes_since = metric is None or metric.takes_since_days_ago
    templates = tuple(
        RequestTemplate(
            metric=name,
            query=MetricQuery(
                interval=first,
                granularity=question.every,
                since_days_ago=question.since_days_ago if takes_since else None,
                **kind,
            ),
            carried=carried,
            fixed=fixed,
        )
        for kind, carried, fixed in _requests(metric, question, asked_for, lists, is_cut=adds_up)
    )
    limits = [it.query.query.limit for it in templates if isinstance(it.query.query, Group)]
    return MetricPlan(
        metric=name,
        templates=templates,
        asked=asked,
        every=question.every,
        max_days=max_days,
        dimensions=dimensions,
        labels=labels,
        adds_up=adds_up,
        limit=limits[0] if limits else None,
        top=question.top,
    )


def _requests(
    metric: Metric | None, question: QuerySpec, dimensions: Sequence[str], lists: FanOutValues, *, is_cut: bool
) -> Iterator[tuple[dict[str, Any], tuple[str, ...], tuple[FixedValue, ...]]]:
    """For each request: what of the query depends on the fan-out, the dimensions its rows carry, and what is fixed."""
    carried, fanned, names_game = _carried(metric, dimensions, lists)
    is_per_game = _is_per_game(metric)
    kind: dict[str, Any] = {}
    if is_per_game and not names_game:
        kind["split_by"] = next((name for name in carried if name != GAME_ID), GAME_ID)
    else:
        is_alone = question.top is not None and not fanned and not is_cut
        kind["query"] = _query(carried, question.top if is_alone and question.top is not None else MAX_LIMIT)
    for fixed in product(*(_constants(name, lists) for name in fanned)):
        where, narrowed = question.where, {"games": question.games, "studios": question.studios}
        game = {}
        for name, value in fixed:
            if name == GAME_ID and names_game:
                game = {"game": value}
            elif name in (GAME_ID, STUDIO_ID):
                narrowed["games" if name == GAME_ID else "studios"] = (value or "",)
            else:
                where = _and(where, Match(name, (value,)) if value is not None else _missing(name, lists))
        yield {**kind, **game, **narrowed, "filter": where}, carried, fixed


def _carried(
    metric: Metric | None, dimensions: Sequence[str], lists: FanOutValues
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """What one request carries, what is fanned out, and whether each names its one game; the fewest requests."""
    if not _is_per_game(metric):
        studios = [name for name in dimensions if name == STUDIO_ID]
        others = [name for name in dimensions if name != STUDIO_ID]
        carried, fanned = _largest(others, 2, lists)
        return carried, (*studios, *fanned), False
    others = [name for name in dimensions if name != GAME_ID]
    carried, fanned = _largest(others, 1, lists)
    if not fanned or metric is None or metric.kinds == "retention":
        return (*carried, GAME_ID), fanned, False
    two, rest = _largest(others, 2, lists)
    if lists.sizes(GAME_ID) * prod(map(lists.sizes, rest)) < prod(map(lists.sizes, fanned)):
        return two, (GAME_ID, *rest), True
    return (*carried, GAME_ID), fanned, False


def _largest(dimensions: Sequence[str], most: int, lists: FanOutValues) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The *most* dimensions with the most values, and the others; both in their order."""
    if len(dimensions) <= most:
        return tuple(dimensions), ()
    chosen = set(sorted(dimensions, key=lists.sizes, reverse=True)[:most])
    return tuple(it for it in dimensions if it in chosen), tuple(it for it in dimensions if it not in chosen)


def _constants(dimension: str, lists: FanOutValues) -> list[FixedValue]:
    """The values of a fan-out; every dimension but the game and the studio may have none."""
    if dimension in (GAME_ID, STUDIO_ID):
        return [(dimension, value) for value in (lists.games if dimension == GAME_ID else lists.studios)]
    return [(dimension, value) for value in (*lists.values[dimension], None)]


def _query(carried: Sequence[str], limit: int) -> Query:
    match carried:
        case ():
            return Timeseries()
        case (one,):
            return Group(one, limit)
    return Split((carried[0], carried[1]))


def _missing(dimension: str, lists: FanOutValues) -> Filter | None:
    """Events that have none of the values, and so none at all."""
    values = lists.values[dimension]
    return Not(Match(dimension, values)) if values else None


def _and(where: Filter | None, more: Filter | None) -> Filter | None:
    if where is None or more is None:
        return where if more is None else more
    return And((*where.members, more)) if isinstance(where, And) else And((where, more))


def _check(part: MetricPlan, question: QuerySpec, passed: Collection[str]) -> None:
    """Refuse what cannot be asked or put together, before anything is sent."""
    metric = METRICS.get(part.metric)
    taken = {TIMESTAMP, *(field.name for field in (metric.fields if metric is not None else ()))}
    for name in taken.intersection(part.dimensions):
        raise BadQuery("by", name, f"is also the name of a field of {part.metric}: a row has no place for both")
    for template in part.templates[:1]:
        read = {*template.query.dimensions, *(name for name, _ in template.fixed)}
        read |= set(dimensions_in(template.query.filter) if template.query.filter is not None else ())
        if metric is not None and read.isdisjoint(passed):
            check_query(metric, template.query)
    if part.adds_up and (metric is None or metric.adds != "everywhere"):
        raise NotAdditive(part.metric, _instead(part.metric, question))
    if question.needs_total and not _has_total(metric, part.dimensions):
        word = "other" if question.other else "check"
        raise NotAdditive(part.metric, f'query("{part.metric}", by={list(question.by)}) without {word}=True')


def _has_total(metric: Metric | None, dimensions: Sequence[str]) -> bool:
    """Whether the rows by *dimensions* add up to the answer without them."""
    if metric is None or metric.kinds != "plain" or any(field.combines is None for field in metric.fields):
        return False
    return metric.adds == "everywhere" or (metric.adds == "over games" and {GAME_ID, STUDIO_ID}.issuperset(dimensions))


def _is_per_game(metric: Metric | None) -> bool:
    return metric is not None and metric.kinds != "plain"


def _instead(name: str, question: QuerySpec) -> str:
    by = f", by={list(question.by)}" if question.by else ""
    return (
        f'query("{name}"{by}, every="{question.every}") with a Client(max_days=...) that does not cut it, '
        'or every="day", "week" or "month", one number for each'
    )
