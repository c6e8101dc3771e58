"""`gamelens sandbox list` and `stop`: what runs on this machine, and an end to exactly what was named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.local import running_sandboxes as module
from gamelens.local.running_sandboxes import running_sandboxes, stop_sandbox
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import find_sandbox, running_sandbox, start_detached
from support.command_process import GAMELENS, run, run_here


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxInfo]:
    """A running sandbox over the folder `state`, of a command in this process."""
    with running_sandbox(tmp_path / "state") as ready:
        yield ready


def listed(state: Path) -> list[dict[str, Any]]:
    """Return the objects of `sandbox list --json` for *state*."""
    objects = json.loads(run_here("sandbox", "list", "--json").stdout)
    return [each for each in objects if each["state"] == str(state)]


def stop(state: Path) -> Result:
    """Run `sandbox stop` in this process."""
    return CliRunner().invoke(cli, ["sandbox", "stop", "--state", str(state)])


def test_a_running_sandbox_is_listed(sandbox: SandboxInfo, tmp_path: Path) -> None:
    """With its state, start, process, organisations and address; as JSON, and as a table with the same columns."""
    (found,) = listed(tmp_path / "state")
    assert sandbox.pid is not None
    began = psutil.Process(sandbox.pid).create_time()
    assert found == {
        "state": str(tmp_path / "state"),
        "since": f"{time.strftime('%Y-%m-%dT%H:%M', time.gmtime(began))}Z",
        "pid": sandbox.pid,
        "started_by": "command",
        "organisations": ["demo"],
        "metrics_url": sandbox.metrics_url,
    }
    header, *rows = run_here("sandbox", "list").stdout.splitlines()
    assert header.split() == list(found)
    assert [row.split() for row in rows if str(tmp_path) in row] == [
        [str(found["state"]), found["since"], str(sandbox.pid), "command", "demo", sandbox.metrics_url]
    ]


def test_the_named_sandbox_is_stopped_and_no_other(sandbox: SandboxInfo, tmp_path: Path) -> None:
    """`stop` waits for the end of one that `connect` left running, says which it was, and leaves the others."""
    other = start_detached(tmp_path / "other", idle_s=60)
    assert [found["started_by"] for found in listed(tmp_path / "other")] == ["connect"]
    result = run("sandbox", "stop", "--state", tmp_path / "other")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"stopped the sandbox over {tmp_path / 'other'}, which had been running since ")
    assert result.stdout.endswith(f" as process {other.pid}\n")
    assert listed(tmp_path / "other") == []
    assert not (tmp_path / "other" / "ready.json").exists()
    assert find_sandbox(tmp_path / "state") == sandbox
    again = run_here("sandbox", "stop", "--state", tmp_path / "other")
    assert (again.returncode, again.stdout) == (0, f"no sandbox is running over {tmp_path / 'other'}\n")


def test_without_a_state_it_is_that_of_connect(tmp_path: Path) -> None:
    """`sandbox stop` alone stops the sandbox that `connect` uses."""
    start_detached(tmp_path / "demo", idle_s=60)
    result = run_here("sandbox", "stop", env={"GAMELENS_STATE_DIR": str(tmp_path / "demo")})
    assert f"stopped the sandbox over {tmp_path / 'demo'}," in result.stdout
    assert listed(tmp_path / "demo") == []


@pytest.mark.wide
def test_a_process_that_has_got_the_id_of_a_sandbox_lives_on(sandbox: SandboxInfo, tmp_path: Path) -> None:
    """After a crash the ready file names a process that is another program by now, be it one with the same words."""
    assert sandbox.pid is not None
    ready = tmp_path / "state" / "ready.json"
    os.kill(sandbox.pid, signal.SIGKILL)
    lookalike = [
        sys.executable,
        "-c",
        "import time; time.sleep(60)",
        "sandbox",
        "up",
        "--state",
        str(tmp_path / "state"),
    ]
    with subprocess.Popen(lookalike) as process:
        ready.write_text(ready.read_text().replace(f'"pid":{sandbox.pid}', f'"pid":{process.pid}'))
        assert f'"pid":{process.pid}' in ready.read_text()
        result = stop(tmp_path / "state")
        is_running = process.poll() is None
        process.kill()
    assert (result.exit_code, result.stdout) == (0, f"no sandbox is running over {tmp_path / 'state'}\n")
    assert is_running
    assert listed(tmp_path / "state") == []


@pytest.mark.wide
def test_a_command_around_a_sandbox_is_not_listed_beside_it(tmp_path: Path) -> None:
    """`timeout 60 gamelens sandbox up ...` is one sandbox, and its own process is stopped."""
    ready = tmp_path / "ready.json"
    command = [*GAMELENS, "sandbox", "up", "--state", str(tmp_path / "state"), "--ready", str(ready)]
    with subprocess.Popen(["timeout", "60", *command]) as process:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.02)
        (found,) = listed(tmp_path / "state")
        stopped = stop_sandbox(tmp_path / "state")
    assert stopped is not None
    assert stopped.pid == found["pid"] != process.pid
    assert process.returncode == 0


@pytest.mark.wide
def test_a_sandbox_that_is_not_ready_is_listed_without_what_it_serves(sandbox: SandboxInfo, tmp_path: Path) -> None:
    """While a sandbox starts or stops there is no ready file, and so neither organisation nor address."""
    (tmp_path / "state" / "ready.json").unlink()
    (found,) = listed(tmp_path / "state")
    assert (found["pid"], found["organisations"], found["metrics_url"]) == (sandbox.pid, [], None)


@pytest.mark.wide
def test_a_sandbox_that_hangs_is_named(sandbox: SandboxInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not end has exit code 1, and the message has its process."""
    assert sandbox.pid is not None
    monkeypatch.setattr(module, "_STOP_S", 0.2)
    os.kill(sandbox.pid, signal.SIGSTOP)
    try:
        result = stop(tmp_path / "state")
        assert (result.exit_code, f"does not stop: end process {sandbox.pid}" in result.stderr) == (1, True)
        assert [each.pid for each in running_sandboxes() if each.state == tmp_path / "state"] == [sandbox.pid]
    finally:
        os.kill(sandbox.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--collector-port", "65536"), "65536 is not in the range 0<=x<=65535"),
        (("--nodes", "0"), "0 is not in the range 1<=x<=100"),
        (("--query-seconds", "0"), "0.0 is not in the range x>=0.001"),
        (("--keep-free", "a lot"), "'a lot' is not a valid integer range"),
        (("--repeats", "maybe"), "'maybe' is not one of 'drop', 'count'"),
        (("--validation", "some"), "some"),
        (("--config", "."), "File '.' is a directory"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_option_has_the_type_and_the_limits_of_its_field(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    """What `SandboxOptions` declares is refused by the command before anything starts."""
    done = run_here("sandbox", "up", "--state", str(tmp_path / "state"), *words)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "state").exists()
