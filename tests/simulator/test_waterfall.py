"""The ad waterfall: who is asked, who fills, what it pays, and that the events tell it."""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import groupby
from math import erfc, sqrt
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.simulator import Ledger, Scenario, load_scenario, play
from gamelens.simulator.population.ad_waterfall import outages, waterfall_of
from gamelens.simulator.population.monetisation import ECPM_SIGMA
from gamelens.simulator.scenarios.game_profile import TIERS, AdProfile, GameProfile
from gamelens.simulator.scenarios.timeline import NetworkOutage
from gamelens.wire.filters import dim
from support.statistical_tests import holm_rejects, two_sided

ENDS_ON, DAYS = date(2026, 11, 21), "2026-11-07/2026-11-21"
SHIPPED = [game for name in ("demo", "hypercasual", "midcore") for game in load_scenario(name).games]
change = msgspec.structs.replace


def realised(ads: AdProfile, *, out: tuple[int, ...] = ()) -> np.ndarray:
    """The chance of each network, and of nobody, to show an ad; shape (line-ups, networks + 1)."""
    waterfall, count = waterfall_of(ads), len(ads.networks)
    chances = waterfall.chances(np.isin(np.arange(count), out))
    by_network = np.zeros_like(chances)
    np.put_along_axis(by_network, waterfall.order, chances[:, :count], axis=1)
    by_network[:, count] = chances[:, count]
    return by_network


@pytest.mark.parametrize("game", SHIPPED, ids=lambda game: game.title)
def test_fill_and_shares_are_what_the_scenario_says_in_every_tier_and_format(game: GameProfile) -> None:
    """Whoever is asked first there."""
    total = sum(network.share for network in game.ads.networks)
    expected = [*(game.ads.fill * network.share / total for network in game.ads.networks), 1 - game.ads.fill]
    lineups = realised(game.ads)
    assert lineups == pytest.approx(np.tile(expected, (TIERS * len(game.ads.formats), 1)))


@pytest.mark.parametrize("game", SHIPPED, ids=lambda game: game.title)
def test_the_best_paid_is_asked_first(game: GameProfile) -> None:
    ads, order = game.ads, waterfall_of(game.ads).order
    for lineup, places in enumerate(order.tolist()):
        tier, format_ = divmod(lineup, len(ads.formats))
        pays = [ads.networks[place].ecpm[list(ads.formats)[format_]][tier] for place in places]
        assert pays == sorted(pays, reverse=True)


def test_who_is_asked_later_fills_more_of_what_is_left() -> None:
    """By hand: 0.9 filled, two thirds of it by the first, one third by the other, who is asked 0.4 of the times."""
    ads = SHIPPED[0].ads
    pair = tuple(change(network, share=share) for network, share in zip(ads.networks[:2], (2.0, 1.0), strict=True))
    assert waterfall_of(change(ads, fill=0.9, networks=pair)).fills[0] == pytest.approx([0.6, 0.3 / 0.4])


@given(
    fill=st.floats(0, 1), weights=st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4), out=st.sets(st.integers(0, 3))
)
def test_chances_are_chances(fill: float, weights: list[float], out: set[int]) -> None:
    ads = SHIPPED[1].ads
    networks = tuple(change(network, share=weight) for network, weight in zip(ads.networks, weights, strict=True))
    ads = change(ads, fill=fill, networks=networks)
    fills, chances = waterfall_of(ads).fills, realised(ads, out=tuple(out))
    assert ((fills >= 0) & (fills <= 1)).all()
    assert (chances >= 0).all()
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances[:, [*out]] == 0).all()


@pytest.mark.parametrize("dead", range(4))
def test_those_asked_after_a_dead_network_take_over(dead: int) -> None:
    """Each shows more by what the dead one would have filled of what came to it; nobody before it shows more."""
    ads = SHIPPED[1].ads
    waterfall, alive, lineups = waterfall_of(ads), realised(ads), realised(ads, out=(dead,))
    for lineup, order in enumerate(waterfall.order.tolist()):
        place = order.index(dead)
        more = 1 / (1 - waterfall.fills[lineup, place])
        before, after = order[:place], [*order[place + 1 :], len(order)]
        assert lineups[lineup, dead] == 0
        assert lineups[lineup, before] == pytest.approx(alive[lineup, before])
        assert lineups[lineup, after] == pytest.approx(alive[lineup, after] * more)


