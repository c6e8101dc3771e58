"""A sandbox that several processes use: it lives until the last of them has left, however they leave."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gamelens.local.running_sandboxes import running_sandboxes, stop_sandbox
from gamelens.local.sandbox_process import find_sandbox, start_detached

pytestmark = pytest.mark.slow

ENDS_WITHIN_S = 15.0
USER = """
import sys
from pathlib import Path
from gamelens.local import running_sandbox
with running_sandbox(Path(sys.argv[1])) as ready:
    print(ready.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Return a state directory, over which no sandbox runs after the test."""
    yield tmp_path / "state"
    stop_sandbox(tmp_path / "state")


@contextlib.contextmanager
def user(state: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that uses the sandbox over *state* as `gamelens lab` does, the leader of a process group."""
    command = [sys.executable, "-c", USER, str(state)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def sandbox_of(process: subprocess.Popen[str]) -> psutil.Process:
    """Return the process of the sandbox that a user uses, once it does."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, errors = process.communicate()
        pytest.fail(errors)
    return psutil.Process(int(line))


def leave(process: subprocess.Popen[str], way: str) -> None:
    """Let a user close the sandbox, interrupt it as Ctrl-C in its terminal does, or kill it, and wait for its end."""
    if way == "interrupt":
        os.killpg(process.pid, signal.SIGINT)
    elif way == "kill":
        process.kill()
    _, errors = process.communicate(timeout=60)  # closes its standard input
    if way == "close":
        assert (process.returncode, errors) == (0, "")


def has_ended(sandbox: psutil.Process, *, within_s: float) -> bool:
    """Wait for the end of a sandbox, and return whether it came *within_s*."""
    ends_at = time.monotonic() + within_s
    while sandbox.is_running() and sandbox.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("first_way", "second_way"), [("interrupt", "close"), ("close", "kill"), ("kill", "kill")])
def test_a_sandbox_lives_until_its_last_user_has_left(state: Path, first_way: str, second_way: str) -> None:
    """The one who started it may leave first, in any way; after the second no process is left."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(user(state))
        sandbox = sandbox_of(first)
        second = stack.enter_context(user(state))
        assert sandbox_of(second) == sandbox
        leave(first, first_way)
        time.sleep(2.5)  # the sandbox looks for users every second
        ready = find_sandbox(state)
        assert ready is not None
        assert ready.pid == sandbox.pid
        leave(second, second_way)
        assert has_ended(sandbox, within_s=ENDS_WITHIN_S)
    assert [each for each in running_sandboxes() if each.state == state] == []
    assert not (state / "ready.json").exists()


@pytest.mark.wide
def test_the_starter_stops_a_sandbox_that_others_have_left(state: Path) -> None:
    """It returns only when the sandbox has ended, so that the state directory is free."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(user(state))
        sandbox = sandbox_of(first)
        second = stack.enter_context(user(state))
        sandbox_of(second)
        leave(second, "kill")
        leave(first, "close")
        assert has_ended(sandbox, within_s=0)
    assert list((state / "users").iterdir()) == []


def test_users_that_start_at_once_share_a_sandbox(state: Path) -> None:
    """Only one starts it; none is refused because the state directory is locked. It ends when all have closed it."""
    with contextlib.ExitStack() as stack:
        users = [stack.enter_context(user(state)) for _ in range(3)]
        (sandbox,) = {sandbox_of(each) for each in users}
        for each in users:
            leave(each, "close")
        assert has_ended(sandbox, within_s=ENDS_WITHIN_S)


@pytest.mark.wide
def test_users_leave_a_sandbox_that_connect_started(state: Path) -> None:
    """It answers until it was without a request for long enough."""
    ready = start_detached(state, idle_s=60)
    with user(state) as process:
        assert sandbox_of(process).pid == ready.pid
        leave(process, "close")
    time.sleep(2.5)
    assert find_sandbox(state) == ready


@pytest.mark.wide
def test_a_sandbox_in_use_does_not_stop_when_it_is_idle(state: Path) -> None:
    """One that would stop after 2 s without a request stops only when its user has left."""
    start_detached(state, idle_s=2)
    with user(state) as process:
        sandbox = sandbox_of(process)
        assert not has_ended(sandbox, within_s=5)
        leave(process, "close")
        assert has_ended(sandbox, within_s=ENDS_WITHIN_S)
