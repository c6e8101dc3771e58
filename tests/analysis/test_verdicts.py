"""Verdicts on experiments: the direction of each claim, its numbers, and the advice."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.analysis.claims import Claim
from support.experiment_frames import FIRST_DAY, ramp, shares
from support.tidy_frames import tidy_frame


def daily(control: int, treated: int, *, days: int = 10, players: int = 100, measure: str = "conversion") -> DataFrame:
    """Return *days* equal install days of both arms."""
    arms = {"ctrl": (control, players), "new": (treated, players)}
    stamps = [FIRST_DAY + pd.Timedelta(days=day) for day in range(days)]
    return pd.concat([shares(arms, measure=measure).assign(timestamp=day) for day in stamps], ignore_index=True)


def advice(frame: DataFrame, *, lift: float = 0.05) -> Claim:
    """Return the advice on the first comparison of *frame*."""
    reach = experiments.detectable_effects(frame, lift=lift)
    return experiments.advice_claims(experiments.compare(frame), reach, lift=lift)[0]


def test_a_difference_is_a_claim_with_its_interval() -> None:
    """The claim has measure, arm, direction and the difference in percentage points."""
    claim = experiments.difference_claims(experiments.compare(daily(40, 20)))[0]
    assert (claim.kind, claim.subject, claim.direction, claim.unit) == (
        "conversion",
        {"ab_variant_id": "new"},
        "lower",
        "pp",
    )
    assert claim.size == pytest.approx(-20.0)
    assert claim.low < -20 < claim.high < 0
    assert str(claim).startswith("conversion of new: 20.0%, ctrl 40.0%; -20 pp, 95% interval ")


def test_a_difference_that_chance_explains_has_no_direction() -> None:
    """Equal arms are not a clear difference, and the sentence gives the interval instead of "none"."""
    claim = experiments.difference_claims(experiments.compare(ramp()))[0]
    assert claim.direction == "no clear difference"
    assert "no clear difference, 95% interval" in str(claim)


def test_one_of_many_comparisons_needs_the_corrected_level() -> None:
    """A difference with p = 0.03 is a claim alone, and none among twenty comparisons."""
    alone = daily(40, 45, days=9)
    assert 0.02 < experiments.compare(alone)["p_value"].iloc[0] < 0.04
    assert experiments.difference_claims(experiments.compare(alone))[0].direction == "higher"
    others = [daily(40, 40, days=9, measure=f"measure {n}") for n in range(19)]
    claim = experiments.difference_claims(experiments.compare(alone, *others))[0]
    assert claim.direction == "no clear difference"
    assert "among so many comparisons" in str(claim)


def test_a_difference_without_an_interval_is_unknown() -> None:
    """Two days of money give a difference and no direction."""
    money = daily(40, 20, days=2).assign(money=[1.0, 2.0] * 2).drop(columns="successes")
    claim = experiments.difference_claims(experiments.compare(money))[0]
    assert claim.direction == "unknown"
    assert "too few" in str(claim)


def test_a_comparison_between_days_says_what_else_it_holds() -> None:
    """Arms of different install days are named as such."""
    claims = experiments.difference_claims(experiments.compare(ramp(), since="2026-11-11"))
    assert "different install days" in str(claims[0])


def test_advice_decides_only_on_the_interval_for_every_look() -> None:
    """A clear difference is decided now; one that is clear for a single look only at the planned end."""
    assert "decide now" in str(advice(daily(40, 20)))
    assert advice(daily(40, 20)).direction == "lower"
    once = advice(daily(40, 45, days=9))
    assert "if today is the planned end" in str(once)
    assert once.direction == "no clear difference"


def test_advice_stops_where_a_test_takes_longer_than_a_quarter() -> None:
    """A change of 2 % takes years at this pace: the advice is to stop, with what a quarter can show."""
    said = str(advice(daily(10, 10), lift=0.02))
    assert "longer than a quarter: stop" in said
    assert "go on" not in said


def test_advice_says_how_many_days_are_left() -> None:
    """A change of 20 % takes 39 days, of which ten are over; after these more players hardly decide it."""
    assert "takes 39 install days at this pace: go on for 29 more" in str(advice(daily(10, 10), lift=0.2))
    assert "hardly decide" in str(advice(daily(10, 10, days=40), lift=0.2))


def test_a_test_that_has_ended_is_not_told_to_go_on() -> None:
    """An experiment whose days end before those of another has ended."""
    short = daily(10, 10).assign(ab_id="short")
    both = pd.concat([short, daily(10, 10, days=12).assign(ab_id="long")]).astype({"ab_id": "category"})
    claims = experiments.advice_claims(
        experiments.compare(both), experiments.detectable_effects(both, lift=0.2), lift=0.2
    )
    assert [claim.subject["ab_id"] for claim in claims] == ["short", "long"]
    assert "It ended on 2026-11-10" in str(claims[0])
    assert "go on for" in str(claims[1])


def test_only_the_measures_that_decide_are_advised_on() -> None:
    """Advice is given for the named measures alone, and needs no reach for money."""
    frames = daily(10, 10), daily(10, 10, measure="D7 retention")
    money = daily(10, 10).drop(columns=["successes", "measure"]).assign(money=2.0)
    compared, reach = experiments.compare(*frames, money), experiments.detectable_effects(*frames, money)
    kinds = [claim.kind for claim in experiments.advice_claims(compared, reach, measures=["D7 retention", "money"])]
    assert kinds == ["advice on D7 retention", "advice on money"]


@pytest.mark.parametrize(
    ("ctrl", "new", "words", "direction"),
    [
        ([200, 200], [200, 200], "no reason for doubt", "no clear difference"),
        ([300, 300], [100, 100], "is broken: ctrl has 75.0% of the players instead of 50.0%", "higher"),
        ([300, 100], [100, 300], "right in total but not day by day", "unknown"),
    ],
)
def test_a_split_is_a_claim(ctrl: list[int], new: list[int], words: str, direction: str) -> None:
    """The claim names the arm with the largest deviation, or the day of a split that is right only in total."""
    installs = tidy_frame(
        "new_users",
        timestamp=["2026-11-01", "2026-11-02"] * 2,
        ab_variant_id=["ctrl"] * 2 + ["new"] * 2,
        new_users=[*ctrl, *new],
    )
    claim = experiments.split_claims(experiments.sample_ratio(installs))[0]
    assert words in str(claim)
    assert claim.direction == direction


def test_the_split_of_one_arm_is_unknown() -> None:
    """There is no split to judge with one arm."""
    installs = tidy_frame("new_users", timestamp=["2026-11-01"], ab_variant_id=["ctrl"], new_users=[9])
    assert experiments.split_claims(experiments.sample_ratio(installs))[0].direction == "unknown"
