"""The background event loop that all clients of this process share.

Connections, rate limiters and remembered answers live on it, so that scripts, notebooks, threads and running loops can
share them: each submits its coroutine and waits for the result in its own way.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from gamelens._forks import OwnProcess, lock_across_forks

T = TypeVar("T")

# A thread that blocks without a timeout cannot be interrupted on Windows, and neither can the loop of a kernel, which
# handles an interrupt only when it wakes.
_WAKE_S = 0.05
_LONGEST_END_S = 1.0


class Interrupted(KeyboardInterrupt):
    """An interrupt of a call that waited for the service."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows."""
        return ["Interrupted: the query under way was cancelled."]


def _do_nothing() -> None:
    """Do nothing (default callback)."""


class BackgroundLoop:
    """An event loop on a daemon thread, running from the start."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._unawaited = set[Future[Any]]()
        self._was_interrupted = False
        self.process = OwnProcess("this client")
        self._thread = threading.Thread(target=self._loop.run_forever, name="gamelens", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    def _stop(self) -> None:
        """End the thread before the interpreter does, which would leave to an engine what the thread still holds."""
        if self.process.is_this and self._thread.is_alive():
            wait(self._unawaited.copy(), _LONGEST_END_S)
            if self._was_interrupted:
                wait((self.submit(_end_cancelled()),), 2 * _LONGEST_END_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_LONGEST_END_S)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* on the loop and return its future.

        Cancelling the future cancels the work.

        Raises:
            Refused: this is a forked child, in which the thread does not run.
        """
        try:
            self.process.check()
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def submit_unawaited(self, work: Coroutine[Any, Any, object]) -> None:
        """Start *work*. Nobody waits for its end, but for a second when Python ends.

        Raises:
            Refused: this is a forked child, in which the thread does not run.
        """
        future = self.submit(work)
        self._unawaited.add(future)
        future.add_done_callback(self._unawaited.discard)

    def run(self, work: Coroutine[Any, Any, T], *, on_tick: Callable[[], None] = _do_nothing) -> T:
        """Return the result of *work*, blocking the caller.

        An interrupt cancels the work. *on_tick* is called every 50 ms in the caller's thread. A running loop of the
        caller stands still meanwhile.
        """
        future: Future[T] | None = None
        try:
            future = self.submit(work)  # inside, since an interrupt may come before it has returned
            with _interruptible():
                while not wait((future,), timeout=_WAKE_S).done:
                    on_tick()
            return future.result()
        except BaseException as error:
            if future is not None:
                future.cancel()
            if isinstance(error, KeyboardInterrupt):
                self._was_interrupted = True
                raise Interrupted from None
            _stay_if_python_ends()
            raise

    async def run_async(self, work: Coroutine[Any, Any, T], *, on_tick: Callable[[], None] = _do_nothing) -> T:
        """Return the result of *work* to a caller on another loop.

        Cancelling the caller cancels the work. *on_tick* is called every 50 ms on the caller's loop.
        """
        submitted = self.submit(work)
        future = asyncio.wrap_future(submitted)
        try:
            while not (await asyncio.wait((future,), timeout=_WAKE_S))[0]:
                on_tick()
            return future.result()
        except asyncio.CancelledError:
            submitted.cancel()  # directly: *future* would need the caller's loop, which may be blocked
            raise


def _stay_if_python_ends() -> None:
    """Keep a daemon thread until Python is gone, which then takes no new work: its error would be half a traceback."""
    if threading.current_thread().daemon and not threading.main_thread().is_alive():
        threading.Event().wait()


async def _end_cancelled() -> None:
    """Let the tasks end that were cancelled, for a second: Python would report each that it destroys."""
    if cancelled := [task for task in asyncio.all_tasks() if task.cancelling()]:
        await asyncio.wait(cancelled, timeout=_LONGEST_END_S)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt reach a caller that blocks a running loop.

    asyncio and notebook kernels handle the signal on that loop, which stands still until the call returns.
    """
    if threading.current_thread() is not threading.main_thread() or not _blocks_a_loop():
        yield
        return
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _blocks_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_loops: dict[int, BackgroundLoop] = {}
_loops_lock = lock_across_forks()


def shared_loop() -> BackgroundLoop:
    """Return the background loop of this process.

    A forked child gets its own, because threads do not survive a fork.
    """
    with _loops_lock:
        if os.getpid() not in _loops:
            _loops[os.getpid()] = BackgroundLoop()
        return _loops[os.getpid()]


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of *coroutines*, in order.

    The first failure cancels the others and is raised unchanged, not as an exception group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in coroutines]
    except BaseExceptionGroup as failed:
        first = failed.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise first
