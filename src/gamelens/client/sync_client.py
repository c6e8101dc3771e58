"""The face of the client for scripts and notebooks: `Client`.

It hands its questions to the background loop (`loop`) and waits there, as `AsyncClient` does in its own way; both have
the same methods with the same arguments. What they are made of is in `faces`, what they share in `core`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gamelens.client.async_client import AsyncClient
from gamelens.client.base_client import Asking, BaseClient
from gamelens.client.query.arguments import Names, Where, as_names, cohorts_of, optional_names, question_of, terms_of
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.query.progress import Bar, Progress
from gamelens.client.query.query_spec import FrameKind, OnError
from gamelens.client.tables.time_ranges import TimeRange, WhenUnavailable
from gamelens.wire.intervals import Granularity, Interval

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["AsyncClient", "Client"]

Method = TypeVar("Method", bound=Callable[..., Any])


def _documented(method: Method) -> Method:
    """Give a method of `Client` the words of the same method of `AsyncClient`."""
    method.__doc__ = getattr(AsyncClient, method.__name__).__doc__
    return method


class Client(BaseClient):
    """Asks a metrics service, from scripts and notebooks.

    Args:
        api_key: the organisation's key; else GAMELENS_API_KEY, the config file, or keyring where that is installed.
        metrics_url: the address; else GAMELENS_METRICS_URL, the config file, or the real service.
        cache: whether answers are kept on disk, in the user's cache folder (GAMELENS_CACHE_DIR) or the one named.
            Buckets that ended two days before the end of what was available then are never asked for again, newer ones
            once an hour.
        pace: "guaranteed" keeps to 5 requests a second and 5 at a time; "adaptive" tries more, and falls back.
        max_days: days that go into one request. None: 31 at day granularity and no limit elsewhere, as the service
            has it.
        max_wait_s: how long one request may spend on retries; a Retry-After beyond it is not waited for.
        refresh_s: how long the available interval, the lists and buckets that may still move are remembered.
        progress: a bar for what takes longer than two seconds: never, always, or (None) where somebody watches.
        record: a folder that gets what the service answers, as JSON; the cache is not used then.
        replay: such a folder, which answers in place of the service: no key, no address, no network.
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
            self._loop.run(self._core.service.aclose())

    @_documented
    def available(self) -> Interval:
        """As `AsyncClient.available`."""
        return self._loop.run(self._core.service.available())

    @_documented
    def metrics(self) -> list[str]:
        """As `AsyncClient.metrics`."""
        return self._loop.run(self._core.service.metrics())

    @_documented
    def dimensions(self) -> list[str]:
        """As `AsyncClient.dimensions`."""
        return self._loop.run(self._core.service.dimensions())

    @_documented
    def dimension_values(
        self, dimension: str, *, over: TimeRange, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """As `AsyncClient.dimension_values`."""
        return self._loop.run(
            self._core.dimension_values(dimension, over, as_names("studios", studios), as_names("games", games))
        )

    @_documented
    def studios(self, *, over: TimeRange) -> DataFrame:
        """As `AsyncClient.studios`."""
        return self._loop.run(self._core.studios(over))

    @_documented
    def games(self, *, over: TimeRange, studios: Names | None = None) -> DataFrame:
        """As `AsyncClient.games`."""
        return self._loop.run(self._core.games(over, optional_names("studios", studios)))

    @_documented
    def query(
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
        """As `AsyncClient.query`."""
        question = question_of(metric, by, every, where, top, games, studios, since_days_ago, other, check)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return self._ask(lambda counted: self._core.query(question, terms, counted), progress)

    @_documented
    def plan(
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
        """As `AsyncClient.plan`."""
        question = question_of(metric, by, every, where, top, games, studios, since_days_ago, other, check)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return self._loop.run(self._core.plan(question, terms))

    @_documented
    def retention(
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
        """As `AsyncClient.retention`."""
        cohorts = cohorts_of(days, by, where, games, studios)
        terms = terms_of(over, when_unavailable, deadline_s, on_error, to)
        return self._ask(lambda counted: self._core.retention(cohorts, terms, counted), progress)

    @_documented
    def resume(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """As `AsyncClient.resume`."""
        terms = terms_of("", "raise", deadline_s, on_error, "pandas")
        return self._ask(lambda counted: self._core.resume(frame, terms, counted), progress)

    @_documented
    def refresh(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """As `AsyncClient.refresh`."""
        terms = terms_of("", "raise", deadline_s, on_error, "pandas")
        return self._ask(lambda counted: self._core.refresh(frame, terms, counted), progress)

    @_documented
    def restatements(self, metric: str | None = None) -> DataFrame:
        """As `AsyncClient.restatements`."""
        return self._loop.run(self._core.restatements(metric))

    def _ask(self, ask: Asking, shown: bool | None) -> DataFrame:
        counted = Progress()
        bar = Bar(counted, wanted=self._progress if shown is None else shown)
        try:
            answered = self._loop.run(ask(counted), on_tick=bar.draw)
        finally:
            bar.close()
        return self._core.say(answered)
