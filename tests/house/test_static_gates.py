"""Static checks fail on what they are for: a planted violation of each, in a copy with our settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from house.source import ROOT

pytestmark = pytest.mark.slow

BRANCHES = "".join(f"    if x == {number}:\n        return {number}\n" for number in range(13))
PLANTED = f"""
import requests
from gamelens.catalog import METRICS


def branches(x: int) -> int:
    \"\"\"Return x.\"\"\"
{BRANCHES}    return x
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with what each check refuses in `errors.py`."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    with (folder / "src" / "gamelens" / "errors.py").open("a", encoding="utf-8") as file:
        file.write(PLANTED)
    return folder


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ruff check src", "C901"),
        ("lint-imports --no-logo --no-cache", "gamelens.errors -> gamelens.catalog"),
        ("deptry src", "requests"),
    ],
)
def test_a_planted_violation_is_found(copy: Path, command: str, says: str) -> None:
    """By the check with the settings of pyproject.toml."""
    name, *arguments = command.split()
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    result = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert says in result.stdout + result.stderr
