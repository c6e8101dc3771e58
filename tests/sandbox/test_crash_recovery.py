"""A killed sandbox: acknowledged events stay. Killed runs of processing are in `test_killed_runs`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import httpx
import pytest

from support.game_events import event
from support.killable_sandbox import start_process, submit

pytestmark = pytest.mark.slow


@pytest.mark.disk
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
