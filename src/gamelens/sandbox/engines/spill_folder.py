"""The memory that engines may take on this machine, and a folder for what does not fit into it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Final

import psutil
from filelock import lock_descriptor

from gamelens._files import why_unwritable

SHARE_OF_MEMORY: Final = 0.6
"""Share of the machine's memory that a statement may take unless it is told otherwise."""
_SHARE_OF_FREE: Final = 0.5
_PREFIX: Final = "gamelens-spill-"
_LOCK: Final = "lock"
_GB: Final = 10**9


class SpillFolder:
    """A folder below *root* to which the engines of this process write what does not fit into their memory.

    It is made at its first use, and only its owner can read it. `close` removes it. The folder of a process that was
    killed is removed by the next process that makes one below *root*.

    Attributes:
        root: the folder in which it is made.
        most_bytes: what each engine may write: half of what was free on the disk when the folder was made.
        trouble: the reason why it cannot be made, empty if it can.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.most_bytes, self.trouble = root, 0, ""
        self._making, self._path, self._locked = Lock(), "", list[IO[bytes]]()

    @property
    def path(self) -> str:
        """The folder, empty if it cannot be made."""
        with self._making:
            if not self._path and not self.trouble:
                try:
                    self._make()
                except OSError as error:
                    self.trouble = f"{self.root} cannot be written: {why_unwritable(error)}"
            return self._path

    def _make(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in _left_behind(self.root):
            shutil.rmtree(folder, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self.root))
        self.most_bytes = int(shutil.disk_usage(path).free * _SHARE_OF_FREE)
        file = (path / "new").open("wb")
        lock_descriptor(file.fileno())
        (path / "new").rename(path / _LOCK)  # so that another process never finds it without its lock
        self._path, self._locked = str(path), [file]

    def settings(self, engine: str) -> list[str]:
        """Return the settings of DuckDB by which a connection spills to a folder of its own, called *engine*."""
        if not self.path:
            return ["SET temp_directory = ''"]
        folder = os.path.join(self.path, engine).replace("'", "''")
        return [f"SET temp_directory = '{folder}'", f"SET max_temp_directory_size = '{self.most_bytes // 1000}KB'"]

    def advice(self, memory: str, *, is_full: bool) -> str:
        """Return why a statement with so much *memory* did not finish, as the end of a sentence, and what to raise."""
        if is_full:
            return (
                f"more than {memory} of memory and the {in_units(self.most_bytes)} that it may write to {self.root}: "
                "free space on that disk, name a folder on a larger one with spill= of open_lake, or raise its memory="
            )
        if self.trouble:
            return (
                f"more than {memory} of memory, and {self.trouble}. "
                "Name another folder with spill= of open_lake, or raise its memory="
            )
        return f"more than {memory} of memory: raise memory= of open_lake, or narrow it"

    def close(self) -> None:
        """Remove it, for ever."""
        with self._making:
            remove_spilled(self._path)
            while self._locked:
                self._locked.pop().close()
            self._path, self.trouble = "", "the lake is closed"


def remove_spilled(path: str) -> None:
    """Remove the spill folder at *path*, also while an engine still writes to it."""
    for _ in range(10):
        if path and os.path.exists(path):
            shutil.rmtree(path, ignore_errors=True)


def _left_behind(root: Path) -> Iterator[Path]:
    """Yield the spill folders below *root* whose processes are gone."""
    for lock in root.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("rb") as file:  # it is removed meanwhile, or belongs to another user
            if lock_descriptor(file.fileno(), blocking=False):
                yield lock.parent


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may take: of the machine, or of its control groups if that is less.

    *root* is where the system's files are.
    """
    limits = [int(psutil.virtual_memory().total)]
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers == "" or "memory" in controllers.split(","):
                version = ("", "memory.max") if controllers == "" else ("memory", "memory.limit_in_bytes")
                mount = root / "sys/fs/cgroup" / version[0]
                folder = mount / group.lstrip("/")
                # A limit holds for all groups inside. A container sees its own group as the mount.
                for place in (folder, *folder.parents):
                    with suppress(OSError, ValueError):  # there is no such file, or it says "max"
                        limits.append(int((place / version[1]).read_text()))
                    if place == mount:
                        break
    return min(limits)


def in_units(number: float) -> str:
    """Return a number of bytes as DuckDB reads it, such as 12.5GB."""
    return f"{number / _GB:.1f}GB" if number >= _GB else f"{number / 10**6:.0f}MB"
