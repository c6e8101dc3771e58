"""The metrics service as an ASGI app: key, rate limit, request, scope, then the engine.

Wire 2.1, Metrics addresses, has the routes. Any sequence of bytes ends in a value or in a refusal that names the
part to correct (Wire 2.5, Query body; Wire 2.11, Lists).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gamelens.catalog import DIMENSIONS, METRICS, Metric, check_query, metric_named
from gamelens.errors import BadQuery, RateLimited, Refused
from gamelens.sandbox.engines.engine import Engine, QueryStopped, SqlQuery
from gamelens.sandbox.http.openapi import METRICS_ADDRESS, metrics_description
from gamelens.sandbox.http.rate_limiter import NodeLimiters, RateLimits
from gamelens.sandbox.http.request_body import BODY_DEADLINE_S, BodyTooLarge, BodyTooSlow, ClientDisconnected, read_body
from gamelens.sandbox.http.responses import answer_json, on_bad_query, on_failure, on_wrong_address, refuse
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL, row_of
from gamelens.sandbox.metrics.sql_planner import compile_dimension_values, compile_query
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.tenants import Organisation, TenantDirectory
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.storage.manifest import LakeUnavailable
from gamelens.wire.dimensions import OfPlayer
from gamelens.wire.filters import dimensions_in
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import (
    BODY_BYTES,
    DEFAULT_LIMIT,
    MAX_BUCKETS,
    MAX_LIMIT,
    REFRESH_S,
    REQUESTS_AT_ONCE,
    REQUESTS_PER_SECOND,
)
from gamelens.wire.queries import Group, MetricQuery, Timeseries, decode_query
from gamelens.wire.results import Game, Row, Rows, Studio, Values, encode_answer

PLACES: Final = 6
"""Queries that run at the same time."""

_LACKING: Final = {"business": "purchases", "session_end": "session ends"}
"""Events that Event Data lacks, by category."""

_RETRY_S: Final = 5
_ALL_TIME: Final = Interval(datetime.min, datetime.max)

OrganisationHandler = Callable[[Request, Organisation], Awaitable[Response]]
T = TypeVar("T")


class UnreadableBody(Refused):
    """The body of a request is incomplete, too large, too slow or not JSON; the answer has this *status*."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class QueryPlaces:
    """Threads for queries, shared fairly by the organisations.

    Each query takes a thread and memory. Of the places an organisation takes half at most, so that its long queries
    leave room for others. A query that gets no place in time is refused, instead of waiting without an end.

    Args:
        places: number of queries that run at the same time.
        within_s: time within which a query must get its place.
    """

    def __init__(self, *, within_s: float, places: int = PLACES) -> None:
        self._within_s = within_s
        self._places = asyncio.Semaphore(places)
        half = max(1, places // 2)
        self._of_organisation: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(half))
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="query")

    async def run(self, organisation: str, work: Callable[[], T]) -> T:
        """Run *work* in a thread when *organisation* has a place, and return its result.

        Raises:
            QueryStopped: no place became free in time.
        """
        places, has_place = self._of_organisation[organisation], False
        try:
            async with asyncio.timeout(self._within_s):
                has_place = await places.acquire()
                await self._places.acquire()
        except BaseException as error:
            if has_place:
                places.release()
            if isinstance(error, TimeoutError):
                message = f"other queries occupied all slots for {self._within_s:g} s: try again, with fewer at a time"
                raise QueryStopped(message) from None
            raise
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)

        def release(_: asyncio.Future[T]) -> None:
            self._places.release()
            places.release()

        running.add_done_callback(release)
        return await asyncio.shield(running)  # a client that leaves does not end the thread