def test_an_outage_without_a_platform_is_one_of_all() -> None:
    scenario = load_scenario("demo", days=9)
    game = scenario.games[0]
    dead = NetworkOutage(game=game.title, network="Mintegral", day=7, days=5)
    assert np.argwhere(outages(game, scenario=change(scenario, incidents=(dead,)))).tolist() == [
        [day, platform, 2] for day in (7, 8) for platform in (0, 1)
    ]


class Runner(NamedTuple):
    """One game with three formats and four networks, a network of which is out for a while, and what it sent."""

    scenario: Scenario
    ledger: Ledger
    events: list[dict[str, Any]]

    @property
    def ads(self) -> AdProfile:
        return self.scenario.games[0].ads


CUT = 2
"""So many breaks of one kind may lie on both sides of a midnight, and be counted half here, half there."""
DEAD = NetworkOutage(game="Rooftop Dash", network="Meta", platform="android", day=7, days=7)


@pytest.fixture(scope="module")
def runner() -> Runner:
    demo, ledger = load_scenario("demo", players=2500, days=14), Ledger()
    studio = change(demo.studios[0], games=(demo.games[1],))
    scenario = change(demo, studios=(studio,), campaigns=(), experiments=(), incidents=(DEAD,))
    batches = list(play(scenario, ends_on=ENDS_ON, ledger=ledger))
    return Runner(scenario, ledger, [event for batch in batches for event in msgspec.json.decode(batch.body)])


def counts(runner: Runner, *, is_hit: bool) -> dict[tuple[int, str, str, str], int]:
    """Ad events by tier, format, network and action, where the network is out or everywhere else."""
    first, last = "2026-11-07/2026-11-14", "2026-11-14/2026-11-21"
    android = dim.platform == "android"
    asked = [(last, android)] if is_hit else [(first, android), (DAYS, ~android)]
    tiers, found = {country.code: country.tier for country in runner.scenario.countries}, Counter()
    for interval, where in asked:
        by = ("country_code", "ad_type", "ad_sdk_name", "ad_action")
        for row in runner.ledger.metric("event_count", interval=interval, granularity="all", by=by, where=where):
            if row["ad_action"] is not None:
                country, *rest = (row[name] for name in by)
                found[tiers[country], *rest] += row["event_count"]
    return found


@pytest.mark.parametrize("is_hit", [False, True], ids=["all well", "one is out"])
def test_networks_fill_what_they_are_asked_as_often_as_they_should(runner: Runner, is_hit: bool) -> None:
    """Shows by requests of each network, tier and format; whoever comes next is asked what the one before left."""
    waterfall, found, p = waterfall_of(runner.ads), counts(runner, is_hit=is_hit), []
    names = [network.sdk_name for network in runner.ads.networks]
    for lineup, order in enumerate(waterfall.order.tolist()):
        tier, format_ = divmod(lineup, len(runner.ads.formats))
        key = (tier + 1, list(runner.ads.formats)[format_])
        came = found[*key, names[order[0]], "request"]
        for place, network in enumerate(order):
            requests, shows = (found[*key, names[network], action] for action in ("request", "show"))
            assert requests == pytest.approx(came, abs=CUT)
            came = requests - shows
            if is_hit and names[network] == "meta":
                assert (requests > 0, shows) == (True, 0)
            elif requests > 20:
                p.append(two_sided(shows / requests, waterfall.fills[lineup, place], requests))
        assert found[*key, names[order[-1]], "failed_show"] == pytest.approx(came, abs=CUT)
    assert len(p) > 20
    assert not holm_rejects(p)


