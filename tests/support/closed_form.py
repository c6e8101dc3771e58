"""The expected values of a simulated game in closed form, including campaigns, experiments and incidents.

Activity is exact: the installs of each day times the closed form of `retention_model`, less the players a bad build
drives away, and none on silent days. Play rests on two measurements of a simulated sample: the mean rounds of a
session, and the rounds of each player in all. Ads are then exact by day, platform, tier and format, including
network outages. Left out are holidays, lost sessions, hard levels, what campaigns and paydays do to purchases, other
effects of incidents on the sample, and the end of the scenario, which cuts off the last sessions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gamelens.simulator.population.ad_waterfall import outages, price_factors, tiers_of, waterfall_of
from gamelens.simulator.population.arrays import Flags, Floats, shares
from gamelens.simulator.population.behaviour import PlayedBlock
from gamelens.simulator.population.installs import arms_of, open_days, plan_installs, steps
from gamelens.simulator.population.monetisation import price_weights
from gamelens.simulator.population.players import staying_share
from gamelens.simulator.population.session_times import SATURDAY
from gamelens.simulator.retention_model.bgbb import BgbbMixture, BgbbModel, shifted
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import ScenarioVariant
from gamelens.wire.currencies import USD_PER_UNIT

_NODES: Final = 64
"""Nodes of the Gauss-Hermite rule over the log-normal median price of payers."""


def activity_of(game: GameProfile, *, variant: ScenarioVariant | None = None) -> BgbbModel:
    """Return the population of *game*, or of its players in *variant*."""
    activity = game.retention.activity()
    return activity if variant is None else activity.moved(play=variant.play, drop_out=variant.drop_out)


def mixture_of(game: GameProfile, *, scenario: Scenario, first_weekday: int) -> BgbbMixture:
    """Return the population of all arms of *game*, weighted by their installs.

    It leaves out incidents and the end of the scenario, which `GameForecast` includes.
    """
    by_day = plan_installs(game, scenario=scenario, first_weekday=first_weekday).installs.sum(axis=0)
    day = np.arange(scenario.days)
    parts = []
    for arm in arms_of(game, scenario=scenario):
        running = by_day[(day >= arm.experiment.day) & (day < arm.experiment.until)].sum()
        parts.append((float(running * arm.share), activity_of(game, variant=arm.variant)))
    rest = max(1 - sum(weight for weight, _ in parts), 0.0)
    return BgbbMixture(((rest, activity_of(game)), *((weight, part) for weight, part in parts if weight)))


class GameForecast:
    """The expected values of one game, per player.

    *first_weekday* is the weekday of day 0, Monday is 0.

    Attributes:
        present: probability that a player is active on a day, shape (days, countries, platforms).
    """

    def __init__(self, game: GameProfile, *, scenario: Scenario, first_weekday: int) -> None:
        self._game, self._scenario, self._first_weekday = game, scenario, first_weekday
        install_plan = plan_installs(game, scenario=scenario, first_weekday=first_weekday)
        plan = install_plan.installs, install_plan.country, install_plan.platform
        joint = np.einsum("sd,sc,scp->dcp", *plan)
        day, country, platform = (places.ravel() for places in np.indices(joint.shape))
        stay = staying_share(day, country, platform, game=game, scenario=scenario).reshape(joint.shape)
        staying = stay * np.einsum("sd,sc,scp,s->dcp", *plan, install_plan.stay)
        self._country: Floats = joint.sum(axis=(0, 2))
        self._installs: Floats = joint.sum(axis=(1, 2))
        self._staying: Floats = staying.sum(axis=(1, 2))
        self._is_open: Flags = open_days(game, scenario=scenario)
        # Share of installs by day and population of each arm, and last of no arm.
        self._groups: list[tuple[Floats, BgbbModel]] = []
        days = np.arange(scenario.days)
        rest = np.ones(scenario.days)
        for arm in arms_of(game, scenario=scenario):
            share = np.where((days >= arm.experiment.day) & (days < arm.experiment.until), arm.share, 0.0)
            self._groups.append((share, activity_of(game, variant=arm.variant)))
            rest = rest - share
        self._groups.append((rest, activity_of(game)))
        # The chance of those who install on a day (row) and do not quit at once to play on a later one (column).
        age, chances = days - days[:, None], np.zeros((scenario.days, scenario.days))
        for share, activity in self._groups:
            returns = np.array([0.0, *(activity.retention(each) for each in range(1, scenario.days))])
            chances += share[:, None] * returns[np.maximum(age, 0)]
        back = np.einsum("to,tcp->ocp", chances, staying)
        self.present: Floats = self._is_open[:, None, None] * (joint + back)

    def retention(self, day: int) -> float:
        """Return D-n (n >= 1) of the players whose day n lies within the scenario.

        If there are none, it is that of all players, as if the scenario went on.
        """
        days = self._scenario.days
        install_days = np.arange(max(days - day, 0))
        install_days = install_days if self._installs[install_days].sum() else np.arange(days)
        is_open = np.append(self._is_open, np.ones(day, dtype=np.bool_))[install_days + day]
        staying = self._staying[install_days] * is_open
        returned = sum(staying @ share[install_days] * activity.retention(day) for share, activity in self._groups)
        return float(returned / self._installs[install_days].sum())

    def ads(self, sample: PlayedBlock) -> tuple[float, float]:
        """Return the ads shown to one player of a game played as *sample*, and their revenue in US dollars."""
        ads, waterfall = self._game.ads, waterfall_of(self._game.ads)
        formats = shares(unit.share for unit in ads.formats.values())
        weekday = (self._first_weekday + np.arange(self._scenario.days)) % 7
        spec = self._game.sessions
        sessions = 1 + np.maximum(spec.per_day * np.where(weekday >= SATURDAY, spec.weekend, 1.0) - 1, 0)
        lineup = tiers_of(self._game, scenario=self._scenario)[:, None] * len(formats) + np.arange(len(formats))
        per_session = len(sample.rounds.session) / max(len(sample.sessions.player), 1)
        breaks = per_session * ads.per_round * np.einsum("d,dcp,f->dpcf", sessions, self.present, formats)
        chances = waterfall.chances(outages(self._game, scenario=self._scenario))[:, :, lineup, :-1]
        shown = (breaks[..., None] * chances).sum(axis=1)  # by day, country, format and place
        factors = price_factors(self._game, scenario=self._scenario)
        country = np.arange(len(lineup))[:, None, None]
        ecpm = waterfall.ecpm[lineup] * factors[:, country, waterfall.order[lineup]]
        rate = float(USD_PER_UNIT[ads.currency])
        return float(shown.sum()), float((shown * ecpm).sum()) / 1000 * rate

    def revenue(self, sample: PlayedBlock) -> float:
        """Return the purchases of one player of a game played as *sample*, in US dollars."""
        spec, arms = self._game.purchases, arms_of(self._game, scenario=self._scenario)
        everyone = np.full(len(self._groups), spec.payers)  # the last group has no arm, and its step is 0
        payers = shifted(everyone, steps(arms, "spend", np.arange(len(everyone))))
        paying = self._installs @ np.column_stack([share for share, _ in self._groups]) @ payers
        # A player makes a geometric number of purchases, at most one in each round.
        rounds = np.bincount(sample.sessions.player[sample.rounds.session], minlength=len(sample.players))
        bought = spec.per_payer * (1 - (1 - 1 / spec.per_payer) ** rounds).mean()
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        chances = price_weights(self._game, np.log(spec.median_price) + spec.payer_sigma * nodes)
        chances = (weights / weights.sum()) @ (chances / chances.sum(axis=1, keepdims=True))
        currencies = [self._scenario.country(code).currency for code in self._game.countries]
        prices = np.array(
            [[item.price[each] / 100 * float(USD_PER_UNIT[each]) for each in currencies] for item in spec.items]
        )
        return float(paying * bought * (chances @ prices @ self._country))
