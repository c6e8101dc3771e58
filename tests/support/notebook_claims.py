"""The claims of the notebooks 01, 02 and 05 about what a client answers, and the sums behind their leaders.

The queries and the functions are those of the notebooks. Sentences that only count have no interval and are not here:
`COUNTED` names their functions. Those of notebook 03 have a bench of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import pandas as pd
from pandas import DataFrame

from gamelens import dim
from gamelens.analysis import ads, decomposition, experiments, retention, revenue
from gamelens.analysis.claims.claims_frame import doubtful
from gamelens.analysis.claims.findings import Finding, findings_of
from gamelens.analysis.tidy_frames import display_values
from gamelens.client.sync_client import Client
from gamelens.notebook import query_before

MONTH, INSTALLED, LONGER = "last 28 complete days", "last 31 complete days", "last 56 complete days"
EVERY_BUILD: Final = "last 60 complete days"
"""Days in which each build has two weeks of install days, or nearly: the demo has no more."""
AGES: Final = [1, 2, 3, 4, 5, 6, 7, 14, 21, 28]
HORIZON: Final = 90
DECIDES: Final = ["D7 retention", "conversion"]
COUNTED: Final = {
    "arms",
    "concentration",
    "cohort_sizes",
    "decompose",
    "earnings",
    "detectable_effects",
    "payers",
    "reconcile",
    "revenue_by_source",
}
"""Functions whose claims are counts or plans: `analysis` has their tests, held to sums by hand."""


@dataclass
class Page:
    """What the notebooks say of one population.

    Attributes:
        results: the claims of each result.
        sums: for each kind of claim about a leader, name, part and whole of all values: the truth is the ratio of the
            sums over all populations.
    """

    results: list[list[Finding]] = field(default_factory=list)
    sums: dict[str, DataFrame] = field(default_factory=dict)

    @property
    def claims(self) -> list[Finding]:
        """The claims of all results."""
        return [claim for result in self.results for claim in result]

    def sure(self) -> list[Finding]:
        """Return the claims with a direction that stay beside all other comparisons of the page."""
        frames = [
            DataFrame([(it.kind, it.direction, it.p_value) for it in result], columns=["kind", "direction", "p_value"])
            for result in self.results
        ]
        doubts = zip(self.claims, chain(*doubtful(frames)), strict=True)
        return [claim for claim, is_doubtful in doubts if claim.is_clear and not is_doubtful]

    def note(self, kind: str, frame: DataFrame, by: str, part: str, whole: str | float) -> None:
        """Keep *part* and *whole* of each value of *by*."""
        size = frame[whole] if isinstance(whole, str) else whole
        self.sums[kind] = DataFrame(
            {"name": display_values(frame[by]), "part": frame[part].astype("float64"), "whole": size}
        )


def page_of(lens: Client, *, draws: int = 200) -> Page:
    """Return the claims about everything that *lens* answers, from *draws* curves for each band."""
    page = Page()
    page.results += _of_ads(lens, page)
    page.results += _of_retention(lens, page, draws)
    page.results += _of_sources(lens)
    page.results += _of_experiments(lens)
    return page


def _of_ads(lens: Client, page: Page) -> Iterator[list[Finding]]:
    """Yield the claims of notebook 01."""
    metrics = ["ilrd_revenue", "revenue", "user_unique", "session_unique", "ad_impressions_count"]
    daily = lens.query(metrics, by="game", over=MONTH)
    for by in (None, "game"):
        yield findings_of(ads.per_player(daily, by=by))
        yield findings_of(revenue.arpdau(daily, by=by))
    yield findings_of(ads.per_session(daily))
    page.note("ad ARPDAU by", ads.per_player(daily, by="game"), "game", "ad_revenue", "player_days")
    page.note("ARPDAU by", revenue.arpdau(daily, by="game"), "game", "arpdau", 1.0)
    split = ["game", "country_code", "ilrd_adunit_format", "ilrd_network_name"]
    index = ads.ecpm_index(ads.with_canonical_names(lens.query("ecpm", by=split, over=MONTH)))
    yield findings_of(index)
    segments = ["game", "ilrd_network_name", "country_code"]
    before = query_before(lens, "ecpm", by=segments, over=MONTH)
    assert before is not None
    before, after = map(ads.with_canonical_names, (before, lens.query("ecpm", by=segments, over=MONTH)))
    yield findings_of(decomposition.price_changes(before, after, by=["network", "country_code"]))
    actions, by_sdk = (
        lens.query("event_count", by=["ad_action", name], over=MONTH, where=dim.category == "ads")
        for name in ("ad_type", "ad_sdk_name")
    )
    for result in (ads.fill_rates(actions), ads.empty_breaks(actions), ads.empty_breaks(actions, by="ad_type")):
        yield findings_of(result)
    breaks = ads.fill_rates(actions, by="ad_type").assign(breaks=lambda it: it["shown"] + it["failed"])
    page.note("empty ad breaks by", breaks, "ad_type", "failed", "breaks")
    yield findings_of(ads.fill_rates(by_sdk, by="network"))
    page.note("fill rate", ads.fill_rates(by_sdk, by="network"), "network", "shown", "requested")


def _of_retention(lens: Client, page: Page, draws: int) -> Iterator[list[Finding]]:
    """Yield the claims of notebook 02 that take its usual install days."""
    ret = lens.retention(AGES, by="game", over=INSTALLED)
    yield findings_of(retention.day_range(ret))
    curve = retention.average_curve(ret, widened=True)
    yield findings_of(curve[curve["age"].isin([1, 7, 28])])
    by_game = retention.average_curve(ret, by="game", widened=True)
    day_7 = by_game[by_game["age"] == 7].sort_values("retention", ascending=False)
    yield findings_of(day_7.head(1))
    between = experiments.compare(ret[ret["age"] == 7], arm="game", control=experiments.OTHERS)
    yield findings_of(between)
    yield findings_of(retention.compare_curves(ret))
    yield findings_of(retention.drift(ret))
    ahead = retention.project_retention(ret, by="game", ages=range(1, HORIZON + 1), draws=draws)
    yield findings_of(ahead)
    money = lens.query(["revenue", "ilrd_revenue", "user_unique"], by=["game", "installed_on"], over=INSTALLED)
    values = retention.ltv(ret, money, by="game", to=HORIZON, draws=draws)
    yield findings_of(values)
    page.note("lifetime value", values[values["age"] == HORIZON], "game", "ltv", 1.0)


def _of_sources(lens: Client) -> Iterator[list[Finding]]:
    """Yield the claims of notebook 02 about platforms, builds and publishers, over more install days."""
    platforms = lens.retention([1, 7], by=["game", "platform"], over=LONGER)
    yield findings_of(experiments.compare(platforms, arm="platform", by="game"))
    builds = lens.retention([1, 7], by=["game", "first_build", "platform"], over=EVERY_BUILD)
    compared = experiments.compare(builds, arm="first_build", by=["game", "platform"])
    yield findings_of(compared)
    sources = lens.retention([1, 7], by=["game", "install_publisher"], over=LONGER)
    sources["publisher"] = display_values(sources["install_publisher"])
    compared = experiments.compare(sources, arm="publisher", by="game", control="(unknown)")
    yield findings_of(compared)


def _of_experiments(lens: Client) -> Iterator[list[Finding]]:
    """Yield the claims of notebook 05."""
    split = ["ab_id", "ab_variant_id"]
    installs = lens.query("new_users", by=split, over=LONGER)
    arms = experiments.arms(installs)
    arrived = installs[installs["ab_id"].isin(arms["ab_id"].astype("object").unique())]
    yield findings_of(experiments.sample_ratio(arrived))
    member = dim.ab_id.isin(arms["ab_id"].astype("str").unique().tolist())
    came_back = lens.retention([1, 3, 7], by=split, where=member, over=LONGER)
    days = pd.DatetimeIndex(arrived["timestamp"]).strftime("%Y-%m-%d").unique().tolist()
    same = member & dim.installed_on.isin(days)
    paid, spent = (
        lens.query(metric, by=["installed_on", *split], where=same, every="all", over=LONGER)
        for metric in ("converting_users", "revenue")
    )
    conversions = experiments.per_new_player(arrived, paid, metric="converting_users")
    money = experiments.per_new_player(arrived, spent)
    changed = experiments.compare(came_back, conversions, money)
    yield findings_of(changed)
    best = experiments.probability_best(came_back, conversions)
    yield findings_of(best[best["measure"].isin(DECIDES)])
    reach = experiments.detectable_effects(came_back, conversions, money)
    yield findings_of(experiments.next_steps(changed, reach, measures=DECIDES))
    newest = lens.retention([1], by=["game", "first_build"], over=LONGER)
    newest = experiments.newest_arms(newest, "first_build", by="game")
    yield findings_of(experiments.compare(newest, arm="first_build", by="game"))
