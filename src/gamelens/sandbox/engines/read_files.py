"""File systems from which DuckDB reads the files of a lake."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Collection
from datetime import datetime
from typing import IO, Any, Final

from fsspec import AbstractFileSystem

SCHEME: Final = "lake://"
"""Start of the address of a file of this machine that statements of a user read, before its path."""


class ReadFiles(AbstractFileSystem):  # type: ignore[misc]  # without types
    """A *filesystem* of fsspec as DuckDB needs it: threads read one file at the same time, and nothing is written.

    With *only*, paths of this machine, it has these files at `SCHEME` and no others.
    """

    cachable = False

    def __init__(self, filesystem: AbstractFileSystem, *, only: Collection[str] | None = None) -> None:
        super().__init__()
        self._filesystem, self._only = filesystem, None if only is None else frozenset(only)
        self.protocol = filesystem.protocol if only is None else SCHEME.removesuffix("://")

    def open(self, path: str, mode: str = "rb", **_: object) -> SharedFile:
        """Open a file to be read.

        Raises:
            PermissionError: it is not one of these files, or is to be written.
        """
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return SharedFile(self._filesystem.open(self._own(path), "rb"))

    def exists(self, path: str, **_: object) -> bool:
        """Whether it is one of these files."""
        is_there = self._only is None or path.removeprefix(SCHEME) in self._only
        return is_there and bool(self._filesystem.exists(path.removeprefix(SCHEME)))

    def glob(self, path: str, **_: object) -> list[str]:
        """Return the addresses of the files that *path* describes; among some files only, it names one.

        Raises:
            PermissionError: it is not one of these files.
        """
        place = self._own(path)
        return list(self._filesystem.glob(path)) if self._only is None else [f"{SCHEME}{place}"]

    def info(self, path: str, **_: object) -> dict[str, Any]:
        """Return name, size and type of a file."""
        return dict(self._filesystem.info(self._own(path)))

    def modified(self, path: str) -> datetime:
        """Return the time at which a file was written."""
        written: datetime = self._filesystem.modified(self._own(path))
        return written

    def _own(self, path: str) -> str:
        """Return *path* as the file system has it.

        Raises:
            PermissionError: it is not one of these files.
        """
        place = path.removeprefix(SCHEME)
        if self._only is not None and place not in self._only:
            raise PermissionError(f"{path} is not a file of the views")
        return place


class SharedFile(io.RawIOBase):
    """A *file* that threads read at the same time: the place that a thread seeks is for its own next read.

    DuckDB seeks and then reads, and another thread may do the same in between.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._lock, self._thread = file, threading.Lock(), threading.local()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the place of this thread, from the start of the file."""
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation("places are from the start")
        self._thread.place = offset
        return offset

    def tell(self) -> int:
        """Return the place of this thread."""
        return int(getattr(self._thread, "place", 0))

    def read(self, size: int = -1) -> bytes:
        """Return up to *size* bytes, or all, from the place of this thread, which moves behind them."""
        with self._lock:
            self._file.seek(self.tell())
            content = self._file.read(size)
        self._thread.place = self.tell() + len(content)
        return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
