"""The control API: counts, processing, reset, clock, faults, the live page and its stream of events.

Wire 5.1, Control API; Wire 5.2, Live feed. It is separate from both services, on loopback, with a token in the path, a
check of the Host header and no CORS headers, so a page in a browser cannot reach it. A notebook on this machine may
show the live page in a frame.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any, Final, Protocol

import isodate
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.collector.live_feed import LiveFeed, parse_feed_filter
from gamelens.sandbox.control.fault_injection import FaultInjector, read_rule
from gamelens.sandbox.control.live_event_stream import LiveEventStream
from gamelens.sandbox.http.openapi import DESCRIPTIONS
from gamelens.sandbox.http.responses import answer_json, on_bad_query, on_disconnect, on_failure, on_http_error, refuse
from gamelens.sandbox.state.clock import EARLIEST, LATEST, Clock

Handler = Callable[[Request], Awaitable[Response]]
_SCENARIO_LETTERS = 200
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PAGE: Final = {
    "": ("index.html", "text/html"),
    "live.js": ("live.js", "text/javascript"),
    "live.css": ("live.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors http://127.0.0.1:* http://localhost:*; "
    "require-trusted-types-for 'script'"
)
"""Only notebooks of this machine may show the page in a frame."""
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class SandboxControl(Protocol):
    """The parts of a running sandbox that the control API uses."""

    clock: Clock
    live: LiveFeed
    faults: FaultInjector

    def summary(self) -> dict[str, Any]:
        """Return counts of everything received, and what is available."""

    async def examine_refused(self) -> None:
        """Find out why requests were refused where that is not known yet."""

    async def process(self) -> dict[str, str]:
        """Process everything received, and return the available interval of each organisation."""

    async def load(self) -> dict[str, str]:
        """Make the files that wait in the state directory the lake, and return what is available."""

    async def reset(self) -> None:
        """Delete every event. Keys stay."""

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of."""

    def unhealthy_because(self) -> str | None:
        """Return the reason why requests cannot be taken, or None."""

    def cannot_answer(self) -> dict[str, str]:
        """Return why questions are not answered, by organisation."""


def control_app(sandbox: SandboxControl, *, token: str) -> Starlette:
    """Build the ASGI application, with all addresses below `/<token>`."""
    handlers = _Handlers(sandbox)
    routes: list[tuple[str, str, Handler]] = [
        ("GET", "/events", handlers.events),
        ("GET", "/live", handlers.stream),
        ("GET", "/refused", handlers.refused),
        ("GET", "/summary", handlers.summary),
        ("POST", "/process", handlers.process),
        ("POST", "/load", handlers.load),
        ("POST", "/reset", handlers.reset),
        ("POST", "/scenario", handlers.scenario),
        ("POST", "/clock", handlers.clock),
        ("GET", "/health", handlers.health),
        ("GET", "/faults", handlers.list_faults),
        ("POST", "/faults", handlers.add_fault),
        ("DELETE", "/faults", handlers.clear_faults),
    ]
    for path, (name, media_type) in _PAGE.items():
        content = (files("gamelens.sandbox.control") / "page" / name).read_bytes()
        routes.append(
            ("GET", f"/{path}", _constant(partial(Response, content, headers=_HEADERS, media_type=media_type)))
        )
    routes += (("GET", f"/openapi/{name}.json", _constant(partial(_describe, name))) for name in DESCRIPTIONS)
    return Starlette(
        routes=[
            Mount(
                f"/{token}",
                routes=[Route(path, _loopback_only(handler), methods=[method]) for method, path, handler in routes],
            )
        ],
        exception_handlers={
            HTTPException: on_http_error,
            BadQuery: on_bad_query,
            ClientDisconnect: on_disconnect,
            Refused: _on_refused,
            Exception: on_failure,
        },
    )


class _Handlers:
    """The answers that a sandbox gives."""

    def __init__(self, sandbox: SandboxControl) -> None:
        self._sandbox, self._live, self._faults = sandbox, sandbox.live, sandbox.faults

    async def events(self, request: Request) -> Response:
        feed_filter = parse_feed_filter(request.query_params, game_keys=self._live.titles)
        return answer_json(self._live.newest(feed_filter), headers=_HEADERS)

    async def stream(self, request: Request) -> Response:
        feed_filter = parse_feed_filter(request.query_params, game_keys=self._live.titles, limit=0)
        return LiveEventStream(self._live, feed_filter, _HEADERS)

    async def refused(self, _: Request) -> Response:
        await self._sandbox.examine_refused()
        return answer_json(self._live.refused_after(0)[::-1], headers=_HEADERS)

    async def summary(self, _: Request) -> Response:
        await self._sandbox.examine_refused()
        return answer_json(self._sandbox.summary())

    async def process(self, _: Request) -> Response:
        return answer_json(await self._sandbox.process())

    async def load(self, _: Request) -> Response:
        return answer_json(await self._sandbox.load())

    async def reset(self, _: Request) -> Response:
        await self._sandbox.reset()
        return answer_json(self._sandbox.summary())

    async def scenario(self, request: Request) -> Response:
        match order := await _json(request):
            case {"scenario": None}:
                name = None
            case {"scenario": str(text)} if text.strip() and len(text) <= _SCENARIO_LETTERS and text.isprintable():
                name = text.strip()
            case _:
                rule = f"must have a scenario: its name of up to {_SCENARIO_LETTERS} characters, or null"
                raise BadQuery("body", order, rule)
        self._sandbox.set_scenario(name)
        return answer_json({"scenario": name})

    async def clock(self, request: Request) -> Response:
        """Apply one order, or change nothing: freeze at a moment, advance by a duration, or resume."""
        clock, order = self._sandbox.clock, await _json(request)
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
                    raise BadQuery("body", order, "must have one of freeze, advance and resume")
        except (ValueError, OverflowError, isodate.ISO8601Error):
            years = f"from {EARLIEST.year} to {LATEST.year - 1}"
            rule = f"must have an ISO 8601 time or duration that leads to a time {years}"
            raise BadQuery("body", order, rule) from None
        return answer_json({"now": clock.now().isoformat()})

    async def health(self, _: Request) -> Response:
        if reason := self._sandbox.unhealthy_because():
            return refuse(503, reason)
        cannot_answer = self._sandbox.cannot_answer()
        return answer_json({"status": "damaged", "cannot_answer": cannot_answer} if cannot_answer else {"status": "ok"})

    async def list_faults(self, _: Request) -> Response:
        return answer_json(self._faults.listed())

    async def add_fault(self, request: Request) -> Response:
        return answer_json(self._faults.add(read_rule(await _json(request))))

    async def clear_faults(self, _: Request) -> Response:
        self._faults.clear()
        return answer_json(self._faults.listed())


def _constant(make: Callable[[], Response]) -> Handler:
    async def answer(_: Request) -> Response:
        return make()

    return answer


def _describe(service: str) -> Response:
    return answer_json(DESCRIPTIONS[service]())


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


async def _on_refused(_: Request, error: Exception) -> Response:
    return refuse(503, str(error))
