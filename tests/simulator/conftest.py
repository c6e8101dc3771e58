"""The `small` scenario, played once for all tests of the simulator."""

from __future__ import annotations

import pytest

from support.played_scenario import PlayedScenario, play_small_scenario


@pytest.fixture(scope="session")
def played() -> PlayedScenario:
    """Return `small` with 600 players over 30 days, its batches, ledger and events."""
    return play_small_scenario()
