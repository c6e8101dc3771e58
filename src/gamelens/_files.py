"""Files that are replaced as a whole.

A reader sees the old content or the new one, never a part of it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DRAFT_NAME: Final = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8}\.part", re.DOTALL)
"""Name of a draft, by which one that a killed process left behind is recognised."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_WORDS: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "disk is full")  # the last are SQLite's
_QUOTED_PATH: Final = re.compile(r'file \\?"([^"\\]+)')  # in DuckDB's errors; some are JSON

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read.

    Raises:
        FileExistsError: there is something at *path*, be it a link that leads nowhere.
    """
    os.close(os.open(path, _CREATE, 0o600))


def is_full(error: Exception) -> bool:
    """Return whether *error*, of the system or of a library that quotes it, comes from a full disk or quota."""
    return getattr(error, "errno", None) in _FULL or any(words in str(error) for words in _FULL_WORDS)


def why_unwritable(error: Exception) -> str:
    """Return why a file cannot be written, and what to do where its disk is full."""
    number = getattr(error, "errno", None)
    if is_full(error):
        return f"{os.strerror(number or errno.ENOSPC)}. Free some space, or name a place on another disk"
    return os.strerror(number) if number else str(error)


def disk_trouble(error: Exception, place: Path | str) -> str:
    """Return *error* in words: where a disk is full, which file, or else *place*, cannot be written, and what to do."""
    if not is_full(error):
        return str(error)
    quoted = _QUOTED_PATH.search(str(error))
    # Of the two files of a copy, the second is written.
    named = getattr(error, "filename2", None) or getattr(error, "filename", None)
    path = named or (quoted[1] if quoted else place)
    return f"{path} cannot be written: {why_unwritable(error)}"


@contextmanager
def named_errors(path: Path, *, instead_of: Path | None = None) -> Iterator[None]:
    """In the block, an `OSError` that names no file, or *instead_of*, names *path*."""
    try:
        yield
    except OSError as error:
        if error.errno and (error.filename is None or str(error.filename) == str(instead_of)):
            error.filename = str(path)
        raise


@contextmanager
def replace_file(path: Path, *, is_private: bool = False) -> Iterator[Path]:
    """Yield a draft beside *path*, which replaces *path* at the end.

    The draft is a new, empty file that only its owner can read, and so is what it becomes; a file that *path* already
    was keeps its permissions. The caller writes to the draft by its name. If the block fails, the draft is removed and
    *path* stays as it was. If *path* is something that cannot be replaced by a file, such as a pipe, a device or a
    folder, *path* itself is yielded, or refused if the file is private.

    Args:
        path: the file.
        is_private: whether it stays its owner's alone, whatever *path* was.

    Raises:
        OSError: the draft cannot be created, written or moved, its name is taken, for instance by a link, or a private
            file would replace something that is not a file. It names *path*.
    """
    if path.exists() and not path.is_file():
        if is_private:
            raise FileExistsError(errno.EEXIST, "is not a regular file, so it is not replaced", str(path))
        with named_errors(path):
            yield path
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with named_errors(path, instead_of=draft):
        create_private(draft)
        try:
            yield draft
            if not is_private and path.is_file() and not path.is_symlink():
                shutil.copymode(path, draft)
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def write_private(path: Path, content: bytes) -> None:
    """Write *content* to *path* as a whole, in a file that only its owner can read."""
    with replace_file(path, is_private=True) as draft:
        draft.write_bytes(content)
