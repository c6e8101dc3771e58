"""What is expected, incidents and all, against players who were drawn and played."""

from __future__ import annotations

from datetime import date
from math import erfc, sqrt

import msgspec
import numpy as np
import pytest

from gamelens.simulator import Scenario, expect, load_scenario
from gamelens.simulator.output.forecast import GameForecast, SampledPlay
from gamelens.simulator.population.behaviour import PlayedBlock, play_block
from gamelens.simulator.population.experiment_arms import mixture_of
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.players import Players, draw_players
from gamelens.simulator.scenarios.timeline import BadBuild, GameSilence, NetworkOutage
from gamelens.wire.currencies import USD_PER_UNIT
from support.statistical_tests import holm_rejects, two_sided

ENDS_ON, MONDAY = date(2026, 11, 21), 0
TITLE = "Rooftop Dash"
change = msgspec.structs.replace

BAD_BUILD = BadBuild(game=TITLE, build="1.9.0", country="BR", stay=0.4)
SILENCE = GameSilence(game=TITLE, day=20, days=3)
TROUBLE = {"none": (), "silence": (SILENCE,), "bad build": (BAD_BUILD,), "both": (SILENCE, BAD_BUILD)}


def troubled(*incidents: object, **changed: object) -> Scenario:
    """The demo's runner over five weeks, a campaign and an experiment in them, and what befalls it."""
    demo = load_scenario("demo", players=3000, days=35)
    game = change(demo.games[1], **changed)
    return change(
        demo,
        studios=(change(demo.studios[0], games=(game,)),),
        campaigns=(change(demo.campaigns[0], game=TITLE),),
        experiments=tuple(each for each in demo.experiments if each.game == TITLE),
        incidents=incidents,
    )


def drawn(scenario: Scenario, count: int) -> Players:
    game = scenario.games[0]
    intake = plan_installs(game, scenario=scenario, first_weekday=MONDAY)
    activity, rng = game.retention.activity(), np.random.default_rng(6)
    return draw_players(count, game=game, scenario=scenario, activity=activity, intake=intake, rng=rng)


def played(scenario: Scenario, count: int) -> PlayedBlock:
    rng = np.random.default_rng(7)
    return play_block(
        drawn(scenario, count), game=scenario.games[0], scenario=scenario, first_day_s=4 * 86_400, rng=rng
    )


def outlook_of(scenario: Scenario) -> GameForecast:
    return GameForecast(scenario.games[0], scenario=scenario, first_weekday=MONDAY)


def of_means(each: np.ndarray, expected: np.ndarray | float) -> list[float]:
    """The p-value of the mean over players, shape (players, ...), of each thing that varies between them."""
    means, errors = np.atleast_1d(each.mean(axis=0)), np.atleast_1d(each.std(axis=0)) / sqrt(len(each))
    told = zip(means.ravel(), errors.ravel(), np.ravel(expected), strict=True)
    return [erfc(abs(mean - true) / error / sqrt(2)) for mean, error, true in told if error]


@pytest.mark.parametrize("incidents", TROUBLE.values(), ids=TROUBLE)
def test_days_played_are_expected_day_by_day_country_by_country(incidents: tuple[object, ...]) -> None:
    """Silences, bad builds, campaigns and experiments: 20,000 players, z-tests, Holm's correction."""
    scenario = troubled(*incidents)
    players, present = drawn(scenario, 20_000), outlook_of(scenario).present
    where = np.zeros((len(players), *present.shape[1:]), dtype=np.int64)
    where[np.arange(len(players)), players.country, players.platform] = players.active.sum(axis=1)
    p = of_means(players.active.astype(np.float64), present.sum(axis=(1, 2))) + of_means(where, present.sum(axis=0))
    assert len(p) >= 40
    assert not holm_rejects(p)


def test_nobody_is_expected_on_silent_days() -> None:
    assert (outlook_of(troubled(SILENCE)).present.sum(axis=(1, 2)) == 0).nonzero()[0].tolist() == [20, 21, 22]


def d_n(players: Players, day: int) -> tuple[float, int]:
    """The measured D-n of those whose day n the scenario has, and how many they are."""
    seen = np.flatnonzero(players.install_day + day < players.active.shape[1])
    return float(players.active[seen, players.install_day[seen] + day].mean()), len(seen)


