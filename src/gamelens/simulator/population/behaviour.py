"""The sessions of active players, the rounds in them, and the events of each round.

Everything is an array over the sessions, rounds or events of a block of players. A session refers to its player, a
round to its session, an event to its round. A round has one slot for each kind of event, in the order they happen, and
a flag for each slot that is taken. Flattened row by row, the flags give the order of a player's events. Only ad
requests occur several times in a round: once for each network asked.
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
    run_starts,
    running_count,
    shares,
    sum_before,
)
from gamelens.simulator.population.monetisation import BlockMoney, draw_money
from gamelens.simulator.population.players import Players
from gamelens.simulator.population.session_times import DAY_S, Sessions, begin_sessions, time_events
from gamelens.simulator.scenarios.game_profile import Economy, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import HardLevel, LostSessions

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
    """The events that a round may hold, in the order they happen."""

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
class Rounds:
    """Rounds by session, one array per attribute."""

    session: Ints  # position in the sessions
    level: Ints  # level played, from 1
    finish: Ints  # 0 for failed, 1 for completed
    attempt: Ints  # number of the attempt at the level, from 1
    score: Ints  # points
    design: Ints  # position in `DESIGN_IDS`, or minus the step of the tutorial
    coins: Ints  # game currency earned, or, if negative, spent after the round
    grant: Ints  # game currency that comes with a purchase
    severity: Ints  # position in `SEVERITIES`


@dataclass(frozen=True, eq=False, slots=True)
class PlayedEvents:
    """Events by player and time, one array per attribute."""

    round: Ints  # position in the rounds
    slot: Ints  # the kind of event, an `EventSlot`
    session: Ints  # position in the sessions
    ts_s: Ints  # epoch seconds, strictly ascending for each player
    network: Ints  # position in the game's networks for ad events, else 0


@dataclass(frozen=True, eq=False, slots=True)
class PlayedBlock:
    """All actions of a block of players of one game."""

    players: Players
    sessions: Sessions
    rounds: Rounds
    money: BlockMoney
    events: PlayedEvents


def play_block(
    players: Players,
    *,
    game: GameProfile,
    scenario: Scenario,
    first_day_s: int,
    rng: np.random.Generator,
    faults_rng: np.random.Generator,
) -> PlayedBlock:
    """Simulate *players* from *first_day_s* (epoch seconds) to the end of the scenario.

    Sessions that run past the end are cut off. *faults_rng* draws who meets a broken SDK or a hard level, so that all
    else is as in the same scenario without it.
    """
    planned = begin_sessions(players, game=game, scenario=scenario, first_day_s=first_day_s, rng=rng)
    session = np.repeat(np.arange(len(planned.player)), rounds_by_session(planned, game=game, rng=rng))
    player = planned.player[session]
    money = draw_money(
        player,
        day=planned.day[session],
        players=players,
        game=game,
        scenario=scenario,
        first_day_s=first_day_s,
        rng=rng,
    )
    rounds, has_slot = _play_rounds(
        session,
        player,
        planned.day[session],
        money,
        game=game,
        walls=walls_of(game, scenario=scenario),
        rng=rng,
        faults_rng=faults_rng,
    )
    round_, slot = np.nonzero(has_slot)
    times = np.ones(len(slot), dtype=np.int64)  # a break has a request for each network asked
    requests = np.flatnonzero(slot == EventSlot.AD_REQUEST)
    times[requests] = money.ad.request_count[round_[requests]]
    round_, slot = np.repeat(round_, times), np.repeat(slot, times)
    session_of_event = session[round_]
    sessions, ts_s = time_events(planned, session_of_event, players=players, first_day_s=first_day_s, rng=rng)
    is_inside = (ts_s < first_day_s + scenario.days * DAY_S) & ~lost_sessions(
        planned, players, game=game, scenario=scenario, rng=faults_rng
    )[session_of_event]
    round_, slot = round_[is_inside], slot[is_inside]
    # Ad requests name the networks in the order they are asked, other ad events the network asked last.
    ad, network = money.ad, np.zeros(len(slot), dtype=np.int64)
    ad_events = np.flatnonzero((slot >= EventSlot.AD_REQUEST) & (slot <= EventSlot.AD_REWARD))
    network[ad_events] = ad.network[round_[ad_events]]
    requests = ad_events[slot[ad_events] == EventSlot.AD_REQUEST]
    network[requests] = ad.order[ad.lineup[round_[requests]], running_count(round_[requests])]
    events = PlayedEvents(round_, slot, session_of_event[is_inside], ts_s[is_inside], network)
    return PlayedBlock(players, sessions, rounds, money, events)


def rounds_by_session(sessions: Sessions, *, game: GameProfile, rng: np.random.Generator) -> Ints:
    """Draw the number of rounds of each session, at least one and more in longer sessions."""
    spec = game.sessions
    mean_length = spec.median_length_s * np.exp((spec.length_sigma**2 + spec.player_sigma**2) / 2)
    rounds: Ints = 1 + np.minimum(rng.poisson((spec.rounds - 1) * sessions.length_s / mean_length), MOST_ROUNDS - 1)
    return rounds


def lost_sessions(
    sessions: Sessions, players: Players, *, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> Flags:
    """Draw the sessions that send no event, because the SDK is broken."""
    lost = np.zeros(len(sessions.player), dtype=np.bool_)
    for incident in scenario.incidents_of(game):
        if isinstance(incident, LostSessions):
            where = np.array([incident.platform in (None, name) for name in game.platforms])
            is_affected = (sessions.day >= incident.day) & (sessions.day < incident.day + incident.days)
            is_affected &= where[players.platform[sessions.player]]
            lost |= is_affected & (rng.random(len(lost)) < incident.share)
    return lost


def walls_of(game: GameProfile, *, scenario: Scenario) -> list[HardLevel]:
    """Return the levels of *game* that become too hard."""
    return [incident for incident in scenario.incidents_of(game) if isinstance(incident, HardLevel)]


def hold_back(
    player: Ints, day: Ints, completes: Ints, is_finished: Flags, wall: HardLevel, *, rng: np.random.Generator
) -> tuple[Ints, Flags]:
    """Return the completed rounds once *wall* stands, and a mask of the rounds that are played at all.

    A player who reaches the level while it is hard stays at it until a round of it is completed, with
    `wall.complete` times the usual chance, or leaves for good.
    """
    level = 1 + sum_before(completes, player)
    is_on = (day >= wall.day) & ((wall.days is None) | (day < wall.day + (wall.days or 0)))
    # Those who reached the level before it became hard have it behind them, or play it as hard from now on.
    arrived = np.flatnonzero(is_on & (level == wall.level))
    at_wall = np.zeros(len(player), dtype=np.int64)
    at_wall[arrived[run_starts(player[arrived])]] = 1
    has_arrived = (sum_before(at_wall, player) + at_wall) > 0
    succeeds = has_arrived & (completes == 1) & (rng.random(len(player)) < np.where(is_on, wall.complete, 1.0))
    is_past = sum_before(succeeds.astype(np.int64), player) > 0
    is_stuck = has_arrived & ~is_past
    held = np.where(is_stuck, succeeds, completes).astype(np.int64)
    leaves = is_stuck & is_on & is_finished & (held == 0) & (rng.random(len(player)) < wall.quits)
    return held, sum_before(leaves.astype(np.int64), player) == 0


def _play_rounds(
    session: Ints,
    player: Ints,
    day: Ints,
    money: BlockMoney,
    *,
    game: GameProfile,
    walls: list[HardLevel],
    rng: np.random.Generator,
    faults_rng: np.random.Generator,
) -> tuple[Rounds, Flags]:
    """Draw the rounds, and the slots that each takes, shape (rounds, slots)."""
    spec, count, ad, is_first = game.progression, len(session), money.ad, run_starts(session)
    played = running_count(player)
    chance = spec.easy + (spec.hard - spec.easy) * np.minimum(played / spec.hardens_after, 1)
    is_finished = rng.random(count) >= spec.quits
    finish = (rng.random(count) < chance).astype(np.int64)
    is_played = np.ones(count, dtype=np.bool_)
    for wall in walls:
        held, is_there = hold_back(player, day, is_finished * finish, is_finished, wall, rng=faults_rng)
        finish, is_played = np.where(is_finished, held, finish), is_played & is_there
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
    has_slot[:, EventSlot.USER] = is_first
    has_slot[:, EventSlot.SESSION_END] = np.append(is_first[1:], True) | ~np.append(is_played[1:], True)
    has_slot[:, EventSlot.BUSINESS] = money.item >= 0
    has_slot[:, EventSlot.AD_REQUEST] = ad.request_count > 0
    has_slot[:, EventSlot.AD_FAILED] = (ad.request_count > 0) & ~ad.is_shown
    has_slot[:, EventSlot.AD_SHOW] = has_slot[:, EventSlot.IMPRESSION] = ad.is_shown
    has_slot[:, EventSlot.AD_CLICK] = ad.is_shown & ad.is_clicked
    has_slot[:, EventSlot.AD_REWARD] = ad.is_shown & ad.is_rewarded
    has_slot &= is_played[:, None]
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
    """Return the game currency earned by each round, or, if negative, spent after it.

    A player who visits the shop buys as many as the balance allows. After each visit, the total spent is therefore the
    total received, rounded down to a multiple of the price. It follows from the income alone, without a loop over the
    rounds.
    """
    count = len(player)
    is_visit = rng.random(count) < economy.spends
    is_paid = is_complete & (rng.random(count) < economy.reward_share) & ~is_visit
    income = np.where(is_paid, np.maximum(np.rint(economy.reward * rng.uniform(0.5, 1.5, count)), 1), 0)
    income = income.astype(np.int64)
    # The grant of a purchase follows the round's own reward. The initial balance precedes everything.
    received = economy.start + sum_before(income + grant, player)
    visits = np.flatnonzero(is_visit)
    bought = received[visits] // economy.price
    before = np.where(run_starts(player[visits]), 0, np.append(0, bought[:-1])) if len(visits) else bought
    income[visits] = -(bought - before) * economy.price
    return income
