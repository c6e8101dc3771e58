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
        last_failure: returns in words why the last attempt that was to be repeated failed, "" if none did.
        clock: a monotonic clock.
    """

    def __init__(
        self,
        deadline_s: float | None,
        *,
        last_failure: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deadline_s = deadline_s
        self._last_failure = last_failure
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
        why = self._last_failure() or "ask for less, or allow more time"
        return Unreachable(f"not answered within deadline_s={self._deadline_s:g}: {why}")

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
