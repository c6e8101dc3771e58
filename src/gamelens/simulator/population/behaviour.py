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

from gamelens.simulator.population.monetisation import AdBreaks, BlockMoney, draw_money
from gamelens.simulator.population.players import Flags, Ints, Players, pick, pick_by, shares
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
    begun = begin_sessions(players, game=game, scenario=scenario, first_day_s=first_day_s, rng=rng)
    session = np.repeat(np.arange(len(begun.player)), rounds_by_session(begun, game=game, rng=rng))
    player = begun.player[session]
    money = draw_money(player, day=begun.day[session], players=players, game=game, scenario=scenario, rng=rng)
    rounds, taken = _play_rounds(session, player, money, game=game, rng=rng)
    _take_slots(taken, session, rounds, money)
    round_, slot = _in_order(taken, money.ad.asked)
    of = session[round_]
    sessions, ts_s = _time_events(begun, of, players=players, first_day_s=first_day_s, rng=rng)
    kept = ts_s < first_day_s + scenario.days * DAY_S
    round_, slot = round_[kept], slot[kept]
    events = PlayedEvents(round_, slot, of[kept], ts_s[kept], _networks(round_, slot, money.ad))
    return PlayedBlock(players, sessions, rounds, money, events)


def running_count(key: Ints) -> Ints:
    """0, 1, 2 ... within each run of equal *key*s."""
    index = np.arange(len(key))
    place: Ints = index - np.maximum.accumulate(np.where(_starts(key), index, 0))
    return place


def _starts(key: Ints) -> Flags:
    starts = np.ones(len(key), dtype=np.bool_)
    starts[1:] = key[1:] != key[:-1]
    return starts


def _sum_before(values: Ints, key: Ints) -> Ints:
    """Sum of the *values* before each one within its run of equal *key*s."""
    before = np.cumsum(values) - values
    first = np.flatnonzero(_starts(key))
    summed: Ints = before - np.repeat(before[first], np.diff(np.append(first, len(key))))
    return summed


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
        build=_builds(players, player, day, game=game),
        connection=pick(rng, np.array([0.72, 0.26, 0.02]), len(player)),
        start_s=first_day_s + day * DAY_S + second,
        length_s=_fitting(length, player * scenario.days + day),
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


def _fitting(length: Ints, key: Ints) -> Ints:
    """Lengths cut so that the sessions of a day (equal *key*s) have room in it."""
    first = np.flatnonzero(_starts(key))
    if not len(first):
        return length
    taken = np.add.reduceat(length + SESSION_GAP_S, first)
    count = np.diff(np.append(first, len(key)))
    share = np.minimum((DAY_ROOM_S - SESSION_GAP_S * count) / np.maximum(taken - SESSION_GAP_S * count, 1), 1)
    cut: Ints = np.maximum((length * np.repeat(share, count)).astype(np.int64), 1)
    return cut


def _builds(players: Players, player: Ints, day: Ints, *, game: GameProfile) -> Ints:
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
    level = 1 + _sum_before(completes, player)
    grant = np.array([*(item.grants for item in game.purchases.items), 0])[money.item]
    coins = _coins(player, completes == 1, grant, economy=game.economy, rng=rng)
    taken = np.zeros((count, len(EventSlot)), dtype=np.bool_)
    taken[:, EventSlot.START] = True
    taken[:, EventSlot.FINISH] = is_finished
    taken[:, EventSlot.RESOURCE] = coins != 0
    taken[:, EventSlot.GRANT] = grant != 0
    taken[:, EventSlot.DESIGN] = (played < TUTORIAL_ROUNDS) | (rng.random(count) < 0.15)
    taken[:, EventSlot.ERROR] = rng.random(count) < 0.004
    rounds = Rounds(
        session=session,
        level=np.minimum(level, spec.levels),
        finish=finish,
        attempt=1 + _sum_before(fails, player * (count + 1) + level),
        score=rng.integers(50, 5000, count),
        design=np.where(played < TUTORIAL_ROUNDS, -1 - played, rng.integers(0, len(DESIGN_IDS), count)),
        coins=coins,
        grant=grant,
        severity=pick(rng, shares([5, 10, 35, 42, 8]), count),
    )
    return rounds, taken


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
    came = economy.start + _sum_before(income + grant, player)
    visits = np.flatnonzero(is_visit)
    bought = came[visits] // economy.price
    before = np.where(_starts(player[visits]), 0, np.append(0, bought[:-1])) if len(visits) else bought
    income[visits] = -(bought - before) * economy.price
    return income


