"""What becomes of events between the player and the collector: how they are delivered, and what is wrong with some.

Both are tables of a scenario. One that has neither sends every event once, in time and in good order.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from gamelens.simulator.scenarios.timeline import ScenarioTable
from gamelens.simulator.scenarios.validation import check_positive, check_shares, check_within

Clock = Literal["exact", "minutes", "zone", "past", "future"]
"""How a device's clock is set: right, minutes off, in a wrong time zone, years behind, or in the next century."""


class DeliveryProfile(ScenarioTable, frozen=True, kw_only=True):
    """How devices send: what they record online every 20 seconds, what they record offline later.

    With *batch_s* (20 is the specification's) each device makes requests of its own: of every so many seconds of play
    one, with what it gathered, as real clients do. Without it, requests are filled with the events of many devices in
    the order sent: that is a fiftieth of the requests, and what lets two cores take in a million events in 20 seconds.

    An offline session is sent *offline_delay_h* (median hours, log-normal with *offline_sigma*) after its end, at most
    *offline_cap_h*. *lost_answers* is the share of requests that are sent again because no answer came, *crashes* the
    share of sessions without an end. Shares of devices: *old_sdk* give their events no event_uuid, *clocks* are set
    wrong, and *uncorrected* do not mind the time that init answers. The others do, from their first online session on.
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
    """What is sent on top of what players did, as a share of it; `dirt` holds the catalogue.

    *malformed* events, which the collector owes a refusal; *odd* ones, which it takes; *duplicates*, which count once;
    *broken_bodies* (a share of requests) that nobody can read; *bad_requests* (such a share, too) that are signed
    wrongly, too large, or cut short; *bots* (a share of players) that play a session of somebody else over and over.
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
