"""An IPython shell in the process of the tests, as a kernel has one."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from pandas import DataFrame
from traitlets.config import Config

_WITHOUT_HISTORY: Final = Config({"HistoryManager": {"enabled": False}})
"""Else each shell has a thread and a database of its own until Python ends."""


@contextmanager
def notebook_shell() -> Iterator[Any]:
    """Yield a new shell. Afterwards there is none, and `__main__` is the module that it was.

    The shell's own `__main__` has no specification, without which no process can be started. Nothing is left to be done
    when Python ends, where each shell would look for garbage among all that the tests have left.
    """
    main = sys.modules["__main__"]
    shell: Any = InteractiveShell.instance(config=_WITHOUT_HISTORY)
    try:
        yield shell
    finally:
        shell.display_formatter.formatters["text/html"].pop(DataFrame, None)
        InteractiveShell.clear_instance()
        atexit.unregister(shell.atexit_operations)
        sys.modules["__main__"] = main
