"""The collector: signed, gzipped posts of events, and both init routes (Collector, Endpoints).

Plain ASGI, because the signature covers the raw bytes: nothing may touch a body before us. The order of checks is size,
key and signature, encoding, events; whatever is refused leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Literal
from urllib.parse import parse_qs

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.admission import TooLarge, Undecodable, admit, unpack
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.countries import country_of
from gamelens.sandbox.experiments import answer_init
from gamelens.sandbox.inbox import Batch, Inbox, StoreFailed
from gamelens.sandbox.live import Live
from gamelens.sandbox.tenants import Game, Organisation, Tenants
from gamelens.wire.limits import BODY_BYTES
from gamelens.wire.remote import SmallInitAnswer, V2InitAnswer
from gamelens.wire.signing import is_signed

Reply = Literal["auto", "empty", "json"]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_DEADLINE_S: Final = 15.0
_DRAINED_BYTES: Final = 4 * BODY_BYTES  # past the limit a body is read on, so that its sender hears the answer
_REMOTE_INIT: Final = "/remote_configs/v1/init"
_HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, X-Requested-With, Content-Type, Content-Encoding"),
    (b"access-control-allow-methods", b"POST, OPTIONS"),
    (b"x-svc-service", b"collect"),
]
_LONGEST_INTERVAL: Final = 12  # digits
_NO_SECRET: Final = "0" * 40


class _Answered(Refused):
    """The request ends here, with this answer."""

    def __init__(self, status: int, body: Any, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.status = status
        self.body = body
        self.headers = headers or []
        super().__init__(status)


class CollectorService:
    """Takes events in and tells clients how to behave.

    *reply* is the body of a 200 for events: `empty` as the specification has it, `json` is ``{}``, `auto` is empty for
    custom integrations and ``{}`` for everybody else: every official client takes an empty body for being offline.
    """

    def __init__(self, tenants: Tenants, inbox: Inbox, clock: Clock, *, live: Live, reply: Reply = "auto") -> None:
        self._tenants = tenants
        self._inbox = inbox
        self._clock = clock
        self._live = live
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        headers: list[tuple[bytes, bytes]] = []
        try:
            status, body = await self._answer(scope, receive)
        except _Answered as answered:
            status, body, headers = answered.status, answered.body, answered.headers
            self._live.refused(status)
        payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
        if status != 204:
            headers = [*headers, (b"content-length", str(len(payload)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": [*_HEADERS, *headers]})
        await send({"type": "http.response.body", "body": payload})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Any]:
        route, game_key = _route(scope)
        if scope["method"] == "OPTIONS":
            return 204, b""
        if scope["method"] != "POST":
            raise _Answered(
                405, {"message": f"{scope['method']} is not for this address: use POST"}, [(b"allow", b"POST, OPTIONS")]
            )
        headers = dict(scope["headers"])
        body = await _body(receive)
        organisation, game = self._authorised(game_key, body, headers.get(b"authorization", b"").decode("latin-1"))
        content = _unpacked(body, headers)
        if route == "events":
            return await self._events(organisation, game, body, content, headers)
        user_id = _user_of(content)
        if route == "init":
            return 200, V2InitAnswer(enabled=game.enabled, server_ts=int(self._clock.now_s()))
        return self._remote_init(game, user_id, _query(scope))

    def _authorised(self, game_key: str, body: bytes, signature: str) -> tuple[Organisation, Game]:
        """The owner of the key; an unknown key costs as much time as a wrong signature and hears the same."""
        owner = self._tenants.game(game_key)
        signed = is_signed(body, signature, secret_key=owner[1].secret_key if owner else _NO_SECRET)
        if owner is None or not signed or owner[1].environment != "sandbox":
            raise _Answered(
                401,
                {
                    "message": "not authorised: check the game key, the secret key and that the "
                    "signature is of the very bytes sent"
                },
            )
        return owner

    async def _events(
        self, organisation: Organisation, game: Game, body: bytes, content: bytes, headers: dict[bytes, bytes]
    ) -> tuple[int, Any]:
        try:
            admission = admit(content)
        except Undecodable as error:
            raise _Answered(400, _undecodable(error.error_type)) from None
        if admission.events or admission.rejected:
            is_as_sent = admission.body is content and content is not body
            batch = Batch(
                organisation=organisation.name,
                game_id=game.id,
                arrival_ms=round(self._clock.now_s() * 1000),
                country=country_of(headers.get(b"x-forwarded-for", b"").decode("latin-1")),
                events=admission.events,
                rejected=len(admission.rejected),
                is_gzipped=is_as_sent,
                body=body if is_as_sent else admission.body,
            )
            try:
                await self._inbox.commit(batch)
            except StoreFailed:
                raise _Answered(
                    503, {"message": "nothing was stored: send it again"}, [(b"retry-after", b"5")]
                ) from None
            self._live.took(game.game_key, batch, categories=admission.categories, rejected=admission.rejected)
        if admission.rejected:
            return 400, admission.rejected
        is_empty = self._reply == "empty" or (self._reply == "auto" and admission.is_custom)
        return 200, b"" if is_empty else b"{}"

    def _remote_init(self, game: Game, user_id: str, query: dict[str, str]) -> tuple[int, Any]:
        interval_s = query.get("interval_seconds", "0")
        if not interval_s.isdecimal() or len(interval_s) > _LONGEST_INTERVAL:
            raise _Answered(400, [{"errors": [{"error_type": "not_in_range", "path": "/interval_seconds"}]}])
        answer = answer_init(
            game,
            user_id=user_id,
            now_s=int(self._clock.now_s()),
            for_s=int(interval_s),
            is_versioned="config_vsn_supported" in query,
        )
        if query.get("configs_hash") == answer.configs_hash:
            return 200, SmallInitAnswer(server_ts=answer.server_ts)
        return 201, answer


def _route(scope: Scope) -> tuple[str, str]:
    """What the path asks for, and the game key in it."""
    path = scope["path"]
    if path == _REMOTE_INIT:
        return "remote init", _query(scope).get("game_key", "")
    match path.split("/"):
        case ["", "v2", game_key, ("events" | "init") as route]:
            return route, game_key
    raise _Answered(
        404, {"message": f"no such address: POST /v2/<game_key>/events, /v2/<game_key>/init or {_REMOTE_INIT}"}
    )


def _query(scope: Scope) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}


async def _body(receive: Receive) -> bytes:
    """The whole body, if it comes in time and is not too large."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            while True:
                message = await receive()
                chunk = message.get("body", b"")
                size += len(chunk)
                if size <= BODY_BYTES:
                    chunks.append(chunk)
                if message["type"] == "http.disconnect" or not message.get("more_body") or size > _DRAINED_BYTES:
                    break
    except TimeoutError:
        raise _Answered(
            408, {"message": f"the body did not come within {BODY_DEADLINE_S:.0f} s"}, [(b"connection", b"close")]
        ) from None
    if size > BODY_BYTES:
        raise _Answered(413, {"message": f"the body is larger than {BODY_BYTES} bytes: send fewer events at a time"})
    return b"".join(chunks)


def _unpacked(body: bytes, headers: dict[bytes, bytes]) -> bytes:
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding in (b"identity", b""):
        return body
    try:
        if encoding != b"gzip":
            raise Undecodable("wrong_format")
        return unpack(body)
    except TooLarge as error:
        raise _Answered(413, {"message": str(error)}) from None
    except Undecodable as error:
        raise _Answered(400, _undecodable(error.error_type)) from None


def _user_of(content: bytes) -> str:
    """Who asks; refuses what is no init request: a JSON object, which some clients wrap in an array (1.4)."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _Answered(400, _undecodable("wrong_format")) from None
    wrapped = body[0] if isinstance(body, list) and len(body) == 1 else body
    if not isinstance(wrapped, dict):
        raise _Answered(400, _undecodable("wrong_type"))
    user_id = wrapped.get("user_id")
    if not isinstance(user_id, str):
        error_type = "wrong_type" if "user_id" in wrapped else "missing_required_property"
        raise _Answered(400, [{"errors": [{"error_type": error_type, "path": "/user_id"}]}])
    return user_id


def _undecodable(error_type: str) -> list[dict[str, Any]]:
    return [{"errors": [{"error_type": error_type, "path": "/"}]}]
