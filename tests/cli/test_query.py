"""`gamelens query` and `gamelens plan`, typed against a running sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest
from click.testing import Result

from gamelens.local.sandbox_info import read_sandbox_info

Typed = Callable[..., Result]
WEEK = ("--over", "last 7 complete days")


@pytest.fixture
def faults(stage: tuple[Path, dict[str, str]]) -> Iterator[Callable[..., None]]:
    """Adds fault rules to the metrics service; they are gone afterwards."""
    console = read_sandbox_info(stage[0] / "state" / "ready.json").console_url

    def add(**rule: object) -> None:
        httpx.post(f"{console}/faults", json={"service": "metrics", "route": "/metrics/v1/metrics/*", **rule})

    yield add
    httpx.delete(f"{console}/faults")


def asked(stage: tuple[Path, dict[str, str]]) -> int:
    console = read_sandbox_info(stage[0] / "state" / "ready.json").console_url
    return int(httpx.get(f"{console}/summary").json()["asked"])


def rows(done: Result) -> list[dict[str, object]]:
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_dimensions_after_one_by_or_after_each(typed: Typed) -> None:
    one = rows(typed("query", "user_unique", "--by", "game", "platform", *WEEK, "--json"))
    other = rows(typed("query", "user_unique", "--by", "game", "--by", "platform", *WEEK, "--json"))
    assert one == other
    assert {"game_id", "game", "platform"} <= set(one[0])


def test_three_dimensions_are_fanned_out(typed: Typed) -> None:
    by_three = rows(typed("query", "event_count", "--by", "game_id", "platform", "category", *WEEK, "--json"))
    by_none = rows(typed("query", "event_count", *WEEK, "--json"))
    assert sum(row["event_count"] for row in by_three) == sum(row["event_count"] for row in by_none) > 0


def test_games_narrow_it_one_after_the_other(typed: Typed, stage: tuple[Path, dict[str, str]]) -> None:
    ids = [game.id for game in read_sandbox_info(stage[0] / "state" / "ready.json").organisations[0].games][:2]
    named = [word for game in ids for word in ("--games", game)]
    found = rows(typed("query", "event_count", "--by", "game_id", "--every", "all", *WEEK, *named, "--json"))
    assert {row["game_id"] for row in found} == set(ids)


def test_other_is_what_top_leaves_out(typed: Typed) -> None:
    top = rows(
        typed("query", "event_count", "--by", "category", "--every", "all", *WEEK, "--top", 1, "--other", "--json")
    )
    whole = rows(typed("query", "event_count", "--every", "all", *WEEK, "--json"))
    assert [row["category"] for row in top][1:] == ["(other)"]
    assert sum(row["event_count"] for row in top) == whole[0]["event_count"]


def test_retention_takes_the_days_since_install(typed: Typed) -> None:
    done = typed("query", "returning_users", "--since-days-ago", 1, *WEEK, "--no-cache", "--json")
    assert "returning_users" in rows(done)[0]


def test_what_is_cut_off_is_said_on_standard_error(typed: Typed) -> None:
    done = typed(
        "query", "event_count", "--over", "2026-01-01/2100-01-01", "--every", "month", "--when-unavailable", "clip"
    )
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("clipped: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_refusal_speaks_of_options(typed: Typed) -> None:
    done = typed("query", "event_count", "--over", "2100-01-01")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0].startswith("Error: 2100-01-01")
    assert "--when-unavailable clip" in done.stderr


def test_a_piece_that_fails_is_a_refusal_or_a_gap(typed: Typed, faults: Callable[..., None], tmp_path: Path) -> None:
    """contract, Commands: one line and exit 1, or the rest, the gap on standard error and exit 0."""
    question = ("query", "event_count", "--by", "game_id", "platform", "category", *WEEK, "--no-cache", "--json")
    faults(status=500, times=1)
    refused = typed(*question)
    assert (refused.exit_code, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 1)
    faults(status=500, times=1)
    shown = typed(*question, "--on-error", "gaps")
    assert shown.stderr.startswith("gap: event_count in ")
    assert len(rows(shown)) > 0


def test_a_table_in_a_pipe_can_be_searched(typed: Typed) -> None:
    done = typed("query", "event_count", "--by", "category", *WEEK)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["timestamp", "category", "event_count"]
    assert all(len(line.split()) == 3 for line in lines)


def test_parquet_keeps_the_receipt_and_the_columns(typed: Typed, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    found = rows(typed("query", "event_count", "--by", "category", *WEEK, "--out", out, "--json"))
    kept = pd.read_parquet(out)
    assert len(kept) == len(found)
    assert kept.attrs["gamelens"]["asked"]["metric"] == "event_count"
    assert [it.name for it in tmp_path.iterdir() if it.suffix == ".part"] == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_one_line(typed: Typed, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"{'x' * 260}.{suffix}"
    done = typed("query", "event_count", *WEEK, "--out", out)
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
    assert [it for it in tmp_path.iterdir() if it.is_file()] == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("event_count", "user_unique", *WEEK),
        ("event_count", *WEEK, "--out", "table.xlsx"),
        ("event_count", *WEEK, "--out", "no/such/folder/table.csv"),
        ("event_count", *WEEK, "--top", "0"),
        ("event_count", *WEEK, "--record", "a", "--replay", "b"),
        ("event_count",),
    ],
)
@pytest.mark.parametrize("command", ["query", "plan"])
def test_wrong_usage_is_2_and_asks_nobody(typed: Typed, command: str, wrong: tuple[str, ...]) -> None:
    assert typed(command, *wrong, GAMELENS_METRICS_URL="http://127.0.0.1:9").exit_code == 2


def test_a_recording_answers_without_a_key(typed: Typed, tmp_path: Path) -> None:
    question = ("query", "event_count", *WEEK, "--json")
    recorded = rows(typed(*question, "--record", tmp_path / "answers"))
    nobody = {"GAMELENS_API_KEY": None, "GAMELENS_METRICS_URL": None}
    assert rows(typed(*question, "--replay", tmp_path / "answers", **nobody)) == recorded
    assert not (tmp_path / "demo").exists()


def test_a_plan_sends_nothing_but_the_question_what_is_available(
    typed: Typed, stage: tuple[Path, dict[str, str]]
) -> None:
    before = asked(stage)
    done = typed("plan", "event_count", "--by", "build", *WEEK, "--json")
    assert rows(done)["pieces"][0]["metric"] == "event_count"
    assert asked(stage) - before == 1


def test_a_plan_knows_what_the_cache_has(typed: Typed) -> None:
    question = ("user_unique", "--by", "country_code", "--every", "all", "--over", "last 3 complete days", "--json")
    assert rows(typed("plan", *question))["requests"] == 1
    typed("query", *question)
    assert rows(typed("plan", *question))["requests"] == 0


def test_a_plan_prints_as_words_and_writes_nothing(typed: Typed, tmp_path: Path) -> None:
    done = typed(
        "plan", "event_count", *WEEK, "--no-cache", "--record", tmp_path / "answers", "--out", tmp_path / "a.csv"
    )
    assert done.stdout.startswith("1 request, about ")
    assert not (tmp_path / "answers").exists()
    assert not (tmp_path / "a.csv").exists()


def test_a_traceback_comes_only_when_asked_for(typed: Typed) -> None:
    assert "Traceback" not in typed("query", "nothing_such", *WEEK).output
    refused = typed("--debug", "query", "nothing_such", *WEEK)
    assert type(refused.exception).__name__ == "BadQuery"
