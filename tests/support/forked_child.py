"""Work in a forked child of this process, killed if it does not end in time."""

from __future__ import annotations

import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

LONGEST_S = 10.0


class ChildHangsError(AssertionError):
    """The child did not end in time."""


def in_child(work: Callable[[], Any]) -> Any:
    """Return the result of *work*, done in a forked child, or raise the exception that it raised there.

    Raises:
        ChildHangsError: the child was killed, since it had not ended after ten seconds.
    """
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 on, in a process with threads
        child = os.fork()
    if not child:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = work(), None
        except BaseException as error:
            outcome = None, error
        os.write(writes, pickle.dumps(outcome))
        os._exit(0)
    os.close(writes)
    ends_at = time.monotonic() + LONGEST_S
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > ends_at:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reads)
            raise ChildHangsError(f"the child had not ended after {LONGEST_S:g} s")
        time.sleep(0.01)
    with os.fdopen(reads, "rb") as pipe:
        result, raised = pickle.loads(pipe.read())
    if raised is not None:
        raise raised
    return result
