"""A client of the collector for one game: init and submitting events.

The lower of two layers. One call is one request and nothing is remembered, so any number of players can share a client.
Sessions, queues and retries over time belong to the upper layer: `player_session` on a player's device, `game_server`
for many players. The client runs on the caller's loop, because a simulator sends thousands of requests and each hop to
another thread costs time.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from gamelens.client.connection.settings import collector_settings
from gamelens.client.connection.transport import (
    ATTEMPTS,
    SMALL_ANSWER_BYTES,
    HttpBackend,
    HttpRequest,
    HttpResponse,
    RequestStats,
    Transport,
)
from gamelens.errors import ServiceError, suggests_names
from gamelens.wire.event_validator import RejectedEvent
from gamelens.wire.remote_config import InitAnswer, InitRequest, InitUnchanged, RemoteConfig
from gamelens.wire.signing import sign

try:  # installed with the sandbox: the same format in half the time
    from zlib_ng.zlib_ng import compress
except ImportError:
    from zlib import compress

SDK_VERSION: Final = "rest api v2"  # custom integrations send exactly this (Wire 3.4, Platforms and versions)
GZIP: Final = 31  # wbits: a gzip header without a time, so that equal events give equal bytes
_EVENTS_ANSWERS: Final = frozenset({200, 201, 204, 400})
_ALL_ANSWERS: Final = _EVENTS_ANSWERS | {401, 413}
_INIT_ANSWERS: Final = frozenset({200, 201})


@suggests_names
class SubmitResult(msgspec.Struct, frozen=True):
    """The collector's answer to one batch, whose body had *sent_bytes*.

    The status is 200 if all events were collected, 400 if all but *rejected* were. `submit_as_is` also returns 401 and
    413: then no event was collected.
    """

    status: int
    sent_bytes: int
    rejected: tuple[RejectedEvent, ...] = ()

    def __repr__(self) -> str:
        if self.status not in (200, 400):
            what = "no event was collected"
        elif self.is_unread:
            what = "the body could not be read, so no event was collected"
        elif self.rejected:
            events = "1 event was" if len(self.rejected) == 1 else f"{len(self.rejected)} events were"
            what = f"{events} rejected and all others collected; .rejected names the broken rules"
        else:
            what = "all events were collected"
        return f"<SubmitResult: {what} (status {self.status}, {self.sent_bytes:,} bytes sent)>"

    @property
    def is_unread(self) -> bool:
        """Whether the collector could not read the body, so that it collected none of its events."""
        return any(rejected.event is None for rejected in self.rejected)


@suggests_names
class GameStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a version 2 init.

    *enabled* and *server_ts*, in epoch seconds, are None if the answer does not say. *init* has the configs and
    experiment, if the collector serves them here too.
    """

    enabled: bool | None
    server_ts: int | None
    flags: list[Any] = []
    init: InitAnswer | None = None


