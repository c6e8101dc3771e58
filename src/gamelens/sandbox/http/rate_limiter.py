"""Rate limits of the metrics service, per organisation and node (Wire 2.3, Rate limits)."""

from __future__ import annotations

import random as randomness
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import msgspec

from gamelens.errors import RateLimited
from gamelens.wire.limits import METRIC_LISTS_PER_SECOND


class RateLimits(msgspec.Struct, frozen=True):
    """Limits of one organisation: requests in any second, requests at the same time, lists of metrics in any second."""

    rate: int
    at_once: int
    lists: int = METRIC_LISTS_PER_SECOND


class NodeLimiters:
    """Counts requests of each organisation on each node: arrivals in the last second, and those under way.

    A request comes to a random one of *nodes*. Every node limits by itself. An organisation is served between once
    and *nodes* times what one node allows, so the limits are guaranteed minimums. *random* returns a whole number below
    its argument.
    """

    def __init__(
        self,
        limits: RateLimits,
        *,
        nodes: int = 1,
        random: Callable[[int], int] = randomness.randrange,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limits, self._nodes, self._random, self._clock = limits, nodes, random, clock
        self._arrivals: dict[tuple[int, str], deque[float]] = defaultdict(deque)
        self._under_way: dict[tuple[int, str], int] = defaultdict(int)

    @contextmanager
    def permit(self, organisation: str) -> Iterator[None]:
        """Count one request on a random node as under way while the context is open.

        Raises:
            RateLimited: a limit is reached; has the seconds after which to try again.
        """
        place = self._random(self._nodes), organisation
        now, arrivals = self._clock(), self._arrivals[place]
        while arrivals and now - arrivals[0] >= 1.0:
            arrivals.popleft()
        if len(arrivals) >= self._limits.rate:
            raise RateLimited(1.0 - (now - arrivals[0]), f"more than {self._limits.rate} requests in a second")
        if self._under_way[place] >= self._limits.at_once:
            raise RateLimited(1.0, f"more than {self._limits.at_once} requests at once")
        arrivals.append(now)
        self._under_way[place] += 1
        try:
            yield
        finally:
            self._under_way[place] -= 1
