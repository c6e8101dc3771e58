"""The metrics service: who asks, how often, what for, and only then the engine (Metrics, Endpoints)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gamelens.catalog import DIMENSIONS, METRICS, Metric, check, metric_named
from gamelens.errors import BadQuery, RateLimited
from gamelens.sandbox.answers import answer_json, on_bad_query, on_failure, on_http_error, refuse
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.engine import Reader
from gamelens.sandbox.lake import Lake
from gamelens.sandbox.limits import Limiter, Limits
from gamelens.sandbox.planner import Plan, plan_query, plan_values, row_of
from gamelens.sandbox.tenants import Organisation, Tenants
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    METRIC_LISTS_PER_SECOND,
    REFRESH_S,
    REQUESTS_AT_ONCE,
    REQUESTS_PER_SECOND,
)
from gamelens.wire.queries import Group, MetricQuery, Timeseries, decode_query
from gamelens.wire.results import Game, Row, Rows, Studio, Values, encode_answer

Handler = Callable[[Request, Organisation], Awaitable[Response]]


class MetricsService:
    """Answers questions about the lake, each organisation's about its own games only.

    *refresh_s* is how long `/interval` keeps the answer of its first call; 0 computes it at each call.
    """

    def __init__(
        self,
        tenants: Tenants,
        lake: Lake,
        reader: Reader,
        clock: Clock,
        *,
        limits: Limits = Limits(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE),  # noqa: B008
        refresh_s: float = REFRESH_S,
    ) -> None:
        self._tenants = tenants
        self._lake = lake
        self._reader = reader
        self._clock = clock
        self._refresh_s = refresh_s
        self._limiter = Limiter(limits)
        self._list_limiter = Limiter(Limits(METRIC_LISTS_PER_SECOND, METRIC_LISTS_PER_SECOND))
        self._available: dict[str, tuple[float, Interval]] = {}
        self.asked = 0

    def app(self) -> Starlette:
        """The ASGI application."""
        limited, listed = self._limiter, self._list_limiter
        return Starlette(
            routes=[
                Route("/metrics/v1/metrics", self._guard(self._metrics, listed), methods=["GET"]),
                Route("/metrics/v1/metrics/{metric}", self._guard(self._metric, limited), methods=["POST"]),
                Route("/metrics/v1/interval", self._guard(self._interval, limited), methods=["GET"]),
                Route("/metrics/v1/dimensions", self._guard(self._dimensions, limited), methods=["GET"]),
                Route("/metrics/v1/dimensions/{dimension}", self._guard(self._values, limited), methods=["GET"]),
                Route("/metrics/v1/studios", self._guard(self._studios, limited), methods=["GET"]),
                Route("/metrics/v1/games", self._guard(self._games, limited), methods=["GET"]),
            ],
            exception_handlers={HTTPException: on_http_error, BadQuery: on_bad_query, Exception: on_failure},
        )

    def forget_availability(self) -> None:
        """Let the next `/interval` be computed: somebody processed by hand."""
        self._available.clear()

    def _guard(self, handler: Handler, limiter: Limiter) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            organisation = self._tenants.organisation(request.headers.get("x-api-key", ""))
            if organisation is None:
                return refuse(401, "no such API key: send the organisation's key in the header X-API-Key")
            self.asked += 1
            try:
                with limiter.place(organisation.name):
                    return await handler(request, organisation)
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
        is_fresh = 0 <= self._clock.now_s() - computed_at < self._refresh_s  # the clock may have been set back
        if available is None or not is_fresh:
            available = self._lake.available(organisation.name, now=self._clock.now())
            self._available[organisation.name] = self._clock.now_s(), available
        return answer_json(f"{_seconds(available.start)}/{_seconds(available.end)}")

    async def _metric(self, request: Request, organisation: Organisation) -> Response:
        metric = metric_named(request.path_params["metric"])
        try:
            body = msgspec.json.decode(await request.body())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return refuse(400, "the body is not JSON: send a metric query as a JSON object")
        if not isinstance(body, dict):
            raise BadQuery("body", body, "must be a JSON object, a metric query")
        query = decode_query(body, granularity="day" if metric.kinds == "retention" else None)
        check(metric, query)
        games = _narrowed(organisation, games=query.games, studios=query.studios, game=query.game)
        rows = await self._run(plan_query(metric, query, games=games), organisation)
        return answer_json(encode_answer(query, _buckets(metric, query, rows)))

    async def _values(self, request: Request, organisation: Organisation) -> Response:
        dimension = request.path_params["dimension"]
        if dimension not in DIMENSIONS:
            raise BadQuery("dimension", dimension, "is not a dimension", DIMENSIONS)
        games = _narrowed(organisation, games=_listed(request, "games"), studios=_listed(request, "studios"))
        plan = plan_values(dimension, _asked_interval(request), games=games, limit=_asked_limit(request))
        values = [row["value"] for row in await self._run(plan, organisation)]
        return answer_json(Values(dimension, values))

    async def _studios(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        studios = [studio for studio in organisation.studios if active & {game.id for game in studio.games}]
        return answer_json([Studio(studio.id, studio.name) for studio in sorted(studios, key=lambda it: it.id)])

    async def _games(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        wanted = _narrowed(organisation, studios=_listed(request, "studios"))
        games = [game for game in organisation.games if game.id in active and game.id in wanted]
        return answer_json([Game(game.id, game.title) for game in sorted(games, key=lambda it: it.id)])

    async def _active_games(self, request: Request, organisation: Organisation) -> set[str]:
        """Ids of the games that sent data in the interval asked for."""
        games = _narrowed(organisation)
        plan = plan_values("game_id", _asked_interval(request), games=games, limit=len(games) + 1)
        return {row["value"] for row in await self._run(plan, organisation)}

    async def _run(self, plan: Plan, organisation: Organisation) -> list[Row]:
        return await asyncio.to_thread(self._reader.rows, plan, self._lake.snapshot(organisation.name))


def _buckets(metric: Metric, query: MetricQuery, rows: list[Row]) -> list[Rows]:
    """The engine's rows as the buckets of an answer; group and timeseries name the empty ones too."""
    answered: dict[datetime, list[Row]] = {}
    for row in rows:
        stamp = row.pop("bucket").replace(tzinfo=UTC)
        names = [name for name in row if name in DIMENSIONS]
        answered.setdefault(stamp, []).append({name: row[name] for name in names} | row_of(metric, row))
    if not isinstance(query.query, Group | Timeseries):
        return [Rows(stamp, found) for stamp, found in answered.items()]
    nothing = [row_of(metric, {})] if isinstance(query.query, Timeseries) else []
    stamps = [bucket.start for bucket in query.interval.buckets(query.granularity)]
    return [Rows(stamp, answered.get(stamp, nothing)) for stamp in stamps]


