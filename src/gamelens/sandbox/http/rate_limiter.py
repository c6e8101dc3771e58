"""How much one organisation may ask: so many requests in any rolling second, so many at a time (Metrics, Limits)."""

from __future__ import annotations

import random as randomness
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

import msgspec

from gamelens.errors import RateLimited


class RateLimits(msgspec.Struct, frozen=True):
    """*rate* requests may arrive in any second, *at_once* may be under way."""

    rate: int
    at_once: int


class OrganisationLimiter:
    """Counts the arrivals of each organisation in the last second and what is under way."""

    def __init__(self, limits: RateLimits, *, clock: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._arrivals: dict[str, deque[float]] = defaultdict(deque)
        self._under_way: dict[str, int] = defaultdict(int)

    @contextmanager
    def place(self, organisation: str) -> Iterator[None]:
        """One request's place.

        Raises:
            RateLimited: there is none; says in how many seconds there will be.
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
    """Several nodes, each of which limits on its own; a request goes to any of them (Metrics, Limits 1).

    So an organisation is served between once and *nodes* times what one node allows: the limits are guaranteed
    minimums. *random* answers a whole number below the one it is given.
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

    def place(self, organisation: str) -> AbstractContextManager[None]:
        """One request's place on the node that it came to; see `OrganisationLimiter.place`."""
        return self._limiters[self._random(len(self._limiters))].place(organisation)
