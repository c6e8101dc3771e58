"""Processing in a process of its own: it gives way to the services, and does not outlive them.

The worker holds the state directory's lock together with its server, so that nobody else takes the directory before
both are gone, and it ends when its standard input does, as it does when the server is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock

_NICENESS = 10


async def process_in_worker(state: Path, clock: Clock, *, lock: IO[str]) -> None:
    """Process in a worker; *lock* is the one on *state*.

    Raises:
        Refused: the worker could not do it; the lake is as it was.
    """
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(state), clock.now().isoformat()),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=(lock.fileno(),),
    )
    try:
        said = await worker.stderr.read() if worker.stderr else b""
        status = await worker.wait()
    except asyncio.CancelledError:
        worker.kill()
        await worker.wait()
        raise
    if status:
        reason = said.decode(errors="replace").strip().splitlines()
        raise Refused(reason[-1] if reason else f"the processing worker ended with status {status}")


def main() -> None:
    """Process the state directory and at the time that the arguments name."""
    from gamelens.sandbox.processing.pipeline import process

    threading.Thread(target=_end_with_the_server, daemon=True).start()
    os.nice(_NICENESS)
    clock = Clock()
    clock.freeze(datetime.fromisoformat(sys.argv[2]).astimezone(UTC))
    try:
        process(Path(sys.argv[1]), clock)
    except Refused as error:
        sys.exit(str(error))


def _end_with_the_server() -> None:
    os.read(0, 1)  # not sys.stdin, which an interpreter that ends waits for
    os._exit(1)


if __name__ == "__main__":
    main()
