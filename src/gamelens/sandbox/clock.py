"""The sandbox's clock: real time, or frozen and advanced by hand, so that a day passes in a millisecond."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Seconds since the epoch, as the sandbox believes them."""

    def __init__(self) -> None:
        self._frozen_at: float | None = None
        self._ahead_s = 0.0

    def now_s(self) -> float:
        """Seconds since the epoch, fractions kept."""
        return (time.time() if self._frozen_at is None else self._frozen_at) + self._ahead_s

    def now(self) -> datetime:
        """The same as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.now_s(), UTC)

    def freeze(self, at: datetime) -> None:
        """Stand still at *at*."""
        self._frozen_at, self._ahead_s = at.timestamp(), 0.0

    def advance(self, by: timedelta) -> None:
        """Jump ahead by *by*, frozen or not."""
        self._ahead_s += by.total_seconds()

    def resume(self) -> None:
        """Back to real time."""
        self._frozen_at, self._ahead_s = None, 0.0
