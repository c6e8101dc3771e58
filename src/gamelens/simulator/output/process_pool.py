"""Several processes that do one thing each, whose results come in the order asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Final, TypeVar

from gamelens.errors import BadQuery, Refused

_AHEAD: Final = 2
"""Results of each worker that may wait for their turn: enough to be never idle, few enough to hold."""

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


def map_in_order(work: Callable[[_Task], _Done], tasks: Iterable[_Task], *, workers: int) -> Iterator[_Done]:
    """*work* of each of *tasks*, in their order, done by so many *workers*; one works right here.

    More than one are processes of their own, each a new Python: *work* and *tasks* travel there, what was done back.

    Raises:
        BadQuery: no workers at all.
        Refused: a worker was ended by somebody else.
    """
    if workers < 1:
        raise BadQuery("workers", workers, "must be 1 or more")
    return map(work, tasks) if workers == 1 else _map_in_processes(work, tasks, workers)


def _map_in_processes(work: Callable[[_Task], _Done], tasks: Iterable[_Task], workers: int) -> Iterator[_Done]:
    # A fork would copy a process in which other threads run; whatever they hold locked would stay locked.
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
