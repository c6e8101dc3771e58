"""The only module that imports httpx: sends requests and retries them.

It raises the errors of `gamelens.errors`. No httpx type gets out, as exception or cause: its requests hold the key.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random as randomness
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, cast

import httpx
import msgspec
import truststore
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from gamelens._forks import OwnProcess, import_without_forks, without_forks
from gamelens._text import one_line
from gamelens.client.connection.error_responses import (
    TRANSIENT_STATUSES,
    error_details,
    error_for,
    sent_value,
    shown_words,
)
from gamelens.client.connection.proxies import proxy_for
from gamelens.client.connection.response_body import ACCEPTED_ENCODING, DamagedBody, UnusableBody, read_body
from gamelens.client.connection.settings import Secret, without_password
from gamelens.client.limits.rate_limit import RateLimiter, Route
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, Refused, ServiceError, Unreachable
from gamelens.receipts import Provenance
from gamelens.wire.limits import MIB

ATTEMPTS: Final = 6
ATTEMPTS_NEVER_ANSWERED: Final = 2  # an address that has never answered is more likely wrong than busy
CONNECT_S: Final = 10.0
KEY_HEADER: Final = "X-API-Key"
ANSWER_BYTES: Final = 512 * MIB
"""Default bound of one answer, as sent and as unpacked."""
SMALL_ANSWER_BYTES: Final = 64 * MIB
"""Bound for services whose answers have no tables: the collector and the control API."""
REFUSAL_BYTES: Final = MIB
"""Most bytes that are read of an error response."""
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)
LEAST_ATTEMPT_S: Final = 2.0
"""Least time for an attempt, however little is left."""
_log: Final = logging.getLogger(__name__)

Params = Sequence[tuple[str, str]]


class HttpBackend(Protocol):
    """A substitute for the network: any async transport of httpx, such as ASGITransport."""

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request and how to send it.

    *path* is appended to the address, *route* is the limit it counts against, and *expected_statuses* are returned
    rather than raised. *subject* says in the log what is asked, without a key, an address or the value of a filter.
    """

    method: str
    path: str
    params: Params = ()
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    route: Route = "other"
    expected_statuses: Collection[int] = frozenset({200})
    attempts: int = ATTEMPTS
    subject: str = "request"

    def sent_value(self, field: str) -> object:
        """Return what this request has in *field*, such as `query.limit`, or None."""
        return sent_value(field, self.params, self.body)


