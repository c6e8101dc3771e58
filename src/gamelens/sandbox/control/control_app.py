"""The control surface: what came in, process now, forget, set the clock, fail. For the developer on this machine only.

Apart from both services, on loopback, behind a token in the path and a check of the Host header, without CORS: a page
in a browser cannot reach it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import isodate
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.control.fault_injection import FaultInjector, read_rule
from gamelens.sandbox.control.live_routes import watch_routes
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.sandbox.http.responses import answer_json, on_bad_query, on_broken_off, on_failure, on_http_error, refuse

Handler = Callable[[Request], Awaitable[Response]]
_SCENARIO_LETTERS = 200
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class SandboxControl(Protocol):
    """What the console controls: a running sandbox."""

    clock: Clock
    live: LiveFeed
    faults: FaultInjector

    def summary(self) -> dict[str, Any]:
        """Counts of everything received, and what is available."""
        ...

    async def process(self) -> dict[str, str]:
        """Process everything received; available interval of each organisation."""
        ...

    async def reset(self) -> None:
        """Forget every event, keep the keys."""
        ...

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of."""
        ...

    def unhealthy_because(self) -> str | None:
        """Why requests cannot be taken; None when they can."""
        ...


def console_app(sandbox: SandboxControl, *, token: str) -> Starlette:
    """The ASGI application, below `/<token>`."""

    async def summary(_: Request) -> Response:
        return answer_json(sandbox.summary())

    async def process(_: Request) -> Response:
        return answer_json(await sandbox.process())

    async def reset(_: Request) -> Response:
        await sandbox.reset()
        return answer_json(sandbox.summary())

    async def clock(request: Request) -> Response:
        _set_clock(sandbox.clock, await _json(request))
        return answer_json({"now": sandbox.clock.now().isoformat()})

    async def health(_: Request) -> Response:
        reason = sandbox.unhealthy_because()
        return refuse(503, reason) if reason else answer_json({"status": "ok"})

    async def set_fault(request: Request) -> Response:
        return answer_json(sandbox.faults.add(read_rule(await _json(request))))

    async def faults(_: Request) -> Response:
        return answer_json(sandbox.faults.listed())

    async def clear_faults(_: Request) -> Response:
        sandbox.faults.clear()
        return answer_json(sandbox.faults.listed())

    routes = [
        *(Route(path, _local(handler)) for path, handler in watch_routes(sandbox.live).items()),
        Route("/summary", _local(summary)),
        Route("/process", _local(process), methods=["POST"]),
        Route("/reset", _local(reset), methods=["POST"]),
        Route("/scenario", _local(_set_scenario(sandbox)), methods=["POST"]),
        Route("/clock", _local(clock), methods=["POST"]),
        Route("/faults", _local(faults)),
        Route("/faults", _local(set_fault), methods=["POST"]),
        Route("/faults", _local(clear_faults), methods=["DELETE"]),
        Route("/health", _local(health)),
        *(Route(f"/openapi/{service}.json", _local(_described(service))) for service in DESCRIPTIONS),
    ]
    return Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        exception_handlers={
            HTTPException: on_http_error,
            BadQuery: on_bad_query,
            ClientDisconnect: on_broken_off,
            Refused: _on_refused,
            Exception: on_failure,
        },
    )


def _described(service: str) -> Handler:
    async def described(_: Request) -> Response:
        return answer_json(DESCRIPTIONS[service]())

    return described


def _local(handler: Handler) -> Handler:
    """Only for requests that call this machine by its loopback names: a page cannot forge the Host header."""

    async def checked(request: Request) -> Response:
        host = re.sub(r":\d*$", "", request.headers.get("host", ""))
        return await handler(request) if host in _LOOPBACK else refuse(403, "for this machine only")

    return checked


async def _json(request: Request) -> dict[str, Any]:
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadQuery("body", "…", "must be a JSON object") from None


def _set_scenario(sandbox: SandboxControl) -> Handler:
    async def scenario(request: Request) -> Response:
        name = _scenario_name(await _json(request))
        sandbox.set_scenario(name)
        return answer_json({"scenario": name})

    return scenario


def _scenario_name(order: dict[str, Any]) -> str | None:
    match order:
        case {"scenario": None}:
            return None
        case {"scenario": str(name)} if len(name.strip()) > 0 and len(name) <= _SCENARIO_LETTERS and name.isprintable():
            return name.strip()
    raise BadQuery("body", order, f"must hold a scenario: its name of up to {_SCENARIO_LETTERS} characters, or null")


def _set_clock(clock: Clock, order: dict[str, Any]) -> None:
    """Obey `{"freeze": moment}`, `{"advance": duration}` or `{"resume": true}`."""
    try:
        match order:
            case {"freeze": str(text)}:
                moment = datetime.fromisoformat(text)
                clock.freeze(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
            case {"advance": str(duration)}:
                now = clock.now()  # a month is as long as the month it starts in
                clock.advance(now + isodate.parse_duration(duration) - now)
            case {"resume": True}:
                clock.resume()
            case _:
                raise BadQuery("body", order, "must hold freeze, advance or resume")
    except (ValueError, OverflowError, isodate.ISO8601Error):
        raise BadQuery("body", order, "must hold an ISO 8601 moment or duration") from None


async def _on_refused(_: Request, error: Exception) -> Response:
    return refuse(503, str(error))
