"""Ads and purchases of a block of players, decided round by round.

Ads: a round may end in an ad break; a network fills it or not; what it pays is its eCPM for the format and the
country's tier, with log-normal spread, in whole micros (1e-6) of the vendor's currency so that sums are exact.
Purchases: a hurdle. Few players ever pay; those who do buy early (Purchases in the scenario).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gamelens.simulator.players import Flags, Floats, Ints, Players, pick, shares
from gamelens.simulator.scenario import Scenario
from gamelens.simulator.traits import AD_FORMATS, Game

FAIL_REASONS: Final = ("no_fill", "offline", "unable_to_precache", "internal_error", "unknown")
FAIL_SHARES: Final = shares([70, 12, 9, 6, 3])
ECPM_SIGMA: Final = 0.6


@dataclass(frozen=True, eq=False, slots=True)
class AdBreaks:
    """One possible ad break after each round; positions are in the game's formats, placements and networks."""

    is_wanted: Flags
    is_shown: Flags
    is_clicked: Flags
    is_rewarded: Flags
    is_unnamed: Flags
    format: Ints
    placement: Ints
    network: Ints
    fail_reason: Ints
    micros: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Money:
    """Ads and purchases by round; *item* is a position in the game's items or -1, *transaction* counts from 1."""

    ad: AdBreaks
    item: Ints
    transaction: Ints


def draw_money(
    player: Ints, *, age_days: Ints, players: Players, game: Game, scenario: Scenario, rng: np.random.Generator
) -> Money:
    """Money of the rounds of *player* (a position in *players*, ascending), *age_days* after install."""
    item = _draw_purchases(player, age_days, players, game=game, rng=rng)
    transaction = np.zeros(len(item), dtype=np.int64)
    bought = np.flatnonzero(item >= 0)
    payer = player[bought]
    transaction[bought] = 1 + np.arange(len(bought)) - np.searchsorted(payer, payer, side="left")
    tiers = np.array([scenario.country(code).tier - 1 for code in game.countries])
    return Money(_draw_ads(tiers[players.country[player]], game=game, rng=rng), item, transaction)


def _draw_ads(tier: Ints, *, game: Game, rng: np.random.Generator) -> AdBreaks:
    ads, count = game.ads, len(tier)
    format_ = pick(rng, shares(unit.share for unit in ads.formats.values()), count)
    network = pick(rng, shares(network.share for network in ads.networks), count)
    placements = np.array([len(unit.placements) for unit in ads.formats.values()])
    is_wanted = rng.random(count) < ads.per_round
    can_reward = np.array([name == AD_FORMATS[0] for name in ads.formats])[format_]
    spread = rng.lognormal(-(ECPM_SIGMA**2) / 2, ECPM_SIGMA, count)
    return AdBreaks(
        is_wanted=is_wanted,
        is_shown=is_wanted & (rng.random(count) < ads.fill),
        is_clicked=rng.random(count) < ads.click,
        is_rewarded=can_reward & (rng.random(count) < ads.reward),
        is_unnamed=rng.random(count) < ads.unnamed,
        format=format_,
        placement=rng.integers(0, placements[format_]),
        network=network,
        fail_reason=pick(rng, FAIL_SHARES, count),
        micros=np.rint(ecpm_table(game)[network, format_, tier] * 1000 * spread).astype(np.int64),
    )


def ecpm_table(game: Game) -> Floats:
    """What 1,000 impressions pay, shape (networks, formats, tiers), in the vendor's currency."""
    return np.array([[network.ecpm[name] for name in game.ads.formats] for network in game.ads.networks])


def _draw_purchases(player: Ints, age_days: Ints, players: Players, *, game: Game, rng: np.random.Generator) -> Ints:
    """The item bought in each round, or -1: each payer spreads a geometric number of purchases over his rounds."""
    spec = game.purchases
    items = shares(item.weight for item in spec.items)
    bought = np.full(len(player), -1, dtype=np.int64)
    for payer in np.flatnonzero(players.is_payer):
        first, last = np.searchsorted(player, [payer, payer + 1])
        weights = shares(np.exp(-age_days[first:last] / spec.fade_days))
        wanted = min(int(rng.geometric(1 / spec.per_payer)), int(np.count_nonzero(weights)))
        rounds = first + rng.choice(last - first, size=wanted, replace=False, p=weights)
        bought[rounds] = pick(rng, items, wanted)
    return bought
