"""A sandbox in a process that is killed or stopped while it takes, processes and recovers events."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from support.game_events import event
from support.sandbox_stage import Stage

_EVENTS: Final = 5  # of one batch
_PROCESSED_EVERY: Final = 12
_PAUSE_S: Final = 0.1
_context = get_context("forkserver")
_context.set_forkserver_preload([Stage.__module__])


class Round(NamedTuple):
    """What one process did.

    Attributes:
        acknowledged: names of the acknowledged batches.
        start_s: seconds until it was ready, which include the recovery; None if it was killed before.
    """

    acknowledged: list[str]
    start_s: float | None


def play_rounds(state: Path, number: signal.Signals, *, rounds: int) -> Iterator[Round]:
    """Yield *rounds* processes over *state*, each killed somewhere between its start and 0.6 s later.

    With SIGSTOP a process is stopped for a moment at such a time, goes on, and is killed after another.
    """
    random = Random(4)
    for round_ in range(rounds):
        ours, theirs = _context.Pipe(duplex=False)
        child = _context.Process(target=_serve, args=(state, f"r{round_}", theirs))
        began = time.monotonic()
        child.start()
        theirs.close()
        is_early = random.random() < 0.2  # while it starts
        found = [] if is_early else [(ours.recv(), time.monotonic() - began)]
        time.sleep(random.uniform(0.0, 0.6))
        assert child.pid is not None
        if number == signal.SIGSTOP:
            os.kill(child.pid, signal.SIGSTOP)
            time.sleep(_PAUSE_S)
            os.kill(child.pid, signal.SIGCONT)
            time.sleep(random.uniform(0.0, 0.3))
        os.kill(child.pid, signal.SIGKILL)
        with contextlib.suppress(EOFError):
            while True:
                found.append((ours.recv(), time.monotonic() - began))
        child.join()
        yield Round([name for name, _ in found if name], found[0][1] if found else None)


def _serve(state: Path, name: str, acknowledged: Connection) -> None:
    """Submit batches of events with unique names, process now and then, and send the name of each that is stored."""
    stage = Stage(state)
    acknowledged.send("")
    for number in count():
        batch = f"{name}-{number}"
        if stage.submit([named(batch, each) for each in range(_EVENTS)]).status_code == 200:
            acknowledged.send(batch)
        if number % _PROCESSED_EVERY == _PROCESSED_EVERY - 1:
            stage.process()


def named(batch: str, number: int) -> dict[str, object]:
    """Return an event whose build is the name of its batch."""
    return event(build=batch, user_id=f"{batch}-{number}", event_uuid=f"{batch}-{number}", client_ts=None)


def lost_and_repeated(state: Path, acknowledged: set[str]) -> tuple[int, int]:
    """Process everything, and return how many acknowledged batches are not counted, and how many events too often."""
    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        stage.process()
        body = {"interval": "2026-11-01/P40D", "granularity": "all"}
        total = stage.ask("event_count", **body, query={"type": "timeseries"}).json()["result"][0]["result"]
        by_build = {"type": "group", "dimension": "build", "limit": 30_000}
        rows = stage.ask("event_count", **body, query=by_build).json()["result"][0]["result"]
        counted = {row["build"]: row["event_count"] for row in rows}
        assert sum(counted.values()) == total["event_count"]
    lost = sum(counted.get(name, 0) < _EVENTS for name in acknowledged)
    return lost, sum(max(0, events - _EVENTS) for events in counted.values())
