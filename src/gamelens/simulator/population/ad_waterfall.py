"""Who shows an ad: mediation asks one network after the other until one fills.

The order is that of what networks pay for the format in the country's tier, best first; of equal ones, that of the
scenario. A network that is asked fills with a chance of its own or passes; who fills shows, and where all have passed
nobody does. A scenario gives what comes of it: *fill*, the share of ad breaks with an ad, and each network's *share* of
what is shown. The chances follow: a network is asked where all before it have passed, so it fills

    fill * share / (1 - fill * shares of those asked before it)

of the times that it is asked. Both figures then hold in every tier and format, whoever comes first there, and a
network that is out loses only what nobody behind it fills.

What events tell of it (public-facts 2.5): each network asked is one `request` under its `ad_sdk_name`. To pass is no
action there is a word for - `no_fill` is a reason of `failed_show` - and the next `request` follows at once. `show` and
what comes after it name who filled. Where all have passed, one `failed_show` names the network asked last and the
reason: mediation SDKs call back once for the whole waterfall. So shows by requests are the fill of a network, and
`failed_show` counts the breaks without an ad, each once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamelens.simulator.population.arrays import Flags, Floats, Ints, pick_by, shares
from gamelens.simulator.scenarios.game_profile import TIERS, AdProfile, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.simulator.scenarios.timeline import NetworkOutage


@dataclass(frozen=True, eq=False, slots=True)
class Waterfall:
    """The line-ups of a game's networks, shape (line-ups, places): one for each tier and, within it, each format.

    *order* holds positions in the game's networks, *fills* the chance of each to fill when it is asked, *ecpm* what it
    pays for 1,000 impressions in the vendor's currency.
    """

    order: Ints
    fills: Floats
    ecpm: Floats

    def chances(self, is_out: Flags) -> Floats:
        """The chance of each place to show the ad, where the networks of *is_out*, shape (..., networks), fill nothing.

        Shape (..., line-ups, places + 1): the last place is that of nobody. They add up to 1.
        """
        fills = np.where(is_out[..., self.order], 0.0, self.fills)
        all_passed = np.cumprod(1 - fills, axis=-1)
        reached = np.concatenate([np.ones_like(all_passed[..., :1]), all_passed], axis=-1)
        return np.concatenate([reached[..., :-1] * fills, reached[..., -1:]], axis=-1)

    def draw_places(self, lineup: Ints, day: Ints, platform: Ints, *, is_out: Flags, rng: np.random.Generator) -> Ints:
        """The place that shows the ad of each break; *is_out* has the shape (days, platforms, networks)."""
        chances = self.chances(is_out)
        row = np.ravel_multi_index((day, platform, lineup), chances.shape[:-1])
        return pick_by(rng, chances.reshape(-1, chances.shape[-1]), row)


def waterfall_of(ads: AdProfile) -> Waterfall:
    """The waterfall of a game with these ads."""
    pays = np.array([[network.ecpm[name] for name in ads.formats] for network in ads.networks])
    pays = pays.reshape(len(ads.networks), -1, TIERS).transpose(2, 1, 0).reshape(-1, len(ads.networks))
    order = np.argsort(-pays, axis=-1, kind="stable")
    shown = ads.fill * shares(network.share for network in ads.networks)[order]
    before = np.cumsum(shown, axis=-1) - shown
    # What is left is at least what is shown but for rounding: a network that fills the whole rest fills always.
    return Waterfall(order, shown / np.maximum(1 - before, shown), np.take_along_axis(pays, order, axis=-1))


def tiers_of(game: GameProfile, *, scenario: Scenario) -> Ints:
    """The tier of each country of *game*, counted from 0."""
    return np.array([scenario.country(code).tier - 1 for code in game.countries])


def outages(game: GameProfile, *, scenario: Scenario) -> Flags:
    """On which days and platforms which networks are out, shape (days, platforms, networks).

    The day is that on which a session begins.
    """
    platforms, networks = list(game.platforms), [network.name for network in game.ads.networks]
    is_out = np.zeros((scenario.days, len(platforms), len(networks)), dtype=np.bool_)
    for incident in scenario.incidents_of(game):
        if isinstance(incident, NetworkOutage):
            days = slice(incident.day, incident.day + incident.days)
            where = [incident.platform in (None, name) for name in platforms]
            is_out[days, where, networks.index(incident.network)] = True
    return is_out
