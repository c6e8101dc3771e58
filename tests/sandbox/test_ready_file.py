"""`--ready FILE`: what it replaces, and what it refuses to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gamelens.errors import Refused
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox


def make_device(path: Path) -> None:
    """Make a device node like `/dev/null`, where the machine allows that."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no device can be made here")


@pytest.mark.skipif(os.name == "nt", reason="there are no such files there")
@pytest.mark.parametrize("make", [make_device, os.mkfifo, os.mkdir])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_device_a_pipe_and_a_folder_are_not_replaced(
    tmp_path: Path, make: Callable[[Path], None], *, is_link: bool
) -> None:
    """They are refused with what to name instead before anything is written, also through a link."""
    target = ready = tmp_path / "ready"
    make(target)
    if is_link:
        ready = tmp_path / "link"
        ready.symlink_to(target)
    before = target.stat()
    with pytest.raises(Refused, match=f"^--ready {ready} is not a regular file: name a new file, or one to replace"):
        Sandbox(SandboxOptions(state=tmp_path / "state", ready=ready))
    assert (target.stat().st_mode, target.stat().st_rdev) == (before.st_mode, before.st_rdev)
    assert ready.is_symlink() == is_link
    assert not (tmp_path / "state").exists()
