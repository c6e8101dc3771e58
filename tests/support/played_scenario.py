"""The `small` scenario played once: its batches, its ledger and its events."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import msgspec

from gamelens.simulator import Ledger, RequestBatch, Scenario, load_scenario, play

ENDS_ON = date(2026, 11, 21)
GAME_IDS = ("1001", "1002", "2001")


class PlayedScenario(NamedTuple):
    """A scenario, the batches that were sent, and the ledger that recorded them.

    `events` are the decoded events of all batches in the order sent, each with its `game_id`.
    """

    scenario: Scenario
    batches: list[RequestBatch]
    ledger: Ledger
    events: list[dict[str, Any]]


def play_small_scenario() -> PlayedScenario:
    """Play `small` with 600 players over 30 days."""
    scenario, ledger = load_scenario("small", players=600, days=30), Ledger()
    batches = list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    events = [{**event, "game_id": batch.game_id} for batch in batches for event in msgspec.json.decode(batch.body)]
    return PlayedScenario(scenario, batches, ledger, events)
