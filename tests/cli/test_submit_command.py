"""`gamelens submit`: what it sends, what it prints, and its exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from support.command_process import PlayedSandbox, RunCommand, run
from support.game_events import event

NOWHERE = {"GAMELENS_COLLECTOR_URL": None, "GAMELENS_GAME_KEY": None, "GAMELENS_SECRET_KEY": None}
BAD = event(category="business", event_id="gems:small", amount=499, currency="usd", transaction_num=1)


def write(folder: Path, *events: Any, name: str = "events.jsonl") -> Path:
    """Write *events* as JSON lines and return the file."""
    file = folder / name
    file.write_text("\n".join(map(json.dumps, events)))
    return file


def accepted(sandbox: PlayedSandbox) -> int:
    """Return how many events the sandbox has accepted."""
    from gamelens.local.sandbox_info import read_sandbox_info
    from gamelens.local.sandbox_process import call_control_api

    ready = read_sandbox_info(sandbox.folder / "state" / "ready.json")
    return call_control_api(ready, lambda api: api.summary()).accepted


def test_events_are_sent_to_the_configured_collector(
    run_command: RunCommand, sandbox: PlayedSandbox, tmp_path: Path
) -> None:
    """Good events are collected, and the exit code is 0."""
    before = accepted(sandbox)
    result = run_command("submit", write(tmp_path, event(), event()))
    assert (result.exit_code, result.stdout) == (0, "2 events: 2 collected\n")
    assert accepted(sandbox) == before + 2


@pytest.mark.parametrize("form", ["lines", "array", "gzip"])
def test_standard_input_is_a_file_too(sandbox: PlayedSandbox, form: str) -> None:
    """`-` reads an array, JSON lines, and either gzipped."""
    text = json.dumps([event(), event()]) if form == "array" else f"{json.dumps(event())}\n{json.dumps(event())}"
    data = gzip.compress(text.encode()) if form == "gzip" else text.encode()
    result = CliRunner(env=sandbox.environment).invoke(cli, ["submit", "-", "--strict"], input=data)
    assert (result.exit_code, result.stdout) == (0, "2 events: 2 collected\n")


def test_a_rejected_event_is_named_and_the_others_are_collected(run_command: RunCommand, tmp_path: Path) -> None:
    """File, line, event, value and rule are on one line, and the exit code is 1."""
    file = write(tmp_path, event(), BAD, event())
    result = run_command("submit", file)
    assert (result.exit_code, result.stdout) == (1, "3 events: 2 collected, 1 rejected\n")
    assert result.stderr == (
        f"{file}:2: event 2: currency = 'usd' is not one of the allowed values. Did you mean `USD`?\n"
    )


@pytest.mark.parametrize("bad", [BAD, event(level=7)])
def test_strict_sends_nothing_if_one_event_breaks_a_rule(
    run_command: RunCommand, sandbox: PlayedSandbox, tmp_path: Path, bad: dict[str, Any]
) -> None:
    """Fields that the documentation does not have count (Wire 3.7, Strict validation)."""
    before = accepted(sandbox)
    result = run_command("submit", "--strict", write(tmp_path, event(), bad))
    assert (result.exit_code, result.stdout, "event 2:" in result.stderr) == (1, "nothing was sent\n", True)
    assert accepted(sandbox) == before


def test_without_strict_an_unknown_field_is_the_collectors_to_judge(run_command: RunCommand, tmp_path: Path) -> None:
    """A lenient collector accepts it."""
    assert run_command("submit", write(tmp_path, event(level=7))).exit_code == 0


def test_a_file_that_cannot_be_read_is_not_sent_in_part(
    run_command: RunCommand, sandbox: PlayedSandbox, tmp_path: Path
) -> None:
    """The good events of the file stay unsent, and the bad line is named."""
    before = accepted(sandbox)
    file = write(tmp_path, event())
    file.write_text(f"{file.read_text()}\nhello\n")
    result = run_command("submit", file)
    assert (result.exit_code, result.stderr) == (
        1,
        f"{file}:2: event 2: is not JSON, at column 1: Expecting value\n",
    )
    assert accepted(sandbox) == before


def test_json_has_counts_and_faults(run_command: RunCommand, tmp_path: Path) -> None:
    """The object is on standard output, with the collector's name of the fault."""
    result = run_command("submit", "--json", write(tmp_path, event(), BAD))
    printed = json.loads(result.stdout)
    (fault,) = printed.pop("faults")
    assert printed == {
        "file": str(tmp_path / "events.jsonl"),
        "events": 2,
        "collected": 1,
        "rejected": 1,
        "not_sent": 0,
        "error": None,
    }
    assert (fault["line"], fault["event"], fault["error_type"], fault["path"]) == (2, 2, "not_in_enum", "/currency")
    assert (result.exit_code, result.stderr) == (1, "")


