"""Slots of the rate limit, shared as files by all processes of one user."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gamelens.client.limits.shared_slots import LONGEST_REST_S, FileSlot, SharedSlots, Slot


def pair(folder: Path) -> tuple[FileSlot, FileSlot]:
    """Return one slot as two processes see it."""
    return FileSlot(folder / "slot"), FileSlot(folder / "slot")


def test_a_taken_slot_cannot_be_taken_again(tmp_path: Path) -> None:
    """A taken slot is refused to other processes and to its holder."""
    first, second = pair(tmp_path)
    assert first.take(1.0)
    assert not second.take(1.0)
    assert not first.take(1.0)


def test_a_freed_slot_rests_until_its_time(tmp_path: Path) -> None:
    """A slot freed until 2.0 s cannot be taken at 1.9 s by any process."""
    first, second = pair(tmp_path)
    assert first.take(1.0)
    first.free(until=2.0)
    assert [slot.take(1.9) for slot in (first, second)] == [False, False]
    assert second.take(2.0)


DYING = """
import os, signal, sys
from pathlib import Path
from gamelens.client.limits.shared_slots import FileSlot
slot = FileSlot(Path(sys.argv[1]))
assert slot.take(1.0)
slot.mark(2.0)
os.kill(os.getpid(), signal.SIGTERM if os.name == 'nt' else signal.SIGKILL)
"""


def test_a_marked_slot_rests_after_its_holder_is_killed(tmp_path: Path) -> None:
    """The request was sent, so the service counts it although its process was killed."""
    subprocess.run([sys.executable, "-c", DYING, tmp_path / "slot"], check=False)
    slot = FileSlot(tmp_path / "slot")
    assert (slot.take(1.9), slot.take(2.0)) == (False, True)


def test_a_time_written_before_a_restart_is_ignored(tmp_path: Path) -> None:
    """The monotonic clock restarts with the machine, so times far ahead are ignored."""
    first, second = pair(tmp_path)
    assert first.take(50_000.0)
    first.free(until=50_001.0)
    assert second.take(50_001.0 - LONGEST_REST_S)


@pytest.mark.parametrize("content", [b"", b"half", b"\xff" * 8])
def test_a_file_without_a_time_is_a_free_slot(tmp_path: Path, content: bytes) -> None:
    """A slot file that is empty or damaged is a free slot."""
    (tmp_path / "slot").write_bytes(content)
    assert FileSlot(tmp_path / "slot").take(1.0)


def test_a_slot_without_a_file_is_an_error(tmp_path: Path) -> None:
    """A slot whose path is a folder raises `OSError`."""
    (tmp_path / "slot").mkdir()
    with pytest.raises(OSError, match="slot"):
        FileSlot(tmp_path / "slot")


def test_a_slot_of_this_process_rests_too() -> None:
    """A slot without a file follows the same rules."""
    slot = Slot()
    assert slot.take(1.0)
    assert not slot.take(1.0)
    slot.free(until=2.0)
    assert (slot.take(1.9), slot.take(2.0)) == (False, True)


def test_the_files_name_neither_key_nor_service(tmp_path: Path) -> None:
    """The ten slot files are named by a digest of key and address."""
    SharedSlots("https://a.example 0123456789abcdef", folder=tmp_path, clock=float)
    names = [file.name for file in tmp_path.iterdir()]
    assert len(names) == 10
    assert not any("example" in name or "0123456789abcdef" in name for name in names)


@pytest.mark.skipif(os.name == "nt", reason="modes are of another kind there")
def test_the_files_are_for_their_user_only(tmp_path: Path) -> None:
    """Slot files have mode 0600 in a folder of mode 0700."""
    SharedSlots("key", folder=tmp_path / "slots", clock=float)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "slots").iterdir()}
    assert (stat.S_IMODE((tmp_path / "slots").stat().st_mode), modes) == (0o700, {0o600})


def chosen_folder(**environment: str) -> str:
    """Return folder and mode that a process with *environment* picks, or its error."""
    script = (
        "from gamelens.client.limits.shared_slots import runtime_folder\n"
        "try:\n    folder = runtime_folder()\n    print(folder, oct(folder.stat().st_mode)[-3:])\n"
        "except OSError as error:\n    print(error)\n"
    )
    unset = {"GAMELENS_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([sys.executable, "-c", script], env=inherited | environment, capture_output=True, text=True)
    return done.stdout.strip() + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other places")
def test_the_slots_are_in_the_runtime_directory(tmp_path: Path) -> None:
    """On Linux the slots are in XDG_RUNTIME_DIR."""
    tmp_path.chmod(0o700)
    assert chosen_folder(XDG_RUNTIME_DIR=str(tmp_path)) == f"{tmp_path}/gamelens 700"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other places")
def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A link in a temporary directory, where every user may write, is not followed."""
    (tmp_path / "elsewhere").mkdir()
    for name in ("gamelens", f"gamelens-{os.getuid()}"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    tmp_path.chmod(0o700)
    answer = chosen_folder(XDG_RUNTIME_DIR=str(tmp_path), TMPDIR=str(tmp_path))
    assert answer == f"[Errno 1] belongs to another user: '{tmp_path}/gamelens-{os.getuid()}'"
