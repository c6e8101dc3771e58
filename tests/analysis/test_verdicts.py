"""Verdicts on experiments: the direction of each claim, its numbers, and the advice."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from support.experiment_frames import FIRST_DAY, ramp, shares
from support.hypothesis_profiles import tries
from support.said import said
from support.tidy_frames import tidy_frame


def daily(control: int, treated: int, *, days: int = 10, players: int = 100, measure: str = "conversion") -> DataFrame:
    """Return *days* equal install days of both arms."""
    arms = {"ctrl": (control, players), "new": (treated, players)}
    stamps = [FIRST_DAY + pd.Timedelta(days=day) for day in range(days)]
    return pd.concat([shares(arms, measure=measure).assign(timestamp=day) for day in stamps], ignore_index=True)


def advice(frame: DataFrame, *, lift: float = 0.05) -> Any:
    """Return the claim about the next step of the first comparison of *frame*."""
    reach = experiments.detectable_effects(frame, lift=lift)
    return said(experiments.next_steps(experiments.compare(frame), reach))[0]


def test_a_difference_is_a_claim_with_its_interval() -> None:
    """The claim has measure, arm, direction and the difference in percentage points."""
    claim = said(experiments.compare(daily(40, 20)))[0]
    assert (claim.measure, claim.subject, claim.direction, claim.unit) == ("conversion", "new", "lower", "share")
    assert claim.size == pytest.approx(-0.2)
    assert claim.low < -0.2 < claim.high < 0
    assert claim.text.startswith("Conversion: new has 20%, ctrl 40%, a difference of -20 pp (-24 to -16 pp)")


@pytest.mark.parametrize(("control", "new"), [(109, 40), (154, 77), (181, 77), (217, 40), (226, 40), (217, 151)])
def test_two_shares_and_their_difference_agree(control: int, new: int) -> None:
    """A reader subtracts them: 25% and 33% would make -9 pp look wrong. One place more is written then."""
    text = said(experiments.compare(daily(control, new, days=3, players=509)))[0].text
    found = re.search(r"has ([\d.]+)%, ctrl ([\d.]+)%, a difference of (-[\d.]+) pp", text)
    assert found is not None
    value, of_control, size = map(float, found.groups())
    assert value - of_control == pytest.approx(size)


def test_a_difference_that_chance_explains_has_no_direction() -> None:
    """Equal arms are not a clear difference, and the sentence gives the interval instead of "none"."""
    claim = said(experiments.compare(ramp()))[0]
    assert claim.direction == "no clear difference"
    assert "no clear difference (" in claim.text


def test_one_of_many_comparisons_needs_the_corrected_level() -> None:
    """A difference with p = 0.03 is a claim alone, and none among twenty comparisons."""
    alone = daily(40, 45, days=9)
    assert 0.02 < experiments.compare(alone)["p_value"].iloc[0] < 0.04
    assert said(experiments.compare(alone))[0].direction == "higher"
    others = [daily(40, 40, days=9, measure=f"measure {n}") for n in range(19)]
    claim = said(experiments.compare(alone, *others))[0]
    assert claim.direction == "no clear difference"
    assert "after correction for all comparisons" in claim.text


def test_a_difference_without_an_interval_is_unknown() -> None:
    """Two days of money give a difference and no direction."""
    money = daily(40, 20, days=2).assign(money=[1.0, 2.0] * 2).drop(columns="successes")
    claim = said(experiments.compare(money))[0]
    assert claim.direction == "unknown"
    assert "too few" in claim.text


def test_a_comparison_between_days_says_what_else_it_holds() -> None:
    """Arms of different install days are named as such."""
    claims = said(experiments.compare(ramp(), since="2026-11-11"))
    assert "Their install days differ" in claims[0].text


def test_advice_decides_only_on_the_interval_for_every_look() -> None:
    """A clear difference is decided now; one that is clear for a single look only at the planned end."""
    assert "decide now" in advice(daily(40, 20)).text
    assert advice(daily(40, 20)).direction == "lower"
    once = advice(daily(40, 45, days=9))
    assert "if the planned end of the test has come" in once.text
    assert once.direction == "no clear difference"


@pytest.mark.wide
def test_advice_agrees_with_the_comparison_it_is_about() -> None:
    """Advice names a side only where the comparison does, and what one look would have shown is not called unclear."""
    alone, others = daily(40, 45, days=9), [daily(40, 40, days=9, measure=f"measure {n}") for n in range(19)]
    strict = experiments.compare(alone, confidence=np.float64(0.99))
    cases = [strict, experiments.compare(alone, *others)]
    for compared, frames in zip(cases, ([alone], [alone, *others]), strict=True):
        step = said(experiments.next_steps(compared, experiments.detectable_effects(*frames)))[0]
        assert said(compared)[0].direction == "no clear difference"
        assert "planned end" not in step.text
    assert "no clear difference after correction for all comparisons, +0.4 to +10 pp" in step.text
    once = said(experiments.next_steps(strict, experiments.detectable_effects(alone)))[0]
    assert "no clear difference at a single look, -1 to +11 pp" in once.text


def test_advice_stops_where_a_test_takes_longer_than_a_quarter() -> None:
    """A change of 2 % takes years at this pace: the advice is to stop, with what a quarter can show."""
    text = advice(daily(10, 10), lift=0.02).text
    assert "longer than a quarter: stop" in text
    assert "go on" not in text


def test_advice_says_how_many_days_are_left() -> None:
    """A change of 20 % takes 39 days, of which ten are over; after these more players hardly decide it."""
    assert "takes 39 install days at this pace: go on for 29 more" in advice(daily(10, 10), lift=0.2).text
    assert "unlikely to decide" in advice(daily(10, 10, days=40), lift=0.2).text


def test_a_test_that_has_ended_is_not_told_to_go_on() -> None:
    """An experiment whose days end before those of another has ended."""
    short = daily(10, 10).assign(ab_id="short")
    both = pd.concat([short, daily(10, 10, days=12).assign(ab_id="long")]).astype({"ab_id": "category"})
    claims = said(experiments.next_steps(experiments.compare(both), experiments.detectable_effects(both, lift=0.2)))
    assert [claim.subject for claim in claims] == ["short, new", "long, new"]
    assert "It ended on 10 Nov 2026" in claims[0].text
    assert "go on for" in claims[1].text
    claims = said(experiments.next_steps(experiments.compare(both), experiments.detectable_effects(both, lift=0.02)))
    assert "would have taken more than 365 install days" in claims[0].text
    assert "longer than a quarter: stop" in claims[1].text


def test_only_the_measures_that_decide_are_advised_on() -> None:
    """Advice is given for the named measures alone, and needs no reach for money."""
    frames = daily(10, 10), daily(10, 10, measure="D7 retention")
    money = daily(10, 10).drop(columns=["successes", "measure"]).assign(money=2.0)
    compared, reach = experiments.compare(*frames, money), experiments.detectable_effects(*frames, money)
    steps = experiments.next_steps(compared, reach, measures=["D7 retention", "money"])
    assert [claim.measure for claim in said(steps)] == ["D7 retention", "money"]


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
    (claim,) = said(experiments.sample_ratio(installs))
    assert words in claim.text
    assert claim.direction == direction


def test_the_split_of_one_arm_is_unknown() -> None:
    """There is no split to judge with one arm."""
    installs = tidy_frame("new_users", timestamp=["2026-11-01"], ab_variant_id=["ctrl"], new_users=[9])
    assert [claim.direction for claim in said(experiments.sample_ratio(installs))] == ["unknown"]


def by_country(lost: float = 0.0, *, seed: int = 0) -> DataFrame:
    """Return a fair split in twenty countries, of which one has lost a share of an arm."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"C{place:02}", arm, int(rng.poisson(1000 * 0.8**place * (1 - lost * (place == 3 and arm == "new")))))
        for place in range(20)
        for arm in ("ctrl", "new")
    ]
    countries, arms, players = zip(*rows, strict=True)
    return tidy_frame("new_users", country_code=countries, ab_variant_id=arms, new_users=players)


