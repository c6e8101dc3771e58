"""The rate limiter: starts of requests per second and requests in flight, for one key.

The service guarantees an organisation 5 requests a second and 5 in flight, and 1000 a second for the list of metrics
(Wire 2.3, Rate limits). It counts arrivals, which a client cannot see: a request arrives between its last byte and its
response. So a slot to start on is free again one second and a margin after the latest possible arrival, and time spent
connecting does not count.

All clients of one user on one machine share the slots (`shared_slots`), in any thread, loop, process or kernel.
Our choice: each process counts the 1000 requests for the list of metrics by itself. A client requests that list once
and remembers it, so no machine reaches the limit.

Written here because pyrate-limiter and limits count calls at the client within one process or a database. They cannot
hold a slot until a request has arrived, share slots between kernels without a server, or release those of a killed
process.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final, Literal

from gamelens.client.connection.shared_slots import SharedSlots, Slot
from gamelens.wire.limits import METRIC_LISTS_PER_SECOND, REQUESTS_PER_SECOND

Route = Literal["metric list", "other"]
Pace = Literal["guaranteed", "adaptive"]
MARGIN_S: Final = 0.03
REST_S: Final = 1.0 + MARGIN_S  # time between two requests that the service counts on one slot
LAG_S: Final = 0.05  # longest assumed time from sending a request until the service counts it
# The same for a service that has answered fast so far, or has not answered yet and may be warming up.
UNUSUAL_LAG_S: Final = 0.25
POLL_S: Final = 0.01  # how often to check for slots that other processes release


class Permit:
    """Permission to send one request. The sender reports when it was sent and how it ended."""

    def __init__(
        self, rate_limiter: RateLimiter, route: Route, start_slot: Slot, in_flight: Slot, lag_s: float
    ) -> None:
        self._limiter = rate_limiter
        self._route = route
        self._start_slot: Slot | None = start_slot
        self._in_flight = in_flight
        self._lag_s = lag_s
        self._taken_at = rate_limiter.now()
        self._sent_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def mark_sent(self) -> None:
        """Record that the last byte was sent: the service counts the request within the lag."""
        if self._start_slot is None or self._sent_at is not None:
            return
        self._sent_at = self._limiter.now()
        counted_at = self._sent_at + self._lag_s
        self._start_slot.mark(counted_at + REST_S)
        # Keep the slot taken until the outcome is known: the marked time is only the latest possible one.
        self._timer = asyncio.get_running_loop().call_later(self._lag_s, self._release_start, counted_at)

    def mark_answered(self) -> None:
        """Record that the service answered."""
        self._report(is_refused=False)

    def mark_refused(self) -> bool:
        """Record a 429 and return whether the adaptive limit had exceeded the guaranteed rate."""
        return self._report(is_refused=True)

    def release(self, *, is_cut_short: bool) -> None:
        """Release both slots. A request that was cut short may still arrive, so the lag counts."""
        now = self._limiter.now()
        latest = (now if self._sent_at is None else self._sent_at) + self._lag_s
        self._release_start(latest if is_cut_short else min(now, latest))
        self._in_flight.free()
        if not is_cut_short and self._sent_at is not None:
            self._limiter.record_duration(now - self._sent_at)

    def _report(self, *, is_refused: bool) -> bool:
        if self._route == "metric list":
            return False
        sent_at = self._taken_at if self._sent_at is None else self._sent_at
        return self._limiter.record_outcome(sent_at, is_refused=is_refused)

    def _release_start(self, counted_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._start_slot is not None:
            self._start_slot.free(counted_at + REST_S)
            self._start_slot = None


class RateLimiter:
    """Grants permits, first come, first served, on one event loop.

    Args:
        slots: the slots of the guaranteed rate, which other limiters may share.
        adaptive: opens additional slots; None keeps the guaranteed rate.
        clock, sleep: the clock must be the same for all processes that share the slots.
    """

    def __init__(
        self,
        slots: SharedSlots,
        *,
        adaptive: AdaptiveLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.now = clock
        self._slots = slots
        self._adaptive = adaptive
        self._sleep = sleep
        self._first_attempt_locks: dict[Route, asyncio.Lock] = {"metric list": asyncio.Lock(), "other": asyncio.Lock()}
        self._turn_locks: dict[Route, asyncio.Lock] = {"metric list": asyncio.Lock(), "other": asyncio.Lock()}
        self._list_slots = [Slot() for _ in range(METRIC_LISTS_PER_SECOND)]
        self._extra_starts: list[Slot] = []
        self._extra_in_flight: list[Slot] = []
        self._was_slow: deque[bool] = deque(maxlen=REQUESTS_PER_SECOND)

    @property
    def why_alone(self) -> str | None:
        """The reason why other processes do not share the slots.

        None if they do.
        """
        return self._slots.why_alone

    @asynccontextmanager
    async def permit(self, route: Route = "other", *, again: bool = False) -> AsyncIterator[Permit]:
        """Wait for a permit for one request and hold it while the request is in flight.

        A request that is sent *again* waits behind one new request at most, so that a long queue does not delay each
        attempt.
        """
        async with nullcontext() if again else self._first_attempt_locks[route], self._turn_locks[route]:
            while (permit := self._try_permit(route)) is None:
                await self._sleep(self._wait_s(route))
        is_cut_short = True
        try:
            yield permit
            is_cut_short = False
        finally:
            permit.release(is_cut_short=is_cut_short)

    def record_duration(self, took_s: float) -> None:
        """Record how long the service took to answer."""
        self._was_slow.append(took_s > LAG_S)

    def record_outcome(self, sent_at: float, *, is_refused: bool) -> bool:
        """Report an outcome to the adaptive limit and return whether additional slots were open."""
        if self._adaptive is None:
            return False
        is_above = self._adaptive.extra > 0
        if is_refused:
            self._adaptive.mark_refused(self.now())
        else:
            self._adaptive.mark_answered(sent_at, self.now(), is_wanted=self._turn_locks["other"].locked())
        return is_above

    def _try_permit(self, route: Route) -> Permit | None:
        """Return a permit if a slot to start and a slot in flight are free, else None."""
        self._open_extra()
        now, starts = self.now(), self._starts(route)
        if min(slot.free_at for slot in starts) > now:
            return None
        in_flight = start_slot = None
        try:
            in_flight = _take_first([*self._slots.in_flight, *self._extra_in_flight[: self._extra]], now)
            start_slot = _take_first(starts, now) if in_flight is not None else None
        except OSError as error:
            self._slots.use_private_slots(error)
        if in_flight is not None and start_slot is not None:
            return Permit(self, route, start_slot, in_flight, LAG_S if any(self._was_slow) else UNUSUAL_LAG_S)
        if in_flight is not None:
            in_flight.free()
        return None

    def _starts(self, route: Route) -> Sequence[Slot]:
        if route == "metric list":
            return self._list_slots
        return [*self._slots.starts, *self._extra_starts[: self._extra]]

    @property
    def _extra(self) -> int:
        return self._adaptive.extra if self._adaptive is not None else 0

    def _open_extra(self) -> None:
        while len(self._extra_starts) < self._extra:
            self._extra_starts.append(Slot())
            self._extra_in_flight.append(Slot())

    def _wait_s(self, route: Route) -> float:
        """Return the time until a slot is free, capped at the polling interval.

        Another process may free one earlier.
        """
        free_in_s = min(slot.free_at for slot in self._starts(route)) - self.now()
        return free_in_s if 0 < free_in_s < POLL_S else POLL_S


def _take_first(slots: Sequence[Slot], now: float) -> Slot | None:
    return next((slot for slot in slots if slot.take(now)), None)


_shared_slots: dict[tuple[int, str, str, Path | None], SharedSlots] = {}
_limiters: dict[tuple[SharedSlots, Pace], RateLimiter] = {}
_registry_lock = threading.Lock()


def shared_rate_limiter(
    address: str, fingerprint: str, pace: Pace = "guaranteed", *, folder: Path | None = None
) -> RateLimiter:
    """Return the rate limiter of one key at one *address* for this process.

    A forked child gets its own. All processes of this user share the slots through files in *folder*, by default the
    runtime folder.
    """
    with _registry_lock:
        key = (os.getpid(), address, fingerprint, folder)
        if key not in _shared_slots:
            _shared_slots[key] = SharedSlots(f"{address} {fingerprint}", folder=folder, clock=time.monotonic)
        chosen = (_shared_slots[key], pace)
        if chosen not in _limiters:
            _limiters[chosen] = RateLimiter(chosen[0], adaptive=AdaptiveLimit() if pace == "adaptive" else None)
        return _limiters[chosen]


ANSWERS_PER_SLOT: Final = 3
MOST_SLOTS: Final = 50  # Our choice: ten nodes
HOLD_S: Final = 60.0
MEMORY_S: Final = 10.0


class AdaptiveLimit:
    """The number of slots beyond the guaranteed rate, from answers and refusals (429).

    The limits are guaranteed minimums: several nodes may serve, and each limits alone (Wire 2.3, Rate limits). So:

    1. It starts at the guaranteed rate. Three answers open one more slot, as long as requests wait for one.
    2. A refusal shortly after more requests of one second were answered than guaranteed: there are several nodes, and
       this request reached a full one. One slot is closed.
    3. A refusal without that: one node serves. Back to the guaranteed rate, and no additional slots for a minute.

    Requests reach nodes at random, so some find a full one long before all are full. With four nodes and three times
    the guaranteed rate that is one request in six to one in sixteen; with four times, one in four to one in seven,
    depending on their spread over the second. Halving the rate at each refusal gives 2.0 to 2.4 times the guaranteed
    rate (300 requests, simulated); rules 1 and 2, which balance where one in four is refused, give 2.9 to 3.3. A
    refused request is sent again after its Retry-After.

    The state is about this moment and belongs to one process. Clients that keep to the guaranteed rate keep its slots.
    """

    def __init__(self) -> None:
        self._answers = 0
        self._sent: deque[float] = deque(maxlen=MOST_SLOTS)  # send times of the latest answered requests
        self._holds_until = -math.inf
        self._several_until = -math.inf

    @property
    def extra(self) -> int:
        """The number of slots beyond the guaranteed rate."""
        return self._answers // ANSWERS_PER_SLOT

    def mark_answered(self, sent_at: float, now: float, *, is_wanted: bool) -> None:
        """Record an answered request.

        *is_wanted* says whether others wait for a slot.
        """
        self._sent.append(sent_at)
        if sum(sent_at - 1.0 < other <= sent_at for other in self._sent) > REQUESTS_PER_SECOND:
            self._several_until = now + MEMORY_S
        if is_wanted and now >= self._holds_until:
            self._answers = min(self._answers + 1, (MOST_SLOTS - REQUESTS_PER_SECOND) * ANSWERS_PER_SLOT)

    def mark_refused(self, now: float) -> None:
        """Record a refused request."""
        if now < self._several_until:
            self._answers = max(self._answers - ANSWERS_PER_SLOT, 0)
        else:
            self._answers = 0
            self._holds_until = now + HOLD_S
