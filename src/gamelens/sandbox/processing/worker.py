"""Processing in a process of its own, with a lower priority than the services.

The worker shares its server's lock on the state directory, so that no other process can take the directory before both
have ended. It ends when its standard input does, which happens when the server is killed.
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
    """Process *state* in a worker, which inherits the *lock* on it.

    Raises:
        Refused: the worker failed. The lake is as before.
    """
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(state), clock.now().isoformat()),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=(lock.fileno(),),
    )
    try:
        errors = await worker.stderr.read() if worker.stderr else b""
        status = await worker.wait()
    except asyncio.CancelledError:
        worker.kill()
        await worker.wait()
        raise
    if status:
        reason = errors.decode(errors="replace").strip().splitlines()
        raise Refused(reason[-1] if reason else f"the processing worker ended with status {status}")


def main() -> None:
    """Process the state directory in the first argument, at the time in the second."""
    from gamelens.sandbox.processing.pipeline import process

    threading.Thread(target=_exit_with_server, daemon=True).start()
    os.nice(_NICENESS)
    clock = Clock()
    clock.freeze(datetime.fromisoformat(sys.argv[2]).astimezone(UTC))
    try:
        process(Path(sys.argv[1]), clock)
    except Refused as error:
        sys.exit(str(error))


def _exit_with_server() -> None:
    os.read(0, 1)  # not sys.stdin, whose lock would block the interpreter's exit
    os._exit(1)


if __name__ == "__main__":
    main()
