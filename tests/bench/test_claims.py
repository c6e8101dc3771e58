"""Claims of the notebooks beside causes planted in the demo: how many are false, how many causes are named.

Run by `make bench`. SEEDS in the environment sets how many populations are drawn, once with nothing planted and once
with all causes. The claims are those of `support.notebook_claims`; the answers come from the ledger. A claim with a
direction is false unless the scenario makes it true; where the scenario leaves it open, which game earns most for
instance, all populations together decide. Alarms of the health board have a bench of their own (`test_health_board`).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from gamelens.analysis.claims.findings import Finding
from gamelens.analysis.claims.templates import sentences_of
from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.scenarios.timeline import BadBuild, Campaign, PriceChange
from support.closed_form import activity_of
from support.ledger_service import LedgerService
from support.notebook_claims import HORIZON, Page, page_of
from support.simulated_organisation import drawn

SEEDS = int(os.environ.get("SEEDS", "100"))
NOTHING, PLANTED = "nothing planted", "three causes planted"
LEVEL = 0.05
NAMED = 0.90

Segment = dict[str, str]

COMES_BACK = ("D1 retention", "D7 retention")
CAUSES: dict[str, tuple[tuple[str, ...], Segment]] = {
    "a price falls": (("price",), {"network": "AppLovin", "country_code": "US"}),
    "a build breaks": (COMES_BACK, {"game": "Rooftop Dash", "first_build": "1.9.0", "platform": "ios"}),
    "a campaign brings worse players": (COMES_BACK, {"game": "Tile Harbor", "publisher": "New Ads"}),
}
"""Kind and segment of the claims that name each cause."""
FOLLOWING: list[tuple[Segment, str]] = [
    ({"game": "Rooftop Dash", "platform": "ios"}, "lower"),  # its other builds are beside the bad one
    ({"game": "Rooftop Dash", "first_build": "1.10.0"}, "higher"),  # after the bad one, on all platforms
    ({"game": "Tile Harbor", "first_build": "2.6.0"}, "higher"),  # after the campaign
    *(
        ({"game": "Tile Harbor", "first_build": build, "platform": platform}, "lower")
        for build in ("2.4.1", "2.5.0")  # on the days of the campaign
        for platform in ("android", "ios")
    ),
]
"""What else is true of retention where all causes are planted."""


@dataclass
class World:
    """The pages of all populations with the same causes, and what is true of them."""

    name: str
    scenario: Scenario
    pages: list[Page]

    def is_true(self, claim: Finding) -> bool:
        """Return whether *claim*, which has a direction, says what the scenario makes true."""
        subject, kind = dict(claim.subject), topic_of(claim)
        is_planted = self.name == PLANTED
        if kind == "retention curve":  # players are drawn from BG/BB, which no other curve beats
            return False
        if kind == "price":
            return is_planted and is_cause(claim, "a price falls")
        if "ab_variant_id" in subject:
            return claim.direction == variant_direction(claim, self.scenario)
        if kind in ("ecpm", "advice on ecpm"):
            return claim.direction == self.usual_direction("ecpm", subject)
        if kind == "retention ahead":
            return subject["game"] == self.most_loyal(HORIZON)
        if kind in self.pages[0].sums:
            return [*subject.values()] == [self.leader(kind)]
        if kind in ("variation of install days", "retention drift"):  # the causes end in the first days of this query
            return is_planted and claim.direction == "higher"
        if [*subject] == ["game"]:
            return claim.direction == ("higher" if np.mean(self.sizes_of(kind, subject)) > 0 else "lower")
        is_named = any(is_cause(claim, cause) for cause in CAUSES)
        return is_planted and (is_named or (subject, claim.direction) in FOLLOWING)

    def leader(self, kind: str) -> str:
        """Return the value with the highest ratio of its sums over all populations."""
        sums = pd.concat([page.sums[kind] for page in self.pages]).groupby("name")[["part", "whole"]].sum()
        return str((sums["part"] / sums["whole"]).idxmax())

    def usual_direction(self, kind: str, subject: Segment) -> str:
        """Return the direction of the mean index of all populations."""
        return "higher" if np.nanmean(np.log(self.sizes_of(kind, subject))) > 0 else "lower"

    def sizes_of(self, kind: str, subject: Segment) -> list[float]:
        """Return the sizes of a claim in all populations."""
        found = [it for page in self.pages for it in page.claims if topic_of(it) == kind and it.subject == subject]
        return [it.size for it in found]

    def most_loyal(self, age: int) -> str:
        """Return the game that keeps most players until *age*, in closed form."""
        return max(self.scenario.games, key=lambda game: activity_of(game).retention(age)).title


def world_of(name: str) -> World:
    """Return the pages of `SEEDS` populations of the demo, without its campaigns."""
    causes = (
        PriceChange(game="Tile Harbor", network="AppLovin", country="US", factor=0.6, day=32, days=28),
        BadBuild(game="Rooftop Dash", build="1.9.0", platform="ios", stay=0.4),
    )
    bought = Campaign(game="Tile Harbor", publisher="New Ads", day=20, days=14, size=0.6, stay=0.4)
    pages = []
    for seed in range(1, SEEDS + 1):
        scenario = replace(load_scenario("calm", seed=seed), campaigns=())
        if name == PLANTED:
            scenario = replace(scenario, campaigns=(bought,), incidents=causes)
        pages.append(page_of(LedgerService(scenario, drawn(scenario)).client()))
    return World(name, scenario, pages)


@pytest.fixture(scope="module", params=[NOTHING, PLANTED])
def world(request: pytest.FixtureRequest) -> World:
    """The demo with nothing planted, and with all causes."""
    return world_of(request.param)


def is_cause(claim: Finding, cause: str) -> bool:
    """Return whether *claim* names what *cause* changed, its segment, and that it fell."""
    kinds, segment = CAUSES[cause]
    return topic_of(claim) in kinds and dict(claim.subject) == segment and claim.direction == "lower"


def variant_direction(claim: Finding, scenario: Scenario) -> str:
    """Return the direction that the scenario gives *claim* about a variant, beside the other one."""
    (experiment,) = [it for it in scenario.experiments if it.id == claim.subject["ab_id"]]
    (game,) = [game for game in scenario.games if game.title == experiment.game]
    own = next(it for it in experiment.variants if it.id == claim.subject["ab_variant_id"])
    (other,) = [it for it in experiment.variants if it is not own]
    measure = claim.numbers["measure"]
    if measure == "conversion":
        step = own.spend - other.spend
    elif measure == "revenue per player":  # payers of equal number pay more often if they play more often
        days = [activity_of(game, variant=it).active_days(scenario.days) for it in (own, other)]
        step = own.spend - other.spend or days[0] - days[1]
    else:
        age = int(measure.removeprefix("D").removesuffix(" retention"))
        step = activity_of(game, variant=own).retention(age) - activity_of(game, variant=other).retention(age)
    return "higher" if step > 0 else "lower" if step < 0 else "none"


def topic_of(claim: Finding) -> str:
    """Return what *claim* is about: the measure of a comparison, else its kind."""
    return str(claim.numbers.get("measure", claim.kind))


def level_of(claim: Finding) -> str:
    """Return what the level *claim* is of."""
    age = claim.numbers.get("age")
    return claim.kind if age is None else f"{claim.kind} of day {age}"


def test_claims_with_a_direction_are_true(world: World) -> None:
    """At most 5 % of the claims with a direction are false."""
    claims = [claim for page in world.pages for claim in page.claims]
    clear = [claim for claim in claims if claim.is_clear]
    compared = [*clear, *(claim for claim in claims if claim.direction == "no clear difference")]
    wrong = [(seed, it) for seed, page in enumerate(world.pages, 1) for it in page.claims if it.is_clear]
    wrong = [(seed, claim) for seed, claim in wrong if not world.is_true(claim)]
    told, off = Counter(map(topic_of, clear)), Counter(topic_of(claim) for _, claim in wrong)
    pages = len({seed for seed, _ in wrong})
    print(f"\n{world.name}, {len(world.pages)} pages: of {len(claims)} claims {len(compared)} compare")
    print(f"  {len(clear)} have a direction, {len(wrong)} are false, on {pages} pages")
    for kind in sorted(told):
        print(f"  {kind}: {off[kind]} false of {told[kind]}, {sum(topic_of(it) == kind for it in compared)} compared")
    for seed, claim in wrong[:20]:
        print(f"  false, seed {seed}: {dict(claim.subject)} {sentences_of([claim])[0]}")
    assert len(wrong) <= max(1, LEVEL * len(clear))


def test_a_page_is_one_family(world: World) -> None:
    """Of the claims of a page that stay beside all its others, at most 5 % are false on average."""
    false = [[not world.is_true(claim) for claim in page.sure()] for page in world.pages]
    told, pages = sum(map(len, false)), sum(map(any, false))
    share = np.mean([np.mean(each) if each else 0.0 for each in false])
    print(f"\n{world.name}: {told} claims stay beside the others of their page, {sum(map(sum, false))} are false,")
    print(f"  on {pages} of {len(false)} pages; of a page {share:.1%} on average")
    for page, each in zip(world.pages, false, strict=True):
        for claim in [it for it, is_false in zip(page.sure(), each, strict=True) if is_false][:20]:
            print(f"  false: {dict(claim.subject)} {sentences_of([claim])[0]}")
    assert share <= LEVEL


def test_planted_causes_are_named(world: World) -> None:
    """At least 90 % of the pages name each planted segment, and at most 5 % of those without causes do.

    Of so few pages the share is known to two standard errors.
    """
    named = {cause: sum(any(is_cause(it, cause) for it in page.claims) for page in world.pages) for cause in CAUSES}
    for cause, pages in named.items():
        print(f"\n{world.name}: {cause}, named on {pages} of {len(world.pages)} pages")
    if world.name == PLANTED:
        error = 2 * np.sqrt(NAMED * (1 - NAMED) / len(world.pages))
        assert min(named.values()) >= (NAMED - error) * len(world.pages)
    else:
        assert max(named.values()) <= LEVEL * len(world.pages)


def test_levels_hold_the_mean_of_all_populations(world: World) -> None:
    """Of the intervals of levels (rates, retention) at least 90 % hold the mean over all populations."""
    levels: dict[str, list[Finding]] = defaultdict(list)
    for page in world.pages:
        for claim in page.claims:
            if claim.direction == "unknown" and not claim.subject and not np.isnan(claim.low):
                levels[level_of(claim)].append(claim)
    held = []
    for kind, claims in levels.items():
        mean = float(np.mean([claim.size for claim in claims]))
        held.append(np.mean([claim.low <= mean <= claim.high for claim in claims]))
        print(f"\n{world.name}: {kind} {mean:.4g}, held in {held[-1]:.1%} of {len(claims)}")
    print(f"all: {np.mean(held):.1%}")
    assert len(levels) >= 8
    assert np.mean(held) >= 0.90


def test_each_planted_segment_is_in_the_demo() -> None:
    """The names of the planted segments are those that the demo has, so none is missed by a misspelling."""
    demo = load_scenario("calm")
    games = {game.title: game for game in demo.games}
    _, broken = CAUSES["a build breaks"]
    assert broken["game"] in games
    assert broken["first_build"] in [build.name for build in games["Rooftop Dash"].builds]
    assert CAUSES["a price falls"][1]["country_code"] in games["Tile Harbor"].countries
    assert "AppLovin" in [network.name for network in games["Tile Harbor"].ads.networks]
