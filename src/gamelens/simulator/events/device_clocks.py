"""Clocks of devices: by how much the times of a session are off, until an answer of the service corrects them."""

from __future__ import annotations

from typing import Final

import numpy as np

from gamelens.simulator.population.arrays import Ints, pick, shares
from gamelens.simulator.population.session_times import CONNECTIONS, DAY_S, Sessions
from gamelens.simulator.scenarios.scenario import DeliveryProfile, DeviceClock

YEAR_S: Final = 365 * DAY_S
HOUR_S: Final = 3600


def clock_offsets_of(sessions: Sessions, players: int, delivery: DeliveryProfile, *, rng: np.random.Generator) -> Ints:
    """Return the seconds by which the times of each session are off.

    They are off by the device's clock, until the answer to an init has corrected it.
    """
    names: list[DeviceClock] = list(delivery.clocks)
    clock = pick(rng, shares(delivery.clocks.values()), players)
    offsets = np.vstack([_offsets(name, players, rng=rng) for name in names])
    is_uncorrected = rng.random(players) < delivery.uncorrected
    is_online = sessions.connection != CONNECTIONS.index("offline")
    first_online = np.full(players, np.iinfo(np.int64).max)
    np.minimum.at(first_online, sessions.player[is_online], sessions.number[is_online])
    is_corrected = ~is_uncorrected[sessions.player] & (sessions.number >= first_online[sessions.player])
    offset: Ints = np.where(is_corrected, 0, offsets[clock, np.arange(players)][sessions.player])
    return offset


def _offsets(clock: DeviceClock, count: int, *, rng: np.random.Generator) -> Ints:
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
