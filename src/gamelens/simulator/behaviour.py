"""What an active player does on a day: sessions, the rounds in them, and the events those make.

Everything is an array over sessions, rounds or events of a block of players; a session points to its player, a round
to its session, an event to its round. A round offers one slot to each kind of event, in the order they happen, and
a flag says which slots are taken: flattened row by row that is the order of a player's events.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from gamelens.simulator.monetisation import Money, draw_money
from gamelens.simulator.players import Flags, Ints, Players, pick, shares
from gamelens.simulator.scenario import Scenario
from gamelens.simulator.traits import Game

DAY_S: Final = 86_400
SESSION_GAP_S: Final = 30
"""Sessions of a player never overlap: one that would is pushed back until this long after the one before."""

LOCAL_HOURS: Final = shares([6, 4, 3, 2, 2, 3, 6, 11, 14, 14, 14, 15, 18, 17, 15, 15, 17, 20, 23, 26, 28, 27, 21, 12])
"""Share of sessions that start in each local hour: a commute, a lunch, an evening (our own guess, no public figure)."""

CONNECTIONS: Final = ("wifi", "wwan", "offline")
TUTORIAL_ROUNDS: Final = 3
DESIGN_IDS: Final = (
    "ui:shop:open",
    "ui:settings:open",
    "social:invite:sent",
    "booster:hammer:used",
    "daily:bonus:claimed",
)
SEVERITIES: Final = ("debug", "info", "warning", "error", "critical")


class Slot(IntEnum):
    """What a round may hold, in the order it happens."""

    USER = 0
    DESIGN = 1
    START = 2
    FINISH = 3
    RESOURCE = 4
    BUSINESS = 5
    AD_REQUEST = 6
    AD_FAILED = 7
    AD_SHOW = 8
    IMPRESSION = 9
    AD_CLICK = 10
    AD_REWARD = 11
    ERROR = 12
    SESSION_END = 13


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

    *design* is a position in `DESIGN_IDS`, or minus the step of the tutorial. *coins* is negative when spent.
    """

    session: Ints
    level: Ints
    finish: Ints
    attempt: Ints
    score: Ints
    design: Ints
    coins: Ints
    severity: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Events:
    """Events in order of player and time; *ts_s* is epoch seconds and strictly ascends within a player."""

    round: Ints
    slot: Ints
    session: Ints
    ts_s: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """All that a block of players of one game did."""

    players: Players
    sessions: Sessions
    rounds: Rounds
    money: Money
    events: Events


def act(players: Players, *, game: Game, scenario: Scenario, first_day_s: int, rng: np.random.Generator) -> Block:
    """What *players* do from *first_day_s* (epoch seconds) to the end of the scenario, where sessions are cut off."""
    begun = _begin_sessions(players, game=game, scenario=scenario, first_day_s=first_day_s, rng=rng)
    session = np.repeat(np.arange(len(begun.player)), _rounds_by_session(begun, game=game, rng=rng))
    player = begun.player[session]
    rounds, taken = _play_rounds(session, player, game=game, rng=rng)
    money = draw_money(
        player,
        age_days=begun.day[session] - players.install_day[player],
        players=players,
        game=game,
        scenario=scenario,
        rng=rng,
    )
    _take_slots(taken, session, rounds, money)
    sessions, events = _time_events(begun, session, taken, rng=rng)
    kept = events.ts_s < first_day_s + scenario.days * DAY_S
    events = Events(events.round[kept], events.slot[kept], events.session[kept], events.ts_s[kept])
    return Block(players, sessions, rounds, money, events)


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


def _begin_sessions(
    players: Players, *, game: Game, scenario: Scenario, first_day_s: int, rng: np.random.Generator
) -> Sessions:
    """Sessions as wished for: they may still overlap, and are as long as drawn."""
    spec = game.sessions
    active_player, active_day = np.nonzero(players.active)
    more = rng.negative_binomial(
        spec.dispersion, spec.dispersion / (spec.dispersion + spec.per_day - 1 + 1e-12), len(active_day)
    )
    player, day = np.repeat(active_player, 1 + more), np.repeat(active_day, 1 + more)
    offset_s = np.array([scenario.country(code).utc_offset_h * 3600 for code in game.countries])[
        players.country[player]
    ]
    local_s = pick(rng, LOCAL_HOURS, len(player)) * 3600 + rng.integers(0, 3600, len(player))
    # Active days are UTC days, so that retention keeps its closed form: the local clock only decides the hour.
    second = ((local_s - offset_s) % DAY_S).astype(np.int64)
    order = np.lexsort((second, day, player))
    player, day, second = player[order], day[order], second[order]
    length = rng.lognormal(np.log(spec.median_length_s), spec.length_sigma, len(player))
    return Sessions(
        player=player,
        day=day,
        number=running_count(player) + 1,
        build=_builds(players, player, day, game=game),
        connection=pick(rng, np.array([0.72, 0.26, 0.02]), len(player)),
        start_s=first_day_s + day * DAY_S + second,
        length_s=np.minimum(length, 4 * 3600).astype(np.int64) + 1,
    )


