"""The ad waterfall: order of requests, fill rates, pay per impression, and its events."""

from __future__ import annotations

from collections import Counter, defaultdict
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
from support.statistical_tests import holm_rejects, share_p_value

ENDS_ON, DAYS = date(2026, 11, 21), "2026-11-07/2026-11-21"
SHIPPED = [game for name in ("calm", "hypercasual", "midcore") for game in load_scenario(name).games]
change = msgspec.structs.replace


def chances_to_show(ads: AdProfile, *, out: tuple[int, ...] = ()) -> np.ndarray:
    """Return the chance of each network, then of an empty break, by line-up.

    A line-up is the order of networks in one tier and format. Shape (line-ups, networks + 1).
    """
    waterfall, count = waterfall_of(ads), len(ads.networks)
    chances = waterfall.chances(np.isin(np.arange(count), out))
    by_network = np.zeros_like(chances)
    np.put_along_axis(by_network, waterfall.order, chances[:, :count], axis=1)
    by_network[:, count] = chances[:, count]
    return by_network


@pytest.mark.parametrize("game", SHIPPED, ids=lambda game: game.title)
def test_fill_and_shares_are_what_the_scenario_says_in_every_tier_and_format(game: GameProfile) -> None:
    """Each network shows its share of the filled breaks in every tier and format."""
    total = sum(network.share for network in game.ads.networks)
    expected = [*(game.ads.fill * network.share / total for network in game.ads.networks), 1 - game.ads.fill]
    lineups = chances_to_show(game.ads)
    assert lineups == pytest.approx(np.tile(expected, (TIERS * len(game.ads.formats), 1)))


@pytest.mark.parametrize("game", SHIPPED, ids=lambda game: game.title)
def test_the_best_paid_is_asked_first(game: GameProfile) -> None:
    """Networks are requested in falling order of their eCPM in that tier and format."""
    ads, order = game.ads, waterfall_of(game.ads).order
    for lineup, places in enumerate(order.tolist()):
        tier, format_ = divmod(lineup, len(ads.formats))
        pays = [ads.networks[place].ecpm[list(ads.formats)[format_]][tier] for place in places]
        assert pays == sorted(pays, reverse=True)


def test_a_later_network_fills_more_of_its_requests() -> None:
    """By hand: of fill 0.9, shared 2 to 1, the second shows 0.3 and is requested 0.4 times."""
    ads = SHIPPED[0].ads
    pair = tuple(change(network, share=share) for network, share in zip(ads.networks[:2], (2.0, 1.0), strict=True))
    assert waterfall_of(change(ads, fill=0.9, networks=pair)).fills[0] == pytest.approx([0.6, 0.3 / 0.4])


@given(
    fill=st.floats(0, 1), weights=st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4), out=st.sets(st.integers(0, 3))
)
def test_chances_add_up_to_one_for_any_shares_and_outages(fill: float, weights: list[float], out: set[int]) -> None:
    """Chances add up to 1, fill rates lie in 0 to 1, and a network that is out has chance 0."""
    ads = SHIPPED[1].ads
    networks = tuple(change(network, share=weight) for network, weight in zip(ads.networks, weights, strict=True))
    ads = change(ads, fill=fill, networks=networks)
    fills, chances = waterfall_of(ads).fills, chances_to_show(ads, out=tuple(out))
    assert ((fills >= 0) & (fills <= 1)).all()
    assert (chances >= 0).all()
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances[:, [*out]] == 0).all()


@pytest.mark.parametrize("dead", range(4))
def test_networks_after_a_dead_one_take_over_its_share(dead: int) -> None:
    """Networks after a dead one gain in proportion to its fill rate, those before it do not."""
    ads = SHIPPED[1].ads
    waterfall, alive, lineups = waterfall_of(ads), chances_to_show(ads), chances_to_show(ads, out=(dead,))
    for lineup, order in enumerate(waterfall.order.tolist()):
        place = order.index(dead)
        more = 1 / (1 - waterfall.fills[lineup, place])
        before, after = order[:place], [*order[place + 1 :], len(order)]
        assert lineups[lineup, dead] == 0
        assert lineups[lineup, before] == pytest.approx(alive[lineup, before])
        assert lineups[lineup, after] == pytest.approx(alive[lineup, after] * more)


