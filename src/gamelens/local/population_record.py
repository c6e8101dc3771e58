"""The record of which population a sandbox holds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gamelens.simulator import Scenario


class PopulationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of what was played into a sandbox, to recognise the same population.

    Attributes:
        scenario, version, seed, players, days, ends_on: what identifies the population; *version* is the simulator's.
        events, requests, sent_bytes, seconds: what was sent, inits of real clients among the requests, and how long it
            took. A population that was written and not sent has no requests.
    """

    scenario: str
    version: int
    seed: int
    players: int
    days: int
    ends_on: date
    events: int = 0
    requests: int = 0
    sent_bytes: int = 0
    seconds: float = 0.0


def population_id(scenario: Scenario, ends_on: date) -> PopulationRecord:
    """Return the record of *scenario* without counts, which identifies its population."""
    from gamelens.simulator import VERSION

    return PopulationRecord(
        scenario=scenario.name,
        version=VERSION,
        seed=scenario.seed,
        players=scenario.players,
        days=scenario.days,
        ends_on=ends_on,
    )


def today() -> date:
    """Return the current day in UTC."""
    return datetime.now(UTC).date()
