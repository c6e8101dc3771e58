"""The shipped scenarios look like what they are calibrated to: Cookie Cats, and the published quartiles of games."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest

from gamelens.simulator import Ledger, load_scenario, play, scenario_names
from gamelens.simulator.population.behaviour import begin_sessions, rounds_by_session
from gamelens.simulator.population.experiment_arms import mixture_of
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.monetisation import price_weights
from gamelens.simulator.population.players import Players, draw_players
from gamelens.wire.filters import dim

pytestmark = pytest.mark.slow

ENDS_ON = date(2026, 11, 21)
COOKIE_CATS = 90_189
GATES = ("gate_30", "gate_40")


class CookieCats(NamedTuple):
    """Who came back, and the rounds of each player in the first 14 days."""

    players: Players
    d1: np.ndarray
    d7: np.ndarray
    rounds: np.ndarray


@pytest.fixture(scope="module")
def cookie_cats() -> CookieCats:
    scenario = load_scenario("cookie-cats", days=21)
    game, rng = scenario.games[0], np.random.default_rng(scenario.seed)
    intake = plan_installs(game, scenario=scenario, first_weekday=0)
    activity = game.retention.activity()
    players = draw_players(scenario.players, game=game, scenario=scenario, activity=activity, intake=intake, rng=rng)
    sessions = begin_sessions(players, game=game, scenario=scenario, first_day_s=0, rng=rng)
    rounds = rounds_by_session(sessions, game=game, rng=rng)
    early = sessions.day - players.install_day[sessions.player] < 14
    who = np.arange(len(players))
    return CookieCats(
        players,
        players.active[who, players.install_day + 1],
        players.active[who, players.install_day + 7],
        np.bincount(sessions.player[early], rounds[early], minlength=len(players)),
    )


def inside(share: float, published: float, count: int) -> bool:
    """In the 95 % interval of the published share of *count* players."""
    return abs(share - published) < 1.96 * sqrt(published * (1 - published) / count)


def test_cookie_cats_has_the_players_of_the_data_set(cookie_cats) -> None:
    assert len(cookie_cats.players) == COOKIE_CATS


def test_cookie_cats_d1_d7_and_both(cookie_cats) -> None:
    assert inside(cookie_cats.d1.mean(), 0.4452, COOKIE_CATS)
    assert inside(cookie_cats.d7.mean(), 0.1861, COOKIE_CATS)
    assert inside((cookie_cats.d1 & cookie_cats.d7).mean(), 0.1462, COOKIE_CATS)


def test_cookie_cats_in_closed_form() -> None:
    scenario = load_scenario("cookie-cats")
    truth = mixture_of(scenario.games[0], scenario=scenario, first_weekday=0)
    found = (truth.retention(1), truth.retention(7), truth.retention_both(1, 7))
    assert found == pytest.approx((0.4452, 0.1861, 0.1462), abs=1e-4)


@pytest.mark.parametrize(
    ("gate", "d1", "d7"), [(0, 20034 / 44700, 8502 / 44700), (1, 20119 / 45489, 8279 / 45489)], ids=GATES
)
def test_cookie_cats_arms(cookie_cats, gate, d1, d7) -> None:
    """Two draws are compared here, ours and theirs: 2.6 standard errors of each."""
    arm = cookie_cats.players.arm == gate
    for came, published in ((cookie_cats.d1, d1), (cookie_cats.d7, d7)):
        assert abs(came[arm].mean() - published) < 2.6 * sqrt(2 * published * (1 - published) / 45_000)


@pytest.mark.parametrize(("quantile", "rounds"), [(0.5, 16), (0.9, 134), (0.99, 493)])
def test_cookie_cats_rounds_played(cookie_cats, quantile, rounds) -> None:
    assert np.quantile(cookie_cats.rounds, quantile) == pytest.approx(rounds, rel=0.1)


def test_cookie_cats_mean_of_rounds(cookie_cats) -> None:
    assert cookie_cats.rounds.mean() == pytest.approx(51.9, rel=0.1)


class Figures(NamedTuple):
    """What benchmarks are published about, of one scenario that was played."""

    ledger: Ledger
    scenario: str

    def daily(self, metric: str, field: str, **asked) -> float:
        """The sum over days of a count by day: divided by that of players it is a mean by player and day."""
        return sum(row[field] for row in self.ledger.metric(metric, interval=f"2026-09-22/{ENDS_ON}", **asked))

    def by_dau(self, metric: str, field: str, **asked) -> float:
        return self.daily(metric, field, **asked) / self.daily("user_unique", "user_unique")

    def retention(self, day: int) -> float:
        """D-n over all who installed early enough, as the service would answer it."""
        first = datetime(2026, 9, 22)
        last = ENDS_ON - timedelta(days=day)
        cohorts = {
            row["timestamp"].date(): row["new_users"]
            for row in self.ledger.metric("new_users", interval=f"{first:%Y-%m-%d}/{last}")
        }
        back = self.ledger.metric(
            "retention_retro", interval=f"{first + timedelta(days=day):%Y-%m-%d}/{ENDS_ON}", since_days_ago=day
        )
        came = sum(row["retention"] * cohorts[(row["timestamp"] - timedelta(days=day)).date()] for row in back)
        return came / sum(cohorts.values())


@pytest.fixture(scope="module", params=["hypercasual", "midcore"])
def figures(request: pytest.FixtureRequest) -> Figures:
    ledger = Ledger()
    for _ in play(load_scenario(request.param, players=3500), ends_on=ENDS_ON, ledger=ledger):
        pass
    return Figures(ledger, request.param)


@pytest.mark.parametrize(
    ("day", "bottom", "top"),
    [
        (1, 0.115, 0.265),  # bottom quarter of games 10 to 11.5 %, top quarter from 26.5 to 27.7 %
        (7, 0.015, 0.070),  # bottom quarter about 1.5 %, top quarter 7 to 8 %
        (28, 0.0, 0.030),  # three quarters of games are below 3 %; nothing is published of the bottom quarter
    ],
)
def test_retention_lies_between_the_published_quartiles(figures, day, bottom, top) -> None:
    """public-facts 5.1, report of 2025 over 11,600 games: the narrow ends of each range."""
    assert bottom < figures.retention(day) < top


def test_sessions_a_day_are_about_four(figures) -> None:
    """public-facts 5.2: "about 4" is all that is published."""
    assert 3.5 < figures.by_dau("session_unique", "session_unique") < 4.5


def test_session_length_lies_between_the_published_figures(figures) -> None:
    """public-facts 5.2: median of 2019 from 4 minutes, top quarter of 2024 from 8; no bottom quarter is published."""
    row = figures.ledger.metric("session_length", interval=f"2026-09-22/{ENDS_ON}", granularity="all")[0]
    assert 4 * 60 < row["session_length"] < 8 * 60


def test_share_of_payers_lies_between_the_published_figures(figures) -> None:
    """public-facts 5.3, daily conversion of 2018: bottom 0.1 %, top 15 % of games 1.2 %."""
    assert 0.001 < figures.by_dau("paying_users", "paying_users") < 0.012


def test_ads_a_day_lie_between_the_published_figures(figures) -> None:
    """public-facts 5.4: 5 to 8 interstitials a day; 5 rewarded videos to the 45 % who watch any, or to all."""
    name = "ad_impressions_count"
    shown = {kind: figures.by_dau(name, name, where=dim.ad_type == kind) for kind in ("interstitial", "rewarded_video")}
    if figures.scenario == "hypercasual":
        assert 5 < shown["interstitial"] < 8
        assert shown["rewarded_video"] < 5
    else:
        assert 0.45 * 5 < shown["rewarded_video"] < 5
        assert shown["interstitial"] < 5


@pytest.mark.parametrize("name", scenario_names())
def test_every_shipped_scenario_plays(name) -> None:
    scenario = load_scenario(name, players=120, days=12)
    assert sum(batch.events for batch in play(scenario, ends_on=ENDS_ON)) > 120 * 10


def test_portfolio_is_twenty_games_of_four_studios() -> None:
    portfolio = load_scenario("portfolio")
    assert (len(portfolio.studios), len(portfolio.games)) == (4, 20)


@pytest.mark.parametrize("name", ["demo", "midcore"])
def test_two_thirds_of_the_purchases_of_an_rpg_cost_five_dollars_or_less(name) -> None:
    """public-facts 5.3: 67 % at 1 to 5 dollars (2014)."""
    game = load_scenario(name).games[-1]
    spec, prices = game.purchases, np.array([item.price["USD"] for item in game.purchases.items])
    payers = np.log(spec.median_price) + spec.payer_sigma * np.random.default_rng(1).standard_normal(20_000)
    weights = price_weights(game, payers)
    shares = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    assert shares[prices <= 500].sum() == pytest.approx(0.67, abs=0.03)