class MetricsApp:
    """The metrics service over one lake, in which each organisation sees its own games only.

    Args:
        limits: rate limits of one node (Wire 2.3, Rate limits).
        nodes: number of nodes. Every node limits by itself.
        refresh_s: seconds for which `/interval` repeats its answer; 0 computes it at each call.
        body_deadline_s: seconds in which a body must be complete.
    """

    def __init__(
        self,
        tenants: TenantDirectory,
        lake: Lake,
        reader: Engine,
        clock: Clock,
        *,
        limits: RateLimits = RateLimits(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE),  # noqa: B008
        nodes: int = 1,
        refresh_s: float = REFRESH_S,
        body_deadline_s: float = BODY_DEADLINE_S,
    ) -> None:
        self._tenants = tenants
        self._lake = lake
        self._reader = reader
        self._stored_games: dict[str, tuple[Snapshot, frozenset[str]]] = {}
        self._clock = clock
        self._refresh_s = refresh_s
        self._body_deadline_s = body_deadline_s
        self._places = QueryPlaces(within_s=reader.bounds.seconds)
        listing = RateLimits(limits.lists, limits.lists)
        self._limiter = NodeLimiters(limits, nodes=nodes, clock=clock.monotonic_s)
        self._list_limiter = NodeLimiters(listing, nodes=nodes, clock=clock.monotonic_s)
        self._available: dict[str, tuple[float, Interval]] = {}
        self.request_count = 0
        """Requests with a valid key since the start, refused ones included."""

    def app(self) -> Starlette:
        """Build the ASGI application."""
        for_names, for_others = self._list_limiter, self._limiter
        routes = [
            Route("/metrics/v1/metrics", self._guard(self._metrics, for_names), methods=["GET"]),
            Route("/metrics/v1/metrics/{metric}", self._guard(self._metric, for_others), methods=["POST"]),
            Route("/metrics/v1/interval", self._guard(self._interval, for_others), methods=["GET"]),
            Route("/metrics/v1/dimensions", self._guard(self._dimensions, for_others), methods=["GET"]),
            Route("/metrics/v1/dimensions/{dimension}", self._guard(self._values, for_others), methods=["GET"]),
            Route("/metrics/v1/studios", self._guard(self._studios, for_others), methods=["GET"]),
            Route("/metrics/v1/games", self._guard(self._games, for_others), methods=["GET"]),
            Route(METRICS_ADDRESS, _describe, methods=["GET"]),
        ]
        app = Starlette(
            routes=routes,
            exception_handlers={
                HTTPException: on_wrong_address([route.path for route in routes]),
                BadQuery: on_bad_query,
                LakeUnavailable: _on_unavailable,
                Exception: on_failure,
            },
        )
        app.router.redirect_slashes = False  # else the framework would answer by itself
        return app

    def forget_availability(self) -> None:
        """Compute the next answer to `/interval` anew, after processing on demand."""
        self._available.clear()

    def _guard(self, handler: OrganisationHandler, limiter: NodeLimiters) -> Callable[[Request], Awaitable[Response]]:
        """Wrap *handler* with the API key, the rate limit and the refusals of an unreadable body."""

        async def guarded(request: Request) -> Response:
            organisation = self._tenants.organisation(request.headers.get("x-api-key", ""))
            if organisation is None:
                return refuse(401, "no such API key: send the organisation's key in the header X-API-Key")
            self.request_count += 1
            try:
                with limiter.permit(organisation.name):
                    return await handler(request, organisation)
            except UnreadableBody as error:
                close = {"Connection": "close"} if error.status == 408 else None
                return refuse(error.status, str(error), close, field="body", value=None, allowed=[], did_you_mean=None)
            except QueryStopped as error:
                return refuse(503, str(error), field="query", value=None, allowed=[], did_you_mean=None)
            except RateLimited as error:
                retry_after = str(max(1, math.ceil(error.retry_after or 1)))
                return refuse(429, f"{error}: wait {retry_after} s", {"Retry-After": retry_after})

        return guarded

    async def _metrics(self, _: Request, __: Organisation) -> Response:
        return answer_json(list(METRICS))

    async def _dimensions(self, _: Request, __: Organisation) -> Response:
        return answer_json(list(DIMENSIONS))

    async def _interval(self, _: Request, organisation: Organisation) -> Response:
        computed_at, available = self._available.get(organisation.name, (-math.inf, None))
        # The age is negative after the clock was set back.
        is_fresh = 0 <= self._clock.now_s() - computed_at < self._refresh_s
        if available is None or not is_fresh:
            self._lake.require_events()
            available = self._lake.available(organisation.name, now=self._clock.now())
            self._available[organisation.name] = self._clock.now_s(), available
        headers = {"X-Data-Edition": self._lake.edition}
        if scenario := self._lake.scenario:
            headers["X-Sandbox-Scenario"] = quote(scenario)
        if dated := self._lake.dated_by_arrival().get(organisation.name):
            headers["X-Dated-By-Arrival"] = msgspec.json.encode(dated, order="deterministic").decode()
        return answer_json(f"{_in_seconds(available.start)}/{_in_seconds(available.end)}", headers=headers)

    async def _metric(self, request: Request, organisation: Organisation) -> Response:
        metric = metric_named(request.path_params["metric"])
        body = await _read_json_object(request, deadline_s=self._body_deadline_s)
        try:
            query = decode_query(body, granularity="day" if metric.kinds == "retention" else None)
            check_query(metric, query)
            if next(islice(query.interval.buckets(query.granularity), MAX_BUCKETS, None), None) is not None:
                rule = (
                    f"must touch at most {MAX_BUCKETS} buckets: ask for a shorter interval, or for a larger granularity"
                )
                raise BadQuery("interval", str(query.interval), rule)
        except BadQuery as error:
            # The error shows the interval or the query as it was sent, without our defaults and in its own form.
            if error.field in ("interval", "query") and not error.is_missing and body.get(error.field) is not None:
                error.value = body[error.field]
            raise
        games = games_in_scope(organisation, games=query.games, studios=query.studios, game=query.game)
        self._lake.require_events()
        check_event_data(metric, query, games, self._lake.event_data(organisation.name))
        snapshot = self._lake.snapshot(organisation.name)

        def answer() -> bytes:
            """Compile, run and encode the query.

            Runs in a thread as a whole: with long filters and many buckets no step of it is short.
            """
            compile_for = partial(compile_query, metric, query, span=snapshot.span())
            rows = self._read_rows(compile_for, organisation, games, snapshot)
            if len(rows) > (most := self._reader.bounds.rows):
                rule = f"must have at most {most} rows: ask for a shorter interval, a filter or a lower limit"
                raise BadQuery("query", body.get("query"), rule)
            return encode_answer(query, _buckets(metric, query, rows))

        return answer_json(await self._places.run(organisation.name, answer))

    async def _values(self, request: Request, organisation: Organisation) -> Response:
        dimension = request.path_params["dimension"]
        if dimension not in DIMENSIONS:
            raise BadQuery("dimension", dimension, "is not a dimension", DIMENSIONS)
        games = games_in_scope(organisation, games=_ids(request, "games"), studios=_ids(request, "studios"))
        interval, text = _interval_of(request), _parameter(request, "limit")
        if text is not None and not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MAX_LIMIT):
            raise BadQuery("limit", text, f"must be 1 to {MAX_LIMIT}")
        limit = DEFAULT_LIMIT if text is None else int(text)
        values = await self._dimension_values(dimension, organisation, games, interval, limit)
        return answer_json(Values(dimension, values))

    async def _studios(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        studios = [studio for studio in organisation.studios if active & {game.id for game in studio.games}]
        return answer_json([Studio(studio.id, studio.name) for studio in sorted(studios, key=lambda studio: studio.id)])

    async def _games(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        wanted = games_in_scope(organisation, studios=_ids(request, "studios"))
        games = [game for game in organisation.games if game.id in active and game.id in wanted]
        return answer_json([Game(game.id, game.title) for game in sorted(games, key=lambda game: game.id)])

    async def _active_games(self, request: Request, organisation: Organisation) -> set[str]:
        """Return the ids of the games with an event in the requested interval."""
        games = games_in_scope(organisation)
        return set(await self._dimension_values("game_id", organisation, games, _interval_of(request), len(games) + 1))

    async def _dimension_values(
        self, dimension: str, organisation: Organisation, games: list[str], interval: Interval, limit: int
    ) -> list[str]:
        """Return the first *limit* values of *dimension* in events of *games* in *interval*."""
        compile_for = partial(compile_dimension_values, dimension, interval, limit=limit)
        self._lake.require_events()
        snapshot = self._lake.snapshot(organisation.name)
        read = partial(self._read_rows, compile_for, organisation, games, snapshot)
        rows = await self._places.run(organisation.name, read)
        return [row["value"] for row in rows]

    def _read_rows(
        self, compile_for: Callable[..., SqlQuery], organisation: Organisation, games: list[str], snapshot: Snapshot
    ) -> list[Row]:
        """Return all rows of a query over *games* alone.

        Every answer is read through here, so no statement can leave out the filter by game.
        """
        games_filter: Sequence[str] | None = games
        with contextlib.suppress(LakeUnavailable):  # the query may read other files, which are whole
            if self._games_in_tables(organisation.name, snapshot) <= frozenset(games):
                games_filter = None  # a condition that every row meets would still be evaluated for every row
        return self._reader.rows(compile_for(games=games_filter), snapshot)

    def _games_in_tables(self, organisation: str, snapshot: Snapshot) -> frozenset[str]:
        """Return the games in the tables of an organisation, read once for each version of the lake.

        They may be more than its configuration has: events of a game that was removed stay in the lake.
        """
        read_for, games = self._stored_games.get(organisation, (None, frozenset[str]()))
        if read_for is not snapshot:
            query = compile_dimension_values("game_id", _ALL_TIME, games=None, limit=2**31 - 1)
            games = frozenset(row["value"] for row in self._reader.rows(query, snapshot))
            self._stored_games[organisation] = snapshot, games
        return games


def games_in_scope(
    organisation: Organisation,
    *,
    games: Sequence[str] | None = None,
    studios: Sequence[str] | None = None,
    game: str | None = None,
) -> list[str]:
    """Return the ids of the sandbox games of *organisation* that a request selects.

    An id of another organisation is refused exactly as an unknown one is (Wire 2.13, Scope).

    *games* and *studios* narrow to ids, None leaves all. *game* is the one game of a per-game query.

    Raises:
        BadQuery: an id is unknown.
    """
    game_ids = [candidate.id for candidate in organisation.games]
    studio_ids = [studio.id for studio in organisation.studios]
    for field, requested, allowed in (
        ("game", None if game is None else (game,), game_ids),
        ("games", games, game_ids),
        ("studios", studios, studio_ids),
    ):
        for value in requested or ():
            if value not in allowed:
                raise BadQuery(
                    field,
                    value,
                    "is not one of the organisation's: GET /metrics/v1/" + field.rstrip("s") + "s lists them",
                )
    return [
        candidate.id
        for studio in organisation.studios
        for candidate in studio.games
        if (studios is None or studio.id in studios) and (games is None or candidate.id in games)
        if (game is None or candidate.id == game) and candidate.environment == "sandbox"
    ]


def check_event_data(
    metric: Metric, query: MetricQuery, games: Iterable[str], event_data: Mapping[str, Sequence[Interval]]
) -> None:
    """Refuse *query* over *games* if it needs what Event Data lacks.

    Event Data has no purchases and no session ends: a metric of these would be zero there, and a sum over other days
    too low. Our choice: a query is refused if a game in its scope has events that came as *event_data*
    (`Lake.event_data`) and arrived on a day of its interval (Wire 5.7, Event Data).

    Raises:
        BadQuery: it does; names the first such game and its days.
    """
    atoms = (ATOMS[name] for name in METRIC_SQL[metric.name].atoms)
    needs = [("metric", metric.name, _LACKING[atom.category]) for atom in atoms if atom.category in _LACKING]
    named = (*query.dimensions, *(dimensions_in(query.filter) if query.filter is not None else ()))
    for name in named:
        if DIMENSIONS[name].source == OfPlayer("purchase"):
            needs.append(("dimension", name, _LACKING["business"]))
    for field, value, lacking in needs:
        for game in games:
            days = [arrival for arrival in event_data.get(game, ()) if arrival & query.interval]
            if days:
                span = Interval(min(arrival.start for arrival in days), max(arrival.end for arrival in days))
                rule = (
                    f"is not known for game {game}: its events that arrived in {span} are Event Data, which has no "
                    f"{lacking}. Ask for other games or other days, or import Raw Data of these days into another lake"
                )
                raise BadQuery(field, value, rule)


async def _read_json_object(request: Request, *, deadline_s: float) -> dict[str, Any]:
    """Read the JSON object in the body of *request*.

    Raises:
        UnreadableBody: the body is too large, too slow or not JSON, or the disk has no room for it.
        BadQuery: the body is JSON, but not an object.
    """
    try:
        body = msgspec.json.decode(await read_body(request.receive, deadline_s=deadline_s))
    except BodyTooLarge:
        raise UnreadableBody(413, f"the body is larger than {BODY_BYTES} bytes: ask for less at a time") from None
    except ClientDisconnected:
        raise UnreadableBody(400, "the body was cut short") from None
    except BodyTooSlow as error:
        raise UnreadableBody(408, str(error)) from None
    except OSError:
        raise UnreadableBody(503, "there is no room for the body on the disk: send it again") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableBody(400, "the body is not JSON: send a metric query as a JSON object") from None
    if not isinstance(body, dict):
        raise BadQuery("body", body, "must be a JSON object, a metric query")
    return body


def _interval_of(request: Request) -> Interval:
    """Return the query parameter `interval`, which is required.

    Raises:
        BadQuery: it is missing or given twice.
        MalformedInterval: it is not an interval, or an empty one.
    """
    text = _parameter(request, "interval")
    if text is None:
        raise BadQuery("interval", msgspec.UNSET, "is missing: send an ISO 8601 interval")
    # A plus sign in a query string arrives as a space, which no interval contains.
    interval = Interval.parse(text.replace(" ", "+"))
    if not interval:
        raise MalformedInterval(text)
    return interval


def _ids(request: Request, name: str) -> tuple[str, ...] | None:
    """Return the ids in the query parameter *name*, or None if it is absent.

    It may be repeated, and each value may hold several ids with commas (Wire 2.11, Lists).
    """
    texts = request.query_params.getlist(name)
    return tuple(value for text in texts for value in text.split(",")) if texts else None


def _parameter(request: Request, name: str) -> str | None:
    """Return the query parameter *name*, and refuse it if given more than once."""
    texts = request.query_params.getlist(name)
    if len(texts) > 1:
        raise BadQuery(name, texts, "must be given once")
    return texts[0] if texts else None


def _buckets(metric: Metric, query: MetricQuery, rows: list[Row]) -> Iterator[Rows]:
    """Group the engine's rows into buckets.

    Group and timeseries answers name empty buckets too (Wire 2.9, Answer shapes).
    """
    rows_by_bucket: dict[datetime, list[Row]] = {}
    for row in rows:
        start = row.pop("bucket").replace(tzinfo=UTC)
        names = [name for name in row if name in DIMENSIONS]
        rows_by_bucket.setdefault(start, []).append({name: row[name] for name in names} | row_of(metric, row))
    if not isinstance(query.query, Group | Timeseries):
        return (Rows(start, found) for start, found in rows_by_bucket.items())
    empty = [row_of(metric, {})] if isinstance(query.query, Timeseries) else []
    starts = (bucket.start for bucket in query.interval.buckets(query.granularity))
    return (Rows(start, rows_by_bucket.get(start, empty)) for start in starts)


async def _describe(_: Request) -> Response:
    """Answer the OpenAPI description, which needs no key (Wire 5.5, Service descriptions)."""
    return answer_json(metrics_description())


async def _on_unavailable(_: Request, error: Exception) -> Response:
    """Answer 503 with the damage and what becomes of it (Wire 2.12, Refusals)."""
    return refuse(503, str(error), {"Retry-After": str(_RETRY_S)})


def _in_seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
