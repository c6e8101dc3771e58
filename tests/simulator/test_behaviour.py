"""Behaviour of drawn players: active days, sessions, coin balances, local hours."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import msgspec
import numpy as np
import pytest

from gamelens.simulator import load_scenario
from gamelens.simulator.population.arrays import pick_by
from gamelens.simulator.population.behaviour import PlayedBlock, play_block
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import draw_players
from gamelens.simulator.population.session_times import DAY_S
from gamelens.simulator.scenarios.scenario import Scenario
from support.played_scenario import GAME_IDS, PlayedScenario

change = msgspec.structs.replace
MONDAY_S = (date(2026, 11, 2) - date(1970, 1, 1)).days * DAY_S


def block_of(scenario: Scenario, players: int, *, seed: int = 1) -> PlayedBlock:
    """Play one block of *players* of the first game of *scenario*, from a Monday on."""
    game, rng = scenario.games[0], np.random.default_rng(seed)
    install_plan = plan_installs(game, scenario=scenario, first_weekday=0)
    activity = game.retention.activity()
    people = draw_players(players, game=game, scenario=scenario, activity=activity, install_plan=install_plan, rng=rng)
    return play_block(people, game=game, scenario=scenario, first_day_s=MONDAY_S, rng=rng, faults_rng=rng)


def with_sessions(scenario: Scenario, **changed: Any) -> Scenario:
    """Return *scenario* with one game, its session profile changed and its timeline empty."""
    game = scenario.games[0]
    game = change(game, sessions=change(game.sessions, **changed))
    studios = (change(scenario.studios[0], games=(game,)),)
    return change(scenario, studios=studios, campaigns=(), experiments=())


@pytest.mark.parametrize(
    "sessions",
    [{}, {"per_day": 6.0, "median_length_s": 1800.0}, {"per_day": 20.0, "median_length_s": 7200.0}],
    ids=["as shipped", "much", "whole days"],
)
def test_players_send_events_on_the_days_they_play_and_on_no_other(sessions: dict[str, Any]) -> None:
    """Days with events are exactly the drawn active days, so retention has a closed form."""
    block = block_of(with_sessions(load_scenario("small", days=20), **sessions), 1500)
    day = (block.events.ts_s - MONDAY_S) // DAY_S
    has_events = np.zeros_like(block.players.active)
    has_events[block.sessions.player[block.events.session], day] = True
    assert (has_events == block.players.active).all()


@pytest.mark.parametrize("per_day", [1.5, 20.0])
def test_sessions_of_a_player_never_overlap(per_day: float) -> None:
    """At least 30 seconds lie between two sessions of a player, also at 20 sessions a day."""
    sessions = block_of(with_sessions(load_scenario("small", days=10), per_day=per_day), 400).sessions
    is_same = sessions.player[1:] == sessions.player[:-1]
    gap = sessions.start_s[1:] - sessions.start_s[:-1] - sessions.length_s[:-1]
    assert (gap[is_same] >= 30).all()


def test_some_sessions_run_past_midnight_into_a_day_that_is_played() -> None:
    """A session may run past midnight if its player is active on the next day too."""
    sessions = block_of(load_scenario("small", days=20), 1500).sessions
    days = (sessions.start_s - MONDAY_S) // DAY_S, (sessions.start_s + sessions.length_s - MONDAY_S) // DAY_S
    assert np.count_nonzero(days[0] < days[1])


def test_no_player_spends_more_coins_than_earned(played: PlayedScenario) -> None:
    """The coin balance of a player, summed in the order sent, never falls below 0."""
    for game_id, game in zip(GAME_IDS, played.scenario.games, strict=True):
        balance = dict.fromkeys((event["user_id"] for event in played.events), game.economy.start)
        changes = 0
        for event in played.events:
            if event["game_id"] == game_id and event["category"] == "resource":
                balance[event["user_id"]] += event["amount"]
                assert balance[event["user_id"]] >= 0
                changes += 1
        assert changes


def test_sinks_are_whole_prices_and_sources_positive(played: PlayedScenario) -> None:
    """A sink is a negative multiple of the price of its game, a source is positive."""
    prices = {game_id: game.economy.price for game_id, game in zip(GAME_IDS, played.scenario.games, strict=True)}
    resources = [event for event in played.events if event["category"] == "resource"]
    for event in resources:
        is_sink = event["event_id"].startswith("Sink:")
        assert (event["amount"] < 0) == is_sink
        assert not is_sink or event["amount"] % prices[event["game_id"]] == 0
    assert {event["event_id"].split(":")[0] for event in resources} == {"Sink", "Source"}


def test_a_bought_pack_is_a_source_right_after_the_purchase(played: PlayedScenario) -> None:
    """A purchase that grants coins is followed at once by a source event of that amount."""
    grants = {item.id: item.grants for game in played.scenario.games for item in game.purchases.items}
    following = dict(zip(map(id, played.events), played.events[1:], strict=False))
    bought = [event for event in played.events if event["category"] == "business" and grants[event["event_id"]]]
    assert bought
    for event in bought:
        granted = following[id(event)]
        assert granted["event_id"].split(":")[0] == "Source"
        assert granted["event_id"].endswith(event["event_id"])
        assert granted["amount"] == grants[event["event_id"]]


def test_the_most_active_players_spend_most_of_their_coins() -> None:
    """The most active tenth spends over half of its coins, as it reaches a price often."""
    scenario = load_scenario("small", days=30)
    block, start = block_of(scenario, 1500), scenario.games[0].economy.start
    player, coins = block.sessions.player[block.rounds.session], block.rounds.coins
    earned = start + np.bincount(player, np.maximum(coins, 0) + block.rounds.grant)
    spent, rounds = -np.bincount(player, np.minimum(coins, 0)), np.bincount(player)
    eager = rounds >= np.quantile(rounds, 0.9)
    assert 0.5 < spent[eager].sum() / earned[eager].sum() < 1


def test_sessions_start_by_the_hour_of_the_country() -> None:
    """Sessions peak in the evening of the country: in Japan that is the morning of UTC."""
    scenario = with_sessions(load_scenario("calm", days=10), weekend=1.0)
    block = block_of(scenario, 6000)
    country = block.players.country[block.sessions.player]
    codes, hour = list(scenario.games[0].countries), block.sessions.start_s % DAY_S // 3600
    busiest = {code: Counter(hour[country == codes.index(code)].tolist()).most_common(1)[0][0] for code in ("US", "JP")}
    assert (busiest["US"] - 6) % 24 in range(19, 23)
    assert (busiest["JP"] + 9) % 24 in range(19, 23)


def test_weekends_begin_later() -> None:
    """The share of sessions that start from 6 to 9 is at least a fifth lower at weekends."""
    scenario = with_sessions(load_scenario("calm", days=14), weekend=1.0)
    block = block_of(scenario, 8000)
    is_british = block.players.country[block.sessions.player] == list(scenario.games[0].countries).index("GB")
    start = block.sessions.start_s[is_british]
    is_weekend = (start - MONDAY_S) // DAY_S % 7 >= 5
    is_early = (start % DAY_S // 3600 >= 6) & (start % DAY_S // 3600 < 9)
    assert is_early[is_weekend].mean() < 0.8 * is_early[~is_weekend].mean()


def test_weekend_days_hold_more_sessions() -> None:
    """`weekend` multiplies the sessions of an active player on Saturdays and Sundays only."""
    scenario = with_sessions(load_scenario("calm", days=14), weekend=1.5, per_day=3.0)
    block = block_of(scenario, 4000)
    played, day = block.players.active.sum(axis=0), block.sessions.day
    by_day = np.bincount(day, minlength=14) / played
    weekend = [5, 6, 12, 13]
    assert by_day[weekend].mean() == pytest.approx(4.5, rel=0.05)
    assert np.delete(by_day, weekend).mean() == pytest.approx(3.0, rel=0.05)


def test_positions_are_drawn_by_the_shares_of_their_row() -> None:
    """`pick_by` draws a position by the weights of its row, and never one with weight 0."""
    weights, row = np.array([[1.0, 0, 3], [0, 1, 0]]), np.repeat([0, 1], 40_000)
    place = pick_by(np.random.default_rng(1), weights, row)
    assert np.bincount(place[row == 0], minlength=3) / 40_000 == pytest.approx([0.25, 0, 0.75], abs=0.01)
    assert (place[row == 1] == 1).all()


def test_payers_pay_and_other_players_do_not() -> None:
    """Exactly the players drawn as payers have a purchase."""
    block = block_of(load_scenario("calm", days=20), 4000)
    rounds = block.rounds.session[block.money.item >= 0]
    payers = np.unique(block.sessions.player[rounds])
    assert payers.tolist() == np.flatnonzero(block.players.is_payer).tolist()
