"""A metrics service from here: whether it answers, takes the key, keeps time, has data, and speaks our vocabulary.

Five cheap requests within the budget, each tried a few times where it is refused for the rate. Nothing of the service
is taken for granted but what the specification says: a `Date` header is used where there is one.
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
from gamelens.client.connection.metrics_api import BASE
from gamelens.client.connection.rate_limit import RateLimiter, Route, shared_rate_limiter
from gamelens.client.connection.settings import MetricsSettings
from gamelens.client.connection.transport import HttpBackend, HttpRequest, HttpResponse, Transport
from gamelens.client.query.query_spec import STUDIO_ID
from gamelens.client.setup_checks import Finding
from gamelens.errors import Retryable
from gamelens.wire.intervals import Interval, MalformedInterval
from gamelens.wire.limits import REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

T = TypeVar("T")

SLOW_S: Final = 2.0
OFF_S: Final = 60.0
STALE: Final = timedelta(hours=26)  # Our choice: by then yesterday should be complete
TRIES: Final = 3
REST_S: Final = 1.1
_INTERVAL: Final = "/interval"
_METRICS: Final = "/metrics"
_DIMENSIONS: Final = "/dimensions"
_ANY: Final = range(100, 600)
_SHOWN: Final = 8
_NAME_CHARS: Final = 40


class TimedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, how long it took, and what our clock said half-way."""

    path: str
    answer: HttpResponse
    took_s: float
    at: float

    @property
    def off_s(self) -> float | None:
        """How far our clock is ahead of the service's, to a second or so; None where it does not say."""
        try:
            said = parsedate_to_datetime(self.answer.headers.get("date", ""))
            # The header has whole seconds, cut off.
            return self.at - said.replace(tzinfo=said.tzinfo or UTC).timestamp() - 0.5
        except (ValueError, OverflowError):
            return None


