"""The command as a script runs it: exit codes, messages and files.

One test of each kind starts a process of its own; the others run in this one.
"""

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
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.wire.signing import sign
from support.command_process import GAMELENS, PlayedSandbox, run, run_here
from support.game_events import event

BY_PLATFORM = ("query", "user_unique", "--by", "platform", "--over", "last 5 complete days")


def test_process_prints_what_is_available(sandbox: PlayedSandbox) -> None:
    """`sandbox process --json` prints the available interval of each organisation by name."""
    result = run_here("sandbox", "process", "--state", sandbox.folder / "state", "--json")
    assert list(json.loads(result.stdout)) == ["demo"]


def test_simulate_says_what_was_sent_and_writes_the_ledger(sandbox: PlayedSandbox) -> None:
    """`simulate --ledger` writes one row per event that it reports as sent."""
    played = json.loads((sandbox.folder / "played.json").read_text())
    assert pq.read_metadata(sandbox.folder / "truth.parquet").num_rows == played["events"] > 0


@pytest.mark.wide
def test_a_dry_run_plays_without_a_sandbox(tmp_path: Path) -> None:
    """`simulate --dry-run` counts the events that a run would send, and writes the same ledger."""
    small = ("simulate", "--scenario", "small", "--players", 60, "--days", 10)
    played = json.loads(run_here(*small, "--dry-run", "--ledger", tmp_path / "truth.parquet", "--json").stdout)
    written = json.loads(run_here(*small, "--into", tmp_path / "state", "--json").stdout)
    assert (played["events"], played["sent_bytes"]) == (written["events"], 0)
    assert 0 < played["requests"] < played["events"] == pq.read_metadata(tmp_path / "truth.parquet").num_rows


def test_a_dry_run_is_one_of_four_ways_to_play(tmp_path: Path) -> None:
    """A ready file beside it is refused, before anything is played."""
    result = run_here("simulate", "--scenario", "small", "--dry-run", "--into", tmp_path / "state")
    assert (result.returncode, "--into STATE, --export FORMAT DIR or --dry-run" in result.stderr) == (2, True)
    assert not (tmp_path / "state").exists()


@pytest.mark.wide
def test_simulate_writes_to_a_sandbox_that_does_not_run(tmp_path: Path) -> None:
    """`simulate --into` fills a stopped sandbox, whose next start answers from it.

    A state that already has events is refused with exit code 1.
    """
    small = ("simulate", "--scenario", "small", "--players", 60, "--days", 10, "--into", tmp_path / "state", "--json")
    played, again = json.loads(run_here(*small).stdout), run_here(*small)
    assert played["events"] > 1000
    assert (again.returncode, "already has events" in again.stderr) == (1, True)
    with running_sandbox(tmp_path / "state") as ready:
        over = ("--over", "last 10 complete days", "--every", "all", "--json")
        own = environment_of(ready) | {"GAMELENS_CACHE_DIR": str(tmp_path)}
        printed = run_here("query", "event_count", *over, env=own)
    assert json.loads(printed.stdout)[0]["event_count"] == played["events"]


@pytest.mark.parametrize("where", [[], ["--ready", "ready.json", "--into", "state"]], ids=["nowhere", "two places"])
def test_simulate_plays_to_one_place(where: list[str]) -> None:
    """`simulate` needs exactly one of --ready and --into, else the exit code is 2."""
    result = run_here("simulate", "--scenario", "small", *where)
    assert (result.returncode, "either --ready FILE" in result.stderr) == (2, True)


@pytest.mark.parametrize("mode", ["clients", "server"])
def test_a_mode_is_a_way_to_send(mode: str) -> None:
    """--mode needs --ready: with --into no events are sent, so the exit code is 2."""
    result = run_here("simulate", "--scenario", "small", "--into", "state", "--mode", mode)
    assert (result.returncode, f"--mode {mode} needs --ready" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("where", "way_out", "tables"),
    [
        (["--mode", "clients", "--ready"], "--mode batches", "remove its tables [delivery] and [dirt]"),
        (["--into"], "--ready", "has [delivery] or [dirt], which only a collector can handle"),
    ],
)
def test_defects_of_requests_are_refused_where_no_requests_are_sent(
    sandbox: PlayedSandbox, tmp_path: Path, where: list[str], way_out: str, tables: str
) -> None:
    """Scenarios with defects of requests are refused by modes that cannot send them.

    The message is one line with the mode to use and the scenario tables to leave out.
    """
    at = sandbox.folder / "state" / "ready.json" if where[-1] == "--ready" else tmp_path / "state"
    result = run_here("simulate", "--scenario", "dirty", *where, at)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert way_out in result.stderr
    assert tables in result.stderr
    assert ", or remove " in result.stderr


