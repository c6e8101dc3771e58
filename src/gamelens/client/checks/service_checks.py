"""Checks of a metrics service: reachable, key accepted, clock, data, known names.

They send five cheap requests within the rate limit, and repeat one that is refused with 429. Nothing is assumed of the
service but what is documented: a `Date` header is used if there is one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median
from typing import Final, TypeVar

import msgspec

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.checks.setup_checks import CheckResult
from gamelens.client.connection.metrics_api import BASE
from gamelens.client.connection.settings import MetricsSettings
from gamelens.client.connection.transport import HttpBackend, HttpRequest, HttpResponse, Transport
from gamelens.client.limits.rate_limit import RateLimiter, Route, shared_rate_limiter
from gamelens.client.query.arguments import STUDIO_ID
from gamelens.data_age import DataAge, duration_text
from gamelens.errors import Retryable
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

T = TypeVar("T")

SLOW_S: Final = 2.0
CLOCK_TOLERANCE_S: Final = 60.0
USUAL_LAG: Final = timedelta(hours=2)  # Our choice: so long after midnight yesterday should be complete
TRIES: Final = 3
RETRY_PAUSE_S: Final = 1.1
_INTERVAL: Final = "/interval"
_METRICS: Final = "/metrics"
_DIMENSIONS: Final = "/dimensions"
_ANY_STATUS: Final = range(100, 600)
_MAX_NAMES: Final = 8
_NAME_CHARS: Final = 40


class TimedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response and its timing: *midpoint* is the time of this machine's clock halfway, epoch seconds."""

    path: str
    response: HttpResponse
    duration_s: float
    midpoint: float

    @property
    def clock_offset_s(self) -> float | None:
        """Seconds this machine's clock is ahead of the service's, or None without a Date header.

        Accurate to about a second.
        """
        try:
            server_date = parsedate_to_datetime(self.response.headers.get("date", ""))
            # The header holds whole seconds, rounded down.
            return self.midpoint - server_date.replace(tzinfo=server_date.tzinfo or UTC).timestamp() - 0.5
        except (ValueError, OverflowError):
            return None


