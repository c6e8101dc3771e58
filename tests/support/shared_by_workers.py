"""What takes seconds to make and is only read: made once in a run of the tests, by the first worker that needs it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from zlib import crc32

from filelock import FileLock

_FOLDER: Final = f"TESTS_SHARED_{crc32(__file__.encode()):x}"
"""The variable that names the folder: of this checkout, and not of a copy whose tests are run by a test."""


def share_a_folder() -> None:
    """Make the folder of this run, which the processes that it starts inherit, unless it has one.

    The process that made it removes it when it ends.
    """
    if _FOLDER not in os.environ:
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="gamelens-tests-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        atexit.register(shutil.rmtree, os.environ[_FOLDER], ignore_errors=True)


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the file or folder *name* of this run, which *make* is given the path of and makes if it is not there.

    Others wait for it meanwhile. What *make* leaves when it fails is made again by the next.
    """
    share_a_folder()
    path = Path(os.environ[_FOLDER]) / name
    draft = path.with_name(f"{name}.draft")
    with FileLock(f"{path}.lock"):
        if not path.exists():
            shutil.rmtree(draft, ignore_errors=True)
            draft.unlink(missing_ok=True)
            make(draft)
            draft.rename(path)
    return path
