"""A client of the metrics service: available interval, lists, and one request for rows.

The available interval and the lists change at most once an hour (Wire 2.4, Available interval), so their answers are
remembered for an hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote, unquote

import msgspec
import pyarrow as pa

from gamelens.catalog import METRICS, OTHER_NAMES, TITLES
from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.settings import portless
from gamelens.client.connection.transport import HttpRequest, HttpResponse, HttpSender, Params, RequestStats
from gamelens.client.limits.deadline import Deadline
from gamelens.client.limits.rate_limit import Route
from gamelens.client.tables.answer_members import member_notes
from gamelens.client.tables.answer_reading import id_text
from gamelens.client.tables.filter_values import doubtful_values, unseen_value_text
from gamelens.client.tables.time_ranges import (
    ResolvedRange,
    TimeRange,
    WhenUnavailable,
    clip_to_available,
    resolve_range,
)
from gamelens.errors import BadQuery, GamelensError, NotYetAvailable, ServiceError, Truncated
from gamelens.receipts import Provenance
from gamelens.wire.filters import Filter
from gamelens.wire.intervals import Interval, MalformedInterval, start_and_duration
from gamelens.wire.limits import MAX_LIMIT
from gamelens.wire.queries import MetricQuery, encode_query
from gamelens.wire.results import Game, Studio, Values, decode_json

T = TypeVar("T")

BASE = "/metrics/v1"
_JSON = {"Accept": "application/json"}
_JSON_BOTH = {"Accept": "application/json", "Content-Type": "application/json"}
_LEAST_POLL_S = 0.2
_IDLE_REFRESHES = 2  # after which everything that the service had received at first is processed
_CHECK_S = 10.0  # for a list that only checks a filter
_EDITION = "x-data-edition"
_SCENARIO = "x-sandbox-scenario"
_DATED = "x-dated-by-arrival"
SANDBOX_HEADERS = (_EDITION, _SCENARIO, _DATED)
"""Headers of the available interval that only a sandbox sends."""
INTERVAL_PATH = f"{BASE}/interval"
_CLIENT_METHODS = {"retention": "lens.retention()"}


class GameListing(msgspec.Struct, frozen=True):
    """A game and its studio.

    *studio* is None if the service does not list the studio.

    Attributes:
        id, title: of the game.
        studio_id, studio: id and name of its studio.
    """

    id: str
    title: str
    studio_id: str
    studio: str | None


class ValueCheck(msgspec.Struct, frozen=True):
    """The check of a filter's values.

    Attributes:
        warnings: a text for each value that the service has never had.
        listed: dimensions whose values were requested for the check.
    """

    warnings: list[str]
    listed: list[str]


class ListedValues(msgspec.Struct, frozen=True):
    """The values of a dimension, and notes on what the service said beside them."""

    values: list[str]
    notes: list[str]

    def whole(self) -> list[str]:
        """Return the values in code point order.

        Raises:
            Truncated: the list is as long as the service's limit, so it may be incomplete.
        """
        if len(self.values) >= MAX_LIMIT:
            raise Truncated(MAX_LIMIT)
        return sorted(set(self.values))


class _ListedStudio(msgspec.Struct, frozen=True):
    """A studio as a service lists it, perhaps with a number as its id, perhaps without a name."""

    id: str | int | float
    name: str | None = None


class _ListedGame(msgspec.Struct, frozen=True):
    """A game as a service lists it, perhaps with a number as its id, perhaps without a title."""

    id: str | int | float
    title: str | None = None


class MetricsApi:
    """A client of one metrics service with one key.

    Args:
        transport: sends the requests.
        refresh_s: how long answers that change hourly are remembered.
        changes: whether the available interval can grow; False for a replay.
        clock, sleep: a monotonic clock and its sleep.

    Attributes:
        edition: the service's name for its current data; other data has another name. Without one it is "", or on this
            machine the address, where each port may be another service.
        provenance: the origin of the answers; a service that names an edition is a sandbox.
        dated_by_arrival: events that the service dates by their arrival, by reason, if it tells (Wire 4.1, Event time).
        last_available: the available interval of the latest answer, however old.
    """

    def __init__(
        self,
        transport: HttpSender,
        *,
        refresh_s: float = 3600.0,
        changes: bool = True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._refresh_s = refresh_s
        self._changes = changes
        self.edition = ""
        self.dated_by_arrival: dict[str, int] = {}
        self.provenance = transport.provenance
        self.last_available: Interval | None = None
        self._clock = clock
        self._sleep = sleep
        self._remembered: dict[object, tuple[float, Any]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def available(self) -> Interval:
        """Return the available interval. Wire 2.4, Available interval."""
        return await self._remember("available", self._fetch_available)

    async def metrics(self) -> list[str]:
        """Return the names of the metrics the service has."""
        return await self._remember("metrics", lambda: self._get("/metrics", list[str], route="metric list"))

    async def dimensions(self) -> list[str]:
        """Return the names of the dimensions the service has."""
        return await self._remember("dimensions", lambda: self._get("/dimensions", list[str]))

    async def dimension_values(
        self,
        dimension: str,
        interval: Interval,
        *,
        studios: Collection[str] = (),
        games: Collection[str] = (),
        tally: RequestStats | None = None,
        notes: list[str] | None = None,
    ) -> list[str]:
        """Return all values of *dimension* in *interval*, in code point order.

        *notes* gets a text for each thing that the service says beside them.

        Raises:
            Truncated: the list is as long as the service's limit, so it may be incomplete.
        """
        params = [("interval", start_and_duration(interval)), ("limit", str(MAX_LIMIT))]
        params += [("studios", studio) for studio in studios] + [("games", game) for game in games]
        path = f"/dimensions/{quote(dimension, safe='')}"

        async def fetch() -> ListedValues:
            beside: dict[str, Any] = {}
            answer = decode_json((await self._send(path, params, tally=tally)).body, Values, beside)
            beside |= {"dimension": answer.dimension} if answer.dimension != dimension else {}
            return ListedValues(answer.values, member_notes(f"the values of {dimension}", beside))

        answer = await self._remember(values_key(dimension, interval, studios, games), fetch)
        if notes is not None:
            notes += answer.notes
        return answer.whole()

    async def check_values(self, where: Filter, table: pa.Table, tally: RequestStats) -> ValueCheck:
        """Return what is wrong with the values in *where* that the rows of *table* do not prove.

        A list that cannot be had is not worth an error: the rows are there. It is requested only if no remembered one
        holds the values.
        """
        warnings: list[str] = []
        listed: list[str] = []
        for dimension, values in doubtful_values(where, table).items():
            if not self.needs_list(dimension, values):
                continue
            requests, available = tally.requests, await self.available()
            with contextlib.suppress(GamelensError):
                list_of_values = self.dimension_values(dimension, available, tally=tally, notes=warnings)
                known = await Deadline(_CHECK_S).run(list_of_values)
                unseen = [value for value in values if value not in known]
                warnings += [unseen_value_text(dimension, value, known, available) for value in unseen]
            listed += [dimension] if tally.requests > requests else []
        return ValueCheck(warnings, listed)

    def needs_list(self, dimension: str, values: Collection[str]) -> bool:
        """Return whether no remembered list of *dimension*, of any interval, holds *values*."""
        keys = [key for key in self._remembered if isinstance(key, tuple) and key[:2] == ("values", dimension)]
        lists = [answer.values for answer in map(self.remembered, keys) if answer is not None]
        return not {*values} <= {value for listed in lists for value in listed}

    def remembered(self, key: object) -> Any:
        """Return the remembered list with this key, or None if it is missing or too old."""
        fetched_at, answer = self._remembered.get(key, (None, None))
        return answer if fetched_at is not None and self._clock() - fetched_at < self._refresh_s else None

    async def studios(self, interval: Interval, tally: RequestStats | None = None) -> list[Studio]:
        """Return the studios that sent data in *interval*.

        A studio without a name is called by its id.
        """
        return await self._remember(studios_key(interval), lambda: self._fetch_studios(interval, tally))

    async def games(
        self, interval: Interval, studios: Collection[str] | None = None, tally: RequestStats | None = None
    ) -> list[GameListing]:
        """Return the games that sent data in *interval*.

        The service does not name the studio of a game, so there is one request for each studio. A game without a title
        is called by its id.
        """
        listed = await self.studios(interval, tally)
        ids = [studio.id for studio in listed] if studios is None else list(dict.fromkeys(studios))
        games_by_studio = await gather(self._games_of(studio, interval, tally) for studio in ids)
        return game_listings(listed, dict(zip(ids, games_by_studio, strict=True)))

    async def post_query(self, metric: str, query: MetricQuery, tally: RequestStats) -> bytes:
        """Send *query* and return the response body. Raises the errors of `Transport.send`."""
        is_retention = metric in METRICS and METRICS[metric].kinds == "retention"
        request = HttpRequest(
            method="POST",
            path=f"{BASE}/metrics/{quote(metric, safe='')}",
            headers=_JSON_BOTH,
            body=encode_query(query, granularity="day" if is_retention else None),
            subject=f"{metric} {start_and_duration(query.interval)}",
        )
        return (await self._transport.send(request, tally)).body

    async def resolve_range(
        self, over: TimeRange, when: WhenUnavailable, deadline_s: float | None = None, tally: RequestStats | None = None
    ) -> ResolvedRange:
        """Return the requested, available and covered interval of *over*.

        With "wait" the available interval is requested again whenever the last answer is too old, for *deadline_s* at
        most. With None it goes on as long as the interval grows: two refreshes without growth end it.

        Raises:
            NotYetAvailable: see `clip_to_available`; with "wait", not available at the deadline.
        """
        available = await self.available()
        requested = resolve_range(over, available)
        if when == "wait" and self._changes and requested.start >= available.start:
            available = await self._wait_for(requested, deadline_s, tally or RequestStats())
        return ResolvedRange(requested, available, clip_to_available(requested, available, when))

    async def unknown_names(
        self, field: Literal["metric", "by", "where"], names: Collection[str], known: Collection[str]
    ) -> list[str]:
        """Return the *names* that are not in *known* but that the service lists.

        *field* is the argument that holds them.

        Raises:
            BadQuery: the service does not list a name either; suggests the nearest one.
        """
        unknown = [name for name in names if name not in known]
        if not unknown:
            return []
        listed = await (self.metrics() if field == "metric" else self.dimensions())
        for name in unknown:
            if name not in listed:
                rule = "is not a metric" if field == "metric" else "is not a dimension"
                titles = TITLES.values() if field == "by" else ()
                raise unknown_name_error(field, name, rule, {*listed, *known, *titles})
        return unknown

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _wait_for(self, requested: Interval, deadline_s: float | None, tally: RequestStats) -> Interval:
        """Wait until *requested* is available and return the available interval."""
        began, idle, before = self._clock(), 0, None
        while requested not in (available := await self.available()):
            idle, before = idle + 1 if available == before else 0, available
            fetched_at, _ = self._remembered["available"]
            wait_s = max(fetched_at + self._refresh_s - self._clock(), _LEAST_POLL_S)
            is_last = idle == _IDLE_REFRESHES if deadline_s is None else self._clock() + wait_s > began + deadline_s
            if is_last:
                raise NotYetAvailable(requested, available, tried="wait")
            tally.note = (
                f"waiting until {requested.end:%Y-%m-%d %H:%M} is available; now it is {available.end:%Y-%m-%d %H:%M}"
            )
            await self._sleep(wait_s)
        tally.note = ""
        return available

    async def _games_of(self, studio: str, interval: Interval, tally: RequestStats | None) -> list[Game]:
        key = games_key(studio, interval)
        return await self._remember(key, lambda: self._fetch_games(studio, interval, tally))

    async def _fetch_studios(self, interval: Interval, tally: RequestStats | None) -> list[Studio]:
        listed = await self._get(
            "/studios", list[_ListedStudio], [("interval", start_and_duration(interval))], tally=tally
        )
        named = {id_text(studio.id): studio.name for studio in listed}
        return [Studio(id_, _name_or_id(named[id_], id_)) for id_ in sorted(named)]

    async def _fetch_games(self, studio: str, interval: Interval, tally: RequestStats | None) -> list[Game]:
        params = [("interval", start_and_duration(interval)), ("studios", studio)]
        listed = await self._get("/games", list[_ListedGame], params, tally=tally)
        titled = {id_text(game.id): game.title for game in listed}
        return [Game(id_, _name_or_id(titled[id_], id_)) for id_ in sorted(titled)]

    async def _fetch_available(self) -> Interval:
        """Request the available interval, and note the edition of the data and the provenance."""
        response = await self._send("/interval")
        text = decode_json(response.body, str)
        url = self._transport.provenance.url or ""
        self.edition = response.headers.get(_EDITION) or (url if portless(url) != url else "")
        self.provenance = answering_service(self._transport.provenance, response)
        self.dated_by_arrival = decode_json(response.headers.get(_DATED, "{}").encode("latin-1"), dict[str, int])
        try:
            self.last_available = Interval.parse(text)
            return self.last_available
        except MalformedInterval:
            raise ServiceError(200, f"{text!r} is not the expected interval") from None

    async def _get(
        self,
        path: str,
        kind: type[T],
        params: Params = (),
        *,
        route: Route = "other",
        tally: RequestStats | None = None,
    ) -> T:
        """Send a GET request and return the decoded answer."""
        return decode_json((await self._send(path, params, route=route, tally=tally)).body, kind)

    async def _send(
        self, path: str, params: Params = (), *, route: Route = "other", tally: RequestStats | None = None
    ) -> HttpResponse:
        days = dict(params).get("interval", "")
        subject = f"{unquote(path).removeprefix('/')} {days}".rstrip()
        request = HttpRequest(
            method="GET", path=BASE + path, params=params, headers=_JSON, route=route, subject=subject
        )
        return await self._transport.send(request, tally)

    async def _remember(self, key: object, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return the remembered answer if it is fresh, else what *fetch* returns.

        Concurrent callers share one request.
        """
        async with self._locks.setdefault(key, asyncio.Lock()):
            fetched_at, answer = self._remembered.get(key, (None, None))
            if fetched_at is None or self._clock() - fetched_at >= self._refresh_s:
                answer = await fetch()
                self._forget_stale()
                self._remembered[key] = (self._clock(), answer)
            return cast("T", answer)

    def _forget_stale(self) -> None:
        for key, (fetched_at, _) in list(self._remembered.items()):
            if self._clock() - fetched_at >= self._refresh_s:
                del self._remembered[key]
                if not self._locks[key].locked():
                    del self._locks[key]