def test_a_dry_run_needs_no_keys(run_command: RunCommand, tmp_path: Path) -> None:
    """It checks the rules and sends nothing."""
    file = write(tmp_path, event())
    assert run_command("submit", "--dry-run", file, **NOWHERE).stdout == "1 event, all valid: nothing was sent\n"
    assert run_command("submit", "--dry-run", write(tmp_path, BAD), **NOWHERE).exit_code == 1


def test_an_empty_file_is_no_failure(run_command: RunCommand, tmp_path: Path) -> None:
    """There is nothing to send, and no key is needed to say so."""
    result = run_command("submit", write(tmp_path), **NOWHERE)
    assert (result.exit_code, result.stdout) == (0, "0 events: nothing was sent\n")


def test_without_a_collector_the_settings_are_named(run_command: RunCommand, tmp_path: Path) -> None:
    """The missing variables are listed, and the way to a sandbox."""
    result = run_command("submit", write(tmp_path, event()), **NOWHERE | {"GAMELENS_GAME_KEY": "a" * 32})
    assert result.exit_code == 1
    assert "set GAMELENS_COLLECTOR_URL, GAMELENS_SECRET_KEY, or write" in result.stderr
    assert "--ready FILE" in result.stderr


def test_a_ready_file_names_collector_and_game(run_command: RunCommand, sandbox: PlayedSandbox, tmp_path: Path) -> None:
    """A game is named by id or title; without one, or with another, the games are listed."""
    ready = sandbox.folder / "state" / "ready.json"
    games = [
        game for studio in json.loads(ready.read_text())["organisations"][0]["studios"] for game in studio["games"]
    ]
    file = write(tmp_path, event())

    def submit(*options: str) -> Result:
        return run_command("submit", file, "--ready", ready, *options, **NOWHERE)

    assert [submit("--game", games[-1][name]).exit_code for name in ("id", "title")] == [0, 0]
    unknown = submit("--game", "nothing")
    assert (unknown.exit_code, games[0]["title"] in unknown.stderr) == (2, True)
    assert submit().exit_code == (0 if len(games) == 1 else 2)


@pytest.mark.parametrize("wrong", [["no-such-file"], [], ["-", "--game", "1001"], ["-", "--strict=yes"]])
def test_wrong_usage_is_exit_code_2(run_command: RunCommand, wrong: list[str]) -> None:
    """A missing file or argument, and options that do not go together."""
    assert run_command("submit", *wrong).exit_code == 2


def test_a_wrong_key_is_one_line_without_the_key(run_command: RunCommand, tmp_path: Path) -> None:
    """The events that were not sent are named by event and line."""
    result = run_command("submit", write(tmp_path, event()), GAMELENS_SECRET_KEY="sesame")
    assert (result.exit_code, "sesame" in result.output) == (1, False)
    error, rest = result.stderr.splitlines()
    assert "401" in error
    assert rest == "not sent: event 1 (line 1) and those after it"


def test_a_fault_cannot_command_the_terminal(run_command: RunCommand, tmp_path: Path) -> None:
    """Values of events come from outside."""
    result = run_command("submit", "--dry-run", write(tmp_path, event(connection_type="\x1b[31mred\n")))
    assert "\x1b" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_many_faults_are_counted(run_command: RunCommand, tmp_path: Path) -> None:
    """Twenty lines are printed, and how many there are more."""
    result = run_command("submit", "--dry-run", write(tmp_path, *[BAD] * 30))
    assert result.stderr.splitlines()[20:] == ["... and 10 more faults: --json lists them all"]


def test_the_command_runs_in_a_process_of_its_own(sandbox: PlayedSandbox, tmp_path: Path) -> None:
    """As a script runs it, with nothing on standard error."""
    done = run("submit", write(tmp_path, event()), env=sandbox.environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 event: 1 collected\n", "")


def test_a_field_has_the_address_of_the_player(run_command: RunCommand, tmp_path: Path) -> None:
    """`--forwarded-for` names it, and a value that is no address sends nothing."""
    file = write(tmp_path, event(ip="192.0.2.7"), event(user_id="bob", ip="198.51.100.1"))
    result = run_command("submit", "--strict", "--forwarded-for", "ip", file)
    assert (result.exit_code, result.stdout) == (0, "2 events: 2 collected\n")
    wrong = run_command("submit", "--forwarded-for", "ip", write(tmp_path, event(), event(ip="here")))
    assert (wrong.exit_code, wrong.stdout) == (1, "nothing was sent\n")
    assert "event 2: ip = 'here' is not an IP address" in wrong.stderr
