"""First contact: `pip install gamelens` alone, or without the sandbox, and what each step then says."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.base_install import run_installed

INSTALL = "pip install 'gamelens[lab,sandbox]'"


def test_connect_without_a_key_is_one_sentence_that_ends_in_one_command(tmp_path: Path) -> None:
    """Nothing is announced that cannot happen, and following the command is enough."""
    code = "import gamelens as gl\ntry: gl.connect()\nexcept gl.GamelensError as error: print(error)"
    done = run_installed(tmp_path, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("no API key is set, and the sandbox that answers without one needs ")
    assert line.endswith(f"set GAMELENS_API_KEY to query your own games, or run {INSTALL}")
    assert not (tmp_path / "state").exists()


@pytest.mark.wide
def test_demo_names_the_same_command(tmp_path: Path) -> None:
    """`gl.demo()` cannot do without a sandbox."""
    code = "import gamelens as gl\ntry: gl.demo()\nexcept gl.GamelensError as error: print(error)"
    done = run_installed(tmp_path, "-c", code, extras=("cli",))
    assert done.stdout.startswith("a sandbox needs ")
    assert done.stdout.endswith(f"not installed here: {INSTALL}\n")


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("extras", "command"),
    [
        ((), "demo"),
        (("cli",), "demo"),
        (("cli",), "query revenue --over yesterday"),
        (("cli",), "sandbox up --state x"),
    ],
)
def test_every_command_names_the_same_one(tmp_path: Path, extras: tuple[str, ...], command: str) -> None:
    """One line, whatever is missing first."""
    done = run_installed(tmp_path, "-m", "gamelens", *command.split(), extras=extras, NO_COLOR="1")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith(f"{INSTALL}\n")


@pytest.mark.wide
def test_doctor_does_not_promise_a_sandbox_that_is_not_installed(tmp_path: Path) -> None:
    """It says what is missing and what to run."""
    done = run_installed(tmp_path, "-m", "gamelens", "doctor", extras=("cli",))
    lines = [line for line in done.stdout.splitlines() if "  sandbox  " in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning")
    assert INSTALL in lines[0]
    assert "would be started" not in done.stdout


def test_what_needs_an_extra_names_it(tmp_path: Path) -> None:
    """Figures, widgets, sentences and lakes, each where a script first meets it."""
    code = """
import pandas as pd
import gamelens as gl
from gamelens import notebook

frame = pd.DataFrame({"timestamp": pd.to_datetime(["2026-11-20"]), "dau": [3]})
for call in (
    lambda: notebook.charts,
    lambda: notebook.widgets,
    lambda: notebook.conclusions("said"),
    lambda: gl.open_lake("lake"),
    lambda: frame.lens.plot(),
):
    try:
        print("no error", call())
    except ImportError as error:
        print(error)
"""
    done = run_installed(tmp_path, "-c", code)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    assert [line for line in lines if not line.endswith(INSTALL)] == []
