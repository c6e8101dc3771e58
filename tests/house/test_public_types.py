"""Public types as mypy sees them in a user's project, and the marker that ships them.

What every public name takes and returns is in `snapshots/signatures.txt`.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow
SCRIPT = """\
import asyncio
import gamelens as gl
import pandas as pd
from gamelens import dim, local, raw_events

lens: gl.Client = gl.connect(cache=False)
frame: pd.DataFrame = lens.query(
    ["revenue", "dau"], by="game", over="last 7 days", where=dim.platform == "ios", top={"game": 5}
)
plan: gl.Plan = lens.plan("revenue", over=gl.Interval.parse("2026-11-01/P7D"))
numbers: tuple[int, float] = (plan.requests, plan.seconds)
names: list[str] = lens.metrics() + lens.dimension_values("platform")
joined: gl.Joined = gl.join(frame, "spend.csv", on={"timestamp": "day"}, how="left")
lake: gl.LakeClient = gl.open_lake(local.sample_lake("lake", scenario="small"))
found: gl.Reconciliation = gl.reconcile(lens, lake, "revenue", by="country_code", over="yesterday")
funnel: pd.DataFrame = raw_events.funnel(lake, ["Start", "Complete"], "yesterday")

async def awaited() -> gl.Interval:
    async with gl.AsyncClient(pace="adaptive") as client:
        rows: pd.DataFrame = await client.retention([1, 7], over="last week", by="game")
        print(rows)
        return await client.available()

try:
    print(asyncio.run(awaited()).length.days, joined.report.matched_share, found.explained_share)
except gl.BadQuery as error:
    print(error.field, error.allowed)
except gl.PartialResult as partial:
    print(partial.gaps)
"""
MISTAKES = {
    "a wrong type of element": "gl.Client().metrics().append(1)",
    "a missing argument": "gl.Client().query('revenue')",
    "an unknown argument": "gl.Client().query('revenue', over='2026-11-01', untill='2026-11-02')",
    "a literal that is not allowed": "gl.Client().query('revenue', over='2026-11-01', every='hour')",
    "an unknown pace": "gl.Client(pace='fast')",
    "an unknown setting": "gl.connect(cahce=False)",
    "a setting of another service": "gl.demo('small', api_key='…')",
    "a wrong type of answer": "x: int = gl.Client().available()",
    "a coroutine not awaited": "gl.AsyncClient().available().start",
    "an unknown field of an error": "gl.Truncated(1).limits",
    "an unknown name": "gl.no_such_name",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """Return file and line of each error that mypy finds outside this project."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "mistakes.py").write_text("\n".join(["import gamelens as gl", *MISTAKES.values()]))
    cache = ROOT / ".cache" / "mypy-user"  # of these options: mypy reads the stubs of pandas once, not in every run
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}"]
    files = ["script.py", "mistakes.py"]
    result = subprocess.run([*command, *files], capture_output=True, text=True, cwd=folder, check=False)
    lines = [line.split(":") for line in result.stdout.splitlines() if ": error:" in line]
    return [(line[0], int(line[1])) for line in lines]


@pytest.mark.slow
def test_a_user_script_passes_mypy_strict(errors: list[tuple[str, int]]) -> None:
    """A script of the usual calls has no error under `mypy --strict`."""
    assert [line for file, line in errors if file == "script.py"] == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mypy_finds_each_mistake(errors: list[tuple[str, int]], mistake: str) -> None:
    """Negative control: types that accept everything would pass the other test as well."""
    assert ("mistakes.py", 2 + list(MISTAKES).index(mistake)) in errors


def test_the_types_are_shipped() -> None:
    """The wheel takes the whole package folder along, `py.typed` included."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/gamelens"]
    assert not {"exclude", "only-include"} & set(wheel)
    assert (ROOT / "src" / "gamelens" / "py.typed").read_bytes() == b""
