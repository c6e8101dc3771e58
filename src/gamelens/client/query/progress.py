"""Progress of a query, and the bar that shows it.

The thread of the background loop counts, the thread of the caller draws: a notebook shows what its own thread prints.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gamelens._text import is_terminal
from gamelens.client.connection.transport import RequestStats
from gamelens.wire.limits import REQUESTS_PER_SECOND

if TYPE_CHECKING:
    from tqdm import tqdm

SHOWN_FROM_S: Final = 2.0
"""Least duration of a query, expected or so far, that gets a bar."""


def expected_s(requests: int) -> float:
    """Return the seconds that so many requests take at the guaranteed pace."""
    return max(0.0, requests / REQUESTS_PER_SECOND - 1.0)


class Progress:
    """Count of the requests of one query.

    Attributes:
        total: requests planned so far.
        done: requests answered.
        tally: requests sent, retries, and the reason for waiting.
    """

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.tally = RequestStats()

    def expect(self, requests: int) -> None:
        """Add *requests* to the total."""
        self.total += requests

    @property
    def expected_s(self) -> float:
        """Seconds that all requests take at the guaranteed pace."""
        return expected_s(self.total)


class Bar:
    """Progress bar of a query that takes `SHOWN_FROM_S` or more.

    Args:
        progress: the counts to show.
        wanted: True for a bar, False for none, None for one in a notebook or terminal and not in CI.
        clock: a monotonic clock.
    """

    def __init__(self, progress: Progress, *, wanted: bool | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._wanted = is_progress_shown(wanted)
        self._clock = clock
        self._started_at = clock()
        self._bar: tqdm[Any] | None = None

    def draw(self) -> None:
        """Show the current counts, once the query takes long enough."""
        progress = self._progress
        is_long = progress.expected_s >= SHOWN_FROM_S or self._clock() - self._started_at >= SHOWN_FROM_S
        if self._bar is None and self._wanted and is_long and (progress.total or progress.tally.note):
            from tqdm.auto import tqdm

            self._bar = tqdm(desc="gamelens", unit="request", leave=False)
        if self._bar is not None:
            self._bar.total = progress.total
            self._bar.n = progress.done
            self._bar.set_postfix_str(progress.tally.note, refresh=False)
            self._bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()


def is_progress_shown(wanted: bool | None) -> bool:
    """Return *wanted* or, where it is None, whether this is a notebook or terminal and not CI."""
    if wanted is not None:
        return wanted
    return not os.environ.get("CI") and (_is_kernel() or is_terminal(sys.stderr))


def _is_kernel() -> bool:
    """Return whether this process is a kernel. It may also only have imported the package."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
