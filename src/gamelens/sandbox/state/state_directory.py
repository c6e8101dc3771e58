"""The state directory of a sandbox: its lock, its users, its small files and trouble with its disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import monotonic, sleep
from typing import IO, Final, TypeVar
from zlib import crc32

import msgspec
from filelock import FileLock, Timeout, lock_descriptor

from gamelens._files import write_private
from gamelens.errors import Refused

READY_FILE = "ready.json"
NEW_KEYS: Final = "new keys would lock out the owners of the old ones"
"""Why a start does not go on without the keys of an earlier one."""
_PATIENCE_S: Final = 2.0
_IN_USE: Final = "belongs to a running sandbox: stop it, or name another --state"
_LOCKS_NO_FOLDERS: Final = frozenset((errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOLCK, errno.EOPNOTSUPP))
_SPARE_BYTES: Final = 1 << 20
READY_FILE_BYTES: Final = _SPARE_BYTES // 2
"""Of the spare room, what the ready file may take."""
_Value = TypeVar("_Value")


class _CheckedContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small file: its content, and the CRC-32 of the content's JSON."""

    checksum: int
    content: msgspec.Raw


@contextlib.contextmanager
def explained_trouble(state: Path) -> Iterator[None]:
    """Turn errors of the disk and of SQLite into `Refused`, with what to do about them."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        is_full = state.exists() and shutil.disk_usage(state).free < _SPARE_BYTES
        advice = "Free 1 MB on its disk" if is_full else "Check that its disk is intact and writable"
        raise Refused(f"{state} cannot be used: {error}. {advice}, and start again") from error


class StateLock:
    """The lock on a state directory, held while one of its descriptors is open, also by a process that inherits them.

    The folder itself is locked, which cannot be deleted while it has files. The file `lock` in it is locked as well,
    for Windows, network file systems that lock no folders, and earlier versions; anybody may delete that one.
    """

    def __init__(self, state: Path) -> None:
        self.descriptors: list[int] = []
        try:
            deadline = monotonic() + _PATIENCE_S  # the worker of a killed sandbox may still be exiting
            if sys.platform != "win32":
                self._lock(state, os.O_RDONLY, deadline)
            self._lock(state / "lock", os.O_RDWR | os.O_CREAT, deadline)
        except BaseException:
            self.close()
            raise

    def _lock(self, path: Path, flags: int, deadline: float) -> None:
        descriptor = os.open(path, flags, 0o600)
        self.descriptors.append(descriptor)
        try:
            while not lock_descriptor(descriptor, blocking=False):
                if monotonic() > deadline:
                    raise Refused(f"{path.parent if path.name == 'lock' else path} {_IN_USE}")
                sleep(0.02)
        except OSError as error:
            if error.errno not in _LOCKS_NO_FOLDERS or not path.is_dir():
                raise

    def close(self) -> None:
        """Unlock the state directory, unless another process has inherited the lock."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def __enter__(self) -> StateLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock_state_directory(state: Path) -> StateLock:
    """Create *state* if necessary, and lock it for this process.

    Waits up to 2 s for another process that is about to exit.

    Raises:
        Refused: another process has locked it.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    return StateLock(state)


class SandboxUsers:
    """The users of the sandbox over *state*: processes that need it to go on, such as two JupyterLabs.

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


@contextlib.contextmanager
def spare_room(state: Path, *, reserved_bytes: int = 0) -> Iterator[None]:
    """Inside the block, a full disk has the room that was kept aside for it, but for *reserved_bytes* bytes.

    A start needs files of its own, such as SQLite's shared memory and the ready file. SQLite would take all of it: to
    move a long log into the store. Afterwards as much as is left is kept aside again, for the next start.
    """
    spare = state / "spare"
    if os.path.lexists(spare) and not stat.S_ISREG(spare.lstat().st_mode):
        yield  # what a link leads to is not ours to empty or fill
        return
    if shutil.disk_usage(state).free < _SPARE_BYTES and spare.exists() and spare.stat().st_size > reserved_bytes:
        os.truncate(spare, reserved_bytes)
    try:
        yield
    finally:
        if spare.exists() or shutil.disk_usage(state).free > 4 * _SPARE_BYTES:
            with contextlib.suppress(OSError), spare.open("ab", buffering=0) as file:
                file.write(bytes(max(0, _SPARE_BYTES - file.tell())))  # as much of it as fits


def store_checked(path: Path, value: object) -> None:
    """Write *value* as JSON, with a checksum, to *path*.

    Nothing is written where it is there already: a full disk stops no later start.
    """
    content = msgspec.json.encode(value)
    file = msgspec.json.encode(_CheckedContent(crc32(content), msgspec.Raw(content)))
    if not path.exists() or path.read_bytes() != file:
        write_private(path, file)
    path.with_suffix(f".copy{path.suffix}").unlink(missing_ok=True)  # of 0.1: it has keys


def read_stored(path: Path, kind: type[_Value], *, default: _Value) -> _Value:
    """Return what an earlier start stored at *path*, *default* if there is nothing.

    Raises:
        Refused: it is damaged.
    """
    try:
        return read_checked(path, kind)
    except FileNotFoundError:
        return default
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(
            f"{path} is damaged: {error}. Restore it from a copy, or use another --state: {NEW_KEYS}"
        ) from None


def read_checked(path: Path, kind: type[_Value]) -> _Value:
    """Return what `store_checked` stored at *path*.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged.
    """
    file = path.read_bytes()
    try:
        stored = msgspec.json.decode(file, type=_CheckedContent)
    except msgspec.ValidationError:  # as earlier versions wrote it, or damaged in a way that *kind* refuses as well
        return msgspec.json.decode(file, type=kind)
    if crc32(stored.content) != stored.checksum:
        raise msgspec.DecodeError("its checksum is wrong")
    return msgspec.json.decode(stored.content, type=kind)


def link_or_copy(path: Path, target: Path) -> None:
    """Make *target* a hard link to *path*, or a copy on another disk or where the file system has no links."""
    try:
        os.link(path, target)
    except OSError:
        try:
            shutil.copyfile(path, target)
        except OSError:
            target.unlink(missing_ok=True)
            raise


def check_state(state: Path) -> None:
    """Raise `Refused` if no sandbox was ever started on *state*."""
    if not (state / "tenants.json").exists():
        raise Refused(f"{state} holds no sandbox: `gamelens sandbox up --state {state}` makes one")