def test_an_outage_without_a_platform_is_one_of_all() -> None:
    """An outage without a platform holds on every platform, and ends with the scenario."""
    scenario = load_scenario("calm", days=9)
    game = scenario.games[0]
    dead = NetworkOutage(game=game.title, network="Mintegral", day=7, days=5)
    assert np.argwhere(outages(game, scenario=change(scenario, incidents=(dead,)))).tolist() == [
        [day, platform, 2] for day in (7, 8) for platform in (0, 1)
    ]


class Runner(NamedTuple):
    """A game with three formats and four networks, one of them out for a week, and its events."""

    scenario: Scenario
    ledger: Ledger
    events: list[dict[str, Any]]

    @property
    def ads(self) -> AdProfile:
        """The ad profile of the game."""
        return self.scenario.games[0].ads


CUT = 2
"""Breaks of one kind that a midnight may cut, so that their events are counted on both sides."""
DEAD = NetworkOutage(game="Rooftop Dash", network="Meta", platform="android", day=7, days=7)


@pytest.fixture(scope="module")
def runner() -> Runner:
    """Play 2,500 players for 14 days, with one network out in the second week."""
    demo, ledger = load_scenario("calm", players=2500, days=14), Ledger()
    studio = change(demo.studios[0], games=(demo.games[1],))
    scenario = change(demo, studios=(studio,), campaigns=(), experiments=(), incidents=(DEAD,))
    batches = list(play(scenario, ends_on=ENDS_ON, ledger=ledger))
    return Runner(scenario, ledger, [event for batch in batches for event in msgspec.json.decode(batch.body)])


def ad_event_counts(runner: Runner, *, is_hit: bool) -> dict[tuple[int, str, str, str], int]:
    """Return ad events by tier, format, network and action, during the outage or outside it."""
    first, last = "2026-11-07/2026-11-14", "2026-11-14/2026-11-21"
    android = dim.platform == "android"
    selections = [(last, android)] if is_hit else [(first, android), (DAYS, ~android)]
    tiers = {country.code: country.tier for country in runner.scenario.countries}
    events: Counter[tuple[int, str, str, str]] = Counter()
    for interval, where in selections:
        by = ("country_code", "ad_type", "ad_sdk_name", "ad_action")
        for row in runner.ledger.metric("event_count", interval=interval, granularity="all", by=by, where=where):
            if row["ad_action"] is not None:
                country, *rest = (row[name] for name in by)
                kind, network, action = rest
                events[tiers[country], kind, network, action] += row["event_count"]
    return events


@pytest.mark.parametrize("is_hit", [False, True], ids=["all well", "one is out"])
def test_networks_fill_their_requests_at_the_expected_rate(runner: Runner, is_hit: bool) -> None:
    """Shows per request match the fill rate, and the next network gets the unfilled requests."""
    waterfall, events, p = waterfall_of(runner.ads), ad_event_counts(runner, is_hit=is_hit), []
    names = [network.sdk_name for network in runner.ads.networks]
    for lineup, order in enumerate(waterfall.order.tolist()):
        tier, format_ = divmod(lineup, len(runner.ads.formats))
        key = (tier + 1, list(runner.ads.formats)[format_])
        expected = events[*key, names[order[0]], "request"]
        for place, network in enumerate(order):
            requests, shows = (events[*key, names[network], action] for action in ("request", "show"))
            assert requests == pytest.approx(expected, abs=CUT)
            expected = requests - shows
            if is_hit and names[network] == "meta":
                assert (requests > 0, shows) == (True, 0)
            elif requests > 20:
                p.append(share_p_value(shows / requests, waterfall.fills[lineup, place], requests))
        assert events[*key, names[order[-1]], "failed_show"] == pytest.approx(expected, abs=CUT)
    assert len(p) > 20
    assert not holm_rejects(p)


