"""The two faces of the client: `Client` for scripts and notebooks, `AsyncClient` for those who await.

Both hand their questions to the background loop (`loop`) and wait there in their own way; they have the same methods
with the same arguments.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gamelens.catalog import DIMENSIONS
from gamelens.client import asking
from gamelens.client.asking import Inquiry, within
from gamelens.client.frames import games_frame, studios_frame
from gamelens.client.loop import shared_loop
from gamelens.client.pacing import shared_budget
from gamelens.client.planning import Question, filter_of, names
from gamelens.client.receipts import KEY
from gamelens.client.retention import Cohorts, retention
from gamelens.client.service import MetricsService
from gamelens.client.settings import metrics_settings
from gamelens.client.spans import Over, WhenUnavailable, check_when
from gamelens.client.transport import HttpPool, Transport
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, WireFilter
from gamelens.wire.intervals import Granularity, Interval

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

Names = str | Iterable[str]
Where = Filter | WireFilter


class _Core:
    """What both faces share; its coroutines run on the background loop."""

    def __init__(self, service: MetricsService, *, max_days: int | None) -> None:
        self.service = service
        self.max_days = max_days
        self._said: set[str] = set()

    async def dimension_values(
        self, dimension: str, over: Over, studios: Names | None, games: Names | None
    ) -> list[str]:
        await self.service.list_strange("by", (dimension,), DIMENSIONS)
        kept = (await self.service.settle(over, "raise")).kept
        return await self.service.dimension_values(dimension, kept, studios=names(studios), games=names(games))

    async def studios(self, over: Over) -> DataFrame:
        kept = (await self.service.settle(over, "raise")).kept
        return studios_frame(await self.service.studios(kept))

    async def games(self, over: Over, studios: Names | None) -> DataFrame:
        kept = (await self.service.settle(over, "raise")).kept
        return games_frame(await self.service.games(kept, _optional(studios)))

    async def query(self, question: Question, over: Over, when: WhenUnavailable, deadline_s: float | None) -> DataFrame:
        inquiry = Inquiry(self.service, over=over, when=check_when(when), deadline_s=deadline_s)
        return await within(deadline_s, asking.query(inquiry, question, max_days=self.max_days))

    async def retention(
        self, cohorts: Cohorts, over: Over, when: WhenUnavailable, deadline_s: float | None
    ) -> DataFrame:
        inquiry = Inquiry(self.service, over=over, when=check_when(when), deadline_s=deadline_s)
        return await within(deadline_s, retention(inquiry, cohorts, max_days=self.max_days))

    def say(self, frame: DataFrame) -> DataFrame:
        """Warn of what the receipt warns of, each thing once."""
        for text in frame.attrs[KEY]["warnings"]:
            if text not in self._said:
                self._said.add(text)
                warnings.warn(text, UserWarning, stacklevel=3)
        return frame


class _Face:
    """What a client is made of, and how it lets go."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        metrics_url: str | None = None,
        max_days: int | None = None,
        max_wait_s: float = 60.0,
        refresh_s: float = 3600.0,
        transport: HttpPool | None = None,
    ) -> None:
        if max_days is not None and max_days < 1:
            raise BadQuery("max_days", max_days, "must be 1 or more, or None")
        settings = metrics_settings(api_key=api_key, metrics_url=metrics_url)
        self._address = settings.metrics_url
        self._loop = shared_loop()
        service = MetricsService(
            Transport(
                settings.metrics_url,
                key=settings.api_key,
                budget=shared_budget(settings.metrics_url, settings.api_key.fingerprint),
                max_wait_s=max_wait_s,
                pool=transport,
            ),
            refresh_s=refresh_s,
        )
        self._core = _Core(service, max_days=max_days)
        # A notebook seldom closes anything: the connections go with the last reference.
        self._closing = weakref.finalize(self, _close, service)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"


