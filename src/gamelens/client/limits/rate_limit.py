"""The rate limiter: starts of requests per second and requests in flight, for one key.

The service guarantees an organisation 5 requests a second and 5 in flight, and 1000 a second for the list of metrics
(Wire 2.3, Rate limits). It counts arrivals, which a client cannot see: a request arrives between its last byte and its
response. So a slot to start on is free again one second and a margin after the latest possible arrival, and time spent
connecting does not count.

All clients of one user on one machine share the slots (`shared_slots`), in any thread, loop, process or kernel.
Our choice: each process counts the 1000 requests for the list of metrics by itself. A client requests that list once
and remembers it, so no machine reaches the limit.

Written here because pyrate-limiter and limits count calls at the client within one process or a database. They cannot
hold a slot until a request has arrived, share slots between kernels without a server, or release the slots of a killed
process.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

from gamelens._forks import lock_across_forks
from gamelens.client.limits.shared_slots import SharedSlots, Slot
from gamelens.wire.limits import METRIC_LISTS_PER_SECOND, REQUESTS_PER_SECOND

Route = Literal["metric list", "other"]
Pace = Literal["guaranteed", "adaptive"]
MARGIN_S: Final = 0.03
REST_S: Final = 1.0 + MARGIN_S  # time between two requests that the service counts on one slot
LAG_S: Final = 0.05  # longest assumed time from sending a request until the service counts it
# The same for a service that has answered fast so far, or has not answered yet and may be warming up.
UNUSUAL_LAG_S: Final = 0.25
BURST_REST_S: Final = 1.0  # time between the starts of two bursts of the adaptive pace, on one slot
STEP_S: Final = 0.001  # between two starts on additional slots, so that a refusal may come before the next
GATHER_S: Final = 0.3  # longest wait for the rest of a burst
POLL_S: Final = 0.01  # how often to check for slots that other processes release


class Permit:
    """Permission to send one request. The sender reports when it was sent and how it ended."""

    def __init__(
        self,
        rate_limiter: RateLimiter,
        route: Route,
        start_slot: Slot,
        in_flight: Slot,
        *,
        lag_s: float,
        rest_s: float = REST_S,
    ) -> None:
        self._limiter = rate_limiter
        self._route = route
        self._start_slot: Slot | None = start_slot
        self._in_flight = in_flight
        self._lag_s = lag_s
        self._rest_s = rest_s
        self._taken_at = rate_limiter.now()
        self._sent_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def mark_sent(self) -> None:
        """Record that the last byte was sent: the service counts the request within the lag."""
        if self._start_slot is None or self._sent_at is not None:
            return
        self._sent_at = self._limiter.now()
        counted_at = self._sent_at + self._lag_s
        self._start_slot.mark(counted_at + self._rest_s)
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
            self._start_slot.free(counted_at + self._rest_s)
            self._start_slot = None


class RateLimiter:
    """Grants permits, first come, first served, on one event loop.

    In the bursts of an `AdaptiveLimit`, requests start on all slots as soon as all are free, and on additional ones one
    after another, so that a refusal stops those not sent yet.

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
        self._waiting = 0
        self._started_at = self._extra_from = -math.inf
        self._is_gathering = False
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
        self._waiting += 1
        try:
            async with nullcontext() if again else self._first_attempt_locks[route], self._turn_locks[route]:
                while (permit := self._try_permit(route)) is None:
                    await self._sleep(self._wait_s(route))
        finally:
            self._waiting -= 1
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
        now, is_above = self.now(), self._adaptive.extra > 0
        if is_refused:
            self._adaptive.mark_refused(sent_at, now)
            for slot in self._extra_starts:
                slot.mark(now + 1.0)
        else:
            self._adaptive.mark_answered(sent_at, now, is_wanted=self._waiting > 0)
        return is_above

    def _try_permit(self, route: Route) -> Permit | None:
        """Return a permit if a slot to start and a slot in flight are free, else None."""
        self._open_extra()
        now = self.now()
        if self._next_start_at(route) > now:
            return None
        in_flight = start_slot = None
        try:
            in_flight = _take_first([*self._slots.in_flight, *self._extra_in_flight[: self._extra]], now)
            start_slot = _take_first(self._starts(route), now) if in_flight is not None else None
        except OSError as error:
            self._slots.use_private_slots(error)
        if in_flight is not None and start_slot is not None:
            return self._new_permit(route, start_slot, in_flight)
        if in_flight is not None:
            in_flight.free()
        return None

    def _new_permit(self, route: Route, start_slot: Slot, in_flight: Slot) -> Permit:
        self._started_at = self.now()
        if start_slot in self._extra_starts:
            self._extra_from = self._started_at + STEP_S
        if self._has_bursts:
            return Permit(self, route, start_slot, in_flight, lag_s=0.0, rest_s=BURST_REST_S)
        return Permit(self, route, start_slot, in_flight, lag_s=LAG_S if any(self._was_slow) else UNUSUAL_LAG_S)

    def _starts(self, route: Route) -> Sequence[Slot]:
        """Return the slots to start on, the slots of the guaranteed rate first."""
        if route == "metric list":
            return self._list_slots
        return [*self._slots.starts, *self._extra_starts[: self._extra]]

    def _next_start_at(self, route: Route) -> float:
        """Return the earliest time a request can start, infinity while all slots are held.

        In bursts, once all slots are used the next start waits until all are free, or for `GATHER_S` where another
        process uses some of them.
        """
        free_at = [slot.free_at for slot in self._starts(route)]
        first = min(free_at)
        if route == "metric list" or not self._extra:
            return first
        if not self._has_bursts or self._waiting <= len(free_at):
            self._is_gathering = False
        elif first > self.now():
            self._is_gathering = True
        if self._is_gathering:
            first = min(max(free_at), self._started_at + BURST_REST_S + GATHER_S)
            self._is_gathering = first > self.now()
        return max(first, min(self._extra_from, *free_at[:REQUESTS_PER_SECOND]))

    @property
    def _has_bursts(self) -> bool:
        return self._adaptive is not None and self._adaptive.is_settled

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
        free_in_s = self._next_start_at(route) - self.now()
        return free_in_s if 0 < free_in_s < POLL_S else POLL_S


