"""Campaigns, experiments and incidents have the stated effects in the ledger."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from math import sqrt
from typing import Any

import msgspec
import numpy as np
import pytest

from gamelens.errors import BadQuery
from gamelens.simulator import Ledger, Scenario, load_scenario, play
from gamelens.simulator.population.installs import arms_of, plan_installs
from gamelens.simulator.scenarios.timeline import Campaign, GameSilence
from gamelens.wire.filters import dim
from support.played_scenario import ENDS_ON, PlayedScenario

change = msgspec.structs.replace
Population = tuple[Scenario, Ledger]
"""A scenario and the ledger of it played."""
TIMELINE = ("campaigns", "experiments", "incidents")


def day_of(scenario: Scenario, day: int) -> date:
    return ENDS_ON - timedelta(days=scenario.days - day)


def ledger_of(scenario: Scenario) -> Ledger:
    ledger = Ledger()
    for _ in play(scenario, ends_on=ENDS_ON, ledger=ledger):
        pass
    return ledger


def interval(scenario: Scenario, day: int, days: int) -> str:
    """Return *days* days of *scenario* from *day* on as an interval."""
    return f"{day_of(scenario, day)}/{day_of(scenario, day + days)}"


def only(scenario: Scenario, title: str, **changed: Any) -> Scenario:
    """Return *scenario* with the game called *title* only, and its timeline entries."""
    game = next(game for game in scenario.games if game.title == title)
    entries: dict[str, Any] = {
        name: tuple(entry for entry in getattr(scenario, name) if entry.game == title) for name in TIMELINE
    }
    return change(scenario, studios=(change(scenario.studios[0], games=(game,)),), **(entries | changed))


@pytest.fixture(scope="module")
def runner() -> Population:
    """Play 6,000 players of the game with the dead network and the bad build."""
    scenario = only(load_scenario("incident", players=6000), "Rooftop Dash")
    return scenario, ledger_of(scenario)


def ad_events(population: Population, day: int, days: int, /, **where: str) -> dict[str, int]:
    """Return the number of ad events by action, without actions that have none."""
    scenario, ledger = population
    selected = dim.category == "ads"
    for name, value in where.items():
        selected = selected & (getattr(dim, name) == value)
    rows = ledger.metric(
        "event_count", interval=interval(scenario, day, days), granularity="all", by=("ad_action",), where=selected
    )
    return {row["ad_action"]: row["event_count"] for row in rows}


def fill_rate(population: Population, day: int, days: int, /, **where: str) -> float:
    """Return the shown ads divided by the requests."""
    counts = ad_events(population, day, days, **where)
    return counts.get("show", 0) / counts["request"]


def test_a_dead_network_fills_nothing_on_its_platform_for_its_days(runner: Population) -> None:
    """A network that is out gets requests and shows no ad."""
    counts = ad_events(runner, 50, 3, ad_sdk_name="unityads", platform="android")
    assert set(counts) <= {"request", "failed_show"}
    assert counts["request"] > 100


@pytest.mark.parametrize(
    ("day", "days", "where"),
    [
        (50, 3, {"ad_sdk_name": "unityads", "platform": "ios"}),
        (50, 3, {"ad_sdk_name": "vungle", "platform": "android"}),
        (44, 6, {"ad_sdk_name": "unityads", "platform": "android"}),
        (53, 7, {"ad_sdk_name": "unityads", "platform": "android"}),
    ],
    ids=["other platform", "other network", "before", "after"],
)
def test_a_dead_network_does_not_change_the_fill_rate_of_others(
    runner: Population, day: int, days: int, where: dict[str, str]
) -> None:
    """Other networks, platforms and days keep the fill rate of the first 44 days."""
    before = fill_rate(runner, 0, 44, **where)
    assert fill_rate(runner, day, days, **where) == pytest.approx(before, abs=0.06)


def test_a_dead_network_is_replaced_in_part(runner: Population) -> None:
    """Others fill part of the dead network's 0.29, and more breaks than before stay empty."""
    shown = {}
    for name, day, days in (("before", 44, 6), ("during", 50, 3)):
        counts = ad_events(runner, day, days, platform="android")
        shown[name] = counts["show"] / (counts["show"] + counts["failed_show"])
    assert shown["before"] == pytest.approx(0.93, abs=0.02)
    assert 0.93 * 0.71 + 0.05 < shown["during"] < 0.93 - 0.02


