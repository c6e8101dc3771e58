"""Processing in a process of its own gives the same lake, says why it could not, and ends with its server."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from conftest import NOW, Stage, event
from gamelens.client.connection.control_api import ControlApi
from gamelens.errors import Refused, Unreachable
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import call_console, process_at, running_sandbox
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.processing.worker import process_in_worker
from gamelens.sandbox.state_directory import lock_state_directory
from gamelens.wire.signing import sign
from sandbox.conftest import number

pytestmark = pytest.mark.slow

STARTS_WITHIN_S = 30
FILLING = 25_000


def beside(state: Path) -> None:
    clock = Clock()
    clock.freeze(NOW)
    with lock_state_directory(state) as lock:
        asyncio.run(process_in_worker(state, clock, lock=lock))


def test_a_worker_makes_the_same_lake(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    for user in range(30):
        stage.submit([event(user_id=f"u{user}"), event(user_id=f"u{user}", category="session_end", length=user)])
    stage.sandbox.close()
    beside(stage.sandbox.options.state)
    again = make_stage()
    assert (number(again), number(again, "user_unique")) == (60, 30)
    assert again.sandbox.lake.last_run().processed_ms == NOW.timestamp() * 1000


def test_what_a_worker_cannot_do_is_refused_with_its_reason(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    stage.submit([event()])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    (state / "scratch").write_text("in the way")
    with pytest.raises(Refused, match=r"processing stopped, nothing was changed: .*scratch"):
        beside(state)
    assert make_stage().sandbox.summary()["pending"] == 1


def fill(ready: SandboxInfo, *, number: int) -> None:
    """More events than a server processes by itself; others for each *number*."""
    game = ready.organisations[0].games[0]
    with httpx.Client(base_url=ready.collector_url) as http:
        for start in range(number * FILLING, (number + 1) * FILLING, 1000):
            events = [event(event_uuid=str(UUID(int=start + place))) for place in range(1000)]
            body = gzip.compress(json.dumps(events).encode(), 1)
            headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
            http.post(f"/v2/{game.game_key}/events", content=body, headers=headers).raise_for_status()


def worker_of(pid: int) -> int:
    """The process id of the worker that the server *pid* has started."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-P", str(pid), "-f", "worker"], capture_output=True, text=True).stdout.split()
        if found:
            return int(found[0])
        time.sleep(0.005)
    raise AssertionError("no worker was started")


def test_a_worker_ends_with_its_server_and_nothing_is_lost(tmp_path: Path) -> None:
    """contract, Collector: a crash loses nothing acknowledged, at whatever step processing was."""
    state = tmp_path / "state"
    waits_s = (0.0, 0.3, 0.6, 0.9)
    for place, wait_s in enumerate(waits_s):
        with running_sandbox(state) as ready, ThreadPoolExecutor() as asking:
            fill(ready, number=place)
            asked = asking.submit(call_console, ready, ControlApi.process)
            worker = worker_of(ready.pid)
            time.sleep(wait_s)
            os.kill(ready.pid, signal.SIGKILL)
            assert isinstance(asked.exception(), Unreachable | None)
        deadline = time.monotonic() + 5
        while Path(f"/proc/{worker}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with running_sandbox(state) as ready:
        process_at(state)
        summary = call_console(ready, ControlApi.summary)
    sent = FILLING * len(waits_s)
    assert (summary.accepted, summary.processed, summary.duplicate) == (sent, sent, 0)