def studios_key(interval: Interval) -> tuple[object, ...]:
    """Return the key under which the studios of *interval* are remembered."""
    return ("studios", interval)


def games_key(studio: str, interval: Interval) -> tuple[object, ...]:
    """Return the key under which the games of *studio* in *interval* are remembered."""
    return ("games", studio, interval)


def values_key(
    dimension: str, interval: Interval, studios: Iterable[str] = (), games: Iterable[str] = ()
) -> tuple[object, ...]:
    """Return the key under which the values of *dimension* in *interval* are remembered."""
    return ("values", dimension, interval, tuple(studios), tuple(games))


def game_listings(studios: Iterable[Studio], games: Mapping[str, Iterable[Game]]) -> list[GameListing]:
    """Return the *games* of each studio, with the names that *studios* have."""
    names = {studio.id: studio.name for studio in studios}
    return [
        GameListing(game.id, game.title, studio, names.get(studio)) for studio, sent in games.items() for game in sent
    ]


def unknown_name_error(field: str, name: str, rule: str, known: Collection[str]) -> BadQuery:
    """Return the error for an unknown *name*.

    If the client offers this metric as a method of its own, the error names the method.
    """
    method = _CLIENT_METHODS.get(name) if field == "metric" else None
    meant = OTHER_NAMES.get(name) if field == "metric" else None
    return BadQuery(field, name, rule, [method] if method else sorted(known), meant=meant if meant in known else None)


def answering_service(service: Provenance, response: HttpResponse) -> Provenance:
    """Return *service*, as a sandbox with its scenario if its available interval says so."""
    if service.kind != "real" or not any(name in response.headers for name in SANDBOX_HEADERS):
        return service
    scenario = unquote(response.headers.get(_SCENARIO, "")) or None
    return msgspec.structs.replace(service, kind="sandbox", scenario=scenario)


def _name_or_id(name: str | None, id_: str) -> str:
    return name if name is not None and name.strip() else id_
