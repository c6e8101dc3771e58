"""The time limit of queries: one thread that stops those that take too long.

A `threading.Timer` would start a thread for each query, which takes longer than many a query.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from time import monotonic


class TimeLimit:
    """A limit of *seconds* for each query."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = Condition()
        self._running: dict[object, tuple[float, Callable[[], None]]] = {}  # in the order of their ends
        self._is_idle = self._is_closed = False
        self._thread: Thread | None = None

    @contextlib.contextmanager
    def over(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call *stop* if the block takes too long, and never after it has ended."""
        query = object()
        with self._changed:
            self._running[query] = monotonic() + self._seconds, stop
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="query-time-limit", daemon=True)
                self._thread.start()
            elif self._is_idle:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running.pop(query, None)

    def close(self) -> None:
        """End the thread. No block may be running."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed:
                query, (ends_at, stop) = next(iter(self._running.items()), (None, (float("inf"), None)))
                if stop is None or ends_at > monotonic():
                    self._is_idle = stop is None
                    self._changed.wait(None if stop is None else ends_at - monotonic())
                else:
                    del self._running[query]
                    stop()
