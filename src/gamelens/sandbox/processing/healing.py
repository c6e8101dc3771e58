"""Healing of the lake: its files are checked, and what is damaged is made again."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from gamelens.errors import Refused
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.processing.worker import rebuild_in_worker
from gamelens.sandbox.state.state_directory import StateLock
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import EVERY_ORGANISATION, LakeHealth

_WORKER_EVENTS: Final = 20_000  # below this, a rebuild takes less time than starting a worker process

_log = logging.getLogger(__name__)


class Healer:
    """Checks and rebuilds of the lake of one state directory.

    This process holds the *lock* on it.
    """

    def __init__(self, state: Path, lake: Lake, health: LakeHealth, *, lock: StateLock) -> None:
        self._state, self._lake, self._health, self._lock = state, lake, health, lock
        self._checked_version: int | None = None

    async def check_version(self) -> None:
        """Check all files of the newest version, unless that is done."""
        version = self._lake.last_run().version
        if version != self._checked_version:
            await self._check_all(pause=1.0)
            self._checked_version = version

    async def prepare_run(self) -> None:
        """Heal what a run would read.

        A run relies on the parts and the keyed runs of earlier ones. What an earlier process has checked and is as it
        was need not be read again for that: `check_version` does it beside the run.

        Raises:
            Refused: the whole lake is lost and cannot be made again.
        """
        for name in self._lake.organisations():
            await asyncio.to_thread(self._health.check_changed, self._lake.snapshot(name))
        if self.is_due():
            await self.heal()
        if self._lake.lost_because:
            raise Refused(self._health.reason(EVERY_ORGANISATION))

    def refuse_damaged(self, organisation: str) -> None:
        """Raise `Refused` if files of *organisation* are damaged still."""
        if reason := self._health.reasons().get(organisation):
            raise Refused(reason)

    def is_due(self) -> bool:
        """Return whether there is damage that a rebuild may mend."""
        return bool(self._damaged())

    async def heal(self) -> None:
        """Make damaged tables again, while no run is under way.

        What cannot be made again is noted.
        """
        for name in self._damaged():
            self._health.rebuilds[name] = 0.0
            try:
                await self._rebuild(name)
                _log.warning("damaged tables were made again: %s", name or "all")
            except Refused as error:
                _log.exception("damaged tables were not made again: %s", name or "all")
                self._health.losses[name] = str(error)
            finally:
                del self._health.rebuilds[name]
        await self._check_all(pause=0.0)

    def _damaged(self) -> list[str]:
        names = [EVERY_ORGANISATION] if self._lake.lost_because else self._health.damaged_organisations()
        return [name for name in names if name not in self._health.losses]

    async def _rebuild(self, name: str) -> None:
        def note(share: float) -> None:
            self._health.rebuilds[name] = share

        names = [] if name == EVERY_ORGANISATION else [name]
        if self._events(name) < _WORKER_EVENTS:
            await asyncio.to_thread(rebuild, self._state, names, report=note)
        else:
            await rebuild_in_worker(self._state, names, lock=self._lock, report=note)

    def _events(self, name: str) -> int:
        if name != EVERY_ORGANISATION:
            return self._lake.snapshot(name).rows("events")
        ((events,),) = self._lake.store.execute("SELECT coalesce(sum(events), 0) FROM batches")
        return int(events)

    async def _check_all(self, *, pause: float) -> None:
        for name in self._lake.organisations():
            await asyncio.to_thread(self._health.check_all, self._lake.snapshot(name), pause=pause)
