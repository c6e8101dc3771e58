"""`python data/make_outside.py` makes the files of `data/outside` for the days of the answers in `data/recorded`.

They are what `gamelens.simulator.output.external_files` makes of the scenario that the answers were recorded from, ended on the day
they end. A live sandbox gets files for its own days from `gamelens.local.sample_data`.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from gamelens.client.sync_client import Client
from gamelens.local.sample_data import write
from gamelens.simulator import load_scenario
from gamelens.simulator.output.external_files import outside_files

SCENARIO = "small"  # what notebooks/conftest.py plays
DATA = Path(__file__).parent


def recorded_until() -> date:
    """The day on which the recorded answers end."""
    with Client(replay=DATA / "recorded") as lens:
        return lens.available().end.date()


def made() -> dict[str, str]:
    """The text of each file, by its name."""
    return outside_files(load_scenario(SCENARIO), ends_on=recorded_until())


if __name__ == "__main__":
    write(made(), DATA / "outside")
