"""Commands that write to a full disk say so in one line, and leave no file that looks whole."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_process import GAMELENS, RunCommand
from support.full_disk import fill, small_disk
from support.notebook_files import code_cell, notebook_of, write_notebook

PLAY = ("simulate", "--scenario", "small", "--players", "40", "--days", "3")
COMMANDS = {
    "report": ("report", "{notebook}", "--out", "{disk}/page.html"),
    "table": ("query", "event_count", "--over", "last 3 complete days", "--out", "{disk}/table.csv"),
    "Parquet": ("query", "event_count", "--over", "last 3 complete days", "--out", "{disk}/table.parquet"),
    "health": ("health", "--markdown", "{disk}/health.md"),
    "raw export": (*PLAY, "--export", "raw-json", "{disk}/raw"),
    "export of tables": (*PLAY, "--export", "event-parquet", "{disk}/tables"),
    "ledger": (*PLAY, "--export", "raw-json", "{own}/raw", "--ledger", "{disk}/ledger.parquet"),
    "lake": (*PLAY, "--into", "{disk}/state"),
    "sandbox": ("sandbox", "up", "--state", "{disk}/state"),
    "ready file": ("sandbox", "up", "--state", "{own}/state", "--ready", "{disk}/ready.json", "--stop-after-idle", "1"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a full disk."""
    with small_disk(tmp_path / "disk", "64k") as disk:
        fill(disk)
        yield disk


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_writes_to_a_full_disk_says_so(
    run_command: RunCommand, disk: Path, tmp_path: Path, name: str
) -> None:
    """The line names the file and what to do, and no part of a file is left under its name."""
    notebook = write_notebook(notebook_of(code_cell("print('x' * 200_000)")), tmp_path / "ours.ipynb")
    words = [word.format(disk=disk, own=tmp_path, notebook=notebook) for word in COMMANDS[name]]
    done = run_command(*words)
    assert done.exit_code == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert str(disk) in line
    assert "No space left on device" in line
    assert "Free " in line
    assert not [path for path in disk.glob("*.*") if path.is_file()]


@pytest.mark.parametrize(
    "words", [("--help",), ("query", "--help"), ("sandbox", "list", "--json"), ("completion", "bash")]
)
def test_output_that_goes_to_a_full_disk_ends_in_a_sentence(disk: Path, words: tuple[str, ...]) -> None:
    """Standard output may be a file too."""
    with (disk / "printed").open("wb") as file:
        done = subprocess.run([*GAMELENS, *words], stdout=file, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "No space left on device. Free some space" in done.stderr
    assert "Traceback" not in done.stderr
