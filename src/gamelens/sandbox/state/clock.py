"""Clock of the sandbox: real time, or frozen and advanced by hand for tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Times that the clock can show: from *EARLIEST* on, and before *LATEST*.

Stored times count from 1970, and intervals end within the year 9999.
"""


class Clock:
    """Time as the sandbox sees it, in seconds since the epoch."""

    def __init__(self) -> None:
        self._frozen_at: float | None = None
        self._ahead_s = 0.0

    def now_s(self) -> float:
        """Return the seconds since the epoch, with fractions."""
        return (time.time() if self._frozen_at is None else self._frozen_at) + self._ahead_s

    def now(self) -> datetime:
        """Return the time as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.now_s(), UTC)

    def monotonic_s(self) -> float:
        """Return the seconds of a clock that is never set, for rates of requests."""
        return time.monotonic()

    def freeze(self, at: datetime) -> None:
        """Stop the clock at *at*.

        Raises:
            ValueError: the clock cannot show that time. It goes on as before.
        """
        self._frozen_at, self._ahead_s = _checked(at.timestamp()), 0.0

    def advance(self, by: timedelta) -> None:
        """Move the clock by *by*, frozen or not. Negative moves it back.

        Raises:
            ValueError: the clock cannot show that time. It goes on as before.
        """
        _checked(self.now_s() + by.total_seconds())
        self._ahead_s += by.total_seconds()

    def resume(self) -> None:
        """Return to real time."""
        self._frozen_at, self._ahead_s = None, 0.0


def _checked(seconds: float) -> float:
    if not EARLIEST.timestamp() <= seconds < LATEST.timestamp():
        raise ValueError(f"the clock shows times from {EARLIEST.year} to {LATEST.year - 1}")
    return seconds
