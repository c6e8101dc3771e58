"""The pytest plugin, in a repository of somebody else's."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import nbformat
import pytest

pytest_plugins = ["pytester"]

PLUGIN = ["-p", "gamelens.local.pytest_plugin"]
README = (Path(__file__).parents[2] / "README.md").read_text()
TESTS = """
import os
import pathlib
import pytest

@pytest.mark.parametrize("turn", range(4))
def test_it(turn, gamelens_sandbox, worker_id):
    assert os.environ["GAMELENS_METRICS_URL"] == gamelens_sandbox.metrics_url
    assert [game.title for game in gamelens_sandbox.organisations[0].games][:1] == ["Tile Harbor"]
    pathlib.Path(f"{worker_id}.pid").write_text(str(gamelens_sandbox.pid))
"""
NOTEBOOK = """
import gamelens as gl
days = gl.connect().query("user_unique", over="last 3 complete days")
assert len(days) == 3
"""


def printed(mark: str) -> str:
    """The code of the README that holds *mark*."""
    return next(code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if mark in code)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3] if Path("/proc").exists() else True


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other people's plugins take seconds to load, and ours is named."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.mark.slow
def test_workers_and_notebooks_share_a_sandbox_that_ends_with_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAMELENS_REPLAY", raising=False)
    (pytester.path / "few.toml").write_text('extends = "small"\nname = "few"\nplayers = 400\ndays = 10\n')
    pytester.makeini("[pytest]\ngamelens_scenario = few.toml")
    pytester.makeconftest(printed("sandbox_of"))
    pytester.makepyfile(test_it=TESTS, test_players=printed("gamelens_client"))
    cells = [nbformat.v4.new_code_cell(NOTEBOOK)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), pytester.path / "page.ipynb")
    done = pytester.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-p", "nbmake", "-n", "2", "--nbmake")
    done.assert_outcomes(passed=6)
    pids = {int(path.read_text()) for path in pytester.path.glob("*.pid")}
    assert len(pids) == 1
    assert not is_alive(pids.pop())


def test_nobody_pays_who_does_not_ask(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys
        def test_it():
            assert "gamelens.local.pytest_plugin" in sys.modules
            assert not {"pandas", "httpx", "gamelens.local.demo", "gamelens.client", "filelock"} & {*sys.modules}
    """)
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_scenario_that_is_none_is_refused_and_leaves_nothing_behind(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    pytester.makeini("[pytest]\ngamelens_scenario = smal")
    pytester.makepyfile("def test_it(gamelens_client): ...")
    told = pytester.runpytest_subprocess(*PLUGIN)
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["*smal*"])
    assert not [path for path in temporary.iterdir() if path.name.startswith("gamelens-")]


def test_pytest_finds_the_plugin_by_its_name() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"gamelens": PLUGIN[1]}
