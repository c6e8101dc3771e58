"""Rate limits of the metrics service, per organisation and node (Wire 2.3, Rate limits)."""

from __future__ import annotations

import random as randomness
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

import msgspec

from gamelens.errors import RateLimited
from gamelens.wire.limits import METRIC_LISTS_PER_SECOND


class RateLimits(msgspec.Struct, frozen=True):
    """Limits of one organisation.

    Attributes:
        rate: requests in any second.
        at_once: requests at the same time.
        lists: requests of the list of metrics in any second.
    """

    rate: int
    at_once: int
    lists: int = METRIC_LISTS_PER_SECOND


class OrganisationLimiter:
    """Counts requests of each organisation: arrivals in the last second, and those under way."""

    def __init__(self, limits: RateLimits, *, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._arrivals: dict[str, deque[float]] = defaultdict(deque)
        self._under_way: dict[str, int] = defaultdict(int)

    @contextmanager
    def permit(self, organisation: str) -> Iterator[None]:
        """Count one request as under way while the context is open.

        Raises:
            RateLimited: a limit is reached; has the seconds after which to try again.
        """
        now, arrivals = self._clock(), self._arrivals[organisation]
        while arrivals and now - arrivals[0] >= 1.0:
            arrivals.popleft()
        if len(arrivals) >= self._limits.rate:
            raise RateLimited(1.0 - (now - arrivals[0]), f"more than {self._limits.rate} requests in a second")
        if self._under_way[organisation] >= self._limits.at_once:
            raise RateLimited(1.0, f"more than {self._limits.at_once} requests at once")
        arrivals.append(now)
        self._under_way[organisation] += 1
        try:
            yield
        finally:
            self._under_way[organisation] -= 1


class NodeLimiters:
    """Limiters of several nodes, each on its own. A request comes to a random one.

    An organisation is served between once and *nodes* times what one node allows, so the limits are guaranteed
    minimums. *random* returns a whole number below its argument.
    """

    def __init__(
        self,
        limits: RateLimits,
        *,
        nodes: int = 1,
        random: Callable[[int], int] = randomness.randrange,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limiters = [OrganisationLimiter(limits, clock=clock) for _ in range(nodes)]
        self._random = random

    def permit(self, organisation: str) -> AbstractContextManager[None]:
        """Count one request on a random node, as `OrganisationLimiter.permit` does."""
        return self._limiters[self._random(len(self._limiters))].permit(organisation)
