"""The bar for work that lasts (analyst-api, promise 13)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator

import pytest
from tqdm import tqdm

from gamelens.client.query.progress import SHOWN_FROM_S, Bar, Progress, expected_s

Shown = Callable[[], str]


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress() -> Progress:
    return Progress()


@pytest.fixture
def bar(progress: Progress, clock: Clock) -> Iterator[Bar]:
    made = Bar(progress, wanted=True, clock=clock)
    yield made
    made.close()


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    """What has been drawn since the last look."""

    def read() -> str:
        written = capsys.readouterr()
        assert written.out == ""
        return written.err

    return read


@pytest.mark.parametrize(("requests", "seconds"), [(0, 0.0), (1, 0.0), (5, 0.0), (6, 0.2), (15, 2.0), (100, 19.0)])
def test_five_requests_start_at_once_and_five_in_every_second_after(requests: int, seconds: float) -> None:
    """Metrics, Limits."""
    assert expected_s(requests) == pytest.approx(seconds)


def test_what_is_expected_adds_up(progress: Progress) -> None:
    progress.expect(5)
    progress.expect(10)
    assert (progress.total, progress.expected_s) == (15, pytest.approx(SHOWN_FROM_S))


def test_short_work_has_no_bar(bar: Bar, progress: Progress, clock: Clock, shown: Shown) -> None:
    progress.expect(14)
    bar.draw()
    clock.now_s += SHOWN_FROM_S - 0.01
    bar.draw()
    assert shown() == ""


def test_work_that_is_expected_to_last_has_one_at_once(bar: Bar, progress: Progress, shown: Shown) -> None:
    progress.expect(15)
    bar.draw()
    assert "gamelens" in (text := shown())
    assert "0/15" in text


def test_work_that_lasts_longer_than_expected_gets_one(
    bar: Bar, progress: Progress, clock: Clock, shown: Shown
) -> None:
    progress.expect(1)
    clock.now_s += SHOWN_FROM_S
    bar.draw()
    assert "0/1" in shown()


def test_before_anything_is_known_there_is_nothing_to_show(bar: Bar, clock: Clock, shown: Shown) -> None:
    clock.now_s += 60
    bar.draw()
    assert shown() == ""


def test_waiting_for_a_place_is_shown_in_words(bar: Bar, progress: Progress, clock: Clock, shown: Shown) -> None:
    progress.tally.note = "waiting for the data of today"
    clock.now_s += SHOWN_FROM_S
    bar.draw()
    assert "waiting for the data of today" in shown()


def test_it_shows_how_far_the_work_is(bar: Bar, progress: Progress, shown: Shown) -> None:
    progress.expect(20)
    bar.draw()
    shown()
    progress.done = 7
    progress.expect(5)
    bar.draw()
    assert "7/25" in shown()


def test_a_bar_that_is_not_wanted_is_never_drawn(progress: Progress, clock: Clock, shown: Shown) -> None:
    bar = Bar(progress, wanted=False, clock=clock)
    progress.expect(1000)
    clock.now_s += 1000
    bar.draw()
    bar.close()
    assert shown() == ""


def test_closed_it_is_gone(progress: Progress, clock: Clock, shown: Shown) -> None:
    before = len(tqdm._instances)
    bar = Bar(progress, wanted=True, clock=clock)
    progress.expect(15)
    bar.draw()
    shown()
    bar.close()
    bar.close()
    assert len(tqdm._instances) == before
    assert shown().strip("\r\n ") == ""


def test_closed_before_it_was_drawn_it_leaves_no_trace(progress: Progress, shown: Shown) -> None:
    Bar(progress, wanted=True).close()
    assert shown() == ""


LONG = """
from gamelens.client.query.progress import Bar, Progress
progress = Progress()
bar = Bar(progress, wanted=None)
progress.expect(50)
bar.draw()
bar.close()
"""


def on_a_terminal(**environment: str) -> str:
    """What a long question writes to the terminal of somebody who did not say whether a bar is wanted."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    known = {name: value for name, value in os.environ.items() if name != "CI"}
    with subprocess.Popen([sys.executable, "-c", LONG], stderr=theirs, env=known | environment) as process:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody holds the other end any more
        return b""


def test_somebody_at_a_terminal_sees_it() -> None:
    assert "0/50" in on_a_terminal()


def test_nobody_watches_in_ci() -> None:
    assert on_a_terminal(CI="true") == ""


def test_nobody_watches_where_there_is_no_terminal() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == (b"", b"")
