"""A limit on how long a query may take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gamelens.errors import Unreachable

T = TypeVar("T")


class Deadline:
    """The time limit of one query.

    Args:
        deadline_s: seconds from now; None means no limit.
        clock: a monotonic clock.
    """

    def __init__(self, deadline_s: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._deadline_s = deadline_s
        self._clock = clock
        self._ends_at = None if deadline_s is None else clock() + deadline_s

    @property
    def left_s(self) -> float | None:
        """The seconds left.

        None means no limit.
        """
        return None if self._ends_at is None else max(0.0, self._ends_at - self._clock())

    @property
    def error(self) -> Unreachable:
        """The error to raise once the time has passed."""
        return Unreachable(f"not answered within deadline_s={self._deadline_s:g}: ask for less, or allow more time")

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*, which is cancelled at the deadline.

        Raises:
            Unreachable: the deadline has passed.
        """
        try:
            async with asyncio.timeout(self.left_s):
                return await work
        except TimeoutError:
            late = self.error
        raise late
