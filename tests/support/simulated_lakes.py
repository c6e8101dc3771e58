"""Lakes of simulated players, made in a second, on a clock that stands still."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gamelens.sandbox.server import open_bulk_load
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import play_columns
from gamelens.simulator.scenarios.scenario import Scenario


def make_lake(state: Path, scenario: Scenario, *, now: datetime) -> None:
    """Make the lake of *scenario* in the new directory *state*, with data until the day before *now*."""
    clock = Clock()
    clock.freeze(now)
    with open_bulk_load(state, clock=clock, titles=scenario.titles) as load:
        load.take(play_columns(scenario, load.folder, ends_on=now.date(), game_ids=load.game_ids))
