"""How far a question is, and the bar that shows it.

The loop's thread counts, the caller's thread draws: a notebook shows what its own thread prints.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gamelens.client.connection.transport import RequestStats
from gamelens.wire.limits import REQUESTS_PER_SECOND

if TYPE_CHECKING:
    from tqdm import tqdm

SHOWN_FROM_S: Final = 2.0
"""Work that is expected to last less is not worth a bar."""


def expected_s(requests: int) -> float:
    """How long so many requests take at the guaranteed pace."""
    return max(0.0, requests / REQUESTS_PER_SECOND - 1.0)


class Progress:
    """Requests of one question: how many there are, how many are answered, what they cost and wait for (`tally`)."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.tally = RequestStats()

    def expect(self, requests: int) -> None:
        """*requests* more are planned."""
        self.total += requests

    @property
    def expected_s(self) -> float:
        """How long all of them take at the guaranteed pace."""
        return expected_s(self.total)


class Bar:
    """Draws a `Progress` where somebody watches: never in CI, and only from `SHOWN_FROM_S` of work on.

    Args:
        wanted: False for no bar, True for one also where nobody seems to watch, None to find out.
    """

    def __init__(self, progress: Progress, *, wanted: bool | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._wanted = _is_watched() if wanted is None else wanted
        self._clock = clock
        self._began = clock()
        self._bar: tqdm[Any] | None = None

    def draw(self) -> None:
        """Show how far it is now."""
        progress = self._progress
        is_long = progress.expected_s >= SHOWN_FROM_S or self._clock() - self._began >= SHOWN_FROM_S
        if self._bar is None and self._wanted and is_long and (progress.total or progress.tally.note):
            from tqdm.auto import tqdm

            self._bar = tqdm(desc="gamelens", unit="request", leave=False)
        if self._bar is not None:
            self._bar.total = progress.total
            self._bar.n = progress.done
            self._bar.set_postfix_str(progress.tally.note, refresh=False)
            self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


def _is_watched() -> bool:
    return not os.environ.get("CI") and ("ipykernel" in sys.modules or sys.stderr.isatty())
