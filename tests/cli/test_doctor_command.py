"""`gamelens doctor`: its checks, exit codes and deadline, without printing the key."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from support.command_process import PlayedSandbox, RunCommand

NOBODY = {"GAMELENS_API_KEY": None, "GAMELENS_METRICS_URL": None}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def marks(result: Result) -> dict[str, str]:
    """Return the mark of each check, by its subject."""
    return {check["about"]: check["mark"] for check in json.loads(result.stdout)}


def test_all_is_well(run_command: RunCommand) -> None:
    """With working services all fourteen checks are ok and the exit code is 0."""
    result = run_command("doctor", "--json")
    assert result.exit_code == 0, result.output
    assert marks(result) == dict.fromkeys(
        (
            *("versions", "settings", "keyring", "cache", "service", "key"),
            *("clock", "rate", "available", "metrics", "dimensions"),
            *("collector", "collector keys", "collector clock"),
        ),
        "ok",
    )


def test_one_line_each_with_a_mark(run_command: RunCommand) -> None:
    """Each check is one line that starts with its mark."""
    lines = run_command("doctor").stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert len(lines) == 14


def test_a_wrong_key_is_a_problem_with_a_next_step_and_is_not_shown(run_command: RunCommand) -> None:
    """A wrong key is a problem with a next step and exit code 1, and is not printed."""
    result = run_command("doctor", GAMELENS_API_KEY="sesame-of-nobody")
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("problem")]
    assert "key" in line
    assert "Next: copy it again" in line
    assert result.exit_code == 1
    assert "sesame" not in result.output


def test_an_unreachable_address_is_a_problem(run_command: RunCommand) -> None:
    """An unreachable service is a problem with exit code 1."""
    result = run_command("doctor", "--json", GAMELENS_METRICS_URL="http://127.0.0.1:9")
    assert (result.exit_code, marks(result)["service"]) == (1, "problem")


def test_a_service_that_never_answers_ends_at_the_deadline(run_command: RunCommand, silent: str) -> None:
    """A service that never answers is a problem as soon as --deadline is over."""
    began = time.monotonic()
    result = run_command("doctor", "--deadline", 1, "--json", GAMELENS_METRICS_URL=silent)
    assert (result.exit_code, marks(result)["service"]) == (1, "problem")
    assert time.monotonic() - began < 20


def test_a_malformed_address_is_a_problem(run_command: RunCommand) -> None:
    """A malformed service URL is a problem of the settings."""
    result = run_command("doctor", "--json", GAMELENS_METRICS_URL="metrics.example")
    assert (result.exit_code, marks(result)["settings"]) == (1, "problem")


def test_without_a_key_no_sandbox_is_started(run_command: RunCommand, tmp_path: Path) -> None:
    """Without a key `doctor` names the local sandbox, but does not start it."""
    result = run_command("doctor", **NOBODY)
    assert result.exit_code == 0
    assert "would use the local sandbox, which is not running" in result.stdout
    assert not (tmp_path / "demo").exists()


def test_without_a_key_the_sandbox_that_runs_is_checked(run_command: RunCommand, sandbox: PlayedSandbox) -> None:
    """Without a key `doctor` checks the local sandbox that runs."""
    result = run_command("doctor", "--json", **NOBODY, GAMELENS_STATE_DIR=str(sandbox.folder / "state"))
    assert result.exit_code == 0, result.output
    assert marks(result)["key"] == "ok"
    assert "which is running at" in result.stdout


def test_a_broken_config_file_is_a_problem(run_command: RunCommand, tmp_path: Path) -> None:
    """A malformed config file is a problem, and its content is not printed."""
    (tmp_path / "config" / "gamelens").mkdir(parents=True)
    (tmp_path / "config" / "gamelens" / "config.toml").write_text('api_key = "sesame" "twice"')
    result = run_command("doctor", **NOBODY)
    assert (result.exit_code, "sesame" in result.output) == (1, False)


def test_a_wrong_secret_key_is_a_problem_and_is_not_shown(run_command: RunCommand) -> None:
    """The collector's 401 is a problem with exit code 1; the metrics service is fine."""
    result = run_command("doctor", "--json", GAMELENS_SECRET_KEY="sesame-of-nobody")
    assert (result.exit_code, "sesame" in result.output) == (1, False)
    assert (marks(result)["collector keys"], marks(result)["key"]) == ("problem", "ok")


def test_a_collector_without_a_secret_key_is_a_warning(run_command: RunCommand) -> None:
    """The setting that is missing is named, and nothing is sent to the collector."""
    result = run_command("doctor", GAMELENS_SECRET_KEY=None)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("warning")]
    assert "collector_url and game_key without secret_key" in line
    assert "Next: set GAMELENS_SECRET_KEY" in line
    assert result.exit_code == 0


def test_without_a_collector_there_is_nothing_to_check(run_command: RunCommand) -> None:
    """Most analysts submit no events."""
    unset = dict.fromkeys(("GAMELENS_COLLECTOR_URL", "GAMELENS_GAME_KEY", "GAMELENS_SECRET_KEY"))
    result = run_command("doctor", "--json", **unset)
    assert (result.exit_code, marks(result)["collector"]) == (0, "ok")


def test_a_silent_metrics_service_leaves_time_for_the_collector(run_command: RunCommand, silent: str) -> None:
    """Each of the two has half of --deadline."""
    result = run_command("doctor", "--deadline", 2, "--json", GAMELENS_METRICS_URL=silent)
    assert (marks(result)["service"], marks(result)["collector keys"]) == ("problem", "ok")
