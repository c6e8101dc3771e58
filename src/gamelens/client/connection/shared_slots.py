"""Slots that all processes of one user share: whoever holds one may do what it stands for.

A slot is a small file. To hold it is to hold the operating system's lock on it, which goes with the process that held
it, however that ends. In the file stands the moment before which nobody may take the slot again, on the clock that
counts from the start of the machine; what lies further ahead than any slot ever rests was written before a restart.

The files lie in the user's runtime directory, whose contents need not outlive a session, and never beside a cache that
somebody may want to throw away. Their names are a hash.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import stat
import struct
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

import filelock
import platformdirs

from gamelens.wire.limits import REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

LONGEST_REST_S: Final = 5.0  # beyond what any slot rests
_MOMENT: Final = struct.Struct("<d")


class Slot:
    """Held by one request at a time; freed, it rests until a given moment. Known to this process only."""

    def __init__(self, *, rests_until: float = -math.inf) -> None:
        self._is_held = False
        self._rests_until = rests_until

    @property
    def free_at(self) -> float:
        """No slot can be taken before this moment; after it, this one perhaps."""
        return math.inf if self._is_held else self._rests_until

    def take(self, now: float) -> bool:
        """Hold it, if that is possible at this moment."""
        if now < self.free_at:
            return False
        self._is_held = True
        return True

    def mark(self, until: float) -> None:
        """Say until when it is to rest, should it come free without being freed."""
        self._rests_until = until

    def free(self, until: float | None = None) -> None:
        """Let it go, to rest *until* then or, where none is said, as long as it was to rest anyway."""
        if until is not None:
            self.mark(until)
        self._is_held = False


class FileSlot(Slot):
    """A slot that every process knows by the file at *path*.

    Raises:
        OSError: there can be no such file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = -1
        self._trouble: OSError | None = None
        # Not the soft kind, which outlives a process that is killed; kept, because it holds the moment.
        self._lock = filelock.FileLock(
            path,
            mode=0o600,
            thread_local=False,
            fallback_to_soft=False,
            preserve_lock_file=True,
            on_acquired=self._opened,
        )
        if self._acquire():
            self._write(self._read())  # so that a full disk is noticed here
            self._lock.release()
        if self._trouble:
            raise self._trouble

    def take(self, now: float) -> bool:
        """Hold it, if that is possible at this moment.

        Raises:
            OSError: the file is of no use any more.
        """
        if self._trouble:
            raise self._trouble
        if now < self.free_at or not self._acquire():
            return False
        until = self._read()
        # What was read is believed until then without looking again: it only ever moves on.
        self._rests_until = until if until < now + LONGEST_REST_S else -math.inf
        if now < self._rests_until:
            self._lock.release()
            return False
        self._is_held = True
        return True

    def mark(self, until: float) -> None:
        """Say until when it is to rest, should this process end before it is freed."""
        super().mark(until)
        self._write(until)

    def free(self, until: float | None = None) -> None:
        """Let it go, to rest *until* then or, where none is said, as long as it was to rest anyway."""
        try:
            super().free(until)
        finally:
            self._lock.release()

    def _acquire(self) -> bool:
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            return False
        return True

    def _opened(self, file: int) -> None:
        self._file = file

    def _read(self) -> float:
        os.lseek(self._file, 0, os.SEEK_SET)
        written = os.read(self._file, _MOMENT.size)
        return float(_MOMENT.unpack(written)[0]) if len(written) == _MOMENT.size else -math.inf

    def _write(self, until: float) -> None:
        """Write *until* down; a failure is not the business of the request that ends here, but of the next."""
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, _MOMENT.pack(until))
        except OSError as error:
            self._trouble = error


class SharedSlots:
    """The slots of one key at one service: those to start a request on and the seats of those under way.

    Shared by all processes of this user where the folder can be used; else `why_alone` says why not, and they are
    this process's own.

    Args:
        key: what the files are named after, as a hash.
        folder: where they lie; None for the user's runtime directory.
        clock: the same for all processes of the machine.
    """

    def __init__(self, key: str, *, folder: Path | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.why_alone: str | None = None
        self.starts: list[Slot] = []
        self.seats: list[Slot] = []
        try:
            stem = (folder or runtime_folder()) / hashlib.sha256(key.encode()).hexdigest()[:24]
            stem.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.starts = [FileSlot(stem.with_suffix(f".start{n}")) for n in range(REQUESTS_PER_SECOND)]
            self.seats = [FileSlot(stem.with_suffix(f".seat{n}")) for n in range(REQUESTS_AT_ONCE)]
        except OSError as error:
            self.go_alone(error)

    def go_alone(self, error: OSError) -> None:
        """Do without files from now on; what is under way elsewhere is given a second."""
        self.why_alone = f"other processes are not seen: {error.filename or 'the runtime folder'}: {error.strerror}"
        later = self._clock() + 1.0 if self.starts else -math.inf
        self.starts = [Slot(rests_until=later) for _ in range(REQUESTS_PER_SECOND)]
        self.seats = [Slot() for _ in range(REQUESTS_AT_ONCE)]


def runtime_folder() -> Path:
    """GAMELENS_RUNTIME_DIR, else a folder of the user's runtime directory, else one in the temporary directory.

    Raises:
        OSError: none of them is there for this user alone.
    """
    if named := os.environ.get("GAMELENS_RUNTIME_DIR"):
        return Path(named)
    try:
        with warnings.catch_warnings():  # a machine without sessions has none, which is nothing an analyst can mend
            warnings.simplefilter("ignore")
            return _private(platformdirs.user_runtime_path("gamelens", ensure_exists=True))
    except OSError:
        return _private(Path(tempfile.gettempdir()) / f"gamelens-{_user()}")


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "runtime"  # on Windows the directory is the user's own


def _private(folder: Path) -> Path:
    """*folder*, made and closed to others; anybody can put a folder of this name into a temporary directory."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if hasattr(os, "getuid") and (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid()):
        raise PermissionError(errno.EPERM, "belongs to somebody else", str(folder))
    folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "cannot be written to", str(folder))
    return folder