class HttpResponse(msgspec.Struct, frozen=True):
    """One response, with its decoded content. Names in *headers* are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class FailedAttempt(msgspec.Struct, frozen=True):
    """One failed attempt: the exception to raise, and whether another attempt may succeed.

    *never_answered* says whether the address has not answered a single request yet.
    """

    error: GamelensError
    is_transient: bool = False
    retry_after_s: float | None = None
    never_answered: bool = False


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

    *note* says what the query waits for at the moment, for the progress bar; *last_failure* why the last attempt that
    failed did.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.note = ""
        self.last_failure = ""


class Transport:
    """A connection pool to one service, with retries.

    Args:
        address: without a trailing slash.
        key: sent as X-API-Key and nowhere else.
        key_hint: the source of the keys and the places to set others, for the error of a refused key.
        rate_limiter: None sends at once.
        max_wait_s: the time for one request, its retries and the waits between them. Waiting for a permit or a free
            connection does not count.
        timeout_s: the time the service may stay silent.
        max_answer_bytes: bound of an answer, as sent and as unpacked.
        ca_file: trusted authorities (PEM); else SSL_CERT_FILE, else the system's.
        pool: sends the requests instead of the network.

    Attributes:
        address: as given.
        proxy: the proxy that the requests go through, or None.
    """

    def __init__(
        self,
        address: str,
        *,
        key: Secret | None = None,
        key_hint: str = "",
        rate_limiter: RateLimiter | None = None,
        max_wait_s: float = 60.0,
        timeout_s: float = 60.0,
        max_answer_bytes: int = ANSWER_BYTES,
        at_once: int = 16,
        ca_file: str | None = None,
        pool: HttpBackend | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.address = address
        self._process = OwnProcess("this client")
        self._key = key
        self._rate_limiter = rate_limiter
        self._max_wait_s = max_wait_s
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._free_connections = asyncio.Semaphore(at_once)
        self._clock, self._sleep, self._random = clock, sleep, random
        self._now, self._key_hint = now, key_hint
        self._has_answered = False
        self.proxy = proxy_for(address) if pool is None else None
        self._way = f"{address} through the proxy {self.proxy}" if self.proxy else address
        _check_for_httpx("address", address)
        if self.proxy is not None:
            _check_for_httpx(self.proxy.source, self.proxy.url)
        with without_forks():  # it imports modules and takes locks of OpenSSL, which nobody would release in a child
            self._http = httpx.AsyncClient(
                # Servers commonly drop an idle connection after 5 s; close it first.
                limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once, keepalive_expiry=4.0),
                timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S), pool=None),
                transport=cast("httpx.AsyncBaseTransport | None", pool),
                trust_env=False,  # `proxy_for` reads it
                proxy=self.proxy.url if self.proxy is not None else None,
                verify=pool is None and _certificate_authorities(ca_file, address),
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
            ServiceError: any other status that *request* does not expect, or a response that is incomplete or too
                large.
            Unreachable: no response, or not all of it in time.
        """
        outcome = await _RetriedRequest(self, request, tally or RequestStats()).outcome()
        if isinstance(outcome, HttpResponse):
            return outcome
        raise outcome.error

    async def aclose(self) -> None:
        """Close the connections."""
        self._process.check()
        await self._http.aclose()

    def without_key(self, body: bytes) -> bytes:
        """Return *body* with the key redacted, also where JSON escapes write it."""
        return body if self._key is None else self._key.mask_body(body)

    def refusal(self, request: HttpRequest, response: HttpResponse, *, times: int = 1) -> FailedAttempt:
        """Return the failure that a response with an unexpected status stands for.

        *times* is how often *request* was answered 429 so far, this answer included.
        """
        status, headers = response.status, response.headers
        mask = self._key.mask if self._key is not None else str
        details = error_details(response.body, headers.get("content-type", ""), mask=mask)
        says = f": {text}" if (text := details.field_and_text) else ""
        wait_s = _retry_after_s(headers.get("retry-after"), self._now)
        if status in (401, 403):
            hint = f". {self._key_hint}" if self._key_hint else ""
            return FailedAttempt(AuthError(f"{self.address} answers {status} and refuses the key{says}{hint}"))
        if status == 407 and self.proxy is not None:
            return self._refused_by_proxy(f"407 {details.text}".rstrip())
        if status == 429:
            wish = f" and requests a wait of {wait_s:g} s" if wait_s is not None else ""
            if wait_s is not None and wait_s > self._max_wait_s:
                text = f"answers 429{wish}, more than max_wait_s={self._max_wait_s:g}: try again later"
            elif times > 1:
                text = f"keeps answering 429 ({times} times){wish}: ask for less at a time, or try again later"
            else:
                text = f"answers 429{wish}: try again later"
            return FailedAttempt(RateLimited(wait_s, f"{self.address} {text}{says}"), True, wait_s)
        if 300 <= status < 400 and (target := headers.get("location")):
            text = f"a redirect to {shown_words(mask(target))}, which is not followed, because the key would go with it"
            return FailedAttempt(ServiceError(status, f"{text}. Set the address of the service itself"))
        return FailedAttempt(error_for(status, details, request.sent_value), status in TRANSIENT_STATUSES, wait_s)

    async def _attempt(
        self, request: HttpRequest, on_sent: Callable[[], None] | None, within_s: float
    ) -> HttpResponse | FailedAttempt:
        """Make one attempt and return the response, of any status, or the failure.

        Exceptions of httpx are returned as values, so that no traceback leads to a request with the key.
        """
        self._process.check()
        if self._http.is_closed:
            return FailedAttempt(Refused("this client is closed: create a new one"))
        import_without_forks("anyio._backends._asyncio")  # as httpx does at its first request
        status = 0
        try:
            async with asyncio.timeout(within_s if math.isfinite(within_s) else None):
                response = await self._http.send(self._build(request, on_sent), stream=True)
                status = response.status_code
                is_expected = status in request.expected_statuses
                try:
                    body = await read_body(
                        cast("httpx.AsyncByteStream", response.stream),  # aiter_raw refuses one made with its content
                        response.headers.get("content-encoding", ""),
                        max_bytes=self._max_answer_bytes if is_expected else min(REFUSAL_BYTES, self._max_answer_bytes),
                        is_lenient=not is_expected,
                    )
                finally:
                    await response.aclose()
                if is_expected and response.is_success:
                    _check_json(response.headers, body)
        except (httpx.TransportError, TimeoutError, UnusableBody, DamagedBody) as error:
            return self._no_response(error, status, within_s)
        self._has_answered = True
        return HttpResponse(status, body, dict(response.headers))

    def _build(self, request: HttpRequest, on_sent: Callable[[], None] | None) -> httpx.Request:
        """Build the request for httpx, with the key."""
        headers = {"Accept-Encoding": ACCEPTED_ENCODING, **request.headers}
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

    def _no_response(self, error: Exception, status: int, within_s: float) -> FailedAttempt:
        """Return the failure of an attempt without a complete response.

        *status* is 0 if no response began.
        """
        if isinstance(error, UnusableBody):
            return FailedAttempt(ServiceError(status, str(error)))
        if isinstance(error, DamagedBody):
            return FailedAttempt(ServiceError(status, f"an answer cut short ({error})"), is_transient=True)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            is_untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            if is_untrusted:
                text = f"the certificate of {self._way} is not trusted: set SSL_CERT_FILE to the file of its CA"
            elif "SSL" in str(error):
                text = f"{self._way} answers, but not in TLS: check whether the address begins with https:// or http://"
            elif self.proxy is not None:
                text = (
                    f"the proxy {self.proxy} does not answer, so {self.address} is not reached: correct or unset "
                    f"{self.proxy.source}, or write the host into NO_PROXY"
                )
            else:
                text = f"nothing answers at {self.address}: check the address and that the service runs"
            may_retry = not is_untrusted
            return FailedAttempt(Unreachable(text), may_retry, never_answered=may_retry and not self._has_answered)
        if isinstance(error, httpx.ProxyError):
            return self._refused_by_proxy(str(error))
        if isinstance(error, TimeoutError) and status:
            late = f"{self._way} did not finish its answer within {within_s:.3g} s"
            return FailedAttempt(Unreachable(f"{late}: ask for less at a time, or allow more time with max_wait_s"))
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            limit_s = within_s if isinstance(error, TimeoutError) else self._timeout_s
            return FailedAttempt(Unreachable(f"{self._way} did not answer within {limit_s:.3g} s"), is_transient=True)
        name = type(error).__name__
        if status:
            return FailedAttempt(ServiceError(status, f"an answer cut short ({name})"), is_transient=True)
        return FailedAttempt(Unreachable(f"the connection to {self._way} broke ({name})"), is_transient=True)

    def _refused_by_proxy(self, words: str) -> FailedAttempt:
        """Return the failure of a request that the proxy does not pass on. Its *words* begin with a status."""
        text = f"the proxy {self.proxy} does not pass requests on to {self.address}: {shown_words(words)}"
        if words.startswith("407") and self.proxy is not None:
            text += f". Write user name and password into {self.proxy.source}, as http://USER:PASSWORD@HOST:PORT"
        return FailedAttempt(Unreachable(text), is_transient=words[:3] in map(str, TRANSIENT_STATUSES))


