"""A sandbox on a full disk starts and answers; only new events are refused."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.state.state_directory import spare_room
from gamelens.sandbox.storage.inbox import free_bytes
from support.app_requests import call
from support.game_events import event
from support.killable_sandbox import start_process, submit
from support.sandbox_stage import Stage
from support.small_disk import fill, small_disk

MIB = 1 << 20


@pytest.fixture(name="small_disk")
def mounted_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 8 MiB, where the machine allows that."""
    with small_disk(tmp_path / "disk", "8m") as disk:
        yield disk


def test_a_sandbox_starts_on_a_full_disk_and_refuses_only_events(small_disk: Path) -> None:
    """A start without a free byte makes its own room: counts are answered, new events get 503, nothing is lost.

    Wire 1.7, Submitting events.
    """
    stage = Stage(small_disk / "state", keep_free=2)
    assert stage.submit([event()]).status_code == 200
    stage.sandbox.close()
    fill(small_disk)
    restarted = Stage(small_disk / "state", keep_free=2)
    try:
        assert restarted.sandbox.summary()["accepted"] == 1
        assert restarted.get("interval").status_code == 200
        assert restarted.submit([event(user_id="late")]).status_code == 503
        assert restarted.sandbox.summary()["accepted"] == 1
    finally:
        restarted.sandbox.close()


def test_a_start_without_spare_room_says_what_to_do(small_disk: Path) -> None:
    """A full disk on which no earlier start kept room refuses the start with the reason, and starts once it has room.

    Earlier versions kept none.
    """
    stage = Stage(small_disk / "state", keep_free=2)
    assert stage.submit([event()]).status_code == 200
    stage.sandbox.close()
    (small_disk / "state" / "spare").unlink()
    fill(small_disk)
    with pytest.raises(Refused, match="Free 1 MB on its disk, and start again"):
        Stage(small_disk / "state", keep_free=2)
    with (small_disk / "others").open("r+b") as others:
        others.truncate((small_disk / "others").stat().st_size - MIB)
    restarted = Stage(small_disk / "state", keep_free=2)
    assert restarted.sandbox.summary()["accepted"] == 1
    restarted.sandbox.close()


def test_a_disk_that_cannot_be_written_refuses_the_start(small_disk: Path) -> None:
    """A read-only disk refuses the start with the reason, and changes nothing."""
    Stage(small_disk / "state").sandbox.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(Refused, match=r"Read-only file system.*Check that its disk is intact and writable"):
        Sandbox(SandboxOptions(state=small_disk / "state"))


def test_a_lake_that_cannot_be_written_is_not_healthy(small_disk: Path) -> None:
    """A read-only folder `lake` answers 503 with the reason, and 200 again once it can be written.

    Wire 5.1, Control API.
    """
    stage = Stage(small_disk / "state", keep_free=0)
    lake, app = small_disk / "state" / "lake", control_app(stage.sandbox, token="token")
    try:
        assert call(app, "GET", "/token/health").status_code == 200
        subprocess.run(["mount", "--bind", str(lake), str(lake)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(lake)], check=True)
        answer = call(app, "GET", "/token/health")
        subprocess.run(["umount", str(lake)], check=True)
        assert answer.status_code == 503
        assert f"{lake} cannot be written: Read-only file system" in answer.text
        assert call(app, "GET", "/token/health").status_code == 200
        assert list(lake.iterdir()) == []
    finally:
        stage.sandbox.close()


def test_the_spare_room_is_kept_while_there_is_enough(state: Path) -> None:
    """A start on a disk with room keeps 1 MiB aside, once."""
    state.mkdir(exist_ok=True)
    with spare_room(state):
        assert not (state / "spare").exists()
    first = (state / "spare").stat()
    with spare_room(state):
        assert (state / "spare").stat().st_size == MIB
    assert (first.st_size, first.st_mtime_ns) == (MIB, (state / "spare").stat().st_mtime_ns)


@pytest.mark.parametrize("leads_to", ["file", "nothing", "pipe"])
def test_a_spare_that_is_not_its_own_file_is_not_filled(leads_to: str, state: Path, tmp_path: Path) -> None:
    """A link may lead to a file of somebody."""
    other = tmp_path / "other"
    if leads_to == "pipe":
        os.mkfifo(state / "spare")
    else:
        (state / "spare").symlink_to(other)
    if leads_to == "file":
        other.write_bytes(b"precious")
    with spare_room(state):
        pass
    assert other.read_bytes() == b"precious" if leads_to == "file" else not other.exists()
    assert not stat.S_ISREG((state / "spare").lstat().st_mode)


def test_a_spare_that_is_not_its_own_file_is_not_emptied(small_disk: Path, tmp_path: Path) -> None:
    """Also when its disk is full."""
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    (small_disk / "spare").symlink_to(other)
    fill(small_disk)
    with spare_room(small_disk):
        assert other.read_bytes() == b"precious"


def test_the_spare_room_is_kept_again_after_each_use(small_disk: Path) -> None:
    """What a full disk was given for a start is taken again, as far as the start has left it, also if it fails."""
    spare = small_disk / "spare"
    with spare_room(small_disk):
        pass
    fill(small_disk)
    with spare_room(small_disk, reserved_bytes=MIB // 2):
        assert free_bytes(spare) == spare.stat().st_size == MIB // 2
    assert (free_bytes(spare), spare.stat().st_size) == (0, MIB)
    with contextlib.suppress(Refused), spare_room(small_disk):
        assert (free_bytes(spare), spare.stat().st_size) == (MIB, 0)
        (small_disk / "ready.json").write_bytes(bytes(4096))
        raise Refused("the start failed")
    assert (free_bytes(spare), spare.stat().st_size) == (0, MIB - 4096)


@pytest.mark.wide
@pytest.mark.slow
def test_a_killed_sandbox_starts_again_and_again_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """After a failed run and SIGKILL each start serves, although the log is larger than the spare room.

    SQLite moves the log into the store, as much of it as there is room for: the ready file has to fit beside it.
    """
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    state, ready_file = small_disk / "state", tmp_path / "ready.json"
    for round_ in range(3):
        process = start_process(state, ready_file, "--keep-free", "0")
        try:
            ready = json.loads(ready_file.read_text())
            if round_ == 0:
                batches = [[event(user_id=f"u{batch}-{number}") for number in range(500)] for batch in range(20)]
                with httpx.Client() as http:
                    assert {submit(http, ready, batch) for batch in batches} == {200}
                assert (state / "gamelens.db-wal").stat().st_size > 3 * MIB
            fill(small_disk)
            assert "No space left on device" in httpx.post(f"{ready['console_url']}/process", timeout=60).text
            assert httpx.get(f"{ready['console_url']}/summary").json()["accepted"] == 10_000
        finally:
            process.kill()
            process.wait()


def test_a_start_writes_no_keys_that_are_stored_already(make_stage: Callable[..., Stage]) -> None:
    """Organisations and keys are written when they change, not with every start."""
    stage = make_stage()
    stage.sandbox.close()
    files = [stage.sandbox.options.state / name for name in ("keys.json", "tenants.json")]
    before = [file.stat().st_ino for file in files]
    make_stage()
    assert [file.stat().st_ino for file in files] == before
