"""Shipped scenarios against the public data they are calibrated to."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest

from gamelens.simulator import Ledger, load_scenario, play, scenario_names
from gamelens.simulator.population.behaviour import rounds_by_session
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.population.monetisation import price_weights
from gamelens.simulator.population.players import Players, draw_players
from gamelens.simulator.population.session_times import begin_sessions
from gamelens.wire.filters import dim
from support.closed_form import mixture_of
from support.played_scenario import ENDS_ON

pytestmark = pytest.mark.slow

COOKIE_CATS = 90_189
GATES = ("gate_30", "gate_40")


class CookieCats(NamedTuple):
    """Drawn players of `cookie-cats`, their returns on days 1 and 7, and rounds of 14 days."""

    players: Players
    d1: np.ndarray
    d7: np.ndarray
    rounds: np.ndarray


@pytest.fixture(scope="module")
def cookie_cats() -> CookieCats:
    """Draw the players of `cookie-cats` and their rounds."""
    scenario = load_scenario("cookie-cats", days=21)
    game, rng = scenario.games[0], np.random.default_rng(scenario.seed)
    install_plan = plan_installs(game, scenario=scenario, first_weekday=0)
    activity = game.retention.activity()
    players = draw_players(
        scenario.players, game=game, scenario=scenario, activity=activity, install_plan=install_plan, rng=rng
    )
    sessions = begin_sessions(players, game=game, scenario=scenario, first_day_s=0, rng=rng)
    rounds = rounds_by_session(sessions, game=game, rng=rng)
    early = sessions.day - players.install_day[sessions.player] < 14
    every_player = np.arange(len(players))
    return CookieCats(
        players,
        players.active[every_player, players.install_day + 1],
        players.active[every_player, players.install_day + 7],
        np.bincount(sessions.player[early], rounds[early], minlength=len(players)),
    )


def inside(share: float, published: float, count: int) -> bool:
    """Return whether *share* lies in the 95 % interval of a published share of *count*."""
    return abs(share - published) < 1.96 * sqrt(published * (1 - published) / count)


@pytest.mark.wide
def test_cookie_cats_has_the_players_of_the_data_set(cookie_cats: CookieCats) -> None:
    """The scenario has the 90,189 players of the public data set."""
    assert len(cookie_cats.players) == COOKIE_CATS


def test_cookie_cats_d1_d7_and_both(cookie_cats: CookieCats) -> None:
    """Drawn D1, D7 and joint retention lie in the 95 % intervals of the published shares."""
    assert inside(cookie_cats.d1.mean(), 0.4452, COOKIE_CATS)
    assert inside(cookie_cats.d7.mean(), 0.1861, COOKIE_CATS)
    assert inside((cookie_cats.d1 & cookie_cats.d7).mean(), 0.1462, COOKIE_CATS)


def test_cookie_cats_in_closed_form() -> None:
    """The closed form has the published D1, D7 and joint retention to 1e-4."""
    scenario = load_scenario("cookie-cats")
    truth = mixture_of(scenario.games[0], scenario=scenario, first_weekday=0)
    retention = (truth.retention(1), truth.retention(7), truth.retention_both(1, 7))
    assert retention == pytest.approx((0.4452, 0.1861, 0.1462), abs=1e-4)


@pytest.mark.parametrize(
    ("gate", "d1", "d7"), [(0, 20034 / 44700, 8502 / 44700), (1, 20119 / 45489, 8279 / 45489)], ids=GATES
)
def test_cookie_cats_arms(cookie_cats: CookieCats, gate: int, d1: float, d7: float) -> None:
    """D1 and D7 of each arm are within 2.6 standard errors of the difference of two samples."""
    arm = cookie_cats.players.arm == gate
    for returned, published in ((cookie_cats.d1, d1), (cookie_cats.d7, d7)):
        assert abs(returned[arm].mean() - published) < 2.6 * sqrt(2 * published * (1 - published) / 45_000)


@pytest.mark.parametrize(("quantile", "rounds"), [(0.5, 16), (0.9, 134), (0.99, 493)])
def test_cookie_cats_rounds_played(cookie_cats: CookieCats, quantile: float, rounds: int) -> None:
    """Median, 90 % and 99 % quantiles of rounds in 14 days are within 10 % of the data set."""
    assert np.quantile(cookie_cats.rounds, quantile) == pytest.approx(rounds, rel=0.1)


def test_cookie_cats_mean_of_rounds(cookie_cats: CookieCats) -> None:
    """The mean of rounds in 14 days is within 10 % of the data set's 51.9."""
    assert cookie_cats.rounds.mean() == pytest.approx(51.9, rel=0.1)


