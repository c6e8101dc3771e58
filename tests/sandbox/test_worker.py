"""Processing in a worker process: the same lake, errors with reasons, no orphans."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import httpx
import msgspec
import pytest

from gamelens.client.connection.control_api import ControlApi, ProcessingProgress
from gamelens.errors import Refused, Unreachable
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import call_control_api, process_at, running_sandbox
from gamelens.sandbox.processing.pipeline import Report, RunOrder, RunProgress
from gamelens.sandbox.processing.worker import carry_out_in_worker
from gamelens.sandbox.state.state_directory import lock_state_directory
from gamelens.sandbox.storage.inbox import open_store
from gamelens.wire.signing import sign
from support.game_events import NOW, event
from support.sandbox_stage import Stage, metric_value

pytestmark = pytest.mark.slow

STARTS_WITHIN_S = 30
BATCH_EVENTS = 21_000


def order_of(state: Path) -> RunOrder:
    """Return the order to process all batches of the first organisation."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        ((newest,),) = store.execute("SELECT max(id) FROM batches")
    return RunOrder("acme", newest, round(NOW.timestamp() * 1000))


def process_in_own_process(state: Path, report: Report | None = None) -> None:
    """Run the processing of *state* in a worker process, at the time `NOW`."""
    with lock_state_directory(state) as lock:
        asyncio.run(carry_out_in_worker(state, order_of(state), lock=lock, report=report))


RUN = """
import sys
from pathlib import Path
import msgspec
from gamelens.sandbox.processing.pipeline import RunOrder, process

process(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=RunOrder))
print("pandas" in sys.modules)
"""


def test_a_run_imports_no_pandas(make_stage: Callable[..., Stage]) -> None:
    """Its import takes as long as the rest of a small run; some functions of Arrow do it."""
    stage = make_stage()
    for user in ("u1", "ädmiñ"):
        stage.submit([event(user_id=user), event(user_id=user, category="session_end", length=3)])
    stage.process()
    stage.submit([event(user_id="ädmiñ"), event(category="business", event_id="a:b", amount=1, currency="USD")])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    command = [sys.executable, "-c", RUN, str(state), msgspec.json.encode(order_of(state)).decode()]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def test_a_worker_makes_the_same_lake_and_reports_its_progress(make_stage: Callable[..., Stage]) -> None:
    """A worker process writes a lake with the same answers, at the given time, and reports its progress."""
    stage = make_stage()
    for user in range(30):
        stage.submit([event(user_id=f"u{user}"), event(user_id=f"u{user}", category="session_end", length=user)])
    stage.sandbox.close()
    reports = list[RunProgress]()
    process_in_own_process(stage.sandbox.options.state, reports.append)
    again = make_stage()
    assert (metric_value(again), metric_value(again, "user_unique")) == (60, 30)
    assert again.sandbox.lake.last_run().processed_ms == NOW.timestamp() * 1000
    last = reports[-1]
    assert (last.events, last.decoded, last.committed, last.rest_s) == (60, 60, 60, 0.0)
    assert last.events_per_s == pytest.approx(60 / last.seconds)


def test_a_stopped_sandbox_reports_its_progress(make_stage: Callable[..., Stage]) -> None:
    """Processing of a sandbox that does not run reports in the form of the control API's summary."""
    stage = make_stage()
    stage.submit([event(), event()])
    assert stage.sandbox.summary()["processing"] is None
    stage.sandbox.close()
    reports: list[ProcessingProgress] = []
    process_at(stage.sandbox.options.state, report=reports.append)
    assert (reports[-1].events, reports[-1].committed, reports[-1].rest_s) == (2, 2, 0.0)


def test_a_failure_of_a_worker_is_refused_with_its_reason(make_stage: Callable[..., Stage]) -> None:
    """A failed worker raises `Refused` with its reason, and changes nothing."""
    stage = make_stage()
    stage.submit([event()])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    (state / "scratch").write_text("in the way")
    with pytest.raises(Refused, match=r"processing stopped; nothing was changed: .*scratch"):
        process_in_own_process(state)
    assert make_stage().sandbox.summary()["pending"] == 1


def send_events(ready: SandboxInfo, *, number: int) -> None:
    """Send more events than a server processes by itself, others for each *number*."""
    game = ready.organisations[0].games[0]
    with httpx.Client(base_url=ready.collector_url) as http:
        for start in range(number * BATCH_EVENTS, (number + 1) * BATCH_EVENTS, 1000):
            events = [event(event_uuid=str(UUID(int=start + place))) for place in range(1000)]
            body = gzip.compress(json.dumps(events).encode(), 1)
            headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
            http.post(f"/v2/{game.game_key}/events", content=body, headers=headers).raise_for_status()


def worker_of(pid: int) -> int:
    """Return the process id of the worker that the server *pid* has started."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        command = ["pgrep", "-P", str(pid), "-f", "worker"]
        pids = subprocess.run(command, capture_output=True, text=True).stdout.split()
        if pids:
            return int(pids[0])
        time.sleep(0.005)
    raise AssertionError("no worker was started")


@pytest.mark.wide
def test_a_worker_ends_with_its_server_and_nothing_is_lost(tmp_path: Path) -> None:
    """A killed server ends its worker, and all events are processed later, once.

    Wire 1.7, Submitting events.
    """
    state = tmp_path / "state"
    waits_s = (0.0, 0.5)
    for place, wait_s in enumerate(waits_s):
        with running_sandbox(state) as ready, ThreadPoolExecutor() as pool:
            send_events(ready, number=place)
            processing = pool.submit(call_control_api, ready, ControlApi.process)
            assert ready.pid is not None
            worker = worker_of(ready.pid)
            time.sleep(wait_s)
            os.kill(ready.pid, signal.SIGKILL)
            assert isinstance(processing.exception(), Unreachable | None)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while Path(f"/proc/{worker}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with running_sandbox(state) as ready:
        process_at(state)
        summary = call_control_api(ready, ControlApi.summary)
    sent_events = BATCH_EVENTS * len(waits_s)
    assert (summary.accepted, summary.processed, summary.duplicate) == (sent_events, sent_events, 0)