class ServiceChecks:
    """Checks of one service with one key. By default the rate limiter is the one that all clients share."""

    def __init__(
        self,
        settings: MetricsSettings,
        *,
        ca_file: str | None = None,
        pool: HttpBackend | None = None,
        rate_limiter: RateLimiter | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = settings.metrics_url
        self._rate_limiter = rate_limiter or shared_rate_limiter(settings.metrics_url, settings.api_key.fingerprint)
        self._transport = Transport(settings.metrics_url, key=settings.api_key, ca_file=ca_file, pool=pool)
        self._now, self._clock, self._sleep = now, clock, sleep
        self._responses: list[TimedResponse] = []
        self._failure: str | None = None
        self._is_queued = False

    async def findings(self, *, deadline_s: float) -> list[CheckResult]:
        """Return the findings after *deadline_s* at most."""
        try:
            async with asyncio.timeout(deadline_s):
                if (await self._get(_INTERVAL)).status == 200:
                    for path in (_INTERVAL, _INTERVAL, _METRICS, _DIMENSIONS):
                        await self._get(path)
        except TimeoutError:
            outcome = "could not be asked" if self._is_queued else "did not answer"
            self._failure = f"{self._address} {outcome} within {deadline_s:.2g} s"
        except Retryable as error:
            self._failure = str(error)
        finally:
            await self._transport.aclose()
        return list(self._all_findings())

    async def _get(self, path: str) -> HttpResponse:
        """Send one GET request, again while it is refused with 429, and note the responses."""
        route: Route = "metric list" if path == _METRICS else "other"
        request = HttpRequest(
            method="GET",
            path=BASE + path,
            headers={"Accept": "application/json"},
            route=route,
            expected_statuses=_ANY_STATUS,
            attempts=1,
            subject=path.removeprefix("/"),
        )
        for _ in range(TRIES):
            self._is_queued = True
            async with self._rate_limiter.permit(route):
                self._is_queued = False
                began, sent_at = self._clock(), self._now()
                response = await self._transport.send(request)
                duration_s = self._clock() - began
            response = msgspec.structs.replace(response, body=self._transport.without_key(response.body))
            self._responses.append(
                TimedResponse(path=path, response=response, duration_s=duration_s, midpoint=sent_at + duration_s / 2)
            )
            if response.status != 429:
                break
            await self._sleep(RETRY_PAUSE_S)
        return response

    def _all_findings(self) -> Iterator[CheckResult]:
        """Yield the findings, in the order in which they are printed."""
        yield self._service_finding()
        if self._transport.proxy is not None:
            yield CheckResult.ok("proxy", f"requests to {self._address} go through {self._transport.proxy}")
        if self._responses:
            yield self._key_finding()
            offsets = [timed.clock_offset_s for timed in self._responses if timed.clock_offset_s is not None]
            step = "set the clock: `today`, receipts and what is kept in the cache depend on it"
            yield clock_finding("clock", median(offsets) if offsets else None, "service", step)
        yield self._rate_finding()
        if self._has_response(_INTERVAL):
            yield self._available_finding()
        for path, catalog_names, extra in ((_METRICS, METRICS, ()), (_DIMENSIONS, DIMENSIONS, (STUDIO_ID,))):
            if self._has_response(path):
                yield _names_finding(path.strip("/"), self._decoded(path, list[str]), list(catalog_names), extra)

    def _service_finding(self) -> CheckResult:
        """Report whether the service answers, and how fast."""
        step = "see where metrics_url comes from; then look at the network and, where there is one, the proxy"
        if self._failure is not None:
            busy = "another process on this machine is using this key: try again when it has finished"
            return CheckResult.problem("service", self._failure, busy if self._is_queued else step)
        intervals = [timed for timed in self._responses if timed.path == _INTERVAL]
        status, duration_s = intervals[-1].response.status, median(timed.duration_s for timed in intervals)
        says = f"{self._address} answers in {duration_s * 1000:.0f} ms"
        if status >= 500:
            return CheckResult.problem("service", f"{says}, but {status}", "try again later")
        if status not in (200, 401, 403, 429):
            says = f"{self._address} answers {status} to GET {BASE}{_INTERVAL}: is it a metrics service?"
            return CheckResult.problem("service", says, step)
        if duration_s > SLOW_S:
            return CheckResult.warning("service", says, "expect to wait; check the network")
        return CheckResult.ok("service", says)

    def _rate_finding(self) -> CheckResult:
        """Report the rate limit, refusals, and whether other processes share it."""
        promised = f"{REQUESTS_PER_SECOND} requests a second and {REQUESTS_AT_ONCE} at a time"
        refused = sum(timed.response.status == 429 for timed in self._responses)
        if self._rate_limiter.why_alone is not None:
            says = f"{promised} for this process alone: {self._rate_limiter.why_alone}"
            step = "name a folder of your own in GAMELENS_RUNTIME_DIR"
            return CheckResult.warning("rate", says, step)
        if refused:
            says = f"{refused} of {len(self._responses)} requests were refused (429) despite {promised}"
            step = "someone else is using a key of this organisation: expect to wait, or try again later"
            return CheckResult.warning("rate", says, step)
        met = "; no 429 so far" if self._responses else ""
        return CheckResult.ok("rate", f"{promised}, shared by all your processes{met}")

    def _key_finding(self) -> CheckResult:
        """Report whether the service accepts the key."""
        statuses = {timed.response.status for timed in self._responses}
        if refused := statuses & {401, 403}:
            says = f"{self._address} does not know it ({min(refused)})"
            step = "copy it again, and check that it belongs to this address"
            return CheckResult.problem("key", says, step)
        if 200 in statuses:
            return CheckResult.ok("key", "accepted")
        return CheckResult.warning("key", "not known whether it is accepted", "see service")

    def _available_finding(self) -> CheckResult:
        """Report the available interval, and whether its end is older than expected."""
        try:
            interval = Interval.parse(self._decoded(_INTERVAL, str) or "")
        except MalformedInterval:
            says = f"GET {BASE}{_INTERVAL} does not return an interval"
            return CheckResult.problem("available", says, "check the address: is it a metrics service?")
        if not interval:
            step = "send events and wait until they are processed"
            return CheckResult.warning("available", "nothing has been processed yet", step)
        latest = self._responses[-1]  # the time of the service, or of this machine without a Date header
        now = datetime.fromtimestamp(latest.midpoint - (latest.clock_offset_s or 0.0), UTC)
        is_past = now >= interval.end
        says = f"{interval}, which ended {duration_text(now - interval.end)} ago" if is_past else f"{interval}"
        if DataAge(interval.end, now - USUAL_LAG).is_stale():
            says += ": yesterday is not complete"
            step = "look again in an hour; if it has not moved by then, ask whoever runs the service"
            return CheckResult.warning("available", says, step)
        return CheckResult.ok("available", says)

    def _has_response(self, path: str) -> bool:
        """Return whether *path* was answered with 200, or for a list at all."""
        statuses = [timed.response.status for timed in self._responses if timed.path == path]
        return 200 in statuses or (path != _INTERVAL and bool(statuses))

    def _decoded(self, path: str, kind: type[T]) -> T | None:
        """Return the newest valid answer to *path*, or None."""
        for timed in reversed(self._responses):
            if timed.path == path and timed.response.status == 200:
                try:
                    return msgspec.json.decode(timed.response.body, type=kind)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    return None
        return None


def clock_finding(about: str, offset_s: float | None, service: str, next_step: str) -> CheckResult:
    """Report how far this machine's clock is ahead of the clock of *service*, None if unknown."""
    if offset_s is None:
        return CheckResult.ok(about, f"the {service} does not say what time it is")
    if abs(offset_s) <= CLOCK_TOLERANCE_S:
        return CheckResult.ok(about, f"within {max(1.0, abs(offset_s)):.0f} s of the {service}'s")
    direction = "ahead of" if offset_s > 0 else "behind"
    says = f"{duration_text(timedelta(seconds=abs(offset_s)))} {direction} the {service}'s"
    return CheckResult.warning(about, says, next_step)


def _names_finding(
    about: str, listed: Sequence[str] | None, catalog_names: Sequence[str], extra: Sequence[str]
) -> CheckResult:
    """Compare the names that the service lists with the names in the catalog."""
    if listed is None:
        step = "see service; queries work without the list"
        return CheckResult.warning(about, "the list does not have the expected form", step)
    new = sorted(set(listed) - {*catalog_names, *extra})
    missing = sorted(set(catalog_names) - set(listed))
    if not new and not missing:
        return CheckResult.ok(about, f"all {len(catalog_names)} that this version knows")
    says = [f"{len(new)} new: {_shortened_list(new)}"] if new else []
    says += [f"{len(missing)} missing: {_shortened_list(missing)}"] if missing else []
    step = "new ones are passed on unchanged, missing ones are refused; a newer gamelens may know more"
    return CheckResult.warning(about, "; ".join(says), step)


def _shortened_list(names: Sequence[str]) -> str:
    shown = ", ".join(name[:_NAME_CHARS] for name in names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else shown
