"""Verification that the files of the lake are as they were written."""

from __future__ import annotations

from pathlib import Path

from gamelens.errors import Refused
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth


def verify_files(state: Path) -> tuple[int, list[str]]:
    """Compare size and checksum of each file of the lake with the manifest.

    A sandbox may be running on it. Returns the number of files, and a sentence for each organisation with damage.

    Raises:
        Refused: there is no sandbox, or the manifest is lost.
    """
    check_state(state)
    store = open_store(state / "gamelens.db")
    try:
        lake = Lake(state / "lake", store)
        if lake.lost_because:
            raise Refused(f"the files of {state} cannot be verified: {lake.lost_because}")
        health, files = LakeHealth(lake), 0
        for name in lake.organisations():
            snapshot = lake.snapshot(name)
            health.check_all(snapshot, pause=0.0)
            files += sum(map(len, snapshot.tables.values()))
        return files, [f"{name}: {damage}" for name, damage in health.damage().items()]
    finally:
        store.close()