class AsyncClient(_Face):
    """As `Client`, its methods awaited, on any event loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the client is of no use afterwards."""
        if self._closing.detach():
            await self._loop.wait_async(self._core.service.aclose())

    async def available(self) -> Interval:
        """The interval the service can answer for, asked once every *refresh_s* (Metrics, Endpoints)."""
        return await self._loop.wait_async(self._core.service.available())

    async def metrics(self) -> list[str]:
        """Names of the metrics the service has."""
        return await self._loop.wait_async(self._core.service.metrics())

    async def dimensions(self) -> list[str]:
        """Names of the dimensions the service has."""
        return await self._loop.wait_async(self._core.service.dimensions())

    async def dimension_values(
        self, dimension: str, *, over: Over, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """Values of *dimension* sent during *over*, in code point order, never null.

        Raises:
            BadQuery: no such dimension.
            Truncated: there are more than 30000.
        """
        return await self._loop.wait_async(self._core.dimension_values(dimension, over, studios, games))

    async def studios(self, *, over: Over) -> DataFrame:
        """Studios that sent data during *over*. Columns: studio_id, studio (str)."""
        return await self._loop.wait_async(self._core.studios(over))

    async def games(self, *, over: Over, studios: Names | None = None) -> DataFrame:
        """Games that sent data during *over*, of all studios or of those named by id.

        Columns: game_id, game (the title), studio_id, studio (str).
        """
        return await self._loop.wait_async(self._core.games(over, studios))

    async def query(
        self,
        metric: Names,
        *,
        by: Names | None = None,
        over: Over,
        every: Granularity = "day",
        where: Where | None = None,
        top: int | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
        since_days_ago: int | None = None,
    ) -> DataFrame:
        """A metric, or several side by side, over time and by at most two dimensions.

        Columns: timestamp (datetime64[us, UTC], start of the bucket), the dimensions (category, null kept; `game`
        gives `game_id` and the title), the metric's fields (counts Int64; money, means and shares float64). Rows as
        the service orders them. `df.attrs["gamelens"]` is the receipt.

        A metric that only exists per game (conversion, conversion_ft, installs_ratio, returning_users,
        retention_retro) is asked by game: its rows carry `game_id` besides, also when *by* does not name it, there is
        a row only where something happened, and *top* does not apply. Several metrics meet on timestamp and
        dimensions; a field two of them have is prefixed with its metric, and is null where the metric has no such row.

        Args:
            metric: a name or several.
            by: none, one or two dimensions.
            over: "last 30 complete days" (weeks, months), a date, a pair of dates (both days in), an `Interval`, or an
                ISO 8601 interval whose end is not in.
            every: day, week (from Monday), month, or all for one number.
            where: an expression of `dim`, or the service's own filter object.
            top: the largest of each bucket; None means all. Needs one dimension.
            games: ids to narrow to.
            studios: ids to narrow to.
            when_unavailable: "raise", "clip" to what is there, or "wait" for it.
            deadline_s: for everything, waiting included.
            since_days_ago: days since install, for returning_users and retention_retro.

        Raises:
            NotYetAvailable: part of *over* is not available; says what is.
            BadQuery: a name or value that does not exist, with the nearest that does.
            NotAdditive: *max_days* cuts a bucket whose pieces cannot be added up.
            Truncated: more values than the service gives.
            AuthError, RateLimited, ServiceError, Unreachable: see `gamelens.errors`.
        """
        question = _question(metric, by, every, where, top, games, studios, since_days_ago)
        frame = await self._loop.wait_async(self._core.query(question, over, when_unavailable, deadline_s))
        return self._core.say(frame)

    async def retention(
        self,
        days: int | Iterable[int],
        *,
        over: Over,
        by: Names | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        where: Where | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
    ) -> DataFrame:
        """Share of the players installed on each day of *over* who come back *days* after (Metrics, Result shapes 5).

        Columns: timestamp (datetime64[us, UTC], the install day), age (Int64, days), the split (category), retention
        (float64; 0 where nobody came back, NA where the day has not come), installs (Int64), returned (Int64, NA
        likewise). One row for each install day, age and value with installs. Games are pooled, weighted by installs,
        unless *by* is or holds `game` or `game_id`. Splits and filters use the install event's values.

        Raises:
            NotYetAvailable: part of *over* is not available; an age beyond it is no error.
            BadQuery: an age below 1; a dimension that players do not have.
        """
        cohorts = _cohorts(days, by, where, games, studios)
        frame = await self._loop.wait_async(self._core.retention(cohorts, over, when_unavailable, deadline_s))
        return self._core.say(frame)


def _documented(method: Method) -> Method:
    """Give a method of `Client` the words of the same method of `AsyncClient`."""
    method.__doc__ = getattr(AsyncClient, method.__name__).__doc__
    return method


class Client(_Face):
    """Asks a metrics service, from scripts and notebooks.

    Args:
        api_key: the organisation's key; else GAMELENS_API_KEY, else the config file.
        metrics_url: the address; else GAMELENS_METRICS_URL, else the config file, else the real service.
        max_days: days that go into one request. None: 31 at day granularity and no limit elsewhere, as the service
            has it.
        max_wait_s: how long one request may spend on retries; a Retry-After beyond it is not waited for.
        refresh_s: how long the available interval and the lists are remembered.
        transport: carries requests in place of the network, such as `httpx.ASGITransport(app)`.

    Raises:
        AuthError: no key anywhere.
        BadQuery: the address is none.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client is of no use afterwards."""
        if self._closing.detach():
            self._loop.wait(self._core.service.aclose())

    @_documented
    def available(self) -> Interval:
        """As `AsyncClient.available`."""
        return self._loop.wait(self._core.service.available())

    @_documented
    def metrics(self) -> list[str]:
        """As `AsyncClient.metrics`."""
        return self._loop.wait(self._core.service.metrics())

    @_documented
    def dimensions(self) -> list[str]:
        """As `AsyncClient.dimensions`."""
        return self._loop.wait(self._core.service.dimensions())

    @_documented
    def dimension_values(
        self, dimension: str, *, over: Over, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """As `AsyncClient.dimension_values`."""
        return self._loop.wait(self._core.dimension_values(dimension, over, studios, games))

    @_documented
    def studios(self, *, over: Over) -> DataFrame:
        """As `AsyncClient.studios`."""
        return self._loop.wait(self._core.studios(over))

    @_documented
    def games(self, *, over: Over, studios: Names | None = None) -> DataFrame:
        """As `AsyncClient.games`."""
        return self._loop.wait(self._core.games(over, studios))

    @_documented
    def query(
        self,
        metric: Names,
        *,
        by: Names | None = None,
        over: Over,
        every: Granularity = "day",
        where: Where | None = None,
        top: int | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
        since_days_ago: int | None = None,
    ) -> DataFrame:
        """As `AsyncClient.query`."""
        question = _question(metric, by, every, where, top, games, studios, since_days_ago)
        frame = self._loop.wait(self._core.query(question, over, when_unavailable, deadline_s))
        return self._core.say(frame)

    @_documented
    def retention(
        self,
        days: int | Iterable[int],
        *,
        over: Over,
        by: Names | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        where: Where | None = None,
        when_unavailable: WhenUnavailable = "raise",
        deadline_s: float | None = None,
    ) -> DataFrame:
        """As `AsyncClient.retention`."""
        cohorts = _cohorts(days, by, where, games, studios)
        frame = self._loop.wait(self._core.retention(cohorts, over, when_unavailable, deadline_s))
        return self._core.say(frame)


def _question(
    metric: Names,
    by: Names | None,
    every: Granularity,
    where: Where | None,
    top: int | None,
    games: Names | None,
    studios: Names | None,
    since_days_ago: int | None,
) -> Question:
    return Question(
        metrics=names(metric),
        by=names(by),
        every=every,
        where=filter_of(where),
        top=top,
        games=_optional(games),
        studios=_optional(studios),
        since_days_ago=since_days_ago,
    )


def _cohorts(
    days: int | Iterable[int], by: Names | None, where: Where | None, games: Names | None, studios: Names | None
) -> Cohorts:
    return Cohorts(
        ages=(days,) if isinstance(days, int) else tuple(days),
        by=names(by),
        where=filter_of(where),
        games=_optional(games),
        studios=_optional(studios),
    )


def _optional(given: Names | None) -> tuple[str, ...] | None:
    return None if given is None else names(given)


def _close(service: MetricsService) -> None:
    """Let the loop close the connections of a client that is gone, without waiting for it."""
    shared_loop().hand_over(service.aclose())
