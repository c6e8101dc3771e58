"""Only the newest work counts."""

from __future__ import annotations

import asyncio
import threading

from gamelens.notebook.widgets.background_task import LatestTask, Showing, all_settled


class Told:
    """Work that takes a while, and what it has shown."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.shown: list[str] = []
        self.is_begun = threading.Event()

    def work(self, name: str, *, seconds: float = 0.0):
        async def run() -> Showing:
            self.begun.append(name)
            self.is_begun.set()
            await asyncio.sleep(seconds)
            return lambda: self.shown.append(name)

        return run


def test_the_newest_of_several_is_all_that_is_done() -> None:
    told, latest = Told(), LatestTask(quiet_s=0.05)
    for name in "abc":
        latest.start(told.work(name))
    assert latest.settled(5)
    assert (told.begun, told.shown) == (["c"], ["c"])


def test_work_under_way_is_cancelled_by_newer_work() -> None:
    told, latest = Told(), LatestTask(quiet_s=0.0)
    latest.start(told.work("slow", seconds=60))
    assert told.is_begun.wait(5)
    latest.start(told.work("quick"))
    assert latest.settled(5)
    assert (told.begun, told.shown) == (["slow", "quick"], ["quick"])


def test_what_is_stopped_shows_nothing() -> None:
    told, latest = Told(), LatestTask(quiet_s=0.0)
    latest.start(told.work("slow", seconds=60))
    assert told.is_begun.wait(5)
    latest.stop()
    assert latest.settled(5)
    assert told.shown == []


def test_waiting_ends_in_time() -> None:
    told, latest = Told(), LatestTask(quiet_s=0.0)
    latest.start(told.work("slow", seconds=60))
    assert not latest.settled(0.05)
    assert not all_settled([LatestTask(), latest], 0.05)
    latest.stop()


def test_nothing_to_do_is_settled() -> None:
    assert LatestTask().settled(0)
