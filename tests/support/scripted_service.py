"""A metrics service that answers from a script, as a real ASGI app."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

AVAILABLE = "2026-08-22T00:00:00Z/2026-11-20T11:00:00Z"
KEY = "key-0123456789-of-nobody"

Answer = Callable[[dict[str, Any]], Any]


class Script:
    """The answers of a metrics service, and the requests it received.

    Attributes:
        available: the available interval.
        moves_to: the available intervals after each time it is read.
        values: the list of the values of any dimension, of which there is none while it is empty.
        answers: a function of the body for each metric.
        bodies: the bodies of all metric requests.
        paths: the paths of all requests.
    """

    def __init__(self) -> None:
        self.available = AVAILABLE
        self.moves_to: list[str] = []
        self.metrics = ["event_count", "revenue", "user_unique", "new_users", "retention_retro", "brand_new"]
        self.dimensions = ["platform", "country_code", "game_id", "brand_new_dimension"]
        self.studios: list[dict[str, Any]] = [{"id": "s1", "name": "North"}]
        self.games: dict[str, list[dict[str, Any]]] = {"s1": [{"id": "1001", "title": "Tile Saga"}]}
        self.values: dict[str, Any] = {}
        self.answers: dict[str, Answer] = {}
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def app(self) -> Starlette:
        """Return the service as an app."""
        return Starlette(
            routes=[
                Route("/metrics/v1/interval", self._list(self._interval)),
                Route("/metrics/v1/metrics", self._list(lambda _: self.metrics)),
                Route("/metrics/v1/dimensions", self._list(lambda _: self.dimensions)),
                Route("/metrics/v1/dimensions/{dimension}", self._list(lambda _: self.values)),
                Route("/metrics/v1/studios", self._list(lambda _: self.studios)),
                Route("/metrics/v1/games", self._list(lambda request: self.games[request.query_params["studios"]])),
                Route("/metrics/v1/metrics/{metric}", self._metric, methods=["POST"]),
            ]
        )

    def _interval(self, _: Request) -> str:
        now = self.available
        self.available = self.moves_to.pop(0) if self.moves_to else now
        return now

    def _list(self, content: Callable[[Request], object]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:  # on the loop: a thread would let a virtual clock leap
            self.paths.append(request.url.path)
            found = content(request)
            return JSONResponse(found, 404 if found == {} else 200)

        return answer

    async def _metric(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        body = json.loads(await request.body())
        self.bodies.append(body)
        answer = self.answers[request.path_params["metric"]](body)
        return answer if isinstance(answer, Response) else JSONResponse({"result": answer})