class _RetriedRequest:
    """One request with its retries. Each attempt and each wait is a line of the log.

    Waiting for a permit or for a free connection does not count as time spent. The log has no words of the service and
    no address, which may hold a secret.
    """

    def __init__(self, transport: Transport, request: HttpRequest, tally: RequestStats) -> None:
        self._transport = transport
        self._request = request
        self._tally = tally
        self._spent_s = 0.0
        self._tries = 0
        self._ending = ""  # of the last attempt, for the log
        self._answered_429 = 0
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
        self._tries += 1
        if rate_limiter is None:
            return await self._timed(None)
        async with rate_limiter.permit(self._request.route, again=self._tries > 1) as permit:
            outcome = await self._timed(permit.mark_sent)
            if isinstance(outcome, HttpResponse):
                permit.mark_answered()
            elif isinstance(outcome.error, RateLimited):
                self._uncounted += permit.mark_refused()
            return outcome

    async def _timed(self, on_sent: Callable[[], None] | None) -> HttpResponse | FailedAttempt:
        """Make one attempt in what is left of the time, and add its duration to the time spent."""
        async with self._transport._free_connections:
            self._tally.requests += 1
            began = self._transport._clock()
            self._ending = "stopped"  # unless it ends by itself
            try:
                left_s = max(self._transport._max_wait_s - self._spent_s, LEAST_ATTEMPT_S)
                outcome = await self._transport._attempt(self._request, on_sent, left_s)
                if isinstance(outcome, HttpResponse):
                    self._ending = str(outcome.status)
                else:
                    self._ending = "unusable answer" if isinstance(outcome.error, ServiceError) else "no answer"
            finally:
                took_s = self._transport._clock() - began
                self._spent_s += took_s
                self._say(logging.DEBUG, f"{self._ending} in {1000 * took_s:.0f} ms, attempt {self._tries}")
        if isinstance(outcome, HttpResponse):
            if outcome.status in self._request.expected_statuses:
                return outcome
            self._answered_429 += outcome.status == 429
            outcome = self._transport.refusal(self._request, outcome, times=self._answered_429)
        self._tally.last_failure = str(outcome.error)
        return outcome

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
        self._tally.note = f"waiting {seconds:.0f} s before the next try" if seconds >= 1 else ""
        self._say(logging.INFO, f"{self._ending}, attempt {self._tries + 1} in {seconds:.1f} s")
        await self._transport._sleep(seconds)
        self._tally.note = ""

    def _say(self, level: int, text: str) -> None:
        """Write a line to the log: about what, and *text*. A name from the service may be anything, the key too."""
        if _log.isEnabledFor(level):
            line = one_line(f"{self._request.subject}: {text}")
            _log.log(level, "%s", line if self._transport._key is None else self._transport._key.mask(line))


