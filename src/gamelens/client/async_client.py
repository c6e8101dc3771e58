"""The face of the client for those who await: `AsyncClient`, on any event loop, several at once if need be.

Its methods say what they do; `Client` has the same ones with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from gamelens.client.base_client import Asking, BaseClient
from gamelens.client.query.arguments import Names, Where, as_names, cohorts_of, optional_names, question_of, terms_of
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.query.progress import Bar, Progress
from gamelens.client.query.query_spec import FrameKind, OnError
from gamelens.client.tables.time_ranges import TimeRange, WhenUnavailable
from gamelens.wire.intervals import Granularity, Interval

if TYPE_CHECKING:
    from pandas import DataFrame


class AsyncClient(BaseClient):
    """As `Client`, its methods awaited, on any event loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the client is of no use afterwards."""
        if self._closing.detach():
            await self._loop.run_async(self._core.service.aclose())

    async def available(self) -> Interval:
        """The interval the service can answer for, asked once every *refresh_s* (Metrics, Endpoints)."""
        return await self._loop.run_async(self._core.service.available())

    async def metrics(self) -> list[str]:
        """Names of the metrics the service has."""
        return await self._loop.run_async(self._core.service.metrics())

    async def dimensions(self) -> list[str]:
        """Names of the dimensions the service has."""
        return await self._loop.run_async(self._core.service.dimensions())

    async def dimension_values(
        self, dimension: str, *, over: TimeRange, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """Values of *dimension* sent during *over*, in code point order, never null.

        Raises:
            BadQuery: no such dimension.
            Truncated: there are more than 30000.
        """
        return await self._loop.run_async(
            self._core.dimension_values(dimension, over, as_names("studios", studios), as_names("games", games))
        )

    async def studios(self, *, over: TimeRange) -> DataFrame:
        """Studios that sent data during *over*. Columns: studio_id, studio (str)."""
        return await self._loop.run_async(self._core.studios(over))

    async def games(self, *, over: TimeRange, studios: Names | None = None) -> DataFrame:
        """Games that sent data during *over*, of all studios or of those named by id.

        Columns: game_id, game (the title), studio_id, studio (str).
        """
        return await self._loop.run_async(self._core.games(over, optional_names("studios", studios)))

    async def query(
        self,
        metric: Names,
        *,
        by: Names | None = None,
        over: TimeRange,
        every: Granularity = "day",
        where: Where | None = None,
        top: int | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        other: bool = False,
        check: bool = False,
        to: FrameKind = "pandas",
        progress: bool | None = None,
        since_days_ago: int | None = None,
    ) -> DataFrame:
        """A metric, or several side by side, over time and by any dimensions.

        Columns: timestamp (datetime64[us, UTC], start of the bucket), the dimensions (category, null kept; `game` and
        `studio` give the id and the title beside it), the metric's fields (counts Int64; money, means and shares
        float64). Rows as the service orders them: largest first in each bucket. `df.attrs["gamelens"]` is the receipt.

        One request carries two dimensions at most; more are fanned out over games or values, as few requests as
        possible (`plan` says how many). A metric that only exists per game (conversion, conversion_ft, installs_ratio,
        returning_users, retention_retro) is asked by game: its rows carry `game_id` besides, also when *by* does not
        name it, and there is a row only where something happened. Several metrics meet on timestamp and dimensions; a
        field two of them have is prefixed with its metric, and is null where the metric has no such row.

        Args:
            metric: a name or several.
            by: dimensions, `game` and `studio` among them.
            over: "last 30 complete days" (weeks, months), a date, a pair of dates (both days in), an `Interval`, or an
                ISO 8601 interval whose end is not in.
            every: day, week (from Monday), month, or all for one number.
            where: an expression of `dim`, or the service's own filter object.
            top: the largest of each bucket; None means all.
            games: ids to narrow to.
            studios: ids to narrow to.
            when_unavailable: "raise", "clip" to what is there, or "wait" for it.
            deadline_s: for everything, waiting included.
            on_error: "raise" when a piece fails for good, or "gaps": the frame without it, and the receipt says so.
            other: add a row `(other)` to each bucket, of what *top* leaves out.
            check: compare the rows with the total that the service gives, and warn of any difference.
            to: "pandas"; "arrow" for a `pyarrow.Table` of the same columns, with the receipt in its metadata; "polars".
            progress: a bar for what takes longer than two seconds: never, always, or (None) where somebody watches.
            since_days_ago: days since install, for returning_users and retention_retro.

        Raises:
            NotYetAvailable: part of *over* is not available; says what is.
            BadQuery: a name or value that does not exist, with the nearest that does.
            NotAdditive: *max_days* cuts a bucket whose pieces cannot be added up; *other* or *check* without a total.
            Truncated: more values than the service gives.
            PartialResult: some pieces failed; holds what came.
            AuthError, RateLimited, ServiceError, Unreachable: see `gamelens.errors`.
        """
        question = question_of(metric, by, every, where, top, games, studios, since_days_ago, other, check)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return await self._ask_async(lambda counted: self._core.query(question, terms, counted), progress)

    async def plan(
        self,
        metric: Names,
        *,
        by: Names | None = None,
        over: TimeRange,
        every: Granularity = "day",
        where: Where | None = None,
        top: int | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        other: bool = False,
        check: bool = False,
        to: FrameKind = "pandas",
        progress: bool | None = None,
        since_days_ago: int | None = None,
    ) -> Plan:
        """What `query` with the same arguments would cost; nothing is sent but, once an hour, for what is available.

        The plan has `requests`, `seconds`, `cached_share`, `pieces` and `clipped`, and prints as a small table. How
        many values a fan-out goes over, or how many studios there are, is only known once a list has been asked for:
        what is then `guessed` is named.

        Raises:
            NotYetAvailable, BadQuery, NotAdditive: as `query`.
        """
        question = question_of(metric, by, every, where, top, games, studios, since_days_ago, other, check)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return await self._loop.run_async(self._core.plan(question, terms))

    async def retention(
        self,
        days: int | Iterable[int],
        *,
        over: TimeRange,
        by: Names | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        where: Where | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        to: FrameKind = "pandas",
        progress: bool | None = None,
    ) -> DataFrame:
        """Share of the players installed on each day of *over* who come back *days* after (Metrics, Result shapes 5).

        Columns: timestamp (datetime64[us, UTC], the install day), age (Int64, days), the split (category), retention
        (float64; 0 where nobody came back, NA where the day has not come), installs (Int64), returned (Int64, NA
        likewise). One row for each install day, age and value with installs. Games are pooled, weighted by installs,
        unless *by* is or holds `game` or `game_id`. Splits and filters use the install event's values.

        Raises:
            NotYetAvailable: part of *over* is not available; an age beyond it is no error.
            BadQuery: an age below 1; a dimension that players do not have.
            PartialResult: some pieces failed; holds what came, NA where it is not known.
        """
        cohorts = cohorts_of(days, by, where, games, studios)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return await self._ask_async(lambda counted: self._core.retention(cohorts, terms, counted), progress)

    async def resume(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """*frame* without its gaps: a new frame; only what is missing is asked for.

        Retention, and rows with `other` or `check`, are made of more than a frame holds: of them the cache has what
        came, and without a cache they are asked for again.

        Raises:
            BadQuery: *frame* has no receipt, or no longer the columns that came.
            PartialResult: a gap is still one; holds what came.
        """
        terms = terms_of("", "raise", deadline_s, on_error, "pandas")
        return await self._ask_async(lambda counted: self._core.resume(frame, terms, counted), progress)

    async def refresh(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """*frame* asked again, all of it: a new frame, whose receipt lists under `restated` what is otherwise now.

        Raises:
            BadQuery: *frame* has no receipt, or no longer the columns that came.
        """
        terms = terms_of("", "raise", deadline_s, on_error, "pandas")
        return await self._ask_async(lambda counted: self._core.refresh(frame, terms, counted), progress)

    async def restatements(self, metric: str | None = None) -> DataFrame:
        """What past buckets said first and say now, as far as they were asked for more than once.

        Columns: metric, timestamp (datetime64[us, UTC], the bucket), by, field (str), before, after, moved (float64,
        over all rows of the bucket; NA where they cannot be added up), rows (Int64, how many changed), before_as_of,
        as_of (datetime64[us, UTC]).
        """
        return await self._loop.run_async(self._core.restatements(metric))

    async def _ask_async(self, ask: Asking, shown: bool | None) -> DataFrame:
        counted = Progress()
        bar = Bar(counted, wanted=self._progress if shown is None else shown)
        try:
            answered = await self._loop.run_async(ask(counted), on_tick=bar.draw)
        finally:
            bar.close()
        return self._core.say(answered)
