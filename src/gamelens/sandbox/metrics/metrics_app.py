"""The metrics service: who asks, how often, what for, and only then the engine (Metrics, Endpoints)."""

from __future__ import annotations

import asyncio
import math
import random as randomness
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gamelens.catalog import DIMENSIONS, METRICS, Metric, check_query, metric_named
from gamelens.errors import BadQuery, RateLimited
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.engines.engine import Engine
from gamelens.sandbox.engines.sql_query import SqlQuery
from gamelens.sandbox.http.openapi import METRICS_ADDRESS, metrics_description
from gamelens.sandbox.http.rate_limiter import NodeLimiters, RateLimits
from gamelens.sandbox.http.responses import answer_json, on_bad_query, on_failure, on_wrong_address, refuse
from gamelens.sandbox.metrics.game_scope import GameScope, games_in_scope
from gamelens.sandbox.metrics.metric_sql import row_of
from gamelens.sandbox.metrics.request_parsing import (
    BODY_DEADLINE_S,
    UnreadableBody,
    asked_ids,
    asked_interval,
    asked_limit,
    read_object,
)
from gamelens.sandbox.metrics.sql_planner import compile_dimension_values, compile_query
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.tenants import Organisation, TenantDirectory
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import METRIC_LISTS_PER_SECOND, REFRESH_S, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND
from gamelens.wire.queries import Group, MetricQuery, Timeseries, decode_query
from gamelens.wire.results import Game, Row, Rows, Studio, Values, encode_answer

Handler = Callable[[Request, Organisation], Awaitable[Response]]


