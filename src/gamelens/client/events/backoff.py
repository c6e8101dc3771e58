"""Pauses after failures, with full jitter. Wire 1.15, Client queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gamelens.errors import RateLimited, Retryable
from gamelens.wire.limits import SUBMIT_PERIOD_S

LONGEST_PAUSE_S: Final = 600.0  # Our choice
_TIMER_ERROR_S: Final = 0.5  # a sleep may end that much before its time


class Backoff:
    """The pause after failures in a row: up to 20 s doubled for each, and at most 600 s.

    Full jitter (any part of that) makes clients that failed together retry at different times.

    Args:
        clock: seconds. If it is moved back, the pause is over.
        random: 0 to 1.
    """

    def __init__(self, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._clock, self._random = clock, random
        self._failures = 0
        self._failed_s = self._pause_s = 0.0

    def fail(self, error: Retryable | None = None) -> None:
        """Begin the next, longer pause, which lasts at least the Retry-After of a 429."""
        self._failures += 1
        self._failed_s = self._clock()
        requested_s = error.retry_after if isinstance(error, RateLimited) else None
        longest_s = min(LONGEST_PAUSE_S, SUBMIT_PERIOD_S * 2.0 ** min(self._failures, 16))
        self._pause_s = max(requested_s or 0.0, self._random() * longest_s)

    @property
    def left_s(self) -> float:
        """The rest of the pause in seconds."""
        passed_s = self._clock() - self._failed_s
        return max(0.0, self._pause_s - passed_s) if passed_s >= 0 else 0.0

    @property
    def is_over(self) -> bool:
        """Whether the pause is over."""
        return self.left_s < _TIMER_ERROR_S
