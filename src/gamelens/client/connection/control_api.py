"""A client of the control API of a sandbox: its counts and events, processing, its clock."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from gamelens.client.connection.transport import HttpBackend, HttpRequest, Transport
from gamelens.errors import BadQuery, ServiceError, Unreachable
from gamelens.wire.field_rules import Violation

CONSOLE_URL: Final = "GAMELENS_CONSOLE_URL"
_WITHIN_S: Final = 5.0

T = TypeVar("T")


class GameCounts(msgspec.Struct, frozen=True):
    """Events of one game since the sandbox was started."""

    title: str = ""
    accepted: int = 0
    rejected: int = 0


class CountsSinceStart(msgspec.Struct, frozen=True):
    """Counts since the sandbox was started.

    Attributes:
        since_ts: when that was, epoch seconds.
        accepted, rejected: events.
        categories: events of each category, by status.
        games: events of each game, by game key.
        refused: requests that were refused as a whole, by status.
    """

    since_ts: int = 0
    accepted: int = 0
    rejected: int = 0
    categories: dict[str, dict[str, int]] = {}
    games: dict[str, GameCounts] = {}
    refused: dict[str, int] = {}


class Damaged(msgspec.Struct, frozen=True):
    """Batches that could not be read, and the files they are kept in."""

    batches: int = 0
    kept_in: list[str] = []


class ControlSummary(msgspec.Struct, frozen=True):
    """Counts of everything a sandbox has received.

    Attributes:
        accepted, rejected: events.
        pending: accepted events that are not processed yet.
        duplicate: events that were sent twice.
        asked: requests to the metrics service.
        processed: events in the tables.
        available: the available interval of each organisation, by name.
        games: the counts of each game, by id.
        since_start: counts since the sandbox was started.
        faults: how many faults are set.
        damaged: batches that could not be read.
    """

    accepted: int = 0
    rejected: int = 0
    pending: int = 0
    duplicate: int = 0
    asked: int = 0
    processed: int = 0
    available: dict[str, str] = {}
    games: dict[str, dict[str, int]] = {}
    since_start: CountsSinceStart = CountsSinceStart()
    faults: int = 0
    damaged: Damaged = Damaged()


class ReceivedEvent(msgspec.Struct, frozen=True):
    """One event as it came (*event* may be any JSON), when (epoch seconds), for which game, and what became of it."""

    arrival_ts: int
    game_key: str
    status: str
    event: Any = None
    errors: list[Violation] = []

    def __repr__(self) -> str:
        return f"Arrived({self.arrival_ts}, {self.status!r})"


class _Clock(msgspec.Struct, frozen=True):
    now: datetime


class ControlApi:
    """A client of the control API of a sandbox.

    The last part of the address is a token, and in no repr and no error.

    Args:
        url: the `console_url` of the sandbox's ready file; else GAMELENS_CONSOLE_URL.
        within_s: how long one call may take.
        attempts: how often one call is tried.
        pool: carries requests in place of the network.

    Every call may raise:
        ServiceError: the answer is none of a sandbox.
        Unreachable: there is no answer in time.

    Raises:
        BadQuery: there is no address, or it is none.
    """

    def __init__(
        self, url: str | None = None, *, within_s: float = _WITHIN_S, attempts: int = 1, pool: HttpBackend | None = None
    ) -> None:
        url = url or os.environ.get(CONSOLE_URL) or ""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
            given = "an address" if url else None
            raise BadQuery("console_url", given, "must be what `gamelens sandbox up --ready FILE` writes into FILE")
        self._path = parts.path.rstrip("/")
        self._within_s = within_s
        self._attempts = attempts
        self._transport = Transport(f"{parts.scheme}://{parts.netloc}", timeout_s=within_s, pool=pool)

    def __repr__(self) -> str:
        return f"Console({self._transport.address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def summary(self) -> ControlSummary:
        """Return the counts of everything received."""
        return await self._call("GET", "/summary", ControlSummary)

    async def events(self, *, limit: int = 20) -> list[ReceivedEvent]:
        """Return the events that arrived last, newest first."""
        return await self._call("GET", "/events", list[ReceivedEvent], limit=limit)

    async def process(self) -> dict[str, str]:
        """Process everything received; return the available interval of each organisation, by name."""
        return await self._call("POST", "/process", dict[str, str])

    async def reset(self) -> ControlSummary:
        """Forget every event and the scenario, keep the keys, and return the counts from then on."""
        return await self._call("POST", "/reset", ControlSummary)

    async def set_scenario(self, name: str | None) -> None:
        """Set the name of the scenario that the events are of, for receipts and figures.

        Raises:
            BadQuery: *name* is empty or longer than 200 characters.
        """
        await self._call("POST", "/scenario", dict[str, str | None], body=msgspec.json.encode({"scenario": name}))

    async def health(self) -> None:
        """Check that the sandbox takes requests.

        Raises:
            ServiceError: it does not.
        """
        await self._call("GET", "/health", dict[str, Any])

    async def set_clock(
        self, *, freeze: datetime | None = None, advance: str | None = None, resume: bool = False
    ) -> datetime:
        """Set the clock of the sandbox and return its time.

        Args:
            freeze: the time at which it stands still from now on.
            advance: an ISO 8601 duration to move it by.
            resume: let it run with the clock of the machine again.

        Raises:
            BadQuery: none of these is given, or *advance* is no duration.
        """
        order: dict[str, object] = {"freeze": freeze.isoformat()} if freeze is not None else {}
        order |= {"advance": advance} if advance is not None else {}
        order |= {"resume": True} if resume else {}
        return (await self._call("POST", "/clock", _Clock, body=msgspec.json.encode(order))).now

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _call(self, method: str, path: str, kind: type[T], *, body: bytes | None = None, **query: object) -> T:
        params = [(name, str(value)) for name, value in query.items()]
        request = HttpRequest(method=method, path=self._path + path, params=params, body=body, attempts=self._attempts)
        try:
            async with asyncio.timeout(self._within_s):
                answer = await self._transport.send(request)
        except TimeoutError:
            raise Unreachable(f"the sandbox did not answer within {self._within_s:g} s") from None
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise ServiceError(answer.status, f"no {path.strip('/')} as a sandbox writes it") from None