def _last_outcome(state: RetryCallState) -> HttpResponse | FailedAttempt:
    assert state.outcome is not None  # noqa: S101  tenacity calls this after an attempt only
    return cast("HttpResponse | FailedAttempt", state.outcome.result())


def _retry_after_s(header: str | None, now: Callable[[], float]) -> float | None:
    """Return the seconds of a Retry-After header, which has seconds or a date, or None if it is invalid."""
    if header is None:
        return None
    try:
        if header.isascii() and header.strip().isdigit():
            return max(0.0, float(header))
        moment = parsedate_to_datetime(header)
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now())
    except ValueError:
        return None


def _check_json(headers: Mapping[str, str], body: bytes) -> None:
    """Check what only an answer as a whole tells: that it is no web page, and that nothing of it is missing.

    A proxy or a sign-in page may answer 200 in place of the service. A body without a length ends where the connection
    does, so that its JSON alone tells whether it was cut off.

    Raises:
        UnusableBody: it is a web page.
        DamagedBody: its JSON ends early.
    """
    if _PAGE.match(body) or headers.get("content-type", "").lower().startswith("text/html"):
        raise UnusableBody("a web page, not JSON: check the address, and whether something before it asks to sign in")
    if not body or "content-length" in headers or "transfer-encoding" in headers:
        return
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        if "truncated" in str(error):
            raise DamagedBody("its JSON ends early") from None


def _certificate_authorities(ca_file: str | None, address: str) -> ssl.SSLContext | bool:
    """Return the trusted certificate authorities as httpx takes them.

    Without a file they are the system's, so that the authority of a company counts which its machines trust. Loading
    them takes 20 ms, which plain HTTP to a local sandbox does without.

    Raises:
        BadQuery: the file cannot be read.
    """
    if not ca_file and address.startswith("http://"):
        return False
    name, ca_file = ("ca_file", ca_file) if ca_file else ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE"))
    try:
        if ca_file:
            return ssl.create_default_context(cafile=ca_file)
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    except OSError as error:
        raise BadQuery(name, ca_file, f"holds no certificates: {error.strerror or error}") from None


def _check_for_httpx(name: str, url: str) -> None:
    """Refuse an address that httpx does not take, such as a host that is no IDNA.

    Raises:
        BadQuery: names it.
    """
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BadQuery(name, without_password(url), f"is not an address: {error}") from None


def _sent_trace(on_sent: Callable[[], None]) -> dict[str, Any]:
    """Return the httpx extension that calls *on_sent* when a request has been sent."""

    async def trace(name: str, _: Any) -> None:
        if name.endswith("send_request_body.complete"):
            on_sent()

    return {"trace": trace}
