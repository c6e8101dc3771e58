"""Processing, compaction and rebuilds of a sandbox, one at a time.

Each organisation is processed by a run of its own, those with few events first. One that fails holds up no other, and
is tried again after a pause that grows. Processing goes before compaction: one that is under way ends at once, which
loses nothing but its last step. The files of each version are checked, and tables that are damaged are made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from gamelens._files import disk_trouble
from gamelens.errors import Refused
from gamelens.sandbox.processing.compaction import due_steps
from gamelens.sandbox.processing.pipeline import Report, RunOrder, RunProgress
from gamelens.sandbox.processing.worker import (
    CompactionOrder,
    LoadOrder,
    Order,
    RebuildOrder,
    carry_out,
    carry_out_in_worker,
)
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import StateLock
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import EVERY_ORGANISATION, LakeHealth

_WORKER_EVENTS: Final = 20_000  # below this, the work takes less time than starting a worker process

_log = logging.getLogger(__name__)


class Scheduler:
    """The runs of one state directory. This process holds its *lock*."""

    def __init__(self, state: Path, lake: Lake, clock: Clock, *, lock: StateLock, health: LakeHealth) -> None:
        self._state, self._lake, self._clock, self._lock, self._health = state, lake, clock, lock, health
        self._checked_version: int | None = None
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
            Refused: an organisation could not be processed, or cannot be answered, though the others are; or the whole
                lake is lost.
        """
        async with self.exclusively():
            # A run relies on the parts and the keyed runs of earlier ones. What an earlier process has checked and is
            # as it was need not be read again for that: `check` does it beside the run.
            for name in self._lake.organisations():
                await asyncio.to_thread(self._health.check_changed, self._lake.snapshot(name))
            await self._heal()
            if self._lake.lost_because:
                raise Refused(self._health.reason(EVERY_ORGANISATION))
            try:
                reasons = await self._process_each(with_paused=with_paused)
            except sqlite3.Error as error:
                reason = disk_trouble(error, self._lake.root)
                raise Refused(f"processing stopped; nothing was changed: {reason}") from error
            finally:
                self.progress = None
        self._has_processed.set()
        if reasons := self._health.reasons() | reasons:
            raise Refused("; ".join(f"{name}: {reason}" if name else reason for name, reason in reasons.items()))

    async def load(self, organisation: str) -> None:
        """Make the files that wait in the state directory the lake of *organisation*, which has no events.

        Raises:
            Refused: there are events already, or the engine or the disk failed.
        """
        async with self.exclusively():
            ((batches,),) = self._lake.store.execute("SELECT count(*) FROM batches")
            if batches or self._lake.organisations():
                raise Refused("there are events already: files are loaded into a sandbox without any (POST /reset)")
            order = LoadOrder(organisation, round(self._clock.now_s() * 1000))
            await carry_out_in_worker(self._state, order, lock=self._lock)
            self._health.note_written()

    async def _process_each(self, *, with_paused: bool) -> dict[str, str]:
        """Process the organisations with new events, and return the reasons of failures by name."""
        lake = self._lake
        ((received,),) = lake.store.execute("SELECT coalesce(max(id), 0) FROM batches")
        newest, processed_ms = max(received, lake.last_run().last_batch), round(self._clock.now_s() * 1000)
        waiting: Counter[str] = Counter()
        for (name, _), events in lake.waiting_events(up_to=newest).items():
            waiting[name] += events
        lake.begin_runs(waiting.keys(), last_batch=newest, processed_ms=processed_ms)
        paused = {name for name, status in lake.statuses().items() if status.has_pause and not with_paused}
        self._began, self._events, self._done = monotonic(), waiting.total(), 0
        reasons: dict[str, str] = {}
        for name, events in sorted(waiting.items(), key=lambda item: (item[1], item[0])):
            if name in paused:
                continue
            try:
                self._note(RunProgress(events, 0, 0, 0.0))
                if reason := self._health.reasons().get(name):
                    raise Refused(reason)
                await self._carry_out(RunOrder(name, newest, processed_ms), events, self._note)
            except Exception as error:  # whatever failed, the others go on
                if not isinstance(error, Refused):
                    _log.exception("a defect stopped the processing of %s", name)
                reasons[name] = str(error) or type(error).__name__
                status = lake.note_failure(name, reasons[name])
                _log.warning("processing of %s failed %d times in a row: %s", name, status.failures, status.reason)
            self._done += events
        if not waiting.keys() - paused - reasons.keys():
            lake.commit(processed_ms=processed_ms, last_batch=newest)  # organisations without new events go on
        return reasons

    async def _carry_out(self, order: Order, events: int, report: Report) -> None:
        """Carry out *order* over so many *events*: in a thread, or in a worker process where they are many."""
        if events < _WORKER_EVENTS:
            await asyncio.to_thread(carry_out, self._state, order, report=report)
        else:
            await carry_out_in_worker(self._state, order, lock=self._lock, report=report)

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
            if is_retry and all(status.has_pause for status in self._lake.statuses().values() if status.failures):
                continue
            last = hour
            try:
                await self.process(with_paused=not is_retry)
            except Refused as error:
                _log.error("hourly processing is not complete: %s", error)
            except Exception:  # whatever failed is tried again
                _log.exception("hourly processing failed: unfinished work is unchanged")

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
        version = self._lake.last_run().version
        if version != self._checked_version:
            await self._check_files(pause=1.0)
            self._checked_version = version
        if self._damaged():
            async with self.exclusively():
                await self._heal()

    async def _check_files(self, *, pause: float) -> None:
        for name in self._lake.organisations():
            await asyncio.to_thread(self._health.check_all, self._lake.snapshot(name), pause=pause)

    def _damaged(self) -> list[str]:
        """Return the organisations whose damage a rebuild may undo."""
        names = [EVERY_ORGANISATION] if self._lake.lost_because else self._health.damaged_organisations()
        return [name for name in names if name not in self._health.losses]

    async def _heal(self) -> None:
        """Make damaged tables again, while no run is under way. What cannot be made again is noted."""
        damaged, rebuilds = self._damaged(), self._health.rebuilds

        def note(name: str, progress: RunProgress) -> None:
            rebuilds[name] = progress.committed / progress.events

        for name in damaged:
            rebuilds[name] = 0.0
            if name == EVERY_ORGANISATION:
                order = RebuildOrder()
                ((events,),) = self._lake.store.execute("SELECT coalesce(sum(events), 0) FROM batches")
            else:
                order, events = RebuildOrder((name,)), self._lake.snapshot(name).rows("events")
            try:
                await self._carry_out(order, events, partial(note, name))
                _log.warning("damaged tables were rebuilt: %s", name or "all")
            except Refused as error:
                _log.error("damaged tables of %s were not rebuilt: %s", name or "all", error)
                self._health.losses[name] = str(error)
            finally:
                del rebuilds[name]
        if damaged:
            await self._check_files(pause=0.0)

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
                await carry_out_in_worker(self._state, CompactionOrder(), lock=self._lock)
            except Refused as error:
                _log.error("compaction failed, and will be retried after the next run: %s", error)