def _narrowed(
    organisation: Organisation,
    *,
    games: tuple[str, ...] | None = None,
    studios: tuple[str, ...] | None = None,
    game: str | None = None,
) -> list[str]:
    """Ids of the organisation's games that are left; another organisation's id is as unknown as any other."""
    known_games = [it.id for it in organisation.games]
    known_studios = [it.id for it in organisation.studios]
    for field, asked, known in (
        ("game", None if game is None else (game,), known_games),
        ("games", games, known_games),
        ("studios", studios, known_studios),
    ):
        for value in asked or ():
            if value not in known:
                raise BadQuery(
                    field,
                    value,
                    "is not one of the organisation's: GET /metrics/v1/" + field.rstrip("s") + "s lists them",
                )
    return [
        it.id
        for studio in organisation.studios
        for it in studio.games
        if (studios is None or studio.id in studios) and (games is None or it.id in games)
        if (game is None or it.id == game) and it.environment == "sandbox"
    ]


def _asked_interval(request: Request) -> Interval:
    text = request.query_params.get("interval")
    if text is None:
        raise BadQuery("interval", None, "is missing: send an ISO 8601 interval")
    # A plus sign in a query string arrives as a space, and none is ever meant there.
    interval = Interval.parse(text.replace(" ", "+"))
    if not interval:
        raise MalformedInterval(text)
    return interval


def _asked_limit(request: Request) -> int:
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise BadQuery("limit", text, f"must be 1 to {MAX_LIMIT}")
    return int(text)


def _listed(request: Request, name: str) -> tuple[str, ...] | None:
    """Values of a query parameter, given several times or with commas; None where it is not given."""
    given = request.query_params.getlist(name)
    return tuple(value for text in given for value in text.split(",")) if given else None


def _seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
