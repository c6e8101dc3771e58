"""contract: a crash loses nothing acknowledged. A real process, really killed."""

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

from conftest import NOW, Stage, event
from gamelens.sandbox.processing.verification import verify
from gamelens.wire.signing import sign

pytestmark = pytest.mark.slow


def started(state: Path, ready: Path) -> subprocess.Popen[bytes]:
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
    game = ready["organisations"][0]["studios"][0]["games"][0]
    body = json.dumps(events).encode()
    signed = {"Authorization": sign(body, secret_key=game["secret_key"])}
    return http.post(f"{ready['collector_url']}/v2/{game['game_key']}/events", content=body, headers=signed).status_code


def test_what_was_acknowledged_outlives_the_process(tmp_path: Path) -> None:
    """contract: a 200 or 400 is sent only after its good events are on disk."""
    state, ready_file = tmp_path / "state", tmp_path / "ready.json"
    process = started(state, ready_file)
    try:
        with httpx.Client() as http:
            ready = json.loads(ready_file.read_text())
            told = [submit(http, ready, [event(user_id=f"u{number}"), None]) for number in range(10)]
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert told == [400] * 10
    process = started(state, ready_file)
    try:
        with httpx.Client(timeout=30) as http:
            again = json.loads(ready_file.read_text())
            http.post(f"{again['console_url']}/process").raise_for_status()
            summary = http.get(f"{again['console_url']}/summary").json()
    finally:
        process.terminate()
        code = process.wait(30)
    assert (summary["accepted"], summary["processed"], summary["pending"]) == (10, 10, 0)
    assert again["organisations"] == ready["organisations"]
    assert code == 0


def late_events(random: Random, count: int) -> list[Any]:
    """Events of the last forty days, in any order."""
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
    """architecture, Decisions: the manifest is committed in one step; wherever it is killed, the lake says no more."""
    random, stage = Random(8), make_stage()
    state = stage.sandbox.options.state
    stage.sandbox.close()
    command = [sys.executable, "-m", "gamelens", "sandbox", "process", "--state", str(state)]

    def receive() -> None:
        again = Stage(state)
        assert all(again.submit(late_events(random, 400)).status_code == 200 for _ in range(5))
        again.sandbox.close()

    receive()
    began = time.monotonic()
    subprocess.run(command, check=True)
    whole_s = time.monotonic() - began
    processed, came_to_its_end = verify(state, days=0).events, []
    for number in range(12):
        receive()
        process = subprocess.Popen(command)
        time.sleep(whole_s)
        process.kill()
        process.wait()
        verified = verify(state, days=3, seed=number)
        assert verified.differences == []
        came_to_its_end.append(verified.events > processed)
        processed = verified.events
        whole_s *= 0.85 if came_to_its_end[-1] else 1.2  # the commit is what to be killed at
    subprocess.run(command, check=True)
    verified = verify(state, days=100)
    assert verified.differences == []
    assert verified.events > processed or came_to_its_end[-1]
    assert set(came_to_its_end) == {True, False}
