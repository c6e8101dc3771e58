"""Which tests run on one worker: those of a module, and those of a folder whose fixtures are dear."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

ON_ONE_WORKER = ("tests/cli/", "tests/house/")
"""Folders that share one sandbox with players, or the syntax trees of the whole source.

A browser is each module's own: Playwright leaves a loop running.
"""

HEAVY = ("browser", "cli", "journey", "notebooks")
"""Folders that start processes of their own and run first."""


class FixtureScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Modules go to workers whole, and so do the folders `ON_ONE_WORKER`."""

    def _split_scope(self, nodeid: str) -> str:
        shared = next((folder for folder in ON_ONE_WORKER if nodeid.startswith(folder)), None)
        return shared or super()._split_scope(nodeid)
