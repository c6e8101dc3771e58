"""Processing, loads, rebuilds and compaction in a process of their own.

The worker has a lower priority than the services. It shares its server's lock on the state directory, so that no other
process can take the directory before both have ended. It ends when its standard input does, which happens when the
server is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.pipeline import Report, RunOrder, RunProgress, load, process
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.state.state_directory import StateLock

_NICENESS = 10


class RebuildOrder(msgspec.Struct, frozen=True, tag=True):
    """An order to make the tables of *organisations* again, or of all without names (`rebuild.rebuild`)."""

    organisations: tuple[str, ...] = ()


class CompactionOrder(msgspec.Struct, frozen=True, tag=True):
    """An order to compact the lake until nothing is due."""


class LoadOrder(msgspec.Struct, frozen=True, tag=True):
    """An order to make the files that wait in the state directory the lake of *organisation* (`pipeline.load`)."""

    organisation: str
    processed_ms: int


Order = RunOrder | RebuildOrder | CompactionOrder | LoadOrder


def carry_out(state: Path, order: Order, *, report: Report | None = None) -> None:
    """Carry out *order* in this process, and *report* how far it is.

    Raises:
        Refused: it failed. The lake is as after the last version.
    """
    match order:
        case RunOrder():
            process(state, order, report=report)
        case RebuildOrder(organisations):
            tell = report or (lambda _: None)
            rebuild(state, organisations, report=lambda share: tell(RunProgress(100, 0, round(100 * share), 0.0)))
        case CompactionOrder():
            compact(state)
        case LoadOrder(organisation, processed_ms):
            load(state, organisation, processed_ms=processed_ms)


async def carry_out_in_worker(state: Path, order: Order, *, lock: StateLock, report: Report | None = None) -> None:
    """Carry out *order* in a worker, which inherits the *lock* on *state*. It may be cancelled at any time.

    Raises:
        Refused: the worker failed. The lake is as after the last version.
    """
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(state), msgspec.json.encode(order).decode()),
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


def main() -> None:
    """Carry out an order, the second argument as JSON, in the state directory that is the first."""
    threading.Thread(target=_exit_with_server, daemon=True).start()
    os.nice(_NICENESS)
    state, order = sys.argv[1:]

    def write(progress: RunProgress) -> None:
        sys.stdout.write(msgspec.json.encode(progress).decode() + "\n")
        sys.stdout.flush()

    try:
        carry_out(Path(state), msgspec.json.decode(order, type=Order), report=write)
    except Refused as error:
        sys.exit(str(error))


def _exit_with_server() -> None:
    os.read(0, 1)  # not sys.stdin, whose lock would block the interpreter's exit
    os._exit(1)


if __name__ == "__main__":
    main()
