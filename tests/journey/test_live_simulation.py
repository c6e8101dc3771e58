"""Live simulation: a population that plays in accelerated time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_population import play_live
from gamelens.local.sandbox_process import call_control_api, running_sandbox
from gamelens.simulator import load_scenario

pytestmark = pytest.mark.slow


def test_live_events_have_the_time_of_their_submission(tmp_path: Path) -> None:
    """Two days in a few seconds: all events arrive, with the time of their submission."""
    began = int(time.time())
    with running_sandbox(tmp_path / "state") as ready:
        sent = play_live(ready, load_scenario("small", players=200), speed=50_000, days=2)
        summary = call_control_api(ready, ControlApi.summary)
        newest = httpx.get(f"{ready.console_url}/events?status=accepted&limit=10000").json()
    assert sent > 100
    assert (summary.accepted, summary.rejected) == (sent, 0)
    times = [entry["event"]["client_ts"] for entry in newest]
    assert began <= min(times) <= max(times) <= time.time()
    assert max(times) > min(times)


@pytest.mark.wide
def test_ctrl_c_ends_a_live_simulation(tmp_path: Path) -> None:
    """Ctrl-C ends the command with exit code 0 and the number of events sent."""
    with running_sandbox(tmp_path / "state") as ready:
        file = tmp_path / "state" / "ready.json"
        command = ["simulate", "--scenario=small", "--players=300", "--live", "--speed=20000", f"--ready={file}"]
        with subprocess.Popen(
            [sys.executable, "-m", "gamelens", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert process.stderr
            lines = [process.stderr.readline(), process.stderr.readline()]
            os.kill(process.pid, signal.SIGINT)
            lines.append(process.stderr.read().strip())
        assert process.returncode == 0
        assert "Ctrl-C" in lines[0]
        assert "events sent" in lines[1]
        assert lines[2].endswith("events sent")
        assert ready.console_url in lines[0]