def _builds(players: Players, player: Ints, day: Ints, *, game: Game) -> Ints:
    """The newest build a player has: players update with a lag, those who install get the newest."""
    released = np.array([build.day for build in game.builds])
    updated = np.searchsorted(released, day - players.update_lag[player], side="right") - 1
    at_install = np.searchsorted(released, players.install_day[player], side="right") - 1
    return np.maximum(updated, at_install)


def _rounds_by_session(sessions: Sessions, *, game: Game, rng: np.random.Generator) -> Ints:
    spec = game.sessions
    mean_length = spec.median_length_s * np.exp(spec.length_sigma**2 / 2)
    wanted = (spec.rounds - 1) * np.minimum(sessions.length_s / mean_length, 5)
    rounds: Ints = 1 + np.minimum(rng.poisson(wanted), 50)
    return rounds


def _play_rounds(session: Ints, player: Ints, *, game: Game, rng: np.random.Generator) -> tuple[Rounds, Flags]:
    """The rounds, and a flag for each of their slots with those of play set: shape (rounds, slots)."""
    spec, count = game.progression, len(session)
    played = running_count(player)
    chance = spec.easy + (spec.hard - spec.easy) * np.minimum(played / spec.hardens_after, 1)
    is_finished = rng.random(count) >= spec.quits
    finish = (rng.random(count) < chance).astype(np.int64)
    completes, fails = is_finished * finish, is_finished * (1 - finish)
    level = 1 + _sum_before(completes, player)
    coins, taken = _coins(completes, rng), np.zeros((count, len(Slot)), dtype=np.bool_)
    taken[:, Slot.START] = True
    taken[:, Slot.FINISH] = is_finished
    taken[:, Slot.RESOURCE] = coins != 0
    taken[:, Slot.DESIGN] = (played < TUTORIAL_ROUNDS) | (rng.random(count) < 0.15)
    taken[:, Slot.ERROR] = rng.random(count) < 0.004
    rounds = Rounds(
        session=session,
        level=np.minimum(level, spec.levels),
        finish=finish,
        attempt=1 + _sum_before(fails, player * (count + 1) + level),
        score=rng.integers(50, 5000, count),
        design=np.where(played < TUTORIAL_ROUNDS, -1 - played, rng.integers(0, len(DESIGN_IDS), count)),
        coins=coins,
        severity=pick(rng, shares([5, 10, 35, 42, 8]), count),
    )
    return rounds, taken


def _coins(completes: Ints, rng: np.random.Generator) -> Ints:
    """Coins earned by a completed round, or spent after any; mostly neither."""
    luck, amount = rng.random(len(completes)), rng.integers(1, 25, len(completes))
    earned = np.where((completes == 1) & (luck < 0.3), amount * 5, 0)
    return np.where(luck > 0.92, -amount * 10, earned)


def _take_slots(taken: Flags, session: Ints, rounds: Rounds, money: Money) -> None:
    """Sets the slots of sessions, ads and purchases."""
    is_first = _starts(session)
    is_rewarded = money.ad.is_shown & money.ad.is_rewarded
    taken[:, Slot.USER] = is_first
    taken[:, Slot.SESSION_END] = np.append(is_first[1:], True)
    taken[:, Slot.BUSINESS] = money.item >= 0
    taken[:, Slot.AD_REQUEST] = money.ad.is_wanted
    taken[:, Slot.AD_FAILED] = money.ad.is_wanted & ~money.ad.is_shown
    taken[:, Slot.AD_SHOW] = taken[:, Slot.IMPRESSION] = money.ad.is_shown
    taken[:, Slot.AD_CLICK] = money.ad.is_shown & money.ad.is_clicked
    taken[:, Slot.AD_REWARD] = is_rewarded


def _time_events(begun: Sessions, session: Ints, taken: Flags, *, rng: np.random.Generator) -> tuple[Sessions, Events]:
    """Gives every event its second. A session gets long enough to hold its events, one a second."""
    round_, slot = np.nonzero(taken)
    of = session[round_]
    inner = np.bincount(of, minlength=len(begun.player)) - 2
    length = np.maximum(begun.length_s, inner + 1)
    start = _apart(begun.start_s, length, begun.player)
    place = running_count(of)
    # Sorted draws plus the place in the session: whole seconds, random, and strictly ascending.
    drawn = np.sort(of + rng.random(len(of))) - of
    room = (length - inner)[of]
    offset = np.minimum((drawn * room).astype(np.int64), room - 1) + place
    offset = np.where(place == 0, 0, np.where(place == inner[of] + 1, length[of], offset))
    sessions = Sessions(
        begun.player, begun.day, begun.number, begun.build, begun.connection, start_s=start, length_s=length
    )
    return sessions, Events(round_, slot, of, start[of] + offset)


def _apart(start: Ints, length: Ints, player: Ints) -> Ints:
    """Pushes back each session of a player that starts before the one before it is over."""
    used = _sum_before(length + SESSION_GAP_S, player)
    slack = start - used
    # A running maximum over everybody at once: a step larger than all slack keeps players apart.
    step = player * (slack.max() - slack.min() + 1) if len(slack) else player
    pushed: Ints = np.maximum.accumulate(slack + step) - step + used
    return pushed
