"""What an active player does on a day: sessions, the rounds in them, and the events those make.

Everything is an array over sessions, rounds or events of a block of players; a session points to its player, a round
to its session, an event to its round. A round offers one slot to each kind of event, in the order they happen, and
a flag says which slots are taken: flattened row by row that is the order of a player's events. Only the requests for an
ad are as many as networks were asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from gamelens.simulator.population.arrays import (
    Flags,
    Ints,
    pick,
    pick_by,
    run_starts,
    running_count,
    shares,
    sum_before,
)
from gamelens.simulator.population.monetisation import AdBreaks, BlockMoney, draw_money
from gamelens.simulator.population.players import Players
from gamelens.simulator.scenarios.economy import Economy
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

DAY_S: Final = 86_400
SESSION_GAP_S: Final = 30
"""Sessions of a player never overlap: one that would is pushed back until this long after the one before."""

WEEKDAY_HOURS: Final = (6, 4, 3, 2, 2, 3, 6, 11, 14, 14, 14, 15, 18, 17, 15, 15, 17, 20, 23, 26, 28, 27, 21, 12)
WEEKEND_HOURS: Final = (10, 7, 5, 3, 2, 2, 4, 6, 10, 15, 19, 21, 22, 22, 22, 22, 22, 22, 23, 25, 26, 25, 21, 15)
"""Weights of the local hours in which sessions start: a commute, a lunch, an evening; weekends begin and end later (our
own guess, no public figure)."""
SATURDAY: Final = 5
THURSDAY: Final = 3  # 1970-01-01
SLOTS_A_DAY: Final = 96  # quarters of an hour: what time zones differ by
DAY_ROOM_S: Final = DAY_S - 600
"""What the sessions of one day of a player take at most, gaps included."""

CONNECTIONS: Final = ("wifi", "wwan", "offline")
TUTORIAL_ROUNDS: Final = 3
MOST_ROUNDS: Final = 400
DESIGN_IDS: Final = (
    "ui:shop:open",
    "ui:settings:open",
    "social:invite:sent",
    "booster:hammer:used",
    "daily:bonus:claimed",
)
SEVERITIES: Final = ("debug", "info", "warning", "error", "critical")


class EventSlot(IntEnum):
    """What a round may hold, in the order it happens."""

    USER = 0
    DESIGN = 1
    START = 2
    FINISH = 3
    RESOURCE = 4
    BUSINESS = 5
    GRANT = 6
    AD_REQUEST = 7
    AD_FAILED = 8
    AD_SHOW = 9
    IMPRESSION = 10
    AD_CLICK = 11
    AD_REWARD = 12
    ERROR = 13
    SESSION_END = 14


@dataclass(frozen=True, eq=False, slots=True)
class Sessions:
    """Sessions in order of player and time; *start_s* is epoch seconds, *build* a position in the game's builds."""

    player: Ints
    day: Ints
    number: Ints
    build: Ints
    connection: Ints
    start_s: Ints
    length_s: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Rounds:
    """Rounds in order of session: what was played. *finish* is 0 fail, 1 complete; *attempt* counts from 1.

    *design* is a position in `DESIGN_IDS`, or minus the step of the tutorial. *coins* is what the round brought, or,
    negative, what was spent after it; *grant* is what came with a purchase.
    """

    session: Ints
    level: Ints
    finish: Ints
    attempt: Ints
    score: Ints
    design: Ints
    coins: Ints
    grant: Ints
    severity: Ints


@dataclass(frozen=True, eq=False, slots=True)
class PlayedEvents:
    """Events in order of player and time; *ts_s* is epoch seconds and strictly ascends within a player.

    *network* is a position in the game's networks, of those asked for an ad or showing one; 0 for other events.
    """

    round: Ints
    slot: Ints
    session: Ints
    ts_s: Ints
    network: Ints


@dataclass(frozen=True, eq=False, slots=True)
class PlayedBlock:
    """All that a block of players of one game did."""

    players: Players
    sessions: Sessions
    rounds: Rounds
    money: BlockMoney
    events: PlayedEvents


def play_block(
    players: Players, *, game: GameProfile, scenario: Scenario, first_day_s: int, rng: np.random.Generator
) -> PlayedBlock:
    """What *players* do from *first_day_s* (epoch seconds) to the end of the scenario, where sessions are cut off."""
    planned = begin_sessions(players, game=game, scenario=scenario, first_day_s=first_day_s, rng=rng)
    session = np.repeat(np.arange(len(planned.player)), rounds_by_session(planned, game=game, rng=rng))
    player = planned.player[session]
    money = draw_money(player, day=planned.day[session], players=players, game=game, scenario=scenario, rng=rng)
    rounds, has_slot = _play_rounds(session, player, money, game=game, rng=rng)
    _set_other_slots(has_slot, session, rounds, money)
    round_, slot = _flatten_slots(has_slot, money.ad.request_count)
    session_of_event = session[round_]
    sessions, ts_s = _time_events(planned, session_of_event, players=players, first_day_s=first_day_s, rng=rng)
    is_inside = ts_s < first_day_s + scenario.days * DAY_S
    round_, slot = round_[is_inside], slot[is_inside]
    events = PlayedEvents(
        round_, slot, session_of_event[is_inside], ts_s[is_inside], _network_of_event(round_, slot, money.ad)
    )
    return PlayedBlock(players, sessions, rounds, money, events)


