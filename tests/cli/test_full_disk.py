"""Commands that write to a full disk say so in one line, and leave no part of a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.command_process import GAMELENS, RunCommand, run
from support.game_events import event
from support.notebook_files import code_cell, notebook_of, write_notebook
from support.raw_exports import wrapped, write_lines
from support.small_disk import fill, small_disk

NO_ROOM = "No space left on device. Free some space, or name a place on another disk"
FULL = Path("/dev/full")
PLAY = ("simulate", "--scenario", "small", "--players", "150", "--days", "6")
QUERY = ("query", "event_count", "--over", "last 3 complete days")
needs_full_device = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.mark.shown_by(1)
@needs_full_device
@pytest.mark.parametrize(
    "words", [("--help",), ("query", "--help"), ("completion", "bash"), ("sandbox", "list", "--json")]
)
def test_output_that_finds_no_room_ends_in_a_sentence(words: tuple[str, ...]) -> None:
    """Standard output may be a file too."""
    with FULL.open("wb") as full:
        done = subprocess.run([*GAMELENS, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"Error: the output cannot be written: {NO_ROOM}\n")


@pytest.mark.shown_by(2)
@needs_full_device
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "option", "name"),
    [
        (QUERY, "--out", "t.csv"),
        (QUERY, "--out", "t.parquet"),
        (("health",), "--markdown", "h.md"),
        (("report", "{notebook}"), "--out", "page.html"),
        ((*PLAY, "--export", "raw-json", "{own}/raw"), "--ledger", "ledger.parquet"),
    ],
)
def test_a_file_that_finds_no_room_is_named(
    run_command: RunCommand, tmp_path: Path, words: tuple[str, ...], option: str, name: str
) -> None:
    """By the path that the user gave; a device needs no disk of its own."""
    notebook = write_notebook(notebook_of(code_cell("print('x' * 200_000)")), tmp_path / "ours.ipynb")
    (tmp_path / name).symlink_to(FULL)
    done = run_command(*(word.format(own=tmp_path, notebook=notebook) for word in words), option, tmp_path / name)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].endswith(f"{tmp_path / name} cannot be written: {NO_ROOM}")


COMMANDS = {
    "report": (("report", "{notebook}", "--out", "{disk}/page.html"), "0", "{disk}/page.html"),
    "table": ((*QUERY, "--out", "{disk}/t.csv"), "0", "{disk}/t.csv"),
    "answers": ((*QUERY, "--record", "{disk}/answers"), "0", "{disk}/answers"),
    "health": (("health", "--markdown", "{disk}/h.md"), "0", "{disk}/h.md"),
    "morning": (("morning", "--to", "file:{disk}/m.md"), "0", "{disk}/m.md"),
    "raw export": ((*PLAY, "--export", "raw-json", "{disk}/raw"), "64k", "{disk}/raw"),
    "export of tables": ((*PLAY, "--export", "event-parquet", "{disk}/raw"), "64k", "{disk}/raw"),
    "ledger": ((*PLAY, "--export", "raw-json", "{own}/raw", "--ledger", "{disk}/l.parquet"), "64k", "{disk}/l.parquet"),
    "lake": ((*PLAY, "--into", "{disk}/state"), "256k", "{disk}/state"),
    "import": (("lake", "import", "{lines}", "--state", "{disk}/state"), "0", "{disk}/state"),
    "import that begins": (("lake", "import", "{lines}", "--state", "{disk}/state"), "500k", "{disk}/state"),
    "Delta table": (("lake", "export", "--state", "{lake}", "--out", "{disk}/tables"), "40k", "{disk}/tables"),
    "sandbox": (("sandbox", "up", "--state", "{disk}/state"), "0", "{disk}/state"),
    "ready file": (
        ("sandbox", "up", "--state", "{own}/state", "--ready", "{disk}/ready.json"),
        "0",
        "{disk}/ready.json",
    ),
}
"""Commands that write to a disk with a little room, or none, and what they cannot write."""


@pytest.mark.shown_by(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_fills_a_disk_says_so(
    run_command: RunCommand, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """One line names the file or folder and what to do, and no part of a file is left."""
    words, room, named = COMMANDS[name]
    with small_disk(tmp_path / "disk", "64k" if room == "0" else room) as disk:
        if room == "0":
            fill(disk)
        places = {"disk": disk, "own": tmp_path}
        if name == "report":
            places["notebook"] = write_notebook(notebook_of(code_cell("print(1)")), tmp_path / "ours.ipynb")
        if "{lines}" in words:
            rows = (wrapped(event(user_id=f"player {number}")) for number in range(20_000))
            places["lines"] = write_lines(tmp_path / "lines.gz", *rows)
        if "{lake}" in words:
            pytest.importorskip("deltalake")
            places["lake"] = request.getfixturevalue("sandbox").folder / "state"
        given = [word.format(**places) for word in words]
        if given[:2] == ["sandbox", "up"]:  # it takes over the signals of its process
            status, out, error = (done := run(*given)).returncode, done.stdout, done.stderr
        else:
            status, out, error = (here := run_command(*given)).exit_code, here.stdout, here.stderr
        assert status == 1
        line = (error or out).splitlines()[-1]
        assert named.format(**places) in line
        assert "No space left on device" in line
        assert "Free " in line
        left = [path.name for path in disk.rglob("*") if path.is_file() and "/state/" not in str(path)]
        assert [each for each in left if each != "others" and not each.startswith("0000")] == []
