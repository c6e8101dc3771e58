"""`gamelens health`: its text, JSON and Markdown, and the exit code for scheduled jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.client.sync_client import Client
from gamelens.investigations.health_check import check_health, planned_requests
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import populate_lake
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.simulator import load_scenario
from support.command_process import RunCommand
from support.hostile_names import NAMES

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
players = 800
[[incident]]
kind = "silence"
game = "Ember Realms"
day = 39
days = 1
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a sandbox with three games, one silent on the last complete day."""
    folder = tmp_path_factory.mktemp("health")
    (folder / "games.toml").write_text(CONFIG)
    (folder / "quiet.toml").write_text(SCENARIO)
    Sandbox(SandboxOptions(state=folder / "state", config=folder / "games.toml")).close()  # which makes its keys
    populate_lake(folder / "state", load_scenario(folder / "quiet.toml"))
    with running_sandbox(folder / "state") as ready:
        own = {f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "RUNTIME")}
        yield environment_of(ready) | own


@pytest.fixture(scope="module")
def health(environment: dict[str, str]) -> RunCommand:
    """A function that runs `gamelens health` in this process, once for each set of arguments."""

    @cache
    def invoke(*arguments: object) -> Result:
        """Run `gamelens health` with *arguments*."""
        return CliRunner(env=environment).invoke(cli, ["health", *map(str, arguments)])

    return invoke


def test_the_silent_game_is_named(health: RunCommand) -> None:
    """The first line counts the critical rows, and the silent game is named."""
    result = health()
    assert result.exit_code == 0, result.stderr
    assert "1 critical" in result.stdout.splitlines()[0]
    assert f"{HOSTILE}: silent on" in result.stdout


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("bar", ["critical", "warning"])
def test_a_job_fails_when_something_is_as_bad_as_asked(health: RunCommand, bar: str) -> None:
    """--fail-on has exit code 3 if a row is of that severity or worse."""
    assert health("--fail-on", bar).exit_code == 3


@pytest.mark.wide
def test_a_job_does_not_fail_for_other_games(health: RunCommand) -> None:
    """With --games only the rows of those games are shown and decide the exit code."""
    result = health("--fail-on", "critical", "--games", "1", "--games", "2")
    assert result.exit_code == 0, result.stdout
    assert HOSTILE not in result.stdout


def test_a_title_does_not_colour_the_terminal(health: RunCommand) -> None:
    """Control characters of a title are replaced."""
    result = health()
    assert "\x1b" not in result.stdout
    assert "Ti\N{REPLACEMENT CHARACTER}[31mle" in result.stdout


def test_json_is_the_whole_board(health: RunCommand) -> None:
    """--json prints all rows, their counts by severity and the alarms."""
    printed = json.loads(health("--json").stdout)
    assert printed["counts"]["critical"] == 1
    assert len(printed["board"]) == sum(printed["counts"].values())
    assert printed["board"][0]["game"] == HOSTILE
    assert printed["alarms"][0]["sentence"] == printed["board"][0]["sentence"]


@pytest.mark.wide
def test_markdown_holds_no_markup_of_a_title(health: RunCommand, tmp_path: Path) -> None:
    """--markdown FILE writes a page in which titles are escaped and rows stay one line."""
    result = health("--markdown", tmp_path / "board.md")
    page = (tmp_path / "board.md").read_text()
    assert result.exit_code == 0
    assert page.startswith("# 1 critical")
    assert "<img" not in page
    assert "&#60;img src=x onerror=alert(1)&#62;" in page
    table = [line for line in page.splitlines() if "calc" in line]
    assert len(table) == 1
    assert table[0].count("|") == 5  # the name of the number and a column for each of three games


def test_every_form_of_the_board_says_who_answered(health: RunCommand) -> None:
    """The text and the page end with the source line, the page begins with the badge, JSON has the provenance."""
    line = "demo data (sandbox"
    assert line in health().stdout
    page = health("--markdown", "-").stdout
    assert ("**demo data**: the players are invented" in page, line in page) == (True, True)
    assert json.loads(health("--json").stdout)["provenance"]["kind"] == "sandbox"


def test_markdown_goes_to_standard_output(health: RunCommand) -> None:
    """--markdown - prints the page."""
    assert health("--markdown", "-").stdout.startswith("# 1 critical")


def test_two_kinds_of_output_in_one_place_are_wrong_usage(health: RunCommand) -> None:
    """--markdown - with --json has exit code 2."""
    assert health("--markdown", "-", "--json").exit_code == 2


def test_a_file_that_cannot_be_written_is_one_line(health: RunCommand, tmp_path: Path) -> None:
    """A file that cannot be written has exit code 1 and one line on standard error."""
    result = health("--markdown", tmp_path, "--metrics", "revenue")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_only_the_metrics_that_are_wanted(health: RunCommand) -> None:
    """--metrics limits the board to the named metrics."""
    printed = json.loads(health("--metrics", "user_unique", "--metrics", "conversion", "--json").stdout)
    assert {row["watch"] for row in printed["board"]} == {"user_unique", "conversion"}


def test_a_metric_that_does_not_exist_is_refused(health: RunCommand) -> None:
    """An unknown metric has exit code 1 and the nearest name."""
    result = health("--metrics", "user_uniqe")
    assert result.exit_code == 1
    assert "did you mean `user_unique`" in result.stderr.lower()


def test_a_short_history_says_so(health: RunCommand) -> None:
    """A short time range has exit code 4 and says that there is not enough history."""
    result = health("--over", "last 6 complete days", "--fail-on", "warning", "--metrics", "revenue")
    assert result.exit_code == 4, result.stderr
    assert "Not enough history" in result.stdout


@pytest.mark.wide
def test_a_board_costs_what_was_planned(environment: dict[str, str]) -> None:
    """A board takes as many requests as planned, once the studios are known."""
    address, key = (environment[f"GAMELENS_{name}"] for name in ("METRICS_URL", "API_KEY"))
    with Client(metrics_url=address, api_key=key, cache=False, progress=False) as lens:
        over = "last 35 complete days"
        for _ in range(2):
            hour = time.time() // 3600
            lens.studios(over=over)
            planned = planned_requests(lens, over=over)
            sent = check_health(lens, over=over, drills=0).requests
            if time.time() // 3600 == hour:  # with the next hour the service has more, and lists are asked for anew
                break
        assert sent == planned


@pytest.mark.wide
def test_an_entry_that_is_about_no_row_is_named(health: RunCommand, tmp_path: Path) -> None:
    """--accept names the entries that match nothing, and JSON has the headline."""
    notes = "game='X'\nmetric='revenue'\nsince=2026-01-01\nby='A'\non=2026-01-02\nwhy='w'"
    (tmp_path / "health.toml").write_text(f"[[accept]]\n{notes}")
    result = health("--accept", tmp_path / "health.toml", "--json")
    assert json.loads(result.stdout)["unmatched"] == ["accept: revenue of X is not on this board"]
    assert json.loads(result.stdout)["headline"].startswith("1 critical on ")


def test_a_file_of_accepted_levels_that_is_not_there_is_refused(health: RunCommand, tmp_path: Path) -> None:
    """--accept with a missing file has exit code 1, and the error names it."""
    result = health("--accept", tmp_path / "none.toml")
    assert result.exit_code == 1
    assert "none.toml" in result.stderr


def test_an_unavailable_range_is_refused(health: RunCommand) -> None:
    """A time range that is not available has exit code 1 and the available interval."""
    result = health("--over", "2031-01-01/P7D")
    assert result.exit_code == 1
    assert "the service has" in result.stderr
