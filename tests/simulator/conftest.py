"""The small scenario, played once for all tests of this room."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import msgspec
import pytest

from gamelens.simulator import Ledger, RequestBatch, Scenario, load_scenario, play

ENDS_ON = date(2026, 11, 21)
GAME_IDS = ("1001", "1002", "2001")


class Played(NamedTuple):
    """What was played, as sent and as entered in the ledger."""

    scenario: Scenario
    batches: list[RequestBatch]
    ledger: Ledger
    events: list[dict[str, Any]]


@pytest.fixture(scope="session")
def played() -> Played:
    scenario, ledger = load_scenario("small", players=600, days=30), Ledger()
    batches = list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    events = [{**event, "game_id": batch.game_id} for batch in batches for event in msgspec.json.decode(batch.body)]
    return Played(scenario, batches, ledger, events)
