"""A scenario as request bodies for the collector.

Players are simulated in blocks of one game. Each block has its own child of the scenario's seed, and each mechanism of
a block its own child of that. The bytes of a block therefore depend only on the scenario, its last day and the block.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pyarrow as pa

from gamelens.errors import BadQuery
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
from gamelens.simulator.ledger.ledger_columns import EPOCH
from gamelens.simulator.output.forecast import GameForecast, SampledPlay
from gamelens.simulator.output.process_pool import map_in_order
from gamelens.simulator.population.behaviour import PlayedBlock, play_block
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import draw_players
from gamelens.simulator.population.session_times import DAY_S
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from gamelens.simulator.ledger.ledger import Ledger

VERSION: Final = 3
"""Version of the generator. With the same version, a scenario gives the same bytes."""
BLOCK_PLAYERS: Final = 512


class BlockTask(msgspec.Struct, frozen=True):
    """A block of players to simulate: the position of its game in the scenario, and its number in the game, from 0."""

    game: int
    block: int
    players: int


class GameExpectation(msgspec.Struct, frozen=True):
    """The expected values of a game, incidents included.

    Daily active users and retention are in closed form (`forecast`). Events, ads and revenue, in US dollars, are
    estimated from a simulated sample.
    """

    title: str
    players: int
    events: int
    dau: float
    d1: float
    d7: float
    d28: float
    ads_shown: int
    ad_revenue_usd: float
    revenue_usd: float


class Expectation(msgspec.Struct, frozen=True):
    """The expected output of a scenario, in which only the number of players is exact.

    *version* is that of the generator, *dau* the mean number of daily active users.
    """

    version: int
    players: int
    events: int
    requests: int
    body_bytes: int
    gzipped_bytes: int
    dau: float
    ads_shown: int
    ad_revenue_usd: float
    revenue_usd: float
    games: tuple[GameExpectation, ...]


def play(
    scenario: Scenario,
    *,
    ends_on: date | None = None,
    game_ids: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    workers: int = 1,
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

    Raises:
        BadQuery: there are fewer game ids than games, or one twice, or no workers.
    """
    begins, ids_of_games = first_day(scenario, ends_on), checked_ids(scenario, game_ids)
    work = partial(_play_requests, scenario, begins, ids_of_games, is_recorded=ledger is not None)

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
        raise BadQuery("game_ids", ids, f"must hold one id for each of the {len(scenario.games)} games of the scenario")
    if len(set(ids)) < len(ids):
        raise BadQuery("game_ids", ids, "must be different: two games would become one")
    return ids


def first_day(scenario: Scenario, ends_on: date | None = None) -> date:
    """Return the first day of *scenario* that ends at the start of *ends_on*.

    By default it ends today in UTC.
    """
    return (ends_on or datetime.now(UTC).date()) - timedelta(days=scenario.days)


def expect(scenario: Scenario, *, ends_on: date | None = None) -> Expectation:
    """Return the expected output of `play`, from one simulated block of each game."""
    begins = first_day(scenario, ends_on)
    games, requests, body_bytes, gzipped_bytes = [], 0.0, 0.0, 0.0
    for number, (game, players) in enumerate(zip(scenario.games, scenario.players_by_game(), strict=True)):
        forecast = GameForecast(game, scenario=scenario, first_weekday=begins.weekday())
        played_days = players * float(forecast.present.sum())
        task = BlockTask(game=number, block=0, players=min(players, BLOCK_PLAYERS))
        block, ids = play_task(scenario, begins, task)
        batches, _ = _requests(scenario, begins, task, block, ids, game_id="", is_recorded=False)
        sampled_events, sampled_play = sum(batch.events for batch in batches), SampledPlay.of(block)
        events = round(sampled_events * played_days / max(int(block.players.active.sum()), 1))
        requests += len(batches) * events / max(sampled_events, 1)
        body_bytes += sum(len(batch.body) for batch in batches) * events / max(sampled_events, 1)
        gzipped = sum(len(gzip.compress(batch.body, 6)) for batch in batches)
        gzipped_bytes += gzipped * events / max(sampled_events, 1)
        ads_shown, ad_revenue_usd = forecast.ads(sampled_play)
        games.append(
            GameExpectation(
                title=game.title,
                players=players,
                events=events,
                dau=played_days / scenario.days,
                **{f"d{day}": forecast.retention(day) for day in (1, 7, 28)},
                ads_shown=round(players * ads_shown),
                ad_revenue_usd=round(players * ad_revenue_usd, 2),
                revenue_usd=round(players * forecast.revenue(sampled_play), 2),
            )
        )
    total = sum(game.events for game in games)
    return Expectation(
        version=VERSION,
        players=scenario.players,
        events=total,
        requests=round(requests),
        body_bytes=round(body_bytes),
        gzipped_bytes=round(gzipped_bytes),
        dau=sum(game.dau for game in games),
        ads_shown=sum(game.ads_shown for game in games),
        ad_revenue_usd=round(sum(game.ad_revenue_usd for game in games), 2),
        revenue_usd=round(sum(game.revenue_usd for game in games), 2),
        games=tuple(games),
    )


