"""Background tasks of widgets: only the newest one counts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

from gamelens.notebook.widgets.background_task import LatestTask, Showing, all_settled


class RecordedWork:
    """Work of a given duration that records when it began and what it showed."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.shown: list[str] = []
        self.is_begun = threading.Event()

    def work(self, name: str, *, seconds: float = 0.0) -> Callable[[], Coroutine[None, None, Showing]]:
        """Return work called *name* that takes *seconds*."""

        async def run() -> Showing:
            """Record the start, wait, and return the function that shows the result."""
            self.begun.append(name)
            self.is_begun.set()
            await asyncio.sleep(seconds)
            return lambda: self.shown.append(name)

        return run


def test_the_newest_of_several_is_all_that_is_done() -> None:
    """Of several tasks started within the quiet time only the last one runs."""
    recorded, latest = RecordedWork(), LatestTask(quiet_s=0.05)
    for name in "abc":
        latest.start(recorded.work(name))
    assert latest.settled(5)
    assert (recorded.begun, recorded.shown) == (["c"], ["c"])


def test_work_under_way_is_cancelled_by_newer_work() -> None:
    """A running task is cancelled when a newer one starts, and shows nothing."""
    recorded, latest = RecordedWork(), LatestTask(quiet_s=0.0)
    latest.start(recorded.work("slow", seconds=60))
    assert recorded.is_begun.wait(5)
    latest.start(recorded.work("quick"))
    assert latest.settled(5)
    assert (recorded.begun, recorded.shown) == (["slow", "quick"], ["quick"])


def test_a_stopped_task_shows_nothing() -> None:
    """`stop` cancels the running work, and its result is dropped."""
    recorded, latest = RecordedWork(), LatestTask(quiet_s=0.0)
    latest.start(recorded.work("slow", seconds=60))
    assert recorded.is_begun.wait(5)
    latest.stop()
    assert latest.settled(5)
    assert recorded.shown == []


def test_waiting_ends_in_time() -> None:
    """Waiting for a task ends at its timeout, also for several tasks."""
    recorded, latest = RecordedWork(), LatestTask(quiet_s=0.0)
    latest.start(recorded.work("slow", seconds=60))
    assert not latest.settled(0.05)
    assert not all_settled([LatestTask(), latest], 0.05)
    latest.stop()


def test_nothing_to_do_is_settled() -> None:
    """A task that never started is settled."""
    assert LatestTask().settled(0)
