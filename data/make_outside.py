"""Program that makes the files of `data/outside` for the days of the answers in `data/recorded`.

Run it as `python data/make_outside.py`. It plays the scenario that the answers were recorded from, ending on the same
day. A live sandbox gets files for its own days from the sample files of the package.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from gamelens.client.sync_client import Client
from gamelens.local.sample_data import write_files
from gamelens.simulator import load_scenario
from gamelens.simulator.output.external_files import outside_files

SCENARIO = "small"  # the one that notebooks/conftest.py plays
DATA = Path(__file__).parent


def recorded_until() -> date:
    """Return the day on which the recorded answers end."""
    with Client(replay=DATA / "recorded") as client:
        return client.available().end.date()


def outside_texts() -> dict[str, str]:
    """Return the text of each file by its name."""
    return outside_files(load_scenario(SCENARIO), ends_on=recorded_until())


if __name__ == "__main__":
    write_files(outside_texts(), DATA / "outside")
