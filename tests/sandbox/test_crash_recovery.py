"""Killed processes: acknowledged events stay, and a run commits all or nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from gamelens.sandbox.maintenance.table_verification import verify
from gamelens.wire.signing import sign
from support.game_events import NOW, event
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow


def start_process(state: Path, ready: Path) -> subprocess.Popen[bytes]:
    """Start a sandbox process and wait until it serves."""
    ready.unlink(missing_ok=True)
    up = ["sandbox", "up", "--state", str(state), "--ready", str(ready)]
    process = subprocess.Popen([sys.executable, "-m", "gamelens", *up])
    deadline = time.monotonic() + 30
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def submit(http: httpx.Client, ready: dict[str, Any], events: list[Any]) -> int:
    """Submit *events* for the first game, and return the status."""
    game = ready["organisations"][0]["studios"][0]["games"][0]
    body = json.dumps(events).encode()
    headers = {"Authorization": sign(body, secret_key=game["secret_key"])}
    return http.post(
        f"{ready['collector_url']}/v2/{game['game_key']}/events", content=body, headers=headers
    ).status_code


def test_what_was_acknowledged_outlives_the_process(tmp_path: Path) -> None:
    """Events acknowledged before SIGKILL are processed after a restart, once.

    Wire 1.7, Submitting events.
    """
    state, ready_file = tmp_path / "state", tmp_path / "ready.json"
    process = start_process(state, ready_file)
    try:
        with httpx.Client() as http:
            ready = json.loads(ready_file.read_text())
            statuses = [submit(http, ready, [event(user_id=f"u{number}"), None]) for number in range(10)]
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert statuses == [400] * 10
    process = start_process(state, ready_file)
    try:
        with httpx.Client(timeout=30) as http:
            assert (state / "ready.json").stat().st_mtime_ns <= ready_file.stat().st_mtime_ns
            restarted = json.loads(ready_file.read_text())
            http.post(f"{restarted['console_url']}/process").raise_for_status()
            summary = http.get(f"{restarted['console_url']}/summary").json()
    finally:
        process.terminate()
        code = process.wait(30)
    assert (summary["accepted"], summary["processed"], summary["pending"]) == (10, 10, 0)
    assert restarted["organisations"] == ready["organisations"]
    assert code == 0


def late_events(random: Random, count: int) -> list[Any]:
    """Return *count* events of the last forty days in random order."""
    now_s = int(NOW.timestamp())
    return [
        event(
            user_id=f"u{random.randrange(300)}",
            session_id=f"s{random.randrange(900)}",
            client_ts=now_s - random.randrange(40 * 86_400),
            event_uuid=f"e{random.randrange(10**5)}",
        )
        for _ in range(count)
    ]


def test_processing_that_is_killed_has_done_all_or_nothing(make_stage: Callable[..., Stage]) -> None:
    """A run that is killed has committed all its tables or none of them.

    The delay before the kill follows the outcome, so that kills happen around the commit.
    """
    random, stage = Random(8), make_stage()
    state = stage.sandbox.options.state
    stage.sandbox.close()
    command = [sys.executable, "-m", "gamelens", "sandbox", "process", "--state", str(state)]

    def receive_events() -> None:
        restarted = Stage(state)
        assert all(restarted.submit(late_events(random, 400)).status_code == 200 for _ in range(5))
        restarted.sandbox.close()

    receive_events()
    began = time.monotonic()
    subprocess.run(command, check=True)
    whole_s = time.monotonic() - began
    processed, has_committed = verify(state, days=0).events, []
    for number in range(12):
        receive_events()
        process = subprocess.Popen(command)
        time.sleep(whole_s)
        process.kill()
        process.wait()
        verified = verify(state, days=3, seed=number)
        assert verified.differences == []
        has_committed.append(verified.events > processed)
        processed = verified.events
        whole_s *= 0.85 if has_committed[-1] else 1.2  # towards the commit
    subprocess.run(command, check=True)
    verified = verify(state, days=100)
    assert verified.differences == []
    assert verified.events > processed or has_committed[-1]
    assert set(has_committed) == {True, False}
