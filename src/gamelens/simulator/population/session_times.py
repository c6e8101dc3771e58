"""The sessions of active players: number, start, length and build.

Sessions of a player never overlap, and never run into a day on which the player is not active.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np

from gamelens.simulator.population.arrays import (
    Ints,
    pick,
    pick_by,
    run_starts,
    running_count,
    sum_before,
)
from gamelens.simulator.population.players import Players
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

DAY_S: Final = 86_400
EPOCH: Final = date(1970, 1, 1)
SESSION_GAP_S: Final = 30
"""Shortest time between two sessions of a player. Later ones are delayed to keep it."""
WEEKDAY_HOURS: Final = (6, 4, 3, 2, 2, 3, 6, 11, 14, 14, 14, 15, 18, 17, 15, 15, 17, 20, 23, 26, 28, 27, 21, 12)
WEEKEND_HOURS: Final = (10, 7, 5, 3, 2, 2, 4, 6, 10, 15, 19, 21, 22, 22, 22, 22, 22, 22, 23, 25, 26, 25, 21, 15)
"""Weights of the local hours in which sessions start.

They peak at the commute, at lunch and in the evening. Weekends begin and end later. Our choice, without a public
figure.
"""
SATURDAY: Final = 5
THURSDAY: Final = 3  # the weekday of 1970-01-01
SLOTS_A_DAY: Final = 96  # quarters of an hour, by which time zones differ
DAY_ROOM_S: Final = DAY_S - 600
"""Longest total time of the sessions of one player and day, gaps included."""
CONNECTIONS: Final = ("wifi", "wwan", "offline")


@dataclass(frozen=True, eq=False, slots=True)
class Sessions:
    """Sessions by player and time, one array per attribute."""

    player: Ints  # position in the block
    day: Ints  # day of the scenario
    number: Ints  # number of the session of its player, from 1
    build: Ints  # position in the game's builds
    connection: Ints  # position in `CONNECTIONS`
    start_s: Ints  # start in epoch seconds
    length_s: Ints  # length in seconds


def begin_sessions(
    players: Players, *, game: GameProfile, scenario: Scenario, first_day_s: int, rng: np.random.Generator
) -> Sessions:
    """Draw the sessions of all active days, which may still overlap."""
    spec = game.sessions
    active_player, active_day = np.nonzero(players.active)
    weekday = (first_day_s // DAY_S + THURSDAY + active_day) % 7
    busy = np.where(weekday >= SATURDAY, spec.weekend, 1.0)
    more = np.maximum(spec.per_day * busy - 1, 0)
    more = rng.negative_binomial(spec.dispersion, spec.dispersion / (spec.dispersion + more + 1e-12))
    player, day = np.repeat(active_player, 1 + more), np.repeat(active_day, 1 + more)
    second = _start_seconds(
        np.repeat(weekday, 1 + more), players.country[player], game=game, scenario=scenario, rng=rng
    )
    order = np.lexsort((second, day, player))
    player, day, second = player[order], day[order], second[order]
    median = np.log(spec.median_length_s) + players.appetite[player]
    length = np.minimum(rng.lognormal(median, spec.length_sigma), 4 * 3600).astype(np.int64) + 1
    # New players install the newest build; existing players update with a lag.
    released = np.array([build.day for build in game.builds])
    updated = np.searchsorted(released, day - players.update_lag[player], side="right") - 1
    at_install = np.searchsorted(released, players.install_day[player], side="right") - 1
    return Sessions(
        player=player,
        day=day,
        number=running_count(player) + 1,
        build=np.maximum(updated, at_install),
        connection=pick(rng, np.array([0.72, 0.26, 0.02]), len(player)),
        start_s=first_day_s + day * DAY_S + second,
        length_s=_fit_into_day(length, player * scenario.days + day),
    )


def _start_seconds(
    weekday: Ints, country: Ints, *, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> Ints:
    """Draw the second of the UTC day in which each session starts.

    It follows the local hour and weekday of the country. Active days are UTC days, so that retention keeps its closed
    form; the local clock only decides the hour.
    """
    offsets = np.array([scenario.country(code).utc_offset_h for code in game.countries])
    hour = np.arange(SLOTS_A_DAY) * 24 / SLOTS_A_DAY + offsets[:, None]
    local_weekday = (np.arange(7)[:, None, None] + np.floor(hour / 24).astype(np.int64)) % 7
    hour = np.floor(hour % 24).astype(np.int64)
    weights = np.where(local_weekday >= SATURDAY, np.array(WEEKEND_HOURS)[hour], np.array(WEEKDAY_HOURS)[hour])
    slot = pick_by(rng, weights.reshape(-1, SLOTS_A_DAY).astype(np.float64), weekday * len(offsets) + country)
    long_s = DAY_S // SLOTS_A_DAY
    return slot * long_s + rng.integers(0, long_s, len(slot))


def _fit_into_day(length: Ints, key: Ints) -> Ints:
    """Shorten sessions so that all of one day (equal *key*s) fit into it."""
    first = np.flatnonzero(run_starts(key))
    if not len(first):
        return length
    wanted_s = np.add.reduceat(length + SESSION_GAP_S, first)
    count = np.diff(np.append(first, len(key)))
    share = np.minimum((DAY_ROOM_S - SESSION_GAP_S * count) / np.maximum(wanted_s - SESSION_GAP_S * count, 1), 1)
    cut: Ints = np.maximum((length * np.repeat(share, count)).astype(np.int64), 1)
    return cut


def time_events(
    planned: Sessions, session_of_event: Ints, *, players: Players, first_day_s: int, rng: np.random.Generator
) -> tuple[Sessions, Ints]:
    """Return the sessions with their final times, and the second of every event.

    Sessions are lengthened to hold one event per second.
    """
    inner = np.bincount(session_of_event, minlength=len(planned.player)) - 2
    length = np.maximum(planned.length_s, inner + 1)
    start = _separate_sessions(planned.start_s, length, planned.player)
    start = _end_on_active_days(start, length, planned, players=players, first_day_s=first_day_s)
    place = running_count(session_of_event)
    # Sorted draws plus the place in the session: whole seconds, random, and strictly ascending.
    drawn = np.sort(session_of_event + rng.random(len(session_of_event))) - session_of_event
    room = (length - inner)[session_of_event]
    offset = np.minimum((drawn * room).astype(np.int64), room - 1) + place
    offset = np.where(place == 0, 0, np.where(place == inner[session_of_event] + 1, length[session_of_event], offset))
    return replace(planned, start_s=start, length_s=length), start[session_of_event] + offset


def _separate_sessions(start: Ints, length: Ints, player: Ints) -> Ints:
    """Delay each session that starts before the player's previous one has ended."""
    used = sum_before(length + SESSION_GAP_S, player)
    slack = start - used
    # A running maximum over all players at once: a step larger than any slack separates the players.
    step = player * (slack.max() - slack.min() + 1) if len(slack) else player
    starts: Ints = np.maximum.accumulate(slack + step) - step + used
    return starts


def _end_on_active_days(start: Ints, length: Ints, planned: Sessions, *, players: Players, first_day_s: int) -> Ints:
    """Move sessions forward that would run into a day on which their player is not active.

    Without it, sessions across midnight would make players active on days that were not drawn, and retention would lose
    its closed form. Sessions that run past the end of the scenario stay and are cut.
    """
    days = players.active.shape[1]
    plays_on = np.column_stack([players.active[:, 1:], np.ones(len(players), dtype=np.bool_)])
    ends_by = np.where(plays_on[planned.player, planned.day], days + 1, planned.day + 1) * DAY_S + first_day_s - 1
    used = sum_before(length + SESSION_GAP_S, planned.player)
    slack = np.minimum(start, ends_by - length) - used
    # A running minimum from the end, with the players separated as in `_separate_sessions`.
    step = planned.player * (slack.max() - slack.min() + 1) if len(slack) else planned.player
    starts: Ints = np.minimum.accumulate((slack + step)[::-1])[::-1] - step + used
    return starts
