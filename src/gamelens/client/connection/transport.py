"""The only door to HTTP: sends a request, tries again where that may help, and speaks our errors.

No httpx type gets out, not even as the cause of an exception: its requests carry the key.
"""

from __future__ import annotations

import asyncio
import os
import random as randomness
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

import httpx
import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from gamelens.client.connection.rate_limit import RateLimiter, Route
from gamelens.client.connection.settings import Secret
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, Refused, ServiceError, Unreachable
from gamelens.wire.receipts import Provenance

ATTEMPTS: Final = 6
ATTEMPTS_AT_NOBODY: Final = 2  # an address that never answered is more likely wrong than busy
PASSING: Final = frozenset({429, 502, 503, 504})
CONNECT_S: Final = 10.0
KEY_HEADER: Final = "X-API-Key"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
# A JSON string with an escape in it. One that never ends is taken whole, or the search would begin anew at each quote.
_ESCAPED: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)++(?:"|\\?\Z)', re.DOTALL)

Params = Sequence[tuple[str, str]]


class HttpBackend(Protocol):
    """What carries requests in place of the network: any async transport of httpx, ASGITransport for one."""

    async def handle_async_request(self, request: Any) -> Any:
        """Carry one request."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request: where to, with what, which statuses are an answer rather than an error, and how often to try."""

    method: str
    path: str
    params: Params = ()
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    route: Route = "other"
    answers: Collection[int] = frozenset({200})
    attempts: int = ATTEMPTS


class HttpResponse(msgspec.Struct, frozen=True):
    """What came back; names of *headers* are lower-case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class HttpSender(Protocol):
    """What answers requests: the service itself (`Transport`), or what it once answered (`recording.Replay`)."""

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """The answer to *request*; *tally* counts what was sent for it."""

    async def aclose(self) -> None:
        """Let go of whatever is open."""

    @property
    def provenance(self) -> Provenance:
        """The origin of the answers, as far as it is known without asking."""


class RequestStats:
    """What one question cost: all requests sent, and how many of them were repeats; *note* says what it waits for."""

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.note = ""


class FailedAttempt(msgspec.Struct, frozen=True):
    """A failed attempt: the error to raise, whether another may help and after what wait, whether anyone is there."""

    error: GamelensError
    passing: bool = False
    retry_after_s: float | None = None
    is_nobody: bool = False


class Transport:
    """Talks to one service.

    Args:
        address: of the service, without a slash at its end.
        key: sent as X-API-Key and nowhere else.
        budget: paces the starts; None sends at once.
        max_wait_s: how long one request may spend waiting and failing before it is given up.
        timeout_s: how long the service may stay silent.
        at_once: connections kept open.
        ca_file: the authorities whose certificates hold (PEM); else SSL_CERT_FILE, else the usual ones.
        pool: carries the requests in place of the network.
        clock, sleep, now, random: time and chance.
    """

    def __init__(
        self,
        address: str,
        *,
        key: Secret | None = None,
        budget: RateLimiter | None = None,
        max_wait_s: float = 60.0,
        timeout_s: float = 60.0,
        at_once: int = 16,
        ca_file: str | None = None,
        pool: HttpBackend | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.address = address
        self._key = key
        self._budget = budget
        self._max_wait_s = max_wait_s
        self._timeout_s = timeout_s
        self._clock, self._sleep, self._now, self._random = clock, sleep, now, random
        self._has_answered = False
        self._http = httpx.AsyncClient(
            # Servers commonly drop an idle connection after 5 s; we let go first.
            limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once, keepalive_expiry=4.0),
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S), pool=None),
            transport=cast("httpx.AsyncBaseTransport | None", pool),
            trust_env=urlsplit(address).hostname not in LOOPBACK,  # a proxy cannot see our loopback
            verify=pool is None and _authorities(ca_file or os.environ.get("SSL_CERT_FILE"), address),
        )

    def __repr__(self) -> str:
        return f"Transport({self.address!r})"

    @property
    def provenance(self) -> Provenance:
        """The service at this address, taken for a real one."""
        return Provenance(kind="real", url=self.without_key(self.address.encode()).decode())

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """The answer to *request*, after as many attempts as it allows, 6 when it does not say.

        Raises:
            AuthError: 401 or 403.
            BadQuery: 400, 413 or 422; with the field, the value and what is allowed where the service says so.
            RateLimited: 429 to the end, or with a Retry-After beyond what may be waited.
            ServiceError: any other status that *request* does not count as an answer, or an answer cut short.
            Unreachable: no answer.
        """
        outcome = await _Call(self, request, tally or RequestStats()).outcome()
        if isinstance(outcome, HttpResponse):
            return outcome
        raise outcome.error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def without_key(self, body: bytes) -> bytes:
        """*body* with our key blotted out, should a service quote it; also where JSON spells it with escapes."""
        if self._key is None:
            return body
        key = self._key.reveal()
        body = body.replace(key.encode(), "…".encode())
        return _ESCAPED.sub(lambda found: _blotted(found.group(), key), body) if b"\\" in body else body

    async def _attempt(self, request: HttpRequest, on_sent: Callable[[], None] | None) -> HttpResponse | FailedAttempt:
        """One attempt; what httpx raises comes back as a value, so that no traceback leads to its request."""
        if self._http.is_closed:
            return FailedAttempt(Refused("this client is closed: make another one"))
        status = 0
        try:
            response = await self._http.send(self._build(request, on_sent), stream=True)
            status = response.status_code
            try:
                body = await response.aread()
            finally:
                await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return FailedAttempt(
                    Unreachable(f"{self.address} is not trusted: name its authority's file in SSL_CERT_FILE")
                )
            gone = Unreachable(f"nothing answers at {self.address}: check the address and that the service runs")
            return FailedAttempt(gone, passing=True, is_nobody=not self._has_answered)
        except httpx.TimeoutException:
            return FailedAttempt(
                Unreachable(f"{self.address} did not answer within {self._timeout_s:g} s"), passing=True
            )
        except (httpx.TransportError, httpx.DecodingError) as error:
            return self._broken(status, type(error).__name__)
        self._has_answered = True
        if status in request.answers:
            return HttpResponse(status, body, dict(response.headers))
        return self._fault(status, body, self._retry_after_s(response.headers.get("retry-after")))

    def _build(self, request: HttpRequest, on_sent: Callable[[], None] | None) -> httpx.Request:
        headers = dict(request.headers)
        if self._key is not None:
            headers[KEY_HEADER] = self._key.reveal()
        return self._http.build_request(
            request.method,
            self.address + request.path,
            params=list(request.params) or None,
            headers=headers,
            content=request.body,
            extensions=_tracing(on_sent) if on_sent is not None else None,
        )

    def _broken(self, status: int, name: str) -> FailedAttempt:
        if status:
            return FailedAttempt(ServiceError(status, f"an answer cut short ({name})"), passing=True)
        return FailedAttempt(Unreachable(f"the connection to {self.address} broke ({name})"), passing=True)

    def _fault(self, status: int, body: bytes, retry_after_s: float | None) -> FailedAttempt:
        body = self.without_key(body)
        said = _said(body)
        if status in (401, 403):
            return FailedAttempt(
                AuthError(f"{self.address} answers {status}: it does not know the key. {said.text}".strip())
            )
        if status == 429:
            wish = f", asking for {retry_after_s:g} s" if retry_after_s is not None else ""
            message = f"{self.address} keeps answering 429{wish}: ask less at a time, or again later"
            return FailedAttempt(RateLimited(retry_after_s, message), True, retry_after_s)
        return FailedAttempt(error_for(HttpResponse(status, body)), status in PASSING, retry_after_s)

    def _retry_after_s(self, header: str | None) -> float | None:
        """Seconds that Retry-After asks for, said as seconds or as an HTTP date; None when it says neither."""
        if header is None:
            return None
        try:
            return max(0.0, float(header)) if header.strip().isdigit() else self._until(header)
        except ValueError:
            return None

    def _until(self, date: str) -> float:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - self._now())


class _Call:
    """One request with its retries. Time spent waiting for a place in the budget does not count against it."""

    def __init__(self, transport: Transport, request: HttpRequest, tally: RequestStats) -> None:
        self._transport = transport
        self._request = request
        self._tally = tally
        self._spent_s = 0.0
        self._tries = 0
        self._forgiven = 0  # attempts that were refused because the budget probed how much the service carries

    async def outcome(self) -> HttpResponse | FailedAttempt:
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda outcome: isinstance(outcome, FailedAttempt) and outcome.passing),
            wait=self._wait_s,
            stop=self._is_over,
            sleep=self._wait,
            retry_error_callback=_last,
        )
        return cast("HttpResponse | FailedAttempt", await retrying(self._attempt))

    async def _attempt(self) -> HttpResponse | FailedAttempt:
        budget = self._transport._budget
        if budget is None:
            return await self._timed(None)
        self._tries += 1
        async with budget.place(self._request.route, again=self._tries > 1) as place:
            outcome = await self._timed(place.sent)
            if isinstance(outcome, HttpResponse):
                place.answered()
            elif isinstance(outcome.error, RateLimited):
                self._forgiven += place.refused()
            return outcome

    async def _timed(self, on_sent: Callable[[], None] | None) -> HttpResponse | FailedAttempt:
        self._tally.requests += 1
        began = self._transport._clock()
        try:
            return await self._transport._attempt(self._request, on_sent)
        finally:
            self._spent_s += self._transport._clock() - began

    def _wait_s(self, state: RetryCallState) -> float:
        fault = _last(state)
        if isinstance(fault, FailedAttempt) and fault.retry_after_s is not None:
            return fault.retry_after_s
        # Full jitter: anything from nothing to the doubled wait, so that clients who failed together part.
        return self._transport._random() * 2.0 ** (state.attempt_number - 1)

    def _is_over(self, state: RetryCallState) -> bool:
        fault = _last(state)
        attempts = self._request.attempts
        if isinstance(fault, FailedAttempt) and fault.is_nobody:
            attempts = min(attempts, ATTEMPTS_AT_NOBODY)
        is_last = state.attempt_number - self._forgiven >= attempts
        return is_last or self._spent_s + state.upcoming_sleep > self._transport._max_wait_s

    async def _wait(self, seconds: float) -> None:
        self._tally.retries += 1
        self._spent_s += seconds
        self._tally.note = f"waiting {seconds:.0f} s to ask again" if seconds >= 1 else ""
        await self._transport._sleep(seconds)
        self._tally.note = ""


def error_for(answer: HttpResponse) -> BadQuery | ServiceError:
    """The error that an answer is which is none: what the request has wrong (400, 413, 422), else what came."""
    said = _said(answer.body)
    if answer.status in (400, 413, 422):
        return said.refusal(answer.status)
    return ServiceError(answer.status, said.text or "no reason given")


def _blotted(quoted: bytes, key: str) -> bytes:
    """*quoted*, a string in JSON, without *key*; as it is where it holds none or is no JSON after all."""
    try:
        text = msgspec.json.decode(quoted, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return quoted
    return msgspec.json.encode(text.replace(key, "…")) if key in text else quoted


def _last(state: RetryCallState) -> HttpResponse | FailedAttempt:
    assert state.outcome is not None  # noqa: S101  tenacity asks only after an attempt
    return cast("HttpResponse | FailedAttempt", state.outcome.result())


def _authorities(ca_file: str | None, address: str) -> ssl.SSLContext | bool:
    """Whose certificates hold; httpx reads SSL_CERT_FILE only where it also looks for proxies.

    Reading all that the system trusts takes 20 ms, in which plain HTTP asks ten times.
    """
    try:
        return ssl.create_default_context(cafile=ca_file) if ca_file else not address.startswith("http://")
    except OSError as error:
        raise BadQuery("ca_file", ca_file, f"holds no certificates: {error.strerror or error}") from None


def _tracing(on_sent: Callable[[], None]) -> dict[str, Any]:
    """How httpx tells when a request has left."""

    async def trace(name: str, _: Any) -> None:
        if name.endswith("send_request_body.complete"):
            on_sent()

    return {"trace": trace}


_LISTED: Final = {name: f"lens.{name.removesuffix('s')}s(over=...)" for name in ("game", "games", "studios")}


class _Said(msgspec.Struct):
    """The body of an error, as far as the service says anything; every field may be missing."""

    field: str | None = None
    value: Any = None
    message: str | None = None
    allowed: list[str] = []
    did_you_mean: str | None = None

    @property
    def text(self) -> str:
        return self.message or ""

    def refusal(self, status: int) -> BadQuery:
        if listed := _LISTED.get(self.field or ""):
            return BadQuery(self.field or "", self.value, f"is no id that the service knows: {listed} has them")
        error = BadQuery(self.field or "request", self.value, f"is refused by the service ({status})", self.allowed)
        error.did_you_mean = self.did_you_mean or error.did_you_mean
        if self.message:
            error.args = (self.message,)
        return error


def _said(body: bytes) -> _Said:
    try:
        return msgspec.json.decode(body, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Said()
