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
PLANTED = {
    "ruff": ("errors.py", f'def branches(x: int) -> int:\n    """Return x."""\n{BRANCHES}    return x\n', "C901"),
    "lint-imports": ("errors.py", "\nfrom gamelens.catalog import METRICS\n", "BROKEN"),
    "deptry": ("errors.py", "\nimport requests\n", "requests"),
}
"""File, text at its end, and what the check then says."""
COMMANDS = {
    "ruff": ["check", "src"],
    "lint-imports": ["--no-logo", "--no-cache"],
    "deptry": ["src"],
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_planted_violation_is_found(check: str, tmp_path: Path) -> None:
    """By the check with the settings of pyproject.toml."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    name, text, says = PLANTED[check]
    with (tmp_path / "src" / "gamelens" / name).open("a", encoding="utf-8") as file:
        file.write(text)
    command = [str(Path(sys.executable).with_name(check)), *COMMANDS[check]]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert says in result.stdout + result.stderr
