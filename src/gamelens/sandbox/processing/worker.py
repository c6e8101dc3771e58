"""Processing and compaction in a process of their own.

The worker has a lower priority than the services. It shares its server's lock on the state directory, so that no other
process can take the directory before both have ended. It ends when its standard input does, which happens when the
server is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.pipeline import Report, RunOrder, RunProgress, process
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.state.state_directory import StateLock

_NICENESS = 10
_REBUILD = "rebuild"


async def process_in_worker(state: Path, order: RunOrder, *, lock: StateLock, report: Report | None = None) -> None:
    """Process the batches of *order* in a worker, which inherits the *lock* on *state*.

    *report* is given the progress.

    Raises:
        Refused: the worker failed. The lake is as after the last portion.
    """
    await _run_worker(state, msgspec.json.encode(order).decode(), lock=lock, report=report)


async def compact_in_worker(state: Path, *, lock: StateLock) -> None:
    """Compact the lake of *state* in a worker, until nothing is due.

    It may be cancelled at any time.

    Raises:
        Refused: the worker failed. The lake is as after its last step.
    """
    await _run_worker(state, lock=lock)


async def rebuild_in_worker(
    state: Path, organisations: Sequence[str], *, lock: StateLock, report: Callable[[float], None]
) -> None:
    """Make the tables of *organisations* again in a worker (`rebuild.rebuild`).

    Raises:
        Refused: the worker failed, or events are lost. The lake is as before.
    """

    def pass_on(progress: RunProgress) -> None:
        report(progress.committed / progress.events)

    await _run_worker(state, _REBUILD, *organisations, lock=lock, report=pass_on)


async def _run_worker(*arguments: Path | str, lock: StateLock, report: Report | None = None) -> None:
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=lock.descriptors,
    )
    try:
        errors, _ = await asyncio.gather(_read(worker.stderr), _pass_on(worker.stdout, report))
        status = await worker.wait()
    except asyncio.CancelledError:
        worker.kill()
        await worker.wait()
        raise
    if status:
        reason = errors.decode(errors="replace").strip().splitlines()
        raise Refused(reason[-1] if reason else f"the processing worker ended with status {status}")


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream else b""


async def _pass_on(stream: asyncio.StreamReader | None, report: Report | None) -> None:
    """Pass the progress that the worker writes, a line each, on to *report*."""
    while stream and (line := await stream.readline()):
        if report is not None:
            report(msgspec.json.decode(line, type=RunProgress))


def _write_progress(progress: RunProgress) -> None:
    sys.stdout.write(msgspec.json.encode(progress).decode() + "\n")
    sys.stdout.flush()


def _write_share(share: float) -> None:
    _write_progress(RunProgress(100, 0, round(100 * share), 0.0))


def main() -> None:
    """Process the state directory in the first argument, compact it or rebuild it.

    A second argument is the order to process, as JSON, or the order to rebuild the organisations in those that follow.
    Without one it is compacted.
    """
    threading.Thread(target=_exit_with_server, daemon=True).start()
    os.nice(_NICENESS)
    state, *orders = sys.argv[1:]
    try:
        if not orders:
            compact(Path(state))
        elif orders[0] == _REBUILD:
            rebuild(Path(state), orders[1:], report=_write_share)
        else:
            process(Path(state), msgspec.json.decode(orders[0], type=RunOrder), report=_write_progress)
    except Refused as error:
        sys.exit(str(error))


def _exit_with_server() -> None:
    os.read(0, 1)  # not sys.stdin, whose lock would block the interpreter's exit
    os._exit(1)


if __name__ == "__main__":
    main()
