"""A metrics service that answers from a ledger, and a client of it without a rate limiter.

It shares no code with the sandbox but the shapes of the wire: answers are the truth, computed from what was played.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.sync_client import Client
from gamelens.simulator import Ledger, Scenario
from gamelens.wire.queries import Group, decode_query
from gamelens.wire.results import Rows, encode_answer
from support.simulated_organisation import ENDS_ON
from support.watched_service import ManualClock, quick


class LedgerService:
    """The service about *scenario*, whose events are in *ledger*. Games have their titles as ids."""

    def __init__(self, scenario: Scenario, ledger: Ledger) -> None:
        self._scenario = scenario
        self._ledger = ledger
        start = ENDS_ON - timedelta(days=scenario.days)
        self._available = f"{start}T00:00:00Z/{ENDS_ON}T00:00:00Z"

    def client(self, metrics: Mapping[str, Any] | None = None) -> Client:
        """Return a client of the service with own *metrics*, on the day after the last one played."""
        return quick(self.app(), clock=ManualClock(), metrics=metrics)

    def app(self) -> Starlette:
        """Return the service as an app."""
        return Starlette(
            routes=[
                Route("/metrics/v1/interval", lambda _: JSONResponse(self._available)),
                Route("/metrics/v1/metrics", lambda _: JSONResponse(list(METRICS))),
                Route("/metrics/v1/dimensions", lambda _: JSONResponse(list(DIMENSIONS))),
                Route("/metrics/v1/dimensions/{dimension}", self._values),
                Route("/metrics/v1/studios", self._studios),
                Route("/metrics/v1/games", self._games),
                Route("/metrics/v1/metrics/{metric}", self._metric, methods=["POST"]),
            ]
        )

    async def _values(self, request: Request) -> Response:
        name = request.path_params["dimension"]
        rows = self._ledger.metric("event_count", interval=request.query_params["interval"], by=[name])
        values = {row[name] for row in rows} - {None}
        return JSONResponse({"dimension": name, "values": sorted(values)})

    async def _studios(self, _: Request) -> Response:
        return JSONResponse([{"id": studio.name, "name": studio.name} for studio in self._scenario.studios])

    async def _games(self, request: Request) -> Response:
        asked = request.query_params.get("studios")
        games = [game for studio in self._scenario.studios if asked in (None, studio.name) for game in studio.games]
        return JSONResponse([{"id": game.title, "title": game.title} for game in games])

    async def _metric(self, request: Request) -> Response:
        metric, body = request.path_params["metric"], json.loads(await request.body())
        query = decode_query(body, granularity="day" if metric == "retention_retro" else None)
        games = query.games if query.game is None else (query.game,)
        rows = self._ledger.metric(
            metric,
            interval=query.interval,
            granularity=query.granularity,
            by=query.dimensions if query.split_by is None else tuple(dict.fromkeys(("game_id", query.split_by))),
            where=query.filter,
            games=games,
            since_days_ago=query.since_days_ago,
        )
        limit = query.query.limit if isinstance(query.query, Group) else None
        buckets = [
            Rows(timestamp, [_without_time(row) for row in members][:limit])
            for timestamp, members in groupby(rows, key=lambda row: row["timestamp"])
        ]
        return Response(encode_answer(query, buckets), media_type="application/json")


def _without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "timestamp"}
