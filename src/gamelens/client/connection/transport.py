"""The only module that imports httpx: sends requests and retries them.

It raises the errors of `gamelens.errors`. No httpx type gets out, as exception or cause: its requests hold the key.
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

from gamelens.client.connection.error_responses import error_details, error_for
from gamelens.client.connection.rate_limit import RateLimiter, Route
from gamelens.client.connection.settings import Secret
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, Refused, ServiceError, Unreachable
from gamelens.wire.receipts import Provenance

ATTEMPTS: Final = 6
ATTEMPTS_NEVER_ANSWERED: Final = 2  # an address that has never answered is more likely wrong than busy
TRANSIENT_STATUSES: Final = frozenset({429, 502, 503, 504})
CONNECT_S: Final = 10.0
KEY_HEADER: Final = "X-API-Key"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
# A JSON string with an escape. An unterminated one matches to the end, or the search would restart at each quote.
_ESCAPED: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)++(?:"|\\?\Z)', re.DOTALL)

Params = Sequence[tuple[str, str]]


class HttpBackend(Protocol):
    """A substitute for the network: any async transport of httpx, such as ASGITransport."""

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request and how to send it.

    Attributes:
        method, path, params, headers, body: of the request; *path* is appended to the address.
        route: the limit it counts against.
        expected_statuses: statuses that are returned rather than raised.
        attempts: attempts at most.
    """

    method: str
    path: str
    params: Params = ()
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    route: Route = "other"
    expected_statuses: Collection[int] = frozenset({200})
    attempts: int = ATTEMPTS


class HttpResponse(msgspec.Struct, frozen=True):
    """One response. Names in *headers* are in lower case.

    Attributes:
        status: the HTTP status.
        body: the decoded content.
        headers: by name.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class HttpSender(Protocol):
    """A sender of requests: the service (`Transport`) or recorded answers (`ReplaySender`)."""

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """Return the response to *request*, counting the requests sent in *tally*."""

    async def aclose(self) -> None:
        """Close whatever is open."""

    @property
    def provenance(self) -> Provenance:
        """The origin of the answers, as far as it is known without asking."""


class RequestStats:
    """Counts of one query: requests sent, and how many of them were retries.

    *note* says what the query waits for at the moment, for the progress bar.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.note = ""


class FailedAttempt(msgspec.Struct, frozen=True):
    """One failed attempt.

    Attributes:
        error: the exception to raise.
        is_transient: whether another attempt may succeed.
        retry_after_s: the wait in the Retry-After header.
        never_answered: whether the address has not answered a single request yet.
    """

    error: GamelensError
    is_transient: bool = False
    retry_after_s: float | None = None
    never_answered: bool = False