def test_impressions_of_a_dead_network_are_missing_too(runner: Population) -> None:
    """The dead network has no impressions during the three days of its outage."""
    scenario, ledger = runner
    where = (dim.ilrd_network_name == "Unity Ads") & (dim.platform == "android")
    rows = ledger.metric("ilrd_revenue", interval=interval(scenario, 48, 6), where=where)
    assert [row["event_count"] > 0 for row in rows] == [True, True, False, False, False, True]


def d1(scenario: Scenario, ledger: Ledger, country: str, days: range) -> tuple[float, int]:
    """Return D1 of players of *country* who installed on *days*, and their number."""
    where, returned, installs = dim.country_code == country, 0.0, 0
    new = ledger.metric("new_users", interval=interval(scenario, days[0], len(days)), where=where)
    back = ledger.metric(
        "retention_retro", interval=interval(scenario, days[0] + 1, len(days)), where=where, since_days_ago=1
    )
    shares = {row["timestamp"] - timedelta(days=1): row["retention"] for row in back}
    for row in new:
        returned += row["new_users"] * shares.get(row["timestamp"], 0.0)
        installs += row["new_users"]
    return returned / installs, installs


@pytest.mark.parametrize(
    ("country", "days", "factor"),
    [("BR", range(36, 59), 0.5), ("BR", range(36), 1.0), ("IN", range(36, 59), 1.0)],
    ids=["hit", "before", "elsewhere"],
)
def test_a_bad_build_halves_d1_in_one_country(runner: Population, country: str, days: range, factor: float) -> None:
    """`stay = 0.5` halves D1 in its country from its release on, not before and not elsewhere."""
    share, installs = d1(*runner, country, days)
    expected = factor * runner[0].games[0].retention.d1
    assert abs(share - expected) < 3 * sqrt(expected * (1 - expected) / installs)


@pytest.fixture(scope="module")
def silenced() -> Population:
    """Play 1,500 players of the game that falls silent."""
    scenario = only(load_scenario("incident", players=1500), "Ember Realms")
    return scenario, ledger_of(scenario)


def test_a_silent_game_sends_nothing(silenced: Population) -> None:
    """A silent game has no events on its four days."""
    scenario, ledger = silenced
    rows = ledger.metric("event_count", interval=interval(scenario, 42, 8))
    assert [row["event_count"] > 0 for row in rows] == [True, True, False, False, False, False, True, True]


def test_the_players_of_a_silent_game_install_on_other_days(silenced: Population) -> None:
    """A silence moves installs to other days and keeps the number of players."""
    scenario, ledger = silenced
    assert ledger.summary()["players"] == scenario.players


def test_a_game_that_is_always_silent_is_refused() -> None:
    """A silence over the whole scenario raises `BadQuery`: its players could not install."""
    scenario = load_scenario("small", days=5)
    dead = change(scenario, incidents=(GameSilence(game="Tile Harbor", day=0, days=9),))
    with pytest.raises(BadQuery, match="silent on every day"):
        next(play(dead, ends_on=ENDS_ON))


@pytest.fixture(scope="module")
def advertised() -> Population:
    """Play a game with a campaign of three days, size 2, on iOS in two countries."""
    pulse = Campaign(
        game="Tile Harbor",
        publisher="TV",
        day=10,
        days=3,
        size=2.0,
        countries=("US", "DE"),
        platforms=("ios",),
    )
    scenario = load_scenario("small", players=6000, days=20)
    scenario = only(change(scenario, weekdays=(1.0,) * 7, trend=0.0), "Tile Harbor", campaigns=(pulse,))
    return scenario, ledger_of(scenario)


def new_users(scenario: Scenario, ledger: Ledger, day: int, days: int, *by: str) -> dict[tuple[str | None, ...], int]:
    """Return new users by the values of the dimensions *by*."""
    rows = ledger.metric("new_users", interval=interval(scenario, day, days), granularity="all", by=by)
    return {tuple(row[name] for name in by): row["new_users"] for row in rows}


def test_a_campaign_brings_players_on_its_days_only(advertised: Population) -> None:
    """Installs of the campaign's publisher occur on its three days only."""
    rows = advertised[1].metric(
        "new_users", interval=interval(advertised[0], 0, 20), where=dim.install_publisher == "TV"
    )
    assert [row["new_users"] > 0 for row in rows] == [10 <= day < 13 for day in range(20)]


def test_a_campaign_has_the_size_it_says(advertised: Population) -> None:
    """A campaign of size 2 brings 6 of 26 installs: 20 ordinary days and 3 times 2."""
    counts = new_users(*advertised, 0, 20, "install_publisher")
    assert counts[("TV",)] == pytest.approx(6000 * 6 / 26, abs=4 * sqrt(6000 * 6 / 26 * 20 / 26))


