"""The command, as a script sees it: exit codes, one clear line, and what it prints."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from gamelens.local.sandbox_info import environment_of, read_sandbox_info
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.server import Sandbox, SandboxOptions
from gamelens.wire.signing import sign
from support.command_process import GAMELENS, run
from support.game_events import event


def test_process_prints_what_is_available(stage: tuple[Path, dict[str, str]]) -> None:
    """contract, Commands: an object by name."""
    done = run("sandbox", "process", "--state", stage[0] / "state", "--json")
    assert list(json.loads(done.stdout)) == ["demo"]


def test_simulate_says_what_was_sent_and_writes_the_ledger(stage: tuple[Path, dict[str, str]]) -> None:
    """contract, Commands: the ledger of what really happened."""
    played = json.loads((stage[0] / "played.json").read_text())
    assert pq.read_metadata(stage[0] / "truth.parquet").num_rows == played["events"] > 0


def test_a_dry_run_sends_nothing() -> None:
    """contract, Commands: --dry-run needs no sandbox."""
    done = run("simulate", "--scenario", "small", "--dry-run", "--json")
    assert json.loads(done.stdout)["events"] > 10_000


def test_simulate_writes_to_a_sandbox_that_does_not_run(tmp_path: Path) -> None:
    """simulate --into: the lake is there for the next start."""
    small = ("simulate", "--scenario", "small", "--players", 60, "--days", 10, "--into", tmp_path / "state", "--json")
    played, again = json.loads(run(*small).stdout), run(*small)
    assert played["events"] > 1000
    assert (again.returncode, "has events already" in again.stderr) == (1, True)
    with running_sandbox(tmp_path / "state") as ready:
        over = ("--over", "last 10 complete days", "--every", "all", "--json")
        told = run("query", "event_count", *over, env=environment_of(ready) | {"GAMELENS_CACHE_DIR": str(tmp_path)})
    assert json.loads(told.stdout)[0]["event_count"] == played["events"]


@pytest.mark.parametrize("where", [[], ["--ready", "ready.json", "--into", "state"]], ids=["nowhere", "two places"])
def test_simulate_plays_to_one_place(where: list[str]) -> None:
    done = run("simulate", "--scenario", "small", *where)
    assert (done.returncode, "either --ready FILE" in done.stderr) == (2, True)


@pytest.mark.parametrize("mode", ["clients", "server"])
def test_a_mode_is_a_way_to_send(mode: str) -> None:
    """simulate --into: nothing is sent, so that a mode would be ignored."""
    done = run("simulate", "--scenario", "small", "--into", "state", "--mode", mode)
    assert (done.returncode, f"send with --ready for --mode {mode}" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("where", "way_out"), [(["--mode", "clients", "--ready"], "--mode batches"), (["--into"], "--ready")]
)
def test_what_only_bodies_can_hold_is_refused_with_the_way_out(
    stage: tuple[Path, dict[str, str]], tmp_path: Path, where: list[str], way_out: str
) -> None:
    at = stage[0] / "state" / "ready.json" if where[-1] == "--ready" else tmp_path / "state"
    done = run("simulate", "--scenario", "dirty", *where, at)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert way_out in done.stderr
    assert "without its tables [delivery] and [dirt]" in done.stderr


def test_query_answers_a_table_as_json(stage: tuple[Path, dict[str, str]]) -> None:
    """contract, Commands: --json on every command that prints data."""
    done = run("query", "event_count", "--over", "last 5 complete days", "--json", env=stage[1])
    assert len(json.loads(done.stdout)) == 5


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_query_writes_files(stage: tuple[Path, dict[str, str]], suffix: str) -> None:
    """contract, Commands: --out FILE.csv or .parquet."""
    out = stage[0] / f"out.{suffix}"
    done = run("query", "user_unique", "--by", "platform", "--over", "last 5 complete days", "--out", out, env=stage[1])
    assert (done.returncode, out.exists()) == (0, True)


def test_query_writes_csv_that_a_spreadsheet_may_open(stage: tuple[Path, dict[str, str]]) -> None:
    """architecture, Decisions: CSV export guards formulas; text is quoted, numbers are not."""
    out = stage[0] / "quoted.csv"
    run("query", "user_unique", "--by", "platform", "--over", "last 5 complete days", "--out", out, env=stage[1])
    header, first, *_ = out.read_text().splitlines()
    assert header == '"timestamp","platform","user_unique"'
    assert re.fullmatch(r'"\d{4}-\d\d-\d\dT00:00:00Z",("\w+")?,\d+', first)


def test_a_refusal_is_one_clear_line_and_exit_code_1(stage: tuple[Path, dict[str, str]]) -> None:
    """contract, Commands: no traceback; analyst-api 12: did you mean."""
    done = run("query", "revenu", "--over", "last 5 complete days", env=stage[1])
    assert done.returncode == 1
    assert "did you mean `revenue`" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_what_is_not_available_names_what_is(stage: tuple[Path, dict[str, str]]) -> None:
    """Issue, Bad input."""
    done = run("query", "revenue", "--over", "2031-01-01/P7D", env=stage[1])
    assert done.returncode == 1
    assert "the service has" in done.stderr


def test_two_dimensions_and_a_condition(stage: tuple[Path, dict[str, str]]) -> None:
    """contract, Commands: --by DIM ... and --where EXPR."""
    command = ("query", "user_unique", "--by", "game", "platform", "--over", "last 9 complete days", "--every", "all")
    done = run(*command, "--where", "platform == 'ios'", "--json", env=stage[1])
    assert {row["platform"] for row in json.loads(done.stdout)} == {"ios"}


def test_wrong_usage_is_exit_code_2() -> None:
    """contract, Commands."""
    assert run("query").returncode == 2


def test_up_stops_on_sigterm_and_exits_0(tmp_path: Path) -> None:
    """contract, Commands: until SIGINT or SIGTERM, then drained, exit 0."""
    ready = tmp_path / "ready.json"
    process = subprocess.Popen([*GAMELENS, "sandbox", "up", "--state", str(tmp_path / "s"), "--ready", str(ready)])
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert ready.stat().st_mode & 0o777 == 0o600
    assert len(read_sandbox_info(ready).organisations[0].games) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_up_judges_events_as_it_is_told(tmp_path: Path) -> None:
    """README, Run the sandbox yourself: --validation strict refuses what is not documented."""
    ready = tmp_path / "ready.json"
    command = ("sandbox", "up", "--state", tmp_path / "s", "--ready", ready, "--validation", "strict")
    process = subprocess.Popen([*GAMELENS, *map(str, command)])
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.02)
    game = read_sandbox_info(ready).organisations[0].games[0]
    body = json.dumps([event(own_field=1)]).encode()
    answer = httpx.post(
        f"{read_sandbox_info(ready).collector_url}/v2/{game.game_key}/events",
        content=body,
        headers={"Authorization": sign(body, secret_key=game.secret_key)},
    )
    assert answer.json()[0]["errors"] == [{"error_type": "no_extra_properties_allowed", "path": "/own_field"}]
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_process_works_on_a_stopped_sandbox(tmp_path: Path) -> None:
    """contract, Commands: against a running or a stopped sandbox."""
    Sandbox(SandboxOptions(state=tmp_path / "s")).close()
    done = run("sandbox", "process", "--state", tmp_path / "s")
    assert (done.returncode, done.stdout.split()[0]) == (0, "demo")


def test_the_lake_of_a_running_sandbox_is_exported(stage: tuple[Path, dict[str, str]]) -> None:
    """README, Run the sandbox yourself: a Delta table of each organisation's events."""
    command = ("lake", "export", "--state", stage[0] / "state", "--format", "delta", "--out", stage[0] / "tables")
    done = run(*command, "--json")
    assert done.returncode == 0, done.stderr
    exported = json.loads(done.stdout)["demo"]
    assert exported["rows"] == json.loads((stage[0] / "played.json").read_text())["events"]
    assert (Path(exported["table"]) / "_delta_log").is_dir()
    assert f"{exported['rows']:,} events" in run(*command).stdout


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    """README, Run the sandbox yourself."""
    done = run("sandbox", "up", "--state", tmp_path / "s", "--engine", "sqlite")
    assert (done.returncode, "is no engine" in done.stderr) == (1, True)


def test_a_second_sandbox_on_the_same_state_is_refused(stage: tuple[Path, dict[str, str]]) -> None:
    """architecture, Decisions: locked against a second server."""
    done = run("sandbox", "up", "--state", stage[0] / "state")
    assert done.returncode == 1
    assert "belongs to a running sandbox" in done.stderr