def _take_slots(taken: Flags, session: Ints, rounds: Rounds, money: BlockMoney) -> None:
    """Sets the slots of sessions, ads and purchases."""
    is_first = _starts(session)
    is_rewarded = money.ad.is_shown & money.ad.is_rewarded
    taken[:, EventSlot.USER] = is_first
    taken[:, EventSlot.SESSION_END] = np.append(is_first[1:], True)
    taken[:, EventSlot.BUSINESS] = money.item >= 0
    taken[:, EventSlot.AD_REQUEST] = money.ad.asked > 0
    taken[:, EventSlot.AD_FAILED] = (money.ad.asked > 0) & ~money.ad.is_shown
    taken[:, EventSlot.AD_SHOW] = taken[:, EventSlot.IMPRESSION] = money.ad.is_shown
    taken[:, EventSlot.AD_CLICK] = money.ad.is_shown & money.ad.is_clicked
    taken[:, EventSlot.AD_REWARD] = is_rewarded


def _in_order(taken: Flags, asked: Ints) -> tuple[Ints, Ints]:
    """Round and slot of each event, with a request for each network that is *asked*."""
    round_, slot = np.nonzero(taken)
    times = np.ones(len(slot), dtype=np.int64)
    requests = np.flatnonzero(slot == EventSlot.AD_REQUEST)
    times[requests] = asked[round_[requests]]
    return np.repeat(round_, times), np.repeat(slot, times)


def _networks(round_: Ints, slot: Ints, ad: AdBreaks) -> Ints:
    """The network of each event that has one: of the requests for an ad the next one asked, of all else the last."""
    network = np.zeros(len(slot), dtype=np.int64)
    told = np.flatnonzero((slot >= EventSlot.AD_REQUEST) & (slot <= EventSlot.AD_REWARD))
    network[told] = ad.network[round_[told]]
    requests = told[slot[told] == EventSlot.AD_REQUEST]
    network[requests] = ad.order[ad.lineup[round_[requests]], running_count(round_[requests])]
    return network


def _time_events(
    begun: Sessions, of: Ints, *, players: Players, first_day_s: int, rng: np.random.Generator
) -> tuple[Sessions, Ints]:
    """The sessions, and the second of every event, each *of* one. Sessions get long enough for an event a second."""
    inner = np.bincount(of, minlength=len(begun.player)) - 2
    length = np.maximum(begun.length_s, inner + 1)
    start = _apart(begun.start_s, length, begun.player)
    start = _in_time(start, length, begun, players=players, first_day_s=first_day_s)
    place = running_count(of)
    # Sorted draws plus the place in the session: whole seconds, random, and strictly ascending.
    drawn = np.sort(of + rng.random(len(of))) - of
    room = (length - inner)[of]
    offset = np.minimum((drawn * room).astype(np.int64), room - 1) + place
    offset = np.where(place == 0, 0, np.where(place == inner[of] + 1, length[of], offset))
    sessions = Sessions(
        begun.player, begun.day, begun.number, begun.build, begun.connection, start_s=start, length_s=length
    )
    return sessions, start[of] + offset


def _apart(start: Ints, length: Ints, player: Ints) -> Ints:
    """Pushes back each session of a player that starts before the one before it is over."""
    used = _sum_before(length + SESSION_GAP_S, player)
    slack = start - used
    # A running maximum over everybody at once: a step larger than all slack keeps players apart.
    step = player * (slack.max() - slack.min() + 1) if len(slack) else player
    pushed: Ints = np.maximum.accumulate(slack + step) - step + used
    return pushed


def _in_time(start: Ints, length: Ints, begun: Sessions, *, players: Players, first_day_s: int) -> Ints:
    """Brings sessions forward that would run into a day on which their player does not play, and those before them.

    Else midnight would make players active on days nobody drew, and retention would lose its closed form. The end of
    the scenario is no such day: there sessions are cut.
    """
    days = players.active.shape[1]
    plays_on = np.column_stack([players.active[:, 1:], np.ones(len(players), dtype=np.bool_)])
    ends_by = np.where(plays_on[begun.player, begun.day], days + 1, begun.day + 1) * DAY_S + first_day_s - 1
    used = _sum_before(length + SESSION_GAP_S, begun.player)
    slack = np.minimum(start, ends_by - length) - used
    # The running minimum from the end, with players kept apart as in `_apart`.
    step = begun.player * (slack.max() - slack.min() + 1) if len(slack) else begun.player
    brought: Ints = np.minimum.accumulate((slack + step)[::-1])[::-1] - step + used
    return brought
