"""Files that are replaced as a whole.

A reader sees the old content or the new one, never a part of it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DRAFT_NAME: Final = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8}\.part", re.DOTALL)
"""Name of a draft, by which one that a killed process left behind is recognised."""

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def replace_file(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """Yield a draft beside *path*, which replaces *path* at the end.

    The draft is a new, empty file with the permissions *mode*; the caller writes to it by its name. If the block fails,
    the draft is removed and *path* stays as it was. If *path* is something that cannot be replaced by a file, such as a
    pipe, a device or a folder, *path* itself is yielded, unless *mode* keeps the content from others.

    Raises:
        OSError: the draft cannot be created or moved, or its name is taken, for instance by a link.
    """
    if mode & 0o077 and path.exists() and not path.is_file():
        yield path
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(draft, _CREATE, mode))
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_private(path: Path, content: bytes) -> None:
    """Write *content* to *path* as a whole, in a file that only its owner can read."""
    with replace_file(path, mode=0o600) as draft:
        draft.write_bytes(content)
