"""Processing and compaction of a sandbox, one at a time.

Processing goes first: a compaction that is under way ends at once, which loses nothing but its last step.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Final

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.processing.compaction import due_steps
from gamelens.sandbox.processing.pipeline import Report, RunProgress, process
from gamelens.sandbox.processing.worker import compact_in_worker, process_in_worker
from gamelens.sandbox.storage.inbox import pending_events
from gamelens.sandbox.storage.lake import Lake

_WORKER_EVENTS: Final = 20_000  # below this, processing takes less time than starting a worker process

_log = logging.getLogger(__name__)


class Scheduler:
    """The runs of one state directory, of which this process holds the *lock*."""

    def __init__(self, state: Path, lake: Lake, clock: Clock, *, lock: IO[str]) -> None:
        self._state, self._lake, self._clock, self._lock = state, lake, clock, lock
        self._one_at_a_time = asyncio.Lock()
        self._has_processed = asyncio.Event()
        self._compaction: asyncio.Task[None] | None = None
        self.progress: RunProgress | None = None
        """Progress of the run that is under way, None between runs."""
        self.report: Report | None = None
        """Function that takes it whenever it changes."""

    async def process(self) -> None:
        """Process everything received: few events in a thread, many in a worker process."""
        async with self.exclusively():
            after = self._lake.last_run().last_batch
            events = pending_events(self._lake.store, after=after, most=_WORKER_EVENTS)
            self.progress = RunProgress(events, 0, 0, 0.0)
            try:
                if events < _WORKER_EVENTS:
                    await asyncio.to_thread(process, self._state, self._clock, report=self._note)
                else:
                    await process_in_worker(self._state, self._clock, lock=self._lock, report=self._note)
            finally:
                self.progress = None
        self._has_processed.set()

    @contextlib.asynccontextmanager
    async def exclusively(self) -> AsyncIterator[None]:
        """Wait until no run is under way, and keep others waiting."""
        await self.stop_compaction()
        async with self._one_at_a_time:
            yield

    async def process_hourly(self) -> None:
        """Process whenever the sandbox's clock enters another hour."""
        last = int(self._clock.now_s() // 3600)
        while True:
            await asyncio.sleep(1)
            if (hour := int(self._clock.now_s() // 3600)) != last:
                last = hour
                try:
                    await self.process()
                except Exception:  # whatever failed, the next hour tries again
                    _log.exception("hourly processing failed: the lake is as it was")

    async def compact_after_runs(self) -> None:
        """Compact the lake after each run, until the next one."""
        while True:
            await self._has_processed.wait()
            self._has_processed.clear()
            if next(due_steps(self._lake), None) is not None:
                self._compaction = asyncio.create_task(self._compact())
                await asyncio.wait([self._compaction])

    async def stop_compaction(self) -> None:
        """End a compaction that is under way."""
        if self._compaction is not None:
            self._compaction.cancel()
            await asyncio.wait([self._compaction])

    def _note(self, progress: RunProgress) -> None:
        self.progress = progress
        if self.report is not None:
            self.report(progress)

    async def _compact(self) -> None:
        async with self._one_at_a_time:
            try:
                await compact_in_worker(self._state, lock=self._lock)
            except Refused:
                _log.exception("compaction failed: it goes on after the next run")
