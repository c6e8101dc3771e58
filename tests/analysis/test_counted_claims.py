"""Claims that count: ad revenue and its change, arms and payers, series and incidents."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, decomposition, experiments, health, retention
from gamelens.analysis.claims import Claim, paragraph
from gamelens.analysis.significance import difference_of
from gamelens.errors import BadQuery
from support.retention_frames import frame_of
from support.tidy_frames import tidy_frame

STAMPS = pd.date_range("2026-11-01", periods=4, tz="UTC")


def earned(**countries: float) -> DataFrame:
    """Return `earnings` by country of one day."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01"] * len(countries),
        country_code=[*countries],
        ilrd_revenue_event_count=[1000] * len(countries),
        ilrd_revenue=[*countries.values()],
    )
    return ads.earnings(frame, by="country_code")


def revenue_of(money: float, count: int, day: str) -> DataFrame:
    """Return ad revenue of one network on one day."""
    return tidy_frame(
        "ilrd_revenue", timestamp=[day], ilrd_network_name=["A"], ilrd_revenue_event_count=[count], ilrd_revenue=[money]
    )


def test_ad_revenue_is_a_sum_over_days() -> None:
    """Four dollars on each of two days are eight, without an interval."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01", "2026-11-02"],
        ilrd_revenue_event_count=[10, 10],
        ilrd_revenue=[4.0, 4.0],
    )
    claim = ads.earned_claim(frame)
    assert (claim.size, claim.text) == (8.0, "Ads earned $8.00 over 2 days.")
    assert math.isnan(claim.low)
    assert ads.earned_claim(frame[:0]) == ads.earned_claim(frame.assign(ilrd_revenue=0.0))


def test_the_first_countries_have_a_share() -> None:
    """The two largest of three countries bring 9 of 10 dollars."""
    claim = ads.first_share(earned(US=6.0, BR=3.0, DE=1.0), "country_code", most=2)
    assert claim.size == pytest.approx(0.9)
    assert claim.text == "The 2 countries that earn most bring 90.0% of it."
    assert ads.first_share(earned(US=6.0), "country_code").size == 1.0
    assert ads.first_share(earned(US=0.0), "country_code").direction == "unknown"


def test_definitions_of_retention_are_as_far_apart_as_counted() -> None:
    """Ten players of forty and eighteen of forty are 20 points apart."""
    shown = DataFrame(
        {
            "definition": ["calendar day UTC", "rolling 24 h", "that day or later", "calendar day UTC"],
            "age": [1, 1, 1, 7],
            "retention": [12 / 40, 10 / 40, 18 / 40, math.nan],
        }
    )
    claim = retention.definitions_claim(shown, 1)
    assert claim.size == pytest.approx(20)
    assert claim.text == (
        "D1 retention is 25.0% by one definition (rolling 24 h) and 45.0% by another (that day or later), of the same "
        "events."
    )
    assert retention.definitions_claim(shown, 7).text == "No definition has a player who has reached day 7."


def test_the_terms_of_a_gap_sum_to_it() -> None:
    """Three players more and one fewer of forty are 5 points."""
    gap = DataFrame(
        {
            "age": [1, 1, 1, 7],
            "term": ["second only", "first only", "another cohort", "second only"],
            "amount": [3 / 40, -1 / 40, 0.0, 0.0],
            "players": [3, 1, 0, 0],
        }
    )
    claim = retention.gap_claim(gap, 1)
    assert claim.size == pytest.approx(5)
    assert claim.direction == "higher"
    assert claim.text == (
        "By the second definition D1 retention differs by +5.0 percentage points: +7.5 from 3 players (second only), "
        "-2.5 from 1 player (first only)."
    )
    assert retention.gap_claim(gap, 7).text == "D7 retention is the same by both definitions."
    assert retention.gap_claim(gap, 30).text == "Nobody has reached day 30."


def test_a_country_alone_brings_all() -> None:
    """Of one country no share is said to be the largest."""
    assert ads.largest_share(earned(US=6.0), "country_code").text.startswith("US brings all of the ad revenue, at")


def test_a_change_names_its_largest_effect_with_its_sign() -> None:
    """Twice the impressions at three quarters of the price: +10 by volume and -5 by price."""
    parts = decomposition.decompose(
        revenue_of(10.0, 1000, "2026-11-01"), revenue_of(15.0, 2000, "2026-11-02"), by="ilrd_network_name"
    )
    claim = decomposition.change_claim(parts)
    assert (claim.direction, claim.size, claim.unit) == ("higher", 0.5, "ratio")
    assert claim.text.startswith("Ad revenue went from $10.00 to $15.00 (+50.0%). The largest effect is volume +$10.00")
    assert "price -$5.00" in claim.text
    assert decomposition.change_claim(parts[:0]).direction == "unknown"


def test_a_change_from_nothing_has_no_percentage() -> None:
    """Revenue that began is higher, by an infinite ratio that the words leave out."""
    parts = decomposition.decompose(
        revenue_of(0.0, 0, "2026-11-01"), revenue_of(5.0, 100, "2026-11-02"), by="ilrd_network_name"
    )
    claim = decomposition.change_claim(parts)
    assert (claim.direction, claim.size) == ("higher", math.inf)
    assert "%" not in claim.text


def test_experiments_are_counted() -> None:
    """Two experiments have 60 new players; without players none is named."""
    sizes = tidy_frame(ab_id=["gate", "gate", "price"], ab_variant_id=["a", "b", "a"], players=[20, 30, 10])
    claim = experiments.arms_claim(sizes)
    assert claim.text == "2 experiments with new players in this period, 60 in all: gate, price."
    assert experiments.arms_claim(sizes[:0]).direction == "unknown"


def test_payers_are_counted() -> None:
    """Three of a hundred players paid, 15 dollars in all."""
    conversions = tidy_frame(players=[60, 40], successes=[2, 1])
    money = tidy_frame(players=[60, 40], money=[10.0, 5.0])
    claim = experiments.payers_claim(conversions, money)
    assert (claim.size, claim.text) == (0.03, "3 of 100 players have paid, $15.00 in all: revenue rests on them.")
    assert experiments.payers_claim(conversions[:0], money[:0]).direction == "unknown"


@pytest.mark.parametrize(("chance", "direction"), [(0.99, "higher"), (0.80, "no clear difference")])
def test_the_best_arm_is_claimed_from_a_sure_chance_on(chance: float, direction: str) -> None:
    """A chance of 80 % names the likeliest arm and claims nothing."""
    chances = tidy_frame(
        ab_id=["gate"] * 2,
        measure=["D7 retention"] * 2,
        ab_variant_id=["ctrl", "new"],
        players=[100, 100],
        chance_best=[1 - chance, chance],
        expected_loss=[0.02, 0.001],
    )
    (claim,) = experiments.best_claims(chances)
    assert (claim.subject, claim.direction) == ({"ab_id": "gate", "ab_variant_id": "new"}, direction)
    assert "gives up 0.1 percentage points" in claim.text
    assert experiments.best_claims(chances[:0]) == []


def test_the_reach_of_an_experiment_is_its_smallest_change() -> None:
    """A change of 12 % is found; one of 5 % takes longer than a year, which is said instead of the days."""
    reach = tidy_frame(
        ab_id=["gate"],
        measure=["conversion"],
        ab_variant_id=["new"],
        players=[100],
        minimal_lift=[0.12],
        quarter_lift=[0.06],
        days_needed=[9000],
    )
    (claim,) = experiments.reach_claims(reach, lift=0.05)
    assert claim.size == 0.12
    assert "changes of 12% or more of the control's value; a quarter would show 6.0%" in claim.text
    assert claim.text.endswith("A change of 5% takes more than 365 install days.")
    blind = reach.assign(minimal_lift=float("nan"), days_needed=pd.array([pd.NA], dtype="Int64"))
    assert "too few to show any change" in experiments.reach_claims(blind)[0].text


def test_the_newest_builds_are_those_that_began_last() -> None:
    """Of three builds the last two are kept, whatever their names; players without a build are left out."""
    frame = frame_of([10] * 4, np.full((4, 1), 5), [1]).assign(first_build=pd.Categorical(["1.10", "1.9", "2.0", None]))
    newest = experiments.newest_arms(frame, "first_build", by="game")
    assert newest["first_build"].tolist() == ["1.9", "2.0"]
    assert newest.attrs == frame.attrs
    assert experiments.newest_arms(frame, "first_build", most=1)["first_build"].tolist() == ["2.0"]
    with pytest.raises(BadQuery, match="build"):
        experiments.newest_arms(frame, "build")


def board(**columns: object) -> DataFrame:
    """Return a board of two games, the second with the given values."""
    rows = {
        "timestamp": STAMPS[[3, 3]],
        "game_id": ["1", "2"],
        "game": ["Tile", "Farm"],
        "severity": pd.Categorical(["ok", "ok"], categories=["unknown", "ok", "info", "warning", "critical"]),
        "is_flagged": [False, False],
        "is_silent": [False, False],
        "value": [1.0, 1.0],
        "expected": [1.0, 1.0],
    }
    return DataFrame(rows | columns)


def test_a_silent_game_is_named() -> None:
    """The game that sent nothing is the subject; without one no game is."""
    claim = health.silence_claim(board(is_silent=[False, True]))
    assert (claim.subject, claim.direction, claim.text) == ({"game": "Farm"}, "lower", "Silent now: Farm.")
    assert health.silence_claim(board()).direction == "no clear difference"
    assert health.silence_claim(board()[:0]).direction == "unknown"


def test_severities_are_counted() -> None:
    """One critical row below its expectation is one alarm, lower."""
    flagged = board(severity=pd.Categorical(["critical", "ok"]), value=[0.2, 1.0], is_flagged=[True, False])
    claim = health.severity_claim(flagged)
    assert (claim.size, claim.direction) == (1.0, "lower")
    assert claim.text == "Critical: 1; warning: 0; to know about: 0."
    assert health.severity_claim(board()).direction == "unknown"


def test_the_days_of_an_incident_are_one() -> None:
    """Two incidents, of which one is open on the last day."""
    rows = DataFrame({name: ["x"] * 3 for name in health.IDENTITY})
    flags = rows.assign(timestamp=STAMPS[[3, 2, 1]], since=STAMPS[[2, 2, 0]])
    claim = health.incidents_claim(flags, STAMPS[3])
    assert claim.size == 2
    assert claim.text == "2 incidents in all this time, 1 still open; the newest began on 2026-11-03."
    assert "1 incident in all this time, none still open" in health.incidents_claim(flags[1:2], STAMPS[3]).text
    assert health.incidents_claim(flags[:0], None).text == "No day stood out."


def test_history_is_counted() -> None:
    """Two games with one series each on four days."""
    rows = [dict.fromkeys(health.IDENTITY, game) | {"timestamp": day} for game in "12" for day in STAMPS]
    claim = health.coverage_claim(DataFrame(rows))
    assert claim.text == "2 games, 2 series, 4 days of history; judged is 2026-11-04."
    assert health.coverage_claim(DataFrame(rows)[:0]).direction == "unknown"


def test_a_segment_that_explains_an_alarm_is_the_subject() -> None:
    """The verdict "one segment" names it; "all alike" names the game only; an empty sentence is left out."""
    moved = DataFrame(
        {
            "game_id": ["1"] * 4,
            "game": ["Tile"] * 4,
            "watch": ["user_unique"] * 4,
            "timestamp": [STAMPS[0]] * 4,
            "of_segment": [None] * 4,
            "dimension": ["country_code", "country_code", "platform", "build"],
            "segment": ["BR", "US", "ios", "1.0"],
            "contribution": [-5.0, -1.0, -3.0, 1.0],
            "share_of_change": [0.8, 0.2, 0.5, 1.0],
            "verdict": ["one segment", "one segment", "all alike", "unclear"],
            "says": ["country BR makes up 80% of it"] * 2 + ["by platform, all of them fell", ""],
        }
    )
    named, alike = health.segment_claims(moved)
    assert (named.subject, named.size) == ({"game": "Tile", "country_code": "BR"}, 0.8)
    assert (alike.subject, alike.direction) == ({"game": "Tile"}, "lower")
    assert health.segment_claims(moved[:0]) == []


def test_a_paragraph_has_each_sentence_once() -> None:
    """Two claims with the same words are one sentence."""
    claims = [Claim(kind=kind, direction="unknown", text="Nothing was earned.") for kind in "ab"]
    assert paragraph(claims) == "Nothing was earned."
    assert paragraph([]) == ""


def test_the_difference_of_two_estimates_adds_their_errors() -> None:
    """Symmetric intervals of 3 and 4 give one of 5."""
    assert difference_of((10.0, 7.0, 13.0), (2.0, -2.0, 6.0)) == (8.0, 3.0, 13.0)