def _play_requests(
    scenario: Scenario, begins: date, game_ids: list[str], task: BlockTask, *, is_recorded: bool
) -> tuple[list[RequestBatch], pa.Table | None]:
    """Return the requests of a block, and its rows of the ledger if there is one."""
    block, ids = play_task(scenario, begins, task)
    return _requests(scenario, begins, task, block, ids, game_id=game_ids[task.game], is_recorded=is_recorded)


def _requests(
    scenario: Scenario,
    begins: date,
    task: BlockTask,
    block: PlayedBlock,
    ids: BlockIds,
    *,
    game_id: str,
    is_recorded: bool,
) -> tuple[list[RequestBatch], pa.Table | None]:
    game = scenario.games[task.game]
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
        seed=_seeds(scenario, task)[3],
    )


def block_tasks(scenario: Scenario) -> Iterator[BlockTask]:
    """Yield all blocks of players, game by game."""
    for number, players in enumerate(scenario.players_by_game()):
        for block, start in enumerate(range(0, players, BLOCK_PLAYERS)):
            yield BlockTask(game=number, block=block, players=min(BLOCK_PLAYERS, players - start))


def play_task(scenario: Scenario, begins: date, task: BlockTask) -> tuple[PlayedBlock, BlockIds]:
    """Simulate the players of *task* from *begins* on, and draw all ids."""
    game: GameProfile = scenario.games[task.game]
    players_rng, behaviour_rng, ids_rng = (np.random.default_rng(child) for child in _seeds(scenario, task)[:3])
    players = draw_players(
        task.players,
        game=game,
        scenario=scenario,
        activity=game.retention.activity(),
        install_plan=plan_installs(game, scenario=scenario, first_weekday=begins.weekday()),
        rng=players_rng,
    )
    first_day_s = (begins - EPOCH).days * DAY_S
    block = play_block(players, game=game, scenario=scenario, first_day_s=first_day_s, rng=behaviour_rng)
    return block, draw_ids(block, game=game, rng=ids_rng)


def send_task(scenario: Scenario, begins: date, task: BlockTask, *, game_id: str) -> tuple[list[SentEvent], pa.Table]:
    """Return the events of *task* in the order sent, and their rows of the ledger.

    They are those of `play`, one by one. Without the tables `delivery` and `dirt`, every event is sent once, at the
    end of its 20 seconds of play or, of an offline session, hours later.
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
        seed=_seeds(scenario, task)[3],
    )
    ledger_rows = ledger_rows_of(block, ids, game=game, game_id=game_id, scenario=scenario)
    return sent, rows_of_sent(sent, ledger_rows)


def _seeds(scenario: Scenario, task: BlockTask) -> list[np.random.SeedSequence]:
    """Return the seeds of a block: players, behaviour, ids, and delivery with defects."""
    return np.random.SeedSequence(scenario.seed, spawn_key=(task.game, task.block)).spawn(4)
