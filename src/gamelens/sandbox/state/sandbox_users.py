"""Users of a sandbox: processes that need it to go on, such as two JupyterLabs."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from filelock import FileLock, Timeout, lock_descriptor


class SandboxUsers:
    """The users of the sandbox over *state*, in any process.

    Each user holds the lock of a file of its own, which the operating system releases when the process ends, even by
    SIGKILL. Hold `lock` while you join or leave, and while you start or stop the sandbox: then nobody joins one that is
    about to stop.
    """

    def __init__(self, state: Path) -> None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = state / "users"
        self.lock = FileLock(state / "users.lock", mode=0o600)

    def join(self) -> IO[bytes]:
        """Return the file of a new user, who leaves by closing it."""
        self._folder.mkdir(exist_ok=True, mode=0o700)
        file = NamedTemporaryFile(dir=self._folder)  # noqa: SIM115 - the caller closes it
        lock_descriptor(file.fileno())
        return file

    def have_left(self) -> bool:
        """Return whether nobody uses the sandbox. Files that killed users left behind are deleted."""
        for path in self._folder.glob("*"):
            with path.open("rb") as file:
                if not lock_descriptor(file.fileno(), blocking=False):
                    return False
            path.unlink()
        return True

    def lock_if_left(self) -> bool:
        """Take `lock` if nobody uses the sandbox, joins or leaves, and return whether it was taken."""
        try:
            self.lock.acquire(blocking=False)
        except Timeout:
            return False
        except FileNotFoundError:
            return True  # the state directory is deleted, and the users' files with it
        if not self.have_left():
            self.lock.release()
            return False
        return True