class MetricsApp:
    """Answers questions about the lake, each organisation's about its own games only.

    *refresh_s* is how long `/interval` keeps the answer of its first call; 0 computes it at each call. Each of *nodes*
    limits alone; *random* says which one a request comes to (see `NodeLimiters`).
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
        random: Callable[[int], int] = randomness.randrange,
        refresh_s: float = REFRESH_S,
        body_deadline_s: float = BODY_DEADLINE_S,
    ) -> None:
        self._tenants = tenants
        self._lake = lake
        self._reader = reader
        self._holdings = GameScope(reader)
        self._clock = clock
        self._refresh_s = refresh_s
        self._body_deadline_s = body_deadline_s
        listing = RateLimits(METRIC_LISTS_PER_SECOND, METRIC_LISTS_PER_SECOND)
        self._limiter = NodeLimiters(limits, nodes=nodes, random=random)
        self._list_limiter = NodeLimiters(listing, nodes=nodes, random=random)
        self._available: dict[str, tuple[float, Interval]] = {}
        self.asked = 0

    def app(self) -> Starlette:
        """The ASGI application."""
        limited, listed = self._limiter, self._list_limiter
        routes = [
            Route("/metrics/v1/metrics", self._guard(self._metrics, listed), methods=["GET"]),
            Route("/metrics/v1/metrics/{metric}", self._guard(self._metric, limited), methods=["POST"]),
            Route("/metrics/v1/interval", self._guard(self._interval, limited), methods=["GET"]),
            Route("/metrics/v1/dimensions", self._guard(self._dimensions, limited), methods=["GET"]),
            Route("/metrics/v1/dimensions/{dimension}", self._guard(self._values, limited), methods=["GET"]),
            Route("/metrics/v1/studios", self._guard(self._studios, limited), methods=["GET"]),
            Route("/metrics/v1/games", self._guard(self._games, limited), methods=["GET"]),
            Route(METRICS_ADDRESS, _describe, methods=["GET"]),
        ]
        app = Starlette(
            routes=routes,
            exception_handlers={
                HTTPException: on_wrong_address([route.path for route in routes]),
                BadQuery: on_bad_query,
                Exception: on_failure,
            },
        )
        app.router.redirect_slashes = False  # a redirect would be the framework's own answer
        return app

    def forget_availability(self) -> None:
        """Let the next `/interval` be computed: somebody processed by hand."""
        self._available.clear()

    def _guard(self, handler: Handler, limiter: NodeLimiters) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            organisation = self._tenants.organisation(request.headers.get("x-api-key", ""))
            if organisation is None:
                return refuse(401, "no such API key: send the organisation's key in the header X-API-Key")
            self.asked += 1
            try:
                with limiter.place(organisation.name):
                    return await handler(request, organisation)
            except UnreadableBody as error:
                return refuse(error.status, str(error), field="body", value=None, allowed=[], did_you_mean=None)
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
        headers = {"X-Data-Edition": self._lake.edition}
        if scenario := self._lake.scenario:
            headers["X-Sandbox-Scenario"] = quote(scenario)
        return answer_json(f"{_seconds(available.start)}/{_seconds(available.end)}", headers=headers)

    async def _metric(self, request: Request, organisation: Organisation) -> Response:
        metric = metric_named(request.path_params["metric"])
        body = await read_object(request, deadline_s=self._body_deadline_s)
        query = decode_query(body, granularity="day" if metric.kinds == "retention" else None)
        check_query(metric, query)
        games = games_in_scope(organisation, games=query.games, studios=query.studios, game=query.game)
        snapshot = self._lake.snapshot(organisation.name)

        def answer() -> bytes:
            """From plan to bytes: with long filters and many buckets, no step of it is short."""
            rows = self._rows(partial(compile_query, metric, query), organisation, games, snapshot)
            return encode_answer(query, _buckets(metric, query, rows))

        return answer_json(await asyncio.to_thread(answer))

    async def _values(self, request: Request, organisation: Organisation) -> Response:
        dimension = request.path_params["dimension"]
        if dimension not in DIMENSIONS:
            raise BadQuery("dimension", dimension, "is not a dimension", DIMENSIONS)
        games = games_in_scope(organisation, games=asked_ids(request, "games"), studios=asked_ids(request, "studios"))
        values = await self._listed(dimension, organisation, games, asked_interval(request), asked_limit(request))
        return answer_json(Values(dimension, values))

    async def _studios(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        studios = [studio for studio in organisation.studios if active & {game.id for game in studio.games}]
        return answer_json([Studio(studio.id, studio.name) for studio in sorted(studios, key=lambda it: it.id)])

    async def _games(self, request: Request, organisation: Organisation) -> Response:
        active = await self._active_games(request, organisation)
        wanted = games_in_scope(organisation, studios=asked_ids(request, "studios"))
        games = [game for game in organisation.games if game.id in active and game.id in wanted]
        return answer_json([Game(game.id, game.title) for game in sorted(games, key=lambda it: it.id)])

    async def _active_games(self, request: Request, organisation: Organisation) -> set[str]:
        """Ids of the games that sent data in the interval asked for."""
        games = games_in_scope(organisation)
        return set(await self._listed("game_id", organisation, games, asked_interval(request), len(games) + 1))

    async def _listed(
        self, dimension: str, organisation: Organisation, games: list[str], interval: Interval, limit: int
    ) -> list[str]:
        """The first *limit* values of *dimension* that *games* sent in *interval*."""
        plan = partial(compile_dimension_values, dimension, interval, limit=limit)
        snapshot = self._lake.snapshot(organisation.name)
        rows = await asyncio.to_thread(self._rows, plan, organisation, games, snapshot)
        return [row["value"] for row in rows]

    def _rows(
        self, plan: Callable[..., SqlQuery], organisation: Organisation, games: list[str], snapshot: Snapshot
    ) -> list[Row]:
        """All rows of *plan* over *games* alone: every answer is read through here."""
        return self._reader.rows(plan(games=self._holdings.condition(organisation, games, snapshot)), snapshot)


def _buckets(metric: Metric, query: MetricQuery, rows: list[Row]) -> Iterator[Rows]:
    """The engine's rows as the buckets of an answer; group and timeseries name the empty ones too."""
    answered: dict[datetime, list[Row]] = {}
    for row in rows:
        stamp = row.pop("bucket").replace(tzinfo=UTC)
        names = [name for name in row if name in DIMENSIONS]
        answered.setdefault(stamp, []).append({name: row[name] for name in names} | row_of(metric, row))
    if not isinstance(query.query, Group | Timeseries):
        return (Rows(stamp, found) for stamp, found in answered.items())
    nothing = [row_of(metric, {})] if isinstance(query.query, Timeseries) else []
    stamps = (bucket.start for bucket in query.interval.buckets(query.granularity))
    return (Rows(stamp, answered.get(stamp, nothing)) for stamp in stamps)


async def _describe(_: Request) -> Response:
    """What the service can be asked, for whoever has no key yet."""
    return answer_json(metrics_description())


def _seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
