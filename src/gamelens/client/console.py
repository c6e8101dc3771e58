"""What a sandbox tells about itself at its control surface: how much came, and what came last."""

from __future__ import annotations

import os
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from gamelens.client.transport import HttpPool, Outgoing, Transport
from gamelens.errors import BadQuery, ServiceError
from gamelens.wire.rules import Violation

CONSOLE_URL: Final = "GAMELENS_CONSOLE_URL"
_SILENCE_S: Final = 5.0

T = TypeVar("T")


class Received(msgspec.Struct, frozen=True):
    """What came for one game since the sandbox was started."""

    title: str = ""
    accepted: int = 0
    rejected: int = 0


class SinceStart(msgspec.Struct, frozen=True):
    """What came since the sandbox was started, for each game key."""

    games: dict[str, Received] = {}


class Summary(msgspec.Struct, frozen=True):
    """Events *accepted*, *rejected*, sent twice (*duplicate*), not processed yet (*pending*) and *processed*."""

    accepted: int = 0
    rejected: int = 0
    duplicate: int = 0
    pending: int = 0
    processed: int = 0
    since_start: SinceStart = SinceStart()


class Arrived(msgspec.Struct, frozen=True):
    """One event as it came (*event* may be any JSON), when (epoch seconds), for which game, and what became of it."""

    arrival_ts: int
    game_key: str
    status: str
    event: Any = None
    errors: list[Violation] = []

    def __repr__(self) -> str:
        return f"Arrived({self.arrival_ts}, {self.status!r})"


class Console:
    """Reads the control surface of a sandbox at *url*, the `console_url` of its ready file, else GAMELENS_CONSOLE_URL.

    The last part of the address is a token, and in no repr and no error.

    Raises:
        BadQuery: there is no address, or it is none.
    """

    def __init__(self, url: str | None = None, *, pool: HttpPool | None = None) -> None:
        url = url or os.environ.get(CONSOLE_URL) or ""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
            given = "an address" if url else None
            raise BadQuery("console_url", given, "must be what `gamelens sandbox up --ready FILE` writes into FILE")
        self._path = parts.path.rstrip("/")
        self._door = Transport(f"{parts.scheme}://{parts.netloc}", timeout_s=_SILENCE_S, pool=pool)

    def __repr__(self) -> str:
        return f"Console({self._door.address!r})"

    async def summary(self) -> Summary:
        """How much came."""
        return await self._get("/summary", Summary)

    async def events(self, *, limit: int = 20) -> list[Arrived]:
        """What came last, newest first."""
        return await self._get("/events", list[Arrived], limit=limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._door.aclose()

    async def _get(self, path: str, kind: type[T], **query: object) -> T:
        params = [(name, str(value)) for name, value in query.items()]
        answer = await self._door.send(Outgoing(method="GET", path=self._path + path, params=params, attempts=1))
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise ServiceError(answer.status, f"no {path.strip('/')} as a sandbox writes it") from None
