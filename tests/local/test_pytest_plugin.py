"""The pytest plugin in a project of its own: fixtures, shared sandbox, cost when unused."""

from __future__ import annotations

import os
import re
import time
import tomllib
from pathlib import Path

import nbformat
import pytest

pytest_plugins = ["pytester"]

ENDS_WITHIN_S = 10
PLUGIN = ["-p", "gamelens.local.pytest_plugin"]
ROOT = Path(__file__).parents[2]
README = (ROOT / "src" / "gamelens" / "local" / "README.md").read_text()
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


def readme_code(mark: str) -> str:
    """Return the code block of the local room's README that holds *mark*."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return next(code for code in blocks if mark in code)


def is_alive(pid: int) -> bool:
    """Return whether process *pid* exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3] if Path("/proc").exists() else True


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no installed plugins: they take seconds, and the tests name those they need."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.mark.wide
@pytest.mark.slow
def test_workers_and_notebooks_share_a_sandbox_that_ends_with_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two xdist workers and a notebook use one sandbox process, which ends with the run."""
    monkeypatch.delenv("GAMELENS_REPLAY", raising=False)
    (pytester.path / "few.toml").write_text('extends = "small"\nname = "few"\nplayers = 40\ndays = 8\n')
    pytester.makeini("[pytest]\ngamelens_scenario = few.toml")
    pytester.makeconftest(readme_code("sandbox_for"))
    pytester.makepyfile(test_it=TESTS, test_players=readme_code("gamelens_client"))
    cells = [nbformat.v4.new_code_cell(NOTEBOOK)]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    nbformat.write(notebook, pytester.path / "page.ipynb")  # type: ignore[no-untyped-call]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    lean = ["-p", "tests.support.lean_start"]  # else nbmake takes seconds more in each of three processes
    result = pytester.runpytest_subprocess(*lean, *PLUGIN, "-p", "xdist", "-p", "nbmake", "-n", "2", "--nbmake")
    result.assert_outcomes(passed=6)
    pids = {int(path.read_text()) for path in pytester.path.glob("*.pid")}
    assert len(pids) == 1
    pid, deadline = pids.pop(), time.monotonic() + ENDS_WITHIN_S
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.wide
def test_the_plugin_imports_nothing_heavy_until_a_fixture_is_requested(pytester: pytest.Pytester) -> None:
    """A run without gamelens fixtures imports neither pandas nor HTTP nor the client."""
    pytester.makepyfile("""
        import sys
        def test_it():
            assert "gamelens.local.pytest_plugin" in sys.modules
            assert not {"pandas", "httpx", "gamelens.local.demo", "gamelens.client", "filelock"} & {*sys.modules}
    """)
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.slow
def test_an_unknown_scenario_is_refused_and_leaves_no_files(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt scenario is an error of the test that names it, and no folder stays behind."""
    temporary = pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    pytester.makeini("[pytest]\ngamelens_scenario = smal")
    pytester.makepyfile("def test_it(gamelens_client): ...")
    result = pytester.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*smal*"])
    assert not [path for path in temporary.iterdir() if path.name.startswith("gamelens-")]


def test_pytest_finds_the_plugin_by_its_name() -> None:
    """The package declares one entry point of pytest, `gamelens`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"gamelens": PLUGIN[1]}
