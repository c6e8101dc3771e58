"""The requests for one metric of a query, without their intervals, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from gamelens.client.plans.query_spec import GAME_ID, STUDIO_ID
from gamelens.client.tables.time_ranges import BucketSlice, request_runs
from gamelens.wire.intervals import Granularity, Interval, bucket_start
from gamelens.wire.queries import MetricQuery, encode_query

FixedValue = tuple[str, str | None]
"""A dimension and the value that a request of a fan-out is narrowed to."""


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
        within: dimensions within whose values so many rows are kept.
        total: the plan without the other dimensions, which `other` and `check` need.
        rest: the dimension whose values beyond *top* further requests answer, where there is no total.
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
    within: tuple[str, ...] = ()
    total: MetricPlan | None = None
    rest: str | None = None
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