class Transport:
    """A connection pool to one service, with retries.

    Args:
        address: the address of the service, without a trailing slash.
        key: sent as X-API-Key and nowhere else.
        rate_limiter: limits the requests; None sends at once.
        max_wait_s: the time one request may spend on waits and failures before it is given up.
        timeout_s: the time the service may stay silent.
        at_once: limit of open connections.
        ca_file: trusted authorities (PEM); else SSL_CERT_FILE, else the system's.
        pool: sends the requests instead of the network.
        clock, sleep, now, random: time and chance.
    """

    def __init__(
        self,
        address: str,
        *,
        key: Secret | None = None,
        rate_limiter: RateLimiter | None = None,
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
        self._rate_limiter = rate_limiter
        self._max_wait_s = max_wait_s
        self._timeout_s = timeout_s
        self._clock, self._sleep, self._now, self._random = clock, sleep, now, random
        self._has_answered = False
        self._http = httpx.AsyncClient(
            # Servers commonly drop an idle connection after 5 s; close it first.
            limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once, keepalive_expiry=4.0),
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S), pool=None),
            transport=cast("httpx.AsyncBaseTransport | None", pool),
            trust_env=urlsplit(address).hostname not in LOOPBACK,  # a proxy cannot reach this machine's loopback
            verify=pool is None and _certificate_authorities(ca_file or os.environ.get("SSL_CERT_FILE"), address),
        )

    def __repr__(self) -> str:
        return f"Transport({self.address!r})"

    @property
    def provenance(self) -> Provenance:
        """The service at this address, taken for a real one."""
        return Provenance(kind="real", url=self.without_key(self.address.encode()).decode())

    async def send(self, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
        """Return the response to *request*, after as many attempts as it allows.

        Raises:
            AuthError: 401 or 403.
            BadQuery: 400, 413 or 422, with the field, the value and what is allowed, if the service names them.
            RateLimited: 429 on the last attempt, or a Retry-After beyond the wait allowed.
            ServiceError: any other status that *request* does not expect, or an incomplete response.
            Unreachable: no response.
        """
        outcome = await _RetriedRequest(self, request, tally or RequestStats()).outcome()
        if isinstance(outcome, HttpResponse):
            return outcome
        raise outcome.error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def without_key(self, body: bytes) -> bytes:
        """Return *body* with the key redacted, in case a service quotes it, JSON escapes included."""
        if self._key is None:
            return body
        key = self._key.reveal()
        body = body.replace(key.encode(), "…".encode())
        return _ESCAPED.sub(lambda match: _redacted(match.group(), key), body) if b"\\" in body else body

    async def _attempt(self, request: HttpRequest, on_sent: Callable[[], None] | None) -> HttpResponse | FailedAttempt:
        """Make one attempt.

        Exceptions of httpx are returned as values, so that no traceback leads to a request with the key.
        """
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
            unreachable = Unreachable(f"nothing answers at {self.address}: check the address and that the service runs")
            return FailedAttempt(unreachable, is_transient=True, never_answered=not self._has_answered)
        except httpx.TimeoutException:
            return FailedAttempt(
                Unreachable(f"{self.address} did not answer within {self._timeout_s:g} s"), is_transient=True
            )
        except (httpx.TransportError, httpx.DecodingError) as error:
            return self._connection_broken(status, type(error).__name__)
        self._has_answered = True
        if status in request.expected_statuses:
            return HttpResponse(status, body, dict(response.headers))
        return self._failed_attempt(status, body, self._retry_after_s(response.headers.get("retry-after")))

    def _build(self, request: HttpRequest, on_sent: Callable[[], None] | None) -> httpx.Request:
        """Build the request for httpx, with the key."""
        headers = dict(request.headers)
        if self._key is not None:
            headers[KEY_HEADER] = self._key.reveal()
        return self._http.build_request(
            request.method,
            self.address + request.path,
            params=list(request.params) or None,
            headers=headers,
            content=request.body,
            extensions=_sent_trace(on_sent) if on_sent is not None else None,
        )

    def _connection_broken(self, status: int, name: str) -> FailedAttempt:
        if status:
            return FailedAttempt(ServiceError(status, f"an answer cut short ({name})"), is_transient=True)
        return FailedAttempt(Unreachable(f"the connection to {self.address} broke ({name})"), is_transient=True)

    def _failed_attempt(self, status: int, body: bytes, retry_after_s: float | None) -> FailedAttempt:
        """Return the failure that an unexpected status stands for."""
        body = self.without_key(body)
        details = error_details(body)
        if status in (401, 403):
            return FailedAttempt(
                AuthError(f"{self.address} answers {status}: it does not know the key. {details.text}".strip())
            )
        if status == 429:
            wish = f", asking for {retry_after_s:g} s" if retry_after_s is not None else ""
            message = f"{self.address} keeps answering 429{wish}: ask less at a time, or again later"
            return FailedAttempt(RateLimited(retry_after_s, message), True, retry_after_s)
        return FailedAttempt(error_for(status, body), status in TRANSIENT_STATUSES, retry_after_s)

    def _retry_after_s(self, header: str | None) -> float | None:
        """Return the seconds of a Retry-After header, or None if it is invalid.

        The header has seconds or a date.
        """
        if header is None:
            return None
        try:
            return max(0.0, float(header)) if header.strip().isdigit() else self._until(header)
        except ValueError:
            return None

    def _until(self, date: str) -> float:
        moment = parsedate_to_datetime(date)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - self._now())


