"""Ads and purchases of a block of players, decided round by round.

Ads: a round may end in an ad break, for which networks are asked until one fills (`waterfall`); what that one pays is
its eCPM for the format and the country's tier, with log-normal spread, in whole micros (1e-6) of the vendor's currency
so that sums are exact.
Purchases: a hurdle. Few players ever pay; those who do buy early, at prices near their own (Purchases in the scenario).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gamelens.simulator.population.ad_waterfall import outages, tiers_of, waterfall_of
from gamelens.simulator.population.arrays import Flags, Floats, Ints, pick, pick_by, shares
from gamelens.simulator.population.players import Players
from gamelens.simulator.scenarios.game_profile import AD_FORMATS, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

FAIL_REASONS: Final = ("no_fill", "offline", "unable_to_precache", "internal_error", "unknown")
FAIL_SHARES: Final = shares([70, 12, 9, 6, 3])
ECPM_SIGMA: Final = 0.6


@dataclass(frozen=True, eq=False, slots=True)
class AdBreaks:
    """One possible ad break after each round; positions are in the game's formats, placements and networks.

    *asked* is how many networks were asked, 0 where there is no break, and *network* the one asked last, which fills
    what is shown. *lineup* is the row of *order*, where the networks stand as they are asked.
    """

    request_count: Ints
    is_shown: Flags
    is_clicked: Flags
    is_rewarded: Flags
    is_unnamed: Flags
    format: Ints
    placement: Ints
    network: Ints
    fail_reason: Ints
    micros: Ints
    lineup: Ints
    order: Ints


@dataclass(frozen=True, eq=False, slots=True)
class BlockMoney:
    """Ads and purchases by round; *item* is a position in the game's items or -1, *transaction* counts from 1."""

    ad: AdBreaks
    item: Ints
    transaction: Ints


def draw_money(
    player: Ints, *, day: Ints, players: Players, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> BlockMoney:
    """Money of the rounds of *player* (a position in *players*, ascending), on these days of the scenario."""
    item = _draw_purchases(player, day - players.install_day[player], players, game=game, rng=rng)
    transaction = np.zeros(len(item), dtype=np.int64)
    bought = np.flatnonzero(item >= 0)
    payer = player[bought]
    transaction[bought] = 1 + np.arange(len(bought)) - np.searchsorted(payer, payer, side="left")
    return BlockMoney(_draw_ads(player, day, players, game=game, scenario=scenario, rng=rng), item, transaction)


def _draw_ads(
    player: Ints, day: Ints, players: Players, *, game: GameProfile, scenario: Scenario, rng: np.random.Generator
) -> AdBreaks:
    """The ad breaks after the rounds of *player*; nothing is drawn for the rounds that have none."""
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
        "network": waterfall.order[lineup, last],
        "fail_reason": pick(rng, FAIL_SHARES, count),
        "micros": np.rint(waterfall.ecpm[lineup, last] * 1000 * spread).astype(np.int64),
        "lineup": lineup,
    }
    by_round = {name: np.zeros(len(player), dtype=values.dtype) for name, values in columns.items()}
    for name, values in columns.items():
        by_round[name][round_of_break] = values
    return AdBreaks(**by_round, order=waterfall.order)


def _draw_purchases(
    player: Ints, age_days: Ints, players: Players, *, game: GameProfile, rng: np.random.Generator
) -> Ints:
    """The item bought in each round, or -1: each payer spreads a geometric number of purchases over his rounds."""
    spec = game.purchases
    purchase_count = rng.geometric(1 / spec.per_payer, len(players))
    median = np.log(spec.median_price) + spec.payer_sigma * rng.standard_normal(len(players))
    rounds = np.flatnonzero(players.is_payer[player])
    # Exponential times, later where a round weighs less: the first of them are a draw without replacement.
    sort_key = rng.exponential(size=len(rounds)) * np.exp(np.minimum(age_days[rounds] / spec.fade_days, 500))
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
    """The weight of each item for payers of these medians (logarithms of USD), shape (payers, items)."""
    spec = game.purchases
    price = np.log([item.price["USD"] / 100 for item in spec.items])
    popular = np.array([item.weight for item in spec.items])
    off = (price - log_median[:, None]) / spec.price_sigma
    # The nearest item always weighs 1: far from every price the weights of all would underflow.
    weights: Floats = popular * np.exp(-(off**2 - (off**2).min(axis=1, keepdims=True)) / 2)
    return weights
