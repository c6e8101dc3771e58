"""Ads and purchases of a block of players, drawn round by round.

A round may end in an ad break, for which networks are asked until one fills (`ad_waterfall`). An impression pays the
network's eCPM for the format and the country's tier, with log-normal spread, in whole micros (1e-6) of the vendor's
currency so that sums are exact. Purchases follow a hurdle model: few players ever pay, and payers buy early, at prices
near their own median (`Purchases` of the scenario).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gamelens.simulator.population.ad_waterfall import outages, price_factors, tiers_of, waterfall_of
from gamelens.simulator.population.arrays import Flags, Floats, Ints, pick, pick_by, shares
from gamelens.simulator.population.players import Players
from gamelens.simulator.scenarios.game_profile import AD_FORMATS, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

FAIL_REASONS: Final = ("no_fill", "offline", "unable_to_precache", "internal_error", "unknown")
FAIL_SHARES: Final = shares([70, 12, 9, 6, 3])
ECPM_SIGMA: Final = 0.6
PAYDAYS: Final = (1, 15)
"""Days of the month on which wages are paid: once or twice a month in most countries."""


@dataclass(frozen=True, eq=False, slots=True)
class AdBreaks:
    """The ad break after each round, one array per attribute."""

    request_count: Ints  # number of networks asked, 0 without a break
    is_shown: Flags  # whether an ad is shown
    is_clicked: Flags  # whether it would be clicked
    is_rewarded: Flags  # whether it would pay a reward
    is_unnamed: Flags  # whether the vendor does not report the network
    format: Ints  # position in the game's ad formats
    placement: Ints  # position in the placements of the ad unit
    network: Ints  # position of the network asked last, which fills the ad that is shown
    fail_reason: Ints  # position in `FAIL_REASONS`
    micros: Ints  # revenue of the impression in micros of the vendor's currency
    lineup: Ints  # row of *order*
    order: Ints  # positions of the networks in the order they are asked, by line-up


@dataclass(frozen=True, eq=False, slots=True)
class BlockMoney:
    """Ads and purchases by round."""

    ad: AdBreaks  # the ad breaks
    item: Ints  # position in the game's items, or -1
    transaction: Ints  # number of the player's purchase, from 1, or 0


def draw_money(
    player: Ints,
    *,
    day: Ints,
    players: Players,
    game: GameProfile,
    scenario: Scenario,
    first_day_s: int,
    rng: np.random.Generator,
) -> BlockMoney:
    """Draw ads and purchases of rounds.

    *player* holds the position of each round's player, ascending, and *day* its day of the scenario, which begins at
    *first_day_s* (epoch seconds).
    """
    item = _draw_purchases(
        player,
        day - players.install_day[player],
        players,
        game=game,
        eager=_eagerness(day, first_day_s, scenario),
        rng=rng,
    )
    transaction = np.zeros(len(item), dtype=np.int64)
    bought = np.flatnonzero(item >= 0)
    payer = player[bought]
    transaction[bought] = 1 + np.arange(len(bought)) - np.searchsorted(payer, payer, side="left")
    return BlockMoney(_draw_ads(player, day, players, game=game, scenario=scenario, rng=rng), item, transaction)


def _draw_ads(
    player: Ints, day: Ints, players: Players, *, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> AdBreaks:
    """Draw the ad break of each round, and its details only for rounds that have one."""
    ads, waterfall = game.ads, waterfall_of(game.ads)
    round_of_break = np.flatnonzero(rng.random(len(player)) < ads.per_round)
    player_of_break, count, no_network = player[round_of_break], len(round_of_break), len(ads.networks)
    format_ = pick(rng, shares(unit.share for unit in ads.formats.values()), count)
    lineup = tiers_of(game, scenario=scenario)[players.country[player_of_break]] * len(ads.formats) + format_
    is_out = outages(game, scenario=scenario)
    place = waterfall.draw_places(
        lineup, day[round_of_break], players.platform[player_of_break], is_out=is_out, rng=rng
    )
    last = np.minimum(place, no_network - 1)
    network = waterfall.order[lineup, last]
    factor = price_factors(game, scenario=scenario)[day[round_of_break], players.country[player_of_break], network]
    can_reward = np.array([name == AD_FORMATS[0] for name in ads.formats])[format_]
    placements = np.array([len(unit.placements) for unit in ads.formats.values()])
    spread = rng.lognormal(-(ECPM_SIGMA**2) / 2, ECPM_SIGMA, count)
    columns = {
        "request_count": last + 1,
        "is_shown": place < no_network,
        "is_clicked": rng.random(count) < ads.click,
        "is_rewarded": can_reward & (rng.random(count) < ads.reward),
        "is_unnamed": rng.random(count) < ads.unnamed,
        "format": format_,
        "placement": rng.integers(0, placements[format_]),
        "network": network,
        "fail_reason": pick(rng, FAIL_SHARES, count),
        "micros": np.rint(waterfall.ecpm[lineup, last] * factor * 1000 * spread).astype(np.int64),
        "lineup": lineup,
    }
    by_round = {name: np.zeros(len(player), dtype=values.dtype) for name, values in columns.items()}
    for name, values in columns.items():
        by_round[name][round_of_break] = values
    return AdBreaks(**by_round, order=waterfall.order)


def _eagerness(day: Ints, first_day_s: int, scenario: Scenario) -> Floats:
    """Return how much likelier a purchase is in rounds on these days than on others: more on paydays."""
    date = np.datetime64(first_day_s, "s").astype("datetime64[D]") + np.arange(scenario.days)
    day_of_month = (date - date.astype("datetime64[M]")).astype(np.int64) + 1
    return np.where(np.isin(day_of_month, PAYDAYS), scenario.payday, 1.0)[day]


def _draw_purchases(
    player: Ints, age_days: Ints, players: Players, *, game: GameProfile, eager: Floats, rng: np.random.Generator
) -> Ints:
    """Draw the item bought in each round, or -1.

    Each payer makes a geometric number of purchases, spread over the player's rounds, with the weights *eager*.
    """
    spec = game.purchases
    purchase_count = rng.geometric(1 / spec.per_payer, len(players))
    median = np.log(spec.median_price) + spec.payer_sigma * rng.standard_normal(len(players))
    rounds = np.flatnonzero(players.is_payer[player])
    # Exponential times, longer for rounds of less weight: the earliest are a weighted draw without replacement.
    sort_key = rng.exponential(size=len(rounds)) * np.exp(np.minimum(age_days[rounds] / spec.fade_days, 500))
    sort_key /= eager[rounds]
    rounds = rounds[np.lexsort((sort_key, player[rounds]))]
    payer = player[rounds]
    rank = np.arange(len(payer)) - np.searchsorted(payer, payer, side="left")
    rounds = rounds[rank < purchase_count[payer]]
    bought = np.full(len(player), -1, dtype=np.int64)
    if len(rounds):
        positions = np.arange(len(rounds))
        bought[rounds] = pick_by(rng, price_weights(game, median[player[rounds]]), positions)
    return bought


def price_weights(game: GameProfile, log_median: Floats) -> Floats:
    """Return the weight of each item for payers, shape (payers, items).

    *log_median* holds the logarithm of each payer's median price in USD.
    """
    spec = game.purchases
    price = np.log([item.price["USD"] / 100 for item in spec.items])
    popular = np.array([item.weight for item in spec.items])
    off = (price - log_median[:, None]) / spec.price_sigma
    # Scaled so that the nearest item has a factor of 1: far from every price, all would underflow.
    weights: Floats = popular * np.exp(-(off**2 - (off**2).min(axis=1, keepdims=True)) / 2)
    return weights