@suggests_names
class CollectorClient:
    """A client of the collector for one game.

    Args:
        collector_url: the address; else GAMELENS_COLLECTOR_URL, else the config file.
        game_key: of the game; else GAMELENS_GAME_KEY, else the config file.
        secret_key: signs and is never sent; else GAMELENS_SECRET_KEY, else the config file.
        gzip_level: 1 (fast) to 9 (small); 0 sends plain JSON. 2 is hardly slower than 1 and much smaller with zlib-ng.
        max_wait_s: how long one request may take, with its retries and however slowly the answer comes.
        at_once: limit of open connections.
        ca_file: the certificate authority of a sandbox with --tls; else SSL_CERT_FILE.
        allow_http: whether the address may be plain http beyond this machine; else GAMELENS_ALLOW_HTTP=1 or the config
            file.
        transport: sends the requests instead of the network, such as `httpx.ASGITransport(app)`.

    Attributes:
        requests: requests sent so far: inits, retries and those without an answer among them.
        sent_bytes: size of their bodies, as sent.

    Every call may raise:
        AuthError: a key is wrong.
        BadQuery: the collector refuses a field, or the size of the body.
        RateLimited: it answers 429, once more or too long.
        ServiceError: the answer is not a documented one.
        Unreachable: there is no answer; the events may or may not have been collected.
    """

    def __init__(
        self,
        *,
        collector_url: str | None = None,
        game_key: str | None = None,
        secret_key: str | None = None,
        gzip_level: int = 2,
        max_wait_s: float = 60.0,
        at_once: int = 16,
        ca_file: str | None = None,
        allow_http: bool = False,
        transport: HttpBackend | None = None,
    ) -> None:
        settings = collector_settings(
            collector_url=collector_url, game_key=game_key, secret_key=secret_key, allow_http=allow_http
        )
        self.game_key = settings.game_key
        self._secret = settings.secret_key
        self._gzip_level = gzip_level
        self.requests = self.sent_bytes = 0
        self._transport = Transport(
            settings.collector_url,
            key_hint=settings.key_hint,
            max_wait_s=max_wait_s,
            max_answer_bytes=SMALL_ANSWER_BYTES,
            at_once=at_once,
            ca_file=ca_file,
            pool=transport,
        )

    @property
    def address(self) -> str:
        """The address of the collector."""
        return self._transport.address

    def __repr__(self) -> str:
        return f"CollectorClient({self.address!r}, game_key={self.game_key!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def init_v2(
        self,
        *,
        user_id: str,
        platform: str,
        os_version: str,
        build: str | None = None,
        forwarded_for: str | None = None,
        attempts: int = ATTEMPTS,
    ) -> GameStatus:
        """Return whether the game accepts events, and the server's time.

        Wire 1.11, Version 2 init.
        """
        body = _init_body(user_id, platform, os_version, build)
        headers = self._headers(body, forwarded_for)
        response = await self._post("version 2 init", self._path("init"), body, headers, _INIT_ANSWERS, attempts)
        try:
            answer = _decoded(response)
        except ServiceError:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                said = msgspec.json.decode(response.body)
                if isinstance(said, dict) and said.get("enabled") is False:  # obeyed, whatever else is wrong
                    return GameStatus(enabled=False, server_ts=None)
            raise
        return GameStatus(
            enabled=answer.enabled, server_ts=answer.server_ts, flags=answer.flags, init=answer.init_answer()
        )

    async def init(
        self,
        *,
        user_id: str,
        platform: str,
        os_version: str,
        build: str | None = None,
        configs_hash: str | None = None,
        interval_seconds: int = 0,
        forwarded_for: str | None = None,
        attempts: int = ATTEMPTS,
    ) -> InitAnswer | InitUnchanged:
        """Return the remote configs and experiment of *user_id*.

        Wire 1.12, Remote config init. `InitUnchanged` answers only a *configs_hash* that is still current: the init
        answer with that hash still holds. A hash is valid for one user.
        """
        params = [("game_key", self.game_key), ("interval_seconds", str(interval_seconds))]
        if configs_hash is not None:
            params.append(("configs_hash", configs_hash))
        body = _init_body(user_id, platform, os_version, build)
        headers = self._headers(body, forwarded_for)
        response = await self._post(
            "remote config init", "/remote_configs/v1/init", body, headers, _INIT_ANSWERS, attempts, params
        )
        answer = _decoded(response)
        if (full := answer.init_answer()) is not None:
            return full
        if configs_hash is None or response.status == 201:
            raise ServiceError(response.status, "not the expected JSON: no configs and configs_hash")
        return InitUnchanged(server_ts=answer.server_ts)

    async def submit(
        self, events: bytes, *, forwarded_for: str | None = None, attempts: int = ATTEMPTS
    ) -> SubmitResult:
        """Send *events*, an encoded JSON array, and return which were rejected.

        Wire 1.7, Submitting events.

        Args:
            events: the array; at most 1 MB when gzipped.
            forwarded_for: IP of the player, if a server submits for players (Wire 1.16, Submitting for players).
            attempts: at most; 1 leaves retries to the caller.
        """
        body = compress(events, self._gzip_level, wbits=GZIP) if self._gzip_level else events
        headers = self._headers(body, forwarded_for, is_gzipped=self._gzip_level > 0)
        return await self._submit(body, headers, _EVENTS_ANSWERS, attempts)

    async def submit_as_is(self, body: bytes, *, is_gzipped: bool, signed: bytes | None = None) -> SubmitResult:
        """Send *body* unchanged, valid or not, and return the answer, to test a collector.

        Args:
            body: the bytes to send, which may be too large, truncated or no events.
            is_gzipped: whether the headers say gzip, true or not.
            signed: the bytes to sign; *body* by default.
        """
        headers = self._headers(body if signed is None else signed, None, is_gzipped=is_gzipped)
        return await self._submit(body, headers, _ALL_ANSWERS, ATTEMPTS)

    async def _submit(
        self, body: bytes, headers: dict[str, str], expected_statuses: frozenset[int], attempts: int
    ) -> SubmitResult:
        """Post *body* to the events route."""
        response = await self._post("events", self._path("events"), body, headers, expected_statuses, attempts)
        if response.status != 400:
            return SubmitResult(response.status, len(body))
        try:
            rejected = msgspec.json.decode(response.body, type=tuple[RejectedEvent, ...])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServiceError(response.status, f"not the expected list of rejected events: {error}") from None
        return SubmitResult(response.status, len(body), rejected)

    async def _post(
        self,
        subject: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        expected_statuses: frozenset[int],
        attempts: int,
        params: Sequence[tuple[str, str]] = (),
    ) -> HttpResponse:
        """Post *body*, called *subject* in the log, and count the requests that it takes."""
        request = HttpRequest(
            method="POST",
            path=path,
            params=params,
            headers=headers,
            body=body,
            expected_statuses=expected_statuses,
            attempts=attempts,
            subject=subject,
        )
        tally = RequestStats()
        try:
            return await self._transport.send(request, tally)
        finally:
            self.requests += tally.requests
            self.sent_bytes += tally.requests * len(body)

    def _path(self, route: str) -> str:
        return f"/v2/{quote(self.game_key, safe='')}/{route}"

    def _headers(self, signed: bytes, forwarded_for: str | None, *, is_gzipped: bool = False) -> dict[str, str]:
        headers = {
            "Authorization": sign(signed, secret_key=self._secret.reveal()),
            "Content-Type": "application/json",
        }
        headers |= {"X-Forwarded-For": forwarded_for} if forwarded_for is not None else {}
        return headers | ({"Content-Encoding": "gzip"} if is_gzipped else {})


