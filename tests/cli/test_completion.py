"""What a shell is offered after a TAB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.cli import cli
from gamelens.simulator import scenario_names
from support.command_process import run


def offered(*words: str) -> list[str]:
    *before, incomplete = words
    shell = BashComplete(cli, {}, "gamelens", "_GAMELENS_COMPLETE")
    return [it.value for it in shell.get_completions(before, incomplete)]


def test_metrics_come_first() -> None:
    assert offered("query", "") == list(METRICS)
    assert offered("plan", "ilrd_r") == ["ilrd_revenue"]


def test_dimensions_follow_by_however_many() -> None:
    assert set(offered("query", "revenue", "--by", "")) == {"game", "studio", *DIMENSIONS}
    assert offered("query", "revenue", "--by", "game", "platf") == ["platform"]


def test_nothing_follows_a_metric_alone() -> None:
    assert offered("query", "revenue", "plat") == []


def test_sizes_of_buckets() -> None:
    assert offered("query", "revenue", "--every", "") == ["day", "week", "month", "all"]


@pytest.mark.parametrize("command", ["simulate", "demo"])
def test_scenarios(command: str) -> None:
    assert offered(command, "--scenario", "") == scenario_names()


def test_notebooks_of_ours() -> None:
    assert offered("report", "01") == ["01_ad_revenue"]
    assert {"00_tour", "02_retention", "03_health"} <= {*offered("report", "0")}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_the_command(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert (done.exit_code, f"_GAMELENS_COMPLETE={shell}_complete" in done.stdout) == (0, True)


def test_an_unknown_shell_is_wrong_usage() -> None:
    assert CliRunner(env={"SHELL": "/bin/ksh"}).invoke(cli, ["completion"]).exit_code == 2


def test_bash_itself_completes_a_metric() -> None:
    script = """eval "$0"
COMP_WORDS=(gamelens query reve) COMP_CWORD=2
_gamelens_completion "$1"
echo "${COMPREPLY[@]}"
"""
    source = run("completion", "bash").stdout
    gamelens = Path(sys.executable).with_name("gamelens")
    done = subprocess.run(["bash", "-c", script, source, gamelens], capture_output=True, text=True)
    assert done.stdout.split() == ["revenue"], done.stderr


def test_a_tab_leaves_the_heavy_libraries_alone() -> None:
    code = "import sys, json, gamelens.__main__, gamelens.cli, gamelens.catalog; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert {"pandas", "numpy", "pyarrow", "httpx", "keyring", "rich"}.isdisjoint(json.loads(loaded))
