"""An IPython shell in the process of the tests, as a kernel has one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from pandas import DataFrame


@contextmanager
def notebook_shell() -> Iterator[Any]:
    """Yield a new shell. Afterwards there is none, and `__main__` is the module that it was.

    The shell's own `__main__` has no specification, without which no process can be started.
    """
    main = sys.modules["__main__"]
    shell: Any = InteractiveShell.instance()
    try:
        yield shell
    finally:
        shell.display_formatter.formatters["text/html"].pop(DataFrame, None)
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main
