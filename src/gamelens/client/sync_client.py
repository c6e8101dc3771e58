"""The client for scripts and notebooks: `Client`.

Its methods run on the background loop (`connection.event_loop`) and wait there. `AsyncClient` has the same methods with
the same arguments, which are declared here. Both are built by `base_client` and share `query.executor`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from gamelens.client.base_client import BaseClient, RunQuery
from gamelens.client.query.arguments import (
    Names,
    QueryArguments,
    Top,
    Where,
    as_names,
    execution_options,
    optional_names,
    query_arguments,
    retention_arguments,
)
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.query.progress import Bar, Progress
from gamelens.client.query.signatures import Fields, FrameKind, OnError, takes, typed
from gamelens.client.tables.time_ranges import TimeRange, WhenUnavailable
from gamelens.wire.intervals import Granularity, Interval

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


class Client(BaseClient):
    """A client of one metrics service, for scripts and notebooks.

    Args:
        api_key: the organisation's key; else GAMELENS_API_KEY, the config file, or keyring where that is installed.
        metrics_url: the address; else GAMELENS_METRICS_URL, the config file, or the real service.
        cache: whether answers are stored on disk, in the user's cache folder (GAMELENS_CACHE_DIR) or the one named.
            Buckets that ended two days before the end of the available interval are never requested again, newer
            ones once an hour.
        pace: "guaranteed" keeps to 5 requests a second and 5 at a time; "adaptive" tries more, and falls back.
        max_days: days that go into one request. None: 31 at day granularity and no limit elsewhere, as the service
            has it.
        max_wait_s: how long one request may take, with its retries and however slowly the answer comes; a Retry-After
            beyond it is not waited for.
        refresh_s: how long the available interval, the lists and buckets that may still change are remembered.
        max_answer_bytes: the largest answer that is read, as sent and as unpacked: 512 MiB.
        allow_http: whether the address may be plain http beyond this machine, where the key can be read on the way;
            else GAMELENS_ALLOW_HTTP=1 or the config file.
        when_unavailable: what `query`, `plan` and `retention` do where part of their time range is not available yet,
            unless a call says otherwise: "raise", "clip" it off, or "wait" for it.
        metrics: own metrics, by name a formula of metrics and numbers, {"ads_per_payer": "ad_impressions_count /
            paying_users"}, or a table with `formula`, `unit` and `title`. Those of the table [metrics] in the config
            file are added.
        progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.
        record: a folder for the answers of the service, as JSON; the cache is not used then.
        replay: such a folder, which answers in place of the service: no key, no address, no network.
        transport: carries requests in place of the network, such as `httpx.ASGITransport(app)`.

    Raises:
        AuthError: no key anywhere.
        BadQuery: the address or an option has a value that is not allowed, or a metric cannot be defined so.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, after which every call raises `Refused`."""
        self._loop.process.check()
        if self._closing.detach():
            self._wait(self._executor.service.aclose())

    def available(self) -> Interval:
        """Return the interval the service can answer for, requested once every *refresh_s*."""
        return self._wait(self._executor.service.available())

    def metrics(self) -> list[str]:
        """Return the names of the service's metrics."""
        return self._wait(self._executor.service.metrics())

    def dimensions(self) -> list[str]:
        """Return the names of the service's dimensions."""
        return self._wait(self._executor.service.dimensions())

    @typed
    def dimension_values(
        self, dimension: str, *, over: TimeRange | None = None, studios: Names | None = None, games: Names | None = None
    ) -> list[str]:
        """Return the values of *dimension* sent during *over*, in code point order, without null.

        *over* is the last 28 complete days, as far as they are available, unless it is given.

        Example: `lens.dimension_values("country_code")`

        Raises:
            BadQuery: no such dimension.
            Truncated: there are more than 30000.
        """
        return self._wait(
            self._executor.dimension_values(dimension, over, as_names("studios", studios), as_names("games", games))
        )

    @typed
    def studios(self, *, over: TimeRange | None = None) -> DataFrame:
        """Return the studios that sent data during *over*, else in the last 28 complete days.

        Columns: studio_id, studio (str).
        """
        return self._wait(self._executor.studios(over))

    @typed
    def games(self, *, over: TimeRange | None = None, studios: Names | None = None) -> DataFrame:
        """Return the games that sent data during *over*, of all studios or of those named.

        *over* is the last 28 complete days, as far as they are available, unless it is given.

        Columns: game_id, game (the title), studio_id, studio (str).
        """
        return self._wait(self._executor.games(over, optional_names("studios", studios)))

    @typed
    def query(
        self,
        metric: Names,
        *,
        by: Names | None = None,
        over: TimeRange,
        every: Granularity | None = None,
        where: Where | None = None,
        top: Top | None = None,
        games: Names | None = None,
        studios: Names | None = None,
        when_unavailable: WhenUnavailable | None = None,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        other: bool = False,
        check: bool = False,
        fields: Fields | None = None,
        sort: str | None = None,
        whole_buckets: bool = False,
        to: FrameKind = "pandas",
        progress: bool | None = None,
        since_days_ago: int | None = None,
    ) -> DataFrame:
        """Return a metric, or several side by side, over time and by any dimensions.

        Example: `lens.query("revenue", by=["game", "country_code"], over="last 28 complete days", top=5)`

        Columns: timestamp (datetime64[us, UTC], start of the bucket), the dimensions (category, null kept; `game` and
        `studio` give the id and the title beside it, `country` the code and the name), one column for each metric,
        called as it is (counts Int64; money, means and shares float64), and beside a mean or a share the parts that it
        is made of; `describe` names them.
        Rows as the service orders them: largest first in each bucket. `df.attrs["gamelens"]` is the receipt.

        One request carries two dimensions at most; more are fanned out over games or values, with as few requests as
        possible (`plan` says how many). A metric that only exists per game (conversion, conversion_ft, installs_ratio,
        returning_users) is requested by game; where *by* does not name the game, its parts are summed over games and
        its ratio is made from the sums. The rows of retention_retro have no parts: it is refused without its game.
        Several metrics are joined on timestamp and dimensions. Where one has no row, its counts and money are 0, its
        means and shares null. A value in *where* that the service has never had is a warning with the nearest one.

        Args:
            metric: a name, or several. An alias such as dau or arpdau is a metric too (`describe` has its definition).
            by: dimensions, `game`, `studio` and `country` among them.
            over: an interval, a date, or words: "last 7 complete days", yesterday, "month to date", "November 2026".
                Also "last 3 complete weeks", "last week", "last 7 days" with today in it, a pair of dates (both days
                included), an `Interval`; the end of an ISO 8601 interval is excluded. Words end with the available
                interval.
            every: size of a bucket: day, week (from Monday), month, or all for one number. None is a day, unless an
                alias is counted in another bucket, such as mau in months.
            where: an expression such as 'platform == "ios" and country_code in ["US", "NA"]'. The same as an expression
                of `dim`, or the service's own filter object, is taken too.
            top: only the largest rows of each bucket, or values of one dimension. {"country_code": 5} returns the five
                largest countries of each game, studio or other dimension in *by*. None is all.
            games: ids or titles to narrow to.
            studios: ids or names to narrow to.
            when_unavailable: where part of *over* is not available yet: "raise", "clip" it off, or "wait" for it. None
                is the client's own choice, "raise" unless it was made with another.
            deadline_s: seconds for everything, waiting included. None waits for data as long as the available interval
                grows, and for two refreshes in which it does not.
            on_error: where a request fails for good: "raise", or "gaps" for the other rows. The receipt lists the gaps.
            other: with *top*, a row `(other)` for the rest of each bucket. Of players and other numbers that do not add
                up it takes one more request, for one bucket, or one for each game or studio that *top* ranks within.
            check: compare the rows with the service's own total, and warn of any difference.
            fields: "all" adds whatever else the service sent, such as `revenue_event_count`, the number of purchases.
                None is one column for each metric, and the parts of a mean or ratio beside it.
            sort: column by which all rows are ordered, largest first. None is the order of the service, by time and in
                each bucket by the first metric; `timestamp` has the newest first.
            whole_buckets: leave out a first and a last bucket that is covered only in part.
            to: "pandas"; "arrow" for a `pyarrow.Table` of the same columns, with the receipt in its metadata; "polars".
            progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.
            since_days_ago: days since install, for returning_users and retention_retro.

        Raises:
            NotYetAvailable: part of *over* is not available; the error holds the available interval.
            BadQuery: a name or value that does not exist, with the nearest that does.
            NotAdditive: *max_days* cuts a bucket whose parts cannot be added up; *other* or *check* without a total;
                retention_retro without its game.
            Truncated: more values than the service gives.
            PartialResult: some requests failed; holds the frame of the others.
            AuthError, RateLimited, ServiceError, Unreachable: see `gamelens.errors`.
        """
        return self._query(query_arguments(locals(), self.metric_catalog))

    @takes(query, lambda client, given: query_arguments(given, client.metric_catalog))
    def plan(self, arguments: QueryArguments) -> Plan:
        """Return what `query` with the same arguments would cost, without sending its requests.

        Example: `lens.plan("revenue", by="country_code", over="last 90 complete days")`

        Only the available interval is requested, once an hour. The plan has `requests`, `seconds`, `cached_share`,
        `pieces` and `clipped`, and prints as a small table. The number of values of a fan-out, or of studios, is known
        only after a list has been requested: `guessed` names the dimensions for which the plan uses an estimate.
        A value in *where* that turns out to have no rows costs one list more.

        Raises:
            NotYetAvailable, BadQuery, NotAdditive: as `query`.
        """
        return self._wait(self._executor.plan(arguments.spec, arguments.options))

    @typed
    def retention(
        self,
        days: int | Iterable[int],
        *,
        over: TimeRange,
        by: Names | None = None,
        every: Granularity = "day",
        games: Names | None = None,
        studios: Names | None = None,
        where: Where | None = None,
        when_unavailable: WhenUnavailable | None = None,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        to: FrameKind = "pandas",
        progress: bool | None = None,
    ) -> DataFrame:
        """Return the share of players installed on each day of *over*, or in each week, who come back *days* after.

        Example: `lens.retention([1, 7, 28], over="last 31 complete days", by="game")`

        Columns: timestamp (datetime64[us, UTC], the install day, or the start of its bucket), age (Int64, days), the
        split (category), retention (float64; 0 where no player came back, NA where the day has not come), installs
        (Int64), returned (Int64, NA likewise). One row for each bucket, age and value with installs. A week or month is
        NA until its last day has come; with every="all" the install days that are old enough count, and a warning says
        how many are left out. Games are pooled, weighted by installs, unless *by* is or holds `game` or `game_id`.
        Splits and filters use the install event's values (Wire 4.12, Retention).

        Args:
            days: ages in days after install, one or several.
            over: the install days; as in `query`.
            by: dimensions of the install event, `game` and `studio` among them.
            every: day; or week, month or all, which pool the installs of their days.
            games: ids or titles to narrow to.
            studios: ids or names to narrow to.
            where: as in `query`.
            when_unavailable: where part of *over* is not available yet: "raise", "clip" it off, or "wait" for it. None
                is the client's own choice, "raise" unless it was made with another.
            deadline_s: seconds for everything, waiting included.
            on_error: where a request fails for good: "raise", or "gaps": NA where an answer is missing. The receipt
                lists the gaps.
            to: "pandas", "arrow" or "polars"; as in `query`.
            progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.

        Raises:
            NotYetAvailable: part of *over* is not available; an age beyond it is not an error.
            BadQuery: an age below 1; a dimension that players do not have.
            PartialResult: some requests failed; holds the frame of the others, NA where a value is not known.
        """
        return self._query(retention_arguments(locals()))

    @typed
    def refresh(
        self,
        frame: DataFrame,
        *,
        deadline_s: float | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> DataFrame:
        """Return a new frame like *frame* with every row requested again.

        The receipt of the new frame lists under `restated` the buckets whose rows differ.

        Raises:
            BadQuery: *frame* has no receipt, or no longer the columns it was returned with.
        """
        options = execution_options({"deadline_s": deadline_s, "on_error": on_error})
        return self._draw(lambda counter: self._executor.refresh(frame, options, counter), progress)

    def restatements(self, metric: str | None = None) -> DataFrame:
        """Return how past buckets changed between the first and the latest request for them.

        Columns: metric, timestamp (datetime64[us, UTC], the bucket), by, field (str), before, after, moved (float64,
        over all rows of the bucket; NA where they cannot be added up), rows (Int64, how many changed), before_as_of,
        as_of (datetime64[us, UTC]).
        """
        return self._wait(self._executor.restatements(metric))

    def _query(self, arguments: QueryArguments) -> DataFrame:
        spec, options = arguments.spec, arguments.options
        return self._draw(lambda counter: self._executor.query(spec, options, counter), arguments.progress)

    def _draw(self, run: RunQuery, progress: bool | None) -> DataFrame:
        """Run a query, draw its bar and emit its warnings."""
        counter = Progress()
        bar = Bar(counter, wanted=self._progress if progress is None else progress)
        try:
            result = self._loop.run(run(counter), on_tick=bar.draw)
        finally:
            bar.close()
        return self._frame_of(result)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* on the background loop, and return its result."""
        result = self._loop.run(work)
        self._emit_notes()
        return result
