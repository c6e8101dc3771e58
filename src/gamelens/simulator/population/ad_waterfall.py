"""The ad waterfall: mediation asks one network after the other until one fills.

Networks are asked in descending order of their price for the format in the country's tier. Networks of equal price keep
the order of the scenario. A network that is asked fills with a probability of its own, or passes. The network that
fills shows the ad; if all pass, no ad is shown. A scenario gives the outcome: *fill*, the share of ad breaks with an
ad, and the *share* of each network in the ads shown. A network is asked if all before it have passed, so it fills

    fill * share / (1 - fill * shares of the networks asked before it)

of its requests. Both values then hold in every tier and format, for any order of the networks, and an outage of one
network loses only the ads that no later network fills.

In events, each network asked is one `request` with its `ad_sdk_name` (Wire 3.5, Category fields). There is no action
for passing, and `no_fill` is only a reason of `failed_show`, so the next `request` follows at once. `show` and the
events after it name the network that filled. If all have passed, one `failed_show` names the network asked last and the
reason, because mediation SDKs call back once for the whole waterfall. So `show` by `request` is the fill rate of a
network, and `failed_show` counts each break without an ad once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamelens.simulator.population.arrays import Flags, Floats, Ints, pick_by, shares
from gamelens.simulator.scenarios.game_profile import TIERS, AdProfile, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import NetworkOutage, PriceChange


@dataclass(frozen=True, eq=False, slots=True)
class Waterfall:
    """The order of a game's networks, shape (line-ups, places).

    There is one line-up for each tier and, within it, each format.
    """

    order: Ints  # positions in the game's networks
    fills: Floats  # probability of each to fill a request
    ecpm: Floats  # price of 1,000 impressions in the vendor's currency

    def chances(self, is_out: Flags) -> Floats:
        """Return the probability that each place shows the ad, shape (..., line-ups, places + 1).

        The networks in *is_out*, shape (..., networks), fill nothing. The last place stands for no ad. The
        probabilities of a line-up add up to 1.
        """
        fills = np.where(is_out[..., self.order], 0.0, self.fills)
        all_passed = np.cumprod(1 - fills, axis=-1)
        reached = np.concatenate([np.ones_like(all_passed[..., :1]), all_passed], axis=-1)
        return np.concatenate([reached[..., :-1] * fills, reached[..., -1:]], axis=-1)

    def draw_places(self, lineup: Ints, day: Ints, platform: Ints, *, is_out: Flags, rng: np.random.Generator) -> Ints:
        """Draw the place that shows the ad of each break. The last one stands for no ad.

        *is_out* has the shape (days, platforms, networks).
        """
        chances = self.chances(is_out)
        row = np.ravel_multi_index((day, platform, lineup), chances.shape[:-1])
        return pick_by(rng, chances.reshape(-1, chances.shape[-1]), row)


def waterfall_of(ads: AdProfile) -> Waterfall:
    """Return the waterfall of a game with these ads."""
    pays = np.array([[network.ecpm[name] for name in ads.formats] for network in ads.networks])
    pays = pays.reshape(len(ads.networks), -1, TIERS).transpose(2, 1, 0).reshape(-1, len(ads.networks))
    order = np.argsort(-pays, axis=-1, kind="stable")
    shown = ads.fill * shares(network.share for network in ads.networks)[order]
    before = np.cumsum(shown, axis=-1) - shown
    # The rest is at least the share shown, but for rounding. A network that takes the whole rest always fills.
    return Waterfall(order, shown / np.maximum(1 - before, shown), np.take_along_axis(pays, order, axis=-1))


def tiers_of(game: GameProfile, *, scenario: Scenario) -> Ints:
    """Return the tier of each country of *game*, counted from 0."""
    return np.array([scenario.country(code).tier - 1 for code in game.countries])


def outages(game: GameProfile, *, scenario: Scenario) -> Flags:
    """Return the networks that are out, shape (days, platforms, networks).

    The day is the one on which a session begins.
    """
    platforms, networks = list(game.platforms), [network.name for network in game.ads.networks]
    is_out = np.zeros((scenario.days, len(platforms), len(networks)), dtype=np.bool_)
    for incident in scenario.incidents_of(game):
        if isinstance(incident, NetworkOutage):
            days = slice(incident.day, incident.day + incident.days)
            where = [incident.platform in (None, name) for name in platforms]
            is_out[days, where, networks.index(incident.network)] = True
    return is_out


def price_factors(game: GameProfile, *, scenario: Scenario) -> Floats:
    """Return the eCPM of networks by day and country, as a multiple of the usual one.

    Shape (days, countries, networks).
    """
    countries, networks = list(game.countries), [network.name for network in game.ads.networks]
    factors = np.ones((scenario.days, len(countries), len(networks)))
    for incident in scenario.incidents_of(game):
        if isinstance(incident, PriceChange):
            days = slice(incident.day, incident.day + incident.days)
            where = [incident.country in (None, code) for code in countries]
            factors[days, where, networks.index(incident.network)] *= incident.factor
    return factors
