"""Slots that all processes of one user share."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gamelens.client.connection.shared_slots import LONGEST_REST_S, FileSlot, SharedSlots, Slot


def pair(folder: Path) -> tuple[FileSlot, FileSlot]:
    """One slot as two processes see it."""
    return FileSlot(folder / "slot"), FileSlot(folder / "slot")


def test_what_one_holds_nobody_else_takes(tmp_path: Path) -> None:
    ours, theirs = pair(tmp_path)
    assert ours.take(1.0)
    assert not theirs.take(1.0)
    assert not ours.take(1.0)


def test_what_is_freed_rests(tmp_path: Path) -> None:
    ours, theirs = pair(tmp_path)
    assert ours.take(1.0)
    ours.free(until=2.0)
    assert [slot.take(1.9) for slot in (ours, theirs)] == [False, False]
    assert theirs.take(2.0)


DYING = """
import os, signal, sys
from pathlib import Path
from gamelens.client.connection.shared_slots import FileSlot
slot = FileSlot(Path(sys.argv[1]))
assert slot.take(1.0)
slot.mark(2.0)
os.kill(os.getpid(), signal.SIGTERM if os.name == 'nt' else signal.SIGKILL)
"""


def test_what_its_holder_marked_rests_even_if_the_holder_is_killed(tmp_path: Path) -> None:
    """Its request was sent: the service counts it all the same."""
    subprocess.run([sys.executable, "-c", DYING, tmp_path / "slot"], check=False)
    slot = FileSlot(tmp_path / "slot")
    assert (slot.take(1.9), slot.take(2.0)) == (False, True)


def test_what_was_written_before_a_restart_does_not_count(tmp_path: Path) -> None:
    """The clock that all processes share begins anew with the machine."""
    ours, theirs = pair(tmp_path)
    assert ours.take(50_000.0)
    ours.free(until=50_001.0)
    assert theirs.take(50_001.0 - LONGEST_REST_S)


@pytest.mark.parametrize("content", [b"", b"half", b"\xff" * 8])
def test_a_file_that_holds_no_moment_is_a_free_slot(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "slot").write_bytes(content)
    assert FileSlot(tmp_path / "slot").take(1.0)


def test_where_there_can_be_no_file_there_is_no_shared_slot(tmp_path: Path) -> None:
    (tmp_path / "slot").mkdir()
    with pytest.raises(OSError, match="slot"):
        FileSlot(tmp_path / "slot")


def test_a_slot_of_this_process_rests_too() -> None:
    slot = Slot()
    assert slot.take(1.0)
    assert not slot.take(1.0)
    slot.free(until=2.0)
    assert (slot.take(1.9), slot.take(2.0)) == (False, True)


def test_the_files_name_neither_key_nor_service(tmp_path: Path) -> None:
    SharedSlots("https://a.example 0123456789abcdef", folder=tmp_path, clock=float)
    names = [file.name for file in tmp_path.iterdir()]
    assert len(names) == 10
    assert not any("example" in name or "0123456789abcdef" in name for name in names)


@pytest.mark.skipif(os.name == "nt", reason="modes are of another kind there")
def test_the_files_are_for_their_user_only(tmp_path: Path) -> None:
    SharedSlots("key", folder=tmp_path / "slots", clock=float)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "slots").iterdir()}
    assert (stat.S_IMODE((tmp_path / "slots").stat().st_mode), modes) == (0o700, {0o600})


def chosen(**environment: str) -> str:
    """The folder a process picks that is started with *environment*, and how closed it is; or what it raises."""
    script = (
        "from gamelens.client.connection.shared_slots import runtime_folder\n"
        "try:\n    folder = runtime_folder()\n    print(folder, oct(folder.stat().st_mode)[-3:])\n"
        "except OSError as error:\n    print(error)\n"
    )
    unset = {"GAMELENS_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([sys.executable, "-c", script], env=kept | environment, capture_output=True, text=True)
    return done.stdout.strip() + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other places")
def test_the_slots_lie_in_the_runtime_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert chosen(XDG_RUNTIME_DIR=str(tmp_path)) == f"{tmp_path}/gamelens 700"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other places")
def test_a_folder_that_is_no_folder_of_ours_is_not_used(tmp_path: Path) -> None:
    """Anybody may put something into a temporary directory."""
    (tmp_path / "elsewhere").mkdir()
    for name in ("gamelens", f"gamelens-{os.getuid()}"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    tmp_path.chmod(0o700)
    answer = chosen(XDG_RUNTIME_DIR=str(tmp_path), TMPDIR=str(tmp_path))
    assert answer == f"[Errno 1] belongs to somebody else: '{tmp_path}/gamelens-{os.getuid()}'"
