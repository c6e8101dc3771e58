"""Slots that all processes of one user share: to hold a slot is to be allowed one request.

A slot is a small file, and holding it means holding the operating system's lock on it. The lock is released when the
process ends, in whatever way. The file stores the time before which the slot must not be taken again, on the clock
that counts from the start of the machine; a time further ahead than any slot rests was written before a restart.

The files are in the user's runtime directory, whose contents need not outlive a session, and never beside a cache that
a user may delete. Their names are a hash.
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

LONGEST_REST_S: Final = 5.0  # longer than any slot rests
_MOMENT: Final = struct.Struct("<d")


class Slot:
    """A slot of this process, held by one request at a time.

    Once freed it rests until a given time.
    """

    def __init__(self, *, rests_until: float = -math.inf) -> None:
        self._is_taken = False
        self._rests_until = rests_until

    @property
    def free_at(self) -> float:
        """The earliest time at which the slot can be taken.

        Infinity while it is held.
        """
        return math.inf if self._is_taken else self._rests_until

    def take(self, now: float) -> bool:
        """Take the slot if it is free at *now* and return whether it was."""
        if now < self.free_at:
            return False
        self._is_taken = True
        return True

    def mark(self, until: float) -> None:
        """Set the time until which the slot rests, in case it is released without `free`."""
        self._rests_until = until

    def free(self, until: float | None = None) -> None:
        """Free the slot, to rest until *until*, or by default until the time last marked."""
        if until is not None:
            self.mark(until)
        self._is_taken = False


class FileSlot(Slot):
    """A slot that all processes share through the file at *path*.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = -1
        self._error: OSError | None = None
        # Not a soft lock, which outlives a killed process. The file is preserved because it holds the time.
        self._lock = filelock.FileLock(
            path,
            mode=0o600,
            thread_local=False,
            fallback_to_soft=False,
            preserve_lock_file=True,
            on_acquired=self._opened,
        )
        if self._acquire():
            self._write(self._read())  # detects a full disk here
            self._lock.release()
        if self._error:
            raise self._error

    def take(self, now: float) -> bool:
        """Take the slot if it is free at *now* and return whether it was.

        Raises:
            OSError: the file can no longer be used.
        """
        if self._error:
            raise self._error
        if now < self.free_at or not self._acquire():
            return False
        until = self._read()
        # The time only ever increases, so the file is not read again before it.
        self._rests_until = until if until < now + LONGEST_REST_S else -math.inf
        if now < self._rests_until:
            self._lock.release()
            return False
        self._is_taken = True
        return True

    def mark(self, until: float) -> None:
        """Set the time until which the slot rests, in case this process ends before `free`."""
        super().mark(until)
        self._write(until)

    def free(self, until: float | None = None) -> None:
        """Free the slot, to rest until *until*, or by default until the time last marked."""
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
        """Write *until* to the file.

        A failure is raised by the next `take`, not by this request.
        """
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, _MOMENT.pack(until))
        except OSError as error:
            self._error = error


class SharedSlots:
    """The slots of one key at one service: for starting requests and for requests in flight.

    All processes of this user share them if the folder can be used. Otherwise they belong to this process alone, and
    `why_alone` gives the reason. The files are named after the hash of *key* and lie in *folder*, by default the user's
    runtime directory. The clock must be the same for all processes of the machine.
    """

    def __init__(self, key: str, *, folder: Path | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.why_alone: str | None = None
        self.starts: list[Slot] = []
        self.in_flight: list[Slot] = []
        try:
            stem = (folder or runtime_folder()) / hashlib.sha256(key.encode()).hexdigest()[:24]
            stem.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.starts = [FileSlot(stem.with_suffix(f".start{n}")) for n in range(REQUESTS_PER_SECOND)]
            self.in_flight = [FileSlot(stem.with_suffix(f".seat{n}")) for n in range(REQUESTS_AT_ONCE)]
        except OSError as error:
            self.use_private_slots(error)

    def use_private_slots(self, error: OSError) -> None:
        """Use slots without files from now on.

        Other processes may have just sent requests, so all slots rest for a second first.
        """
        self.why_alone = f"it cannot see other processes: {error.filename or 'the runtime folder'}: {error.strerror}"
        later = self._clock() + 1.0 if self.starts else -math.inf
        self.starts = [Slot(rests_until=later) for _ in range(REQUESTS_PER_SECOND)]
        self.in_flight = [Slot() for _ in range(REQUESTS_AT_ONCE)]


def runtime_folder() -> Path:
    """Return the folder for shared files of this user.

    That is `GAMELENS_RUNTIME_DIR`, else a folder of the user's runtime directory, else one in the temporary directory.

    Raises:
        OSError: none of them belongs to this user alone.
    """
    if named := os.environ.get("GAMELENS_RUNTIME_DIR"):
        return Path(named)
    try:
        # A machine without sessions has no such directory; the warning does not help an analyst.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _ensure_private(platformdirs.user_runtime_path("gamelens", ensure_exists=True))
    except OSError:
        user = str(os.getuid()) if hasattr(os, "getuid") else "runtime"  # on Windows the directory belongs to the user
        return _ensure_private(Path(tempfile.gettempdir()) / f"gamelens-{user}")


def _ensure_private(folder: Path) -> Path:
    """Create *folder* for this user only and return it.

    Other users can create a folder of this name in a temporary directory, so its owner is checked.

    Raises:
        PermissionError: it belongs to another user or cannot be written to.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if hasattr(os, "getuid") and (not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid()):
        raise PermissionError(errno.EPERM, "belongs to another user", str(folder))
    folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "cannot be written to", str(folder))
    return folder
