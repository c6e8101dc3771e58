"""Events that are written instead of received: files of days, taken as they are by the lake of a sandbox that has none.

What fills a lake this way has no raw events behind it. So nothing can verify it or make it anew: it is gone when the
format of the lake changes. What is received later is added to it as to any other.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.server import Sandbox, SandboxOptions, available_intervals
from gamelens.sandbox.storage.lake import WRITTEN
from gamelens.sandbox.tenants import Titles


class BulkLoad:
    """A sandbox that nobody serves and that has no events yet; its first organisation gets what is written."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox = sandbox
        self._organisation = sandbox.tenants.organisations[0]
        self.folder = folder
        """Where to write the files."""

    @property
    def game_ids(self) -> list[str]:
        """The games there are, in their order."""
        return [game.id for game in self._organisation.games]

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of."""
        self._sandbox.set_scenario(name)

    def take(self, days: Mapping[date, list[Path]]) -> dict[str, str]:
        """Make *days* the lake, files with the columns of its events; available interval of each organisation, by name.

        Raises:
            Refused: the engine or the disk could not do it; nothing is there as before.
        """
        lake, clock = self._sandbox.lake, self._sandbox.clock
        staged = {self._organisation.name: dict(days)}
        try:
            commit_staged(staged, lake, self.folder, processed_ms=round(clock.now_s() * 1000), last_batch=WRITTEN)
        except OSError as error:
            raise Refused(f"the lake could not be filled: {error}") from error
        return available_intervals(self._sandbox.tenants, lake, clock)


@contextlib.contextmanager
def open_bulk_load(state: Path, *, titles: Titles = (), clock: Clock | None = None) -> Iterator[BulkLoad]:
    """Hold *state* to fill its lake; a new one gets an organisation with the games of *titles*, or the usual ones.

    Raises:
        Refused: another process has it, or there are events in it.
    """
    is_new = not (state / "tenants.json").exists()
    sandbox = Sandbox(SandboxOptions(state=state, titles=titles if is_new else ()), clock=clock)
    scratch = state / "scratch"
    try:
        ((batches,),) = sandbox.store.execute("SELECT count(*) FROM batches")
        if batches or sandbox.lake.organisations():
            raise Refused(f"{state} has events already: what is written has to come first")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        yield BulkLoad(sandbox, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        sandbox.close()