def test_a_country_that_loses_players_of_one_arm_is_named() -> None:
    """A country of 512 players an arm loses 30 % of one: in total it is hidden, within countries it is found."""
    assert not experiments.sample_ratio(by_country(0.3))["is_suspect"].any()
    checked = experiments.sample_ratio(by_country(0.3), by="country_code")
    assert set(checked.loc[checked["is_suspect"], "country_code"]) == {"C03"}
    (claim,) = said(checked)
    assert "is broken" in claim.text
    assert " in C03 " in claim.text


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
def test_segments_of_a_fair_split_are_corrected_for_their_number() -> None:
    """The p-value of each is multiplied by twenty; in no draw a country is named."""
    frame = by_country()
    alone = experiments.sample_ratio(frame[frame["country_code"] == "C00"])["p_value"].iloc[0]
    within = experiments.sample_ratio(frame, by="country_code")
    assert within["p_value"].iloc[0] == pytest.approx(min(1.0, 20 * alone))
    assert "in any of 20 segments" in said(within)[0].text
    drawn = [
        experiments.sample_ratio(by_country(seed=seed), by="country_code")
        for seed in range(tries(in_test=5, in_bench=20))
    ]
    assert not any(checked["is_suspect"].any() for checked in drawn)


def test_looks_at_many_rows_are_one_family() -> None:
    """The always-valid interval of one row among twelve is that of 1 - 0.05 / 12, whatever the others are."""
    frame = daily(40, 42)
    alone = experiments.compare(frame, confidence=1 - 0.05 / 12).iloc[0]
    many = experiments.compare(frame, *(daily(40, 40, measure=f"measure {n}") for n in range(11))).iloc[0]
    assert (many["always_low"], many["always_high"]) == pytest.approx((alone["always_low"], alone["always_high"]))


def test_intervals_of_selected_rows_are_corrected_for_the_selection() -> None:
    """One of ten rows is selected: its interval is that of 1 - 0.05 / 10; the others keep 95 %."""
    clear, others = daily(40, 20), [daily(40, 41, measure=f"measure {n}") for n in range(9)]
    rows = experiments.compare(clear, *others)
    assert (rows["p_adjusted"] < 0.05).tolist() == [True, *[False] * 9]
    corrected = experiments.compare(clear, confidence=1 - 0.05 / 10).iloc[0]
    assert rows["low"].iloc[0] == pytest.approx(corrected["low"])
    assert rows["low"].iloc[1] == pytest.approx(experiments.compare(others[0])["low"].iloc[0])
