"""`gamelens query` and `gamelens plan` against a running sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from click.testing import Result

from gamelens.local.sandbox_info import read_sandbox_info
from support.command_process import PlayedSandbox, RunCommand

WEEK = ("--over", "last 7 complete days")


@pytest.fixture
def faults(sandbox: PlayedSandbox) -> Iterator[Callable[..., None]]:
    """A function that adds a fault rule to the metrics service until the test ends."""
    console = read_sandbox_info(sandbox.folder / "state" / "ready.json").console_url

    def add(**rule: object) -> None:
        """Add a fault rule for metric requests with the fields *rule*."""
        httpx.post(f"{console}/faults", json={"service": "metrics", "route": "/metrics/v1/metrics/*", **rule})

    yield add
    httpx.delete(f"{console}/faults")


def requests_received(sandbox: PlayedSandbox) -> int:
    """Return the number of requests that the metrics service has received."""
    console = read_sandbox_info(sandbox.folder / "state" / "ready.json").console_url
    return int(httpx.get(f"{console}/summary").json()["asked"])


def rows(result: Result) -> list[dict[str, Any]]:
    """Return the printed rows of a query."""
    answer: list[dict[str, Any]] = _printed(result)
    return answer


def plan(result: Result) -> dict[str, Any]:
    """Return the printed plan."""
    answer: dict[str, Any] = _printed(result)
    return answer


def _printed(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_dimensions_after_one_by_or_after_each(run_command: RunCommand) -> None:
    """Several dimensions follow one --by, or each its own."""
    one = rows(run_command("query", "user_unique", "--by", "game", "platform", *WEEK, "--json"))
    other = rows(run_command("query", "user_unique", "--by", "game", "--by", "platform", *WEEK, "--json"))
    assert one == other
    assert {"game_id", "game", "platform"} <= set(one[0])


def test_own_metrics_are_those_of_the_config_file(run_command: RunCommand, tmp_path: Path) -> None:
    """`query` and `plan` take them, `--help` lists them, and `doctor` says where they are from."""
    file = tmp_path / "config" / "gamelens" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[metrics]\nads_per_player = "ad_impressions_count / user_unique"\n')
    (row,) = rows(run_command("query", "ads_per_player", "--every", "all", *WEEK, "--json"))
    assert row["ads_per_player"] == pytest.approx(row["ad_impressions_count"] / row["user_unique"])
    assert plan(run_command("plan", "ads_per_player", *WEEK, "--no-cache", "--json"))["requests"] == 2
    shown = run_command("query", "--help").stdout
    assert re.search(r"Own metrics:\s+ads_per_player\s+ad_impressions_count / user_unique \(ads per player\)", shown)
    assert "ads_per_player, from" in run_command("doctor").stdout
    file.write_text('[metrics]\nads_per_player = "ad_impressions_count / user_uniqe"\n')
    refused = run_command("query", "ads_per_player", *WEEK)
    assert "Did you mean `user_unique`" in refused.stderr
    assert str(file) in refused.stderr.replace("\n", "")
    damaged = run_command("query", "--help")
    assert (damaged.exit_code, "Did you mean `user_unique`" in " ".join(damaged.stdout.split())) == (0, True)


def test_three_dimensions_are_fanned_out(run_command: RunCommand) -> None:
    """Three dimensions are fanned out, and their counts add up to the total."""
    by_three = rows(run_command("query", "event_count", "--by", "game_id", "platform", "category", *WEEK, "--json"))
    by_none = rows(run_command("query", "event_count", *WEEK, "--json"))
    assert sum(row["event_count"] for row in by_three) == sum(row["event_count"] for row in by_none) > 0


def test_games_can_be_given_several_times(run_command: RunCommand, sandbox: PlayedSandbox) -> None:
    """Two --games limit the rows to these two games."""
    ids = [game.id for game in read_sandbox_info(sandbox.folder / "state" / "ready.json").organisations[0].games][:2]
    named = [word for game in ids for word in ("--games", game)]
    answer = rows(run_command("query", "event_count", "--by", "game_id", "--every", "all", *WEEK, *named, "--json"))
    assert {row["game_id"] for row in answer} == set(ids)


def test_top_of_a_dimension_is_counted_within_the_others(run_command: RunCommand) -> None:
    """--top category=1 keeps the largest category of each game, and --other the rest of each."""
    by = ("event_count", "--by", "game", "category", "--every", "all", *WEEK)
    whole = rows(run_command("query", *by, "--json"))
    top = rows(run_command("query", *by, "--top", "category=1", "--other", "--json"))
    games = {row["game_id"] for row in whole}
    assert len(games) > 1
    for game in games:
        largest, other = (row for row in top if row["game_id"] == game)
        own = [row["event_count"] for row in whole if row["game_id"] == game]
        assert (largest["event_count"], other["category"]) == (max(own), "(other)")
        assert largest["event_count"] + other["event_count"] == sum(own)


def test_other_is_what_top_leaves_out(run_command: RunCommand) -> None:
    """--other adds a row with the rest, so that --top adds up to the total."""
    top = rows(
        run_command(
            "query", "event_count", "--by", "category", "--every", "all", *WEEK, "--top", 1, "--other", "--json"
        )
    )
    total = rows(run_command("query", "event_count", "--every", "all", *WEEK, "--json"))
    assert [row["category"] for row in top][1:] == ["(other)"]
    assert sum(row["event_count"] for row in top) == total[0]["event_count"]


def test_retention_takes_the_days_since_install(run_command: RunCommand) -> None:
    """--since-days-ago is passed to metrics that take it."""
    result = run_command("query", "returning_users", "--since-days-ago", 1, *WEEK, "--no-cache", "--json")
    assert "returning_users" in rows(result)[0]


def test_a_clipped_range_is_named_on_standard_error(run_command: RunCommand) -> None:
    """With --when-unavailable clip the clipped interval is one line on standard error, before the source."""
    result = run_command(
        "query", "event_count", "--over", "2026-01-01/2100-01-01", "--every", "month", "--when-unavailable", "clip"
    )
    assert result.exit_code == 0, result.stderr
    clipped, source = result.stderr.splitlines()
    assert clipped.startswith("clipped: ")
    assert source.startswith("Source: gamelens")
    assert "demo data (sandbox" in source


def test_a_refusal_speaks_of_options(run_command: RunCommand) -> None:
    """An error message names options of the command, not arguments of Python."""
    result = run_command("query", "event_count", "--over", "2100-01-01")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("Error: 2100-01-01")
    assert "--when-unavailable wait" in result.stderr


def test_a_failed_request_is_an_error_or_a_gap(
    run_command: RunCommand, faults: Callable[..., None], tmp_path: Path
) -> None:
    """A failed request is one line and exit code 1, or with --on-error gaps a gap.

    The gap is on standard error, the other rows are printed, and the exit code is 0.
    """
    query = ("query", "event_count", "--by", "game_id", "platform", "category", *WEEK, "--no-cache", "--json")
    faults(status=501, times=1)
    refused = run_command(*query)
    assert (refused.exit_code, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 1)
    faults(status=501, times=1)
    partial = run_command(*query, "--on-error", "gaps")
    assert partial.stderr.startswith("gap: event_count in ")
    assert len(rows(partial)) > 0


def test_a_table_in_a_pipe_can_be_searched(run_command: RunCommand) -> None:
    """In a pipe a table has one line per row and columns separated by spaces."""
    result = run_command("query", "event_count", "--by", "category", *WEEK)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["timestamp", "category", "event_count"]
    assert all(len(line.split()) == 3 for line in lines)


def test_parquet_keeps_the_receipt_and_the_columns(run_command: RunCommand, tmp_path: Path) -> None:
    """A Parquet file has rows and receipt of the frame, and no draft is left."""
    out = tmp_path / "out.parquet"
    answer = rows(run_command("query", "event_count", "--by", "category", *WEEK, "--out", out, "--json"))
    stored = pd.read_parquet(out)
    assert len(stored) == len(answer)
    assert stored.attrs["gamelens"]["asked"]["metric"] == "event_count"
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".part"] == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_one_line(run_command: RunCommand, tmp_path: Path, suffix: str) -> None:
    """A file that cannot be written has exit code 1, and no file is left."""
    out = tmp_path / f"{'x' * 260}.{suffix}"
    result = run_command("query", "event_count", *WEEK, "--out", out)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert [entry for entry in tmp_path.iterdir() if entry.is_file()] == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("event_count", "user_unique", *WEEK),
        ("event_count", *WEEK, "--out", "table.xlsx"),
        ("event_count", *WEEK, "--out", "no/such/folder/table.csv"),
        ("event_count", *WEEK, "--top", "0"),
        ("event_count", *WEEK, "--top", "game="),
        ("event_count", *WEEK, "--top", "=5"),
        ("event_count", *WEEK, "--top", "game=-5"),
        ("event_count", *WEEK, "--record", "a", "--replay", "b"),
        ("event_count",),
    ],
)
@pytest.mark.parametrize("command", ["query", "plan"])
def test_wrong_usage_is_2_and_sends_nothing(run_command: RunCommand, command: str, wrong: tuple[str, ...]) -> None:
    """Wrong usage has exit code 2 and sends no request."""
    assert run_command(command, *wrong, GAMELENS_METRICS_URL="http://127.0.0.1:9").exit_code == 2


def test_a_recording_answers_without_a_key(run_command: RunCommand, tmp_path: Path) -> None:
    """A recording answers the same query without a key, and starts no sandbox."""
    query = ("query", "event_count", *WEEK, "--json")
    recorded = rows(run_command(*query, "--record", tmp_path / "answers"))
    nobody = {"GAMELENS_API_KEY": None, "GAMELENS_METRICS_URL": None}
    assert rows(run_command(*query, "--replay", tmp_path / "answers", **nobody)) == recorded
    assert not (tmp_path / "demo").exists()


def test_a_plan_sends_only_the_request_for_the_interval(run_command: RunCommand, sandbox: PlayedSandbox) -> None:
    """A plan sends one request, for the available interval (Wire 2.4, Available interval)."""
    before = requests_received(sandbox)
    result = run_command("plan", "event_count", "--by", "build", *WEEK, "--json")
    assert plan(result)["pieces"][0]["metric"] == "event_count"
    assert requests_received(sandbox) - before == 1


def test_a_plan_knows_what_the_cache_has(run_command: RunCommand) -> None:
    """A plan needs no requests for a query whose answer is cached."""
    query = ("user_unique", "--by", "country_code", "--every", "all", "--over", "last 3 complete days", "--json")
    assert plan(run_command("plan", *query))["requests"] == 1
    run_command("query", *query)
    assert plan(run_command("plan", *query))["requests"] == 0


def test_a_plan_prints_as_words_and_writes_nothing(run_command: RunCommand, tmp_path: Path) -> None:
    """A plan is printed as text, and neither --record nor --out writes anything."""
    result = run_command(
        "plan", "event_count", *WEEK, "--no-cache", "--record", tmp_path / "answers", "--out", tmp_path / "a.csv"
    )
    assert result.stdout.startswith("1 request, about ")
    assert not (tmp_path / "answers").exists()
    assert not (tmp_path / "a.csv").exists()


def test_a_traceback_comes_only_when_asked_for(run_command: RunCommand) -> None:
    """A traceback is shown only with --debug."""
    assert "Traceback" not in run_command("query", "nothing_such", *WEEK).output
    refused = run_command("--debug", "query", "nothing_such", *WEEK)
    assert type(refused.exception).__name__ == "BadQuery"


def test_words_and_aliases_of_an_analyst(run_command: RunCommand) -> None:
    """Aliases, time ranges in words, titles and `is null` work as in Python."""
    words = ("--over", "last 7 days", "--where", "platform is not null")
    daily = rows(run_command("query", "dau", *words, "--json"))
    players = rows(run_command("query", "user_unique", *words, "--json"))
    assert [row["dau"] for row in daily] == [row["user_unique"] for row in players]
    assert len(daily) == 7
    planned = plan(run_command("plan", "arpdau", "--over", "yesterday", "--json"))
    assert {piece["metric"] for piece in planned["pieces"]} <= {"revenue", "ilrd_revenue", "user_unique"}


def test_the_bucket_of_an_alias_needs_no_option(run_command: RunCommand) -> None:
    """`mau` is by month; --every day is refused with the reason."""
    monthly = rows(run_command("query", "mau", "--over", "last 7 days", "--json"))
    assert {row["timestamp"][8:10] for row in monthly} == {"01"}
    refused = run_command("query", "mau", "--over", "last 7 days", "--every", "day")
    assert (refused.exit_code, "counted by month" in refused.stderr) == (1, True)


def test_a_game_may_be_named_by_its_title(run_command: RunCommand) -> None:
    """--games takes what the column `game` shows."""
    titles = {row["game"] for row in rows(run_command("query", "user_unique", "--by", "game", *WEEK, "--json"))}
    title = sorted(titles)[0]
    only = rows(run_command("query", "user_unique", "--by", "game", *WEEK, "--games", title, "--json"))
    assert {row["game"] for row in only} == {title}


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (("--by", "gmae", *WEEK), "game"),
        (("--over", "7d"), "last 7 days"),
        (("--where", "platform = ios", *WEEK), 'platform == "ios"'),
    ],
)
def test_a_refused_option_has_its_correction(run_command: RunCommand, options: tuple[str, ...], meant: str) -> None:
    """The message names the text that is meant, which then works."""
    refused = run_command("query", "event_count", *options)
    assert refused.exit_code == 1
    assert f"Did you mean `{meant}`?" in " ".join(refused.stderr.split())
    assert rows(run_command("query", "event_count", options[0], meant, *options[2:], "--json"))
