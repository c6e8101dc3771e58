"""Queries as frozen values: what is asked, and how it is to be executed."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from gamelens.client.tables.time_ranges import (
    TimeRange,
    WhenUnavailable,
)
from gamelens.errors import (
    BadQuery,
)
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import GRANULARITIES, Granularity
from gamelens.wire.limits import MAX_LIMIT

GAME_ID: Final = "game_id"
STUDIO_ID: Final = "studio_id"
IDS: Final = {"game": GAME_ID, "studio": STUDIO_ID}
"""The analyst's words, which get the title beside the id."""


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """What an analyst asks, everything but when.

    *by* holds the names as typed, `game` and `studio` among them. *other* adds what `top` leaves out, *check* compares
    with the answer that has no dimensions.

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
        if self.every not in GRANULARITIES:
            raise BadQuery("every", self.every, "is not allowed", GRANULARITIES)
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
        """The dimensions as columns are called."""
        return tuple(IDS.get(name, name) for name in self.by)

    @property
    def titled(self) -> tuple[str, ...]:
        """The columns of ids that get their titles beside them."""
        return tuple(IDS[name] for name in self.by if name in IDS)

    @property
    def needs_total(self) -> bool:
        """Whether a total is needed besides the rows."""
        return bool(self.by) and (self.other or self.check)


def is_integer(number: object) -> bool:
    """Whether *number* is an int, which True and 3.0 are not."""
    return isinstance(number, int) and not isinstance(number, bool)


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a question is to be answered: *over* when, what if it is not available or fails, in which form."""

    over: TimeRange
    when: WhenUnavailable = "raise"
    on_error: OnError = "raise"
    deadline_s: float | None = None
    to: FrameKind = "pandas"


class RetentionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who is followed, and to which ages.

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

    def question(self, metric: str, *, by: tuple[str, ...] | None = None, age: int | None = None) -> QuerySpec:
        """What is asked of *metric* about these cohorts."""
        return QuerySpec(
            metrics=(metric,),
            by=self.by if by is None else by,
            where=self.where,
            games=self.games,
            studios=self.studios,
            since_days_ago=age,
        )


OnError = Literal["raise", "gaps"]
FrameKind = Literal["pandas", "arrow", "polars"]
