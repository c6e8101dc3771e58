"""The one event loop of all clients of this process, on a thread of its own.

Connections, the budget and whatever is remembered live there, so that a script, a notebook, threads and a running
loop can share them: each hands its coroutine over and waits in its own way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# A thread that waits for ever without waking cannot be interrupted on Windows; nor does the loop of a kernel, which
# hears of an interrupt when it wakes.
_WAKE_S = 0.05


def _nothing() -> None:
    """What happens while nobody watches."""


class BackgroundLoop:
    """An event loop on a daemon thread, running from the start."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="gamelens", daemon=True).start()

    def hand_over(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* on the loop; cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, T], *, on_tick: Callable[[], None] = _nothing) -> T:
        """Result of *work*, for a caller without a loop or with one that may stand still; an interrupt cancels it.

        *on_tick* is called now and then, in the caller's thread.
        """
        future = self.hand_over(work)
        try:
            with _interruptible():
                while not wait((future,), timeout=_WAKE_S).done:
                    on_tick()
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def wait_async(self, work: Coroutine[Any, Any, T], *, on_tick: Callable[[], None] = _nothing) -> T:
        """Result of *work*, for a caller on another loop; cancelling the caller cancels it."""
        handed = self.hand_over(work)
        future = asyncio.wrap_future(handed)
        try:
            while not (await asyncio.wait((future,), timeout=_WAKE_S))[0]:
                on_tick()
            return future.result()
        except asyncio.CancelledError:
            handed.cancel()  # at once: through *future* it would wait for the caller's loop, which may be busy by now
            raise


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt reach a caller who blocks a running loop.

    asyncio and notebook kernels handle the signal on that very loop, which stands still until we return.
    """
    if threading.current_thread() is not threading.main_thread() or not _blocks_a_loop():
        yield
        return
    theirs = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, theirs)


def _blocks_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_made: dict[int, BackgroundLoop] = {}
_making = threading.Lock()


def shared_loop() -> BackgroundLoop:
    """The background loop of this process. A forked child gets its own: threads do not survive a fork."""
    with _making:
        if os.getpid() not in _made:
            _made[os.getpid()] = BackgroundLoop()
        return _made[os.getpid()]


async def gather(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of all *works*, in their order; the first that fails stops the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failed:
        first = failed.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise first
