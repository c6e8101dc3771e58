"""What was created before a fork is not used after it.

A forked child has none of its parent's threads, and shares its connections and files. So an object that has one of
these works in its own process alone, and says so in another, instead of waiting for a thread that is not there, or
writing where the parent writes.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

from gamelens.errors import Refused

LONGEST_WAIT_S: Final = 10.0
"""Longest wait of a fork for an open file."""


class OwnProcess:
    """The process in which *what*, such as "this client", was created."""

    def __init__(self, what: str) -> None:
        self._what, self._process = what, os.getpid()

    @property
    def is_this(self) -> bool:
        """Whether this is that process."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Check that this is that process.

        Raises:
            Refused: it is a fork of it.
        """
        if not self.is_this:
            raise Refused(
                f"{self._what} was created in another process, {self._process}, before this one was forked: "
                "create a new one in this process"
            )


def lock_across_forks() -> threading.RLock:
    """Return a lock that no thread but the forking one holds during a fork: in the child it would stay locked."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


class _OpenFiles:
    """A count of open SQLite files, for which a fork waits.

    SQLite remembers which locks its process holds. A child would take the locks of the parent for its own.
    """

    def __init__(self) -> None:
        self._number = 0
        self._changed = threading.Condition()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._wait, after_in_parent=self._go_on, after_in_child=self._forget)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count one more during the block, which must not fork."""
        with self._changed:
            self._number += 1
        try:
            yield
        finally:
            with self._changed:
                self._number -= 1
                self._changed.notify_all()

    def _wait(self) -> None:
        self._changed.acquire()
        self._changed.wait_for(lambda: not self._number, LONGEST_WAIT_S)

    def _go_on(self) -> None:
        self._changed.release()

    def _forget(self) -> None:
        self._number = 0
        self._go_on()


without_forks: Final = _OpenFiles().one_more
"""A block during which no fork begins."""


@cache
def import_without_forks(module: str) -> None:
    """Import a module that a library imports at its first use, if there is one of this name.

    A fork while another thread imports it would leave the child with the lock of that import, for which it waits for
    ever.
    """
    with without_forks(), suppress(ModuleNotFoundError):
        importlib.import_module(module)


def keep_for_ever(
    thing: object, _count: Callable[[ctypes.py_object[object]], None] = ctypes.pythonapi.Py_IncRef
) -> None:
    """Never close *thing*, an open file of the parent, in this process."""
    _count(ctypes.py_object(thing))
