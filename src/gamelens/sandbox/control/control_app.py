"""The control API: counts, processing, reset, clock, faults and the live page.

Wire 5.1, Control API. It is separate from both services, on loopback, with a token in the path, a check of the Host
header and no CORS headers, so a page in a browser cannot reach it.
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
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.control.fault_injection import FaultInjector, read_rule
from gamelens.sandbox.control.live_routes import live_routes
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.sandbox.http.responses import answer_json, on_bad_query, on_disconnect, on_failure, on_http_error, refuse
from gamelens.sandbox.state.clock import EARLIEST, LATEST, Clock

Handler = Callable[[Request], Awaitable[Response]]
_SCENARIO_LETTERS = 200
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class SandboxControl(Protocol):
    """The parts of a running sandbox that the control API uses.

    Attributes:
        clock: the clock of both services.
        live: the live feed.
        faults: the fault rules.
    """

    clock: Clock
    live: LiveFeed
    faults: FaultInjector

    def summary(self) -> dict[str, Any]:
        """Return counts of everything received, and what is available."""
        ...

    async def process(self) -> dict[str, str]:
        """Process everything received, and return the available interval of each organisation."""
        ...

    async def reset(self) -> None:
        """Delete every event. Keys stay."""
        ...

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of."""
        ...

    def unhealthy_because(self) -> str | None:
        """Return the reason why requests cannot be taken, or None."""
        ...

    def cannot_answer(self) -> dict[str, str]:
        """Return why questions are not answered, by organisation."""
        ...


def control_app(sandbox: SandboxControl, *, token: str) -> Starlette:
    """Build the ASGI application, with all addresses below `/<token>`."""
    routes = [
        *(Route(path, _loopback_only(handler)) for path, handler in live_routes(sandbox.live).items()),
        *_sandbox_routes(sandbox),
        *_fault_routes(sandbox.faults),
        *(Route(f"/openapi/{service}.json", _loopback_only(_description_handler(service))) for service in DESCRIPTIONS),
    ]
    return Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        exception_handlers={
            HTTPException: on_http_error,
            BadQuery: on_bad_query,
            ClientDisconnect: on_disconnect,
            Refused: _on_refused,
            Exception: on_failure,
        },
    )


def _sandbox_routes(sandbox: SandboxControl) -> list[Route]:
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
        if reason:
            return refuse(503, reason)
        cannot_answer = sandbox.cannot_answer()
        return answer_json({"status": "damaged", "cannot_answer": cannot_answer} if cannot_answer else {"status": "ok"})

    return [
        Route("/summary", _loopback_only(summary)),
        Route("/process", _loopback_only(process), methods=["POST"]),
        Route("/reset", _loopback_only(reset), methods=["POST"]),
        Route("/scenario", _loopback_only(_scenario_handler(sandbox)), methods=["POST"]),
        Route("/clock", _loopback_only(clock), methods=["POST"]),
        Route("/health", _loopback_only(health)),
    ]


def _fault_routes(faults: FaultInjector) -> list[Route]:
    async def add(request: Request) -> Response:
        return answer_json(faults.add(read_rule(await _json(request))))

    async def show(_: Request) -> Response:
        return answer_json(faults.listed())

    async def clear(_: Request) -> Response:
        faults.clear()
        return answer_json(faults.listed())

    return [
        Route("/faults", _loopback_only(show)),
        Route("/faults", _loopback_only(add), methods=["POST"]),
        Route("/faults", _loopback_only(clear), methods=["DELETE"]),
    ]


def _description_handler(service: str) -> Handler:
    async def answer(_: Request) -> Response:
        return answer_json(DESCRIPTIONS[service]())

    return answer


def _loopback_only(handler: Handler) -> Handler:
    """Answer 403 unless the Host header is a loopback name, which a page cannot forge."""

    async def checked(request: Request) -> Response:
        host = re.sub(r":[0-9]*$", "", request.headers.get("host", ""))
        if host not in _LOOPBACK:
            return refuse(403, "the Host header must be a name of this machine: 127.0.0.1, localhost or [::1]")
        return await handler(request)

    return checked


async def _json(request: Request) -> dict[str, Any]:
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadQuery("body", "…", "must be a JSON object") from None


def _scenario_handler(sandbox: SandboxControl) -> Handler:
    async def answer(request: Request) -> Response:
        name = _scenario_name(await _json(request))
        sandbox.set_scenario(name)
        return answer_json({"scenario": name})

    return answer


def _scenario_name(order: dict[str, Any]) -> str | None:
    match order:
        case {"scenario": None}:
            return None
        case {"scenario": str(name)} if len(name.strip()) > 0 and len(name) <= _SCENARIO_LETTERS and name.isprintable():
            return name.strip()
    raise BadQuery("body", order, f"must hold a scenario: its name of up to {_SCENARIO_LETTERS} characters, or null")


def _set_clock(clock: Clock, order: dict[str, Any]) -> None:
    """Apply one order to the clock, or change nothing.

    It is `{"freeze": moment}`, `{"advance": duration}` or `{"resume": true}`.
    """
    try:
        match list(order.items()):
            case [("freeze", str(text))]:
                moment = datetime.fromisoformat(text)
                clock.freeze(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
            case [("advance", str(duration))]:
                now = clock.now()  # the length of a month depends on where it starts
                clock.advance(now + isodate.parse_duration(duration) - now)
            case [("resume", True)]:
                clock.resume()
            case _:
                raise BadQuery("body", order, "must hold one of freeze, advance and resume")
    except (ValueError, OverflowError, isodate.ISO8601Error):
        years = f"from {EARLIEST.year} to {LATEST.year - 1}"
        rule = f"must hold an ISO 8601 moment or duration that leads to a time {years}"
        raise BadQuery("body", order, rule) from None


async def _on_refused(_: Request, error: Exception) -> Response:
    return refuse(503, str(error))
