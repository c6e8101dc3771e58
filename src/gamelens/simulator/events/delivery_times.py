"""The delivery of each event of a block: time of sending, claimed time and losses.

A request of a device holds the events of 20 seconds of a session (or of the scenario's `batch_s`), or of a whole
session that was played offline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gamelens.simulator.population.arrays import Flags, Ints, pick, run_starts, shares
from gamelens.simulator.population.behaviour import EventSlot, PlayedBlock
from gamelens.simulator.population.session_times import CONNECTIONS, DAY_S, Sessions
from gamelens.simulator.scenarios.scenario import Clock, DeliveryProfile
from gamelens.wire.limits import SUBMIT_PERIOD_S

YEAR_S: Final = 365 * DAY_S
HOUR_S: Final = 3600
IN_2100_S: Final = 4_102_444_800
"""2100-01-01.

Clocks of the next century are beyond it, so that their events are unusable at any time of arrival.
"""
RESEND_AFTER_S: Final = int(SUBMIT_PERIOD_S)
"""Delay of a second attempt, one period after the first."""


@dataclass(frozen=True, eq=False, slots=True)
class EventDelivery:
    """Delivery of each event of a block, one array per attribute.

    Attributes:
        claimed_s: the client_ts the event carries, by the clock of the device.
        is_usable: whether the collector accepts that time.
        lacks_uuid: whether the event has no event_uuid.
        is_offline: whether it was recorded offline.
        is_unsent: whether a crash lost it.
        sent_s: time of sending, in epoch seconds.
        is_resent: whether it is sent again because no response arrived.
    """

    claimed_s: Ints
    is_usable: Flags
    lacks_uuid: Flags
    is_offline: Flags
    is_unsent: Flags
    sent_s: Ints
    is_resent: Flags


def draw_delivery(block: PlayedBlock, delivery: DeliveryProfile, *, rng: np.random.Generator) -> EventDelivery:
    """Draw the delivery of each event of *block*."""
    sessions, events = block.sessions, block.events
    player = sessions.player[events.session]
    offset_s = _session_offsets(sessions, len(block.players), delivery, rng=rng)
    lacks_uuid = rng.random(len(block.players)) < delivery.old_sdk
    is_crashed = rng.random(len(sessions.day)) < delivery.crashes
    session_is_offline = sessions.connection == CONNECTIONS.index("offline")
    is_offline = session_is_offline[events.session]
    period_s = delivery.batch_s or RESEND_AFTER_S  # seconds of play in a request
    period = np.where(is_offline, 0, (events.ts_s - sessions.start_s[events.session]) // period_s)
    hours = rng.lognormal(np.log(delivery.offline_delay_h), delivery.offline_sigma, len(sessions.day))
    delay_s = (np.minimum(hours, delivery.offline_cap_h) * HOUR_S).astype(np.int64)
    due = np.where(
        is_offline,
        (sessions.start_s + sessions.length_s + delay_s)[events.session],
        sessions.start_s[events.session] + (period + 1) * period_s,
    )
    starts_request = run_starts(events.session) | run_starts(period)
    claimed = np.maximum(events.ts_s + offset_s[events.session], 0)
    return EventDelivery(
        claimed_s=claimed,
        is_usable=claimed < IN_2100_S,
        lacks_uuid=lacks_uuid[player],
        is_offline=is_offline,
        is_unsent=is_crashed[events.session] & (events.slot == EventSlot.SESSION_END),
        sent_s=due,
        is_resent=(rng.random(int(starts_request.sum())) < delivery.lost_answers)[np.cumsum(starts_request) - 1],
    )


def _session_offsets(sessions: Sessions, players: int, delivery: DeliveryProfile, *, rng: np.random.Generator) -> Ints:
    """Return the seconds by which the times of each session are off.

    They are off by the device's clock, until the answer to an init has corrected it.
    """
    names: list[Clock] = list(delivery.clocks)
    clock = pick(rng, shares(delivery.clocks.values()), players)
    offsets = np.vstack([_clock_offsets(name, players, rng=rng) for name in names])
    is_uncorrected = rng.random(players) < delivery.uncorrected
    is_online = sessions.connection != CONNECTIONS.index("offline")
    first_online = np.full(players, np.iinfo(np.int64).max)
    np.minimum.at(first_online, sessions.player[is_online], sessions.number[is_online])
    is_corrected = ~is_uncorrected[sessions.player] & (sessions.number >= first_online[sessions.player])
    offset: Ints = np.where(is_corrected, 0, offsets[clock, np.arange(players)][sessions.player])
    return offset


def _clock_offsets(clock: Clock, count: int, *, rng: np.random.Generator) -> Ints:
    """Draw the seconds that clocks of one setting are ahead."""
    offset: Ints
    match clock:
        case "exact":
            offset = np.zeros(count, dtype=np.int64)
        case "minutes":
            offset = np.rint(rng.normal(0, 600, count)).astype(np.int64)
        case "zone":
            offset = rng.integers(-11, 13, count) * HOUR_S
        case "past":
            offset = -rng.integers(1, 60, count) * YEAR_S
        case "future":
            offset = rng.integers(100, 120, count) * YEAR_S
    return offset
