"""A pool of processes whose results come in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Final, TypeVar

from gamelens.errors import BadQuery, Refused

_AHEAD: Final = 2
"""Results of each worker that may wait for their turn.

Enough to keep every worker busy, few enough to fit into memory.
"""

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


def map_in_order(work: Callable[[_Task], _Done], tasks: Iterable[_Task], *, workers: int) -> Iterator[_Done]:
    """Call *work* with each of *tasks* in several processes, and yield the results in order.

    One worker runs in this process. More are new Python processes, to which *work* and *tasks* are pickled.

    Raises:
        BadQuery: there are no workers.
        Refused: a worker process was killed.
    """
    if workers < 1:
        raise BadQuery("workers", workers, "must be 1 or more")
    return map(work, tasks) if workers == 1 else _map_in_processes(work, tasks, workers)


def _map_in_processes(work: Callable[[_Task], _Done], tasks: Iterable[_Task], workers: int) -> Iterator[_Done]:
    # A fork would copy locks held by other threads, and they would stay locked in the child.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[Future[_Done]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise Refused("a worker process ended before its work was done") from None
    finally:
        pool.shutdown(cancel_futures=True)
