"""Queries as frozen values, and the options they are executed with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec

from gamelens.client.tables.time_ranges import TimeRange, WhenUnavailable
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord
from gamelens.wire.filters import Filter, wire_filter
from gamelens.wire.intervals import GRANULARITIES, Granularity
from gamelens.wire.limits import MAX_LIMIT

OnError = Literal["raise", "gaps"]
FrameKind = Literal["pandas", "arrow", "polars"]
Top = int | Mapping[str, int]
Word = TypeVar("Word", bound=str)

GAME_ID: Final = "game_id"
STUDIO_ID: Final = "studio_id"
MOST_DAYS: Final = 36_500
"""Days after install that can be asked for at most: a hundred years."""
IDS: Final = {"game": GAME_ID, "studio": STUDIO_ID}
"""Column of ids for each name in `by` that adds a column of titles."""


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a query for rows, without its time range.

    Attributes:
        metrics: names, none twice.
        by: dimensions as typed, `game` and `studio` among them.
        every: the granularity.
        where: the filter; None for all events.
        top: rows to keep of each bucket, largest first; None for all.
        top_of: the dimension of which so many values are kept within each value of the others, as typed; None for all.
        games, studios: ids to narrow to; None for all.
        since_days_ago: days since install, for the metrics that need it.
        other: whether what *top* leaves out is a row of each bucket.
        check: whether the rows are compared with the answer that has no dimensions.

    Raises:
        BadQuery: no metric, a dimension twice, or *top* without a dimension.
    """

    metrics: tuple[str, ...]
    by: tuple[str, ...] = ()
    every: Granularity = "day"
    where: Filter | None = None
    top: int | None = None
    top_of: str | None = None
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
            raise BadQuery("top", self.typed_top, "needs a dimension in by")
        if self.top is not None and not (is_integer(self.top) and 1 <= self.top <= MAX_LIMIT):
            raise BadQuery("top", self.typed_top, f"must be a whole number from 1 to {MAX_LIMIT}")
        if self.since_days_ago is not None and not (is_integer(self.since_days_ago) and self.since_days_ago >= 1):
            raise BadQuery("since_days_ago", self.since_days_ago, "must be a whole number of days, 1 or more")
        if self.other and self.top is None:
            raise BadQuery("other", self.other, "needs top: it adds what top leaves out")
        if self.check and self.top is not None:
            raise BadQuery("check", self.check, "needs all values: leave top away")

        if self.top_of is not None and self.top_of not in (*self.by, *self.dimensions):
            raise BadQuery("top", self.typed_top, "must name a dimension of by", self.by, name=self.top_of)

    @property
    def typed_top(self) -> int | dict[str, int] | None:
        """The argument *top* as it is typed."""
        return self.top if self.top_of is None or self.top is None else {self.top_of: self.top}

    @property
    def ranked(self) -> tuple[str, ...]:
        """The columns whose values *top* ranks: that of one dimension, or all."""
        return self.dimensions if self.top_of is None else (IDS.get(self.top_of, self.top_of),)

    @property
    def within(self) -> tuple[str, ...]:
        """The columns within whose values *top* ranks the other one."""
        return tuple(name for name in self.dimensions if name not in self.ranked)

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
        deadline_s: seconds for everything; None means no limit.
        to: the kind of frame.
        whole_buckets: the granularity of which only whole buckets are asked for; None for cut ones too.
    """

    over: TimeRange
    when_unavailable: WhenUnavailable = "raise"
    on_error: OnError = "raise"
    deadline_s: float | None = None
    to: FrameKind = "pandas"
    whole_buckets: Granularity | None = None


class RetentionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a query for retention: the cohorts to follow, and to which ages.

    Attributes:
        ages: days since install, each 1 to `MOST_DAYS`, none twice.
        by: dimensions as typed.
        where: the filter of install events; None for all.
        games, studios: ids to narrow to; None for all.

    Raises:
        BadQuery: no age, one outside the range, or one twice.
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
            if not is_integer(age) or not 1 <= age <= MOST_DAYS:
                raise BadQuery("days", age, f"must be whole numbers of days after install, 1 to {MOST_DAYS:,}")

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


def split_top(top: Top | None) -> tuple[int | None, str | None]:
    """Return the number of *top* and the dimension it is for, if it names one.

    Raises:
        BadQuery: it names none, or several.
    """
    if not isinstance(top, Mapping):
        return top, None
    if len(top) != 1 or None in top.values():
        raise BadQuery("top", dict(top), 'must be a number, or one dimension of by and a number as {"country_code": 5}')
    ((dimension, number),) = top.items()
    return number, str(dimension)


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


def query_record(spec: QuerySpec, over: TimeRange, **more: Any) -> QueryRecord:
    """Return the record of a query: the arguments as they were given, *over* as text."""
    return QueryRecord(
        metric=spec.metrics if len(spec.metrics) > 1 else spec.metrics[0],
        by=spec.by,
        over=over_text(over),
        every=spec.every,
        where=wire_filter(spec.where) if spec.where is not None else None,
        top=spec.typed_top,
        games=spec.games,
        studios=spec.studios,
        since_days_ago=spec.since_days_ago,
        other=spec.other,
        check=spec.check,
        **more,
    )


def over_text(over: TimeRange) -> str:
    """Return *over* as text, a pair of dates with "to" between them."""
    if isinstance(over, (tuple, list)):
        return " to ".join(str(day) for day in over)
    return str(over)
