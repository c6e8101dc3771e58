"""Processing and compaction of a sandbox, one run at a time.

Each organisation is processed by a run of its own, those with few events first. One that fails holds up no other, and
is tried again after a pause that grows. Processing goes before compaction: one that is under way ends at once, which
loses nothing but its last step.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Final

from gamelens.errors import Refused
from gamelens.sandbox.processing.compaction import due_steps
from gamelens.sandbox.processing.healing import Healer
from gamelens.sandbox.processing.pipeline import Report, RunOrder, RunProgress, process
from gamelens.sandbox.processing.worker import compact_in_worker, process_in_worker
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import StateLock
from gamelens.sandbox.storage.backlog import backlogs, note_failure, note_waiting, waiting_events
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth

_WORKER_EVENTS: Final = 20_000  # below this, processing takes less time than starting a worker process

_log = logging.getLogger(__name__)


class Scheduler:
    """The runs of one state directory, of which this process holds the *lock*."""

    def __init__(self, state: Path, lake: Lake, clock: Clock, *, lock: StateLock, health: LakeHealth) -> None:
        self._state, self._lake, self._clock, self._lock = state, lake, clock, lock
        self._healer = Healer(state, lake, health, lock=lock)
        self._one_at_a_time = asyncio.Lock()
        self._has_processed = asyncio.Event()
        self._compaction: asyncio.Task[None] | None = None
        self._began, self._events, self._done = 0.0, 0, 0
        self.progress: RunProgress | None = None
        """Progress of the runs that are under way, None between them."""
        self.report: Report | None = None
        """Function that takes it whenever it changes."""

    async def process(self, *, with_paused: bool = True) -> None:
        """Process everything received: few events in a thread, many in a worker process.

        *with_paused* says whether organisations are tried whose pause after a failure is not over.

        Raises:
            Refused: an organisation could not be processed. The others are.
        """
        async with self.exclusively():
            await self._healer.prepare_run()
            try:
                reasons = await self._process_each(with_paused=with_paused)
            except sqlite3.Error as error:
                raise Refused(f"processing stopped, nothing was changed: {error}") from error
            finally:
                self.progress = None
        self._has_processed.set()
        if reasons:
            raise Refused("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))

    async def _process_each(self, *, with_paused: bool) -> dict[str, str]:
        """Process the organisations with new events, and return the reasons of failures by name."""
        lake, store = self._lake, self._lake.store
        last_run = lake.last_run()
        ((newest,),) = store.execute("SELECT max(coalesce(max(id), -1), ?) FROM batches", (last_run.last_batch,))
        processed_ms = round(self._clock.now_s() * 1000)
        waiting = waiting_events(store, after=last_run.last_batch, up_to=newest)
        note_waiting(store, waiting, last_batch=last_run.last_batch, processed_ms=last_run.processed_ms)
        paused = {name for name, behind in backlogs(store).items() if behind.has_pause and not with_paused}
        self._began, self._events, self._done = monotonic(), sum(waiting.values()), 0
        reasons: dict[str, str] = {}
        for name in [name for name in waiting if name not in paused]:
            try:
                await self._process_one(RunOrder(name, newest, processed_ms), waiting[name])
            except Exception as error:  # whatever failed, the others go on
                if not isinstance(error, Refused):
                    _log.exception("a defect stopped the processing of %s", name)
                reasons[name] = str(error) or type(error).__name__
                behind = note_failure(store, name, reasons[name])
                _log.warning("processing of %s failed %d times in a row: %s", name, behind.failures, behind.reason)
            self._done += waiting[name]
        if not waiting.keys() - paused - reasons.keys():
            lake.commit(processed_ms=processed_ms, last_batch=newest)  # organisations without new events go on
        return reasons

    async def _process_one(self, order: RunOrder, events: int) -> None:
        self._note(RunProgress(events, 0, 0, 0.0))
        self._healer.refuse_damaged(order.organisation)
        if events < _WORKER_EVENTS:
            await asyncio.to_thread(process, self._state, order, report=self._note)
        else:
            await process_in_worker(self._state, order, lock=self._lock, report=self._note)

    @contextlib.asynccontextmanager
    async def exclusively(self) -> AsyncIterator[None]:
        """Wait until no run is under way, and keep others waiting."""
        await self.stop_compaction()
        async with self._one_at_a_time:
            yield

    async def process_hourly(self) -> None:
        """Process whenever the clock enters another hour, or a pause after a failure ends."""
        last = int(self._clock.now_s() // 3600)
        while True:
            await asyncio.sleep(1)
            hour = int(self._clock.now_s() // 3600)
            is_retry = hour == last
            failed = [behind for behind in self._lake.backlogs().values() if behind.failures]
            if is_retry and all(behind.has_pause for behind in failed):
                continue
            last = hour
            try:
                await self.process(with_paused=not is_retry)
            except Exception:  # whatever failed is tried again
                _log.exception("hourly processing failed: what failed is as it was")

    async def keep_whole(self) -> None:
        """Check the files of each new version, and make damaged tables again."""
        while True:
            try:
                await self.check()
            except Exception:  # whatever failed, the next round tries again
                _log.exception("the lake could not be checked")
            await asyncio.sleep(1)

    async def check(self) -> None:
        """Check the files of a new version, and make damaged tables again."""
        await self._healer.check_version()
        if self._healer.is_due():
            async with self.exclusively():
                await self._healer.heal()

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

    def _note(self, of_run: RunProgress) -> None:
        """Add the progress of one run to what is done before it."""
        decoded, committed = self._done + of_run.decoded, self._done + of_run.committed
        self.progress = RunProgress(self._events, decoded, committed, monotonic() - self._began)
        if self.report is not None:
            self.report(self.progress)

    async def _compact(self) -> None:
        async with self._one_at_a_time:
            try:
                await compact_in_worker(self._state, lock=self._lock)
            except Refused:
                _log.exception("compaction failed: it goes on after the next run")
