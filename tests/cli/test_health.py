"""`gamelens health`: what a scheduled job reads, and what a person does; issue, Health."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import populate_lake
from gamelens.local.sandbox_process import running_sandbox
from gamelens.notebook.health_check import check_health, planned_requests
from gamelens.simulator import load_scenario
from support.hostile_names import NAMES

Typed = Callable[..., Result]

HOSTILE, FORMULA = NAMES["tag"], NAMES["formula"]
CONFIG = f"""
[[organisation]]
name = "acme"
[[organisation.studio]]
name = "North"
[[organisation.studio.game]]
id = "1"
title = "Ti\\u001b[31mle"
[[organisation.studio.game]]
id = "2"
title = "{FORMULA}"
[[organisation.studio]]
name = "South"
[[organisation.studio.game]]
id = "3"
title = "{HOSTILE}"
"""
SCENARIO = """
extends = "small"
name = "quiet"
days = 40
players = 2000
[[incident]]
kind = "silence"
game = "Ember Realms"
day = 39
days = 1
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a sandbox with three games, the last of which sent nothing on the last complete day."""
    folder = tmp_path_factory.mktemp("health")
    (folder / "games.toml").write_text(CONFIG)
    (folder / "quiet.toml").write_text(SCENARIO)
    with running_sandbox(folder / "state", config=folder / "games.toml"):
        pass  # it makes its keys
    populate_lake(folder / "state", load_scenario(folder / "quiet.toml"))
    with running_sandbox(folder / "state") as ready:
        own = {f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "RUNTIME")}
        yield environment_of(ready) | own


@pytest.fixture
def health(environment: dict[str, str]) -> Typed:
    """Runs `gamelens health` in this process."""

    def type_in(*arguments: object) -> Result:
        return CliRunner(env=environment).invoke(cli, ["health", *map(str, arguments)])

    return type_in


def test_the_silent_game_is_named(health: Typed) -> None:
    done = health()
    assert done.exit_code == 0, done.stderr
    assert "1 critical" in done.stdout.splitlines()[0]
    assert f"{HOSTILE}: silent on" in done.stdout


@pytest.mark.parametrize("bar", ["critical", "warning"])
def test_a_job_fails_when_something_is_as_bad_as_asked(health: Typed, bar: str) -> None:
    """contract, Commands: exit 1 when something is as bad as asked."""
    assert health("--fail-on", bar).exit_code == 1


def test_a_job_does_not_fail_for_other_games(health: Typed) -> None:
    done = health("--fail-on", "critical", "--games", "1", "--games", "2")
    assert done.exit_code == 0, done.stdout
    assert HOSTILE not in done.stdout


def test_a_title_does_not_colour_the_terminal(health: Typed) -> None:
    done = health()
    assert "\x1b" not in done.stdout
    assert "Ti\N{REPLACEMENT CHARACTER}[31mle" in done.stdout


def test_json_is_the_whole_board(health: Typed) -> None:
    said = json.loads(health("--json").stdout)
    assert said["counts"]["critical"] == 1
    assert len(said["board"]) == sum(said["counts"].values())
    assert said["board"][0]["game"] == HOSTILE
    assert said["alarms"][0]["sentence"] == said["board"][0]["sentence"]


def test_markdown_holds_no_markup_of_a_title(health: Typed, tmp_path: Path) -> None:
    done = health("--markdown", tmp_path / "board.md")
    page = (tmp_path / "board.md").read_text()
    assert done.exit_code == 0
    assert page.startswith("# 1 critical")
    assert "<img" not in page
    assert "&#60;img src=x onerror=alert(1)&#62;" in page
    table = [line for line in page.splitlines() if "calc" in line]
    assert len(table) == 1
    assert table[0].count("|") == 10


def test_markdown_goes_to_standard_output(health: Typed) -> None:
    assert health("--markdown", "-").stdout.startswith("# 1 critical")


def test_two_kinds_of_output_in_one_place_are_wrong_usage(health: Typed) -> None:
    assert health("--markdown", "-", "--json").exit_code == 2


def test_a_file_that_cannot_be_written_is_one_line(health: Typed, tmp_path: Path) -> None:
    done = health("--markdown", tmp_path)
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1


def test_only_the_metrics_that_are_wanted(health: Typed) -> None:
    said = json.loads(health("--metrics", "user_unique", "--metrics", "conversion", "--json").stdout)
    assert {row["watch"] for row in said["board"]} == {"user_unique", "conversion"}


def test_a_metric_that_does_not_exist_is_refused(health: Typed) -> None:
    done = health("--metrics", "user_uniqe")
    assert done.exit_code == 1
    assert "did you mean `user_unique`" in done.stderr.lower()


def test_a_short_history_says_so(health: Typed) -> None:
    done = health("--over", "last 6 complete days", "--fail-on", "warning", "--metrics", "revenue")
    assert done.exit_code == 0, done.stderr
    assert "Not enough history" in done.stdout


def test_a_board_costs_what_was_planned(environment: dict[str, str]) -> None:
    """Once it is known how many studios there are, whose games have titles."""
    address, key = (environment[f"GAMELENS_{name}"] for name in ("METRICS_URL", "API_KEY"))
    with Client(metrics_url=address, api_key=key, cache=False, progress=False) as lens:
        over = "last 35 complete days"
        lens.studios(over=over)
        planned = planned_requests(lens, over=over)
        assert check_health(lens, over=over, drills=0).requests == planned


def test_what_is_not_there_yet_is_refused(health: Typed) -> None:
    done = health("--over", "2031-01-01/P7D")
    assert done.exit_code == 1
    assert "the service has" in done.stderr
