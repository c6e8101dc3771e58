"""A client of the control API of a sandbox: counts, processing, clock.

Wire 5.1, Control API.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from urllib.parse import SplitResult

import msgspec

from gamelens.client.connection.settings import split_address
from gamelens.client.connection.transport import SMALL_ANSWER_BYTES, HttpBackend, HttpRequest, Transport
from gamelens.errors import BadQuery, ServiceError, Unreachable
from gamelens.wire.limits import OLDEST_DAYS

CONTROL_URL_VARIABLE: Final = "GAMELENS_CONSOLE_URL"
_WITHIN_S: Final = 5.0

T = TypeVar("T")


class GameCounts(msgspec.Struct, frozen=True):
    """Events of one game since the sandbox was started.

    *strict_refusals* are accepted events that the strict rules would refuse.
    """

    title: str = ""
    accepted: int = 0
    rejected: int = 0
    strict_refusals: int = 0


class StrictCounts(msgspec.Struct, frozen=True):
    """Events, headers or inits that were accepted: those that the strict rules *judged* and would have *refused*.

    *errors* counts the reasons, such as `not_in_enum /platform`.
    """

    judged: int = 0
    refused: int = 0
    errors: dict[str, int] = {}


class CountsSinceStart(msgspec.Struct, frozen=True):
    """Counts since the sandbox was started.

    *strict_refusals* are accepted events that the strict rules would refuse. *categories* has the events of each
    category by status, *games* the events of each game by game key, *refused* the requests that were refused as a
    whole, by status, and *strict* what the strict rules say of the accepted `events`, `headers` and `init`.
    *dated_by_arrival* are accepted events whose device states no time that can be true, by reason.
    """

    since_ts: int = 0
    accepted: int = 0
    rejected: int = 0
    strict_refusals: int = 0
    categories: dict[str, dict[str, int]] = {}
    games: dict[str, GameCounts] = {}
    refused: dict[str, int] = {}
    dated_by_arrival: dict[str, int] = {}
    strict: dict[str, StrictCounts] = {}


class DamagedBatches(msgspec.Struct, frozen=True):
    """Damage to a sandbox's store: batches that could not be read, and the files that hold them.

    *lake* says why questions are not answered, by organisation; under an empty name, the questions of all.
    """

    batches: int = 0
    files: list[str] = msgspec.field(default_factory=list, name="kept_in")
    lake: dict[str, str] = {}


class ProcessingProgress(msgspec.Struct, frozen=True):
    """Progress of a processing run: events to take in, decoded, and in the tables.

    *rest_s* is the time that the rest takes at this speed, None before the first event.
    """

    events: int = 0
    decoded: int = 0
    committed: int = 0
    seconds: float = 0.0
    events_per_s: int = 0
    rest_s: float | None = None


class FailingOrganisation(msgspec.Struct, frozen=True):
    """An organisation whose events cannot be processed, with the number of runs in a row that failed."""

    reason: str = ""
    failures: int = 0
    retry_ts: int = 0


class ControlSummary(msgspec.Struct, frozen=True):
    """Counts of everything a sandbox has received.

    *pending* are accepted events that are not processed yet, *processed* those in the tables, and *duplicate* those
    that repeated an `event_uuid` and were dropped; with *repeats* "count" none is. *dated_by_arrival* has the processed
    events whose device states no time that can be true, by organisation and reason. *available* has the available
    interval of each organisation by name, *games* the counts of each game by id, *faults* the number of fault rules,
    and *failing* the organisations whose events cannot be processed, by name. A time of a device is used from
    *oldest_days* before the arrival on.
    """

    accepted: int = 0
    rejected: int = 0
    pending: int = 0
    duplicate: int = 0
    dated_by_arrival: dict[str, dict[str, int]] = {}
    repeats: str = "drop"
    metrics_requests: int = msgspec.field(default=0, name="asked")
    processed: int = 0
    available: dict[str, str] = {}
    games: dict[str, dict[str, int]] = {}
    since_start: CountsSinceStart = CountsSinceStart()
    faults: int = 0
    damaged: DamagedBatches = DamagedBatches()
    processing: ProcessingProgress | None = None
    failing: dict[str, FailingOrganisation] = {}
    oldest_days: int = OLDEST_DAYS


class _Clock(msgspec.Struct, frozen=True):
    now: datetime


def control_address(url: str | None = None, *, environ: Mapping[str, str] = os.environ) -> SplitResult:
    """Return the parts of the address of a control API, *url* or else GAMELENS_CONSOLE_URL.

    Raises:
        BadQuery: it is missing or invalid. The error does not show it, since it holds the token.
    """
    name, text = ("console_url", url) if url else (CONTROL_URL_VARIABLE, environ.get(CONTROL_URL_VARIABLE, ""))
    must_be = "must be the console_url that `gamelens sandbox up --ready FILE` writes into FILE"
    if not text.strip():
        raise BadQuery("console_url", msgspec.UNSET, f"is missing, and so is {CONTROL_URL_VARIABLE}: it {must_be}")
    try:
        parts = split_address(text.strip())
    except ValueError as error:
        raise BadQuery(name, msgspec.UNSET, f"{error}: it {must_be}") from None
    if not parts.path.strip("/"):
        raise BadQuery(name, msgspec.UNSET, f"ends without a token: it {must_be}")
    return parts


class ControlApi:
    """A client of the control API of a sandbox.

    The address is the `console_url` of the sandbox's ready file, else GAMELENS_CONSOLE_URL. Its last part is a token,
    which appears in no repr and no error. A call may take *within_s*.

    Every call may raise:
        ServiceError: the answer is not from a sandbox.
        Unreachable: there is no answer in time.

    Raises:
        BadQuery: the address is missing or invalid.
    """

    def __init__(
        self, url: str | None = None, *, within_s: float = _WITHIN_S, attempts: int = 1, pool: HttpBackend | None = None
    ) -> None:
        parts = control_address(url)
        self._path = parts.path.rstrip("/")
        self._within_s = within_s
        self._attempts = attempts
        self._transport = Transport(
            f"{parts.scheme}://{parts.netloc}",
            max_wait_s=within_s,
            timeout_s=within_s,
            max_answer_bytes=SMALL_ANSWER_BYTES,
            pool=pool,
        )

    def __repr__(self) -> str:
        return f"ControlApi({self._transport.address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def summary(self) -> ControlSummary:
        """Return the counts of everything received."""
        return await self._call("GET", "/summary", ControlSummary)

    async def process(self) -> dict[str, str]:
        """Process everything received and return each organisation's available interval by name."""
        return await self._call("POST", "/process", dict[str, str])

    async def load(self) -> dict[str, str]:
        """Make the files in the folder `load` of the state directory the lake of a sandbox without events.

        Returns each organisation's available interval by name. The files are gone afterwards.

        Raises:
            ServiceError: there are events already.
        """
        return await self._call("POST", "/load", dict[str, str])

    async def reset(self) -> ControlSummary:
        """Delete every event and the scenario, keep the keys, and return the counts from then on."""
        return await self._call("POST", "/reset", ControlSummary)

    async def set_scenario(self, name: str | None) -> None:
        """Set the name of the scenario that the events are of, for receipts and figures.

        Raises:
            BadQuery: *name* is empty or longer than 200 characters.
        """
        await self._call("POST", "/scenario", dict[str, str | None], body=msgspec.json.encode({"scenario": name}))

    async def health(self) -> None:
        """Check that the sandbox accepts requests.

        Raises:
            ServiceError: it does not.
        """
        await self._call("GET", "/health", dict[str, Any])

    async def set_clock(
        self, *, freeze: datetime | None = None, advance: str | None = None, resume: bool = False
    ) -> datetime:
        """Set the clock of the sandbox and return its time.

        Args:
            freeze: the time at which it stops.
            advance: an ISO 8601 duration to move it by.
            resume: whether it follows the clock of the machine again.

        Raises:
            BadQuery: none of these is given, or *advance* is not a duration.
        """
        command: dict[str, object] = {"freeze": freeze.isoformat()} if freeze is not None else {}
        command |= {"advance": advance} if advance is not None else {}
        command |= {"resume": True} if resume else {}
        return (await self._call("POST", "/clock", _Clock, body=msgspec.json.encode(command))).now

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _call(self, method: str, path: str, kind: type[T], *, body: bytes | None = None) -> T:
        """Send one request and return its decoded answer."""
        request = HttpRequest(
            method=method,
            path=self._path + path,
            body=body,
            attempts=self._attempts,
            subject=f"control API {path}",
        )
        try:
            async with asyncio.timeout(self._within_s):
                response = await self._transport.send(request)
        except TimeoutError:
            raise Unreachable(f"the sandbox did not answer within {self._within_s:g} s") from None
        try:
            return msgspec.json.decode(response.body, type=kind)
        except msgspec.DecodeError:
            raise ServiceError(response.status, f"{path.strip('/')} is not in the form that a sandbox sends") from None