def test_query_answers_a_table_as_json(sandbox: PlayedSandbox) -> None:
    """`query --json` prints one JSON object per row."""
    result = run("query", "event_count", "--over", "last 5 complete days", "--json", env=sandbox.environment)
    assert len(json.loads(result.stdout)) == 5


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_query_writes_files(sandbox: PlayedSandbox, suffix: str) -> None:
    """`query --out` writes CSV or Parquet by the suffix of the file."""
    out = sandbox.folder / f"out.{suffix}"
    result = run_here(*BY_PLATFORM, "--out", out, env=sandbox.environment)
    assert (result.returncode, out.exists()) == (0, True)


def test_query_writes_csv_that_a_spreadsheet_may_open(sandbox: PlayedSandbox) -> None:
    """In a CSV file texts and timestamps are quoted, and numbers are not."""
    out = sandbox.folder / "quoted.csv"
    run_here(*BY_PLATFORM, "--out", out, env=sandbox.environment)
    header, first, *_ = out.read_text().splitlines()
    assert header == '"timestamp","platform","user_unique"'
    assert re.fullmatch(r'"\d{4}-\d\d-\d\d",("\w+")?,\d+', first)


def test_a_refusal_is_one_clear_line_and_exit_code_1(sandbox: PlayedSandbox) -> None:
    """An unknown metric has exit code 1 and the nearest name, without a traceback."""
    result = run("query", "revenu", "--over", "last 5 complete days", env=sandbox.environment)
    assert result.returncode == 1
    assert "did you mean `revenue`" in result.stderr.lower()
    assert "Traceback" not in result.stderr


def test_what_is_not_available_names_what_is(sandbox: PlayedSandbox) -> None:
    """A time range that is not available has exit code 1 and the available interval."""
    result = run_here("query", "revenue", "--over", "2031-01-01/P7D", env=sandbox.environment)
    assert result.returncode == 1
    assert "the service has" in result.stderr


def test_two_dimensions_and_a_condition(sandbox: PlayedSandbox) -> None:
    """--by takes several dimensions, and --where filters by an expression."""
    command = ("query", "user_unique", "--by", "game", "platform", "--over", "last 9 complete days", "--every", "all")
    result = run_here(*command, "--where", "platform == 'ios'", "--json", env=sandbox.environment)
    assert {row["platform"] for row in json.loads(result.stdout)} == {"ios"}


@pytest.mark.wide
def test_wrong_usage_is_exit_code_2() -> None:
    """A command without its required argument has exit code 2."""
    assert run("query").returncode == 2


def test_up_stops_on_sigterm_and_exits_0(tmp_path: Path) -> None:
    """`sandbox up` writes a private ready file, and on SIGTERM drains and exits with 0."""
    ready = tmp_path / "ready.json"
    process = subprocess.Popen([*GAMELENS, "sandbox", "up", "--state", str(tmp_path / "s"), "--ready", str(ready)])
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert ready.stat().st_mode & 0o777 == 0o600
    assert len(read_sandbox_info(ready).organisations[0].games) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


@pytest.mark.wide
def test_up_judges_events_as_it_is_told(tmp_path: Path) -> None:
    """`sandbox up --validation strict` rejects unknown fields (Wire 3.7, Strict validation)."""
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
        headers={"Content-Type": "application/json", "Authorization": sign(body, secret_key=game.secret_key)},
    )
    assert answer.json()[0]["errors"] == [{"error_type": "no_extra_properties_allowed", "path": "/own_field"}]
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_process_works_on_a_stopped_sandbox(tmp_path: Path) -> None:
    """`sandbox process` works on a sandbox that does not run."""
    Sandbox(SandboxOptions(state=tmp_path / "s")).close()
    result = run_here("sandbox", "process", "--state", tmp_path / "s")
    assert (result.returncode, result.stdout.split()[0]) == (0, "demo")


def test_the_lake_of_a_running_sandbox_is_exported(sandbox: PlayedSandbox) -> None:
    """`lake export` writes a Delta table of every event of each organisation."""
    out = sandbox.folder / "tables"
    command = ("lake", "export", "--state", sandbox.folder / "state", "--format", "delta", "--out", out)
    result = run_here(*command, "--json")
    assert result.returncode == 0, result.stderr
    exported = json.loads(result.stdout)["demo"]
    assert exported["rows"] == json.loads((sandbox.folder / "played.json").read_text())["events"]
    assert (Path(exported["table"]) / "_delta_log").is_dir()
    assert f"{exported['rows']:,} events" in run_here(*command).stdout


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    """An unknown --engine has exit code 1 and is named."""
    result = run_here("sandbox", "up", "--state", tmp_path / "s", "--engine", "sqlite")
    assert (result.returncode, "is not an engine" in result.stderr) == (1, True)


def test_a_second_sandbox_on_the_same_state_is_refused(sandbox: PlayedSandbox) -> None:
    """A second sandbox on the same state has exit code 1."""
    result = run_here("sandbox", "up", "--state", sandbox.folder / "state")
    assert result.returncode == 1
    assert "belongs to a running sandbox" in result.stderr
