"""Shell completion: metrics, dimensions, scenarios and notebooks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from gamelens.analysis.health import WATCHED
from gamelens.catalog import ALIASES, DIMENSIONS, METRICS
from gamelens.cli import cli
from gamelens.simulator import scenario_names
from support.command_process import run_here
from support.notebook_files import code_cell, notebook_of, write_notebook


def offered(*words: str) -> list[str]:
    """Return the completions of the last of *words*."""
    *before, incomplete = words
    shell = BashComplete(cli, {}, "gamelens", "_GAMELENS_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


def test_metrics_come_first() -> None:
    """The first argument of `query` and `plan` completes to metrics and aliases."""
    assert offered("query", "") == [*METRICS, *ALIASES]
    with_arp = [name for name in (*METRICS, *ALIASES) if name.startswith("arp")]
    assert offered("query", "arp") == with_arp != []
    assert "ilrd_revenue" in offered("plan", "ilrd_r")


def test_a_health_board_is_offered_what_it_can_watch() -> None:
    """Its usual numbers and the metrics of the service, each of which it takes."""
    names = offered("health", "--metrics", "")
    assert {*WATCHED, *METRICS} == {*names}
    assert len(names) == len({*names})
    assert offered("health", "--metrics", "user_u") == ["user_unique"]


def test_own_metrics_of_the_config_file_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of [metrics] come last; a damaged file takes nothing away from the others."""
    file = tmp_path / "gamelens" / "config.toml"
    file.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file.write_text('[metrics]\nads_per_payer = "ad_impressions_count / paying_users"\n')
    assert offered("query", "ads_") == ["ads_per_payer"]
    file.write_text("[metrics]\nads_per_payer = 5\n")
    assert offered("query", "") == [*METRICS, *ALIASES]


def test_dimensions_follow_by_however_many() -> None:
    """Every word after --by completes to dimensions, game and studio included."""
    assert set(offered("query", "revenue", "--by", "")) == {"game", "studio", "country", *DIMENSIONS}
    assert offered("query", "revenue", "--by", "game", "platf") == ["platform"]


def test_nothing_follows_a_metric_alone() -> None:
    """A second argument of `query` has no completions."""
    assert offered("query", "revenue", "plat") == []


def test_time_ranges_in_words() -> None:
    """--over completes to time ranges in words."""
    assert offered("plan", "dau", "--over", "last 7") == ["last 7 days", "last 7 complete days"]
    assert "month to date" in offered("query", "dau", "--over", "")


def test_sizes_of_buckets() -> None:
    """--every completes to the bucket sizes."""
    assert offered("query", "revenue", "--every", "") == ["day", "week", "month", "all"]


@pytest.mark.parametrize("command", ["simulate", "demo"])
def test_scenarios(command: str) -> None:
    """--scenario completes to the shipped scenarios."""
    assert offered(command, "--scenario", "") == scenario_names()


def test_shipped_notebooks() -> None:
    """`report` completes to the shipped notebooks."""
    assert offered("report", "01") == ["01_ad_revenue"]
    assert {"00_monday", "02_retention", "03_health"} <= {*offered("report", "0")}


def test_parameters_of_a_notebook_and_their_values() -> None:
    """-p completes to the parameters of the notebook named before it, and behind one to its values."""
    report = ("report", "01_ad_revenue", "-p")
    assert offered(*report, "ov") == ["over"]
    assert offered(*report, "over", "month") == ["month to date"]
    assert offered(*report, "over", "yesterday", "-p", "ov") == ["over"]
    assert offered("report", "-p", "ov") == []
    assert offered("report", "nothing", "-p", "ov") == []


def test_values_of_a_parameter_are_told_by_its_default(tmp_path: Path) -> None:
    """A flag completes to both values, a list to its elements, any other default to itself."""
    cell = code_cell("flag = True\ncountries = ['DE', 'US']\nleast = 50\ngames = None", is_parameters=True)
    path = str(write_notebook(notebook_of(cell), tmp_path / "ours.ipynb"))
    values = {name: offered("report", path, "-p", name, "") for name in ("flag", "countries", "least", "games")}
    assert values == {"flag": ["true", "false"], "countries": ["DE", "US"], "least": ["50"], "games": []}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_the_command(shell: str) -> None:
    """The completion script of each shell calls the command."""
    result = CliRunner().invoke(cli, ["completion", shell])
    assert (result.exit_code, f"_GAMELENS_COMPLETE={shell}_complete" in result.stdout) == (0, True)


def test_an_unknown_shell_is_wrong_usage() -> None:
    """An unknown shell has exit code 2."""
    assert CliRunner(env={"SHELL": "/bin/ksh"}).invoke(cli, ["completion"]).exit_code == 2


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (["query", "reve"], "revenue"),
        (["query", "dau", "--over", "last\\ 7\\ c"], "last\\ 7\\ complete\\ days"),
        (["query", "dau", "--over", "'last 7 c"], "last 7 complete days"),
        (["report", "01_ad_revenue", "-p", "over", "mon"], "month\\ to\\ date"),
    ],
)
def test_bash_itself_completes_a_word(words: list[str], reply: str) -> None:
    """Bash completes with the printed script. Blanks are escaped, unless the word began with a quote."""
    script = """eval "$0"
gamelens="$1" COMP_WORDS=(gamelens "${@:2}") COMP_CWORD=$(($# - 1))
_gamelens_completion "$gamelens"
printf '%s' "${COMPREPLY[@]}"
"""
    source = run_here("completion", "bash").stdout
    gamelens = Path(sys.executable).with_name("gamelens")
    result = subprocess.run(["bash", "-c", script, source, gamelens, *words], capture_output=True, text=True)
    assert result.stdout == reply, result.stderr


def test_a_tab_leaves_the_heavy_libraries_alone() -> None:
    """Completion imports neither pandas nor numpy, pyarrow, httpx, keyring or rich."""
    code = "import sys, json, gamelens.__main__, gamelens.cli, gamelens.catalog; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {"pandas", "numpy", "pyarrow", "httpx", "keyring", "rich"}.isdisjoint(json.loads(loaded))
