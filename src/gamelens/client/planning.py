"""Which requests answer a question: the kind of query, the pieces of time, and what has to be put together after."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from gamelens.catalog import METRICS, Metric, check
from gamelens.client.spans import cut
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import Filter, dimensions_of, parse_filter
from gamelens.wire.intervals import GRANULARITIES, Granularity, Interval
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import Group, MetricQuery, Query, Split, Timeseries

GAME = "game"  # the analyst's word: the id and the title beside it
GAME_ID = "game_id"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What an analyst asks, everything but when.

    *by* holds the names as typed, `game` among them.

    Raises:
        BadQuery: no metric, a dimension twice, more than two dimensions, or *top* without exactly one.
    """

    metrics: tuple[str, ...]
    by: tuple[str, ...] = ()
    every: Granularity = "day"
    where: Filter | None = None
    top: int | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None
    since_days_ago: int | None = None

    def __post_init__(self) -> None:
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise BadQuery("metric", list(self.metrics), "must name at least one metric, and none twice")
        if self.every not in GRANULARITIES:
            raise BadQuery("every", self.every, "is not allowed", GRANULARITIES)
        if len(set(self.dimensions)) < len(self.dimensions):
            raise BadQuery("by", list(self.by), "must not name a dimension twice")
        if len(self.by) > 2:
            raise BadQuery("by", list(self.by), "must name at most two dimensions: ask again for each other one")
        if self.top is not None and len(self.by) != 1:
            raise BadQuery("top", self.top, "needs exactly one dimension in by")
        if self.top is not None and not 1 <= self.top <= MAX_LIMIT:
            raise BadQuery("top", self.top, f"must be 1 to {MAX_LIMIT}")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions as the service calls them."""
        return tuple(GAME_ID if name == GAME else name for name in self.by)

    @property
    def wants_titles(self) -> bool:
        """True when titles stand beside the game ids."""
        return GAME in self.by


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The requests for one metric: *dimensions* are those its rows carry, in the order of the frame's columns.

    *adds_up* when the answers share a bucket and must be added; *top* then cuts what came out.
    """

    metric: str
    queries: tuple[MetricQuery, ...]
    dimensions: tuple[str, ...]
    adds_up: bool
    limit: int | None
    top: int | None


def names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name or several as a tuple; None is none."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def filter_of(where: Filter | dict[str, object] | None) -> Filter | None:
    """*where* as a filter, from an expression of `dim` or the wire's own form."""
    return where if where is None or isinstance(where, Filter) else parse_filter(where)


def plan(question: Question, interval: Interval, *, max_days: int | None, passed: Collection[str] = ()) -> list[Part]:
    """The requests for each metric of *question*.

    A metric that only exists per game is asked by game, and its rows carry `game_id` besides; so do then the rows of
    all metrics asked together with it. *passed* are names the catalog does not know and the service does.

    Raises:
        BadQuery: nearest names for an unknown one; a kind the metric does not have.
        NotAdditive: the pieces would share a bucket and the metric cannot be added up.
    """
    known = [METRICS.get(name) for name in question.metrics]
    if question.since_days_ago is not None and not any(metric and metric.takes_since_days_ago for metric in known):
        raise BadQuery("since_days_ago", question.since_days_ago, f"does not apply to {', '.join(question.metrics)}")
    dimensions = question.dimensions
    if any(_is_per_game(metric) for metric in known) and GAME_ID not in dimensions:
        dimensions = (*dimensions, GAME_ID)
    return [_plan_metric(name, question, dimensions, interval, max_days, passed) for name in question.metrics]


def _plan_metric(
    name: str,
    question: Question,
    dimensions: tuple[str, ...],
    interval: Interval,
    max_days: int | None,
    passed: Collection[str],
) -> Part:
    metric = METRICS.get(name)
    pieces = cut(interval, question.every, max_days)
    adds_up = any(piece.shares_bucket for piece in pieces)
    asks_for_top = question.top if not adds_up else None
    query, split_by = _kind(metric, dimensions, asks_for_top)
    if question.top is not None and not isinstance(query, Group):
        raise BadQuery("top", question.top, f"does not apply to {name} by {', '.join(dimensions)}")
    queries = tuple(
        MetricQuery(
            interval=piece.interval,
            granularity=question.every,
            query=query,
            split_by=split_by,
            since_days_ago=question.since_days_ago if metric is None or metric.takes_since_days_ago else None,
            filter=question.where,
            games=question.games,
            studios=question.studios,
        )
        for piece in pieces
    )
    if metric is not None and not _reads_any(queries[0], passed):
        check(metric, queries[0])
    if adds_up and (metric is None or metric.adds != "everywhere"):
        raise NotAdditive(name, _instead(name, question))
    limit = query.limit if isinstance(query, Group) else None
    return Part(metric=name, queries=queries, dimensions=dimensions, adds_up=adds_up, limit=limit, top=question.top)


def _is_per_game(metric: Metric | None) -> bool:
    return metric is not None and metric.kinds != "plain"


def _kind(metric: Metric | None, dimensions: tuple[str, ...], top: int | None) -> tuple[Query | None, str | None]:
    """Query and split_by of a request: one of them."""
    if _is_per_game(metric):
        others = [name for name in dimensions if name != GAME_ID]
        if len(others) > 1:
            raise BadQuery(
                "by", others, f"must name one dimension besides the game: {metric and metric.name} exists per game"
            )
        return None, others[0] if others else GAME_ID
    if len(dimensions) > 2:
        raise BadQuery("by", list(dimensions), "must name at most two dimensions, the game counted")
    if not dimensions:
        return Timeseries(), None
    if len(dimensions) == 1:
        return Group(dimensions[0], MAX_LIMIT if top is None else top), None
    return Split((dimensions[0], dimensions[1])), None


def _reads_any(query: MetricQuery, passed: Collection[str]) -> bool:
    read = set(query.dimensions) | set(dimensions_of(query.filter) if query.filter is not None else ())
    return not read.isdisjoint(passed)


def _instead(name: str, question: Question) -> str:
    by = f", by={list(question.by)}" if question.by else ""
    return (
        f'query("{name}"{by}, every="{question.every}") with a Client(max_days=...) that does not cut it, '
        'or every="day", "week" or "month", one number for each'
    )
