"""Players who were drawn and played, incidents included, against closed forms."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.population.behaviour import PlayedBlock, play_block
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import Players, draw_players
from gamelens.simulator.scenarios.timeline import BadBuild, GameSilence, Incident, NetworkOutage, PriceChange
from gamelens.wire.currencies import USD_PER_UNIT
from support.closed_form import GameForecast, mixture_of
from support.statistical_tests import holm_rejects, mean_p_values, share_p_value

MONDAY = 0
TITLE = "Rooftop Dash"
change = msgspec.structs.replace

BAD_BUILD = BadBuild(game=TITLE, build="1.9.0", country="BR", stay=0.4)
BAD_ON_IOS = BadBuild(game=TITLE, build="1.9.0", platform="ios", stay=0.3)
SILENCE = GameSilence(game=TITLE, day=20, days=3)
INCIDENTS: dict[str, tuple[Incident, ...]] = {
    "none": (),
    "silence": (SILENCE,),
    "bad build": (BAD_BUILD,),
    "bad build on one platform": (BAD_ON_IOS,),
    "both": (SILENCE, BAD_BUILD),
}


def with_incidents(*incidents: Incident, **changed: Any) -> Scenario:
    """Return five weeks of Rooftop Dash with a campaign, an experiment and *incidents*."""
    demo = load_scenario("calm", players=3000, days=35)
    game = change(demo.games[1], **changed)
    return change(
        demo,
        studios=(change(demo.studios[0], games=(game,)),),
        campaigns=(change(demo.campaigns[0], game=TITLE),),
        experiments=tuple(each for each in demo.experiments if each.game == TITLE),
        incidents=incidents,
    )


def draw_runner_players(scenario: Scenario, count: int) -> Players:
    """Draw *count* players of the only game of *scenario*."""
    game = scenario.games[0]
    install_plan = plan_installs(game, scenario=scenario, first_weekday=MONDAY)
    activity, rng = game.retention.activity(), np.random.default_rng(6)
    return draw_players(count, game=game, scenario=scenario, activity=activity, install_plan=install_plan, rng=rng)


def play_runner(scenario: Scenario, count: int) -> PlayedBlock:
    """Draw *count* players and play them."""
    rng = np.random.default_rng(7)
    return play_block(
        draw_runner_players(scenario, count),
        game=scenario.games[0],
        scenario=scenario,
        first_day_s=4 * 86_400,
        rng=rng,
        faults_rng=rng,
    )


def forecast_of(scenario: Scenario) -> GameForecast:
    return GameForecast(scenario.games[0], scenario=scenario, first_weekday=MONDAY)


@pytest.mark.parametrize("incidents", INCIDENTS.values(), ids=INCIDENTS)
def test_days_played_are_expected_day_by_day_country_by_country(incidents: tuple[Incident, ...]) -> None:
    """Active players of each day, country and platform match the forecast (z-tests, Holm)."""
    scenario = with_incidents(*incidents)
    players, present = draw_runner_players(scenario, 20_000), forecast_of(scenario).present
    days_played = np.zeros((len(players), *present.shape[1:]), dtype=np.int64)
    days_played[np.arange(len(players)), players.country, players.platform] = players.active.sum(axis=1)
    p = mean_p_values(players.active.astype(np.float64), present.sum(axis=(1, 2)))
    p += mean_p_values(days_played, present.sum(axis=0))
    assert len(p) >= 40
    assert not holm_rejects(p)


def test_no_player_is_expected_on_silent_days() -> None:
    """The forecast is 0 on the days of a silence and on no other."""
    assert (forecast_of(with_incidents(SILENCE)).present.sum(axis=(1, 2)) == 0).nonzero()[0].tolist() == [20, 21, 22]


def d_n(players: Players, day: int) -> tuple[float, int]:
    """Return the measured D-n and the number of players whose day n lies in the scenario."""
    observed = np.flatnonzero(players.install_day + day < players.active.shape[1])
    return float(players.active[observed, players.install_day[observed] + day].mean()), len(observed)


@pytest.mark.parametrize("incidents", INCIDENTS.values(), ids=INCIDENTS)
def test_retention_is_expected_as_it_is_measured(incidents: tuple[Incident, ...]) -> None:
    """Forecast D-n averages the observable cohorts, those hit by an incident in proportion."""
    scenario = with_incidents(*incidents)
    players, forecast = draw_runner_players(scenario, 20_000), forecast_of(scenario)
    measured = {day: d_n(players, day) for day in (1, 2, 7, 14, 28)}
    assert not holm_rejects(
        [share_p_value(share, forecast.retention(day), count) for day, (share, count) in measured.items()]
    )


def test_players_of_a_campaign_may_stay_less() -> None:
    """Measured D-n matches the forecast of a campaign whose players stay less, and is below the usual one."""
    usual = with_incidents()
    campaign = change(usual.campaigns[0], stay=0.2, size=3.0)
    scenario = change(usual, campaigns=(campaign,))
    players, forecast = draw_runner_players(scenario, 20_000), forecast_of(scenario)
    measured = {day: d_n(players, day) for day in (1, 2, 7, 14)}
    assert not holm_rejects(
        [share_p_value(share, forecast.retention(day), count) for day, (share, count) in measured.items()]
    )
    as_usual = forecast_of(change(scenario, campaigns=(change(campaign, stay=1.0),)))
    assert forecast.retention(1) < 0.9 * as_usual.retention(1)


def test_a_forecast_without_the_incidents_is_rejected() -> None:
    """Negative control: forecasts that ignore the incidents are rejected by the same tests."""
    scenario = with_incidents(*INCIDENTS["both"])
    players = draw_runner_players(scenario, 20_000)
    without = mixture_of(scenario.games[0], scenario=scenario, first_weekday=MONDAY)
    share, count = d_n(players, 1)
    assert holm_rejects([share_p_value(share, without.retention(1), count)])
    assert holm_rejects(mean_p_values(players.active.sum(axis=1), forecast_of(with_incidents()).present.sum()))


def test_without_timeline_entries_the_forecast_is_the_closed_form() -> None:
    """With installs on one day and an empty timeline it is the BG/BB retention."""
    scenario = change(with_incidents(), campaigns=(), experiments=(), install_days=1)
    forecast, activity = forecast_of(scenario), scenario.games[0].retention.activity()
    assert forecast.present.sum(axis=(1, 2)) == pytest.approx([activity.retention(day) for day in range(35)])
    assert forecast.retention(40) == pytest.approx(activity.retention(40))


ANDROID_OUT = NetworkOutage(game=TITLE, network="Unity Ads", platform="android", day=0, days=35)
CHEAPER = PriceChange(game=TITLE, network="Unity Ads", country="US", factor=0.3, day=5, days=20)
OUTAGES: dict[str, tuple[Incident, ...]] = {
    "all well": (),
    "one is out": (ANDROID_OUT,),
    "one pays less in one country": (CHEAPER,),
}


@pytest.mark.parametrize("incidents", OUTAGES.values(), ids=OUTAGES)
def test_ads_and_what_they_earn_are_expected(incidents: tuple[Incident, ...]) -> None:
    """Ads shown and their revenue match the forecast, also with an ad network out or cheaper."""
    scenario = with_incidents(*incidents)
    block = play_runner(scenario, 3000)
    ad, player = block.money.ad, block.sessions.player[block.rounds.session]
    shown = np.bincount(player, ad.is_shown, minlength=3000)
    usd = np.bincount(player, ad.is_shown * ad.micros / 1e6, minlength=3000)
    ads, earned = forecast_of(scenario).ads(block)
    assert not holm_rejects(mean_p_values(np.column_stack([shown, usd]), np.array([ads, earned])))


def test_an_outage_reduces_the_expected_ads_by_the_part_not_taken_over() -> None:
    """The share of filled breaks falls by what other networks do not take over."""
    out, usual = with_incidents(ANDROID_OUT), with_incidents()
    block = play_runner(out, 3000)
    breaks = int(np.count_nonzero(block.money.ad.request_count))
    share = np.count_nonzero(block.money.ad.is_shown) / breaks
    remaining = forecast_of(out).ads(block)[0] / forecast_of(usual).ads(block)[0]
    fill = out.games[0].ads.fill
    assert 0.85 < remaining < 0.95
    assert share_p_value(share, remaining * fill, breaks) > 0.001
    assert share_p_value(share, fill, breaks) < 1e-9


def test_revenue_is_expected() -> None:
    """Purchase revenue matches the forecast, with half of all players paying for power."""
    game = load_scenario("calm").games[1]
    scenario = with_incidents(purchases=change(game.purchases, payers=0.5))
    block = play_runner(scenario, 4000)
    bought = np.flatnonzero(block.money.item >= 0)
    player = block.sessions.player[block.rounds.session[bought]]
    currencies = [scenario.country(code).currency for code in game.countries]
    prices = np.array(
        [[item.price[each] / 100 * float(USD_PER_UNIT[each]) for each in currencies] for item in game.purchases.items]
    )
    usd = np.bincount(player, prices[block.money.item[bought], block.players.country[player]], minlength=4000)
    assert not holm_rejects(mean_p_values(usd, forecast_of(scenario).revenue(block)))


def test_without_a_timeline_retention_is_that_of_the_scenario() -> None:
    """D1, D7 and D28 in closed form are the targets in the file of the scenario."""
    scenario = load_scenario("small", players=30, days=5)
    forecast = forecast_of(scenario)
    assert [forecast.retention(day) for day in (1, 7, 28)] == pytest.approx([0.37, 0.125, 0.04])
