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

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read.

    Raises:
        FileExistsError: there is something at *path*, be it a link that leads nowhere.
    """
    os.close(os.open(path, _CREATE, 0o600))


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
        OSError: the draft cannot be created or moved, its name is taken, for instance by a link, or a private file
            would replace something that is not a file.
    """
    if path.exists() and not path.is_file():
        if is_private:
            raise FileExistsError(errno.EEXIST, "is not a regular file, so it is not replaced", str(path))
        yield path
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
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
