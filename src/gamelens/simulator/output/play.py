"""A scenario as request bodies for the collector.

Players are simulated in blocks of one game. Each block has its own child of the scenario's seed, and each mechanism of
a block its own child of that. The bytes of a block therefore depend only on the scenario, its last day and the block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from gamelens.errors import BadQuery, Refused
from gamelens.simulator.events.event_columns import ledger_rows_of
from gamelens.simulator.events.event_json import BlockIds, draw_ids, encode_events
from gamelens.simulator.events.request_batches import (
    RequestBatch,
    batches_of,
    batches_with_defects,
    rows_of_sent,
    send_block,
)
from gamelens.simulator.events.sent_events import SentEvent
from gamelens.simulator.population.arrays import Ints
from gamelens.simulator.population.behaviour import EventSlot, PlayedBlock, PlayedEvents, play_block
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import draw_players
from gamelens.simulator.population.session_times import DAY_S, EPOCH
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger

VERSION: Final = 3
"""Version of the generator. With the same version, a scenario gives the same bytes."""
BLOCK_PLAYERS: Final = 512
_AHEAD: Final = 2  # results of each worker that may wait: enough to keep it busy, few enough for memory

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


class BlockTask(msgspec.Struct, frozen=True):
    """A block of players to simulate: the position of its game in the scenario, and its number in the game, from 0."""

    game: int
    block: int
    players: int


def play(
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    game_ids: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
    from_day: int = 0,
) -> Iterator[RequestBatch]:
    """Yield every event of *scenario* as requests, game by game.

    The events of a player come in order of time.

    Args:
        scenario: the scenario to play.
        ends_on: the day on which it ends at 00:00 UTC, today by default. It starts `scenario.days` earlier.
        game_ids: ids of the receiving games in studio and game order, by default the titles. Further ones get no
            events.
        ledger: records the events of each block before its requests are yielded.
        workers: number of processes. It changes nothing but the time. A script that uses more than one must be
            importable: its code belongs under `if __name__ == "__main__":`.
        from_day: leaves out the events of earlier days, counted from the first. The ledger has only those yielded.

    Raises:
        BadQuery: there are fewer game ids than games, or one twice, or no workers, or earlier days are left out of a
            scenario with delivery or dirt.
    """
    if from_day and not scenario.is_clean:
        raise BadQuery("from_day", from_day, "must be 0: this scenario has [delivery] or [dirt]")
    begins, ids_of_games = first_day(scenario, ends_on), checked_ids(scenario, game_ids)
    work = partial(
        _play_requests, scenario, begins, ids_of_games, is_recorded=ledger is not None, days=(from_day, scenario.days)
    )

    def batches() -> Iterator[RequestBatch]:
        for batches_of_block, ledger_rows in map_in_order(work, block_tasks(scenario), workers=workers):
            if ledger is not None and ledger_rows is not None:
                ledger.record(ledger_rows)
            yield from batches_of_block

    return batches()


def checked_ids(scenario: Scenario, game_ids: Sequence[str] | None) -> list[str]:
    """Return the ids of the receiving games: *game_ids*, or the titles.

    Raises:
        BadQuery: there are too few, or one twice.
    """
    ids = [game.title for game in scenario.games] if game_ids is None else list(game_ids)
    if len(ids) < len(scenario.games):
        raise BadQuery("game_ids", ids, f"must have one id for each of the {len(scenario.games)} games of the scenario")
    if len(set(ids)) < len(ids):
        raise BadQuery("game_ids", ids, "must be unique, or two games would become one")
    return ids


def first_day(scenario: Scenario, ends_on: date | None = None) -> date:
    """Return the first day of *scenario* that ends at the start of *ends_on*.

    By default it ends today in UTC.
    """
    return (ends_on or datetime.now(UTC).date()) - timedelta(days=scenario.days)


def _play_requests(
    scenario: Scenario,
    begins: date,
    game_ids: list[str],
    task: BlockTask,
    *,
    is_recorded: bool,
    days: tuple[int, int] | None = None,
) -> tuple[list[RequestBatch], pa.Table | None]:
    """Return the requests of a block, and its rows of the ledger if there is one. *days* are as in `played_days`."""
    block, ids = played_days(*play_task(scenario, begins, task), begins, days or (0, scenario.days))
    game, game_id = scenario.games[task.game], game_ids[task.game]
    events = encode_events(block, ids, game=game, scenario=scenario)
    if scenario.is_clean and not is_recorded:
        return list(batches_of(events, game_id)), None
    ledger_rows = ledger_rows_of(block, ids, game=game, game_id=game_id, scenario=scenario)
    if scenario.is_clean:
        return list(batches_of(events, game_id)), ledger_rows
    return batches_with_defects(
        block,
        ids,
        list(map(tuple, events.tolist())),
        ledger_rows,
        scenario=scenario,
        ends_s=((begins - EPOCH).days + scenario.days) * DAY_S,
        seed=seed_of_delivery(scenario, task),
    )


def estimated_events(scenario: Scenario, *, ends_on: date | None = None) -> int:
    """Return about how many events *scenario* has, for a progress bar. The first players of each game are played."""
    begins, titles, events = first_day(scenario, ends_on), checked_ids(scenario, None), 0.0
    for number, players in enumerate(scenario.players_by_game()):
        task = BlockTask(game=number, block=0, players=min(players, BLOCK_PLAYERS))
        batches, _ = _play_requests(scenario, begins, titles, task, is_recorded=False)
        events += sum(batch.events for batch in batches) * players / max(task.players, 1)
    return round(events)


def block_tasks(scenario: Scenario) -> Iterator[BlockTask]:
    """Yield all blocks of players, game by game."""
    for number, players in enumerate(scenario.players_by_game()):
        for block, start in enumerate(range(0, players, BLOCK_PLAYERS)):
            yield BlockTask(game=number, block=block, players=min(BLOCK_PLAYERS, players - start))


def play_task(scenario: Scenario, begins: date, task: BlockTask) -> tuple[PlayedBlock, BlockIds]:
    """Simulate the players of *task* from *begins* on, and draw all ids."""
    game: GameProfile = scenario.games[task.game]
    players_rng, behaviour_rng, ids_rng, _, faults_rng = map(np.random.default_rng, _seeds(scenario, task))
    players = draw_players(
        task.players,
        game=game,
        scenario=scenario,
        activity=game.retention.activity(),
        install_plan=plan_installs(game, scenario=scenario, first_weekday=begins.weekday()),
        rng=players_rng,
    )
    first_day_s = (begins - EPOCH).days * DAY_S
    block = play_block(
        players, game=game, scenario=scenario, first_day_s=first_day_s, rng=behaviour_rng, faults_rng=faults_rng
    )
    return block, draw_ids(block, game=game, rng=ids_rng)


def played_days(block: PlayedBlock, ids: BlockIds, begins: date, days: tuple[int, int]) -> tuple[PlayedBlock, BlockIds]:
    """Return *block* with the events of some *days*, the first and the one after the last, counted from *begins*."""
    day = block.events.ts_s // DAY_S - (begins - EPOCH).days
    is_in = (day >= days[0]) & (day < days[1])
    return (block, ids) if is_in.all() else in_order(np.flatnonzero(is_in), block, ids)


def in_order(order: Ints, block: PlayedBlock, ids: BlockIds) -> tuple[PlayedBlock, BlockIds]:
    """Return *block* with the events at these positions, in this *order*, and their ids."""
    events = PlayedEvents(**{field.name: getattr(block.events, field.name)[order] for field in fields(PlayedEvents)})
    impressions = ids.impression
    if len(impressions):
        is_shown = block.events.slot == EventSlot.IMPRESSION
        impressions = impressions[(np.cumsum(is_shown) - 1)[order[is_shown[order]]]]
    return replace(block, events=events), replace(ids, event=ids.event[order], impression=impressions)


def send_task(scenario: Scenario, begins: date, task: BlockTask, *, game_id: str) -> tuple[list[SentEvent], pa.Table]:
    """Return the events of *task* in the order sent, and their rows of the ledger.

    They are the events of `play`, one by one. Without the tables `delivery` and `dirt`, every event is sent once, at
    the end of its 20 seconds of play. Events of an offline session are sent hours later.
    """
    block, ids = play_task(scenario, begins, task)
    game = scenario.games[task.game]
    events = encode_events(block, ids, game=game, scenario=scenario)
    sent, _ = send_block(
        block,
        ids,
        list(map(tuple, events.tolist())),
        scenario=scenario,
        ends_s=((begins - EPOCH).days + scenario.days) * DAY_S,
        seed=seed_of_delivery(scenario, task),
    )
    ledger_rows = ledger_rows_of(block, ids, game=game, game_id=game_id, scenario=scenario)
    return sent, rows_of_sent(sent, ledger_rows)


def seed_of_delivery(scenario: Scenario, task: BlockTask) -> np.random.SeedSequence:
    """Return the seed of the delivery of a block and its defects."""
    return _seeds(scenario, task)[3]


def _seeds(scenario: Scenario, task: BlockTask) -> list[np.random.SeedSequence]:
    """Return the seeds of a block: players, behaviour, ids, delivery with defects, and faults of the game."""
    return np.random.SeedSequence(scenario.seed, spawn_key=(task.game, task.block)).spawn(5)


def map_in_order(work: Callable[[_Task], _Done], tasks: Iterable[_Task], *, workers: int) -> Iterator[_Done]:
    """Call *work* with each of *tasks* in several processes, and yield the results in order.

    One worker runs in this process. More are new Python processes, to which *work* and *tasks* are pickled.

    Raises:
        BadQuery: there are no workers.
        Refused: a worker process was killed.
    """
    if workers < 1:
        raise BadQuery("workers", workers, "must be 1 or more")
    return map(work, tasks) if workers == 1 else _map_in_processes(work, tasks, workers)


def _map_in_processes(work: Callable[[_Task], _Done], tasks: Iterable[_Task], workers: int) -> Iterator[_Done]:
    # A fork would copy locks held by other threads, and they would stay locked in the child.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[Future[_Done]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise Refused("a worker process ended before its work was done") from None
    finally:
        pool.shutdown(cancel_futures=True)
