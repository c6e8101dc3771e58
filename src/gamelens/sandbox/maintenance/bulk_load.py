"""Bulk load: files of event days become the lake of a sandbox that has no events yet.

Such a lake has no raw events behind it. It can neither be verified nor rebuilt, so it is lost when the format of the
lake changes. Events received later are added to it as to any other lake.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from gamelens.errors import Refused
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.server import Sandbox, SandboxOptions, available_intervals
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.tenants import Titles


class BulkLoad:
    """A sandbox that does not run and has no events. Its first organisation gets the files."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox = sandbox
        self._organisation = sandbox.tenants.organisations[0]
        self.folder = folder
        """An empty folder to write the files in, removed at the end."""

    @property
    def game_ids(self) -> list[str]:
        """Ids of the games of the organisation, in the order of its configuration."""
        return [game.id for game in self._organisation.games]

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of."""
        self._sandbox.set_scenario(name)

    def take(self, days: Mapping[date, list[Path]]) -> dict[str, str]:
        """Make *days* the lake, and return the available interval of each organisation, by name.

        Args:
            days: Parquet files of each UTC day, with the columns `lake_schema.EVENT_COLUMNS`.

        Raises:
            Refused: the engine or the disk failed; the sandbox is as before.
        """
        lake, clock = self._sandbox.lake, self._sandbox.clock
        staged = {self._organisation.name: [path for day in sorted(days) for path in days[day]]}
        try:
            commit_staged(staged, lake, self.folder, processed_ms=round(clock.now_s() * 1000), is_written=True)
        except OSError as error:
            raise Refused(f"the lake could not be filled: {error}") from error
        self._sandbox.health.note_written()
        return available_intervals(self._sandbox.tenants, lake, clock)


@contextlib.contextmanager
def open_bulk_load(state: Path, *, titles: Titles = (), clock: Clock | None = None) -> Iterator[BulkLoad]:
    """Lock *state* and yield a `BulkLoad` for it.

    A new state directory gets one organisation with the games of *titles*, or the default ones.

    Raises:
        Refused: another process has locked it, or it has events.
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
