"""A thousand ad networks, two of them with names that somebody would rather not run."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from support.game_events import NOW, event
from support.hostile_names import NAMES
from support.sandbox_stage import Stage

HOSTILE: Final = NAMES["tag"]
FORMULA: Final = NAMES["formula"]
NETWORKS: Final = 1000


def send_networks(stage: Stage) -> None:
    """An impression of each network, yesterday; the hostile ones earn most."""
    names = [HOSTILE, FORMULA, *(f"Network {number:04}" for number in range(NETWORKS - 2))]
    shown = [
        event(
            category="impression",
            ad_network_name="max",
            ad_network_version="1",
            impression_data={"revenue": 1 + place / 1000, "network_name": name},
            client_ts=int((NOW - timedelta(days=1)).timestamp()),
        )
        for place, name in enumerate(reversed(names))
    ]
    assert stage.submit(shown).status_code == 200