def begin_sessions(
    players: Players, *, game: GameProfile, scenario: Scenario, first_day_s: int, rng: np.random.Generator
) -> Sessions:
    """Sessions as wished for: they may still overlap, and are as long as drawn."""
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
    return Sessions(
        player=player,
        day=day,
        number=running_count(player) + 1,
        build=_newest_builds(players, player, day, game=game),
        connection=pick(rng, np.array([0.72, 0.26, 0.02]), len(player)),
        start_s=first_day_s + day * DAY_S + second,
        length_s=_fit_into_day(length, player * scenario.days + day),
    )


def _start_seconds(
    weekday: Ints, country: Ints, *, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> Ints:
    """The second of its UTC day each session starts in, by the clock and the weekday of its country.

    Active days are UTC days, so that retention keeps its closed form: the local clock only decides the hour.
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
    """Lengths cut so that the sessions of a day (equal *key*s) have room in it."""
    first = np.flatnonzero(run_starts(key))
    if not len(first):
        return length
    wanted_s = np.add.reduceat(length + SESSION_GAP_S, first)
    count = np.diff(np.append(first, len(key)))
    share = np.minimum((DAY_ROOM_S - SESSION_GAP_S * count) / np.maximum(wanted_s - SESSION_GAP_S * count, 1), 1)
    cut: Ints = np.maximum((length * np.repeat(share, count)).astype(np.int64), 1)
    return cut


def _newest_builds(players: Players, player: Ints, day: Ints, *, game: GameProfile) -> Ints:
    """The newest build a player has: players update with a lag, those who install get the newest."""
    released = np.array([build.day for build in game.builds])
    updated = np.searchsorted(released, day - players.update_lag[player], side="right") - 1
    at_install = np.searchsorted(released, players.install_day[player], side="right") - 1
    return np.maximum(updated, at_install)


def rounds_by_session(sessions: Sessions, *, game: GameProfile, rng: np.random.Generator) -> Ints:
    """How many rounds each session holds: at least one, more the longer it is."""
    spec = game.sessions
    mean_length = spec.median_length_s * np.exp((spec.length_sigma**2 + spec.player_sigma**2) / 2)
    rounds: Ints = 1 + np.minimum(rng.poisson((spec.rounds - 1) * sessions.length_s / mean_length), MOST_ROUNDS - 1)
    return rounds


def _play_rounds(
    session: Ints, player: Ints, money: BlockMoney, *, game: GameProfile, rng: np.random.Generator
) -> tuple[Rounds, Flags]:
    """The rounds, and a flag for each of their slots with those of play set: shape (rounds, slots)."""
    spec, count = game.progression, len(session)
    played = running_count(player)
    chance = spec.easy + (spec.hard - spec.easy) * np.minimum(played / spec.hardens_after, 1)
    is_finished = rng.random(count) >= spec.quits
    finish = (rng.random(count) < chance).astype(np.int64)
    completes, fails = is_finished * finish, is_finished * (1 - finish)
    level = 1 + sum_before(completes, player)
    grant = np.array([*(item.grants for item in game.purchases.items), 0])[money.item]
    coins = _coins(player, completes == 1, grant, economy=game.economy, rng=rng)
    has_slot = np.zeros((count, len(EventSlot)), dtype=np.bool_)
    has_slot[:, EventSlot.START] = True
    has_slot[:, EventSlot.FINISH] = is_finished
    has_slot[:, EventSlot.RESOURCE] = coins != 0
    has_slot[:, EventSlot.GRANT] = grant != 0
    has_slot[:, EventSlot.DESIGN] = (played < TUTORIAL_ROUNDS) | (rng.random(count) < 0.15)
    has_slot[:, EventSlot.ERROR] = rng.random(count) < 0.004
    rounds = Rounds(
        session=session,
        level=np.minimum(level, spec.levels),
        finish=finish,
        attempt=1 + sum_before(fails, player * (count + 1) + level),
        score=rng.integers(50, 5000, count),
        design=np.where(played < TUTORIAL_ROUNDS, -1 - played, rng.integers(0, len(DESIGN_IDS), count)),
        coins=coins,
        grant=grant,
        severity=pick(rng, shares([5, 10, 35, 42, 8]), count),
    )
    return rounds, has_slot


def _coins(player: Ints, is_complete: Flags, grant: Ints, *, economy: Economy, rng: np.random.Generator) -> Ints:
    """What each round brings, or, negative, what is spent after it; nobody ever spends what he has not got.

    Who goes to the shop buys as many as he can pay. So after each visit the sum of all that was spent is all that ever
    came in, rounded down to whole prices: it follows from the income alone, without a walk through the rounds.
    """
    count = len(player)
    is_visit = rng.random(count) < economy.spends
    is_paid = is_complete & (rng.random(count) < economy.reward_share) & ~is_visit
    income = np.where(is_paid, np.maximum(np.rint(economy.reward * rng.uniform(0.5, 1.5, count)), 1), 0)
    income = income.astype(np.int64)
    # What comes with a purchase comes after the round's own coins, and what is there at the start before everything.
    received = economy.start + sum_before(income + grant, player)
    visits = np.flatnonzero(is_visit)
    bought = received[visits] // economy.price
    before = np.where(run_starts(player[visits]), 0, np.append(0, bought[:-1])) if len(visits) else bought
    income[visits] = -(bought - before) * economy.price
    return income


def _set_other_slots(has_slot: Flags, session: Ints, rounds: Rounds, money: BlockMoney) -> None:
    """Sets the slots of sessions, ads and purchases."""
    is_first = run_starts(session)
    is_rewarded = money.ad.is_shown & money.ad.is_rewarded
    has_slot[:, EventSlot.USER] = is_first
    has_slot[:, EventSlot.SESSION_END] = np.append(is_first[1:], True)
    has_slot[:, EventSlot.BUSINESS] = money.item >= 0
    has_slot[:, EventSlot.AD_REQUEST] = money.ad.request_count > 0
    has_slot[:, EventSlot.AD_FAILED] = (money.ad.request_count > 0) & ~money.ad.is_shown
    has_slot[:, EventSlot.AD_SHOW] = has_slot[:, EventSlot.IMPRESSION] = money.ad.is_shown
    has_slot[:, EventSlot.AD_CLICK] = money.ad.is_shown & money.ad.is_clicked
    has_slot[:, EventSlot.AD_REWARD] = is_rewarded


def _flatten_slots(has_slot: Flags, request_count: Ints) -> tuple[Ints, Ints]:
    """Round and slot of each event, with a request for each network that is *asked*."""
    round_, slot = np.nonzero(has_slot)
    times = np.ones(len(slot), dtype=np.int64)
    requests = np.flatnonzero(slot == EventSlot.AD_REQUEST)
    times[requests] = request_count[round_[requests]]
    return np.repeat(round_, times), np.repeat(slot, times)


def _network_of_event(round_: Ints, slot: Ints, ad: AdBreaks) -> Ints:
    """The network of each event that has one: of the requests for an ad the next one asked, of all else the last."""
    network = np.zeros(len(slot), dtype=np.int64)
    ad_events = np.flatnonzero((slot >= EventSlot.AD_REQUEST) & (slot <= EventSlot.AD_REWARD))
    network[ad_events] = ad.network[round_[ad_events]]
    requests = ad_events[slot[ad_events] == EventSlot.AD_REQUEST]
    network[requests] = ad.order[ad.lineup[round_[requests]], running_count(round_[requests])]
    return network


def _time_events(
    planned: Sessions, session_of_event: Ints, *, players: Players, first_day_s: int, rng: np.random.Generator
) -> tuple[Sessions, Ints]:
    """The sessions, and the second of every event, each *of* one. Sessions get long enough for an event a second."""
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
    sessions = Sessions(
        planned.player, planned.day, planned.number, planned.build, planned.connection, start_s=start, length_s=length
    )
    return sessions, start[session_of_event] + offset


def _separate_sessions(start: Ints, length: Ints, player: Ints) -> Ints:
    """Pushes back each session of a player that starts before the one before it is over."""
    used = sum_before(length + SESSION_GAP_S, player)
    slack = start - used
    # A running maximum over everybody at once: a step larger than all slack keeps players apart.
    step = player * (slack.max() - slack.min() + 1) if len(slack) else player
    starts: Ints = np.maximum.accumulate(slack + step) - step + used
    return starts


def _end_on_active_days(start: Ints, length: Ints, planned: Sessions, *, players: Players, first_day_s: int) -> Ints:
    """Brings sessions forward that would run into a day on which their player does not play, and those before them.

    Else midnight would make players active on days nobody drew, and retention would lose its closed form. The end of
    the scenario is no such day: there sessions are cut.
    """
    days = players.active.shape[1]
    plays_on = np.column_stack([players.active[:, 1:], np.ones(len(players), dtype=np.bool_)])
    ends_by = np.where(plays_on[planned.player, planned.day], days + 1, planned.day + 1) * DAY_S + first_day_s - 1
    used = sum_before(length + SESSION_GAP_S, planned.player)
    slack = np.minimum(start, ends_by - length) - used
    # The running minimum from the end, with players kept apart as in `_apart`.
    step = planned.player * (slack.max() - slack.min() + 1) if len(slack) else planned.player
    starts: Ints = np.minimum.accumulate((slack + step)[::-1])[::-1] - step + used
    return starts
