"""A thin client of the collector for one game: asks how to behave (init) and submits events (Collector).

It runs on the caller's loop, because a simulator sends thousands of requests and each hop to another thread costs.
"""

from __future__ import annotations

import gzip
import secrets
import time
from collections.abc import Callable
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from gamelens.client.settings import collector_settings
from gamelens.client.transport import Answer, HttpPool, Outgoing, Transport
from gamelens.errors import ServiceError
from gamelens.wire.remote import BigInitAnswer, InitRequest, SmallInitAnswer
from gamelens.wire.signing import sign

SDK_VERSION: Final = "rest api v2"  # Collector, Init request body: custom integrations send exactly this
_EVENTS_ANSWERS: Final = frozenset({200, 201, 204, 400})
_INIT_ANSWERS: Final = frozenset({200, 201})


class EventFault(msgspec.Struct, frozen=True):
    """One thing the collector found wrong; *path* is `/field`."""

    error_type: str
    path: str


class Rejected(msgspec.Struct, frozen=True):
    """An event that was not collected, as it was sent, and why; *event* is None where nothing could be read."""

    errors: list[EventFault]
    event: Any = None


class Submitted(msgspec.Struct, frozen=True):
    """The collector's answer: 200 when all events were collected, 400 when all but the *rejected* were."""

    status: int
    sent_bytes: int
    rejected: tuple[Rejected, ...] = ()


class CollectorClient:
    """Talks to the collector for one game.

    Args:
        collector_url: the address; else GAMELENS_COLLECTOR_URL, else the config file.
        game_key: of the game; else GAMELENS_GAME_KEY, else the config file.
        secret_key: signs and is never sent; else GAMELENS_SECRET_KEY, else the config file.
        gzip_level: 1 (fast) to 9 (small); 0 sends plain JSON.
        max_wait_s: how long one request may spend on retries.
        at_once: connections kept open.
        transport: carries requests in place of the network, such as `httpx.ASGITransport(app)`.
        clock: epoch seconds of this machine.

    Raises:
        AuthError: a key is missing.
        BadQuery: the address is missing.
    """

    def __init__(
        self,
        *,
        collector_url: str | None = None,
        game_key: str | None = None,
        secret_key: str | None = None,
        gzip_level: int = 1,
        max_wait_s: float = 60.0,
        at_once: int = 16,
        transport: HttpPool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        settings = collector_settings(collector_url=collector_url, game_key=game_key, secret_key=secret_key)
        self.game_key = settings.game_key
        self.offset_s = 0
        self.configs: BigInitAnswer | None = None
        self._secret = settings.secret_key
        self._gzip_level = gzip_level
        self._clock = clock
        self._transport = Transport(settings.collector_url, max_wait_s=max_wait_s, at_once=at_once, pool=transport)
        self._events_path = f"/v2/{quote(self.game_key, safe='')}/events"

    def __repr__(self) -> str:
        return f"CollectorClient({self._transport.address!r}, game_key={self.game_key!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def init(
        self,
        *,
        user_id: str,
        platform: str,
        os_version: str,
        build: str | None = None,
        random_salt: str | None = None,
        sdk_version: str = SDK_VERSION,
        interval_seconds: int = 0,
    ) -> BigInitAnswer:
        """What holds for *user_id* now: configs and experiment (Collector, POST /remote_configs/v1/init).

        The clock offset is kept in `offset_s`, the answer in `configs`; with a small answer the last big one still
        holds. One client stands for one device: the hash of another user's configs is not for you.

        Raises:
            AuthError: a key is wrong.
            BadQuery: the collector refuses a field.
            ServiceError: the answer is not the promised JSON.
        """
        said = InitRequest(
            user_id=user_id,
            platform=platform,
            os_version=os_version,
            sdk_version=sdk_version,
            random_salt=random_salt or secrets.token_hex(8),
            build=build,
        )
        params = [("game_key", self.game_key), ("interval_seconds", str(interval_seconds))]
        if self.configs is not None:
            params.append(("configs_hash", self.configs.configs_hash))
        body = msgspec.json.encode(said)
        answer = await self._transport.send(
            Outgoing(
                method="POST",
                path="/remote_configs/v1/init",
                params=params,
                headers=self._headers(body),
                body=body,
                answers=_INIT_ANSWERS,
            )
        )
        return self._keep(answer)

    def adjusted(self, client_ts: float) -> int:
        """A local time as the collector's clock has it (Collector, POST init 3)."""
        return int(client_ts) + self.offset_s

    async def submit(self, events: bytes, *, forwarded_for: str | None = None) -> Submitted:
        """Send *events*, a JSON array ready to go, and say which were rejected (Collector, POST events).

        Args:
            events: the array; 1 MB at most once gzipped.
            forwarded_for: IP of the player, when a server submits for one (Collector, Submitting on behalf 2).

        Raises:
            AuthError: a key is wrong.
            BadQuery: the body is too large.
            ServiceError: the answer is none that was promised.
            Unreachable: nobody answers; the events may or may not have been collected.
        """
        body = gzip.compress(events, self._gzip_level, mtime=0) if self._gzip_level else events
        headers = self._headers(body)
        if self._gzip_level:
            headers["Content-Encoding"] = "gzip"
        if forwarded_for is not None:
            headers["X-Forwarded-For"] = forwarded_for
        answer = await self._transport.send(
            Outgoing(method="POST", path=self._events_path, headers=headers, body=body, answers=_EVENTS_ANSWERS)
        )
        return Submitted(answer.status, len(body), _rejected(answer) if answer.status == 400 else ())

    def _headers(self, body: bytes) -> dict[str, str]:
        return {
            "Authorization": sign(body, secret_key=self._secret.reveal()),
            "Content-Type": "application/json",
        }

    def _keep(self, answer: Answer) -> BigInitAnswer:
        try:
            if answer.status == 201:
                self.configs = msgspec.json.decode(answer.body, type=BigInitAnswer)
                server_ts = self.configs.server_ts
            else:
                server_ts = msgspec.json.decode(answer.body, type=SmallInitAnswer).server_ts
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServiceError(answer.status, f"not the promised JSON: {error}") from None
        if self.configs is None:
            raise ServiceError(answer.status, "says the configs are still current, and there are none yet")
        self.offset_s = server_ts - int(self._clock())
        return self.configs


def _rejected(answer: Answer) -> tuple[Rejected, ...]:
    try:
        return msgspec.json.decode(answer.body, type=tuple[Rejected, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(answer.status, f"not the promised list of rejected events: {error}") from None