def _take_first(slots: Sequence[Slot], now: float) -> Slot | None:
    return next((slot for slot in slots if slot.take(now)), None)


_shared_slots: dict[tuple[int, str, str, Path | None], SharedSlots] = {}
_limiters: dict[tuple[SharedSlots, Pace], RateLimiter] = {}
_registry_lock = lock_across_forks()


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
ANSWERS_PER_REFUSAL: Final = 20
MOST_SLOTS: Final = 50  # Our choice: ten nodes
HOLD_S: Final = 60.0
MEMORY_S: Final = 10.0
_NONE: Final = Fraction(0)


class AdaptiveLimit:
    """The number of slots beyond the guaranteed rate, from answers and refusals (429).

    The limits are guaranteed minimums: several nodes may serve, and each limits alone (Wire 2.3, Rate limits). So:

    1. It starts at the guaranteed rate. Three answers open one more slot, as long as requests wait for one.
    2. More requests of one second were answered than guaranteed: there are several nodes. As many slots as one node
       guarantees are opened, then one for each answer, until the first refusal.
    3. From then on a refusal closes one slot, and twenty answers open one. This balances where 1 request in 21 is
       refused, and steps of one slot keep it near. Of several refused requests that were under way together only the
       first closes a slot, and each further one needs twenty answers before another is opened.
    4. A refusal while only one node is known: back to the guaranteed rate, and no additional slots for a minute.

    Requests reach nodes at random, so some find a full one long before all are full. A node forgets an arrival after a
    second. Evenly spread requests meet all requests of the second before, a request in a burst only the requests
    sent earlier in the burst, and a burst ends at its first refusal. So from the first refusal on requests start in
    bursts, one each second (`RateLimiter`). Before four nodes that gives 2.5 times the guaranteed rate and 4.8% of the
    requests are refused; of evenly spread requests it would be 10 to 17% (simulated). A refused request is sent again
    after its Retry-After.

    The state is about this moment and belongs to one process. Clients that keep to the guaranteed rate keep its slots.
    """

    def __init__(self) -> None:
        self._extra = _NONE
        self._sent: deque[float] = deque(maxlen=MOST_SLOTS)  # send times of the latest answered requests
        self._holds_until = -math.inf
        self._several_until = -math.inf
        self._owed = _NONE
        self._lowered_at = -math.inf
        self.is_settled = False

    @property
    def extra(self) -> int:
        """The number of slots beyond the guaranteed rate."""
        return int(self._extra)

    def mark_answered(self, sent_at: float, now: float, *, is_wanted: bool) -> None:
        """Record an answered request.

        *is_wanted* says whether others wait for a slot.
        """
        self._sent.append(sent_at)
        if self._answers_before(sent_at) > REQUESTS_PER_SECOND:
            if is_wanted and now >= self._several_until and not self.is_settled:
                self._extra = max(self._extra, Fraction(REQUESTS_PER_SECOND))
            self._several_until = now + MEMORY_S
        if is_wanted and now >= self._holds_until:
            more = self._slots_per_answer(now)
            self._owed, more = max(self._owed - more, _NONE), max(more - self._owed, _NONE)
            self._extra = min(self._extra + more, Fraction(MOST_SLOTS - REQUESTS_PER_SECOND))

    def mark_refused(self, sent_at: float, now: float) -> None:
        """Record a refused request."""
        if now >= self._several_until:
            self._extra, self._owed, self.is_settled = _NONE, _NONE, False
            self._holds_until = now + HOLD_S
        elif sent_at < self._lowered_at:
            self._owed += 1
        else:
            answered = Fraction(self._answers_before(now) - REQUESTS_PER_SECOND)
            self._extra = max(self._extra - 1 if self.is_settled else answered, _NONE)
            self._lowered_at, self.is_settled = now, True

    def _answers_before(self, moment: float) -> int:
        return sum(moment - 1.0 < other <= moment for other in self._sent)

    def _slots_per_answer(self, now: float) -> Fraction:
        if self.is_settled:
            return Fraction(1, ANSWERS_PER_REFUSAL)
        return Fraction(1, 1 if now < self._several_until else ANSWERS_PER_SLOT)
