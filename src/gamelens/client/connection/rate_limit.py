"""The budget of one key at one service: how many requests may start in a second and how many may be under way.

The service promises at least 5 requests a second and 5 at a time to an organisation, and 1000 a second for the list of
metrics (Metrics, Limits). It counts arrivals, which we cannot see: a request arrives after its last byte was sent and
before its answer. So a slot to start on is free again a second and a margin after that, and waiting for a connection
counts as not sent yet.

All clients of one user on one machine share the slots (`slots`), whatever thread, loop, process or kernel they are in.
Our choice: only the 1000 of the metric list are counted by each process for itself, since it asks once and remembers
the answer, and no machine runs two hundred kernels that all start in one second; its requests take a shared seat.
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
REST_S: Final = 1.0 + MARGIN_S  # what passes between two requests that the service counts on one slot
LAG_S: Final = 0.05  # the longest we take a request to be on its way before the service has counted it
# The same where silence is news: it may still be warming up, or it has answered sooner than that so far.
UNUSUAL_LAG_S: Final = 0.25
POLL_S: Final = 0.01  # how often to look for what other processes let go


class Permit:
    """One request's place in the budget; whoever sends it says when it was `sent` and what came of it."""

    def __init__(self, budget: RateLimiter, route: Route, start: Slot, seat: Slot, lag_s: float) -> None:
        self._budget = budget
        self._route = route
        self._start: Slot | None = start
        self._seat = seat
        self._lag_s = lag_s
        self._taken_at = budget.now()
        self._sent_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def sent(self) -> None:
        """The last byte is out: the service counts it within the lag."""
        if self._start is None or self._sent_at is not None:
            return
        self._sent_at = self._budget.now()
        counted_at = self._sent_at + self._lag_s
        self._start.mark(counted_at + REST_S)
        # The slot stays held until more is known, so that nobody looks at what is only the latest moment.
        self._timer = asyncio.get_running_loop().call_later(self._lag_s, self._let_start_go, counted_at)

    def answered(self) -> None:
        """The service took it and answered."""
        self._heard(is_refused=False)

    def refused(self) -> bool:
        """The service answered 429. True when it had been asked for more than it guarantees, which is our doing."""
        return self._heard(is_refused=True)

    def leave(self, *, is_cut_short: bool) -> None:
        """Give the place back. What was cut short may still be on its way: the lag counts."""
        now = self._budget.now()
        latest = (now if self._sent_at is None else self._sent_at) + self._lag_s
        self._let_start_go(latest if is_cut_short else min(now, latest))
        self._seat.free()
        if not is_cut_short and self._sent_at is not None:
            self._budget.note(now - self._sent_at)

    def _heard(self, *, is_refused: bool) -> bool:
        if self._route == "metric list":
            return False
        sent_at = self._taken_at if self._sent_at is None else self._sent_at
        return self._budget.hear(sent_at, is_refused=is_refused)

    def _let_start_go(self, counted_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._start is not None:
            self._start.free(counted_at + REST_S)
            self._start = None


class RateLimiter:
    """Hands out places, first come, first served. Lives on one loop; others share its slots.

    Args:
        guarantee: the slots of what the service promises.
        probe: opens more of them; None keeps to the guarantee.
        clock, sleep: time. The clock must be the one of whoever shares the slots.
    """

    def __init__(
        self,
        guarantee: SharedSlots,
        *,
        probe: AdaptiveLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.now = clock
        self._guarantee = guarantee
        self._probe = probe
        self._sleep = sleep
        self._newcomers: dict[Route, asyncio.Lock] = {"metric list": asyncio.Lock(), "other": asyncio.Lock()}
        self._turns: dict[Route, asyncio.Lock] = {"metric list": asyncio.Lock(), "other": asyncio.Lock()}
        self._lists = [Slot() for _ in range(METRIC_LISTS_PER_SECOND)]
        self._extra_starts: list[Slot] = []
        self._extra_seats: list[Slot] = []
        self._was_slow: deque[bool] = deque(maxlen=REQUESTS_PER_SECOND)

    @property
    def why_alone(self) -> str | None:
        """Why other processes do not share this budget; None where they do."""
        return self._guarantee.why_alone

    @asynccontextmanager
    async def place(self, route: Route = "other", *, again: bool = False) -> AsyncIterator[Permit]:
        """A place for one request, held while it is under way.

        One that is sent *again* waits behind one newcomer at most: with a long queue it would wait once for each try.
        """
        async with nullcontext() if again else self._newcomers[route], self._turns[route]:
            while (place := self._free_place(route)) is None:
                await self._sleep(self._wait_s(route))
        is_cut_short = True
        try:
            yield place
            is_cut_short = False
        finally:
            place.leave(is_cut_short=is_cut_short)

    def note(self, took_s: float) -> None:
        """Remember how soon the service answers."""
        self._was_slow.append(took_s > LAG_S)

    def hear(self, sent_at: float, *, is_refused: bool) -> bool:
        """Tell the probe what the service said; true when more than the guarantee was asked for."""
        if self._probe is None:
            return False
        is_above = self._probe.extra > 0
        if is_refused:
            self._probe.refused(self.now())
        else:
            self._probe.answered(sent_at, self.now(), is_wanted=self._turns["other"].locked())
        return is_above

    def _free_place(self, route: Route) -> Permit | None:
        """A slot to start on and a seat, or neither."""
        self._open_extra()
        now, starts = self.now(), self._starts(route)
        if min(slot.free_at for slot in starts) > now:
            return None
        seat = start = None
        try:
            seat = _first([*self._guarantee.seats, *self._extra_seats[: self._extra]], now)
            start = _first(starts, now) if seat is not None else None
        except OSError as error:
            self._guarantee.go_alone(error)
        if seat is not None and start is not None:
            return Permit(self, route, start, seat, LAG_S if any(self._was_slow) else UNUSUAL_LAG_S)
        if seat is not None:
            seat.free()
        return None

    def _starts(self, route: Route) -> Sequence[Slot]:
        if route == "metric list":
            return self._lists
        return [*self._guarantee.starts, *self._extra_starts[: self._extra]]

    @property
    def _extra(self) -> int:
        return self._probe.extra if self._probe is not None else 0

    def _open_extra(self) -> None:
        while len(self._extra_starts) < self._extra:
            self._extra_starts.append(Slot())
            self._extra_seats.append(Slot())

    def _wait_s(self, route: Route) -> float:
        """Until a slot is known to come free, but not longer than somebody else may take to let one go."""
        known_s = min(slot.free_at for slot in self._starts(route)) - self.now()
        return known_s if 0 < known_s < POLL_S else POLL_S


def _first(slots: Sequence[Slot], now: float) -> Slot | None:
    return next((slot for slot in slots if slot.take(now)), None)


_guarantees: dict[tuple[int, str, str, Path | None], SharedSlots] = {}
_budgets: dict[tuple[SharedSlots, Pace], RateLimiter] = {}
_making = threading.Lock()


def shared_rate_limiter(
    address: str, fingerprint: str, pace: Pace = "guaranteed", *, folder: Path | None = None
) -> RateLimiter:
    """The budget all clients of this process share for one key at one *address*; a forked child starts its own.

    Its slots are shared with all processes of this user through files in *folder*, the runtime folder unless said.
    """
    with _making:
        key = (os.getpid(), address, fingerprint, folder)
        if key not in _guarantees:
            _guarantees[key] = SharedSlots(f"{address} {fingerprint}", folder=folder, clock=time.monotonic)
        chosen = (_guarantees[key], pace)
        if chosen not in _budgets:
            _budgets[chosen] = RateLimiter(chosen[0], probe=AdaptiveLimit() if pace == "adaptive" else None)
        return _budgets[chosen]


ANSWERS_PER_SLOT: Final = 3
MOST_SLOTS: Final = 50  # Our choice: ten nodes' worth
HOLD_S: Final = 60.0
MEMORY_S: Final = 10.0


class AdaptiveLimit:
    """Counts answers and refusals (429) and says how many slots are open beyond the guarantee.

    Limits are guaranteed minimums: several nodes serve, and each limits alone (Metrics, Limits 1). So:

    1. It starts at the guarantee. Three answers open one more slot, as long as requests wait for one.
    2. A refusal while the service has lately answered more requests of one second than the guarantee: there are
       several nodes, and this request drew a full one. One slot is closed.
    3. A refusal while it has not: one node serves. Back to the guarantee, and no probing for a minute.

    Requests come to nodes at random, so some find a full one long before all are full. With four nodes and three times
    the guarantee that is one in six to one in sixteen, with four times one in four to one in seven, as they are spread
    over the second or come together. To fall back far at each, as to half, gives 2.0 to 2.4 times the guarantee (300
    requests, simulated); rules 1 and 2, which balance where one in four is refused, give 2.9 to 3.3. Each refused
    request waits as long as the service says and asks again.

    What is found out is about the moment and belongs to one process: a refusal tells the one who probed, and clients
    that keep to the guarantee keep the slots of the guarantee.
    """

    def __init__(self) -> None:
        self._answers = 0
        self._sent: deque[float] = deque(maxlen=MOST_SLOTS)  # when the latest that were answered were sent
        self._holds_until = -math.inf
        self._several_until = -math.inf

    @property
    def extra(self) -> int:
        """Slots open beyond the guarantee."""
        return self._answers // ANSWERS_PER_SLOT

    def answered(self, sent_at: float, now: float, *, is_wanted: bool) -> None:
        """A request was answered; *is_wanted* says that others wait for a slot."""
        self._sent.append(sent_at)
        if sum(sent_at - 1.0 < other <= sent_at for other in self._sent) > REQUESTS_PER_SECOND:
            self._several_until = now + MEMORY_S
        if is_wanted and now >= self._holds_until:
            self._answers = min(self._answers + 1, (MOST_SLOTS - REQUESTS_PER_SECOND) * ANSWERS_PER_SLOT)

    def refused(self, now: float) -> None:
        """A request was refused."""
        if now < self._several_until:
            self._answers = max(self._answers - ANSWERS_PER_SLOT, 0)
        else:
            self._answers = 0
            self._holds_until = now + HOLD_S
