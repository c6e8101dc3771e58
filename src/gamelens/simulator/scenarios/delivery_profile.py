"""The scenario tables `delivery` and `dirt`: transport and defects of events.

A scenario with neither table sends every event once, in time and without defects.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from gamelens.simulator.scenarios.timeline import ScenarioTable
from gamelens.simulator.scenarios.validation import check_positive, check_shares, check_within

Clock = Literal["exact", "minutes", "zone", "past", "future"]
"""Setting of a device's clock.

In this order: right, minutes off, in a wrong time zone, years behind, in the next century.
"""


class DeliveryProfile(ScenarioTable, frozen=True, kw_only=True):
    """The sending of events by devices: online play every 20 s, offline play hours later.

    Without *batch_s*, requests hold the events of many devices in the order sent. That takes a fiftieth of the
    requests, so that two cores can ingest a million events in 20 seconds.
    """

    batch_s: int | None = None
    offline_delay_h: float = 6.0
    offline_sigma: float = 1.2
    offline_cap_h: float = 168.0
    lost_answers: float = 0.0
    crashes: float = 0.0
    old_sdk: float = 0.0
    uncorrected: float = 0.0
    clocks: dict[Clock, float] = msgspec.field(default_factory=lambda: {"exact": 1.0})

    def __post_init__(self) -> None:
        if self.batch_s is not None:
            check_within("delivery.batch_s", self.batch_s, 1, 3600)
        for name in ("offline_delay_h", "offline_cap_h"):
            check_positive(f"delivery.{name}", getattr(self, name))
        check_within("delivery.offline_sigma", self.offline_sigma, 0, 5)
        for name in ("lost_answers", "crashes", "old_sdk", "uncorrected"):
            check_within(f"delivery.{name}", getattr(self, name), 0, 1)
        check_shares("delivery.clocks", {str(clock): share for clock, share in self.clocks.items()})


class DirtProfile(ScenarioTable, frozen=True, kw_only=True):
    """Defects added to the events of the players.

    `events.defects` is the catalogue.
    """

    malformed: float = 0.0
    odd: float = 0.0
    duplicates: float = 0.0
    broken_bodies: float = 0.0
    bad_requests: float = 0.0
    bots: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_within(f"dirt.{name}", getattr(self, name), 0, 1)