class _TolerantAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to either init, in which all but the time may be missing.

    A service may serve configs at both addresses, and configs may have value types that a later service adds (Wire
    1.13, Configs and experiments). Only `enabled` = false disables a game.
    """

    server_ts: int
    enabled: bool | None = None
    flags: list[Any] = []
    configs: list[Any] | None = None
    configs_hash: str | None = None
    ab_id: str | None = None
    ab_variant_id: str | None = None

    def init_answer(self) -> InitAnswer | None:
        """Return configs of known types and the experiment, or None without configs."""
        if self.configs is None or self.configs_hash is None:
            return None
        return InitAnswer(
            server_ts=self.server_ts,
            configs=[config for config in map(_known_config, self.configs) if config is not None],
            configs_hash=self.configs_hash,
            ab_id=self.ab_id,
            ab_variant_id=self.ab_variant_id,
        )


def _known_config(value: Any) -> RemoteConfig | None:
    """Return *value* as a config, or None if its type is unknown. A null bound means no bound."""
    if not isinstance(value, dict):
        return None
    try:
        return msgspec.convert({name: member for name, member in value.items() if member is not None}, RemoteConfig)
    except msgspec.ValidationError:
        return None


def _decoded(response: HttpResponse) -> _TolerantAnswer:
    """Decode the answer to an init.

    Raises:
        ServiceError: it is not the documented JSON, or its time is not above 0.
    """
    try:
        decoded = msgspec.json.decode(response.body, type=_TolerantAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(response.status, f"not the expected JSON: {error}") from None
    if decoded.server_ts <= 0:
        raise ServiceError(response.status, f"server_ts = {decoded.server_ts} is not a time: it must be above 0")
    return decoded


def _init_body(user_id: str, platform: str, os_version: str, build: str | None) -> bytes:
    """Return the body of both init requests. Wire 1.11, Version 2 init."""
    return msgspec.json.encode(
        InitRequest(
            user_id=user_id,
            platform=platform,
            os_version=os_version,
            sdk_version=SDK_VERSION,
            random_salt=secrets.token_hex(8),
            build=build,
        )
    )
