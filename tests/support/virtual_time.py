"""An event loop whose clock moves only when all tasks wait: minutes in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Leaping(selectors.DefaultSelector):
    """A selector that does not wait, and reports the time it would have waited."""

    def __init__(self, leap: Callable[[float], None]) -> None:
        super().__init__()
        self._leap = leap

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self._leap(timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, *now*."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(_Leaping(self._leap))

    def time(self) -> float:
        return self.now

    def _leap(self, seconds: float) -> None:
        self.now += seconds


def run(work: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Return the result of *work*, which receives the loop's clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work(runner.get_loop().time))