@pytest.mark.parametrize("incidents", TROUBLE.values(), ids=TROUBLE)
def test_retention_is_expected_as_it_is_measured(incidents: tuple[object, ...]) -> None:
    """Over the cohorts that can be seen: those hit by an incident count as much as they are among them."""
    scenario = troubled(*incidents)
    players, outlook = drawn(scenario, 20_000), outlook_of(scenario)
    measured = {day: d_n(players, day) for day in (1, 2, 7, 14, 28)}
    assert not holm_rejects(
        [two_sided(share, outlook.retention(day), count) for day, (share, count) in measured.items()]
    )


def test_incidents_left_out_would_be_found() -> None:
    """The tests above can tell: against the population as it is without them."""
    scenario = troubled(*TROUBLE["both"])
    players = drawn(scenario, 20_000)
    still = mixture_of(scenario.games[0], scenario=scenario, first_weekday=MONDAY)
    share, count = d_n(players, 1)
    assert holm_rejects([two_sided(share, still.retention(1), count)])
    assert holm_rejects(of_means(players.active.sum(axis=1), outlook_of(troubled()).present.sum()))


def test_without_anything_special_it_is_the_closed_form() -> None:
    scenario = change(troubled(), campaigns=(), experiments=(), install_days=1)
    outlook, activity = outlook_of(scenario), scenario.games[0].retention.activity()
    assert outlook.present.sum(axis=(1, 2)) == pytest.approx([activity.retention(day) for day in range(35)])
    assert outlook.retention(40) == pytest.approx(activity.retention(40))


ANDROID_OUT = NetworkOutage(game=TITLE, network="Unity Ads", platform="android", day=0, days=35)
OUTAGES = {"all well": (), "one is out": (ANDROID_OUT,)}


@pytest.mark.parametrize("incidents", OUTAGES.values(), ids=OUTAGES)
def test_ads_and_what_they_earn_are_expected(incidents: tuple[object, ...]) -> None:
    """With the habits of those who played, the rest is the closed form of the waterfall."""
    scenario = troubled(*incidents)
    block = played(scenario, 3000)
    ad, player = block.money.ad, block.sessions.player[block.rounds.session]
    shown = np.bincount(player, ad.is_shown, minlength=3000)
    usd = np.bincount(player, ad.is_shown * ad.micros / 1e6, minlength=3000)
    ads, earned = outlook_of(scenario).ads(SampledPlay.of(block))
    assert not holm_rejects(of_means(np.column_stack([shown, usd]), np.array([ads, earned])))


def test_of_an_outage_the_part_is_expected_that_nobody_takes_over() -> None:
    """The share of breaks that show an ad, expected and played."""
    hit, well = troubled(ANDROID_OUT), troubled()
    block = played(hit, 3000)
    breaks = np.count_nonzero(block.money.ad.asked)
    share = np.count_nonzero(block.money.ad.is_shown) / breaks
    habits = SampledPlay.of(block)
    lost = outlook_of(hit).ads(habits)[0] / outlook_of(well).ads(habits)[0]
    fill = hit.games[0].ads.fill
    assert 0.85 < lost < 0.95
    assert two_sided(share, lost * fill, breaks) > 0.001
    assert two_sided(share, fill, breaks) < 1e-9


def test_revenue_is_expected() -> None:
    """With half of all players paying, so that there is enough of it."""
    game = load_scenario("demo").games[1]
    scenario = troubled(purchases=change(game.purchases, payers=0.5))
    block = played(scenario, 4000)
    bought = np.flatnonzero(block.money.item >= 0)
    player = block.sessions.player[block.rounds.session[bought]]
    currencies = [scenario.country(code).currency for code in game.countries]
    prices = np.array(
        [[item.price[each] / 100 * float(USD_PER_UNIT[each]) for each in currencies] for item in game.purchases.items]
    )
    usd = np.bincount(player, prices[block.money.item[bought], block.players.country[player]], minlength=4000)
    assert not holm_rejects(of_means(usd, outlook_of(scenario).revenue(SampledPlay.of(block))))


def test_a_dry_run_knows_of_incidents() -> None:
    """Issue, Build 8: what would be sent, expected DAU, D1, D7 and revenue."""
    well, hit = (expect(troubled(*TROUBLE[name]), ends_on=ENDS_ON) for name in ("none", "both"))
    assert hit.dau < 0.95 * well.dau
    assert hit.games[0].d1 < well.games[0].d1
    assert min(hit.ads_shown, hit.ad_revenue_usd, hit.revenue_usd) > 0
    assert hit.events < well.events
