"""Queries, their execution options and the requests they take, as frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, TypeVar

import msgspec

from gamelens.client.tables.time_ranges import BucketSlice, TimeRange, WhenUnavailable, request_runs
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import GRANULARITIES, Granularity, Interval, bucket_start
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import MetricQuery, encode_query

OnError = Literal["raise", "gaps"]
FrameKind = Literal["pandas", "arrow", "polars"]
Word = TypeVar("Word", bound=str)

GAME_ID: Final = "game_id"
STUDIO_ID: Final = "studio_id"
IDS: Final = {"game": GAME_ID, "studio": STUDIO_ID}
"""Column of ids for each name in `by` that adds a column of titles."""
FixedValue = tuple[str, str | None]
"""A dimension and the value that a request of a fan-out is narrowed to."""


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a query for rows, without its time range.

    Attributes:
        metrics: names, none twice.
        by: dimensions as typed, `game` and `studio` among them.
        every: the granularity.
        where: the filter; None for all events.
        top: rows to keep of each bucket, largest first; None for all.
        games, studios: ids to narrow to; None for all.
        since_days_ago: days since install, for the metrics that need it.
        other: whether each bucket gets a row of what *top* leaves out.
        check: whether the rows are compared with the answer that has no dimensions.

    Raises:
        BadQuery: no metric, a dimension twice, or *top* without a dimension.
    """

    metrics: tuple[str, ...]
    by: tuple[str, ...] = ()
    every: Granularity = "day"
    where: Filter | None = None
    top: int | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None
    since_days_ago: int | None = None
    other: bool = False
    check: bool = False

    def __post_init__(self) -> None:
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise BadQuery("metric", list(self.metrics), "must name at least one metric, and none twice")
        one_of("every", self.every, GRANULARITIES)
        if len(set(self.dimensions)) < len(self.dimensions):
            raise BadQuery("by", list(self.by), "must not name a dimension twice")
        if self.top is not None and not self.by:
            raise BadQuery("top", self.top, "needs a dimension in by")
        if self.top is not None and not (is_integer(self.top) and 1 <= self.top <= MAX_LIMIT):
            raise BadQuery("top", self.top, f"must be a whole number from 1 to {MAX_LIMIT}")
        if self.since_days_ago is not None and not (is_integer(self.since_days_ago) and self.since_days_ago >= 1):
            raise BadQuery("since_days_ago", self.since_days_ago, "must be a whole number of days, 1 or more")
        if self.other and self.top is None:
            raise BadQuery("other", self.other, "needs top: it adds what top leaves out")
        if self.check and self.top is not None:
            raise BadQuery("check", self.check, "needs all values: leave top away")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions under the names of their columns."""
        return tuple(IDS.get(name, name) for name in self.by)

    @property
    def titled(self) -> tuple[str, ...]:
        """The columns of ids that get a column of titles beside them."""
        return tuple(IDS[name] for name in self.by if name in IDS)

    @property
    def needs_total(self) -> bool:
        """Whether the answer without dimensions is needed besides the rows."""
        return bool(self.by) and (self.other or self.check)


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a query is executed with.

    Attributes:
        over: the time range.
        when_unavailable: "raise", "clip" or "wait" where part of *over* is not available.
        on_error: "raise" or "gaps" where a request fails for good.
        deadline_s: seconds for everything; None is no limit.
        to: the kind of frame.
    """

    over: TimeRange
    when_unavailable: WhenUnavailable = "raise"
    on_error: OnError = "raise"
    deadline_s: float | None = None
    to: FrameKind = "pandas"


class RetentionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a query for retention: the cohorts to follow, and to which ages.

    Attributes:
        ages: days since install, each 1 or more, none twice.
        by: dimensions as typed.
        where: the filter of install events; None for all.
        games, studios: ids to narrow to; None for all.

    Raises:
        BadQuery: no age, one below 1, or one twice.
    """

    ages: tuple[int, ...]
    by: tuple[str, ...] = ()
    where: Filter | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.ages or len(set(self.ages)) < len(self.ages):
            raise BadQuery("days", list(self.ages), "must name at least one age, and none twice")
        for age in self.ages:
            if not is_integer(age) or age < 1:
                raise BadQuery("days", age, "must be whole numbers of days after install, 1 or more")

    def metric_spec(self, metric: str, *, by: tuple[str, ...] | None = None, age: int | None = None) -> QuerySpec:
        """Return the query for *metric* about the same cohorts."""
        return QuerySpec(
            metrics=(metric,),
            by=self.by if by is None else by,
            where=self.where,
            games=self.games,
            studios=self.studios,
            since_days_ago=age,
        )


class RequestTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its interval.

    Attributes:
        metric: the metric it is for.
        query: the body, with the interval of the first run.
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
        body = {
            name: value for name, value in msgspec.json.decode(encode_query(self.query)).items() if name != "interval"
        }
        for name in ("games", "studios"):
            if name in body:
                body[name] = sorted(set(body[name]))
        return msgspec.json.encode(body, order="deterministic").decode()


class MetricPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests for one metric: each of *templates* over all of *slices*.

    Attributes:
        metric: its name.
        templates: requests without their interval, one for each combination of fanned-out values.
        slices: bucket slices of the time range, ascending.
        every: the granularity.
        max_days: most days of one request; None for the limit of the service.
        dimensions: columns of the rows, in the order of the frame.
        labels: those of them that follow from the game.
        pools_games: whether the rows of all games are summed, because the game is not among the dimensions.
        adds_up: whether two slices lie in one bucket, so that their rows are summed.
        limit: most values of one answer; None where the kind of query has no limit.
        top: rows to keep of each bucket; None for all.
        total: the plan without dimensions that `other` and `check` need.
        parts: of an alias, which has no templates of its own, the plans of the metrics it is made of.
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
    total: MetricPlan | None = None
    parts: tuple[MetricPlan, ...] = ()

    @property
    def fans_out_games(self) -> bool:
        """Whether there is a request for each game."""
        return any(name == GAME_ID for template in self.templates[:1] for name, _ in template.fixed)

    @property
    def sources(self) -> tuple[MetricPlan, ...]:
        """The plans with its requests: those of its parts, or itself."""
        return self.parts or (self,)

    @property
    def starts(self) -> tuple[datetime, ...]:
        """The timestamps of its buckets, ascending."""
        slices = self.slices[:1] if self.every == "all" else self.slices
        return tuple(dict.fromkeys(slice_.bucket_start for slice_ in slices))

    def start_of(self, moment: datetime) -> datetime:
        """Return the timestamp of its bucket that holds *moment*."""
        return self.starts[0] if self.every == "all" else bucket_start(moment, self.every)

    def runs(self, slices: Sequence[BucketSlice]) -> list[tuple[BucketSlice, ...]]:
        """Group *slices* into runs of one request each."""
        return request_runs(slices, self.every, self.max_days)


def is_integer(number: object) -> bool:
    """Return whether *number* is an int, which True and 3.0 are not."""
    return isinstance(number, int) and not isinstance(number, bool)


def one_of(field: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return the word of *allowed* that equals *value*, the argument *field*.

    Raises:
        BadQuery: *value* is not allowed.
    """
    for word in allowed:
        if value == word:
            return word
    raise BadQuery(field, value, "is not allowed", allowed)