class ServiceChecks:
    """Asks one service with one key what can be asked of any.

    Args:
        settings: whom to ask.
        ca_file: as `Transport` has it.
        pool: carries the requests in place of the network.
        budget: whose places are taken; else the one of all clients.
        now, clock, sleep: time.
    """

    def __init__(
        self,
        settings: MetricsSettings,
        *,
        ca_file: str | None = None,
        pool: HttpBackend | None = None,
        budget: RateLimiter | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = settings.metrics_url
        self._budget = budget or shared_rate_limiter(settings.metrics_url, settings.api_key.fingerprint)
        self._transport = Transport(settings.metrics_url, key=settings.api_key, ca_file=ca_file, pool=pool)
        self._now, self._clock, self._sleep = now, clock, sleep
        self._heard: list[TimedResponse] = []
        self._trouble: str | None = None
        self._queues = False

    async def findings(self, *, deadline_s: float) -> list[Finding]:
        """What was found within *deadline_s*."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._ask_all()
        except TimeoutError:
            what = "could not be asked" if self._queues else "did not answer"
            self._trouble = f"{self._address} {what} within {deadline_s:.2g} s"
        except Retryable as error:
            self._trouble = str(error)
        finally:
            await self._transport.aclose()
        return list(self._findings())

    async def _ask_all(self) -> None:
        if (await self._ask(_INTERVAL)).status == 200:
            for path in (_INTERVAL, _INTERVAL, _METRICS, _DIMENSIONS):
                await self._ask(path)

    async def _ask(self, path: str) -> HttpResponse:
        route: Route = "metric list" if path == _METRICS else "other"
        request = HttpRequest(
            method="GET",
            path=BASE + path,
            headers={"Accept": "application/json"},
            route=route,
            answers=_ANY,
            attempts=1,
        )
        for _ in range(TRIES):
            self._queues = True
            async with self._budget.place(route):
                self._queues = False
                began, at = self._clock(), self._now()
                answer = await self._transport.send(request)
                took_s = self._clock() - began
            answer = msgspec.structs.replace(answer, body=self._transport.without_key(answer.body))
            self._heard.append(TimedResponse(path=path, answer=answer, took_s=took_s, at=at + took_s / 2))
            if answer.status != 429:
                break
            await self._sleep(REST_S)
        return answer

    def _findings(self) -> Iterator[Finding]:
        yield self._service()
        if self._heard:
            yield self._key()
            yield self._clocks()
        yield self._rate()
        if self._has(_INTERVAL):
            yield self._available()
        for path, known, ours in ((_METRICS, METRICS, ()), (_DIMENSIONS, DIMENSIONS, (STUDIO_ID,))):
            if self._has(path):
                yield _names(path.strip("/"), self._said(path, list[str]), list(known), ours)

    def _service(self) -> Finding:
        step = "see where metrics_url comes from; then look at the network and, where there is one, the proxy"
        if self._trouble is not None:
            busy = "somebody else on this machine asks with this key: try again when they are done"
            return Finding.problem("service", self._trouble, busy if self._queues else step)
        heard = [it for it in self._heard if it.path == _INTERVAL]
        status, took_s = heard[-1].answer.status, median(it.took_s for it in heard)
        says = f"{self._address} answers in {took_s * 1000:.0f} ms"
        if status >= 500:
            return Finding.problem("service", f"{says}, but {status}", "try again later")
        if status not in (200, 401, 403, 429):
            says = f"{self._address} answers {status} to GET {BASE}{_INTERVAL}: is it a metrics service?"
            return Finding.problem("service", says, step)
        if took_s > SLOW_S:
            return Finding.warning("service", says, "expect to wait; check the network")
        return Finding.ok("service", says)

    def _rate(self) -> Finding:
        promised = f"{REQUESTS_PER_SECOND} requests a second and {REQUESTS_AT_ONCE} at a time"
        refused = sum(heard.answer.status == 429 for heard in self._heard)
        if self._budget.why_alone is not None:
            says = f"{promised} for this process alone: {self._budget.why_alone}"
            step = "name a folder of your own in GAMELENS_RUNTIME_DIR"
            return Finding.warning("rate", says, step)
        if refused:
            says = f"{refused} of {len(self._heard)} requests were refused (429) within {promised}"
            step = "somebody else asks with a key of this organisation: expect to wait, or ask when they are done"
            return Finding.warning("rate", says, step)
        met = "; no 429 met" if self._heard else ""
        return Finding.ok("rate", f"{promised}, shared by all your processes{met}")

    def _key(self) -> Finding:
        statuses = {heard.answer.status for heard in self._heard}
        if refused := statuses & {401, 403}:
            says = f"{self._address} does not know it ({min(refused)})"
            step = "copy it again, and check that it belongs to this address"
            return Finding.problem("key", says, step)
        if 200 in statuses:
            return Finding.ok("key", "accepted")
        return Finding.warning("key", "not known whether it is accepted", "see service")

    def _clocks(self) -> Finding:
        off = [heard.off_s for heard in self._heard if heard.off_s is not None]
        if not off:
            return Finding.ok("clock", "the service does not say what time it is")
        off_s = median(off)
        if abs(off_s) <= OFF_S:
            return Finding.ok("clock", f"within {max(1.0, abs(off_s)):.0f} s of the service's")
        says = f"{_span(timedelta(seconds=abs(off_s)))} {'ahead of' if off_s > 0 else 'behind'} the service's"
        step = "set it: `today`, receipts and what is kept in the cache depend on it"
        return Finding.warning("clock", says, step)

    def _available(self) -> Finding:
        try:
            interval = Interval.parse(self._said(_INTERVAL, str) or "")
        except MalformedInterval:
            says = f"GET {BASE}{_INTERVAL} does not answer an interval"
            return Finding.problem("available", says, "check the address: is it a metrics service?")
        if not interval:
            step = "send events and wait until they are processed"
            return Finding.warning("available", "nothing is processed yet", step)
        age = self._service_time() - interval.end
        says = f"{interval}, which ended {_span(age)} ago" if age >= timedelta() else f"{interval}"
        if age > STALE:
            step = "what is newer cannot be asked for yet; look again in an hour"
            return Finding.warning("available", says, step)
        return Finding.ok("available", says)

    def _service_time(self) -> datetime:
        """What time it is there, or here where it does not say."""
        last = self._heard[-1]
        return datetime.fromtimestamp(last.at - (last.off_s or 0.0), UTC)

    def _has(self, path: str) -> bool:
        """Whether there is a good answer to *path*, or to a list none at all."""
        statuses = [heard.answer.status for heard in self._heard if heard.path == path]
        return 200 in statuses or (path != _INTERVAL and bool(statuses))

    def _said(self, path: str, kind: type[T]) -> T | None:
        """What the newest good answer to *path* holds; None where there is none."""
        for heard in reversed(self._heard):
            if heard.path == path and heard.answer.status == 200:
                try:
                    return msgspec.json.decode(heard.answer.body, type=kind)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    return None
        return None


def _names(about: str, listed: Sequence[str] | None, known: Sequence[str], ours: Sequence[str]) -> Finding:
    if listed is None:
        step = "see service; queries work without the list"
        return Finding.warning(about, "are not listed as promised", step)
    new = sorted(set(listed) - {*known, *ours})
    missing = sorted(set(known) - set(listed))
    if not new and not missing:
        return Finding.ok(about, f"all {len(known)} that this version knows")
    says = [f"{len(new)} new: {_some(new)}"] if new else []
    says += [f"{len(missing)} missing: {_some(missing)}"] if missing else []
    step = "new ones are passed on as they are, missing ones are refused; a newer gamelens may know more"
    return Finding.warning(about, "; ".join(says), step)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name[:_NAME_CHARS] for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _span(time: timedelta) -> str:
    """*time* as a person says it."""
    minutes = time.total_seconds() / 60
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{time.days} days"
