"""Claims of the notebooks beside causes planted in the demo: how many are false, how many causes are named.

Run by `make bench`. SEEDS in the environment sets how many populations are drawn for each cause. The queries and the
functions are those of the notebooks 01, 02 and 05; the answers come from the ledger. A claim with a direction is false
unless the scenario makes it true. Alarms of the health board have a bench of their own (`test_health_board`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pandas as pd
import pytest
from msgspec.structs import replace
from pandas import DataFrame

from gamelens.analysis import ads, decomposition, experiments
from gamelens.analysis.claims import Claim, clear_claims
from gamelens.analysis.tidy_frames import display_values
from gamelens.client.sync_client import Client
from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.population.experiment_arms import activity_of
from gamelens.simulator.scenarios.timeline import BadBuild, Campaign, PriceChange
from support.ledger_service import LedgerService
from support.simulated_organisation import drawn

SEEDS = int(os.environ.get("SEEDS", "100"))
NOTHING, PRICE, BUILD, CAMPAIGN = "nothing", "a price falls", "a build breaks", "a campaign brings worse players"
LEVEL = 0.05
NAMED = 0.90

Segment = dict[str, str]

PLANTED: dict[str, Segment] = {
    PRICE: {"network": "AppLovin", "country_code": "US"},
    BUILD: {"game": "Rooftop Dash", "first_build": "1.9.0", "platform": "ios"},
    CAMPAIGN: {"game": "Tile Harbor", "publisher": "New Ads"},
}


def scenario_of(cause: str, seed: int) -> Scenario:
    """Return the demo drawn with *seed*, without its campaigns and with *cause* alone."""
    demo = replace(load_scenario("demo", seed=seed), campaigns=())
    match cause:
        case "a price falls":
            fall = PriceChange(game="Tile Harbor", network="AppLovin", country="US", factor=0.6, day=32, days=28)
            return replace(demo, incidents=(fall,))
        case "a build breaks":
            return replace(demo, incidents=(BadBuild(game="Rooftop Dash", build="1.9.0", platform="ios", stay=0.4),))
        case "a campaign brings worse players":
            bought = Campaign(game="Tile Harbor", publisher="New Ads", day=20, days=14, size=0.6, stay=0.4)
            return replace(demo, campaigns=(bought,))
    return demo


def claims_of(lens: Client) -> Iterator[Claim]:
    """Yield what the notebooks say of prices, games, platforms, builds, publishers and experiments."""
    over = "last 56 complete days"
    money = lens.query("ilrd_revenue", by=["game", "ilrd_network_name", "country_code"], over=over)
    before, after = decomposition.split_in_halves(ads.with_canonical_names(money))
    segment = ["network", "country_code"]
    yield from decomposition.price_claims(decomposition.price_changes(before, after, by=segment), by=segment)
    yield from compared(lens.retention([1, 7], by=["game", "platform"], over=over), "platform", "game")
    builds = lens.retention([1, 7], by=["game", "first_build", "platform"], over=over)
    yield from compared(builds, "first_build", ["game", "platform"])
    sources = lens.retention([1, 7], by=["game", "install_publisher"], over=over)
    sources["publisher"] = display_values(sources.install_publisher)
    yield from compared(sources, "publisher", "game", control="(unknown)")
    yield from compared(lens.retention([1, 3, 7], by=["ab_id", "ab_variant_id"], over=over), "ab_variant_id", None)


def compared(frame: DataFrame, arm: str, by: str | list[str] | None, control: str | None = None) -> list[Claim]:
    """Return the claims on the arms of *frame*."""
    return experiments.difference_claims(experiments.compare(frame, arm=arm, by=by, control=control))


def is_planted(claim: Claim, cause: str) -> bool:
    """Return whether *claim* names the segment of *cause*, and that it fell."""
    return cause in PLANTED and dict(claim.subject) == PLANTED[cause] and claim.direction == "lower"


def is_true(claim: Claim, cause: str, scenario: Scenario) -> bool:
    """Return whether the scenario makes *claim* true, of the segment planted or of one that it is a part of."""
    if is_planted(claim, cause):
        return True
    if "ab_variant_id" in claim.subject:
        return claim.direction == variant_direction(claim, scenario)
    segment, subject = PLANTED.get(cause, {}), dict(claim.subject)
    if cause == BUILD:  # the platform of the game has these players too, and its other builds are beside them
        return subject == {"game": segment["game"], "platform": segment["platform"]} and claim.direction == "lower"
    if cause == CAMPAIGN and "first_build" in subject:  # its players have the builds of its days
        return subject["game"] == segment["game"] and subject["first_build"] in ("2.4.1", "2.5.0")
    return False


def variant_direction(claim: Claim, scenario: Scenario) -> str:
    """Return the direction in which a variant moves retention in closed form."""
    for experiment in scenario.experiments:
        for variant in experiment.variants:
            if variant.id == claim.subject["ab_variant_id"]:
                (game,) = [game for game in scenario.games if game.title == experiment.game]
                age = int(claim.kind.removeprefix("D").removesuffix(" retention"))
                step = activity_of(game, variant=variant).retention(age) - activity_of(game).retention(age)
                return "higher" if step > 0 else "lower" if step < 0 else "none"
    return "unknown"


@pytest.mark.parametrize("cause", [NOTHING, *PLANTED])
def test_claims_are_true_and_planted_causes_are_named(cause: str) -> None:
    """At most 5 % of the claims are false, and at least 90 % of the pages name the planted segment.

    Where something is planted, those are the claims with a direction; where nothing is, all.
    """
    false: list[str] = []
    told = named = pages = everything = 0
    for seed in range(1, SEEDS + 1):
        scenario = scenario_of(cause, seed)
        claims = list(claims_of(LedgerService(scenario, drawn(scenario)).client()))
        clear = clear_claims(claims)
        wrong = [claim for claim in clear if not is_true(claim, cause, scenario)]
        false += [f"seed {seed}: {claim}" for claim in wrong]
        pages += bool(wrong)
        told, everything = told + len(clear), everything + len(claims)
        named += any(is_planted(claim, cause) for claim in clear)
    print(f"\n{cause}: of {everything} claims of {SEEDS} pages {told} have a direction, {len(false)} are false")
    print(f"  pages with a false one {pages}; with the planted segment {named}")
    for text in false[:10]:
        print(f"  false: {text}")
    assert len(false) <= max(1, LEVEL * (everything if cause == NOTHING else told))
    assert cause == NOTHING or named >= NAMED * SEEDS


def test_each_planted_segment_is_in_the_demo() -> None:
    """The names of the planted segments are those that the demo has, so none is missed by a misspelling."""
    demo = load_scenario("demo")
    games = {game.title: game for game in demo.games}
    assert PLANTED[BUILD]["game"] in games
    assert PLANTED[BUILD]["first_build"] in [build.name for build in games["Rooftop Dash"].builds]
    assert PLANTED[PRICE]["country_code"] in games["Tile Harbor"].countries
    assert pd.Series([network.name for network in games["Tile Harbor"].ads.networks]).isin(["AppLovin"]).any()
