"""The collector: signed posts of events, and both init routes.

Plain ASGI without a framework, because the signature covers the raw bytes. Checks run in the order size, key and
signature, encoding, events. A refused request leaves nothing behind
(Wire 1.1, Collector addresses; Wire 1.10, Collector statuses).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from gamelens._text import shortened
from gamelens.errors import Refused
from gamelens.sandbox.collector.event_admission import AdmissionResult, BadInit, admit, admit_init
from gamelens.sandbox.collector.experiment_assignment import answer_init
from gamelens.sandbox.collector.geoip import GeoIp
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.collector.refused_requests import NO_SECRET, QueuedRequest, RefusedRequests
from gamelens.sandbox.http.request_body import (
    BODY_DEADLINE_S,
    BodyTooLarge,
    BodyTooSlow,
    ClientDisconnected,
    UndecodableBody,
    Unpacked,
    check_size,
    read_body,
    unpack,
)
from gamelens.sandbox.options import InitStatus, Reply
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.tenants import (
    Organisation,
    TenantDirectory,
    TenantGame,
)
from gamelens.sandbox.storage.inbox import Inbox, InboxBatch, StoreUnavailable
from gamelens.wire.event_validator import LENIENT, STRICT, strict_parts
from gamelens.wire.remote_config import (
    INIT_VALIDATORS,
    InitAnswer,
    InitUnchanged,
    V2FullAnswer,
    V2InitAnswer,
)
from gamelens.wire.rule_checking import Violation
from gamelens.wire.signing import is_signed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger(__name__)

_REMOTE_INIT: Final = "/remote_configs/v1/init"
_JSON: Final = [  # of every response (Wire 1.5, Response headers)
    (b"access-control-allow-origin", b"*"),
    (b"x-svc-service", b"collect"),
    (b"content-type", b"application/json"),
]
_HEADERS: Final = [*_JSON, (b"access-control-allow-headers", b"Authorization, X-Requested-With")]
_PREFLIGHT: Final = [  # everything a browser game will send; the browser caches it (Wire 1.5, Response headers)
    *_JSON,
    (b"access-control-allow-headers", b"Authorization, X-Requested-With, Content-Type, Content-Encoding"),
    (b"access-control-allow-methods", b"POST, OPTIONS"),
    (b"access-control-max-age", b"7200"),
]
_CLOSE: Final = (b"connection", b"close")
_KEEP_ALIVE: Final = (b"connection", b"keep-alive")  # documented, though the default (Wire 1.5, Response headers)
_RETRY: Final = (b"retry-after", b"5")
_MAX_INTERVAL_DIGITS: Final = 12
_SHOWN_LETTERS: Final = 80


class _EarlyResponse(Refused):
    """The response of a request that ends before its regular answer, with its *cause* where the body tells less."""

    def __init__(
        self, status: int, body: Any, headers: list[tuple[bytes, bytes]] | None = None, *, cause: str = ""
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers or []
        self.cause = cause
        super().__init__(status)


class _Request:
    """A request as far as it is read."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.route, self.game_key = scope["path"], ""
        self.headers = _headers(scope)
        self.body = b""
        self.init: bytes | None = None  # the content of an init that was admitted

    def header(self, name: bytes) -> str:
        """Return the value of a header, empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1")


class CollectorApp:
    """The ASGI application of the collector.

    Attributes:
        refused: the requests that were refused, for the owner of the sandbox.

    Args:
        reply: body of a 200 for events: `empty`, `json` for ``{}``, or `auto`, which is empty for custom integrations
            and ``{}`` for others, because official clients read an empty body as no connection.
        init_status: status of every version 2 init, or `auto`: 201 where configs or an experiment are handed out, else
            200, the only status that many public clients read as success.
        validation: rules for requests: `lenient`, `strict`, or the parts of requests to judge strictly.
        countries: countries by address.
        body_deadline_s: seconds in which a body must be complete.
    """

    def __init__(
        self,
        tenants: TenantDirectory,
        inbox: Inbox,
        clock: Clock,
        *,
        live: LiveFeed,
        reply: Reply = "auto",
        init_status: InitStatus = "auto",
        validation: str = "lenient",
        countries: GeoIp | None = None,
        body_deadline_s: float = BODY_DEADLINE_S,
    ) -> None:
        self._tenants = tenants
        self._inbox = inbox
        self._clock = clock
        self._live = live
        self._reply = reply
        self._init_status = None if init_status == "auto" else int(init_status)
        self._strict_parts = strict_parts(validation)
        self._rules = STRICT if "events" in self._strict_parts else LENIENT
        self._init_rules = INIT_VALIDATORS["strict" if "init" in self._strict_parts else "lenient"]
        self._countries = countries or GeoIp()
        self._body_deadline_s = body_deadline_s
        self.refused = RefusedRequests(tenants, live)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        headers: list[tuple[bytes, bytes]] = []
        request = _Request(scope)
        refused: QueuedRequest | None = (
            None  # not the error, which would hold this frame and the body until a collection
        )
        try:
            status, body = await self._respond(request, receive)
        except (_EarlyResponse, BodyTooLarge, UndecodableBody, BadInit) as error:
            status, body, headers = _refusal(error)
            refused = self._queued(request, status, error)
        except Exception as error:  # a defect here: the answer is JSON all the same (Wire 1.10, Collector statuses)
            _log.exception("a request failed")
            status, body = 500, {"message": "the sandbox failed: see its log"}
            refused = self._queued(request, status, error)
        payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
        if status != 204:
            headers = [*headers, (b"content-length", str(len(payload)).encode())]
        asks_to_close = any(name == b"connection" and b"close" in value.lower() for name, value in scope["headers"])
        if _CLOSE not in headers and scope["http_version"] == "1.1" and not asks_to_close:  # RFC 9112 9.3
            headers = [*headers, _KEEP_ALIVE]
        common = _PREFLIGHT if scope["method"] == "OPTIONS" else _HEADERS
        try:
            await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
            await send({"type": "http.response.body", "body": payload})
        finally:
            self._live.judge_recorded()
            if request.init is not None and "init" not in self._strict_parts:
                self._live.record_strict("init", _strict_init_errors(request.init))
            if refused is not None:
                self.refused.add(refused)

    async def _respond(self, request: _Request, receive: Receive) -> tuple[int, Any]:
        scope, headers = request.scope, request.headers
        request.route, request.game_key = route, game_key = _route(scope)
        if scope["method"] == "OPTIONS":
            return 204, b""
        if scope["method"] != "POST":
            raise _EarlyResponse(
                405, {"message": f"{scope['method']} is not for this address: use POST"}, [(b"allow", b"POST, OPTIONS")]
            )
        request.body = body = await _read_bounded_body(receive, headers, deadline_s=self._body_deadline_s)
        organisation, game = self._authorise(game_key, body, request.header(b"authorization"))
        if (errors := _header_errors(headers)) and "headers" in self._strict_parts:
            raise self._bad_headers(request, errors)
        self._live.record_strict("headers", errors)
        if route == "events":
            address = request.header(b"x-forwarded-for") or (scope.get("client") or ("",))[0]
            return await self._events(organisation, game, body, headers, address)
        content = _unpack_body(body, headers).content
        user_id = admit_init(content, self._init_rules)
        request.init = content
        answer, is_current = self._init_answer(game, user_id, _query(scope))
        if route == "init":
            is_handed_out = not is_current and bool(answer.configs or answer.ab_id)
            status = self._init_status or (201 if is_handed_out else 200)
            if is_current and status == 200:
                return status, V2InitAnswer(enabled=game.enabled, server_ts=answer.server_ts)
            return status, V2FullAnswer(enabled=game.enabled, flags=[], **msgspec.structs.asdict(answer))
        return (200, InitUnchanged(server_ts=answer.server_ts)) if is_current else (201, answer)

    def _bad_headers(self, request: _Request, errors: list[Violation]) -> _EarlyResponse:
        """Return the response 400 for bad *errors* of headers. It lists the errors of the content as well."""
        refused: list[Any] = []
        try:
            if request.route == "events":
                refused += self._judge_body(request.body, request.headers)[0].rejected
            else:
                admit_init(_unpack_body(request.body, request.headers).content, self._init_rules)
        except UndecodableBody as error:
            refused.append({"errors": [Violation(error.error_type, "/")]})
        except BadInit as error:
            refused.append({"errors": error.errors})
        content_type = request.header(b"content-type")
        cause = f"the header Content-Type is '{content_type}'" if content_type else "there is no header Content-Type"
        also = f"; besides, {len(refused)} errors of the body are in the answer" if refused else ""
        cause = f"{cause}: strict validation wants application/json{also}"
        return _EarlyResponse(400, [{"errors": errors}, *refused], cause=cause)

    def _queued(self, request: _Request, status: int, refused: Exception) -> QueuedRequest:
        """Return a refused request, with its cause where that needs no examination."""
        match refused:
            case UndecodableBody() | _EarlyResponse(status=401):
                cause = ""
            case BadInit():
                broken = ", ".join(f"{violation.error_type} at {violation.path}" for violation in refused.errors)
                cause = f"the init breaks rules: {broken}"
            case _EarlyResponse():
                cause = refused.cause or refused.body["message"]
            case BodyTooLarge():
                cause = str(refused)
            case _:
                cause = f"the sandbox failed with {type(refused).__name__}: see its log"
        return QueuedRequest(
            arrival_ts=int(self._clock.now_s()),
            route=request.route,
            game_key=request.game_key,
            status=status,
            cause=cause,
            authorization=request.header(b"authorization"),
            content_encoding=request.header(b"content-encoding"),
            body=b"" if cause else request.body,
        )

    def _authorise(self, game_key: str, body: bytes, signature: str) -> tuple[Organisation, TenantGame]:
        """Return the owner of the key, or end the request with 401.

        An unknown key takes as long as a wrong signature and gets the same answer (Wire 1.4, Signature).
        """
        owner = self._tenants.game(game_key)
        signed = is_signed(body, signature, secret_key=owner[1].secret_key if owner else NO_SECRET)
        if owner is None or not signed or owner[1].environment != "sandbox":
            raise _EarlyResponse(
                401,
                {
                    "message": "not authorised: check the game key, the secret key and that the "
                    "signature covers exactly the bytes sent"
                },
            )
        return owner

    async def _events(
        self, organisation: Organisation, game: TenantGame, body: bytes, headers: dict[bytes, bytes], address: str
    ) -> tuple[int, Any]:
        admission, is_gzipped = self._judge_body(body, headers)
        if admission.events or admission.rejected:
            batch = InboxBatch(
                organisation=organisation.name,
                game_id=game.id,
                arrival_ms=round(self._clock.now_s() * 1000),
                country=self._countries.of(address),
                events=admission.events,
                rejected=len(admission.rejected),
                is_gzipped=is_gzipped,
                body=admission.body,
            )
            try:
                await self._inbox.commit(batch)
            except StoreUnavailable:
                raise _EarlyResponse(503, {"message": "nothing was stored: send it again"}, [_RETRY]) from None
            self._live.record_batch(
                game.game_key,
                batch,
                categories=admission.categories,
                times=admission.times,
                rejected=admission.rejected,
            )
        if admission.rejected:
            return 400, admission.rejected
        is_empty = self._reply == "empty" or (self._reply == "auto" and admission.is_custom)
        return 200, b"" if is_empty else b"{}"

    def _judge_body(self, body: bytes, headers: dict[bytes, bytes]) -> tuple[AdmissionResult, bool]:
        """Judge the events of *body*, and return whether the stored body is still gzipped.

        It is stored as it was sent where possible: unpacked it would fill memory until it is on disk.
        """
        unpacked = _unpack_body(body, headers)
        admission = admit(unpacked.content, self._rules)
        if unpacked.is_one_member and admission.body is unpacked.content:
            return msgspec.structs.replace(admission, body=body), True
        return admission, False

    def _init_answer(self, game: TenantGame, user_id: str | None, query: dict[str, str]) -> tuple[InitAnswer, bool]:
        """Return the full answer of an init, and whether the client has it already."""
        interval_s = query.get("interval_seconds", "0")
        if not (interval_s.isascii() and interval_s.isdecimal()) or len(interval_s) > _MAX_INTERVAL_DIGITS:
            cause = f"the parameter interval_seconds is {shortened(interval_s, _SHOWN_LETTERS)!r}, not whole seconds"
            raise _EarlyResponse(400, [{"errors": [Violation("not_in_range", "/interval_seconds")]}], cause=cause)
        answer = answer_init(
            game,
            user_id=user_id,
            now_s=int(self._clock.now_s()),
            for_s=int(interval_s),
            is_versioned="config_vsn_supported" in query,
        )
        return answer, query.get("configs_hash") == answer.configs_hash


def _refusal(
    error: _EarlyResponse | BodyTooLarge | UndecodableBody | BadInit,
) -> tuple[int, Any, list[tuple[bytes, bytes]]]:
    """Return status, body and headers of the response to a request that ended with *error*."""
    match error:
        case BodyTooLarge():
            return 413, {"message": str(error)}, [_CLOSE] if error.is_cut else []
        case UndecodableBody():
            return 400, [{"errors": [Violation(error.error_type, "/")]}], []
        case BadInit():
            return 400, [{"errors": error.errors}], []
    return error.status, error.body, error.headers


def _route(scope: Scope) -> tuple[str, str]:
    """Return the route that a path names and the game key, or end the request with 404."""
    path = scope["path"]
    if path == _REMOTE_INIT:
        return "remote init", _query(scope).get("game_key", "")
    match path.split("/"):
        case ["", "v2", game_key, ("events" | "init") as route]:
            return route, game_key
    raise _EarlyResponse(
        404, {"message": f"no such address: POST /v2/<game_key>/events, /v2/<game_key>/init or {_REMOTE_INIT}"}
    )


def _query(scope: Scope) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the request's headers, with lines of one name joined (RFC 9110 5.3)."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) == len(scope["headers"]):
        return headers
    headers.clear()
    for name, value in scope["headers"]:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


def _header_errors(headers: dict[bytes, bytes]) -> list[Violation]:
    """Return what the strict rules say of *headers* (Wire 1.3, Request headers)."""
    content_type = headers.get(b"content-type")
    if content_type is None:
        return [Violation("missing_required_property", "/Content-Type")]
    is_json = content_type.partition(b";")[0].strip().lower() == b"application/json"
    return [] if is_json else [Violation("no_match", "/Content-Type")]


def _strict_init_errors(content: bytes) -> list[Violation]:
    """Return what the strict rules say of an init with *content*."""
    try:
        admit_init(content, INIT_VALIDATORS["strict"])
    except BadInit as error:
        return error.errors
    return []


async def _read_bounded_body(receive: Receive, headers: dict[bytes, bytes], *, deadline_s: float) -> bytes:
    """Return the whole body, or end the request with 408 or 503."""
    try:
        if b"expect" in headers and headers.get(b"content-length", b"").isdigit():
            check_size(int(headers[b"content-length"]))  # the client waits for this answer before it sends the body
        return await read_body(receive, deadline_s=deadline_s)
    except (BodyTooSlow, ClientDisconnected) as error:
        raise _EarlyResponse(408, {"message": str(error)}, [_CLOSE]) from None
    except OSError:
        raise _EarlyResponse(503, {"message": "there is no room for the body: send it again"}, [_RETRY]) from None


def _unpack_body(body: bytes, headers: dict[bytes, bytes]) -> Unpacked:
    """Return the content of *body*, which may be gzipped once (RFC 9110 8.4)."""
    codings = [coding.strip().lower() for coding in headers.get(b"content-encoding", b"").split(b",")]
    applied = [coding for coding in codings if coding not in (b"", b"identity")]
    if not applied:
        return Unpacked(body, is_one_member=False)
    if applied not in ([b"gzip"], [b"x-gzip"]):
        raise UndecodableBody("wrong_format")
    return unpack(body)