def test_a_wrong_chance_is_found(runner: Runner) -> None:
    """The test above can tell: here each is to fill as often as it is shown, as if nobody were asked before it."""
    found, p = counts(runner, is_hit=False), []
    for network in runner.ads.networks:
        requests, shows = (
            sum(count for key, count in found.items() if key[2:] == (network.sdk_name, action))
            for action in ("request", "show")
        )
        p.append(two_sided(shows / requests, network.share * runner.ads.fill, requests))
    assert holm_rejects(p)


def test_the_others_take_over_a_part_and_the_rest_stays_empty(runner: Runner) -> None:
    """Of all breaks of a tier and format: what each network shows of them while one is out."""
    found, p = counts(runner, is_hit=True), []
    names = [network.sdk_name for network in runner.ads.networks]
    chances = realised(runner.ads, out=(names.index("meta"),))
    for lineup, expected in enumerate(chances):
        tier, format_ = divmod(lineup, len(runner.ads.formats))
        key = (tier + 1, list(runner.ads.formats)[format_])
        shows = [found[*key, name, "show"] for name in names]
        failed = sum(found[*key, name, "failed_show"] for name in names)
        breaks = sum(shows) + failed
        p += [
            two_sided(count / breaks, chance, breaks)
            for count, chance in zip([*shows, failed], expected, strict=True)
            if chance
        ]
    assert not holm_rejects(p)


def test_impressions_pay_their_network_format_and_tier(runner: Runner) -> None:
    """eCPM in the mean of a log-normal spread; only the networks that the vendor tells."""
    tiers, found = {country.code: country.tier for country in runner.scenario.countries}, Counter()
    by = ("country_code", "ilrd_adunit_format", "ilrd_network_name")
    for row in runner.ledger.metric("ilrd_revenue", interval=DAYS, granularity="all", by=by):
        if row["ilrd_network_name"] is not None:
            key = (row["ilrd_network_name"], row["ilrd_adunit_format"], tiers[row["country_code"]])
            found[*key, "count"] += row["event_count"]
            found[*key, "usd"] += row["sum"]
    p, spread = [], sqrt(np.exp(ECPM_SIGMA**2) - 1)
    for network in runner.ads.networks:
        for format_, pays in network.ecpm.items():
            for tier, ecpm in enumerate(pays, start=1):
                count, usd = (found[network.name, format_, tier, what] for what in ("count", "usd"))
                if count > 50:  # the mean of fewer is no normal variable yet
                    error = ecpm * spread / sqrt(count)
                    p.append(erfc(abs(1000 * usd / count - ecpm) / error / sqrt(2)))
    assert len(p) > 15
    assert not holm_rejects(p)


def test_requests_go_down_the_waterfall_until_one_shows_or_none_is_left(runner: Runner) -> None:
    """public-facts 2.5: ad_action and ad_sdk_name, in the order sent."""
    tiers = {country.code: country.tier - 1 for country in runner.scenario.countries}
    formats, order = list(runner.ads.formats), waterfall_of(runner.ads).order
    names, seen = [network.sdk_name for network in runner.ads.networks], Counter()
    for _, session in groupby(runner.events, key=lambda event: event["session_id"]):
        asked: list[str] = []
        for event in session:
            action = event.get("ad_action")
            if action == "request":
                asked.append(event["ad_sdk_name"])
                lineup = order[tiers[event["country_code"]] * len(formats) + formats.index(event["ad_type"])]
                assert asked == [names[place] for place in lineup[: len(asked)]]
            elif action in ("show", "failed_show"):
                assert event["ad_sdk_name"] == asked[-1]
                assert action == "show" or len(asked) == len(names)
                seen[action, len(asked)] += 1
                asked = []
    assert {places for action, places in seen if action == "show"} == {1, 2, 3, 4}


def test_a_break_without_an_ad_is_told_once_with_its_reason(runner: Runner) -> None:
    """public-facts 2.5: a reason goes with failed_show alone."""
    reasons = Counter(event.get("ad_fail_show_reason") for event in runner.events if event["category"] == "ads")
    failed = sum(event.get("ad_action") == "failed_show" for event in runner.events)
    assert sum(count for reason, count in reasons.items() if reason) == failed
    assert reasons.most_common(2)[1][0] == "no_fill"