class _RetriedRequest:
    """One request with its retries. Waiting for a permit does not count as time spent."""

    def __init__(self, transport: Transport, request: HttpRequest, tally: RequestStats) -> None:
        self._transport = transport
        self._request = request
        self._tally = tally
        self._spent_s = 0.0
        self._tries = 0
        self._uncounted = 0  # attempts refused because the adaptive limit exceeded the guaranteed rate

    async def outcome(self) -> HttpResponse | FailedAttempt:
        """Return the response, or the last failure."""
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda outcome: isinstance(outcome, FailedAttempt) and outcome.is_transient),
            wait=self._wait_s,
            stop=self._is_over,
            sleep=self._wait,
            retry_error_callback=_last_outcome,
        )
        return cast("HttpResponse | FailedAttempt", await retrying(self._attempt))

    async def _attempt(self) -> HttpResponse | FailedAttempt:
        """Make one attempt, with a permit if there is a rate limiter."""
        rate_limiter = self._transport._rate_limiter
        if rate_limiter is None:
            return await self._timed(None)
        self._tries += 1
        async with rate_limiter.permit(self._request.route, again=self._tries > 1) as permit:
            outcome = await self._timed(permit.mark_sent)
            if isinstance(outcome, HttpResponse):
                permit.mark_answered()
            elif isinstance(outcome.error, RateLimited):
                self._uncounted += permit.mark_refused()
            return outcome

    async def _timed(self, on_sent: Callable[[], None] | None) -> HttpResponse | FailedAttempt:
        """Make one attempt and add its duration to the time spent."""
        self._tally.requests += 1
        began = self._transport._clock()
        try:
            return await self._transport._attempt(self._request, on_sent)
        finally:
            self._spent_s += self._transport._clock() - began

    def _wait_s(self, state: RetryCallState) -> float:
        """Return the wait before the next attempt: Retry-After, else exponential backoff."""
        failed = _last_outcome(state)
        if isinstance(failed, FailedAttempt) and failed.retry_after_s is not None:
            return failed.retry_after_s
        # Full jitter: 0 to the doubled wait, so that clients that failed together retry at different times.
        return self._transport._random() * 2.0 ** (state.attempt_number - 1)

    def _is_over(self, state: RetryCallState) -> bool:
        """Return whether attempts or time are used up."""
        failed = _last_outcome(state)
        attempts = self._request.attempts
        if isinstance(failed, FailedAttempt) and failed.never_answered:
            attempts = min(attempts, ATTEMPTS_NEVER_ANSWERED)
        is_last = state.attempt_number - self._uncounted >= attempts
        return is_last or self._spent_s + state.upcoming_sleep > self._transport._max_wait_s

    async def _wait(self, seconds: float) -> None:
        """Wait before the next attempt, and say so in the progress note."""
        self._tally.retries += 1
        self._spent_s += seconds
        self._tally.note = f"waiting {seconds:.0f} s to ask again" if seconds >= 1 else ""
        await self._transport._sleep(seconds)
        self._tally.note = ""


def _redacted(quoted: bytes, key: str) -> bytes:
    """Return a JSON string without *key*.

    Unchanged if it does not contain it or is not JSON.
    """
    try:
        text = msgspec.json.decode(quoted, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return quoted
    return msgspec.json.encode(text.replace(key, "…")) if key in text else quoted


def _last_outcome(state: RetryCallState) -> HttpResponse | FailedAttempt:
    assert state.outcome is not None  # noqa: S101  tenacity calls this after an attempt only
    return cast("HttpResponse | FailedAttempt", state.outcome.result())


def _certificate_authorities(ca_file: str | None, address: str) -> ssl.SSLContext | bool:
    """Return the trusted certificate authorities as httpx takes them.

    httpx reads SSL_CERT_FILE only if it also looks for proxies. Loading the system's authorities takes 20 ms, which
    plain HTTP to a local sandbox does without.

    Raises:
        BadQuery: the file cannot be read.
    """
    try:
        return ssl.create_default_context(cafile=ca_file) if ca_file else not address.startswith("http://")
    except OSError as error:
        raise BadQuery("ca_file", ca_file, f"holds no certificates: {error.strerror or error}") from None


def _sent_trace(on_sent: Callable[[], None]) -> dict[str, Any]:
    """Return the httpx extension that calls *on_sent* when a request has been sent."""

    async def trace(name: str, _: Any) -> None:
        if name.endswith("send_request_body.complete"):
            on_sent()

    return {"trace": trace}
