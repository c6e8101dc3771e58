"""The progress bar of a query that lasts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import types
from collections.abc import Callable, Iterator

import pytest
from tqdm import tqdm

from gamelens.client.query.progress import SHOWN_FROM_S, Bar, Progress, expected_s, is_progress_shown
from support.notebook_shell import notebook_shell

Shown = Callable[[], str]


class Clock:
    """A clock in seconds, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()


@pytest.fixture
def progress() -> Progress:
    """Return the progress of a query without requests."""
    return Progress()


@pytest.fixture
def bar(progress: Progress, clock: Clock) -> Iterator[Bar]:
    """Return a bar that is wanted, closed after the test."""
    drawn = Bar(progress, wanted=True, clock=clock)
    yield drawn
    drawn.close()


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    """Return a function that returns the text drawn since its last call."""

    def read() -> str:
        written = capsys.readouterr()
        assert written.out == ""
        return written.err

    return read


@pytest.mark.parametrize(("requests", "seconds"), [(0, 0.0), (1, 0.0), (5, 0.0), (6, 0.2), (15, 2.0), (100, 19.0)])
def test_five_requests_start_at_once_and_five_in_every_second_after(requests: int, seconds: float) -> None:
    """The expected time follows from 5 starts per second (Wire 2.3, Rate limits)."""
    assert expected_s(requests) == pytest.approx(seconds)


def test_expected_requests_add_up(progress: Progress) -> None:
    """Several announcements add up to the total number of requests."""
    progress.expect(5)
    progress.expect(10)
    assert progress.total == 15
    assert progress.expected_s == pytest.approx(SHOWN_FROM_S)


def test_short_work_has_no_bar(bar: Bar, progress: Progress, clock: Clock, shown: Shown) -> None:
    """A query expected to last less than `SHOWN_FROM_S` draws nothing."""
    progress.expect(14)
    bar.draw()
    clock.now_s += SHOWN_FROM_S - 0.01
    bar.draw()
    assert shown() == ""


def test_long_work_has_a_bar_at_once(bar: Bar, progress: Progress, shown: Shown) -> None:
    """A query expected to last draws its bar immediately."""
    progress.expect(15)
    bar.draw()
    assert "gamelens" in (text := shown())
    assert "0/15" in text


def test_work_that_lasts_longer_than_expected_gets_a_bar(
    bar: Bar, progress: Progress, clock: Clock, shown: Shown
) -> None:
    """A query that lasts longer than expected draws its bar after `SHOWN_FROM_S`."""
    progress.expect(1)
    clock.now_s += SHOWN_FROM_S
    bar.draw()
    assert "0/1" in shown()


def test_a_query_without_known_requests_has_no_bar(bar: Bar, clock: Clock, shown: Shown) -> None:
    """Without an expected number of requests nothing is drawn."""
    clock.now_s += 60
    bar.draw()
    assert shown() == ""


def test_a_reason_to_wait_is_shown(bar: Bar, progress: Progress, clock: Clock, shown: Shown) -> None:
    """The reason for a wait is drawn as text."""
    progress.tally.note = "waiting for the data of today"
    clock.now_s += SHOWN_FROM_S
    bar.draw()
    assert "waiting for the data of today" in shown()


def test_the_bar_shows_done_and_total_requests(bar: Bar, progress: Progress, shown: Shown) -> None:
    """The bar shows requests done of all, as both grow."""
    progress.expect(20)
    bar.draw()
    shown()
    progress.done = 7
    progress.expect(5)
    bar.draw()
    assert "7/25" in shown()


def test_a_bar_that_is_not_wanted_is_never_drawn(progress: Progress, clock: Clock, shown: Shown) -> None:
    """With `wanted=False` nothing is drawn, however long the query lasts."""
    bar = Bar(progress, wanted=False, clock=clock)
    progress.expect(1000)
    clock.now_s += 1000
    bar.draw()
    bar.close()
    assert shown() == ""


def test_a_closed_bar_is_removed(progress: Progress, clock: Clock, shown: Shown) -> None:
    """A closed bar is erased, and a second `close` does nothing."""
    before = len(tqdm._instances)  # type: ignore[attr-defined]
    bar = Bar(progress, wanted=True, clock=clock)
    progress.expect(15)
    bar.draw()
    shown()
    bar.close()
    bar.close()
    assert len(tqdm._instances) == before  # type: ignore[attr-defined]
    assert shown().strip("\r\n ") == ""


def test_a_bar_closed_before_it_was_drawn_leaves_no_trace(progress: Progress, shown: Shown) -> None:
    """Closing a bar that was never drawn writes nothing."""
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


def output_on_a_terminal(**environment: str) -> str:
    """Return what a long query writes to a terminal if no choice is made about the bar."""
    reading_end, writing_end = pty.openpty()
    termios.tcsetwinsize(reading_end, (24, 80))
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    with subprocess.Popen([sys.executable, "-c", LONG], stderr=writing_end, env=inherited | environment) as process:
        os.close(writing_end)
        written = b""
        while chunk := _read(reading_end):
            written += chunk
    os.close(reading_end)
    assert process.returncode == 0, written
    return written.decode()


def _read(terminal: int) -> bytes:
    """Return bytes written to a terminal, empty at its end."""
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_a_terminal_shows_the_bar_by_default() -> None:
    """By default a bar is drawn on a terminal."""
    assert "0/50" in output_on_a_terminal()


def test_ci_shows_no_bar_by_default() -> None:
    """By default no bar is drawn where `CI` is set."""
    assert output_on_a_terminal(CI="true") == ""


def test_a_pipe_shows_no_bar_by_default() -> None:
    """By default no bar is drawn where standard error is not a terminal."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_kernel_shows_the_bar_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel has a shell that says so: a process that only imported its package is none."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    with notebook_shell() as shell:
        assert not is_progress_shown(None)
        shell.kernel = object()
        assert is_progress_shown(None)


class NoTerminal:
    """A stream of a window, which has no `isatty`."""

    def write(self, text: str) -> int:
        """Take the text."""
        return len(text)


@pytest.mark.parametrize("stream", [None, NoTerminal(), open(os.devnull)], ids=["none", "no isatty", "closed"])  # noqa: SIM115
def test_a_process_without_a_terminal_has_no_bar(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    """As a service, or a program with windows: there is no standard error, or one that is no file."""
    if hasattr(stream, "close"):
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delenv("CI", raising=False)
    assert not is_progress_shown(None)