def test_a_campaign_runs_where_it_says(advertised: Population) -> None:
    """Installs of the campaign come from its two countries, on iOS only."""
    counts = new_users(*advertised, 10, 3, "install_publisher", "country_code", "platform")
    assert {(country, platform) for publisher, country, platform in counts if publisher == "TV"} == {
        ("US", "ios"),
        ("DE", "ios"),
    }


def test_organic_players_have_no_publisher_and_bought_ones_theirs(advertised: Population) -> None:
    """Organic installs have a null publisher, bought ones follow the publishers' weights."""
    counts = new_users(*advertised, 0, 20, "install_publisher")
    ordinary = 6000 * 20 / 26
    assert counts[(None,)] == pytest.approx(ordinary * 0.54, rel=0.06)
    assert counts[("Meta Ads",)] == pytest.approx(ordinary * 0.46 * 0.45, rel=0.1)


def test_the_publisher_is_on_every_event_of_a_player(played: PlayedScenario) -> None:
    """All events of a player carry the same `install_publisher` or none."""
    by_player = defaultdict(set)
    for event in played.events:
        by_player[event["game_id"], event["user_id"]].add(event.get("install_publisher"))
    assert {len(publishers) for publishers in by_player.values()} == {1}
    assert {next(iter(publishers)) for publishers in by_player.values()} >= {None, "Meta Ads", "TikTok Ads"}


def test_installs_grow_by_the_trend() -> None:
    """A trend of 0.5 multiplies installs by 1.5 from week to week."""
    scenario = change(load_scenario("small", days=15), weekdays=(1.0,) * 7, trend=0.5, campaigns=())
    by_day = plan_installs(scenario.games[0], scenario=scenario, first_weekday=3).installs.sum(axis=0)
    assert by_day[7:] / by_day[:-7] == pytest.approx(np.full(8, 1.5))


def test_installs_end_after_the_install_days() -> None:
    """`install_days = 4` allows installs on the first four days only."""
    scenario = change(load_scenario("small", days=15), install_days=4, campaigns=())
    by_day = plan_installs(scenario.games[0], scenario=scenario, first_weekday=0).installs.sum(axis=0)
    assert np.flatnonzero(by_day).tolist() == [0, 1, 2, 3]


def test_all_events_of_a_player_name_the_same_arm_or_none(played: PlayedScenario) -> None:
    """Arm ids are constant per player, and every arm of the scenario occurs."""
    by_player = defaultdict(set)
    for event in played.events:
        by_player[event["game_id"], event["user_id"]].add((event.get("ab_id"), event.get("ab_variant_id")))
    assert {len(arms) for arms in by_player.values()} == {1}
    defined: set[tuple[str | None, str | None]] = {
        (arm.experiment.id, arm.variant.id)
        for game in played.scenario.games
        for arm in arms_of(game, scenario=played.scenario)
    }
    assert {next(iter(arms)) for arms in by_player.values()} == defined | {(None, None)}


def test_an_experiment_takes_players_who_install_while_it_runs(played: PlayedScenario) -> None:
    """Players of an experiment installed on one of its days."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for event in played.events:
        first.setdefault((event["game_id"], event["user_id"]), event)
    begins = datetime.combine(day_of(played.scenario, 0), datetime.min.time(), UTC).timestamp()
    days = [
        int((event["client_ts"] - begins) // 86_400)
        for event in first.values()
        if event.get("ab_id") == "starter_price"
    ]
    assert days
    assert set(days) <= set(range(8, 29))


@pytest.mark.wide
@pytest.mark.slow
def test_an_arm_that_spends_more_has_more_payers() -> None:
    """`spend = 2` multiplies the odds of paying by e squared, in that arm only."""
    scenario = only(load_scenario("calm", players=8000, days=20), "Rooftop Dash")
    test = change(scenario.experiments[0], day=0, days=None, share=1.0)
    moved = change(test, variants=(test.variants[0], change(test.variants[1], spend=2.0)))
    ledger = ledger_of(change(scenario, experiments=(moved,)))
    rows = ledger.metric("paying_users", interval=interval(scenario, 0, 20), granularity="all", by=("ab_variant_id",))
    payers = {row["ab_variant_id"]: row["paying_users"] for row in rows}
    odds = np.exp(2.0) * 0.013 / 0.987
    assert payers["ctrl"] == pytest.approx(4000 * 0.013, abs=3 * sqrt(4000 * 0.013))
    assert payers["half_price"] == pytest.approx(4000 * odds / (1 + odds), abs=3 * sqrt(4000 * 0.09))