class Figures(NamedTuple):
    """The numbers that benchmarks publish, measured on one played scenario."""

    ledger: Ledger
    scenario: str

    def daily(self, metric: str, field: str, **query: Any) -> float:
        """Return the sum over days of a daily count.

        Divided by the sum of daily players it is a mean per player per day.
        """
        rows = self.ledger.metric(metric, interval=f"2026-09-22/{ENDS_ON}", **query)
        return float(sum(row[field] for row in rows))

    def by_dau(self, metric: str, field: str, **query: Any) -> float:
        """Return the mean of *field* per player per day."""
        return self.daily(metric, field, **query) / self.daily("user_unique", "user_unique")

    def retention(self, day: int) -> float:
        """Return D-n over all cohorts old enough, from the metrics that the service answers."""
        first = datetime(2026, 9, 22)
        last = ENDS_ON - timedelta(days=day)
        cohorts = {
            row["timestamp"].date(): row["new_users"]
            for row in self.ledger.metric("new_users", interval=f"{first:%Y-%m-%d}/{last}")
        }
        back = self.ledger.metric(
            "retention_retro", interval=f"{first + timedelta(days=day):%Y-%m-%d}/{ENDS_ON}", since_days_ago=day
        )
        returned = sum(row["retention"] * cohorts[(row["timestamp"] - timedelta(days=day)).date()] for row in back)
        return float(returned / sum(cohorts.values()))


@pytest.fixture(scope="module", params=["hypercasual", "midcore"])
def figures(request: pytest.FixtureRequest) -> Figures:
    """Play 3,500 players of `hypercasual` and of `midcore`."""
    ledger = Ledger()
    for _ in play(load_scenario(request.param, players=3500), ends_on=ENDS_ON, ledger=ledger):
        pass
    return Figures(ledger, request.param)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("day", "bottom", "top"),
    [
        (1, 0.115, 0.265),  # bottom quarter of games 10 to 11.5 %, top quarter from 26.5 to 27.7 %
        (7, 0.015, 0.070),  # bottom quarter about 1.5 %, top quarter 7 to 8 %
        (28, 0.0, 0.030),  # three quarters of games are below 3 %; nothing is published of the bottom quarter
    ],
)
def test_retention_lies_between_the_published_quartiles(figures: Figures, day: int, bottom: float, top: float) -> None:
    """D1, D7 and D28 lie between the quartiles of a 2025 report over 11,600 games.

    Where a report gives a range for a quartile, its narrow end is the bound.
    """
    assert bottom < figures.retention(day) < top


def test_sessions_a_day_are_about_four(figures: Figures) -> None:
    """A player has 3.5 to 4.5 sessions on an active day: reports publish "about 4"."""
    assert 3.5 < figures.by_dau("session_unique", "session_unique") < 4.5


def test_session_length_lies_between_the_published_figures(figures: Figures) -> None:
    """Sessions last 4 to 8 minutes: the published median of 2019 and top quarter of 2024."""
    row = figures.ledger.metric("session_length", interval=f"2026-09-22/{ENDS_ON}", granularity="all")[0]
    assert 4 * 60 < row["session_length"] < 8 * 60


def test_share_of_payers_lies_between_the_published_figures(figures: Figures) -> None:
    """Daily conversion is 0.1 to 1.2 %: bottom and top 15 % of games in a report of 2018."""
    assert 0.001 < figures.by_dau("paying_users", "paying_users") < 0.012


def test_ads_a_day_lie_between_the_published_figures(figures: Figures) -> None:
    """Hypercasual players see 5 to 8 interstitials a day, midcore players fewer than 5.

    Rewarded videos: fewer than 5 a day, which is published for the 45 % of players who watch any.
    """
    name = "ad_impressions_count"
    shown = {kind: figures.by_dau(name, name, where=dim.ad_type == kind) for kind in ("interstitial", "rewarded_video")}
    if figures.scenario == "hypercasual":
        assert 5 < shown["interstitial"] < 8
        assert shown["rewarded_video"] < 5
    else:
        assert 0.45 * 5 < shown["rewarded_video"] < 5
        assert shown["interstitial"] < 5


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("name", scenario_names())
def test_every_shipped_scenario_plays(name: str) -> None:
    """Every shipped scenario can be played and sends more than ten events a player."""
    scenario = load_scenario(name, players=120, days=12)
    assert sum(batch.events for batch in play(scenario, ends_on=ENDS_ON)) > 120 * 10


def test_portfolio_is_twenty_games_of_four_studios() -> None:
    """`portfolio` has twenty games of four studios."""
    portfolio = load_scenario("portfolio")
    assert (len(portfolio.studios), len(portfolio.games)) == (4, 20)


@pytest.mark.parametrize("name", ["calm", "midcore"])
def test_two_thirds_of_the_purchases_of_an_rpg_cost_five_dollars_or_less(name: str) -> None:
    """67 % of purchases cost at most 5 dollars, as published for role-playing games in 2014."""
    game = load_scenario(name).games[-1]
    spec, prices = game.purchases, np.array([item.price["USD"] for item in game.purchases.items])
    payers = np.log(spec.median_price) + spec.payer_sigma * np.random.default_rng(1).standard_normal(20_000)
    weights = price_weights(game, payers)
    shares = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    assert shares[prices <= 500].sum() == pytest.approx(0.67, abs=0.03)