def test_a_wrong_fill_rate_is_rejected(runner: Runner) -> None:
    """Negative control: rates that ignore the networks requested before are rejected."""
    events, p = ad_event_counts(runner, is_hit=False), []
    for network in runner.ads.networks:
        requests, shows = (
            sum(count for key, count in events.items() if key[2:] == (network.sdk_name, action))
            for action in ("request", "show")
        )
        p.append(share_p_value(shows / requests, network.share * runner.ads.fill, requests))
    assert holm_rejects(p)


def test_other_networks_take_over_part_of_an_outage(runner: Runner) -> None:
    """During an outage other networks show their expected shares, and the rest stays empty."""
    events, p = ad_event_counts(runner, is_hit=True), []
    names = [network.sdk_name for network in runner.ads.networks]
    chances = chances_to_show(runner.ads, out=(names.index("meta"),))
    for lineup, expected in enumerate(chances):
        tier, format_ = divmod(lineup, len(runner.ads.formats))
        key = (tier + 1, list(runner.ads.formats)[format_])
        shows = [events[*key, name, "show"] for name in names]
        failed = sum(events[*key, name, "failed_show"] for name in names)
        breaks = sum(shows) + failed
        p += [
            share_p_value(count / breaks, chance, breaks)
            for count, chance in zip([*shows, failed], expected, strict=True)
            if chance
        ]
    assert not holm_rejects(p)


def test_impressions_pay_their_network_format_and_tier(runner: Runner) -> None:
    """Mean revenue equals the eCPM of network, format and tier, despite its log-normal spread."""
    tiers = {country.code: country.tier for country in runner.scenario.countries}
    counted: Counter[tuple[str, str, int]] = Counter()
    usd: defaultdict[tuple[str, str, int], float] = defaultdict(float)
    by = ("country_code", "ilrd_adunit_format", "ilrd_network_name")
    for row in runner.ledger.metric("ilrd_revenue", interval=DAYS, granularity="all", by=by):
        if row["ilrd_network_name"] is not None:
            key = (row["ilrd_network_name"], row["ilrd_adunit_format"], tiers[row["country_code"]])
            counted[key] += row["event_count"]
            usd[key] += row["sum"]
    p, spread = [], sqrt(np.exp(ECPM_SIGMA**2) - 1)
    for network in runner.ads.networks:
        for format_, pays in network.ecpm.items():
            for tier, ecpm in enumerate(pays, start=1):
                key = (network.name, format_, tier)
                count = counted[key]
                if count > 50:  # the mean of fewer is not normally distributed yet
                    error = ecpm * spread / sqrt(count)
                    p.append(erfc(abs(1000 * usd[key] / count - ecpm) / error / sqrt(2)))
    assert len(p) > 15
    assert not holm_rejects(p)


def test_requests_go_down_the_waterfall_until_one_shows_or_none_is_left(runner: Runner) -> None:
    """A break is a request per network in order, then one show or failed_show."""
    tiers = {country.code: country.tier - 1 for country in runner.scenario.countries}
    formats, order = list(runner.ads.formats), waterfall_of(runner.ads).order
    names = [network.sdk_name for network in runner.ads.networks]
    ends: Counter[tuple[str, int]] = Counter()
    for _, session in groupby(runner.events, key=lambda event: event["session_id"]):
        requested: list[str] = []
        for event in session:
            action = event.get("ad_action")
            if action == "request":
                requested.append(event["ad_sdk_name"])
                lineup = order[tiers[event["country_code"]] * len(formats) + formats.index(event["ad_type"])]
                assert requested == [names[place] for place in lineup[: len(requested)]]
            elif action in ("show", "failed_show"):
                assert event["ad_sdk_name"] == requested[-1]
                assert action == "show" or len(requested) == len(names)
                ends[action, len(requested)] += 1
                requested = []
    assert {places for action, places in ends if action == "show"} == {1, 2, 3, 4}


def test_a_break_without_an_ad_has_one_failed_show_with_a_reason(runner: Runner) -> None:
    """Every failed_show has a reason, no other event has one (Wire 3.5, Category fields)."""
    reasons = Counter(event.get("ad_fail_show_reason") for event in runner.events if event["category"] == "ads")
    failed = sum(event.get("ad_action") == "failed_show" for event in runner.events)
    assert sum(count for reason, count in reasons.items() if reason) == failed
    assert reasons.most_common(2)[1][0] == "no_fill"
